//! A validator's side of all its runners' connections (spec connectivity.md §2, §3, §6).
//!
//! The gateway is told of each executed state ([`Gateway::advance`]) and of each new connection
//! ([`Gateway::serve`]). From these and from what runners send it keeps the local view that votes
//! are made of, dispatches jobs, cancels what the chain took back, and passes results on:
//!
//! ```text
//!   executed states ──▶ ┌─────────┐ ──▶ assignments, cancellations, heads ──▶ connections
//!   connections ──────▶ │ gateway │ ──▶ local view (read when a vote is made)
//!   results ──────────▶ └─────────┘ ──▶ what runners hand in (to be submitted)
//! ```
//!
//! One task per connection; all of them share one short-lived lock. A runner that connects a second
//! time has lost its first connection without the validator knowing yet: the newer one counts, the
//! older one ends with `duplicate_connection`.
//!
//! In migration phase `shadow` nothing is dispatched: runners poll (spec §7). What was dispatched
//! before is still cancelled, and results are taken all the same.
//!
//! An agent may send a runner on an errand ([`Gateway::send_errand`]): work of which the chain
//! knows nothing, whose result goes to the agent. It counts among the runner's jobs and is done
//! like one.
//!
//! A runner that too few of its validators reach does not answer an assignment before it is proved:
//! [`Gateway::prove`].

mod link;

pub use super::handed::Handed;

use self::link::RunnerLink;
use super::{
    errands::{ErrandError, Errands, Report},
    journal::Journal,
    limiter::{HelloLimiter, Limits},
    place::Place,
    stage::{Stage, reason_of_cancellation, stage},
};
use crate::{
    chain::anchor::Anchor,
    consensus::presence::RunnerView,
    transport::{
        Connection, Listen,
        driver::{self, GOODBYE_TIMEOUT, now_ms},
        half_open::{self, HalfOpen, Slot},
    },
};
use commonware_runtime::{Clock, Spawner};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{DrawRecord, State, Subject},
    job::spec::Job,
    presence::{Bitmap, Connectivity, LocalView, Unmet, view::Label},
    primitives::{Address, Hash, Height, PublicKey, SecretKey, Signature, codec::to_vec},
    registry::Order,
    session::{
        End,
        nonces::SeenNonces,
        validator::{self, Validator},
    },
    wire::{
        BackpressureSignal, Body, CancelReason, Errand, GoodbyeReason, JobAssignment, JobProgress,
        Reveals,
    },
};
use futures::FutureExt as _;
use rand_core::CryptoRng;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{Instrument as _, Span};

/// Commands that wait for a connection's task. What does not fit is tried again with the next
/// block.
const COMMANDS: usize = 256;

/// What waits to be submitted. A result that finds no room is lost, and its job is drawn again:
/// far more jobs would have to finish at once than a block has room for.
const HANDED_IN: usize = 1_024;

/// Jobs per connection whose end waits to be proved. The end of a further one is not shown: the
/// runner then needs more validators that cancel it, or its deadline.
const MAX_ENDED: usize = 256;

/// What a gateway is made of.
pub struct Config {
    /// The validator's runner-facing key.
    pub key: SecretKey,
    /// Handshakes per address.
    pub limits: Limits,
    /// The executed state it starts from; an older one will do, [`Gateway::advance`] follows.
    pub state: State,
}

/// A runner's connection, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// The runner.
    pub runner: Address,
    /// The validator's head when the handshake was complete.
    pub since: Height,
    /// What the runner last said of its load.
    pub load: Option<BackpressureSignal>,
    /// Why the chain does not let it be connected, where it does not: it is not present then.
    pub refused: Option<GoodbyeReason>,
    /// What else keeps it from counting as present now.
    pub unmet: Option<Unmet>,
    /// What it said that it cannot do for now.
    pub withdrawn: Vec<Label>,
    /// The validator's head at its last valid ping.
    pub last_ping: Option<Height>,
    /// Jobs dispatched on this connection that the chain still assigns to the runner.
    pub jobs: usize,
}

/// A validator's side of its runners' connections. Cloning shares it.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    key: SecretKey,
    public: PublicKey,
    handed_in: mpsc::Sender<Handed>,
    /// How many runners are connected.
    count: watch::Sender<usize>,
    /// Connections whose handshake is not complete.
    half_open: HalfOpen,
    shared: Mutex<Shared>,
}

struct Shared {
    state: State,
    view: LocalView,
    links: BTreeMap<Address, Link>,
    /// What runners said last of jobs that the chain assigns to them, and the head then.
    progress: BTreeMap<(Hash, Address), (JobProgress, Height)>,
    limiter: HelloLimiter,
    nonces: SeenNonces,
    errands: Errands,
    journal: Journal,
    serial: u64,
    closing: bool,
}

/// An established connection.
struct Link {
    /// Tells it from the runner's earlier ones.
    serial: u64,
    place: Place,
    commands: mpsc::Sender<Command>,
    since: Height,
    load: Option<BackpressureSignal>,
    /// Jobs assigned to the runner and dispatched here, however that went.
    dispatched: BTreeMap<Hash, Dispatched>,
    /// Jobs that were cancelled here, and the block after which the chain does not assign them:
    /// the runner is to be shown it. At most [`MAX_ENDED`].
    ended: BTreeMap<Hash, Height>,
}

/// The dispatch of an attempt: a job that is tried again may come to the same runner.
#[derive(Debug, Clone, Copy)]
struct Dispatched {
    assigned_at: Height,
    deadline: Height,
    /// The runner has not answered, and was not shown a proof.
    waits: bool,
}

enum Command {
    /// The head, and what the chain says of connections there.
    Head(Height, Connectivity),
    Assign(Box<JobAssignment>),
    Prove(Hash, Body),
    /// The job, whose end this shows.
    ProveEnd(Hash, Body),
    Errand(Box<Errand>),
    /// The job, its deadline in the attempt that is over, and why.
    Cancel(Hash, Height, CancelReason),
    AskReveal(Hash),
    AskAggregate(Hash, Box<Reveals>),
    Close(GoodbyeReason),
}

impl Gateway {
    /// A gateway without connections, and what comes from those it will have.
    pub fn new(config: Config) -> (Self, mpsc::Receiver<Handed>) {
        let Config { key, limits, state } = config;
        let (handed_in, received) = mpsc::channel(HANDED_IN);
        let (count, _) = watch::channel(0);
        let shared = Shared {
            state,
            view: LocalView::default(),
            links: BTreeMap::new(),
            progress: BTreeMap::new(),
            limiter: HelloLimiter::new(limits),
            nonces: SeenNonces::default(),
            errands: Errands::default(),
            journal: Journal::default(),
            serial: 0,
            closing: false,
        };
        let public = key.public_key();
        let half_open = HalfOpen::new(half_open::Limits::default());
        let inner = Inner { key, public, handed_in, count, half_open, shared: Mutex::new(shared) };
        (Self(Arc::new(inner)), received)
    }

    /// Serves every connection that `listener` yields, until it is closed.
    pub async fn serve<E, L>(&self, mut context: E, mut listener: L)
    where
        E: Clock + Spawner + CryptoRng,
        L: Listen,
    {
        while let Some(connection) = listener.accept().await {
            let now = now_ms(&context);
            let Some(slot) = self.0.half_open.admit(connection.remote(), now) else {
                connection.close(GoodbyeReason::RateLimited.as_str());
                continue;
            };
            let mut nonce = [0; 32];
            context.fill_bytes(&mut nonce);
            let gateway = self.clone();
            let span = Span::current();
            // In a box: the runtime's layers each hold room for what they wrap.
            context.child("connection").spawn(move |context| {
                async move { gateway.connection(&context, connection, slot, nonce).await }
                    .instrument(span)
                    .boxed()
            });
        }
    }

    async fn connection<E: Clock, C: Connection>(
        self,
        clock: &E,
        connection: C,
        mut slot: Slot,
        nonce: [u8; 32],
    ) {
        let (certified, remote, now) =
            (connection.peer().clone(), connection.remote(), now_ms(clock));
        let (serial, head, connectivity) = {
            let mut shared = self.0.shared.lock();
            shared.serial += 1;
            (shared.serial, shared.state.height(), *shared.state.connectivity())
        };
        let (commands, received) = mpsc::channel(COMMANDS);
        let lost = slot.lost();
        let mut link = RunnerLink {
            gateway: self.clone(),
            serial,
            runner: certified.address(),
            certified: certified.clone(),
            remote,
            since_ms: now,
            commands,
            half_open: Some(slot),
        };
        let config = validator::Config {
            chain_id: self.0.shared.lock().state.chain_id(),
            key: self.0.key.clone(),
            certified,
            nonce,
            head,
            connectivity,
        };
        let session = Validator::new(config, now);
        let shown_out = connection.clone();
        let end = tokio::select! {
            biased;
            () = lost => {
                shown_out.close(GoodbyeReason::RateLimited.as_str());
                End::Local(GoodbyeReason::RateLimited)
            }
            end = driver::drive(clock, connection, session, &mut link, received) => end,
        };
        link.ended(end);
    }

    /// The chain is at `state`, executed: dispatches what was assigned to runners, and cancels what
    /// no longer is. [`tell`](Self::tell) has to follow.
    pub fn advance(&self, state: State) {
        let mut shared = self.0.shared.lock();
        if state.height() <= shared.state.height() {
            return;
        }
        shared.state = state;
        let Shared { state, links, progress, journal, .. } = &mut *shared;
        progress.retain(|(job_id, runner), _| assigns(state, job_id, runner));
        let epochs = state.subset_epochs_at(state.height());
        for link in links.values_mut() {
            if let Err(reason) = link.place.check(state, &epochs) {
                link.command(Command::Close(reason));
            }
        }
        let mut wanted: BTreeMap<Address, BTreeMap<Hash, Height>> = BTreeMap::new();
        for (job_id, job, runner) in assigned(state) {
            if links.contains_key(&runner)
                && let Some(assignment) = job.status.assignment()
                && stage(job, &runner) != Stage::Late
            {
                wanted.entry(runner).or_default().insert(*job_id, assignment.height);
            }
        }
        let none = BTreeMap::new();
        for (runner, link) in &mut *links {
            let wanted = wanted.get(runner).unwrap_or(&none);
            let is_over = |(job_id, dispatched): &(&Hash, &Dispatched)| {
                wanted.get(job_id) != Some(&dispatched.assigned_at)
            };
            let over = link.dispatched.iter().filter(is_over);
            let over: Vec<_> = over.map(|(job_id, of)| (*job_id, of.deadline)).collect();
            for (job_id, deadline) in over {
                let reason = reason_of_cancellation(state.job(&job_id), runner);
                if link.command(Command::Cancel(job_id, deadline, reason)) {
                    link.dispatched.remove(&job_id);
                    link.cancelled(job_id, reason, state.height());
                }
            }
        }
        if !state.phase().pushes() {
            return;
        }
        for (job_id, job, runner) in assigned(state) {
            let Some(link) = links.get_mut(&runner) else { continue };
            if link.dispatched.contains_key(job_id) || stage(job, &runner) != Stage::AtWork {
                continue;
            }
            if let Some(assignment) = assignment_of(job_id, job) {
                let dispatched = Dispatched::of(&assignment);
                if link.command(Command::Assign(Box::new(assignment))) {
                    journal.dispatched(*job_id, runner, dispatched.assigned_at);
                    link.dispatched.insert(*job_id, dispatched);
                }
            }
        }
    }

    /// The earliest block whose assignments wait for an answer, or which ended jobs, and neither is
    /// proved; `None`: there are none.
    pub fn waiting_since(&self) -> Option<Height> {
        let shared = self.0.shared.lock();
        let dispatched = shared.links.values().flat_map(|link| link.dispatched.values());
        let waiting = dispatched.filter(|one| one.waits).map(|one| one.assigned_at);
        let ended = shared.links.values().flat_map(|link| link.ended.values().copied());
        waiting.chain(ended).min()
    }

    /// Shows the runners that have not answered what `anchor` proves of their assignments, and
    /// those whose jobs were cancelled what it proves of their ends.
    pub fn prove(&self, anchor: &Anchor) {
        let height = anchor.state().height();
        let mut shared = self.0.shared.lock();
        let mut proofs: BTreeMap<Hash, Option<Body>> = BTreeMap::new();
        for (runner, link) in &mut shared.links {
            let Link { commands, dispatched, ended, .. } = link;
            let provable =
                |(_, one): &(&Hash, &mut Dispatched)| one.waits && one.assigned_at <= height;
            let mut proof_of = |job_id: &Hash| {
                let proof = proofs
                    .entry(*job_id)
                    .or_insert_with(|| Body::new(anchor.prove(Subject::Job(*job_id))?).ok());
                proof.clone()
            };
            for (job_id, one) in dispatched.iter_mut().filter(provable) {
                if let Some(proof) = proof_of(job_id)
                    && commands.try_send(Command::Prove(*job_id, proof)).is_ok()
                {
                    one.waits = false;
                }
            }
            // One that was assigned to the runner again has not ended.
            ended.retain(|job_id, since| {
                let job = anchor.state().job(job_id);
                *since > height
                    || job.is_some_and(|job| !job.status.at_work().contains(runner))
                        && proof_of(job_id).is_some_and(|proof| {
                            commands.try_send(Command::ProveEnd(*job_id, proof)).is_err()
                        })
            });
        }
    }

    /// The height of the state that it has.
    pub fn height(&self) -> Height {
        self.0.shared.lock().state.height()
    }

    /// Passes an errand on to a runner, where it is connected and none of that id is out; resolves
    /// with what it reports, or with why it will not. Dropping the report cancels nothing:
    /// [`call_back`](Self::call_back) does.
    pub fn send_errand(
        &self,
        runner: &Address,
        errand: Errand,
    ) -> Result<oneshot::Receiver<Report>, ErrandError> {
        let id = errand.errand_id;
        let mut shared = self.0.shared.lock();
        let Shared { links, errands, .. } = &mut *shared;
        let link = links.get(runner).ok_or(ErrandError::NotConnected)?;
        let report = errands.open(id, *runner, errand.deadline_block)?;
        if !link.command(Command::Errand(Box::new(errand))) {
            errands.close(&id, runner, Err(ErrandError::Busy));
        }
        Ok(report)
    }

    /// Nobody is left to serve connections: no errand will be reported.
    pub fn lose_errands(&self) {
        self.0.shared.lock().errands.lost_all();
    }

    /// Has the runner on an errand stop its work. Its report is [`ErrandError::CalledBack`].
    pub fn call_back(&self, id: &Hash) {
        let mut shared = self.0.shared.lock();
        if let Some((runner, deadline)) = shared.errands.of(id) {
            if let Some(link) = shared.links.get(&runner) {
                link.command(Command::Cancel(*id, deadline, CancelReason::Reassigned));
            }
            shared.errands.close(id, &runner, Err(ErrandError::CalledBack));
        }
    }

    /// Asks a runner for the result that it has committed to, where it is connected.
    /// [`Handed::Reveal`] may follow.
    pub fn ask_reveal(&self, runner: &Address, job_id: Hash) {
        if let Some(link) = self.0.shared.lock().links.get(runner) {
            link.command(Command::AskReveal(job_id));
        }
    }

    /// Asks the aggregator of a committee to sign its results, where it is connected.
    /// [`Handed::Aggregated`] may follow.
    pub fn ask_aggregate(
        &self,
        aggregator: &Address,
        job_id: Hash,
        reveals: impl FnOnce() -> Option<Reveals>,
    ) {
        let link = |shared: &Shared| Some(shared.links.get(aggregator)?.commands.clone());
        let commands = link(&self.0.shared.lock());
        // Without a lock: they may be long.
        if let Some(commands) = commands
            && let Some(reveals) = reveals()
            && commands.try_send(Command::AskAggregate(job_id, Box::new(reveals))).is_err()
        {
            tracing::debug!(%aggregator, %job_id, "not asked now: its connection is behind");
        }
    }

    /// Tells the runners how high the chain is.
    pub fn tell(&self) {
        let shared = self.0.shared.lock();
        for link in shared.links.values() {
            link.command(Command::Head(shared.state.height(), *shared.state.connectivity()));
        }
    }

    /// Whether it matters what jobs in the mempool need: some runner has withdrawn something.
    pub fn has_withdrawals(&self) -> bool {
        self.0.shared.lock().view.has_withdrawals()
    }

    /// What jobs in the mempool need: a runner that withdrew any of it does not count as present.
    pub fn needed(&self, labels: BTreeSet<Label>) {
        self.0.shared.lock().view.needed(labels);
    }

    /// The bits of a vote on the block at `height`, indexed by `order` (spec §4). Whom the chain
    /// lets be connected here, and how old a ping may be, is decided from `at`, the state before
    /// that block.
    pub fn presence_at(&self, height: Height, at: &State, order: &[Address]) -> Bitmap {
        let mut shared = self.0.shared.lock();
        let Shared { state, view, links, .. } = &mut *shared;
        let epochs = at.subset_epochs_at(height);
        let timeout = at.connectivity().presence_timeout_blocks;
        view.bitmap(order, state.height(), timeout, |runner| {
            let link = links.get_mut(runner);
            link.is_some_and(|link| link.place.check(at, &epochs).is_ok())
        })
    }

    /// The runners connected now, by address.
    pub fn connected(&self) -> Vec<Connected> {
        let mut shared = self.0.shared.lock();
        let Shared { state, view, links, .. } = &mut *shared;
        let head = state.height();
        let epochs = state.subset_epochs_at(head.next());
        let timeout = state.connectivity().presence_timeout_blocks;
        let connected = |(runner, link): (&Address, &mut Link)| Connected {
            runner: *runner,
            since: link.since,
            load: link.load.clone(),
            refused: link.place.check(state, &epochs).err(),
            unmet: view.unmet(runner, head, timeout),
            withdrawn: view.withdrawn(runner).cloned().collect(),
            last_ping: view.last_ping(runner),
            jobs: link.dispatched.len(),
        };
        links.iter_mut().map(connected).collect()
    }

    /// How far its runners are with a job, as each of them said last over a connection to this
    /// validator, and the validator's head then; by address. Nobody checks what they say.
    pub fn progress(&self, job_id: &Hash) -> Vec<(Address, JobProgress, Height)> {
        let shared = self.0.shared.lock();
        let of_job = (*job_id, Address([0; 20]))..=(*job_id, Address([0xff; 20]));
        let said = shared.progress.range(of_job);
        said.map(|((_, runner), (said, at))| (*runner, said.clone(), *at)).collect()
    }

    /// The block at `height`, executed, made these draws.
    pub fn drew(&self, height: Height, draws: &[DrawRecord]) {
        let mut shared = self.0.shared.lock();
        for draw in draws {
            shared.journal.drew(height, draw);
        }
    }

    /// What it has done since it started.
    pub fn journal(&self) -> Journal {
        self.0.shared.lock().journal.clone()
    }

    /// Connections whose handshake is not complete.
    pub fn half_open(&self) -> usize {
        self.0.half_open.count()
    }

    /// Takes what arrives otherwise than over a connection, as that which runners deliver. Whoever
    /// sends something has checked it.
    pub fn handed_in(&self) -> mpsc::Sender<Handed> {
        self.0.handed_in.clone()
    }

    /// How many runners are connected, as it changes.
    pub fn count(&self) -> watch::Receiver<usize> {
        self.0.count.subscribe()
    }

    /// Takes no more connections, says goodbye on all there are, and waits until they have ended,
    /// a second at most.
    pub async fn close(&self, clock: &impl Clock) {
        {
            let mut shared = self.0.shared.lock();
            shared.closing = true;
            for link in shared.links.values() {
                link.command(Command::Close(GoodbyeReason::ShuttingDown));
            }
        }
        let mut count = self.count();
        tokio::select! {
            biased;
            // The sender lives as long as the gateway.
            _ = count.wait_for(|count| *count == 0) => {}
            () = clock.sleep(GOODBYE_TIMEOUT) => {}
        }
    }
}

impl RunnerView for Gateway {
    fn presence(&self, height: Height, state: &State, order: &Order) -> Bitmap {
        self.presence_at(height, state, order.as_slice())
    }
}

/// Each assignment to a runner from which the chain waits for something: of an open job, or of a
/// verified one whose result the runner has committed to and not shown.
pub fn assigned(state: &State) -> impl Iterator<Item = (&Hash, &Job, Address)> {
    let open = state.open_jobs().flat_map(|(job_id, job)| {
        job.status.at_work().iter().map(move |runner| (job_id, job, *runner))
    });
    let withheld = state.withheld().filter_map(|(job_id, withheld)| {
        let job = state.job(job_id)?;
        Some(withheld.commitments.iter().map(move |commitment| (job_id, job, commitment.runner)))
    });
    open.chain(withheld.flatten())
}

/// Whether a job is open and assigned to a runner.
fn assigns(state: &State, job_id: &Hash, runner: &Address) -> bool {
    state.job(job_id).is_some_and(|job| job.status.at_work().contains(runner))
}

/// A job's assignment, which the session signs. `None` for a job whose specification is too large
/// for a frame, which no block can carry.
fn assignment_of(job_id: &Hash, job: &Job) -> Option<JobAssignment> {
    Some(JobAssignment {
        job_id: *job_id,
        submitter: job.submitter,
        nonce: job.nonce,
        job_spec: Body::new(to_vec(&*job.spec)).ok()?,
        block_height: job.status.assignment()?.height,
        deadline_block: job.deadline(),
        validator_signed: Signature([0; 65]),
    })
}

impl Dispatched {
    const fn of(assignment: &JobAssignment) -> Self {
        let JobAssignment { block_height, deadline_block, .. } = *assignment;
        Self { assigned_at: block_height, deadline: deadline_block, waits: true }
    }
}

impl Link {
    /// False: the connection's task is behind.
    fn command(&self, command: Command) -> bool {
        self.commands.try_send(command).is_ok()
    }

    /// A job was cancelled, which the state after the block at `height` does not assign to the
    /// runner. One that is done needs no proof: no work on it goes on.
    fn cancelled(&mut self, job_id: Hash, reason: CancelReason, height: Height) {
        if reason != CancelReason::Done && self.ended.len() < MAX_ENDED {
            self.ended.insert(job_id, height);
        }
    }
}
