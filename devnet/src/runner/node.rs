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
//! and else to any other connected one. What nobody has taken is tried again with each block and
//! each new connection, until the job's deadline. A member of a committee sends a commitment in the
//! same way, once it is on the disk, and shows its result to whoever asks for it then. Of work that
//! failed the reason goes the same way.
//!
//! Heights are told by validators, any of which may lie: what the runner believes is the lower
//! median of what its connections told last.

use super::{
    job::work,
    pledges::Pledges,
    polling::{self, Polling},
    worker::{Progress, Worker},
};
use crate::transport::{
    Connection, Dial,
    driver::{self, GOODBYE_TIMEOUT, Service, now_ms},
};
use commonware_runtime::{Clock, Handle, Spawner};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    job::spec::JobSpec,
    primitives::{Hash, Height, PublicKey, SecretKey, codec::from_slice},
    registry::JobKind,
    session::{
        End, Session as _, StreamId, backoff,
        jobs::{Delivery, JobTable, Offer},
        runner::{self, Event},
    },
    wire::{
        BackpressureSignal, CancelReason, GoodbyeReason, JobAggregate, JobAssignment, Percent,
        RejectReason, Text,
    },
};
use futures::FutureExt as _;
use rand_core::CryptoRng;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
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
    /// The validators it is to be connected to, as they change: its subset, for a while also the
    /// one of before ([`State::subsets_of`](cowboy_engine::chain::State::subsets_of)).
    pub targets: watch::Receiver<Vec<ValidatorAddress>>,
    /// The kinds of jobs it takes.
    pub kinds: BTreeSet<JobKind>,
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
    let mut targets = config.targets;
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
            let wanted = targets.borrow_and_update().clone();
            for validator in shared.retarget(wanted) {
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
            if targets.changed().await.is_err() {
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
    /// Tell the load.
    TellLoad,
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
    fn retarget(&self, targets: Vec<ValidatorAddress>) -> Vec<PublicKey> {
        let mut shared = self.shared.lock();
        let Shared { targets: wanted, links, kept, .. } = &mut *shared;
        *wanted = targets.into_iter().map(|target| (target.key, target.address)).collect();
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
        Ok(spec)
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

    /// Sends a result that is not on its way: to the validator that holds the job, else to any.
    pub(super) fn deliver(&mut self, delivery: Delivery) {
        let job_id = delivery.job_id();
        if self.in_flight.contains_key(&job_id) {
            return;
        }
        let holder = self.holders.get(&job_id).and_then(|key| self.links.get_key_value(key));
        let sent = holder
            .into_iter()
            .chain(&self.links)
            .find(|(_, link)| link.command(Command::Deliver(delivery.clone())))
            .map(|(key, _)| key.clone());
        if let Some(key) = sent {
            self.in_flight.insert(job_id, key);
        }
    }

    /// Sends every result that nobody has taken and that is not on its way.
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

/// Keeps one validator connected.
struct Upkeep<E, D, W> {
    core: Arc<Core>,
    jobs: Arc<E>,
    worker: Arc<W>,
    dialer: D,
    validator: PublicKey,
}

impl<E, D, W> Upkeep<E, D, W>
where
    E: Clock + Spawner + CryptoRng,
    D: Dial,
    W: Worker,
{
    async fn run(self, mut context: E) {
        let mut attempt = 0;
        let key = &self.validator;
        while let Some(address) = self.address() {
            let reason = match self.dialer.dial(address, key).await {
                Ok(connection) => {
                    let (end, established) = self.connection(&mut context, connection).await;
                    if established {
                        attempt = 0;
                    }
                    if end == End::Peer(GoodbyeReason::DuplicateConnection) {
                        attempt = ATTEMPT_AFTER_DUPLICATE;
                    }
                    end.to_string()
                }
                Err(error) => error.to_string(),
            };
            self.core.say(Activity::Disconnected { validator: key.clone(), reason });
            let delay = backoff::delay_ms(attempt, context.next_u64());
            attempt = attempt.saturating_add(1);
            context.sleep(Duration::from_millis(delay)).await;
        }
    }

    /// Where the validator is; `None`: it is none of the runner's any more, and nobody keeps it
    /// connected from now on.
    fn address(&self) -> Option<SocketAddr> {
        let mut shared = self.core.shared.lock();
        let address = shared.targets.get(&self.validator).copied().filter(|_| !shared.closing);
        if address.is_none() {
            shared.kept.remove(&self.validator);
        }
        address
    }

    /// Runs one connection; says how it ended and whether its handshake was completed.
    async fn connection(&self, context: &mut E, connection: D::Connection) -> (End, bool) {
        let core = &self.core;
        let mut nonce = [0; 32];
        context.fill_bytes(&mut nonce);
        let (serial, head) = {
            let mut shared = core.shared.lock();
            shared.serial += 1;
            (shared.serial, shared.head)
        };
        let config = runner::Config {
            chain_id: core.chain_id,
            key: core.key.clone(),
            validator: self.validator.clone(),
            certified: connection.peer().clone(),
            nonce,
            head,
        };
        let session = runner::Runner::new(config, now_ms(context));
        let (commands, received) = mpsc::channel(COMMANDS);
        let mut link = ValidatorLink {
            core: core.clone(),
            jobs: self.jobs.clone(),
            worker: self.worker.clone(),
            validator: self.validator.clone(),
            serial,
            commands,
            established: false,
        };
        let end = driver::drive(context, connection, session, &mut link, received).await;
        link.ended();
        (end, link.established)
    }
}

/// One connection, from the first byte to the last.
struct ValidatorLink<E, W> {
    core: Arc<Core>,
    jobs: Arc<E>,
    worker: Arc<W>,
    validator: PublicKey,
    serial: u64,
    commands: mpsc::Sender<Command>,
    established: bool,
}

impl<E, W> Service for ValidatorLink<E, W>
where
    E: Clock + Spawner,
    W: Worker,
{
    type Session = runner::Runner;
    type Command = Command;

    fn event(&mut self, session: &mut runner::Runner, event: Event) {
        match event {
            Event::Established => self.established(session),
            Event::Told { head } => {
                let mut shared = self.core.shared.lock();
                self.core.told(&mut shared, &self.validator, head);
            }
            Event::Assigned { stream, assignment } => self.assigned(session, stream, &assignment),
            Event::Cancelled { job_id, reason } => self.cancelled(&job_id, reason),
            Event::Released { job_id } => {
                let mut shared = self.core.shared.lock();
                if shared.holders.get(&job_id) == Some(&self.validator) {
                    shared.holders.remove(&job_id);
                }
            }
            Event::Delivered { job_id } => {
                let mut shared = self.core.shared.lock();
                shared.landed(&job_id, &self.validator);
                shared.holders.remove(&job_id);
                shared.table.delivered(&job_id, Some(&self.validator));
            }
            // With the next block, or the next connection, it is tried again.
            Event::Undelivered { job_id } => {
                self.core.shared.lock().landed(&job_id, &self.validator);
            }
            Event::RevealWanted { stream, job_id } => {
                let result = self.core.shared.lock().table.reveal(&job_id);
                session.reveal(stream, result.as_deref());
            }
            Event::AggregateWanted { stream, aggregate } => {
                session.aggregate(stream, self.agrees(&aggregate));
            }
        }
    }

    fn command(&mut self, session: &mut runner::Runner, command: Command) {
        match command {
            Command::Head(head) => session.handle_head(head),
            Command::Progress(job_id, Progress { percent, detail }) => {
                if let Ok(percent) = Percent::new(percent.into()) {
                    session.progress(job_id, percent, detail.as_deref().map(Text::truncated));
                }
            }
            Command::Deliver(delivery) => self.deliver(session, &delivery),
            Command::TellLoad => session.backpressure(&self.core.shared.lock().load()),
            Command::Close => session.close(GoodbyeReason::ShuttingDown),
        }
    }
}

impl<E, W> ValidatorLink<E, W>
where
    E: Clock + Spawner,
    W: Worker,
{
    fn established(&mut self, session: &mut runner::Runner) {
        self.established = true;
        let (head, load) = {
            let mut shared = self.core.shared.lock();
            let commands = self.commands.clone();
            let link = Link { serial: self.serial, commands, told: Height::GENESIS };
            shared.links.insert(self.validator.clone(), link);
            self.core.count.send_replace(shared.links.len());
            shared.deliver_all();
            if shared.closing {
                session.close(GoodbyeReason::ShuttingDown);
            }
            (shared.head, shared.load())
        };
        session.handle_head(head);
        session.backpressure(&load);
        self.core.say(Activity::Connected { validator: self.validator.clone() });
    }

    fn assigned(&self, session: &mut runner::Runner, stream: StreamId, assignment: &JobAssignment) {
        let job_id = assignment.job_id;
        let mut spec = None;
        let offer = {
            let mut shared = self.core.shared.lock();
            let head = shared.head;
            let offer = shared.table.offer(&self.validator, assignment, head, |assignment| {
                spec = Some(self.core.check(assignment.job_spec.as_bytes())?);
                Ok(())
            });
            if let (Offer::Accept, Some(spec)) = (&offer, spec) {
                let (cancel, cancelled) = oneshot::channel();
                shared.running.insert(job_id, cancel);
                shared.holders.insert(job_id, self.validator.clone());
                work(&self.core, &self.jobs, &self.worker, (job_id, spec), cancelled);
            }
            if let Offer::HandOver(_) = &offer {
                shared.in_flight.insert(job_id, self.validator.clone());
            }
            shared.tell_load();
            offer
        };
        session.answer(stream, offer.status());
        match offer {
            Offer::HandOver(delivery) => self.deliver(session, &delivery),
            Offer::Reject(reason) => {
                tracing::debug!(runner = %self.core.public.address(), %job_id, %reason, "job rejected");
            }
            Offer::Accept | Offer::Duplicate => {}
        }
    }

    fn deliver(&self, session: &mut runner::Runner, delivery: &Delivery) {
        let sent = match delivery {
            Delivery::Result(result) => session.deliver(result),
            Delivery::Commit(commit) => session.commit(commit),
            Delivery::Failure(failure) => session.fail(failure),
        };
        if !sent {
            self.core.shared.lock().landed(&delivery.job_id(), &self.validator);
        }
    }

    /// Whether the runner signs what its committee came to.
    fn agrees(&self, aggregate: &JobAggregate) -> bool {
        let mut shared = self.core.shared.lock();
        let head = shared.head;
        shared.table.aggregate(&self.core.public.address(), aggregate, head)
    }

    fn cancelled(&self, job_id: &Hash, reason: CancelReason) {
        let mut shared = self.core.shared.lock();
        let stopped = shared.table.cancel(job_id);
        self.core.clear(&mut shared);
        shared.abandon(job_id);
        shared.landed(job_id, &self.validator);
        if stopped {
            self.core.say(Activity::Stopped { job_id: *job_id, reason: Some(reason) });
        }
        shared.tell_load();
    }

    fn ended(&self) {
        let mut shared = self.core.shared.lock();
        if shared.links.get(&self.validator).is_none_or(|link| link.serial != self.serial) {
            return;
        }
        shared.links.remove(&self.validator);
        self.core.count.send_replace(shared.links.len());
        shared.holders.retain(|_, holder| *holder != self.validator);
        // Also what its task had not come to.
        shared.in_flight.retain(|_, validator| *validator != self.validator);
        shared.table.lost(&self.validator);
        shared.deliver_all();
    }
}
