//! Shell completion of names: devnets, nodes and accounts from the devnets' folders; jobs, actors,
//! timers, pools and pipelines from the devnet itself. A request that fails or takes too long
//! completes nothing.

pub mod ask;
pub mod line;

use clap_complete::CompletionCandidate;
use cowboy_devnet::{
    orchestrator::home::{DevnetHome, Home, stored_validators},
    snapshot::Snapshots,
    topology::{Overrides, Plan, Topology},
    types::{
        ActorQuery, ActorSummary, ChainTask, ChainTaskQuery, JobQuery, PipelineQuery, Snapshot,
        TimerQuery, TimerSummary,
    },
};
use cowboy_engine::{
    chain::EventKind,
    presence::Phase,
    registry::{Ability, JobKind},
    timer::Governed,
};
use std::{collections::BTreeSet, ffi::OsStr, fs, path::Path};

pub fn devnets() -> Vec<CompletionCandidate> {
    let homes = ask::within(|| Home::from_env().ok()?.list().ok());
    homes.iter().map(|devnet| CompletionCandidate::new(devnet.name().as_str())).collect()
}

pub fn snapshots() -> Vec<CompletionCandidate> {
    let found = ask::within(|| {
        let home = Home::from_env().ok()?;
        Snapshots::of(&home).list().ok().map(|(snapshots, _)| snapshots)
    });
    let candidate = |snapshot: &Snapshot| {
        described(&snapshot.snapshot, format!("{} at {}", snapshot.devnet, snapshot.height))
    };
    found.iter().map(candidate).collect()
}

/// Validators: those of the topology, and those that were added.
pub fn validators() -> Vec<CompletionCandidate> {
    named(ask::folder(|devnet| {
        let plan = plan(devnet);
        let planned = plan.iter().flat_map(|plan| &plan.validators).map(|v| v.name.to_string());
        Some(planned.chain(stored_validators(devnet.path()).into_keys()).collect())
    }))
}

/// Runners: those of the topology, and those in their own processes.
pub fn runners() -> Vec<CompletionCandidate> {
    named(ask::folder(|devnet| {
        let plan = plan(devnet);
        let planned = plan.iter().flat_map(|plan| &plan.runners).map(|r| r.name.to_string());
        Some(planned.chain(folders(&devnet.processes_path())).collect())
    }))
}

pub fn nodes() -> Vec<CompletionCandidate> {
    validators().into_iter().chain(runners()).collect()
}

/// Lists of nodes with commas between them, or the two ends of a link.
pub fn groups(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let comma = current.rfind(',').map(|at| at + 1);
    let begun = comma.max(current.rfind("..").map(|at| at + 2)).unwrap_or(0);
    let (before, last) = current.split_at(begun);
    let fits = |node: &CompletionCandidate| {
        node.get_value().to_str().is_some_and(|name| name.starts_with(last))
    };
    nodes().into_iter().filter(fits).map(|node| node.add_prefix(before)).collect()
}

/// Accounts that have a key.
pub fn accounts() -> Vec<CompletionCandidate> {
    let names = ask::folder(|devnet| devnet.accounts().ok());
    names.iter().map(|name| CompletionCandidate::new(name.as_str())).collect()
}

pub fn jobs() -> Vec<CompletionCandidate> {
    let jobs = ask::devnet(async |client| client.jobs(&JobQuery::default()).await);
    let ids = jobs.iter().map(|job| {
        named_or(job.name.as_deref(), job.job_id, format!("{} {}", job.kind, job.status))
    });
    and_latest(ids.collect())
}

pub fn tasks() -> Vec<CompletionCandidate> {
    let tasks = ask::devnet(async |client| client.chain_tasks(&ChainTaskQuery::default()).await);
    let candidate = |task: &ChainTask| described(task.task_id, task.status.to_string());
    and_latest(tasks.iter().map(candidate).collect())
}

pub fn actors() -> Vec<CompletionCandidate> {
    let actors = ask::devnet(async |client| client.actors(&ActorQuery::default()).await);
    let candidate = |actor: &ActorSummary| {
        let deployer = actor.deployer_name.clone();
        let deployer = deployer.unwrap_or_else(|| actor.deployer.to_string());
        let help = format!("by {deployer} at {}", actor.deployed_at);
        named_or(actor.name.as_deref(), actor.actor, help)
    };
    actors.iter().map(candidate).collect()
}

/// Waiting timers, and the newest ones.
pub fn timers() -> Vec<CompletionCandidate> {
    let timers = ask::devnet(async |client| client.timers(&TimerQuery::default()).await);
    let candidate = |timer: &TimerSummary| {
        let help = format!("{} of {} at {}", timer.handler, timer.actor, timer.height);
        named_or(timer.name.as_deref(), timer.timer_id, help)
    };
    and_latest(timers.iter().map(candidate).collect())
}

fn named_or(name: Option<&str>, id: impl ToString, help: String) -> CompletionCandidate {
    described(name.map_or_else(|| id.to_string(), str::to_owned), help)
}

pub fn pools() -> Vec<CompletionCandidate> {
    let pools = ask::devnet(async |client| client.pools().await);
    pools.iter().map(|pool| CompletionCandidate::new(&pool.pool)).collect()
}

pub fn pipelines() -> Vec<CompletionCandidate> {
    let found = ask::devnet(async |client| client.pipelines(&PipelineQuery::default()).await);
    let numbered = found.into_iter().map(|pipeline| {
        described(pipeline.pipeline, format!("{} {}", pipeline.name, pipeline.status))
    });
    and_latest(numbered.collect())
}

pub fn lies() -> Vec<CompletionCandidate> {
    let words = [
        ("ones", "all are present"),
        ("zeros", "all are absent"),
        ("flip", "the opposite of what the validator sees"),
        ("of", "of one runner alone"),
    ];
    let words = words.map(|(word, help)| described(word, help.to_owned()));
    words.into_iter().chain(runners()).collect()
}

/// The arguments of `fault heal`: nodes with a fault, numbers of faults, or all.
pub fn faults() -> Vec<CompletionCandidate> {
    let faults = ask::devnet(async |client| client.faults().await);
    let all = (!faults.is_empty()).then(|| described("all", "every fault".to_owned()));
    let numbered = faults.iter().map(|fault| described(fault.id, "a fault's number".to_owned()));
    all.into_iter().chain(numbered).chain(nodes()).collect()
}

/// Keys of governed parameters: only their last parts, which are enough.
pub fn parameters() -> Vec<CompletionCandidate> {
    let keys = Governed::KEYS.iter().map(|key| {
        let last = key.name.rsplit(':').next().unwrap_or(key.name);
        CompletionCandidate::new(last).help(Some(key.about.into()))
    });
    let phase = CompletionCandidate::new(Phase::KEY)
        .help(Some("the role of presence and polling: shadow, hot-path or sunset".into()));
    keys.chain([phase]).collect()
}

/// Keys of governed parameters with an equals sign, and with each value that is a word.
pub fn settings() -> Vec<CompletionCandidate> {
    let keys = Governed::KEYS.iter().flat_map(|key| {
        let last = key.name.rsplit(':').next().unwrap_or(key.name);
        let words = key.words.iter().map(move |word| format!("{last}={word}"));
        let number = key.words.is_empty().then(|| format!("{last}="));
        words.chain(number).map(|one| CompletionCandidate::new(one).help(Some(key.about.into())))
    });
    let phases =
        Phase::ALL.map(|phase| CompletionCandidate::new(format!("{}={phase}", Phase::KEY)));
    keys.chain(phases).collect()
}

pub fn job_kinds() -> Vec<CompletionCandidate> {
    JobKind::ALL.iter().map(|kind| CompletionCandidate::new(kind.name())).collect()
}

/// Labels of runners' registered capabilities, and of pools.
pub fn abilities() -> Vec<CompletionCandidate> {
    let runners = ask::devnet(async |client| client.runners().await);
    let mut found: BTreeSet<Ability> = JobKind::ALL.into_iter().map(Ability::Kind).collect();
    for runner in runners {
        found.extend(runner.models.into_iter().flatten().map(Ability::Model));
        found.extend(runner.mcp_servers.into_iter().flatten().map(Ability::Server));
    }
    found.insert(Ability::Tee);
    let pools = ask::devnet(async |client| client.pools().await);
    found.extend(pools.into_iter().map(|pool| Ability::Pool(pool.pool)));
    all(&Vec::from_iter(found))
}

pub fn event_kinds() -> Vec<CompletionCandidate> {
    EventKind::NAMES.iter().map(CompletionCandidate::new).collect()
}

/// The kinds of speculation events, and the components.
pub fn speculation_event_kinds() -> Vec<CompletionCandidate> {
    cowboy_devnet::types::speculation_event_kinds().map(CompletionCandidate::new).collect()
}

pub fn all<T: ToString>(all: &[T]) -> Vec<CompletionCandidate> {
    all.iter().map(|one| CompletionCandidate::new(one.to_string())).collect()
}

/// Candidates, newest first, after `latest`.
pub fn and_latest(mut found: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    if !found.is_empty() {
        found.insert(0, described("latest", "the newest".to_owned()));
    }
    found
}

pub fn described(value: impl ToString, help: String) -> CompletionCandidate {
    CompletionCandidate::new(value.to_string()).help(Some(help.into()))
}

fn named(names: BTreeSet<String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn folders(path: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

fn plan(devnet: &DevnetHome) -> Option<Plan> {
    let text = devnet.topology().ok()??;
    let topology = Topology::parse(&text, "").ok()?;
    topology.resolve(&Overrides::default(), &text, "").ok()
}
