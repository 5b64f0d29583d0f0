//! `devnet rm`: removes devnets with everything except their snapshots.

use super::down::stop;
use crate::{
    args, complete,
    context::{self, Context},
    error::{CliError, Exit},
    output::{Row, columns},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    orchestrator::{end_left, home::DevnetHome},
    topology::Name,
};
use serde::Serialize;
use std::{collections::BTreeSet, time::Duration};

#[derive(Debug, Args)]
pub struct Rm {
    /// The devnets
    #[arg(value_name = "DEVNET", add = ArgValueCandidates::new(complete::devnets))]
    #[arg(required_unless_present_any = ["stopped", "all"])]
    devnets: Vec<Name>,
    /// Every devnet that is not running
    #[arg(long, conflicts_with_all = ["devnets", "all"])]
    stopped: bool,
    /// Every devnet; running ones are stopped first
    #[arg(long, conflicts_with = "devnets")]
    all: bool,
    /// Maximum time for each devnet to stop by itself before it is killed
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "20s")]
    timeout: Duration,
}

/// A devnet that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RmReport {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// Whether it was running.
    was_running: bool,
}

impl Rm {
    /// Runs the command: removes nothing if one of the devnets cannot be removed.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let home = context::home()?;
        let mut chosen = Vec::new();
        if self.stopped || self.all {
            for devnet in home.list()? {
                if self.all || !runs(&devnet)? {
                    chosen.push(devnet);
                }
            }
        }
        let names: BTreeSet<_> = self.devnets.iter().collect();
        for name in names {
            let devnet = cx.existing(Some(name))?;
            if runs(&devnet)? {
                let what = format!("devnet `{name}` is running");
                return Err(CliError::new(Exit::Conflict, what)
                    .hint(format!("stop it: cowboyctl devnet down {name}")));
            }
            chosen.push(devnet);
        }
        let mut removed = Vec::new();
        for devnet in chosen {
            let was_running = self.all && stop(&devnet, self.timeout).await?.is_some();
            let lock = devnet.lock()?;
            end_left(&devnet).await.map_err(CliError::failed)?;
            lock.remove()?;
            removed.push(RmReport { name: devnet.name().clone(), was_running });
        }
        if removed.is_empty() {
            cx.ui.note("no devnet to remove");
        }
        cx.ui.list(&removed)
    }
}

fn runs(devnet: &DevnetHome) -> Result<bool, CliError> {
    Ok(!devnet.state()?.is_down())
}

impl Row for RmReport {
    columns! { self;
        let ran = if self.was_running { "yes" } else { "no" };
        "removed" => self.name.to_string(),
        "ran" => ran.to_owned(),
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}
