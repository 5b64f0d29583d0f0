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
//! Beside what the chain assigns, a runner may be sent on an errand ([`Gateway::send_errand`]):
//! work of which the chain knows nothing, whose result goes to whoever sent it. It counts among
//! the runner's jobs and is done as one of them.

pub use super::handed::Handed;

use super::{
    errands::{ErrandError, Errands, Report},
    limiter::{HelloLimiter, Limits},
    place::Place,
    stage::{Stage, reason_of_cancellation, stage},
};
use crate::{
    consensus::presence::RunnerView,
    transport::{
        Connection, Listen,
        driver::{self, GOODBYE_TIMEOUT, Service, now_ms},
        half_open::{self, HalfOpen, Slot},
    },
};
use commonware_runtime::{Clock, Spawner};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{
        State,
        transaction::{CommitResult, ReportFailure, Reveal, SubmitResult},
        transition::check_failure,
    },
    job::spec::{Job, JobStatus, MAX_TIMEOUT_BLOCKS},
    presence::{Bitmap, LocalView, view::Label},
    primitives::{Address, Hash, Height, PublicKey, SecretKey, codec::to_vec},
    registry::Order,
    session::{
        End, Outcome, Session as _,
        nonces::SeenNonces,
        validator::{self, AssignError, Event, Validator},
    },
    wire::{
        BackpressureSignal, Body, CancelReason, CapabilityDelta, GoodbyeReason, JobCommit,
        JobFailure, JobProgress, JobResult, Reveals,
    },
};
use futures::FutureExt as _;
use rand_core::CryptoRng;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
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
    /// Whether it counts as present now.
    pub present: bool,
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
    /// Jobs assigned to the runner and dispatched here, however that went, and the blocks that
    /// assigned them: a job that is tried again may come to the same runner.
    dispatched: BTreeMap<Hash, Height>,
}

enum Command {
    Head(Height),
    Assign(Box<Dispatch>),
    Errand(Hash, Body),
    Cancel(Hash, CancelReason),
    AskReveal(Hash),
    AskAggregate(Hash, Box<Reveals>),
    Close(GoodbyeReason),
}

struct Dispatch {
    job_id: Hash,
    spec: Body,
    assigned_at: Height,
    deadline: Height,
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
        let (serial, head) = {
            let mut shared = self.0.shared.lock();
            shared.serial += 1;
            (shared.serial, shared.state.height())
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
        let Shared { state, links, progress, .. } = &mut *shared;
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
            let over = link.dispatched.iter().filter(|(job_id, at)| wanted.get(job_id) != Some(at));
            let over: Vec<Hash> = over.map(|(job_id, _)| *job_id).collect();
            for job_id in over {
                let reason = reason_of_cancellation(state.job(&job_id), runner);
                if link.command(Command::Cancel(job_id, reason)) {
                    link.dispatched.remove(&job_id);
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
            if let Some(dispatch) = Dispatch::of(job_id, job) {
                let assigned_at = dispatch.assigned_at;
                if link.command(Command::Assign(Box::new(dispatch))) {
                    link.dispatched.insert(*job_id, assigned_at);
                }
            }
        }
    }

    /// Sends a runner on an errand, where it is connected and none of that id is out; resolves with
    /// what it reports, or with why it will not. Dropping the report calls nobody back:
    /// [`call_back`](Self::call_back) does. `spec` is the canonical form of a job's specification.
    pub fn send_errand(
        &self,
        runner: &Address,
        id: Hash,
        spec: Body,
    ) -> Result<oneshot::Receiver<Report>, ErrandError> {
        let mut shared = self.0.shared.lock();
        let Shared { links, errands, .. } = &mut *shared;
        let link = links.get(runner).ok_or(ErrandError::NotConnected)?;
        let report = errands.open(id, *runner)?;
        if !link.command(Command::Errand(id, spec)) {
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
        if let Some(runner) = shared.errands.of(id) {
            if let Some(link) = shared.links.get(&runner) {
                link.command(Command::Cancel(*id, CancelReason::Reassigned));
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
            link.command(Command::Head(shared.state.height()));
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

    /// The bits of a vote on the next block, as far as this validator has come.
    pub fn presence(&self, order: &[Address]) -> Bitmap {
        let state = self.0.shared.lock().state.clone();
        self.presence_at(state.height().next(), &state, order)
    }

    /// The bits of a vote on the block at `height`, indexed by `order` (spec §4). Whom the chain
    /// lets be connected here is decided from `at`, the state before that block.
    pub fn presence_at(&self, height: Height, at: &State, order: &[Address]) -> Bitmap {
        let mut shared = self.0.shared.lock();
        let Shared { state, view, links, .. } = &mut *shared;
        let epochs = at.subset_epochs_at(height);
        view.bitmap(order, state.height(), |runner| {
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
        let connected = |(runner, link): (&Address, &mut Link)| Connected {
            runner: *runner,
            since: link.since,
            load: link.load.clone(),
            present: view.is_present(runner, head) && link.place.check(state, &epochs).is_ok(),
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

impl Dispatch {
    /// `None` for a job whose specification is too large for a frame, which no block can carry.
    fn of(job_id: &Hash, job: &Job) -> Option<Self> {
        let assigned_at = job.status.assignment()?.height;
        let spec = Body::new(to_vec(&*job.spec)).ok()?;
        Some(Self { job_id: *job_id, spec, assigned_at, deadline: job.deadline() })
    }
}

impl Link {
    /// False: the connection's task is behind.
    fn command(&self, command: Command) -> bool {
        self.commands.try_send(command).is_ok()
    }
}

/// One connection, from the first byte to the last.
struct RunnerLink {
    gateway: Gateway,
    serial: u64,
    runner: Address,
    certified: PublicKey,
    remote: IpAddr,
    since_ms: u64,
    commands: mpsc::Sender<Command>,
    /// Until the handshake is complete.
    half_open: Option<Slot>,
}

impl Service for RunnerLink {
    type Session = Validator;
    type Command = Command;

    fn event(&mut self, session: &mut Validator, event: Event) {
        match event {
            Event::Admit { runner, nonce } => {
                session.handle_admission(self.admission(&runner, nonce));
            }
            Event::Established => self.established(session),
            Event::Pinged { .. } => self.with_view(|view, runner, head| view.pinged(runner, head)),
            Event::Backpressure(signal) => {
                self.with_view(|view, runner, _| view.accepting(runner, signal.accepting_new));
                let mut shared = self.gateway.0.shared.lock();
                if let Some(link) = self.link(&mut shared) {
                    link.load = Some(signal);
                }
            }
            Event::Capabilities(delta) => {
                let (added, removed) = changes(&delta);
                self.with_view(|view, runner, _| view.changed(runner, added, removed));
            }
            Event::Accepted { job_id } => {
                tracing::debug!(runner = %self.runner, %job_id, "job accepted");
            }
            Event::Progress(progress) => self.progress(progress),
            Event::Result(result) => self.result(result),
            Event::Committed(commit) => self.committed(&commit),
            Event::Failed(failure) => self.failed(failure),
            Event::Revealed(result) => {
                let JobResult { job_id, result_data, runner_signed } = result;
                let (runner, result) = (self.runner, result_data.into_bytes());
                let reveal = Reveal { runner, result, runner_signature: runner_signed };
                self.hand_in(job_id, Handed::Reveal { job_id, reveal });
            }
            Event::Aggregated { answer, digest } => {
                let (job_id, signature) = (answer.job_id, answer.signed);
                self.hand_in(job_id, Handed::Aggregated { job_id, digest, signature });
            }
            Event::Outcome { job_id, outcome } => {
                tracing::debug!(runner = %self.runner, %job_id, ?outcome, "job dispatched");
                if let Outcome::Duplicate | Outcome::SoftFailure(_) | Outcome::HardFailure = outcome
                {
                    self.reported(&job_id, || Err(ErrandError::Refused(outcome)));
                }
                if outcome == Outcome::HardFailure {
                    self.with_view(|view, runner, _| view.failed(runner));
                }
            }
        }
    }

    fn command(&mut self, session: &mut Validator, command: Command) {
        match command {
            Command::Head(head) => session.handle_head(head),
            Command::Assign(dispatch) => self.assign(session, *dispatch),
            Command::Errand(id, spec) => self.run_errand(session, id, spec),
            Command::Cancel(job_id, reason) => session.cancel(&job_id, reason),
            Command::AskReveal(job_id) => self.asked(job_id, session.ask_reveal(job_id)),
            Command::AskAggregate(job_id, reveals) => {
                self.asked(job_id, session.ask_aggregate(job_id, *reveals));
            }
            Command::Close(reason) => session.close(reason),
        }
    }
}

impl RunnerLink {
    fn admission(&self, runner: &PublicKey, nonce: [u8; 32]) -> Result<(), GoodbyeReason> {
        let mut shared = self.gateway.0.shared.lock();
        if shared.closing {
            return Err(GoodbyeReason::ShuttingDown);
        }
        let known = shared.links.contains_key(&self.runner);
        if !known && !shared.limiter.admit(self.remote, self.since_ms) {
            return Err(GoodbyeReason::RateLimited);
        }
        shared.state.admit(runner, &self.gateway.0.public)?;
        // Of another key than the certificate's nothing is remembered; the session refuses it.
        if *runner == self.certified && !shared.nonces.insert(nonce) {
            return Err(GoodbyeReason::ReplayedNonce);
        }
        Ok(())
    }

    fn established(&mut self, session: &mut Validator) {
        let (head, dispatches) = {
            let mut shared = self.gateway.0.shared.lock();
            let Shared { state, view, links, errands, .. } = &mut *shared;
            self.half_open = None;
            let pushes = state.phase().pushes();
            let dispatches: Vec<_> = assigned(state)
                .filter(|(_, _, runner)| pushes && *runner == self.runner)
                .filter(|(_, job, runner)| stage(job, runner) == Stage::AtWork)
                .filter_map(|(job_id, job, _)| Dispatch::of(job_id, job))
                .collect();
            let link = Link {
                serial: self.serial,
                commands: self.commands.clone(),
                since: state.height(),
                load: None,
                place: Place::new(self.certified.clone(), self.gateway.0.public.clone()),
                dispatched: dispatches.iter().map(|d| (d.job_id, d.assigned_at)).collect(),
            };
            if let Some(older) = links.insert(self.runner, link) {
                errands.lost(&self.runner);
                older.command(Command::Close(GoodbyeReason::DuplicateConnection));
            }
            view.opened(self.runner);
            self.gateway.0.count.send_replace(links.len());
            (state.height(), dispatches)
        };
        session.handle_head(head);
        tracing::info!(runner = %self.runner, remote = %self.remote, "runner connected");
        for dispatch in dispatches {
            self.assign(session, dispatch);
        }
    }

    fn assign(&self, session: &mut Validator, dispatch: Dispatch) {
        let Dispatch { job_id, spec, assigned_at, deadline } = dispatch;
        match session.assign(job_id, spec, assigned_at, deadline) {
            Ok(()) | Err(AssignError::AlreadyDispatched) => {}
            Err(error @ (AssignError::TooManyStreams | AssignError::NotEstablished)) => {
                tracing::debug!(runner = %self.runner, %job_id, %error, "job not dispatched");
                let mut shared = self.gateway.0.shared.lock();
                // With the next block it is tried again.
                if let Some(link) = self.link(&mut shared) {
                    link.dispatched.remove(&job_id);
                }
            }
        }
    }

    fn run_errand(&self, session: &mut Validator, id: Hash, spec: Body) {
        let head = self.gateway.0.shared.lock().state.height();
        // Who sent it says how long it may take, and calls it back then.
        let deadline = Height::new(head.get().saturating_add(MAX_TIMEOUT_BLOCKS));
        if session.assign(id, spec, head, deadline).is_err() {
            self.reported(&id, || Err(ErrandError::Busy));
        }
    }

    /// Tells whoever sent the runner on an errand what came of it; false: there is no such errand.
    fn reported(&self, id: &Hash, report: impl FnOnce() -> Report) -> bool {
        let mut shared = self.gateway.0.shared.lock();
        let out = shared.errands.of(id) == Some(self.runner);
        if out {
            shared.errands.close(id, &self.runner, report());
        }
        out
    }

    /// Keeps what the runner said where the chain assigns the job to it: so much there is room for.
    fn progress(&self, progress: JobProgress) {
        let job_id = progress.job_id;
        let mut shared = self.gateway.0.shared.lock();
        if assigns(&shared.state, &job_id, &self.runner) {
            let head = shared.state.height();
            shared.progress.insert((job_id, self.runner), (progress, head));
        }
    }

    /// Passes a result on where the chain still waits for it from this runner.
    fn result(&self, result: JobResult) {
        let job_id = result.job_id;
        if self.reported(&job_id, || Ok(result.result_data.as_bytes().to_vec())) {
            return;
        }
        let bytes = result.result_data.as_bytes().len();
        let wanted = {
            let shared = self.gateway.0.shared.lock();
            shared.state.job(&job_id).is_some_and(|job| {
                matches!(&job.status, JobStatus::Assigned(a) if a.committee.contains(&self.runner))
                    && !job.spec.is_committee()
                    && bytes <= job.spec.bounds.max_return_bytes as usize
            })
        };
        if !wanted {
            tracing::debug!(runner = %self.runner, %job_id, bytes, "result not wanted");
            return;
        }
        let submission = SubmitResult {
            job_id,
            runner: self.runner,
            result: result.result_data.into_bytes(),
            runner_signature: result.runner_signed,
        };
        self.hand_in(job_id, Handed::Result(submission));
    }

    /// Passes a commitment on, also where the chain does not wait for it: two different ones of one
    /// attempt are evidence. The session has checked that the runner signed it.
    fn committed(&self, commit: &JobCommit) {
        let JobCommit { job_id, deadline_block, commitment, runner_signed } = *commit;
        let runner = self.runner;
        let known = self.gateway.0.shared.lock().state.job(&job_id).map(Job::deadline);
        if known != Some(deadline_block) {
            tracing::debug!(%runner, %job_id, deadline = %deadline_block, "of no attempt of the job");
            return;
        }
        let commit = CommitResult { job_id, runner, commitment, runner_signature: runner_signed };
        self.hand_in(job_id, Handed::Commit { commit, deadline_block });
    }

    /// Passes a report of failed work on where the chain still waits for the runner.
    fn failed(&self, failure: JobFailure) {
        let JobFailure { job_id, reason, runner_signed } = failure;
        if self.reported(&job_id, || Err(ErrandError::Failed(reason.to_string()))) {
            return;
        }
        let report =
            ReportFailure { job_id, runner: self.runner, reason, runner_signature: runner_signed };
        let state = self.gateway.0.shared.lock().state.clone();
        match check_failure(&state, &report) {
            Ok(_) => self.hand_in(job_id, Handed::Failure(report)),
            Err(error) => {
                tracing::debug!(runner = %self.runner, %job_id, %error, "report not wanted");
            }
        }
    }

    fn hand_in(&self, job_id: Hash, handed: Handed) {
        if self.gateway.0.handed_in.try_send(handed).is_err() {
            tracing::warn!(runner = %self.runner, %job_id, "result lost: too many are waiting");
        }
    }

    /// What came of a question: one that cannot be put is put again with the next block.
    fn asked(&self, job_id: Hash, outcome: Result<(), AssignError>) {
        if let Err(error) = outcome {
            tracing::debug!(runner = %self.runner, %job_id, %error, "nothing asked");
        }
    }

    /// Changes the view where this is the runner's current connection.
    fn with_view(&self, change: impl FnOnce(&mut LocalView, &Address, Height)) {
        let mut shared = self.gateway.0.shared.lock();
        if self.link(&mut shared).is_some() {
            let head = shared.state.height();
            change(&mut shared.view, &self.runner, head);
        }
    }

    /// The runner's current connection, where it is this one.
    fn link<'a>(&self, shared: &'a mut Shared) -> Option<&'a mut Link> {
        shared.links.get_mut(&self.runner).filter(|link| link.serial == self.serial)
    }

    fn ended(self, end: End) {
        let mut shared = self.gateway.0.shared.lock();
        if self.half_open.is_some() {
            tracing::debug!(runner = %self.runner, remote = %self.remote, %end, "no runner connected");
            return;
        }
        if self.link(&mut shared).is_some() {
            shared.links.remove(&self.runner);
            shared.errands.lost(&self.runner);
            shared.view.lost(&self.runner);
            self.gateway.0.count.send_replace(shared.links.len());
        }
        tracing::info!(runner = %self.runner, %end, "runner disconnected");
    }
}

/// What a delta adds and removes.
fn changes(delta: &CapabilityDelta) -> (Vec<Label>, Vec<Label>) {
    let capability = |name: &str| Label::Capability(name.to_owned());
    let entitlement = |name: &str| Label::Entitlement(name.to_owned());
    let added = delta.added_capabilities.iter().map(capability);
    let removed = delta.removed_capabilities.iter().map(capability);
    (
        added.chain(delta.added_entitlements.iter().map(entitlement)).collect(),
        removed.chain(delta.removed_entitlements.iter().map(entitlement)).collect(),
    )
}
