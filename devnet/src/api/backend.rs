//! What the API answers from, and how the process that runs the devnet feeds it.
//!
//! Whoever runs the devnet makes one [`Backend`], tells each [`ValidatorSlot`] when its validator
//! starts ([`ValidatorSlot::set_running`]) and stops ([`ValidatorSlot::set_stopped`]), and whether
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
        timing::Haste,
    },
    faults::Faults,
    spelling::nearest,
    topology::Name,
    validator::{gateway::Handed, journal::Journal},
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{Block, Genesis, GenesisError, State, Validator},
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

/// A chain has halted when its newest block is older than this,
const HALTED_AFTER: Duration = Duration::from_secs(10);
/// and than so many block times: several leaders that are gone, one after the other, cost less.
const HALTED_BLOCKS: u32 = 10;

/// Accounts that have a name at most: each is in every list of accounts.
const MOST_ACCOUNTS: usize = 2_000;

/// What a request wants a node to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Run: a validator, or a runner of the process.
    Start,
    /// Stop, cleanly: the others are told.
    Stop,
    /// End at once, as a crash would: a validator or a runner of the process.
    Kill,
    /// Run without what it has stored, which it takes from the others: a validator.
    Resync,
}

/// Starts, stops or kills the node of this name; resolves once that is done and the backend says
/// so, or with the reason why not.
pub type SwitchHook =
    Box<dyn Fn(&str, Switch) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A change of who is in the devnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// A validator of this name comes and follows the chain; `None`: of any free name.
    Join(Option<Name>),
    /// This validator, which the committee has let go, is stopped and forgotten.
    Leave(String),
}

/// Why it does not change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// There is no such validator.
    #[error("{0}")]
    NotFound(String),
    /// As things are, it cannot be.
    #[error("{0}")]
    Conflict(String),
    /// It was tried.
    #[error("{0}")]
    Failed(String),
}

/// Has a validator join or leave; resolves with its name once that is done.
pub type MembershipHook =
    Box<dyn Fn(Membership) -> BoxFuture<'static, Result<String, MembershipError>> + Send + Sync>;

/// Why no snapshot is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// As things are, it cannot be.
    #[error("{0}")]
    Conflict(String),
    /// It was tried.
    #[error("{0}")]
    Failed(String),
}

/// Saves the devnet as a snapshot of this name, or of one that says what is in it; resolves once it
/// is there and the chain goes on.
pub type SaveHook =
    Box<dyn Fn(Option<Name>) -> BoxFuture<'static, Result<Snapshot, SaveError>> + Send + Sync>;

/// Steers the runner of this name; resolves with what its validators are told then, or `None` where
/// it does not run.
pub type SteerHook =
    Box<dyn Fn(&str, Steer) -> BoxFuture<'static, Option<Result<Told, SteerError>>> + Send + Sync>;

/// What the API asks of the process that runs the devnet.
pub struct Hooks {
    /// Starts, stops and kills nodes. Called for one validator at most once at a time.
    pub switch: SwitchHook,
    /// Steers runners.
    pub steer: SteerHook,
    /// Has validators join and leave.
    pub membership: MembershipHook,
    /// Saves the devnet.
    pub save: SaveHook,
    /// Begins to stop the devnet, and returns at once. May be called again.
    pub shutdown: Box<dyn Fn() + Send + Sync>,
}

/// What runs pipelines of tasks, as the API asks it.
pub trait Speculation: Send + Sync {
    /// Takes a pipeline, and stores it.
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
    /// What its components did, of what is kept of that, oldest first.
    fn events(&self, query: &SpeculationEventQuery) -> SpeculationEventPage;
    /// The number of the next event; it changes when something has happened.
    fn told(&self) -> watch::Receiver<u64>;
    /// Cancels a task with those that depend on it, or all of a pipeline.
    fn cancel(&self, number: u64, task: Option<&str>) -> Result<TasksCancelled, ApiError>;
    /// Has tasks tried again that failed or were rolled back.
    fn retry(&self, number: u64, request: &RetryRequest) -> Result<TasksRetried, ApiError>;
    /// What it is doing.
    fn status(&self) -> SpeculationStatus;
    /// Every option.
    fn options(&self) -> Vec<SpeculationOption>;
    /// Changes options, all or none.
    fn configure(&self, request: &ConfigureRequest) -> Result<Vec<SpeculationOption>, ApiError>;
    /// Its metrics, as a part of an OpenMetrics text.
    fn metrics(&self) -> String;
}

/// Tells the time, Unix ms.
pub type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// What a backend is made from.
pub struct Config {
    /// The devnet's name.
    pub name: String,
    /// The chain's genesis document.
    pub genesis: Genesis,
    /// The pace of blocks.
    pub block_time: Duration,
    /// What the ages of blocks are told by.
    pub clock: Clock,
    /// The process that runs the devnet.
    pub pid: u32,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// What a request that changes state must show.
    pub token: String,
    /// Names and addresses of accounts, in the order in which they are listed.
    pub accounts: Vec<(String, Address)>,
    /// Names and keys of validators, whether they are in the committee or not.
    pub validators: Vec<(String, Validator)>,
    /// Names and addresses of the runners that the process runs.
    pub runners: Vec<(String, Address)>,
    /// Names that users gave. An actor's name can be used wherever its address can.
    pub labels: Labels,
    /// What goes wrong between the nodes.
    pub faults: Faults,
    /// What the API asks of the process.
    pub hooks: Hooks,
    /// What runs pipelines of tasks, where something does.
    pub speculation: Option<Arc<dyn Speculation>>,
}

/// Why a configuration makes no backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The genesis document starts no chain.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// Its validators are no committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// Nobody to answer from.
    #[error("a devnet needs a validator")]
    NoValidators,
}

/// The names of a devnet's accounts and nodes. Addresses without one stand for themselves.
#[derive(Debug, Default)]
pub struct Names(Mutex<Named>);

#[derive(Debug, Default)]
struct Named {
    by_address: BTreeMap<Address, String>,
    by_name: BTreeMap<String, Address>,
}

impl Names {
    fn insert(&self, name: &str, address: Address) {
        let mut named = self.0.lock();
        named.by_address.insert(address, name.to_owned());
        named.by_name.insert(name.to_owned(), address);
    }

    /// Gives an address this name in place of the one that it had, unless the name is another's.
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

    /// The name that was probably meant, of those for which this holds.
    pub fn nearest(&self, typed: &str, holds: impl Fn(&Address) -> bool) -> Option<String> {
        let named = self.0.lock();
        let names = named.by_name.iter().filter(|(_, address)| holds(address));
        nearest(typed, names.map(|(name, _)| name.as_str())).map(str::to_owned)
    }

    /// The address that a name or an address stands for.
    pub fn resolve(&self, text: &str) -> Option<Address> {
        let named = self.0.lock().by_name.get(text).copied();
        named.or_else(|| text.parse::<Text<Address>>().ok().map(|address| address.0))
    }
}

/// A runner's connection, as the validator at its other end sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The runner.
    pub runner: Address,
    /// Why the chain does not let it be connected there, where it does not.
    pub refused: Option<GoodbyeReason>,
    /// What else keeps the validator from counting it as present.
    pub unmet: Option<Unmet>,
    /// What it said there last of its load.
    pub load: Option<BackpressureSignal>,
    /// The height of the last valid ping; `None` before the first.
    pub last_ping: Option<Height>,
    /// Labels of what the runner said there that it cannot do for now.
    pub withdrawn: Vec<String>,
}

/// How far a runner is with a job, as it said last to the validator at the other end of its
/// connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The runner.
    pub runner: Address,
    /// Done, from 0 to 100.
    pub percent: u16,
    /// What is being done, in the runner's words.
    pub detail: Option<String>,
    /// The validator's height at that time.
    pub height: Height,
}

/// What the runners of a validator said last of an open job.
pub type ProgressHook = Arc<dyn Fn(&Hash) -> Vec<Progress> + Send + Sync>;

/// What a validator has done with runners, and how many connections wait for their handshake.
pub type JournalHook = Arc<dyn Fn() -> (Journal, usize) + Send + Sync>;

/// A running validator.
#[derive(Clone)]
pub struct Running {
    /// Its chain.
    pub ledger: Ledger,
    /// Its mempool.
    pub mempool: Mempool,
    /// The authenticated connections of runners it holds.
    pub links: Arc<dyn Fn() -> Vec<Link> + Send + Sync>,
    /// What its runners said last of an open job.
    pub progress: ProgressHook,
    /// What it has done with runners since it started.
    pub journal: JournalHook,
    /// Takes checked results that are to go onto the chain.
    pub handed_in: mpsc::Sender<Handed>,
    /// Where runners reach it over QUIC.
    pub quic: SocketAddr,
    /// Where other validators reach it.
    pub p2p: SocketAddr,
}

/// A running validator and the height it started from.
#[derive(Clone)]
struct Run {
    running: Running,
    from: Height,
    /// Why it is paused, where it is.
    paused: Option<String>,
}

/// What a slot holds.
#[derive(Clone)]
enum Occupant {
    Running(Run),
    /// The state it stopped at: the genesis state before the first start. What it died of, where it
    /// has ended by itself.
    Stopped(State, Option<String>),
}

/// A validator's place in the API, whether it runs or not.
pub struct ValidatorSlot {
    name: String,
    identity: Validator,
    occupant: watch::Sender<Occupant>,
    /// [`Backend::begun`].
    begun: Arc<OnceLock<Height>>,
    /// Held by the request that starts or stops it.
    pub(super) switching: Arc<tokio::sync::Mutex<()>>,
}

impl ValidatorSlot {
    fn stopped(
        name: String,
        identity: Validator,
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
    pub const fn identity(&self) -> &Validator {
        &self.identity
    }

    /// The validator's account.
    pub fn address(&self) -> Address {
        self.identity.pubkey.address()
    }

    /// The validator runs from now on: reads may be answered from it.
    pub fn set_running(&self, running: Running) {
        let from = running.ledger.head().height();
        // The first start of any validator counts.
        let _ = self.begun.set(from);
        self.occupant.send_replace(Occupant::Running(Run { running, from, paused: None }));
    }

    /// The validator has stopped: nothing of it is touched any more, event streams from it end.
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

    /// The validator decides nothing for now. What it has stored is read as before.
    pub fn set_paused(&self, reason: String) {
        self.occupant.send_modify(|occupant| {
            if let Occupant::Running(run) = occupant {
                run.paused = Some(reason);
            }
        });
    }

    /// Why it is paused, where it is.
    pub(super) fn paused(&self) -> Option<String> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.paused.clone(),
            Occupant::Stopped(..) => None,
        }
    }

    /// What it died of, where it has ended by itself.
    pub(super) fn died(&self) -> Option<String> {
        match &*self.occupant.borrow() {
            Occupant::Running(_) => None,
            Occupant::Stopped(_, reason) => reason.clone(),
        }
    }

    /// The validator, where it runs.
    pub fn running(&self) -> Option<Running> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.running.clone()),
            Occupant::Stopped(..) => None,
        }
    }

    /// The state after its newest stored block; the last one where it is stopped.
    pub fn head(&self) -> State {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.running.ledger.head(),
            Occupant::Stopped(state, _) => state.clone(),
        }
    }

    /// The height it started from, where it runs.
    pub(super) fn started_from(&self) -> Option<Height> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.from),
            Occupant::Stopped(..) => None,
        }
    }

    /// Resolves when the validator has started, stopped or was replaced since the call.
    pub fn changes(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut occupant = self.occupant.subscribe();
        occupant.mark_unchanged();
        async move {
            // An error: the whole backend is gone.
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

/// All that the API knows. Shared by the API and the process that runs the devnet.
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
    pub(super) names: Names,
    accounts: Mutex<Vec<Address>>,
    pub(super) hooks: Hooks,
    speculation: Option<Arc<dyn Speculation>>,
    pub(super) labels: Labels,
    faults: Faults,
    haste: Haste,
    slots: watch::Sender<Vec<Arc<ValidatorSlot>>>,
    begun: Arc<OnceLock<Height>>,
    /// What is counted of the timer lane.
    pub(super) lane: LaneMetrics,
    runners: BTreeMap<Address, AtomicBool>,
    /// Held while a transaction is taken: of two that are the same, one is new.
    pub(super) submissions: Mutex<()>,
}

impl Backend {
    /// A backend whose validators are all stopped and whose runners do not run.
    pub fn new(config: Config) -> Result<Self, BackendError> {
        let state = config.genesis.state()?;
        let genesis = config.genesis.block()?;
        Committee::of(state.chain_id(), &config.genesis.validators)?;
        let names = Names::default();
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
            haste: Haste::default(),
            slots: watch::Sender::new(slots),
            begun,
            lane: LaneMetrics::new(),
            runners: config.runners.into_iter().map(|(_, a)| (a, AtomicBool::new(false))).collect(),
            submissions: Mutex::default(),
        })
    }

    /// The accounts that have a name, in the order in which they are listed.
    pub(super) fn accounts(&self) -> Vec<Address> {
        self.accounts.lock().clone()
    }

    /// Whether an account has this name.
    pub(super) fn is_account(&self, name: &str) -> bool {
        let address = self.names.named(name);
        address.is_some_and(|address| self.accounts.lock().contains(&address))
    }

    /// Gives an account a name and a place in the list, unless the name is another's.
    pub(super) fn add_account(&self, name: &str, address: Address) -> Result<(), ApiError> {
        let mut accounts = self.accounts.lock();
        match self.names.named(name) {
            Some(known) if known != address => {
                let what = format!("`{name}` is the name of another account or node");
                return Err(ApiError::conflict(what).hint("choose another name"));
            }
            Some(_) => {}
            None if accounts.len() >= MOST_ACCOUNTS => {
                let what = format!("the devnet has {MOST_ACCOUNTS} accounts with a name, the most");
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

    /// Makes room for a validator that joins while the devnet runs; it is stopped at first.
    pub fn add_validator(&self, name: &str, identity: Validator) {
        self.names.insert(name, identity.pubkey.address());
        let (newest, begun) = (self.newest(), self.begun.clone());
        let slot = ValidatorSlot::stopped(name.to_owned(), identity, newest, begun);
        self.slots.send_modify(|slots| slots.push(Arc::new(slot)));
    }

    /// Forgets a validator that has left. Its name goes on standing for its address.
    pub fn remove_validator(&self, name: &str) {
        self.slots.send_modify(|slots| slots.retain(|slot| slot.name != name));
    }

    /// The height that the first validator of this process started from; genesis before that.
    pub(super) fn begun(&self) -> Height {
        self.begun.get().copied().unwrap_or(Height::GENESIS)
    }

    /// What goes wrong between the nodes.
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Lifts the pace of whoever proposes.
    pub const fn haste(&self) -> &Haste {
        &self.haste
    }

    /// What runs pipelines of tasks, where something does.
    pub(super) const fn speculation(&self) -> Option<&Arc<dyn Speculation>> {
        self.speculation.as_ref()
    }

    /// The names of the runners that the process runs.
    pub(super) fn runners(&self) -> impl Iterator<Item = String> {
        self.runners.keys().map(|address| self.names.of(address))
    }

    /// Says whether a runner of this process runs. Other addresses are ignored.
    pub fn set_runner_running(&self, runner: &Address, running: bool) {
        if let Some(flag) = self.runners.get(runner) {
            flag.store(running, Ordering::Relaxed);
        }
    }

    /// Whether a runner runs in this process; `None`: it is none of this process's.
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
                // An error: the whole backend is gone.
                _ = slots.changed() => {}
            }
        }
    }

    /// How long ago the newest block was proposed, where that is so long that the chain has halted.
    /// Proposers tell the time of their blocks: one that lies moves it by seconds at most.
    pub(super) fn halted(&self) -> Option<Duration> {
        let proposed_ms = self.newest().head().timestamp_ms;
        let age = Duration::from_millis((self.clock)().saturating_sub(proposed_ms));
        let limit = HALTED_AFTER.max(self.block_time.saturating_mul(HALTED_BLOCKS));
        (age > limit).then_some(age)
    }

    /// The newest state that any validator has reached, whether it runs or not.
    pub fn newest(&self) -> State {
        let slots = self.slots();
        let heads = slots.iter().map(|slot| slot.head());
        heads.max_by_key(State::height).expect("a backend has a validator")
    }
}
