//! A runner's connections, jobs and results (spec connectivity.md §2, §3, §6).
//!
//! One task keeps each connection of the subset up; one task works on each accepted job. They share
//! a job table and the set of open connections, behind one short-lived lock:
//!
//! ```text
//!   assignments ──▶ ┌───────────┐ ──▶ work ──▶ result ──┐
//!   heads ────────▶ │ job table │ ◀─────────────────────┘
//!   cancellations ▶ └───────────┘ ──▶ results to validators that accept them
//! ```
//!
//! A result goes to the validator whose assignment was accepted while that stream is open,
//! otherwise to any other connected validator. An untaken result is retried with each block and
//! each new connection, until the job's deadline. A result that one validator has taken goes to
//! another if the chain does not soon show it. A committee member sends its commitment the same way
//! once the commitment is on disk, and then shows its result to any validator that asks. The reason
//! for a failure travels the same way.
//!
//! Heights come from validators, any of which may lie: the runner believes the lower median of the
//! heights that its connections reported last. A job starts when the number of validators that
//! assigned it alike exceeds the number that may be dishonest, or when a proof from the certified
//! chain shows the assignment ([`proof`]).
//!
//! [`proof`]: super::proof

mod link;

pub use super::core::Activity;

use self::link::Upkeep;
use super::{
    core::{RunnerCommand, RunnerCore, RunnerShared},
    pledges::Pledges,
    polling::{self, Polling},
    targets::KnownValidators,
    worker::Worker,
};
use crate::{
    api::steer::{HandAnswer, SteerError},
    transport::{Dial, driver::GOODBYE_TIMEOUT},
};
use commonware_runtime::{Clock, Handle, Spawner};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    presence::view::MAX_WITHDRAWN,
    primitives::{Address, Hash, Height, PublicKey, SecretKey},
    registry::{Ability, JobKind},
    session::jobs::JobTable,
    wire::BackpressureSignal,
};
use futures::FutureExt as _;
use rand_core::CryptoRng;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::{broadcast, watch};

/// Commands that may wait for a connection's task. A result that does not fit is retried with the
/// next block.
const COMMANDS: usize = 256;

/// Activities that a slow subscriber may lag behind before it is told that it missed some. The
/// buffer is allocated when the runner starts, with or without subscribers.
const ACTIVITY_LAG: usize = 32;

/// The attempt number to continue from after a newer connection of the same runner took over: two
/// processes with one key must not push each other out ten times a second.
const ATTEMPT_AFTER_DUPLICATE: u32 = 9;

/// The configuration of a runner.
#[derive(Debug, Clone)]
pub struct RunnerConfig {
    pub chain_id: u64,
    pub key: SecretKey,
    pub known: watch::Receiver<KnownValidators>,
    pub agents: BTreeSet<Address>,
    pub kinds: BTreeSet<JobKind>,
    /// Whether it waits for the results of its jobs ([`Runner::answer`]) instead of working.
    pub by_hand: bool,
    /// Abilities it is registered for but leaves out until told otherwise, at most
    /// [`MAX_WITHDRAWN`].
    pub withdrawn: BTreeSet<Ability>,
    pub max_concurrent_jobs: u32,
    /// Polling for when connections fail; `None`: it never polls.
    pub polling: Option<Polling>,
    /// The store that keeps commitments across restarts; `None`: none are kept.
    pub pledges: Option<Arc<Pledges>>,
}

/// A running runner.
pub struct Runner {
    core: Arc<RunnerCore>,
    task: Handle<()>,
}

impl Runner {
    /// The connected validators, each with the height it reported last.
    pub fn connections(&self) -> Vec<(PublicKey, Height)> {
        let shared = self.core.shared.lock();
        shared.links.iter().map(|(key, link)| (key.clone(), link.told)).collect()
    }

    pub fn count(&self) -> watch::Receiver<usize> {
        self.core.count.subscribe()
    }

    pub fn head(&self) -> Height {
        self.core.shared.lock().head
    }

    pub fn load(&self) -> BackpressureSignal {
        self.core.shared.lock().load()
    }

    /// Pauses or resumes taking new jobs and reports that. A paused runner does not count as
    /// present.
    pub fn pause(&self, paused: bool) {
        let mut shared = self.core.shared.lock();
        shared.paused = paused;
        shared.tell_load();
    }

    /// Limits the number of concurrent jobs from now on and reports that. Running jobs continue.
    pub fn limit(&self, max_concurrent: u32) {
        let mut shared = self.core.shared.lock();
        shared.table.limit(max_concurrent);
        shared.tell_load();
    }

    /// Resumes the abilities in `add`, suspends those in `remove`, and reports both. Jobs that need
    /// a suspended ability are rejected; running jobs continue. On an error nothing changes.
    pub fn change(
        &self,
        add: &BTreeSet<Ability>,
        remove: &BTreeSet<Ability>,
    ) -> Result<(), SteerError> {
        let kind_of = |ability: &Ability| match ability {
            Ability::Kind(kind) => Some(*kind),
            Ability::Model(_) => Some(JobKind::Llm),
            Ability::Server(_) => Some(JobKind::Mcp),
            Ability::Tee | Ability::Pool(_) => None,
        };
        let lacks = |kind: &JobKind| !self.core.kinds.contains(kind);
        if let Some(kind) = add.iter().filter_map(kind_of).find(lacks) {
            return Err(SteerError::CannotExecute(kind));
        }
        {
            let mut withdrawn = self.core.withdrawn.lock();
            let left: BTreeSet<Ability> =
                withdrawn.difference(add).chain(remove).cloned().collect();
            if left.len() > MAX_WITHDRAWN {
                return Err(SteerError::TooMany(left.len()));
            }
            *withdrawn = left;
        }
        for link in self.core.shared.lock().links.values() {
            link.command(RunnerCommand::TellAbilities);
        }
        Ok(())
    }

    /// Gives a job that waits its result, or the reason for giving none.
    pub fn answer(&self, job_id: Hash, answer: HandAnswer) -> Result<(), SteerError> {
        let waiting = self.core.shared.lock().unanswered.remove(&job_id);
        let taken = waiting.is_some_and(|waiting| waiting.send(answer).is_ok());
        if taken { Ok(()) } else { Err(SteerError::NotWaiting(job_id)) }
    }

    pub fn withdrawn(&self) -> BTreeSet<Ability> {
        self.core.withdrawn.lock().clone()
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Activity> {
        self.core.activity.subscribe()
    }

    /// Says goodbye to its validators, abandons its jobs and ends.
    pub async fn stop(self, clock: &impl Clock) {
        {
            let mut shared = self.core.shared.lock();
            shared.closing = true;
            for link in shared.links.values() {
                link.command(RunnerCommand::Close);
            }
        }
        let mut count = self.count();
        tokio::select! {
            biased;
            // The sender lives as long as the core.
            _ = count.wait_for(|count| *count == 0) => {}
            () = clock.sleep(GOODBYE_TIMEOUT) => {}
        }
        self.kill().await;
    }

    /// Aborts it together with its jobs, and waits until it has ended.
    pub async fn kill(self) {
        self.task.abort();
        // The result of an aborted task is of no interest.
        let _ = self.task.await;
    }
}

/// Starts a runner in the background. It lives until it is stopped, or its context's tree ends.
pub fn start<E, D, W>(context: E, config: RunnerConfig, dialer: D, worker: W) -> Runner
where
    E: Clock + Spawner + CryptoRng,
    D: Dial,
    W: Worker,
{
    let (count, _) = watch::channel(0);
    let (activity, _) = broadcast::channel(ACTIVITY_LAG);
    let public = config.key.public_key();
    let mut table = JobTable::new(config.max_concurrent_jobs);
    if let Some(pledges) = &config.pledges {
        match pledges.load(config.chain_id, &public) {
            Ok(kept) => {
                for pledge in kept {
                    table.restore(pledge);
                }
            }
            Err(error) => tracing::error!(%error, "earlier commitments cannot be read"),
        }
    }
    let core = Arc::new(RunnerCore {
        chain_id: config.chain_id,
        kinds: config.kinds,
        by_hand: config.by_hand,
        withdrawn: Mutex::new(config.withdrawn),
        agents: config.agents,
        known: config.known.clone(),
        count,
        activity,
        shared: Mutex::new(RunnerShared {
            table,
            targets: BTreeMap::new(),
            kept: BTreeSet::new(),
            links: BTreeMap::new(),
            holders: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            running: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            paused: false,
            closing: false,
            serial: 0,
            told_load: None,
            head: Height::GENESIS,
        }),
        public,
        key: config.key,
        pledges: config.pledges,
        committing: tokio::sync::Mutex::new(()),
    });
    let mut known = config.known;
    let shared = core.clone();
    let task = context.spawn(move |context| async move {
        let worker = Arc::new(worker);
        let jobs = Arc::new(context.child("jobs"));
        if let Some(polling) = config.polling {
            let desk = polling::PollingDesk {
                core: shared.clone(),
                jobs: jobs.clone(),
                worker: worker.clone(),
            };
            context.child("polling").spawn(move |context| polling::keep(context, desk, polling));
        }
        loop {
            let now = known.borrow_and_update().clone();
            for validator in shared.retarget(now) {
                let upkeep = Upkeep {
                    core: shared.clone(),
                    jobs: jobs.clone(),
                    worker: worker.clone(),
                    dialer: dialer.clone(),
                    validator,
                };
                // Boxed, because each of the runtime's layers reserves room for the future it
                // wraps.
                context.child("connection").spawn(|context| upkeep.run(context).boxed());
            }
            if known.changed().await.is_err() {
                // The validators stay as they are.
                std::future::pending::<()>().await;
            }
        }
    });
    Runner { core, task }
}
