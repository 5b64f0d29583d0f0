//! A validator's side of all its runners' connections (spec connectivity.md §2, §3, §6).
//!
//! The gateway gets each executed state ([`Gateway::advance`]) and each new connection
//! ([`Gateway::serve`]). From these and from runners' messages it keeps the local view for votes,
//! dispatches jobs, cancels jobs that the chain took back, and passes results on:
//!
//! ```text
//!   executed states ──▶ ┌─────────┐ ──▶ assignments, cancellations, heads ──▶ connections
//!   connections ──────▶ │ gateway │ ──▶ local view (read when a vote is made)
//!   results ──────────▶ └─────────┘ ──▶ runners' results (to be submitted)
//! ```
//!
//! One task serves each connection; all tasks share one short-lived lock. When a runner connects a
//! second time, it has lost its first connection and the validator has not noticed yet: the newer
//! connection counts, and the older one ends with `duplicate_connection`.
//!
//! In migration phase `shadow` nothing is dispatched: runners poll (spec §7). Earlier dispatches
//! are still cancelled, and results are still accepted.
//!
//! An agent may send a runner on an errand ([`Gateway::send_errand`]): work that the chain does not
//! know and whose result goes to the agent. An errand counts as one of the runner's jobs and is
//! executed like one.
//!
//! A runner that too few of its validators reach answers an assignment only once it is proved:
//! [`Gateway::prove`].

mod dispatch;
mod link;

pub use super::submission::Submission;
pub use dispatch::assigned;

use self::{dispatch::Dispatched, link::RunnerLink};
use super::{
    journal::Journal,
    limiter::{BucketLimits, HelloLimiter},
    offchain_jobs::{ErrandError, ErrandReport, OffchainJobs},
    place::Place,
};
use crate::{
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
    chain::{DrawRecord, State},
    presence::{Bitmap, Connectivity, LocalView, Unmet, view::Label},
    primitives::{Address, Hash, Height, PublicKey, SecretKey},
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

/// Commands that may wait for a connection's task. A command that does not fit is retried with the
/// next block.
const COMMANDS: usize = 256;

/// Results that may wait to be submitted. A result that finds no room is lost, and its job is drawn
/// again: that would take far more jobs finishing at once than a block has room for.
const HANDED_IN: usize = 1_024;

/// Jobs per connection that may wait for a proof of their end. For any further one, the runner
/// needs more validators that cancel it, or waits for its deadline.
const MAX_ENDED: usize = 256;

/// The configuration of a gateway.
pub struct GatewayConfig {
    /// The validator's runner-facing key.
    pub key: SecretKey,
    pub limits: BucketLimits,
    /// The executed state to start from. It may be old, because [`Gateway::advance`] follows.
    pub state: State,
}

/// A runner's connection, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    pub runner: Address,
    /// The validator's head when the handshake completed.
    pub since: Height,
    pub load: Option<BackpressureSignal>,
    /// Why the chain does not let it be connected, if so. It is not present then.
    pub refused: Option<GoodbyeReason>,
    /// Another reason why it does not count as present now.
    pub unmet: Option<Unmet>,
    pub withdrawn: Vec<Label>,
    /// The validator's head at its last valid ping.
    pub last_ping: Option<Height>,
    /// Jobs dispatched on this connection that the chain still assigns to the runner.
    pub jobs: usize,
}

/// A validator's side of its runners' connections. Cloning shares it.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayInner>);

struct GatewayInner {
    key: SecretKey,
    public: PublicKey,
    handed_in: mpsc::Sender<Submission>,
    count: watch::Sender<usize>,
    half_open: HalfOpen,
    shared: Mutex<GatewayShared>,
}

struct GatewayShared {
    state: State,
    view: LocalView,
    links: BTreeMap<Address, GatewayLink>,
    /// The last progress report per job assigned to a runner, and the head at that time.
    progress: BTreeMap<(Hash, Address), (JobProgress, Height)>,
    limiter: HelloLimiter,
    nonces: SeenNonces,
    errands: OffchainJobs,
    journal: Journal,
    serial: u64,
    closing: bool,
}

struct GatewayLink {
    /// Distinguishes it from the runner's earlier connections.
    serial: u64,
    place: Place,
    commands: mpsc::Sender<GatewayCommand>,
    since: Height,
    load: Option<BackpressureSignal>,
    /// Jobs assigned to the runner and dispatched here, whatever the outcome.
    dispatched: BTreeMap<Hash, Dispatched>,
    /// Jobs that were cancelled here, each with the block after which the chain does not assign it:
    /// the runner still needs the proof. At most [`MAX_ENDED`].
    ended: BTreeMap<Hash, Height>,
}

enum GatewayCommand {
    Head(Height, Connectivity),
    Assign(Box<JobAssignment>),
    Prove(Hash, Body),
    ProveEnd(Hash, Body),
    Errand(Box<Errand>),
    /// The job, the deadline of its ended attempt, and the reason.
    Cancel(Hash, Height, CancelReason),
    AskReveal(Hash),
    AskAggregate(Hash, Box<Reveals>),
    Close(GoodbyeReason),
}

impl Gateway {
    /// A gateway without connections, and the receiver of what runners hand in.
    pub fn new(config: GatewayConfig) -> (Self, mpsc::Receiver<Submission>) {
        let GatewayConfig { key, limits, state } = config;
        let (handed_in, received) = mpsc::channel(HANDED_IN);
        let (count, _) = watch::channel(0);
        let shared = GatewayShared {
            state,
            view: LocalView::default(),
            links: BTreeMap::new(),
            progress: BTreeMap::new(),
            limiter: HelloLimiter::new(limits),
            nonces: SeenNonces::default(),
            errands: OffchainJobs::default(),
            journal: Journal::default(),
            serial: 0,
            closing: false,
        };
        let public = key.public_key();
        let half_open = HalfOpen::new(half_open::HalfOpenLimits::default());
        let inner =
            GatewayInner { key, public, handed_in, count, half_open, shared: Mutex::new(shared) };
        (Self(Arc::new(inner)), received)
    }

    /// Serves all connections from `listener` until it is closed.
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
            // Boxed, because each of the runtime's layers reserves room for the future it wraps.
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
        let config = validator::ValidatorConfig {
            chain_id: self.0.shared.lock().state.chain_id(),
            key: self.0.key.clone(),
            certified,
            heartbeats: connection.heartbeats(),
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

    pub fn height(&self) -> Height {
        self.0.shared.lock().state.height()
    }

    /// Sends a connected runner on an errand, unless an errand with that id is open. The receiver
    /// gets the runner's report or an error. Dropping it cancels nothing; use
    /// [`call_back`](Self::call_back).
    pub fn send_errand(
        &self,
        runner: &Address,
        errand: Errand,
    ) -> Result<oneshot::Receiver<ErrandReport>, ErrandError> {
        let id = errand.errand_id;
        let mut shared = self.0.shared.lock();
        let GatewayShared { links, errands, .. } = &mut *shared;
        let link = links.get(runner).ok_or(ErrandError::NotConnected)?;
        let report = errands.open(id, *runner, errand.deadline_block)?;
        if !link.command(GatewayCommand::Errand(Box::new(errand))) {
            errands.close(&id, runner, Err(ErrandError::Busy));
        }
        Ok(report)
    }

    /// Fails all errands when no task serves connections any longer.
    pub fn lose_errands(&self) {
        self.0.shared.lock().errands.lost_all();
    }

    /// The report is [`ErrandError::CalledBack`].
    pub fn call_back(&self, id: &Hash) {
        let mut shared = self.0.shared.lock();
        if let Some((runner, deadline)) = shared.errands.of(id) {
            if let Some(link) = shared.links.get(&runner) {
                link.command(GatewayCommand::Cancel(*id, deadline, CancelReason::Reassigned));
            }
            shared.errands.close(id, &runner, Err(ErrandError::CalledBack));
        }
    }

    /// Asks a runner, if connected, for the result that it has committed to. [`Submission::Reveal`]
    /// may follow.
    pub fn ask_reveal(&self, runner: &Address, job_id: Hash) {
        if let Some(link) = self.0.shared.lock().links.get(runner) {
            link.command(GatewayCommand::AskReveal(job_id));
        }
    }

    /// Asks a committee's aggregator, if connected, to sign the results. [`Submission::Aggregated`]
    /// may follow.
    pub fn ask_aggregate(
        &self,
        aggregator: &Address,
        job_id: Hash,
        reveals: impl FnOnce() -> Option<Reveals>,
    ) {
        let link = |shared: &GatewayShared| Some(shared.links.get(aggregator)?.commands.clone());
        let commands = link(&self.0.shared.lock());
        // Built without the lock, because they may be long.
        if let Some(commands) = commands
            && let Some(reveals) = reveals()
            && commands.try_send(GatewayCommand::AskAggregate(job_id, Box::new(reveals))).is_err()
        {
            tracing::debug!(%aggregator, %job_id, "not asked now: its connection is behind");
        }
    }

    /// Tells the runners the height of the chain.
    pub fn tell(&self) {
        let shared = self.0.shared.lock();
        for link in shared.links.values() {
            link.command(GatewayCommand::Head(shared.state.height(), *shared.state.connectivity()));
        }
    }

    /// Whether any runner has suspended an ability, so that the needs of jobs in the mempool
    /// matter.
    pub fn has_withdrawals(&self) -> bool {
        self.0.shared.lock().view.has_withdrawals()
    }

    /// Sets the needs of jobs in the mempool: a runner that suspended any of them does not count as
    /// present.
    pub fn needed(&self, labels: BTreeSet<Label>) {
        self.0.shared.lock().view.needed(labels);
    }

    /// The bits of a vote on the block at `height`, indexed by `order` (spec §4). The rules for
    /// connections and for the age of pings come from `at`, the state before that block.
    pub fn presence_at(&self, height: Height, at: &State, order: &[Address]) -> Bitmap {
        let mut shared = self.0.shared.lock();
        let GatewayShared { state, view, links, .. } = &mut *shared;
        let epochs = at.subset_epochs_at(height);
        let timeout = at.connectivity().presence_timeout_blocks;
        view.bitmap(order, state.height(), timeout, |runner| {
            let link = links.get_mut(runner);
            link.is_some_and(|link| link.place.check(at, &epochs).is_ok())
        })
    }

    pub fn connected(&self) -> Vec<Connected> {
        let mut shared = self.0.shared.lock();
        let GatewayShared { state, view, links, .. } = &mut *shared;
        let head = state.height();
        let epochs = state.subset_epochs_at(head.next());
        let timeout = state.connectivity().presence_timeout_blocks;
        let connected = |(runner, link): (&Address, &mut GatewayLink)| Connected {
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

    /// The progress of a job, by runner: each one's last report over a connection to this
    /// validator, with the validator's head at that time. The reports are not verified.
    pub fn progress(&self, job_id: &Hash) -> Vec<(Address, JobProgress, Height)> {
        let shared = self.0.shared.lock();
        let of_job = (*job_id, Address([0; 20]))..=(*job_id, Address([0xff; 20]));
        let said = shared.progress.range(of_job);
        said.map(|((_, runner), (said, at))| (*runner, said.clone(), *at)).collect()
    }

    pub fn drew(&self, height: Height, draws: &[DrawRecord]) {
        let mut shared = self.0.shared.lock();
        for draw in draws {
            shared.journal.drew(height, draw);
        }
    }

    pub fn journal(&self) -> Journal {
        self.0.shared.lock().journal.clone()
    }

    pub fn half_open(&self) -> usize {
        self.0.half_open.count()
    }

    /// A sender for results that arrive other than over a connection. They are handled like those
    /// of connected runners, so the sender must have checked them.
    pub fn handed_in(&self) -> mpsc::Sender<Submission> {
        self.0.handed_in.clone()
    }

    pub fn count(&self) -> watch::Receiver<usize> {
        self.0.count.subscribe()
    }

    /// Accepts no more connections, says goodbye on all existing ones, and waits up to a second
    /// until they have ended.
    pub async fn close(&self, clock: &impl Clock) {
        {
            let mut shared = self.0.shared.lock();
            shared.closing = true;
            for link in shared.links.values() {
                link.command(GatewayCommand::Close(GoodbyeReason::ShuttingDown));
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

impl GatewayLink {
    /// False when the connection's task is behind.
    fn command(&self, command: GatewayCommand) -> bool {
        self.commands.try_send(command).is_ok()
    }

    /// Records a cancelled job that the state after the block at `height` does not assign to the
    /// runner. A job that is done needs no proof, because no work on it continues.
    fn cancelled(&mut self, job_id: Hash, reason: CancelReason, height: Height) {
        if reason != CancelReason::Done && self.ended.len() < MAX_ENDED {
            self.ended.insert(job_id, height);
        }
    }
}
