//! `runner stop`, `pause`, `resume`, `backpressure` and `capability`: what a runner takes on while
//! it runs, whether the devnet's process runs it or one of its own.

use super::yes;
use crate::{
    commands::chain::named,
    context::{self, Context},
    error::{CliError, Exit},
    output::{Document, fields},
};
use cowboy_devnet::{
    api::types::{CapabilitiesRequest, Runner, RunnerLoad},
    client::Client,
    orchestrator::home::DevnetHome,
    runner::folder::{RunnerFolder, RunnerRecord},
};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;
use tokio::time::{interval, timeout};

/// How long a process has to take a request.
const ASKING: Duration = Duration::from_secs(5);
/// How long it has to end then, and how long a signal has to work.
const ENDING: Duration = Duration::from_secs(5);
/// How often an ending process is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What a runner is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// Say goodbye and end.
    Stop,
    /// Take no new jobs.
    Pause,
    /// Take jobs again.
    Resume,
    /// Take at most so many at a time; `None`: tell.
    Limit(Option<u32>),
    /// Do some of what it is registered for again, or not for now.
    Change(CapabilitiesRequest),
}

/// Has a runner do it, and shows what it takes on then.
pub async fn run(cx: &Context, runner: &str, steer: Steer) -> Result<(), CliError> {
    let devnet = devnet(cx)?;
    let own = RunnerFolder::running_at(&devnet)?.into_iter().find(|own| is(own, runner));
    let load = match own {
        None => {
            let left = runner.parse().ok().map(|name| RunnerFolder::of(&devnet, &name));
            if left.is_some_and(|folder| folder.path().is_dir()) {
                let what = format!("runner `{runner}` does not run");
                return Err(CliError::new(Exit::Conflict, what).hint(format!(
                    "start it: cowboyctl runner start --key-file FILE --name {runner}"
                )));
            }
            ask(&cx.client()?, runner, &steer).await?
        }
        Some(own) => {
            let folder = RunnerFolder::of(&devnet, &own.name);
            let client = folder.client(&own)?.with_timeout(ASKING);
            let answer = ask(&client, own.name.as_str(), &steer).await;
            match steer {
                Steer::Stop => {
                    end(&folder, &own, answer.is_ok()).await?;
                    RunnerLoad::new(own.name.as_str(), own.address.0, None)
                }
                _ => answer?,
            }
        }
    };
    cx.ui.document(&load)
}

/// The entries with the names of those runners that run in processes of their own.
pub fn with_names(cx: &Context, mut entries: Vec<Runner>) -> Result<Vec<Runner>, CliError> {
    let own = RunnerFolder::running_at(&devnet(cx)?)?;
    for entry in &mut entries {
        if let Some(own) = own.iter().find(|own| own.address == entry.address) {
            entry.name = own.name.to_string();
        }
    }
    Ok(entries)
}

/// What the devnet knows a runner by: the address, where it runs in a process of its own.
pub fn known_as(cx: &Context, runner: String) -> Result<String, CliError> {
    let own = RunnerFolder::running_at(&devnet(cx)?)?.into_iter().find(|own| is(own, &runner));
    Ok(own.map_or(runner, |own| own.address.to_string()))
}

/// The devnet whose runners are meant. It may be down: their processes wait for it.
fn devnet(cx: &Context) -> Result<DevnetHome, CliError> {
    match &cx.devnet {
        // With --rpc-url a runner may have joined a devnet that has no folder here.
        Some(name) => Ok(context::home()?.devnet(name)),
        None => cx.existing(None),
    }
}

fn is(own: &RunnerRecord, runner: &str) -> bool {
    own.name.as_str() == runner || own.address.to_string() == runner
}

async fn ask(client: &Client, runner: &str, steer: &Steer) -> Result<RunnerLoad, CliError> {
    Ok(match steer {
        Steer::Stop => client.stop_runner(runner).await?,
        Steer::Pause => client.pause_runner(runner).await?,
        Steer::Resume => client.resume_runner(runner).await?,
        Steer::Limit(Some(max)) => client.limit_runner(runner, *max).await?,
        Steer::Limit(None) => client.runner_load(runner).await?,
        Steer::Change(request) => client.change_capabilities(runner, request).await?,
    })
}

/// Waits until a runner's process has ended; one that did not take the request, or does not end, is
/// sent signals. They go to the process that holds the runner's lock at that moment.
async fn end(folder: &RunnerFolder, own: &RunnerRecord, asked: bool) -> Result<(), CliError> {
    if asked && gone(folder, own.pid).await? {
        return Ok(());
    }
    for signal in [Signal::TERM, Signal::KILL] {
        if folder.holder()? != Some(own.pid) {
            return Ok(());
        }
        if let Some(process) = Pid::from_raw(own.pid.cast_signed()) {
            // It may have ended just now; else the next look says that it has not.
            let _ = kill_process(process, signal);
        }
        if gone(folder, own.pid).await? {
            return Ok(());
        }
    }
    Err(CliError::failed(format!("runner `{}` does not end: process {}", own.name, own.pid)))
}

/// Whether the process lets go of the runner soon.
async fn gone(folder: &RunnerFolder, pid: u32) -> Result<bool, CliError> {
    let mut looks = interval(LOOK);
    let wait = async {
        loop {
            looks.tick().await;
            if folder.holder()? != Some(pid) {
                return Ok(true);
            }
        }
    };
    timeout(ENDING, wait).await.unwrap_or(Ok(false))
}

impl Document for RunnerLoad {
    fn text(&self) -> String {
        let accepting = match &self.reason {
            Some(reason) => format!("{}: {reason}", yes(self.accepting_new)),
            None => yes(self.accepting_new),
        };
        let mut rows = vec![
            ("runner", named(Some(&self.name), &self.address)),
            ("runs", yes(self.running)),
            ("jobs", format!("{} of {}", self.active_jobs, self.max_concurrent)),
            ("takes more", accepting),
        ];
        if !self.withdrawn.is_empty() {
            rows.push(("withdrawn", self.withdrawn.join(", ")));
        }
        fields(&rows)
    }

    fn id(&self) -> String {
        self.address.to_string()
    }
}
