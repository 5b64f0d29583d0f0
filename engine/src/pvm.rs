//! The interface to a machine that runs actors in Python (spec pvm.md).
//!
//! The engine knows no such machine: the transition gets one as an argument and calls it. A call
//! loads the actor's source in a fresh instance and runs one handler. The handler's host functions
//! come back to the engine as calls of [`PvmHost`], and take effect at once; the engine undoes them
//! if the call fails.
//!
//! Work is counted in fuel. The machine counts what the instance burns, and [`PvmHost`] takes the
//! price of each host function from the same [`Fuel`].

use crate::primitives::{Address, Hash, Height, Wei};
use std::fmt;

/// A machine that runs actors in Python. The outcome of a call depends on its arguments, the
/// answers of the host, and [`tuple`](Self::tuple) alone.
pub trait Pvm: Send + Sync + fmt::Debug {
    /// Everything that results and fuel depend on: the artifact, the version of wasmtime, its
    /// flags and limits. Nodes of a chain have the same.
    fn tuple(&self) -> Hash;

    /// Loads a module and runs nothing of it, to see whether it loads. The result is empty.
    fn load(&self, source: &str, fuel: u64) -> PvmOutcome;

    /// Loads `call.source` and runs a handler. `call.fuel` covers instantiation, loading and the
    /// handler.
    fn call(&self, call: &PvmCall<'_>, host: &mut dyn PvmHost) -> PvmOutcome;
}

/// A call of a handler.
#[derive(Clone, Copy, Debug)]
pub struct PvmCall<'a> {
    pub source: &'a str,
    /// A function of the module, or a method of its only actor class.
    pub handler: &'a str,
    pub payload: &'a [u8],
    pub fuel: u64,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PvmOutcome {
    /// Fuel used, at most that of the call. A call that was stopped has used all of it.
    pub fuel: u64,
    /// What the handler returned; empty for `None`.
    pub result: Result<Vec<u8>, PvmFailure>,
}

/// Why a call failed. All its effects are undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PvmFailure {
    #[error(transparent)]
    Raised(Box<Raised>),
    #[error("OutOfCycles: the call used all of its fuel")]
    OutOfFuel,
    /// A trap. The text is fixed, because the point at which compiled code stops may differ.
    #[error("Stopped: the machine stopped the call")]
    Stopped,
}

/// An exception that a handler, or the module while it was loaded, did not catch. Every part is
/// cut to a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The exception's class.
    pub kind: String,
    pub message: String,
    /// The SDK's `ERROR_SLUG`, such as `E1230`.
    pub slug: Option<String>,
    pub why: Option<String>,
    pub fix: Option<String>,
    pub traceback: String,
}

impl PvmFailure {
    /// What an actor sees of the failure of another that it called: without hints and places.
    pub fn headline(&self) -> String {
        match self {
            Self::Raised(raised) => raised.headline(),
            other => other.to_string(),
        }
    }
}

impl Raised {
    /// The exception without hints and places.
    pub fn headline(&self) -> String {
        format!("{}: {}", self.kind, self.message)
    }
}

/// `KIND: MESSAGE (SLUG)`, then a line each for why, fix, and the places of the traceback.
impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, message, slug, why, fix, traceback } = self;
        write!(f, "{kind}: {message}")?;
        if let Some(slug) = slug {
            write!(f, " ({slug})")?;
        }
        for (name, hint) in [("why", why), ("fix", fix)] {
            if let Some(hint) = hint {
                write!(f, "\n  {name}: {hint}")?;
            }
        }
        traceback.lines().try_for_each(|place| write!(f, "\n  at {place}"))
    }
}

impl std::error::Error for Raised {}

/// Fuel left for a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Fuel(pub u64);

impl Fuel {
    pub fn pay(&mut self, price: u64) -> Result<(), HostFault> {
        match self.0.checked_sub(price) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(HostFault::OutOfFuel)
            }
        }
    }
}

/// Why a host function gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// The call ends with [`PvmFailure::OutOfFuel`].
    OutOfFuel,
    /// The handler sees a `HostError` and may go on.
    Refused(HostRefusal),
}

impl HostFault {
    pub fn refused(code: HostCode, message: impl Into<String>) -> Self {
        Self::Refused(HostRefusal { code, message: message.into() })
    }
}

/// A `HostError` as Python sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRefusal {
    pub code: HostCode,
    pub message: String,
}

/// The codes of `HostError` (pvm.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCode {
    OutOfGas = 1,
    InvalidInput = 2,
    NotFound = 3,
    StorageError = 4,
    Forbidden = 5,
    Internal = 6,
    MissingEntitlement = 7,
    Quota = 8,
}

impl HostCode {
    /// The `name` of the `HostError`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfGas => "out_of_gas",
            Self::InvalidInput => "invalid_input",
            Self::NotFound => "not_found",
            Self::StorageError => "storage_error",
            Self::Forbidden => "forbidden",
            Self::Internal => "internal",
            Self::MissingEntitlement => "missing_entitlement",
            Self::Quota => "quota",
        }
    }
}

/// What `context()` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PvmContext {
    /// The transaction, the timer or the job that caused the call.
    pub tx_hash: Hash,
    pub sender: Address,
    pub actor: Address,
    pub height: Height,
    pub timestamp_ms: u64,
    pub chain_id: u64,
    pub chain_instance_id: Hash,
}

/// The arguments of `call_actor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorCall {
    pub target: Address,
    pub handler: String,
    pub payload: Vec<u8>,
    /// In cycles; 0: all that is left.
    pub cycles_limit: u64,
    /// In cells; 0: all that is left.
    pub access_limit: u64,
}

/// The arguments of `schedule_timer` and `schedule_timer_ex`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerOrder {
    pub height: Height,
    pub payload: Vec<u8>,
    pub fee_payer: Option<Address>,
    pub gas_limit: Option<u64>,
    pub access_limit: Option<u64>,
    pub expires_at: Option<Height>,
}

/// Maximum number of entries that `scan_state_prefix` gives.
pub const MAX_SCAN: u64 = 1_000;

/// Keys and values of an actor's store.
pub type StateEntries = Vec<(Vec<u8>, Vec<u8>)>;

/// The host functions of a call (pvm.md §3). Each pays its price first.
pub trait PvmHost {
    fn context(&mut self, fuel: &mut Fuel) -> Result<PvmContext, HostFault>;
    fn actor_owner(&mut self, fuel: &mut Fuel) -> Result<Address, HostFault>;

    fn get_state(&mut self, fuel: &mut Fuel, key: &[u8]) -> Result<Option<Vec<u8>>, HostFault>;
    fn set_state(&mut self, fuel: &mut Fuel, key: &[u8], value: Vec<u8>) -> Result<(), HostFault>;
    fn delete_state(&mut self, fuel: &mut Fuel, key: &[u8]) -> Result<(), HostFault>;
    /// Sets `__INITIALIZED__`, and no other key.
    fn set_reserved_state(
        &mut self,
        fuel: &mut Fuel,
        key: &[u8],
        value: Vec<u8>,
    ) -> Result<(), HostFault>;
    /// Entries whose key begins with `prefix`, in ascending order of the keys.
    fn scan_state_prefix(
        &mut self,
        fuel: &mut Fuel,
        prefix: &[u8],
        limit: u64,
    ) -> Result<StateEntries, HostFault>;

    fn keccak256(&mut self, fuel: &mut Fuel, data: &[u8]) -> Result<Hash, HostFault>;
    fn randomness(&mut self, fuel: &mut Fuel, domain: &[u8]) -> Result<Hash, HostFault>;
    /// Scheme 2 is strict Ed25519.
    fn verify_signature(
        &mut self,
        fuel: &mut Fuel,
        scheme: u64,
        key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<bool, HostFault>;
    fn charge_gas(&mut self, fuel: &mut Fuel, cycles: u64) -> Result<(), HostFault>;

    fn send_message(
        &mut self,
        fuel: &mut Fuel,
        target: Address,
        payload: Vec<u8>,
    ) -> Result<(), HostFault>;
    /// Emits an event and returns its number in the transaction, from 1.
    fn emit_event(
        &mut self,
        fuel: &mut Fuel,
        name: &str,
        data: Vec<u8>,
        schema: Option<Hash>,
    ) -> Result<u64, HostFault>;
    fn transfer_balance(
        &mut self,
        fuel: &mut Fuel,
        to: Address,
        amount: Wei,
    ) -> Result<(), HostFault>;
    /// Calls another actor in the same transaction. Its fuel is the caller's.
    fn call_actor(&mut self, fuel: &mut Fuel, call: ActorCall) -> Result<Vec<u8>, HostFault>;

    fn schedule_timer(&mut self, fuel: &mut Fuel, timer: TimerOrder) -> Result<Hash, HostFault>;
    /// Does nothing if there is no such timer.
    fn cancel_timer(&mut self, fuel: &mut Fuel, id: Hash) -> Result<(), HostFault>;
    /// Does nothing if there is no such timer.
    fn extend_timer(&mut self, fuel: &mut Fuel, id: Hash, until: Height) -> Result<(), HostFault>;

    fn token(&mut self, fuel: &mut Fuel, call: TokenCall) -> Result<TokenAnswer, HostFault>;
}

/// A call of one of the `token_…` functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenCall {
    Create {
        name: String,
        symbol: String,
        decimals: u64,
        initial_supply: u128,
        max_supply: Option<u128>,
        /// Asked before each transfer.
        transfer_hook: Option<Address>,
        metadata_uri: Option<String>,
    },
    Transfer {
        token: Hash,
        to: Address,
        amount: u128,
    },
    TransferFrom {
        token: Hash,
        from: Address,
        to: Address,
        amount: u128,
    },
    Approve {
        token: Hash,
        spender: Address,
        amount: u128,
    },
    Mint {
        token: Hash,
        to: Address,
        amount: u128,
    },
    Burn {
        token: Hash,
        amount: u128,
    },
    BalanceOf {
        token: Hash,
        account: Address,
    },
    TotalSupply {
        token: Hash,
    },
    Allowance {
        token: Hash,
        owner: Address,
        spender: Address,
    },
}

/// What a `token_…` function gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAnswer {
    /// The id of a token that was created.
    Created(Hash),
    /// Absent if there is no such token.
    Amount(Option<u128>),
    Done,
}
