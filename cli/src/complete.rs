//! Names for the shell to complete: devnets, nodes and accounts from the devnets' folders, jobs,
//! actors, timers and pipelines from the devnet itself. Whatever fails completes nothing.

use clap_complete::CompletionCandidate;
use cowboy_devnet::{
    api::types::{ActorQuery, JobQuery, PipelineQuery, TimerQuery},
    client::Client,
    orchestrator::home::{DevnetHome, Home, State},
    topology::{Overrides, Plan, Topology},
};
use cowboy_engine::{presence::Phase, timer::Config};
use std::{env, time::Duration};

/// How long a completion may ask a devnet.
const PATIENCE: Duration = Duration::from_millis(300);

/// Devnets.
pub fn devnets() -> Vec<CompletionCandidate> {
    let homes = Home::from_env().and_then(|home| home.list()).unwrap_or_default();
    homes.iter().map(|devnet| CompletionCandidate::new(devnet.name().as_str())).collect()
}

/// Validators.
pub fn validators() -> Vec<CompletionCandidate> {
    let plan = plan();
    let names = plan.iter().flat_map(|plan| &plan.validators).map(|v| v.name.as_str());
    names.map(CompletionCandidate::new).collect()
}

/// Runners.
pub fn runners() -> Vec<CompletionCandidate> {
    let plan = plan();
    let names = plan.iter().flat_map(|plan| &plan.runners).map(|r| r.name.as_str());
    names.map(CompletionCandidate::new).collect()
}

/// Validators and runners.
pub fn nodes() -> Vec<CompletionCandidate> {
    validators().into_iter().chain(runners()).collect()
}

/// Accounts that have a key.
pub fn accounts() -> Vec<CompletionCandidate> {
    let names = current().and_then(|devnet| devnet.accounts().ok()).unwrap_or_default();
    names.iter().map(|name| CompletionCandidate::new(name.as_str())).collect()
}

/// The newest jobs.
pub fn jobs() -> Vec<CompletionCandidate> {
    let ask = || {
        let client = Client::of_devnet(&current()?).ok()?.with_timeout(PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(client.jobs(&JobQuery::default())).ok()
    };
    let jobs = ask().unwrap_or_default();
    jobs.iter()
        .map(|job| {
            let help = format!("{} {}", job.kind, job.status);
            CompletionCandidate::new(job.job_id.to_string()).help(Some(help.into()))
        })
        .collect()
}

/// The newest actors.
pub fn actors() -> Vec<CompletionCandidate> {
    let ask = || {
        let client = Client::of_devnet(&current()?).ok()?.with_timeout(PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(client.actors(&ActorQuery::default())).ok()
    };
    let actors = ask().unwrap_or_default();
    actors
        .iter()
        .map(|actor| {
            let deployer = actor.deployer_name.clone();
            let deployer = deployer.unwrap_or_else(|| actor.deployer.to_string());
            let help = format!("by {deployer} at {}", actor.deployed_at);
            CompletionCandidate::new(actor.actor.to_string()).help(Some(help.into()))
        })
        .collect()
}

/// Timers that wait.
pub fn timers() -> Vec<CompletionCandidate> {
    let ask = || {
        let client = Client::of_devnet(&current()?).ok()?.with_timeout(PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(client.timers(&TimerQuery::default())).ok()
    };
    let timers = ask().unwrap_or_default();
    timers
        .iter()
        .map(|timer| {
            let help = format!("{} of {} at {}", timer.handler, timer.actor, timer.height);
            CompletionCandidate::new(timer.timer_id.to_string()).help(Some(help.into()))
        })
        .collect()
}

/// The newest pipelines.
pub fn pipelines() -> Vec<CompletionCandidate> {
    let ask = || {
        let client = Client::of_devnet(&current()?).ok()?.with_timeout(PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(client.pipelines(&PipelineQuery::default())).ok()
    };
    let latest = CompletionCandidate::new("latest").help(Some("the newest".into()));
    let numbered = ask().unwrap_or_default().into_iter().map(|pipeline| {
        let help = format!("{} {}", pipeline.name, pipeline.status);
        CompletionCandidate::new(pipeline.pipeline.to_string()).help(Some(help.into()))
    });
    [latest].into_iter().chain(numbered).collect()
}

/// Keys of governed parameters: their last parts, which are enough.
pub fn parameters() -> Vec<CompletionCandidate> {
    let keys = Config::KEYS.iter().map(|key| {
        let last = key.name.rsplit(':').next().unwrap_or(key.name);
        CompletionCandidate::new(last).help(Some(key.about.into()))
    });
    let phase = CompletionCandidate::new(Phase::KEY)
        .help(Some("what presence and polling are for: shadow, hot-path or sunset".into()));
    keys.chain([phase]).collect()
}

/// The devnet of the environment, else the only one running. The command line is not known here.
fn current() -> Option<DevnetHome> {
    let home = Home::from_env().ok()?;
    if let Ok(name) = env::var("COWBOYCTL_DEVNET") {
        return Some(home.devnet(&name.parse().ok()?));
    }
    let is_running = |d: &DevnetHome| d.state().is_ok_and(|state| state != State::Stopped);
    let mut running = home.list().ok()?.into_iter().filter(is_running);
    running.next().filter(|_| running.next().is_none())
}

fn plan() -> Option<Plan> {
    let text = current()?.topology().ok()??;
    let topology = Topology::parse(&text, "").ok()?;
    topology.resolve(&Overrides::default(), &text, "").ok()
}
