//! What the API answers from, and how the process that runs the devnet feeds it.
//!
//! Whoever runs the devnet makes one [`Backend`], tells each [`ValidatorSlot`] when its validator
//! starts ([`ValidatorSlot::set_running`]) and stops ([`ValidatorSlot::set_stopped`]), and whether
//! runners run ([`Backend::set_runner_running`]). The API starts and stops nothing by itself: it
//! calls [`Hooks`].

use super::types::Text;
use crate::{
    chain::{ledger::Ledger, mempool::Mempool},
    consensus::scheme::Committee,
    validator::node::{self, StartError},
};
use cowboy_engine::{
    chain::{Block, Genesis, GenesisError, State, Validator},
    primitives::{Address, Hash, Height},
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
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// What a request wants a validator to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Run.
    Start,
    /// Stop, cleanly.
    Stop,
}

/// Starts or stops the validator of this name; resolves once that is done and the slot says so,
/// or with the reason why not.
pub type SwitchHook =
    Box<dyn Fn(&str, Switch) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// What the API asks of the process that runs the devnet.
pub struct Hooks {
    /// Starts and stops validators. Called for one validator at a time at most once at a time.
    pub switch: SwitchHook,
    /// Begins to stop the devnet, and returns at once. May be called again.
    pub shutdown: Box<dyn Fn() + Send + Sync>,
}

/// What a backend is made from.
pub struct Config {
    /// The devnet's name.
    pub name: String,
    /// The chain's genesis document.
    pub genesis: Genesis,
    /// The pace of blocks.
    pub block_time: Duration,
    /// The process that runs the devnet.
    pub pid: u32,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// What a request that changes state must show.
    pub token: String,
    /// Names and addresses of accounts, in the order in which they are listed.
    pub accounts: Vec<(String, Address)>,
    /// Names and addresses of validators: each is in the genesis document.
    pub validators: Vec<(String, Address)>,
    /// Names and addresses of the runners that the process runs.
    pub runners: Vec<(String, Address)>,
    /// What the API asks of the process.
    pub hooks: Hooks,
}

/// Why a configuration makes no backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The genesis document starts no chain.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// Its validators are no committee.
    #[error(transparent)]
    Committee(#[from] StartError),
    /// Nobody to answer from.
    #[error("a devnet needs a validator")]
    NoValidators,
    /// A validator that the chain does not have.
    #[error("validator `{name}` ({address}) is not in the genesis document")]
    UnknownValidator {
        /// Its name.
        name: String,
        /// Its address.
        address: Address,
    },
}

/// The names of a devnet's accounts and nodes. Addresses without one stand for themselves.
#[derive(Debug, Default)]
pub struct Names {
    by_address: BTreeMap<Address, String>,
    by_name: BTreeMap<String, Address>,
}

impl Names {
    fn insert(&mut self, name: &str, address: Address) {
        self.by_address.insert(address, name.to_owned());
        self.by_name.insert(name.to_owned(), address);
    }

    /// The name of an address, if it has one.
    pub fn get(&self, address: &Address) -> Option<String> {
        self.by_address.get(address).cloned()
    }

    /// The name of an address, or the address.
    pub fn of(&self, address: &Address) -> String {
        self.get(address).unwrap_or_else(|| address.to_string())
    }

    /// The address that a name or an address stands for.
    pub fn resolve(&self, text: &str) -> Option<Address> {
        let named = self.by_name.get(text).copied();
        named.or_else(|| text.parse::<Text<Address>>().ok().map(|address| address.0))
    }
}

/// A runner's connection, as the validator at its other end sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The runner.
    pub runner: Address,
    /// Whether the validator counts it as present.
    pub locally_present: bool,
    /// The height of the last valid ping; `None` before the first.
    pub last_ping: Option<Height>,
}

/// A running validator.
#[derive(Clone)]
pub struct Running {
    /// Its chain.
    pub ledger: Ledger,
    /// Its mempool.
    pub mempool: Mempool,
    /// The authenticated connections of runners it holds.
    pub links: Arc<dyn Fn() -> Vec<Link> + Send + Sync>,
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
}

/// What a slot holds.
#[derive(Clone)]
enum Occupant {
    Running(Run),
    /// The state it stopped at: the genesis state before the first start.
    Stopped(State),
}

/// A validator's place in the API, whether it runs or not.
pub struct ValidatorSlot {
    name: String,
    identity: Validator,
    index: u32,
    occupant: watch::Sender<Occupant>,
    /// Held by the request that starts or stops it.
    pub(super) switching: Arc<tokio::sync::Mutex<()>>,
}

impl ValidatorSlot {
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

    /// The number that votes know it by: its place in ascending order of ed25519 keys.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The validator runs from now on: reads may be answered from it.
    pub fn set_running(&self, running: Running) {
        let from = running.ledger.head().height();
        self.occupant.send_replace(Occupant::Running(Run { running, from }));
    }

    /// The validator has stopped or failed: nothing of it is touched any more, event streams from
    /// it end.
    pub fn set_stopped(&self) {
        self.occupant.send_modify(|occupant| {
            if let Occupant::Running(run) = occupant {
                *occupant = Occupant::Stopped(run.running.ledger.head());
            }
        });
    }

    /// The validator, where it runs.
    pub fn running(&self) -> Option<Running> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.running.clone()),
            Occupant::Stopped(_) => None,
        }
    }

    /// The state after its newest stored block; the last one where it is stopped.
    pub fn head(&self) -> State {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.running.ledger.head(),
            Occupant::Stopped(state) => state.clone(),
        }
    }

    /// The height it started from, where it runs.
    pub(super) fn started_from(&self) -> Option<Height> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.from),
            Occupant::Stopped(_) => None,
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
    pub(super) genesis_runners: u32,
    pub(super) block_time: Duration,
    pub(super) pid: u32,
    pub(super) started_at: Timestamp,
    pub(super) token: String,
    pub(super) names: Names,
    pub(super) accounts: Vec<Address>,
    pub(super) committee: Committee,
    pub(super) hooks: Hooks,
    slots: Vec<ValidatorSlot>,
    runners: BTreeMap<Address, AtomicBool>,
}

impl Backend {
    /// A backend whose validators are all stopped and whose runners do not run.
    pub fn new(config: Config) -> Result<Self, BackendError> {
        let state = config.genesis.state()?;
        let genesis = config.genesis.block()?;
        let mut names = Names::default();
        for (name, address) in
            config.accounts.iter().chain(&config.validators).chain(&config.runners)
        {
            names.insert(name, *address);
        }
        if config.validators.is_empty() {
            return Err(BackendError::NoValidators);
        }
        let members = state.committee();
        let mut slots = Vec::with_capacity(config.validators.len());
        for (name, address) in &config.validators {
            let found = (0u32..).zip(&members).find(|(_, v)| v.pubkey.address() == *address);
            let (index, identity) = found.ok_or_else(|| BackendError::UnknownValidator {
                name: name.clone(),
                address: *address,
            })?;
            slots.push(ValidatorSlot {
                name: name.clone(),
                identity: (*identity).clone(),
                index,
                occupant: watch::Sender::new(Occupant::Stopped(state.clone())),
                switching: Arc::default(),
            });
        }
        Ok(Self {
            name: config.name,
            chain_id: state.chain_id(),
            genesis_hash: genesis.hash(),
            genesis_root: state.root(),
            genesis_runners: state.registry().order().len(),
            genesis,
            block_time: config.block_time,
            pid: config.pid,
            started_at: config.started_at,
            token: config.token,
            names,
            accounts: config.accounts.into_iter().map(|(_, address)| address).collect(),
            committee: node::committee(&config.genesis)?,
            hooks: config.hooks,
            slots,
            runners: config.runners.into_iter().map(|(_, a)| (a, AtomicBool::new(false))).collect(),
        })
    }

    /// The validators, in the order of the configuration.
    pub fn slots(&self) -> &[ValidatorSlot] {
        &self.slots
    }

    /// The validator of this name.
    pub fn slot(&self, name: &str) -> Option<&ValidatorSlot> {
        self.slots.iter().find(|slot| slot.name == name)
    }

    /// The validator of this address.
    pub fn slot_at(&self, address: &Address) -> Option<&ValidatorSlot> {
        self.slots.iter().find(|slot| slot.address() == *address)
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

    /// Resolves when any validator has started, stopped or was replaced since the call.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + 'static {
        let any = select_all(self.slots.iter().map(|slot| slot.changes().boxed()));
        async move {
            any.await;
        }
    }

    /// The newest state that any validator has reached, whether it runs or not.
    pub(super) fn newest(&self) -> State {
        let heads = self.slots.iter().map(ValidatorSlot::head);
        heads.max_by_key(State::height).expect("a backend has a validator")
    }
}
