//! The API's source of data, and its interface to the process that runs the devnet.
//!
//! That process creates one [`Backend`], tells each [`ValidatorSlot`] when its validator starts
//! ([`ValidatorSlot::set_running`]) and stops ([`ValidatorSlot::set_stopped`]), and reports whether
//! runners run ([`Backend::set_runner_running`]). The API starts and stops nothing by itself: it
//! calls [`Hooks`].

mod hooks;
mod names;
mod slot;

pub use hooks::{
    Hooks, Membership, MembershipError, MembershipHook, PeersHook, SaveError, SaveHook,
    Speculation, SteerHook, Switch, SwitchHook, UpgradeError, UpgradeHook,
};
pub use names::NodeNames;
pub use slot::{
    NodeAccess, NodeProcess, ObservedDispatch, ReportedProgress, Running, ValidatorSlot,
};

use super::{error::ApiError, labels::Labels, lane_metrics::LaneMetrics};
use crate::{
    consensus::{
        scheme::{Committee, CommitteeError},
        timing::FastForward,
    },
    faults::Faults,
    types::NamedKind,
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{Block, Genesis, GenesisError, GenesisValidator, State},
    primitives::{Address, Hash, Height},
};
use futures::{FutureExt as _, future::select_all};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;

/// A chain has halted when its newest block is older than this
const HALTED_AFTER: Duration = Duration::from_secs(10);
/// and older than this number of block times: several absent leaders in a row delay it by less.
const HALTED_BLOCKS: u32 = 10;

/// Maximum number of accounts with a name, because every list of accounts contains all of them.
const MOST_ACCOUNTS: usize = 2_000;

/// Returns the time in Unix milliseconds.
pub type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// Everything that [`Backend::new`] takes.
pub struct BackendConfig {
    pub name: String,
    pub genesis: Genesis,
    pub block_time: Duration,
    pub clock: Clock,
    pub pid: u32,
    pub started_at: Timestamp,
    /// The token that a request that changes state must show.
    pub token: String,
    /// Names and addresses of accounts, in the order in which they are listed.
    pub accounts: Vec<(String, Address)>,
    pub validators: Vec<(String, GenesisValidator)>,
    pub runners: Vec<(String, Address)>,
    /// Validators and runners of the chain that other processes run.
    pub elsewhere: Elsewhere,
    /// Names that users gave. An actor's name can be used wherever its address can.
    pub labels: Labels,
    /// Whether the API also answers under the paths that tools of the ecosystem know.
    pub compat: bool,
    pub faults: Faults,
    pub hooks: Hooks,
    pub speculation: Option<Arc<dyn Speculation>>,
}

/// Names and addresses of nodes that other processes run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elsewhere {
    pub validators: Vec<(String, Address)>,
    pub runners: Vec<(String, Address)>,
}

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    #[error("a devnet needs a validator")]
    NoValidators,
}

/// All data of the API, shared with the process that runs the devnet.
pub struct Backend {
    pub(in crate::api) name: String,
    pub(in crate::api) chain_id: u64,
    pub(in crate::api) genesis: Block,
    pub(in crate::api) genesis_hash: Hash,
    pub(in crate::api) genesis_root: Hash,
    pub(in crate::api) block_time: Duration,
    clock: Clock,
    pub(in crate::api) pid: u32,
    pub(in crate::api) started_at: Timestamp,
    pub(in crate::api) token: String,
    pub(in crate::api) compat: bool,
    pub(in crate::api) names: NodeNames,
    accounts: Mutex<Vec<Address>>,
    pub(in crate::api) hooks: Hooks,
    speculation: Option<Arc<dyn Speculation>>,
    pub(in crate::api) labels: Labels,
    faults: Faults,
    fast_forward: FastForward,
    slots: watch::Sender<Vec<Arc<ValidatorSlot>>>,
    begun: Arc<OnceLock<Height>>,
    pub(in crate::api) lane: LaneMetrics,
    runners: BTreeMap<Address, AtomicBool>,
    elsewhere: Vec<(String, Address)>,
    /// Held while a transaction is submitted, so that only one of two identical ones counts as new.
    pub(in crate::api) submissions: Mutex<()>,
}

impl Backend {
    /// Creates a backend with all validators and runners stopped.
    pub fn new(config: BackendConfig) -> Result<Self, BackendError> {
        let state = config.genesis.state()?;
        let genesis = config.genesis.block()?;
        Committee::of(state.chain_id(), &config.genesis.validators)?;
        let names = NodeNames::default();
        let Elsewhere { validators, runners } = &config.elsewhere;
        let nodes = config.runners.iter().chain(validators).chain(runners);
        for (name, address) in config.accounts.iter().chain(nodes) {
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
            compat: config.compat,
            faults: config.faults,
            fast_forward: FastForward::default(),
            slots: watch::Sender::new(slots),
            begun,
            lane: LaneMetrics::new(),
            runners: config.runners.into_iter().map(|(_, a)| (a, AtomicBool::new(false))).collect(),
            elsewhere: config.elsewhere.validators,
            submissions: Mutex::default(),
        })
    }

    /// The accounts with a name, in the order in which they are listed.
    pub(in crate::api) fn accounts(&self) -> Vec<Address> {
        self.accounts.lock().clone()
    }

    pub(in crate::api) fn is_account(&self, name: &str) -> bool {
        let address = self.names.named(name);
        address.is_some_and(|address| self.accounts.lock().contains(&address))
    }

    /// Gives an account a name and adds it to the list; a conflict if another address has the name.
    pub(in crate::api) fn add_account(&self, name: &str, address: Address) -> Result<(), ApiError> {
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

    pub fn running(&self) -> Vec<Running> {
        self.slots.borrow().iter().filter_map(|slot| slot.running()).collect()
    }

    /// The address of an account or a node, by its name or as text.
    pub fn address_of(&self, text: &str) -> Option<Address> {
        self.names.resolve(text)
    }

    /// The name of an account or a node, if it has one.
    pub fn name_of(&self, address: &Address) -> Option<String> {
        self.names.get(address)
    }

    pub fn slot(&self, name: &str) -> Option<Arc<ValidatorSlot>> {
        self.slots.borrow().iter().find(|slot| slot.name() == name).cloned()
    }

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
        self.slots.send_modify(|slots| slots.retain(|slot| slot.name() != name));
    }

    /// The height from which the first validator of this process started; genesis before that.
    pub(in crate::api) fn begun(&self) -> Height {
        self.begun.get().copied().unwrap_or(Height::GENESIS)
    }

    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    pub const fn fast_forward(&self) -> &FastForward {
        &self.fast_forward
    }

    pub(in crate::api) const fn speculation(&self) -> Option<&Arc<dyn Speculation>> {
        self.speculation.as_ref()
    }

    pub(in crate::api) fn runners(&self) -> impl Iterator<Item = String> {
        self.runners.keys().map(|address| self.names.of(address))
    }

    /// Names and addresses of the validators that other processes run.
    pub(in crate::api) fn elsewhere(&self) -> &[(String, Address)] {
        &self.elsewhere
    }

    /// Records whether a runner of this process runs. Other addresses are ignored.
    pub fn set_runner_running(&self, runner: &Address, running: bool) {
        if let Some(flag) = self.runners.get(runner) {
            flag.store(running, Ordering::Relaxed);
        }
    }

    /// Whether a runner of this process runs; `None` if it does not belong to this process.
    pub(in crate::api) fn runner_runs(&self, runner: &Address) -> Option<bool> {
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
    pub(in crate::api) fn halted(&self) -> Option<Duration> {
        let proposed_ms = self.newest().proposed_ms();
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
