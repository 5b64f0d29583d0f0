//! A runner's connections, jobs and results (spec connectivity.md §2, §3, §6).
//!
//! One task keeps each connection of the subset up; one task works on each accepted job. They
//! share a job table and who is connected, behind one short-lived lock:
//!
//! ```text
//!   assignments ──▶ ┌───────────┐ ──▶ work ──▶ result ──┐
//!   heads ────────▶ │ job table │ ◀─────────────────────┘
//!   cancellations ▶ └───────────┘ ──▶ results to whoever accepts them
//! ```
//!
//! A result goes to the validator whose assignment was accepted, as long as that stream is open,
//! and else to any other connected one. What no validator has taken is tried again with each block
//! and each new connection, until the job's deadline; what one has taken goes to another where
//! the chain is not soon said to have it. A member of a committee sends a commitment in the
//! same way, once it is on the disk, and shows its result to whoever asks for it then. Of work that
//! failed the reason goes the same way.
//!
//! Heights are told by validators, any of which may lie: what the runner believes is the lower
//! median of what its connections told last. A job is started when one more validator has assigned
//! it alike than may be dishonest, or when a proof from the certified chain shows it ([`proof`]).
//!
//! [`proof`]: super::proof

mod link;

use self::link::Upkeep;
use super::{
    job::work,
    pledges::Pledges,
    polling::{self, Polling},
    proof::{self, ProofError, Shown},
    targets::Known,
    worker::{Progress, Worker},
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
    session::jobs::{Decided, Delivery, JobTable, Offer},
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

/// Commands that wait for a connection's task. A result that does not fit is tried again with the
/// next block.
const COMMANDS: usize = 256;

/// Activities that a slow subscriber may be behind before it is told that it missed some. Room for
/// them is taken when the runner starts, whoever subscribes.
const ACTIVITY_LAG: usize = 32;

/// Where to go on counting attempts when a newer connection of the same runner has taken over:
/// two processes with one key are not to push each other out ten times a second.
const ATTEMPT_AFTER_DUPLICATE: u32 = 9;

/// A validator of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatorAddress {
    /// Its runner-facing key.
    pub key: PublicKey,
    /// Where it listens.
    pub address: SocketAddr,
}

/// What a runner is made of.
#[derive(Debug, Clone)]
pub struct Config {
    /// The chain.
    pub chain_id: u64,
    /// The runner's key.
    pub key: SecretKey,
    /// The validators, as they change: whom it is to be connected to and whom it believes.
    pub known: watch::Receiver<Known>,
    /// The agents on whose errands it goes.
    pub agents: BTreeSet<Address>,
    /// The kinds of jobs it can execute.
    pub kinds: BTreeSet<JobKind>,
    /// What it is registered for and does not do until it is told to, at most [`MAX_WITHDRAWN`].
    pub withdrawn: BTreeSet<Ability>,
    /// Jobs it takes at a time.
    pub max_concurrent_jobs: u32,
    /// Where it polls when connections do not do; `None`: nowhere.
    pub polling: Option<Polling>,
    /// Where it keeps its commitments across restarts; `None`: nowhere.
    pub pledges: Option<Arc<Pledges>>,
}

/// What a runner does, as it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// A handshake is complete.
    Connected {
        /// With whom.
        validator: PublicKey,
    },
    /// A connection ended, or none came about.
    Disconnected {
        /// With whom.
        validator: PublicKey,
        /// Why.
        reason: String,
    },
    /// Work on a job begins: its command runs, its request goes out.
    Started {
        /// Which job.
        job_id: Hash,
        /// When, on the runner's clock.
        at: SystemTime,
    },
    /// A job has its result, which is on its way to the chain.
    Finished {
        /// Which job.
        job_id: Hash,
        /// Length of the result.
        bytes: usize,
    },
    /// A job came to no result; the reason is on its way to the chain.
    Failed {
        /// Which job.
        job_id: Hash,
        /// Why.
        reason: String,
    },
    /// The chain took a job back, or its deadline passed.
    Stopped {
        /// Which job.
        job_id: Hash,
        /// The validator's reason; `None`: the deadline.
        reason: Option<CancelReason>,
    },
}

/// A running runner.
pub struct Runner {
    core: Arc<Core>,
    task: Handle<()>,
}

impl Runner {
    /// The validators it is connected to, and the height that each told last.
    pub fn connections(&self) -> Vec<(PublicKey, Height)> {
        let shared = self.core.shared.lock();
        shared.links.iter().map(|(key, link)| (key.clone(), link.told)).collect()
    }

    /// How many validators it is connected to, as it changes.
    pub fn count(&self) -> watch::Receiver<usize> {
        self.core.count.subscribe()
    }

    /// The height it believes the chain to be at.
    pub fn head(&self) -> Height {
        self.core.shared.lock().head
    }

    /// What its validators are told of its load.
    pub fn load(&self) -> BackpressureSignal {
        self.core.shared.lock().load()
    }

    /// Takes no new jobs while paused, and says so: it is not present then.
    pub fn pause(&self, paused: bool) {
        let mut shared = self.core.shared.lock();
        shared.paused = paused;
        shared.tell_load();
    }

    /// Takes at most so many jobs at a time from now on, and says so. Those in hand go on.
    pub fn limit(&self, max_concurrent: u32) {
        let mut shared = self.core.shared.lock();
        shared.table.limit(max_concurrent);
        shared.tell_load();
    }

    /// Does what `add` names again and what `remove` names not for now, and says so: jobs that need
    /// it are rejected. Those in hand go on. Nothing changes where not all of it can be.
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
            link.command(Command::TellAbilities);
        }
        Ok(())
    }

    /// What it does not do for now.
    pub fn withdrawn(&self) -> BTreeSet<Ability> {
        self.core.withdrawn.lock().clone()
    }

    /// What it does from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Activity> {
        self.core.activity.subscribe()
    }

    /// Says goodbye to its validators, gives up its jobs and ends.
    pub async fn stop(self, clock: &impl Clock) {
        {
            let mut shared = self.core.shared.lock();
            shared.closing = true;
            for link in shared.links.values() {
                link.command(Command::Close);
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

    /// Ends it where it stands, with its jobs, and waits until it has ended.
    pub async fn kill(self) {
        self.task.abort();
        // An aborted task has nothing to tell.
        let _ = self.task.await;
    }
}

/// Starts a runner in the background. It lives until it is stopped, or its context's tree ends.
pub fn start<E, D, W>(context: E, config: Config, dialer: D, worker: W) -> Runner
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
            Err(error) => tracing::error!(%error, "commitments of before cannot be read"),
        }
    }
    let core = Arc::new(Core {
        chain_id: config.chain_id,
        kinds: config.kinds,
        withdrawn: Mutex::new(config.withdrawn),
        agents: config.agents,
        known: config.known.clone(),
        count,
        activity,
        shared: Mutex::new(Shared {
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
            let desk =
                polling::Desk { core: shared.clone(), jobs: jobs.clone(), worker: worker.clone() };
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
                // In a box: the runtime's layers each hold room for what they wrap.
                context.child("connection").spawn(|context| upkeep.run(context).boxed());
            }
            if known.changed().await.is_err() {
                // They stay what they are.
                std::future::pending::<()>().await;
            }
        }
    });
    Runner { core, task }
}

pub(super) struct Core {
    pub(super) chain_id: u64,
    pub(super) key: SecretKey,
    pub(super) public: PublicKey,
    kinds: BTreeSet<JobKind>,
    /// What it does not do for now. Taken after `shared` where both are held.
    withdrawn: Mutex<BTreeSet<Ability>>,
    agents: BTreeSet<Address>,
    /// The validators, as they change.
    known: watch::Receiver<Known>,
    /// How many validators are connected.
    count: watch::Sender<usize>,
    activity: broadcast::Sender<Activity>,
    pub(super) pledges: Option<Arc<Pledges>>,
    /// Whose commitment goes to the disk and into the table.
    pub(super) committing: tokio::sync::Mutex<()>,
    pub(super) shared: Mutex<Shared>,
}

pub(super) struct Shared {
    pub(super) table: JobTable,
    /// The validators to be connected to.
    targets: BTreeMap<PublicKey, SocketAddr>,
    /// Those that a task keeps connected.
    kept: BTreeSet<PublicKey>,
    /// Established connections.
    pub(super) links: BTreeMap<PublicKey, Link>,
    /// On whose connection a job was accepted, while that stream is open.
    holders: BTreeMap<Hash, PublicKey>,
    /// On whose connection a result or commitment was sent that is not known to have arrived.
    in_flight: BTreeMap<Hash, PublicKey>,
    /// What cancels the running jobs.
    pub(super) running: BTreeMap<Hash, oneshot::Sender<()>>,
    paused: bool,
    pub(super) closing: bool,
    serial: u64,
    told_load: Option<BackpressureSignal>,
    /// What the chain is believed to be at.
    pub(super) head: Height,
}

/// An established connection.
pub(super) struct Link {
    /// Tells it from earlier ones to the same validator.
    serial: u64,
    commands: mpsc::Sender<Command>,
    told: Height,
}

enum Command {
    /// The chain is believed to be at this height.
    Head(Height),
    /// Say how far this job is.
    Progress(Hash, Progress),
    /// Send this result, commitment or report.
    Deliver(Delivery),
    /// Answer the assignments of this job that wait.
    Answer(Hash, AckStatus),
    /// Tell the load.
    TellLoad,
    /// Tell what has been withdrawn, and what not any more.
    TellAbilities,
    /// Say goodbye.
    Close,
}

impl Core {
    pub(super) fn say(&self, activity: Activity) {
        tracing::debug!(runner = %self.public.address(), ?activity, "activity");
        // Nobody listening is no error.
        let _ = self.activity.send(activity);
    }

    /// Takes over the validators to be connected to: says goodbye to those that are none any more,
    /// and returns those that a task is needed for.
    fn retarget(&self, known: Known) -> Vec<PublicKey> {
        let mut shared = self.shared.lock();
        shared.table.require(known.agreeing());
        let Shared { targets: wanted, links, kept, .. } = &mut *shared;
        *wanted = known.targets.into_iter().map(|target| (target.key, target.address)).collect();
        for (_, link) in links.iter().filter(|(key, _)| !wanted.contains_key(key)) {
            link.command(Command::Close);
        }
        let fresh: Vec<_> = wanted.keys().filter(|key| !kept.contains(key)).cloned().collect();
        kept.extend(fresh.iter().cloned());
        fresh
    }

    /// A validator told a height: the believed one may follow, and deadlines pass.
    fn told(&self, shared: &mut Shared, validator: &PublicKey, head: Height) {
        if let Some(link) = shared.links.get_mut(validator) {
            link.told = head;
        }
        let believed = shared.believed();
        if believed > shared.head {
            shared.head = believed;
            for link in shared.links.values() {
                link.command(Command::Head(believed));
            }
            for job_id in shared.table.advance(believed) {
                shared.abandon(&job_id);
                self.say(Activity::Stopped { job_id, reason: None });
            }
            self.clear(shared);
        }
        shared.deliver_all();
    }

    /// What an assignment asks for, where the runner can do it.
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

    /// What a proof shows of a job.
    pub(super) fn read_proof(&self, job_id: &Hash, bytes: &[u8]) -> Result<Shown, ProofError> {
        let known = self.known.borrow().clone();
        proof::read(&known, (self.chain_id, self.public.address()), job_id, bytes)
    }

    /// Starts the work on a job that was taken, from whichever peer, and has the other validators
    /// answered that wait for it.
    pub(super) fn start<E, W>(
        self: &Arc<Self>,
        (jobs, worker): (&Arc<E>, &Arc<W>),
        shared: &mut Shared,
        decided: &Decided,
        (job_id, spec): (Hash, Option<JobSpec>),
    ) where
        E: Clock + Spawner,
        W: Worker,
    {
        for link in decided.others.iter().filter_map(|validator| shared.links.get(validator)) {
            link.command(Command::Answer(job_id, decided.others_status()));
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

    /// Has the validator told that holds the job, if any does.
    pub(super) fn progressed(&self, job_id: Hash, progress: Progress) {
        let shared = self.shared.lock();
        if let Some(link) = shared.holders.get(&job_id).and_then(|key| shared.links.get(key)) {
            link.command(Command::Progress(job_id, progress));
        }
    }
}

impl Shared {
    fn load(&self) -> BackpressureSignal {
        self.table.signal(self.paused)
    }

    /// Whether a validator that the runner should be connected to is not.
    pub(super) fn misses_connections(&self) -> bool {
        self.targets.keys().any(|key| !self.links.contains_key(key))
    }

    /// Has every validator told the load where it has changed.
    pub(super) fn tell_load(&mut self) {
        let load = self.load();
        if self.told_load.as_ref() != Some(&load) {
            self.told_load = Some(load);
            for link in self.links.values() {
                link.command(Command::TellLoad);
            }
        }
    }

    /// The lower median of the heights told: no single validator of three moves it up.
    fn believed(&self) -> Height {
        let mut told: Vec<_> = self.links.values().map(|link| link.told).collect();
        told.sort_unstable();
        told.get(told.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }

    /// Stops the work on a job, where it is going on, and forgets where it came from.
    pub(super) fn abandon(&mut self, job_id: &Hash) {
        self.holders.remove(job_id);
        // Dropping the sender cancels the work.
        self.running.remove(job_id);
    }

    /// Sends a result that is not on its way: to the validator that holds the job, else to any that
    /// has not taken it.
    pub(super) fn deliver(&mut self, delivery: Delivery) {
        let job_id = delivery.job_id();
        if self.in_flight.contains_key(&job_id) {
            return;
        }
        let holder = self.holders.get(&job_id).and_then(|key| self.links.get_key_value(key));
        let sent = holder
            .into_iter()
            .chain(&self.links)
            .filter(|(key, _)| !self.table.has_taken(&job_id, key))
            .find(|(_, link)| link.command(Command::Deliver(delivery.clone())))
            .map(|(key, _)| key.clone());
        if let Some(key) = sent {
            self.in_flight.insert(job_id, key);
        }
    }

    /// Sends every result that too few have taken and that is not on its way.
    fn deliver_all(&mut self) {
        let waiting: Vec<_> = self.table.undelivered().collect();
        for delivery in waiting {
            self.deliver(delivery);
        }
    }

    /// The result is no longer on its way over this connection.
    fn landed(&mut self, job_id: &Hash, validator: &PublicKey) {
        if self.in_flight.get(job_id) == Some(validator) {
            self.in_flight.remove(job_id);
        }
    }
}

impl Link {
    /// False: the connection's task is behind, or has ended.
    fn command(&self, command: Command) -> bool {
        self.commands.try_send(command).is_ok()
    }
}
