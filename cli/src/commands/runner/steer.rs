//! `runner stop`, `pause`, `resume`, `backpressure` and `capability`: steer a running runner, in
//! the devnet's process or its own.

use super::yes;
use crate::{
    commands::devnet::gone_within,
    context::{self, Context},
    error::{CliError, Exit},
    output::{Document, fields, named},
};
use cowboy_devnet::{
    client::Client,
    orchestrator::home::DevnetHome,
    runner::folder::{RunnerFolder, RunnerRecord},
    types::{AnswerRequest, CapabilitiesRequest, Runner, RunnerLoad},
};
use cowboy_host::files::has_open;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// Time limit for a process to take a request.
const ASKING: Duration = Duration::from_secs(5);
/// Time for it to end after that, and for a signal to take effect.
const ENDING: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// Say goodbye and end.
    Stop,
    Pause,
    Resume,
    /// Take at most this many jobs at a time; `None`: report the load.
    Limit(Option<u32>),
    /// Restore or withdraw capabilities.
    Change(CapabilitiesRequest),
    /// Give a job its result by hand.
    Answer(AnswerRequest),
}

pub async fn run(cx: &Context, runner: &str, steer: Steer) -> Result<(), CliError> {
    cx.ui.document(&apply(cx, runner, &steer).await?)
}

/// Steers a runner and returns what it tells its validators as a result.
pub async fn apply(cx: &Context, runner: &str, steer: &Steer) -> Result<RunnerLoad, CliError> {
    let devnet = devnet(cx)?;
    let own = RunnerFolder::running_at(&devnet)?.into_iter().find(|own| is(own, runner));
    match own {
        None => {
            let left = runner.parse().ok().map(|name| RunnerFolder::of(&devnet, &name));
            if left.is_some_and(|folder| folder.path().is_dir() && !folder.is_supervised()) {
                let what = format!("runner `{runner}` is not running");
                return Err(CliError::new(Exit::Conflict, what).hint(format!(
                    "start it: cowboyctl runner start --key-file FILE --name {runner}"
                )));
            }
            ask(&cx.client()?, runner, steer).await
        }
        Some(own) => {
            let folder = RunnerFolder::of(&devnet, &own.name);
            let client = folder.client(&own)?.with_timeout(ASKING);
            let answer = ask(&client, own.name.as_str(), steer).await;
            match steer {
                Steer::Stop => {
                    end(&folder, &own, answer.is_ok()).await?;
                    Ok(RunnerLoad::stopped(own.name.as_str(), own.address.0))
                }
                _ => answer,
            }
        }
    }
}

/// The entries, with the names of runners that run in their own processes.
pub fn with_names(cx: &Context, mut entries: Vec<Runner>) -> Result<Vec<Runner>, CliError> {
    let own = RunnerFolder::running_at(&devnet(cx)?)?;
    for entry in &mut entries {
        if let Some(own) = own.iter().find(|own| own.address == entry.address) {
            entry.name = own.name.to_string();
        }
    }
    Ok(entries)
}

/// The devnet's name for a runner: the address, if it runs in its own process.
pub fn known_as(cx: &Context, runner: String) -> Result<String, CliError> {
    let own = RunnerFolder::running_at(&devnet(cx)?)?.into_iter().find(|own| is(own, &runner));
    Ok(own.map_or(runner, |own| own.address.to_string()))
}

/// The devnet of the runners. It may be down, because their processes wait for it.
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
        Steer::Answer(request) => client.answer_job(runner, request).await?,
    })
}

/// Waits until a runner's process has ended; sends signals if it did not take the request or does
/// not end. Signals go to the process that holds the runner's lock at that moment.
async fn end(folder: &RunnerFolder, own: &RunnerRecord, asked: bool) -> Result<(), CliError> {
    let released = || Ok(folder.holder()? != Some(own.pid));
    if asked && gone_within(ENDING, released).await? {
        return Ok(());
    }
    for signal in [Signal::TERM, Signal::KILL] {
        if released()? {
            return Ok(());
        }
        let ours = Some(own.pid).filter(|pid| has_open(*pid, &folder.lock_path()));
        if let Some(process) = ours.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // It may have ended just now; otherwise the next check finds it still running.
            let _ = kill_process(process, signal);
        }
        if gone_within(ENDING, released).await? {
            return Ok(());
        }
    }
    Err(CliError::failed(format!("runner `{}` does not end: process {}", own.name, own.pid)))
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
