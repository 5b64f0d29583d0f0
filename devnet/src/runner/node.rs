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

use self::link::Upkeep;
use super::{
    job::work,
    pledges::Pledges,
    polling::{self, Polling},
    proof::{self, ProofError, Shown},
    targets::KnownValidators,
    worker::{TaskProgress, Worker},
};
use crate::{
    api::steer::SteerError,
    transport::{Dial, driver::GOODBYE_TIMEOUT},
};
use commonware_runtime::{Clock, Handle, Spawner};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    job::{needs, spec::JobSpec},
    presence::view::MAX_WITHDRAWN,
    primitives::{Address, Hash, Height, PublicKey, SecretKey, codec::from_slice},
    registry::{Ability, JobKind},
    session::jobs::{Decided, JobReport, JobTable, Offer},
    wire::{AckStatus, BackpressureSignal, CancelReason, RejectReason},
};
use futures::FutureExt as _;
use rand_core::CryptoRng;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::SystemTime,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Commands that may wait for a connection's task. A result that does not fit is retried with the
/// next block.
const COMMANDS: usize = 256;

/// Activities that a slow subscriber may lag behind before it is told that it missed some. The
/// buffer is allocated when the runner starts, with or without subscribers.
const ACTIVITY_LAG: usize = 32;

/// The attempt number to continue from after a newer connection of the same runner took over: two
/// processes with one key must not push each other out ten times a second.
const ATTEMPT_AFTER_DUPLICATE: u32 = 9;

/// A validator's key and address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatorAddress {
    /// Its runner-facing key (ed25519).
    pub key: PublicKey,
    pub address: SocketAddr,
}

/// The configuration of a runner.
#[derive(Debug, Clone)]
pub struct RunnerConfig {
    pub chain_id: u64,
    pub key: SecretKey,
    /// The validators to connect to and to trust, as they change.
    pub known: watch::Receiver<KnownValidators>,
    /// The agents whose errands it accepts.
    pub agents: BTreeSet<Address>,
    pub kinds: BTreeSet<JobKind>,
    /// Abilities it is registered for but leaves out until told otherwise, at most
    /// [`MAX_WITHDRAWN`].
    pub withdrawn: BTreeSet<Ability>,
    pub max_concurrent_jobs: u32,
    /// Polling for when connections fail; `None`: it never polls.
    pub polling: Option<Polling>,
    /// The store that keeps commitments across restarts; `None`: none are kept.
    pub pledges: Option<Arc<Pledges>>,
}

/// An event in a runner's life, sent as it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    Connected {
        validator: PublicKey,
    },
    /// A connection ended or could not be established.
    Disconnected {
        validator: PublicKey,
        reason: String,
    },
    /// Work on a job begins: its command starts or its request goes out.
    Started {
        job_id: Hash,
        /// The time on the runner's clock.
        at: SystemTime,
    },
    /// A job has its result, which is on its way to the chain.
    Finished {
        job_id: Hash,
        /// Length of the result, in bytes.
        bytes: usize,
    },
    /// A job failed; the reason is on its way to the chain.
    Failed {
        job_id: Hash,
        reason: String,
    },
    /// The chain cancelled a job, or the job's deadline passed.
    Stopped {
        job_id: Hash,
        /// The validator's reason; `None`: the deadline passed.
        reason: Option<CancelReason>,
    },
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

    /// The number of connected validators, as it changes.
    pub fn count(&self) -> watch::Receiver<usize> {
        self.core.count.subscribe()
    }

    /// The height that the runner believes the chain has.
    pub fn head(&self) -> Height {
        self.core.shared.lock().head
    }

    /// The load that it reports to its validators.
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

    /// The abilities that are suspended.
    pub fn withdrawn(&self) -> BTreeSet<Ability> {
        self.core.withdrawn.lock().clone()
    }

    /// Subscribes to the runner's activities from now on.
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

pub(super) struct RunnerCore {
    pub(super) chain_id: u64,
    pub(super) key: SecretKey,
    pub(super) public: PublicKey,
    kinds: BTreeSet<JobKind>,
    /// The suspended abilities. Locked after `shared` when both are needed.
    withdrawn: Mutex<BTreeSet<Ability>>,
    agents: BTreeSet<Address>,
    known: watch::Receiver<KnownValidators>,
    /// The number of connected validators.
    count: watch::Sender<usize>,
    activity: broadcast::Sender<Activity>,
    pub(super) pledges: Option<Arc<Pledges>>,
    /// Held while a commitment goes to disk and into the table.
    pub(super) committing: tokio::sync::Mutex<()>,
    pub(super) shared: Mutex<RunnerShared>,
}

pub(super) struct RunnerShared {
    pub(super) table: JobTable,
    /// The validators to connect to.
    targets: BTreeMap<PublicKey, SocketAddr>,
    /// The validators that have an upkeep task.
    kept: BTreeSet<PublicKey>,
    pub(super) links: BTreeMap<PublicKey, LinkHandle>,
    /// The validator whose assignment of a job was accepted, while that stream is open.
    holders: BTreeMap<Hash, PublicKey>,
    /// The connection on which a result or commitment was sent that is not known to have arrived.
    in_flight: BTreeMap<Hash, PublicKey>,
    /// Senders whose drop cancels the running jobs.
    pub(super) running: BTreeMap<Hash, oneshot::Sender<()>>,
    paused: bool,
    pub(super) closing: bool,
    serial: u64,
    told_load: Option<BackpressureSignal>,
    /// The height that the chain is believed to have.
    pub(super) head: Height,
}

/// An established connection.
pub(super) struct LinkHandle {
    /// Distinguishes it from earlier connections to the same validator.
    serial: u64,
    commands: mpsc::Sender<RunnerCommand>,
    told: Height,
}

enum RunnerCommand {
    /// The chain is believed to have this height.
    Head(Height),
    Progress(Hash, TaskProgress),
    Deliver(JobReport),
    /// Answer the waiting assignments of this job.
    Answer(Hash, AckStatus),
    TellLoad,
    /// Tell which abilities were suspended or resumed.
    TellAbilities,
    Close,
}

impl RunnerCore {
    pub(super) fn say(&self, activity: Activity) {
        tracing::debug!(runner = %self.public.address(), ?activity, "activity");
        // Having no subscriber is not an error.
        let _ = self.activity.send(activity);
    }

    /// Replaces the validators to connect to. Says goodbye to validators that have left the subset,
    /// and returns those that need an upkeep task.
    fn retarget(&self, known: KnownValidators) -> Vec<PublicKey> {
        let mut shared = self.shared.lock();
        shared.table.require(known.agreeing());
        let RunnerShared { targets: wanted, links, kept, .. } = &mut *shared;
        *wanted = known.targets.into_iter().map(|target| (target.key, target.address)).collect();
        for (_, link) in links.iter().filter(|(key, _)| !wanted.contains_key(key)) {
            link.command(RunnerCommand::Close);
        }
        let fresh: Vec<_> = wanted.keys().filter(|key| !kept.contains(key)).cloned().collect();
        kept.extend(fresh.iter().cloned());
        fresh
    }

    /// Takes a height from a validator. The believed height may rise, and deadlines may pass.
    fn told(&self, shared: &mut RunnerShared, validator: &PublicKey, head: Height) {
        if let Some(link) = shared.links.get_mut(validator) {
            link.told = head;
        }
        let believed = shared.believed();
        if believed > shared.head {
            shared.head = believed;
            for link in shared.links.values() {
                link.command(RunnerCommand::Head(believed));
            }
            for job_id in shared.table.advance(believed) {
                shared.abandon(&job_id);
                self.say(Activity::Stopped { job_id, reason: None });
            }
            self.clear(shared);
        }
        shared.deliver_all();
    }

    /// The work that an assignment asks for, if the runner can do it.
    pub(super) fn check(&self, job_spec: &[u8]) -> Result<JobSpec, RejectReason> {
        let spec: JobSpec = from_slice(job_spec).map_err(|_| RejectReason::InvalidSpec)?;
        spec.check().map_err(|_| RejectReason::InvalidSpec)?;
        if !self.kinds.contains(&spec.work.kind()) {
            return Err(RejectReason::UnsupportedKind);
        }
        let withdrawn = self.withdrawn.lock();
        let lacking = needs::of(&spec).find(|need| withdrawn.contains(need));
        match lacking {
            None => Ok(spec),
            Some(Ability::Pool(_)) => Err(RejectReason::MissingEntitlement),
            Some(_) => Err(RejectReason::UnsupportedKind),
        }
    }

    /// What a proof shows about a job.
    pub(super) fn read_proof(&self, job_id: &Hash, bytes: &[u8]) -> Result<Shown, ProofError> {
        let known = self.known.borrow().clone();
        proof::read(&known, (self.chain_id, self.public.address()), job_id, bytes)
    }

    /// Starts work on a job that was taken from any peer, and has the other validators that wait
    /// for an answer answered.
    pub(super) fn start<E, W>(
        self: &Arc<Self>,
        (jobs, worker): (&Arc<E>, &Arc<W>),
        shared: &mut RunnerShared,
        decided: &Decided,
        (job_id, spec): (Hash, Option<JobSpec>),
    ) where
        E: Clock + Spawner,
        W: Worker,
    {
        for link in decided.others.iter().filter_map(|validator| shared.links.get(validator)) {
            link.command(RunnerCommand::Answer(job_id, decided.others_status()));
        }
        match (&decided.offer, spec) {
            (Offer::Accept, Some(spec)) => {
                let (cancel, cancelled) = oneshot::channel();
                shared.running.insert(job_id, cancel);
                work(self, jobs, worker, (job_id, spec), cancelled);
            }
            (Offer::Reject(reason), _) => {
                tracing::debug!(runner = %self.public.address(), %job_id, %reason, "job rejected");
            }
            _ => {}
        }
        shared.tell_load();
    }

    /// Reports progress to the validator that holds the job, if there is one.
    pub(super) fn progressed(&self, job_id: Hash, progress: TaskProgress) {
        let shared = self.shared.lock();
        if let Some(link) = shared.holders.get(&job_id).and_then(|key| shared.links.get(key)) {
            link.command(RunnerCommand::Progress(job_id, progress));
        }
    }
}

impl RunnerShared {
    fn load(&self) -> BackpressureSignal {
        self.table.signal(self.paused)
    }

    /// Whether any validator that the runner should be connected to is not connected.
    pub(super) fn misses_connections(&self) -> bool {
        self.targets.keys().any(|key| !self.links.contains_key(key))
    }

    /// Reports the load to every validator if it has changed.
    pub(super) fn tell_load(&mut self) {
        let load = self.load();
        if self.told_load.as_ref() != Some(&load) {
            self.told_load = Some(load);
            for link in self.links.values() {
                link.command(RunnerCommand::TellLoad);
            }
        }
    }

    /// The lower median of the reported heights: no single validator of three can raise it.
    fn believed(&self) -> Height {
        let mut told: Vec<_> = self.links.values().map(|link| link.told).collect();
        told.sort_unstable();
        told.get(told.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }

    /// Stops a job's work if it is running, and forgets where the job came from.
    pub(super) fn abandon(&mut self, job_id: &Hash) {
        self.holders.remove(job_id);
        // Dropping the sender cancels the work.
        self.running.remove(job_id);
    }

    /// Sends a result that is not already on its way: to the validator that holds the job,
    /// otherwise to any validator that has not taken it.
    pub(super) fn deliver(&mut self, delivery: JobReport) {
        let job_id = delivery.job_id();
        if self.in_flight.contains_key(&job_id) {
            return;
        }
        let holder = self.holders.get(&job_id).and_then(|key| self.links.get_key_value(key));
        let sent = holder
            .into_iter()
            .chain(&self.links)
            .filter(|(key, _)| !self.table.has_taken(&job_id, key))
            .find(|(_, link)| link.command(RunnerCommand::Deliver(delivery.clone())))
            .map(|(key, _)| key.clone());
        if let Some(key) = sent {
            self.in_flight.insert(job_id, key);
        }
    }

    /// Sends every result that too few validators have taken and that is not on its way.
    fn deliver_all(&mut self) {
        let waiting: Vec<_> = self.table.undelivered().collect();
        for delivery in waiting {
            self.deliver(delivery);
        }
    }

    /// Marks the result as no longer on its way over this connection.
    fn landed(&mut self, job_id: &Hash, validator: &PublicKey) {
        if self.in_flight.get(job_id) == Some(validator) {
            self.in_flight.remove(job_id);
        }
    }
}

impl LinkHandle {
    /// False when the connection's task is behind or has ended.
    fn command(&self, command: RunnerCommand) -> bool {
        self.commands.try_send(command).is_ok()
    }
}
