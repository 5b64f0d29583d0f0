//! The chain that a module's tests control: it runs their calls as transactions, adds blocks, and
//! reports what timers did.

use super::{
    effect::{Effect, World},
    error::{Error, Fault},
    gas::{Budget, Usage},
};
use crate::primitives::{Address, Hash, Height, Wei, keccak256};

/// A chain under test. As a [`World`], it is the world of the tested actor.
pub trait Chain: World {
    fn height(&self) -> Height;
    fn timestamp_ms(&self) -> u64;
    fn most(&self) -> Budget;
    /// Applies effects that the test asked for outside of calls, as a call of the tested actor.
    fn apply(&mut self, effects: Vec<Effect>, budget: Budget) -> Ran;
    /// Calls the tested actor as a transaction does.
    fn call(&mut self, call: TestCall, budget: Budget) -> Ran;
    /// Adds a block without transactions.
    fn advance(&mut self) -> Advanced;
    fn fund(&mut self, account: Address, amount: Wei) -> Result<(), String>;
    fn deploy(&mut self, at: Address, source: &str, budget: Budget) -> Ran;
    fn set_policy(&mut self, name: &str) -> Result<(), String>;
    /// Charges for cycles and cells from now on, at the prices of a new chain.
    fn charge(&mut self);
    /// Timers that have not fired, in the order in which they were scheduled.
    fn timers(&self) -> Vec<Waiting>;
}

/// A call of the tested actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCall {
    pub sender: Address,
    pub handler: String,
    pub payload: Vec<u8>,
    pub value: Wei,
    /// Wei that timers scheduled by the call may take from the sender.
    pub timer_allowance: Wei,
}

/// How a call on a chain under test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The total, messages included.
    pub usage: Usage,
    /// The handler's return value as JSON, or why the call was undone.
    pub result: Result<Vec<u8>, Error>,
    /// Effects of the tested actor, except writes to its store; empty if the call failed.
    pub effects: Vec<Effect>,
    pub log: Vec<String>,
}

/// The result of a block on a chain under test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advanced {
    /// Usage of the block's timers, their agents, and callbacks of jobs.
    pub usage: Usage,
    /// Timers that fired or were removed.
    pub fires: Vec<Fired>,
    pub failed_callbacks: Vec<String>,
    /// Effects of the tested actor, except writes to its store.
    pub effects: Vec<Effect>,
    pub log: Vec<String>,
}

/// The answer of a gas bidding agent, in wei per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestBid {
    pub max_fee_per_cycle: Wei,
    /// The maximum for the proposer.
    pub max_priority_fee_per_cycle: Wei,
    /// Whether the agent failed and this is the default bid.
    pub failed: bool,
}

/// How a timer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Fired,
    Failed,
    Expired,
    Unpaid,
}

impl Ending {
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
    pub timer_id: Hash,
    pub actor: Address,
    /// Empty if no handler was called.
    pub handler: String,
    pub height: Height,
    pub ending: Ending,
    /// Why it did not fire or its handler failed; otherwise empty.
    pub error: String,
    pub cycles: u64,
    pub cells: u64,
    /// Wei per cycle that the proposer got.
    pub priority_per_cycle: Wei,
    pub charged: Wei,
    /// The agent's answer in this block.
    pub bid: Option<TestBid>,
}

/// A timer that has not fired yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub timer_id: Hash,
    pub actor: Address,
    pub height: Height,
    /// The last height at which it may fire.
    pub expires_at: Height,
    pub payload: Vec<u8>,
    pub handler: String,
    pub fee_payer: Address,
    pub gas_limit: u64,
    pub cell_limit: u64,
    pub max_fee_per_cycle: Wei,
    pub max_priority_fee_per_cycle: Wei,
    pub gba: Option<Address>,
    /// The agent's last answer.
    pub bid: Option<TestBid>,
}

/// The address of the test account `name`. The tested actor is `self`, and the sender of calls is
/// `sender`.
pub fn account(name: &str) -> Address {
    Address::of_digest(&keccak256(&[b"mock-account", name.as_bytes()]))
}

/// The fault of a test whose call failed. The caller still has to add the place of the call.
pub(super) fn within(error: Error) -> Fault {
    Error { at: None, ..error }.into()
}
