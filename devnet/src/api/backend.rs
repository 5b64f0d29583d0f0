//! The API's source of data, and its interface to the process that runs the devnet.
//!
//! That process creates one [`Backend`], tells each [`ValidatorSlot`] when its validator starts
//! ([`ValidatorSlot::set_running`]) and stops ([`ValidatorSlot::set_stopped`]), and reports whether
//! runners run ([`Backend::set_runner_running`]). The API starts and stops nothing by itself: it
//! calls [`Hooks`].

use super::{
    error::ApiError,
    labels::Labels,
    lane_metrics::LaneMetrics,
    steer::{Steer, SteerError, Told},
    types::{
        ConfigureRequest, NamedKind, OfPipelineQuery, Pipeline, PipelineAccepted, PipelineQuery,
        PipelineRequest, PipelineSummary, RetryRequest, Rollback, Snapshot, SpeculationEventPage,
        SpeculationEventQuery, SpeculationOption, SpeculationStatus, SpeculativeCommitment,
        SpeculativeProof, TaskDetail, TasksCancelled, TasksRetried, Text,
    },
};
use crate::{
    chain::{ledger::Ledger, mempool::Mempool},
    consensus::{
        scheme::{Committee, CommitteeError},
        timing::FastForward,
    },
    faults::Faults,
    spelling::nearest,
    topology::Name,
    validator::{gateway::Submission, journal::Journal},
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{Block, Genesis, GenesisError, GenesisValidator, State},
    presence::Unmet,
    primitives::{Address, Hash, Height},
    wire::{BackpressureSignal, GoodbyeReason},
};
use futures::{
    FutureExt as _,
    future::{BoxFuture, select_all},
};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, watch};

/// A chain has halted when its newest block is older than this
const HALTED_AFTER: Duration = Duration::from_secs(10);
/// and older than this number of block times: several absent leaders in a row delay it by less.
const HALTED_BLOCKS: u32 = 10;

/// Maximum number of accounts with a name, because every list of accounts contains all of them.
const MOST_ACCOUNTS: usize = 2_000;

/// A request's command to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Start a validator, or a runner of the process.
    Start,
    /// Stop cleanly: the node announces it to the others.
    Stop,
    /// End a validator or a runner of the process at once, like a crash.
    Kill,
    /// Restart a validator without its stored chain, which it fetches from the others.
    Resync,
}

/// Starts, stops or kills the node of this name. Resolves once this is done and the backend shows
/// it, or with the reason of the failure.
pub type SwitchHook =
    Box<dyn Fn(&str, Switch) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A change of the devnet's validators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// A validator of this name joins and follows the chain; `None` picks any free name.
    Join(Option<Name>),
    /// This validator, which has left the committee, is stopped and removed.
    Leave(String),
}

/// Why a change of validators failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// No such validator.
    #[error("{0}")]
    NotFound(String),
    /// The current state does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The attempt failed.
    #[error("{0}")]
    Failed(String),
}

/// Makes a validator join or leave; resolves with its name once this is done.
pub type MembershipHook =
    Box<dyn Fn(Membership) -> BoxFuture<'static, Result<String, MembershipError>> + Send + Sync>;

/// Why no snapshot was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The current state does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The attempt failed.
    #[error("{0}")]
    Failed(String),
}

/// Saves the devnet as a snapshot of this name, or of a descriptive one; resolves once the snapshot
/// exists and the chain continues.
pub type SaveHook =
    Box<dyn Fn(Option<Name>) -> BoxFuture<'static, Result<Snapshot, SaveError>> + Send + Sync>;

/// Steers the runner of this name; resolves with its report to its validators after that, or `None`
/// if it does not run.
pub type SteerHook =
    Box<dyn Fn(&str, Steer) -> BoxFuture<'static, Option<Result<Told, SteerError>>> + Send + Sync>;

/// The API's requests to the process that runs the devnet.
pub struct Hooks {
    /// Starts, stops and kills nodes. There is at most one call at a time per validator.
    pub switch: SwitchHook,
    pub steer: SteerHook,
    /// Makes validators join and leave.
    pub membership: MembershipHook,
    /// Saves the devnet.
    pub save: SaveHook,
    /// Begins to stop the devnet, and returns at once. May be called again.
    pub shutdown: Box<dyn Fn() + Send + Sync>,
}

/// The API's interface to the agent that runs pipelines of tasks.
pub trait Speculation: Send + Sync {
    /// Accepts a pipeline, and stores it.
    fn submit(&self, pipeline: PipelineRequest) -> Result<PipelineAccepted, ApiError>;
    /// Pipelines, newest first.
    fn pipelines(&self, query: &PipelineQuery) -> Vec<PipelineSummary>;
    /// A pipeline with its graph.
    fn pipeline(&self, number: u64) -> Result<Pipeline, ApiError>;
    /// A task with its output.
    fn task(&self, number: u64, name: &str) -> Result<TaskDetail, ApiError>;
    /// Commitments, the newest pipelines' first.
    fn commitments(&self, query: &OfPipelineQuery) -> Result<Vec<SpeculativeCommitment>, ApiError>;
    /// Proofs, the newest pipelines' first.
    fn proofs(&self, query: &OfPipelineQuery) -> Result<Vec<SpeculativeProof>, ApiError>;
    /// Rollbacks, newest first.
    fn rollbacks(&self, query: &OfPipelineQuery) -> Result<Vec<Rollback>, ApiError>;
    /// The kept events of its components, oldest first.
    fn events(&self, query: &SpeculationEventQuery) -> SpeculationEventPage;
    /// The number of the next event, which changes with every new event.
    fn told(&self) -> watch::Receiver<u64>;
    /// Cancels a task with those that depend on it, or all of a pipeline.
    fn cancel(&self, number: u64, task: Option<&str>) -> Result<TasksCancelled, ApiError>;
    /// Retries tasks that failed or were rolled back.
    fn retry(&self, number: u64, request: &RetryRequest) -> Result<TasksRetried, ApiError>;
    /// Its current state.
    fn status(&self) -> SpeculationStatus;
    fn options(&self) -> Vec<SpeculationOption>;
    /// Changes options, all or none.
    fn configure(&self, request: &ConfigureRequest) -> Result<Vec<SpeculationOption>, ApiError>;
    /// Its metrics as a part of an OpenMetrics text.
    fn metrics(&self) -> String;
}

/// Returns the time in Unix milliseconds.
pub type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// The configuration of a backend.
pub struct BackendConfig {
    /// The devnet's name.
    pub name: String,
    /// The chain's genesis document.
    pub genesis: Genesis,
    /// The pace of blocks.
    pub block_time: Duration,
    /// The clock for the ages of blocks.
    pub clock: Clock,
    /// The process that runs the devnet.
    pub pid: u32,
    /// The time at which it was started.
    pub started_at: Timestamp,
    /// The token that a request that changes state must show.
    pub token: String,
    /// Names and addresses of accounts, in the order in which they are listed.
    pub accounts: Vec<(String, Address)>,
    /// Names and keys of validators, in the committee or not.
    pub validators: Vec<(String, GenesisValidator)>,
    /// Names and addresses of the runners that the process runs.
    pub runners: Vec<(String, Address)>,
    /// Names that users gave. An actor's name can be used wherever its address can.
    pub labels: Labels,
    /// The injected faults between nodes.
    pub faults: Faults,
    /// The API's requests to the process.
    pub hooks: Hooks,
    /// The agent that runs pipelines of tasks, if there is one.
    pub speculation: Option<Arc<dyn Speculation>>,
}

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The genesis document is invalid.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// Its validators do not form a committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// There is no validator to answer from.
    #[error("a devnet needs a validator")]
    NoValidators,
}

/// The names of a devnet's accounts and nodes. An address without a name is shown as it is.
#[derive(Debug, Default)]
pub struct NodeNames(Mutex<NamedAddresses>);

#[derive(Debug, Default)]
struct NamedAddresses {
    by_address: BTreeMap<Address, String>,
    by_name: BTreeMap<String, Address>,
}

impl NodeNames {
    fn insert(&self, name: &str, address: Address) {
        let mut named = self.0.lock();
        named.by_address.insert(address, name.to_owned());
        named.by_name.insert(name.to_owned(), address);
    }

    /// Gives an address this name, replacing its previous one, unless another address has the name.
    pub(super) fn give(&self, name: &str, address: Address) {
        let mut named = self.0.lock();
        if named.by_name.get(name).is_some_and(|known| *known != address) {
            return;
        }
        if let Some(before) = named.by_address.insert(address, name.to_owned()) {
            named.by_name.remove(&before);
        }
        named.by_name.insert(name.to_owned(), address);
    }

    /// The name of an address, if it has one.
    pub fn get(&self, address: &Address) -> Option<String> {
        self.0.lock().by_address.get(address).cloned()
    }

    /// The name of an address, or the address.
    pub fn of(&self, address: &Address) -> String {
        self.get(address).unwrap_or_else(|| address.to_string())
    }

    /// The address that has this name.
    pub(super) fn named(&self, name: &str) -> Option<Address> {
        self.0.lock().by_name.get(name).copied()
    }

    /// The name that was probably meant, among addresses for which `holds` is true.
    pub fn nearest(&self, typed: &str, holds: impl Fn(&Address) -> bool) -> Option<String> {
        let named = self.0.lock();
        let names = named.by_name.iter().filter(|(_, address)| holds(address));
        nearest(typed, names.map(|(name, _)| name.as_str())).map(str::to_owned)
    }

    /// Resolves a name or an address.
    pub fn resolve(&self, text: &str) -> Option<Address> {
        let named = self.0.lock().by_name.get(text).copied();
        named.or_else(|| text.parse::<Text<Address>>().ok().map(|address| address.0))
    }
}

/// A runner's connection, as the validator at its other end sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLink {
    pub runner: Address,
    /// Why the chain does not allow the connection, if it does not.
    pub refused: Option<GoodbyeReason>,
    /// The first other condition that keeps the validator from counting the runner as present.
    pub unmet: Option<Unmet>,
    /// The load that the runner last reported there.
    pub load: Option<BackpressureSignal>,
    /// The height of the last valid ping; `None` before the first.
    pub last_ping: Option<Height>,
    /// The labels that the runner has withdrawn for now at that validator.
    pub withdrawn: Vec<String>,
}

/// A runner's last report of its progress with a job, over its connection to a validator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedProgress {
    pub runner: Address,
    /// The percentage done, from 0 to 100.
    pub percent: u16,
    /// The current activity, in the runner's words.
    pub detail: Option<String>,
    /// The validator's height at that time.
    pub height: Height,
}

/// Returns the last progress reports of a validator's runners about an open job.
pub type ProgressHook = Arc<dyn Fn(&Hash) -> Vec<ReportedProgress> + Send + Sync>;

/// Returns a validator's journal of its runners, and the number of connections that wait for their
/// handshake.
pub type JournalHook = Arc<dyn Fn() -> (Journal, usize) + Send + Sync>;

/// A running validator.
#[derive(Clone)]
pub struct Running {
    pub ledger: Ledger,
    pub mempool: Mempool,
    /// The authenticated connections of runners it holds.
    pub links: Arc<dyn Fn() -> Vec<ObservedLink> + Send + Sync>,
    /// The last progress reports of its runners about an open job.
    pub progress: ProgressHook,
    /// The journal of its runners since it started.
    pub journal: JournalHook,
    /// Takes checked results to submit to the chain.
    pub handed_in: mpsc::Sender<Submission>,
    /// The QUIC address for runners.
    pub quic: SocketAddr,
    /// The address for other validators.
    pub p2p: SocketAddr,
}

/// A running validator, and the height from which it started.
#[derive(Clone)]
struct ValidatorRun {
    running: Running,
    from: Height,
    /// The reason why it is paused; `None` if it is not.
    paused: Option<String>,
}

/// The content of a slot.
#[derive(Clone)]
enum Occupant {
    Running(ValidatorRun),
    /// The state at which it stopped (the genesis state before the first start), and the reason why
    /// it died if it ended by itself.
    Stopped(State, Option<String>),
}

/// A validator in the API, whether or not it runs.
pub struct ValidatorSlot {
    name: String,
    identity: GenesisValidator,
    occupant: watch::Sender<Occupant>,
    /// [`Backend::begun`].
    begun: Arc<OnceLock<Height>>,
    /// Held by the request that is starting or stopping it.
    pub(super) switching: Arc<tokio::sync::Mutex<()>>,
}

impl ValidatorSlot {
    fn stopped(
        name: String,
        identity: GenesisValidator,
        state: State,
        begun: Arc<OnceLock<Height>>,
    ) -> Self {
        let occupant = watch::Sender::new(Occupant::Stopped(state, None));
        Self { name, identity, occupant, begun, switching: Arc::default() }
    }

    /// The validator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The validator's keys.
    pub const fn identity(&self) -> &GenesisValidator {
        &self.identity
    }

    /// The validator's account.
    pub fn address(&self) -> Address {
        self.identity.pubkey.address()
    }

    /// The validator runs from now on, and reads may be answered from it.
    pub fn set_running(&self, running: Running) {
        let from = running.ledger.head().height();
        // The first start of any validator counts.
        let _ = self.begun.set(from);
        self.occupant.send_replace(Occupant::Running(ValidatorRun { running, from, paused: None }));
    }

    /// The validator has stopped: the API no longer uses its parts, and event streams from it end.
    pub fn set_stopped(&self) {
        self.end(None);
    }

    /// The validator has ended by itself.
    pub fn set_died(&self, reason: String) {
        self.end(Some(reason));
    }

    fn end(&self, reason: Option<String>) {
        self.occupant.send_modify(|occupant| match occupant {
            Occupant::Running(run) => {
                *occupant = Occupant::Stopped(run.running.ledger.head(), reason);
            }
            Occupant::Stopped(_, died) => *died = reason,
        });
    }

    /// The validator decides nothing for now. Its store is read as before.
    pub fn set_paused(&self, reason: String) {
        self.occupant.send_modify(|occupant| {
            if let Occupant::Running(run) = occupant {
                run.paused = Some(reason);
            }
        });
    }

    /// The reason why it is paused; `None` if it is not.
    pub(super) fn paused(&self) -> Option<String> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.paused.clone(),
            Occupant::Stopped(..) => None,
        }
    }

    /// The reason why it died, if it ended by itself.
    pub(super) fn died(&self) -> Option<String> {
        match &*self.occupant.borrow() {
            Occupant::Running(_) => None,
            Occupant::Stopped(_, reason) => reason.clone(),
        }
    }

    /// The validator, if it runs.
    pub fn running(&self) -> Option<Running> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.running.clone()),
            Occupant::Stopped(..) => None,
        }
    }

    /// The state after its newest stored block; the last known one if it is stopped.
    pub fn head(&self) -> State {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.running.ledger.head(),
            Occupant::Stopped(state, _) => state.clone(),
        }
    }

    /// The height from which it started, if it runs.
    pub(super) fn started_from(&self) -> Option<Height> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.from),
            Occupant::Stopped(..) => None,
        }
    }

    /// Resolves when the validator has started, stopped or been replaced since the call.
    pub fn changes(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut occupant = self.occupant.subscribe();
        occupant.mark_unchanged();
        async move {
            // An error means that the whole backend is gone.
            let _ = occupant.changed().await;
        }
    }
}

impl fmt::Debug for ValidatorSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.running().is_some() { "running" } else { "stopped" };
        write!(f, "ValidatorSlot({}, {state})", self.name)
    }
}

/// All data of the API, shared with the process that runs the devnet.
pub struct Backend {
    pub(super) name: String,
    pub(super) chain_id: u64,
    pub(super) genesis: Block,
    pub(super) genesis_hash: Hash,
    pub(super) genesis_root: Hash,
    pub(super) block_time: Duration,
    clock: Clock,
    pub(super) pid: u32,
    pub(super) started_at: Timestamp,
    pub(super) token: String,
    pub(super) names: NodeNames,
    accounts: Mutex<Vec<Address>>,
    pub(super) hooks: Hooks,
    speculation: Option<Arc<dyn Speculation>>,
    pub(super) labels: Labels,
    faults: Faults,
    fast_forward: FastForward,
    slots: watch::Sender<Vec<Arc<ValidatorSlot>>>,
    begun: Arc<OnceLock<Height>>,
    /// Metrics of the timer lane.
    pub(super) lane: LaneMetrics,
    runners: BTreeMap<Address, AtomicBool>,
    /// Held while a transaction is submitted, so that only one of two identical ones counts as new.
    pub(super) submissions: Mutex<()>,
}

impl Backend {
    /// Creates a backend with all validators and runners stopped.
    pub fn new(config: BackendConfig) -> Result<Self, BackendError> {
        let state = config.genesis.state()?;
        let genesis = config.genesis.block()?;
        Committee::of(state.chain_id(), &config.genesis.validators)?;
        let names = NodeNames::default();
        for (name, address) in config.accounts.iter().chain(&config.runners) {
            names.insert(name, *address);
        }
        for (name, validator) in &config.validators {
            names.insert(name, validator.pubkey.address());
        }
        for (name, id) in config.labels.all(NamedKind::Actor) {
            if let Ok(address) = id.parse() {
                names.give(name.as_str(), address);
            }
        }
        if config.validators.is_empty() {
            return Err(BackendError::NoValidators);
        }
        let begun = Arc::<OnceLock<_>>::default();
        let mut slots = Vec::with_capacity(config.validators.len());
        for (name, identity) in config.validators {
            let slot = ValidatorSlot::stopped(name, identity, state.clone(), begun.clone());
            slots.push(Arc::new(slot));
        }
        Ok(Self {
            name: config.name,
            chain_id: state.chain_id(),
            genesis_hash: genesis.hash(),
            genesis_root: state.root(),
            genesis,
            block_time: config.block_time,
            clock: config.clock,
            pid: config.pid,
            started_at: config.started_at,
            token: config.token,
            names,
            accounts: Mutex::new(config.accounts.into_iter().map(|(_, a)| a).collect()),
            hooks: config.hooks,
            speculation: config.speculation,
            labels: config.labels,
            faults: config.faults,
            fast_forward: FastForward::default(),
            slots: watch::Sender::new(slots),
            begun,
            lane: LaneMetrics::new(),
            runners: config.runners.into_iter().map(|(_, a)| (a, AtomicBool::new(false))).collect(),
            submissions: Mutex::default(),
        })
    }

    /// The accounts with a name, in the order in which they are listed.
    pub(super) fn accounts(&self) -> Vec<Address> {
        self.accounts.lock().clone()
    }

    /// Whether an account has this name.
    pub(super) fn is_account(&self, name: &str) -> bool {
        let address = self.names.named(name);
        address.is_some_and(|address| self.accounts.lock().contains(&address))
    }

    /// Gives an account a name and adds it to the list; a conflict if another address has the name.
    pub(super) fn add_account(&self, name: &str, address: Address) -> Result<(), ApiError> {
        let mut accounts = self.accounts.lock();
        match self.names.named(name) {
            Some(known) if known != address => {
                let what = format!("`{name}` is the name of another account or node");
                return Err(ApiError::conflict(what).hint("choose another name"));
            }
            Some(_) => {}
            None if accounts.len() >= MOST_ACCOUNTS => {
                let what = format!("the devnet has {MOST_ACCOUNTS} named accounts, the maximum");
                return Err(ApiError::conflict(what));
            }
            None => self.names.insert(name, address),
        }
        if !accounts.contains(&address) {
            accounts.push(address);
        }
        Ok(())
    }

    /// The validators, in the order of the configuration.
    pub fn slots(&self) -> Vec<Arc<ValidatorSlot>> {
        self.slots.borrow().clone()
    }

    /// The validators that run.
    pub fn running(&self) -> Vec<Running> {
        self.slots.borrow().iter().filter_map(|slot| slot.running()).collect()
    }

    /// The validator of this name.
    pub fn slot(&self, name: &str) -> Option<Arc<ValidatorSlot>> {
        self.slots.borrow().iter().find(|slot| slot.name == name).cloned()
    }

    /// The validator of this address.
    pub fn slot_at(&self, address: &Address) -> Option<Arc<ValidatorSlot>> {
        self.slots.borrow().iter().find(|slot| slot.address() == *address).cloned()
    }

    /// Adds a validator that joins while the devnet runs; it is stopped at first.
    pub fn add_validator(&self, name: &str, identity: GenesisValidator) {
        self.names.insert(name, identity.pubkey.address());
        let (newest, begun) = (self.newest(), self.begun.clone());
        let slot = ValidatorSlot::stopped(name.to_owned(), identity, newest, begun);
        self.slots.send_modify(|slots| slots.push(Arc::new(slot)));
    }

    /// Removes a validator that has left. Its name still resolves to its address.
    pub fn remove_validator(&self, name: &str) {
        self.slots.send_modify(|slots| slots.retain(|slot| slot.name != name));
    }

    /// The height from which the first validator of this process started; genesis before that.
    pub(super) fn begun(&self) -> Height {
        self.begun.get().copied().unwrap_or(Height::GENESIS)
    }

    /// The injected faults between nodes.
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Lifts the pace of proposers.
    pub const fn fast_forward(&self) -> &FastForward {
        &self.fast_forward
    }

    /// The agent that runs pipelines of tasks, if there is one.
    pub(super) const fn speculation(&self) -> Option<&Arc<dyn Speculation>> {
        self.speculation.as_ref()
    }

    /// The names of the runners that the process runs.
    pub(super) fn runners(&self) -> impl Iterator<Item = String> {
        self.runners.keys().map(|address| self.names.of(address))
    }

    /// Records whether a runner of this process runs. Other addresses are ignored.
    pub fn set_runner_running(&self, runner: &Address, running: bool) {
        if let Some(flag) = self.runners.get(runner) {
            flag.store(running, Ordering::Relaxed);
        }
    }

    /// Whether a runner of this process runs; `None` if it does not belong to this process.
    pub(super) fn runner_runs(&self, runner: &Address) -> Option<bool> {
        self.runners.get(runner).map(|flag| flag.load(Ordering::Relaxed))
    }

    /// Resolves when any validator has started, stopped, joined or left since the call.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut slots = self.slots.subscribe();
        let each = slots.borrow_and_update().iter().map(|slot| slot.changes().boxed()).collect();
        let any = select_all::<Vec<_>>(each);
        async move {
            tokio::select! {
                _ = any => {}
                // An error means that the whole backend is gone.
                _ = slots.changed() => {}
            }
        }
    }

    /// The age of the newest block, if the chain has halted. The age is based on the proposer's
    /// timestamp, which a lying proposer can shift by seconds at most.
    pub(super) fn halted(&self) -> Option<Duration> {
        let proposed_ms = self.newest().head().timestamp_ms;
        let age = Duration::from_millis((self.clock)().saturating_sub(proposed_ms));
        let limit = HALTED_AFTER.max(self.block_time.saturating_mul(HALTED_BLOCKS));
        (age > limit).then_some(age)
    }

    /// The newest state that any validator, running or not, has reached.
    pub fn newest(&self) -> State {
        let slots = self.slots();
        let heads = slots.iter().map(|slot| slot.head());
        heads.max_by_key(State::height).expect("a backend has a validator")
    }
}
