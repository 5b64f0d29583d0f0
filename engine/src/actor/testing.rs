//! The chain that a module's tests move: it runs their calls as transactions, goes on by blocks,
//! and says what timers did.

use super::{
    effect::{Effect, World},
    error::{Error, Fault},
    gas::{Budget, Usage},
};
use crate::primitives::{Address, Hash, Height, Wei, keccak256};

/// A chain under test. What it reads as a [`World`] is what the tested actor sees.
pub trait Chain: World {
    /// Height of the newest block.
    fn height(&self) -> Height;
    /// Its timestamp, Unix ms.
    fn timestamp_ms(&self) -> u64;
    /// What a call may use at most.
    fn most(&self) -> Budget;
    /// Does what the test asked for outside of calls, as a call of the tested actor.
    fn apply(&mut self, effects: Vec<Effect>, budget: Budget) -> Ran;
    /// Calls the tested actor as a transaction does.
    fn call(&mut self, call: TestCall, budget: Budget) -> Ran;
    /// Adds a block without transactions.
    fn advance(&mut self) -> Advanced;
    /// Gives an account money.
    fn fund(&mut self, account: Address, amount: Wei) -> Result<(), String>;
    /// Puts an actor with this source at an address.
    fn deploy(&mut self, at: Address, source: &str, budget: Budget) -> Ran;
    /// Sets the timer policy by its name.
    fn set_policy(&mut self, name: &str) -> Result<(), String>;
    /// From now on cycles and cells cost what they cost on a new chain.
    fn charge(&mut self);
    /// Timers that have not fired, in the order in which they were scheduled.
    fn timers(&self) -> Vec<Waiting>;
}

/// A call of the tested actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCall {
    /// Who calls.
    pub sender: Address,
    /// The handler's name.
    pub handler: String,
    /// What it is given.
    pub payload: Vec<u8>,
    /// Wei that go with it.
    pub value: Wei,
    /// What timers that it schedules may take from the sender, in wei.
    pub timer_allowance: Wei,
}

/// How a call on a chain under test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// What all of it used, messages included.
    pub usage: Usage,
    /// What the handler returned, as JSON; or why nothing that it did is left.
    pub result: Result<Vec<u8>, Error>,
    /// What the tested actor asked for, but for writes to its store; nothing where it failed.
    pub effects: Vec<Effect>,
    /// What actors printed and logged.
    pub log: Vec<String>,
}

/// What a block did on a chain under test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advanced {
    /// What its timers, their agents, and callbacks of jobs used.
    pub usage: Usage,
    /// Timers that fired or were removed.
    pub fires: Vec<Fired>,
    /// Why callbacks of jobs failed.
    pub failed_callbacks: Vec<String>,
    /// What the tested actor asked for, but for writes to its store.
    pub effects: Vec<Effect>,
    /// What actors printed and logged.
    pub log: Vec<String>,
}

/// What a gas bidding agent answered, in wei per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestBid {
    /// The most, in all.
    pub max_fee_per_cycle: Wei,
    /// The most for the proposer.
    pub max_priority_fee_per_cycle: Wei,
    /// Whether the agent failed, and this is the default bid.
    pub failed: bool,
}

/// How a timer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its handler ran.
    Fired,
    /// Its handler failed.
    Failed,
    /// Its time had passed.
    Expired,
    /// Its payer could not pay.
    Unpaid,
}

impl Ending {
    /// As tests read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Unpaid => "unpaid",
        }
    }
}

/// A timer that fired or was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The timer.
    pub timer_id: Hash,
    /// Its owner.
    pub actor: Address,
    /// The handler; empty where none was called.
    pub handler: String,
    /// The block.
    pub height: Height,
    /// How it ended.
    pub ending: Ending,
    /// Why, where it did not fire; empty otherwise.
    pub error: String,
    /// Cycles paid for.
    pub cycles: u64,
    /// Cells paid for.
    pub cells: u64,
    /// What the proposer got, in wei per cycle.
    pub priority_per_cycle: Wei,
    /// What the payer paid for the fire.
    pub charged: Wei,
    /// What its agent answered in this block.
    pub bid: Option<TestBid>,
}

/// A timer that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The timer.
    pub timer_id: Hash,
    /// Its owner.
    pub actor: Address,
    /// When it is due.
    pub height: Height,
    /// The last height at which it may fire.
    pub expires_at: Height,
    /// What its handler is given.
    pub payload: Vec<u8>,
    /// The handler that it calls.
    pub handler: String,
    /// Who pays.
    pub fee_payer: Address,
    /// Cycles that its fire may use.
    pub gas_limit: u64,
    /// Cells that its fire may use.
    pub cell_limit: u64,
    /// Most wei per cycle.
    pub max_fee_per_cycle: Wei,
    /// Most wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: Wei,
    /// Its agent.
    pub gba: Option<Address>,
    /// What that answered last.
    pub bid: Option<TestBid>,
}

/// The address of a test's account. The tested actor is at `self`, calls come from `sender`.
pub fn account(name: &str) -> Address {
    let hash = keccak256(&[b"mock-account", name.as_bytes()]);
    let mut address = [0; 20];
    address.copy_from_slice(&hash.0[12..]);
    Address(address)
}

/// The fault of a test whose call failed: where the call was made is still to be added.
pub(super) fn within(error: Error) -> Fault {
    Error { at: None, ..error }.into()
}
