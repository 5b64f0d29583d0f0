//! Timers: schedule and outcome, and why they wait.

use super::{AddressText, AmountText, BytesText, Event, HashText, same};
use cowboy_engine::{names, timer::TimerPlace};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Which timers `GET /v1/timers` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TimerQuery {
    /// Only timers of this actor, by its address or enough of the beginning of it.
    pub actor: Option<String>,
    /// Only timers that this account or actor pays for, by name or address.
    pub payer: Option<String>,
    /// Only timers with this status (default: those that wait, `scheduled` and `due`).
    pub status: Option<TimerStatus>,
    /// Whether to list ended timers too, after those that wait, the newest end first.
    pub all: Option<bool>,
    /// The maximum number of timers (default 100, at most 10,000).
    pub limit: Option<usize>,
}

/// The status of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerStatus {
    /// Its height has not come yet.
    Scheduled,
    /// Its height has come, and it waits for its turn.
    Due,
    /// Its handler ran and succeeded.
    Fired,
    /// Its handler ran and failed; the fire was paid for.
    Failed,
    /// It expired before it could fire.
    Expired,
    /// An authorized account or actor cancelled it.
    Cancelled,
    /// It was removed because its payer could not pay, or had not promised enough.
    InsufficientFunds,
}

names!(TimerStatus:
    Scheduled = "scheduled",
    Due = "due",
    Fired = "fired",
    Failed = "failed",
    Expired = "expired",
    Cancelled = "cancelled",
    InsufficientFunds = "insufficient_funds",
);

/// The tier of the calendar queue that holds a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerTier {
    /// The block ring.
    Ring,
    /// An epoch's bucket.
    Epoch,
    /// The overflow tree.
    Overflow,
    /// Due and carried over.
    CarryOver,
}

same!(TimerTier = TimerPlace: Ring, Epoch, Overflow, CarryOver);

/// A timer in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerSummary {
    /// Its id.
    pub timer_id: HashText,
    /// Its name, where it was given one.
    pub name: Option<String>,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// The owner's name, where the devnet knows one.
    pub actor_name: Option<String>,
    /// The height at which it is due.
    pub height: u64,
    /// The last height at which it may fire.
    pub expires_at: u64,
    /// The handler.
    pub handler: String,
    /// Its status.
    pub status: TimerStatus,
    /// The queue's tier that holds it; absent once it has ended.
    pub tier: Option<TimerTier>,
    /// The height at which it fired.
    pub fired_at: Option<u64>,
    /// The account or actor that pays.
    pub fee_payer: AddressText,
    /// Cycles that a fire may use.
    pub gas_limit: u64,
    /// Cells that a fire may use.
    pub cell_limit: u64,
    /// Maximum wei per cycle.
    pub max_fee_per_cycle: AmountText,
    /// Maximum wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: AmountText,
}

/// A timer with its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timer {
    /// Its id.
    pub timer_id: HashText,
    /// Its name, where it was given one.
    pub name: Option<String>,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// The owner's name, where the devnet knows one.
    pub actor_name: Option<String>,
    /// The height at which it is due.
    pub height: u64,
    /// The queue's tier that holds it; absent once it has ended.
    pub tier: Option<TimerTier>,
    /// Its status.
    pub status: TimerStatus,
    /// The height at which it was scheduled.
    pub scheduled_at: u64,
    /// The last height at which it may fire.
    pub expires_at: u64,
    /// The height at which it fired.
    pub fired_at: Option<u64>,
    /// The height at which it ended, whether or not it fired.
    pub ended_at: Option<u64>,
    /// The handler.
    pub handler: String,
    /// The handler's argument.
    pub payload: BytesText,
    /// The payload as text, when it is UTF-8.
    pub payload_text: Option<String>,
    /// The account or actor that pays.
    pub fee_payer: AddressText,
    /// Cycles that a fire may use.
    pub gas_limit: u64,
    /// Cells that a fire may use.
    pub cell_limit: u64,
    /// The most wei that the fire may ever cost its payer; absent when the actor itself pays,
    /// because then only the prices of the fire's block bound the cost.
    pub promised: Option<AmountText>,
    /// Maximum wei per cycle.
    pub max_fee_per_cycle: AmountText,
    /// Maximum wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: AmountText,
    /// The gas bidding agent that is asked for a bid when it is due.
    pub gba: Option<AddressText>,
    /// The agent's last answer, which a fire used; absent until the agent is asked.
    pub bid: Option<TimerBid>,
    /// The most wei that a fire costs at the prices of the next block; absent once it has ended,
    /// and while its cap does not cover the price.
    pub max_cost: Option<AmountText>,
    /// The payer's balance in wei.
    pub payer_balance: AmountText,
    /// The reasons why it did not fire in blocks in which it was due, oldest first: for the last
    /// 10,000 such blocks, and at most the newest 1,000 runs.
    pub deferrals: Vec<Deferral>,
    /// The number of blocks in which it was due and did not fire.
    pub deferred_blocks: u64,
    /// The use of the payer's money; absent when it did not fire.
    pub charged: Option<TimerCharge>,
    /// Cycles paid for; absent when it did not fire.
    pub cycles: Option<u64>,
    /// Cells paid for; absent when it did not fire.
    pub cells: Option<u64>,
    /// The handler's return value; absent when it did not fire, failed or returned nothing.
    pub result: Option<Value>,
    /// The same as bytes, if the actor is in Python and returned any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<BytesText>,
    /// Why the handler failed.
    pub error: Option<String>,
    /// Lines logged and printed during the fire.
    pub log: Vec<String>,
    /// Events about it and from its fire, oldest first: the newest 1,000.
    pub events: Vec<Event>,
}

/// The answer of a gas bidding agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerBid {
    /// Maximum wei per cycle.
    pub max_fee_per_cycle: AmountText,
    /// Maximum wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: AmountText,
    /// Whether the agent failed, so that this is the default bid of that block.
    pub failed: bool,
}

/// The use of the money set aside for a fire, in wei.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerCharge {
    /// The cycle basefee, burned.
    pub burned_cycle: AmountText,
    /// The lane basefee, burned.
    pub burned_lane: AmountText,
    /// The priority, paid to the proposer.
    pub tip: AmountText,
    /// The cell basefee, burned.
    pub cells: AmountText,
    /// The unused rest, returned to the payer.
    pub refunded: AmountText,
}

/// Why a due timer did not fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeferralReason {
    /// Its fee cap is below the price of a cycle.
    PricedOut,
    /// It asks for more cycles than a fire may get under the policy, or for more cells than the
    /// lane has.
    OverCap,
    /// Other timers came first and left too few cycles or cells.
    LaneFull,
    /// There was room, but its payer could not cover the maximum cost. Under `gba-auction` it waits
    /// for funds; under other policies it waits until the GC budget reaches it.
    InsufficientFunds,
    /// It has expired and the GC budget has not reached it yet.
    GcWaiting,
}

/// Consecutive blocks in which a due timer did not fire for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deferral {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// The reason.
    pub reason: DeferralReason,
    /// The reason in words, with the figures of the last block.
    pub explanation: String,
}

/// The calendar queue, tier by tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerQueue {
    /// The block after which this is the state.
    pub height: u64,
    /// The epoch of that block.
    pub epoch: u64,
    /// Blocks per epoch.
    pub epoch_blocks: u64,
    /// The queue's hash, part of the state root.
    pub root: HashText,
    /// The number of all timers.
    pub timers: u64,
    /// The block ring: heights with timers, ascending.
    pub ring: Vec<TimerBucket>,
    /// The epoch queue: epochs with timers, ascending.
    pub epochs: Vec<TimerBucket>,
    /// Timers in the overflow tree.
    pub overflow: u64,
    /// Timers that are due and carried over.
    pub carry_over: u64,
}

/// A bucket of the calendar queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerBucket {
    /// The height or the epoch of the bucket.
    pub at: u64,
    /// The number of timers in it.
    pub timers: u64,
}
