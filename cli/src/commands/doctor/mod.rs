//! `doctor`: what is wrong with this machine or devnet, and what to do about it.

mod deep;
pub(super) mod finding;
mod folder;
mod machine;
mod running;

use super::block_on;
use crate::{
    args,
    context::{self, Context},
    error::CliError,
    output::Format,
};
use clap::Args;
use cowboy_devnet::home::DevnetState;
use finding::{DoctorReport, Finding, Severity};
use std::time::Duration;

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Repair what can be repaired without loss: modes of files, leftovers of killed processes
    #[arg(long)]
    fix: bool,
    /// Check everything that validators have stored: blocks, certificates, state roots, records,
    /// indexes
    ///
    /// Every block is executed again, at a few thousand per second.
    #[arg(long)]
    deep: bool,
    /// Maximum time for each running devnet to answer
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "5s")]
    timeout: Duration,
}

impl Doctor {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        let clock = machine::Clock::start();
        let home = context::home()?;
        let (mut findings, listed) = folder::of_home(&home);
        let devnets = match &cx.devnet {
            Some(name) => match cx.existing(None) {
                Ok(devnet) => vec![devnet],
                // A finding already tells why it cannot be used.
                Err(_) if findings.iter().any(|it| it.is_of("folder", name.as_str())) => Vec::new(),
                Err(error) => return Err(error),
            },
            None => listed,
        };
        findings.extend(machine::check(&devnets));
        for devnet in &devnets {
            findings.extend(folder::of_devnet(devnet));
            if self.deep {
                findings.extend(deep::of_devnet(devnet));
            }
            if let Ok(DevnetState::Running(record)) = devnet.state() {
                block_on(async {
                    findings.extend(running::check(cx, devnet, &record, self.timeout).await);
                    Ok(())
                })?;
            }
        }
        findings.push(clock.check());
        if self.fix {
            findings.iter_mut().for_each(Finding::mend);
        }
        let report = DoctorReport(findings);
        match cx.ui.format() {
            Format::Jsonl => cx.ui.list(&report.0)?,
            _ => cx.ui.drawing(&report, |columns| report.draw(columns))?,
        }
        Self::sum_up(cx, &report)
    }

    fn sum_up(cx: &Context, report: &DoctorReport) -> Result<(), CliError> {
        let remaining = |state| {
            report.0.iter().filter(|finding| finding.remains() && finding.state == state).count()
        };
        let (problems, warnings) = (remaining(Severity::Problem), remaining(Severity::Warning));
        let count = |number, what: &str| match number {
            1 => format!("1 {what}"),
            _ => format!("{number} {what}s"),
        };
        let sum = format!("{}, {}", count(problems, "problem"), count(warnings, "warning"));
        if problems == 0 {
            cx.ui.note(&format!("{sum} in {}", count(report.0.len(), "check")));
            return Ok(());
        }
        let error = CliError::failed(format!("{sum} in {}", count(report.0.len(), "check")));
        Err(match report.0.iter().any(|finding| finding.repair.is_some()) {
            true => error.hint("some of it can be repaired: cowboyctl doctor --fix"),
            false => error,
        })
    }
}
