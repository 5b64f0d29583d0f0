//! `runner`: registry entries, connections, and the work that runners accept.

mod capability;
pub(super) mod process;
mod registration;
pub(super) mod steer;
mod update;

use super::ask;
use crate::{
    complete,
    context::Context,
    error::CliError,
    output::{Document, Row, amount, any_table, columns, fields, named, or_dash, paragraphs, rows},
};
use capability::Capability;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    topology::MAX_CONCURRENT_JOBS,
    types::{PresenceCondition, PresenceStanding, Runner as Entry, RunnerConnection, RunnerHealth},
};
use process::Start;
use registration::{Deregister, Register};
use std::collections::BTreeSet;
use steer::Steer;
use update::Update;

#[derive(Debug, Subcommand)]
pub enum Runner {
    /// List runners in registry order
    ///
    /// PRESENT is what a draw in the next block finds: yes or no by the newest P(h), stale if that
    /// is too old, halted if no blocks are made, unknown before the first P(h). INDEX is a runner's
    /// position in the registry, and its bit in every bitmap of presence. UNMET names the condition
    /// that keeps a runner from being present; `runner show` explains it.
    Ls,
    /// Show a runner's registry entry and connections
    Show(WhichRunner),
    /// The validators that a runner has to be connected to, in subset order
    Subset(WhichRunner),
    /// Remove a runner from the registry
    ///
    /// Its stake is returned to its account, the runners behind it move up by one in the registry
    /// and in every vote's bitmap, and validators close its connections. A runner with jobs cannot
    /// leave.
    Deregister(Deregister),
    /// Add a runner to the registry, in last place
    ///
    /// A runner of the devnet's topology that had left gets the topology's terms, unless another
    /// stake or price is given, and its earlier reputation. The holder of a key file first receives
    /// the money that stake and fees need.
    Register(Box<Register>),
    /// Change what a runner is registered with, and lock more stake
    ///
    /// Options that are not given keep their values. A stake can only grow: `runner deregister`
    /// returns it. A runner that lost part of its stake is accepted again once it has locked the
    /// missing amount.
    Update(Box<Update>),
    /// Withdraw or restore capabilities of a running runner
    #[command(subcommand)]
    Capability(Capability),
    /// Start a runner in its own process, or a stopped one of the devnet
    ///
    /// With --key-file, it joins the devnet over QUIC, runs jobs as the user who starts it, and
    /// ends on Ctrl-C, SIGTERM or `runner stop`. It waits while the devnet is down; if the chain is
    /// another one, for example after a reset, it ends. Its log goes to stderr, or with --detach to
    /// a file in its folder; COWBOYCTL_LOG sets what is logged.
    Start(Box<Start>),
    /// Stop a runner: it says goodbye to its validators and abandons its jobs
    Stop(WhichRunner),
    /// Stop a runner from taking new jobs
    ///
    /// Its validators are told, and it is not present until it resumes or restarts. It finishes its
    /// current jobs.
    Pause(WhichRunner),
    /// Let a paused runner take jobs again
    Resume(WhichRunner),
    /// Show the load that a runner reports to its validators, or limit it
    ///
    /// With --max it takes at most this many jobs at a time, until it ends or gets another limit.
    /// Current jobs continue. While it is at the limit, it is not present.
    Backpressure {
        #[command(flatten)]
        which: WhichRunner,
        /// Maximum number of jobs at a time
        #[arg(long, value_name = "N")]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_CONCURRENT_JOBS as i64))]
        max: Option<u32>,
    },
}

/// The runner that a command is about.
#[derive(Debug, Args)]
pub struct WhichRunner {
    /// The runner: a name or an address
    #[arg(add = ArgValueCandidates::new(complete::runners))]
    runner: String,
}

impl Runner {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Start(start) => start.run(cx),
            other => ask(cx, other.ask(cx)),
        }
    }

    async fn ask(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Start(_) => unreachable!("it is run by itself"),
            Self::Deregister(deregister) => deregister.run(cx).await,
            Self::Register(register) => register.run(cx).await,
            Self::Update(update) => update.run(cx).await,
            Self::Capability(capability) => capability.run(cx).await,
            Self::Ls => cx.ui.list(&steer::with_names(cx, cx.client()?.runners().await?)?),
            Self::Show(WhichRunner { runner }) => {
                let shown = cx.client()?.runner(&steer::known_as(cx, runner)?).await?;
                let named = steer::with_names(cx, vec![shown])?;
                named.iter().try_for_each(|runner| cx.ui.document(runner))
            }
            Self::Subset(WhichRunner { runner }) => {
                let runner = steer::known_as(cx, runner)?;
                cx.ui.list(&cx.client()?.runner(&runner).await?.connections)
            }
            Self::Stop(WhichRunner { runner }) => steer::run(cx, &runner, Steer::Stop).await,
            Self::Pause(WhichRunner { runner }) => steer::run(cx, &runner, Steer::Pause).await,
            Self::Resume(WhichRunner { runner }) => steer::run(cx, &runner, Steer::Resume).await,
            Self::Backpressure { which: WhichRunner { runner }, max } => {
                steer::run(cx, &runner, Steer::Limit(max)).await
            }
        }
    }
}

fn health(health: RunnerHealth) -> &'static str {
    match health {
        RunnerHealth::Healthy => "Healthy",
        RunnerHealth::Unhealthy => "Unhealthy",
        RunnerHealth::Deregistered => "Deregistered",
    }
}

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn jobs(runner: &Entry) -> String {
    format!("{}/{}", runner.active_jobs, runner.max_concurrent_jobs)
}

/// Whether the next draw finds the runner present, in one word.
fn present(runner: &Entry) -> &'static str {
    match &runner.presence {
        Some(presence) => presence.standing.word(),
        None if runner.present => PresenceStanding::Present.word(),
        None => PresenceStanding::Absent.word(),
    }
}

/// The h of the P(h) that the answer is based on.
fn of(runner: &Entry) -> String {
    let of = runner.presence.as_ref().and_then(|presence| presence.of);
    or_dash(of)
}

impl Row for Entry {
    columns! { self;
        ">index" => self.index.to_string(),
        "name" => self.name.clone(),
        "address" => self.address.to_string(),
        "status" => health(self.status).to_owned(),
        "present" => present(self).to_owned(),
        ">P(h)" => of(self),
        "unmet" => self.unmet.as_ref().map_or("-", |unmet| unmet.condition.as_str()).to_owned(),
        "kinds" => self.kinds.join(","),
        ">jobs" => jobs(self),
        ">reputation" => self.reputation.to_string(),
        ">stake" => amount(*self.stake),
        "subset" => self.subset.join(","),
    }
    const LEAST: &'static [&'static str] = &["subset", "reputation", "stake", "P(h)", "address"];

    fn id(&self) -> String {
        self.name.clone()
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        let names = |name, names: &Option<Vec<String>>| Some((name, names.as_ref()?.join(", ")));
        let mut lines = vec![
            ("runner", named(Some(&self.name), &self.address)),
            ("public key", self.pubkey.to_string()),
            ("index", self.index.to_string()),
            ("status", health(self.status).to_owned()),
            (
                "present",
                self.presence.as_ref().map_or_else(|| yes(self.present), |p| p.to_string()),
            ),
        ];
        lines.extend(self.unmet.as_ref().map(|unmet| ("unmet", unmet.to_string())));
        lines.push(("kinds", self.kinds.join(", ")));
        lines.extend(names("models", &self.models));
        lines.extend(names("MCP servers", &self.mcp_servers));
        lines.extend(self.tee.then(|| ("TEE", yes(true))));
        let withdrawn: BTreeSet<&str> =
            self.connections.iter().flat_map(|link| &link.withdrawn).map(String::as_str).collect();
        if !withdrawn.is_empty() {
            lines.push(("withdrawn", Vec::from_iter(withdrawn).join(", ")));
        }
        lines.extend([
            ("jobs", jobs(self)),
            ("reputation", self.reputation.to_string()),
            ("stake", amount(*self.stake)),
            ("price per second", amount(*self.price_per_second)),
            ("registered at", self.registered_at.to_string()),
        ]);
        let steps = self.reputation_history.iter().map(|step| {
            let change = format!("{} to {}", step.before, step.after);
            vec![step.height.to_string(), change, step.job_id.to_string()]
        });
        let history = any_table(&[">height", "reputation", "job"], steps);
        paragraphs([fields(&lines), rows(&self.connections), history])
    }

    fn id(&self) -> String {
        self.address.to_string()
    }
}

impl Row for RunnerConnection {
    columns! { self;
        "validator" => self.validator.clone(),
        "connected" => yes(self.connected),
        "present there" => yes(self.locally_present),
        "load" => or_dash(self.load.as_ref().map(|load| {
            let jobs = format!("{}/{}", load.active_jobs, load.max_concurrent);
            match &load.reason {
                Some(reason) => format!("{jobs} {reason}"),
                None => jobs,
            }
        })),
        ">last ping" => or_dash(self.last_ping),
        "unmet" => self.unmet.map_or("-", PresenceCondition::as_str).to_owned(),
        "last end" => or_dash(self.last_end.as_ref().map(|end| match end.by.as_str() {
            "none" => format!("{} at {}", end.reason, end.height),
            by => format!("{} ({by}) at {}", end.reason, end.height),
        })),
        "address" => self.validator_address.to_string(),
    }
    const LEAST: &'static [&'static str] = &["address", "last ping", "last end", "load"];

    fn id(&self) -> String {
        self.validator.clone()
    }
}
