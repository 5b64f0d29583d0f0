//! Timers: what is scheduled, what became of it, what the lane charges, who is favoured.

use super::{AddressText, AmountText, BytesText, Event, HashText};
use cowboy_engine::names;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use utoipa::{IntoParams, ToSchema};

/// Which timers `GET /v1/timers` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TimerQuery {
    /// Only timers of this actor, by its address or enough of the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Only timers that this account or actor pays for, by name or address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Only timers that stand so (default: those that wait, `scheduled` and `due`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TimerStatus>,
    /// Timers that have ended too, the newest end first, after those that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    /// How many at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Where a timer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerStatus {
    /// Its height is to come.
    Scheduled,
    /// Its height has come, and it waits for its turn.
    Due,
    /// Its handler ran and succeeded.
    Fired,
    /// Its handler ran and failed; it was paid for.
    Failed,
    /// Its time passed before it could fire.
    Expired,
    /// Somebody who may cancelled it.
    Cancelled,
    /// Its payer could not pay, or had not promised so much, so that it was removed.
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

/// Where the calendar queue has a timer.
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

/// A timer in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerSummary {
    /// Its id.
    pub timer_id: HashText,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// When it is due.
    pub height: u64,
    /// The last height at which it may fire.
    pub expires_at: u64,
    /// The handler.
    pub handler: String,
    /// Where it stands.
    pub status: TimerStatus,
    /// Where the queue has it; absent once it has ended.
    pub tier: Option<TimerTier>,
    /// When it fired.
    pub fired_at: Option<u64>,
    /// Who pays.
    pub fee_payer: AddressText,
    /// Cycles that a fire may use.
    pub gas_limit: u64,
    /// Cells that a fire may use.
    pub cell_limit: u64,
    /// Most wei per cycle.
    pub max_fee_per_cycle: AmountText,
    /// Most wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: AmountText,
}

/// A timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timer {
    /// Its id.
    pub timer_id: HashText,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// When it is due.
    pub height: u64,
    /// Where the queue has it; absent once it has ended.
    pub tier: Option<TimerTier>,
    /// Where it stands.
    pub status: TimerStatus,
    /// The height at which it was scheduled.
    pub scheduled_at: u64,
    /// The last height at which it may fire.
    pub expires_at: u64,
    /// The height at which it fired.
    pub fired_at: Option<u64>,
    /// The height at which it ended, in whichever way.
    pub ended_at: Option<u64>,
    /// The handler.
    pub handler: String,
    /// What the handler is given.
    pub payload: BytesText,
    /// The same as text, where it is some.
    pub payload_text: Option<String>,
    /// Who pays.
    pub fee_payer: AddressText,
    /// Cycles that a fire may use.
    pub gas_limit: u64,
    /// Cells that a fire may use.
    pub cell_limit: u64,
    /// The most that a fire may ever cost its payer; absent where the actor pays, for whom the
    /// prices of the fire's block are the only bound.
    pub promised: Option<AmountText>,
    /// Most wei per cycle.
    pub max_fee_per_cycle: AmountText,
    /// Most wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: AmountText,
    /// The agent asked for a bid when it is due.
    pub gba: Option<AddressText>,
    /// The agent's last answer; of a timer that has ended, the last before the block that ended
    /// it.
    pub bid: Option<TimerBid>,
    /// The most that a fire costs at the prices of the next block; absent once it has ended, and
    /// while its cap does not cover the price.
    pub max_cost: Option<AmountText>,
    /// What the payer has.
    pub payer_balance: AmountText,
    /// Why it did not fire in blocks in which it was due, oldest first: of the last 10,000 of
    /// them, and the newest 1,000 runs.
    pub deferrals: Vec<Deferral>,
    /// How many blocks it was passed over in.
    pub deferred_blocks: u64,
    /// Where the payer's money went; absent where it did not fire.
    pub charged: Option<TimerCharge>,
    /// Cycles paid for; absent where it did not fire.
    pub cycles: Option<u64>,
    /// Cells paid for; absent where it did not fire.
    pub cells: Option<u64>,
    /// What the handler returned; absent where it did not, and where it failed.
    pub result: Option<Value>,
    /// Why the handler failed.
    pub error: Option<String>,
    /// What was logged and printed during the fire.
    pub log: Vec<String>,
    /// Events about it and of its fire, oldest first: the newest 1,000.
    pub events: Vec<Event>,
}

/// What a gas bidding agent answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerBid {
    /// Most wei per cycle.
    pub max_fee_per_cycle: AmountText,
    /// Most wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: AmountText,
    /// Whether the agent failed, so that this is the default bid of that block.
    pub failed: bool,
}

/// Where the money went that was set aside for a fire, in wei.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerCharge {
    /// The cycle basefee: gone.
    pub burned_cycle: AmountText,
    /// The lane basefee: gone.
    pub burned_lane: AmountText,
    /// Priority: the proposer's.
    pub tip: AmountText,
    /// The cell basefee: gone.
    pub cells: AmountText,
    /// Set aside and not used: the payer's again.
    pub refunded: AmountText,
}

/// Why a due timer did not fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeferralReason {
    /// Its fee cap is below the price of a cycle.
    PricedOut,
    /// It asks for more cycles than a fire gets under the policy, or for more cells than the lane
    /// has.
    OverCap,
    /// Others came first and left too few cycles or cells.
    LaneFull,
    /// There was room, and its payer could not cover the most that it may cost: under
    /// `gba-auction` it waits, under other policies until the GC budget reaches it.
    InsufficientFunds,
    /// Its time has passed and the GC budget has not reached it yet.
    GcWaiting,
}

/// Consecutive blocks in which a due timer did not fire for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deferral {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// Why.
    pub reason: DeferralReason,
    /// The same in words, with the figures of the last block.
    pub explanation: String,
}

/// The calendar queue, tier by tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerQueue {
    /// The block after which it stands so.
    pub height: u64,
    /// The epoch of that block.
    pub epoch: u64,
    /// Blocks of an epoch.
    pub epoch_blocks: u64,
    /// Its hash, part of the state root.
    pub root: HashText,
    /// Timers in all.
    pub timers: u64,
    /// The block ring: heights that have timers, ascending.
    pub ring: Vec<TimerBucket>,
    /// The epoch queue: epochs that have timers, ascending.
    pub epochs: Vec<TimerBucket>,
    /// Timers in the overflow tree.
    pub overflow: u64,
    /// Timers that are due and carried over.
    pub carry_over: u64,
}

/// A bucket of the calendar queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerBucket {
    /// The height, or the epoch, that it is for.
    pub at: u64,
    /// Timers in it.
    pub timers: u64,
}

/// Which blocks `GET /v1/timers/fees` tells of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LaneQuery {
    /// The first height (default: so that the newest is the last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How many blocks at most (default 60, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// What the timer lane of a block did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaneBlock {
    /// The block.
    pub height: u64,
    /// The policy: `eip1559`, `fifo` or `gba-auction`.
    pub policy: String,
    /// What a cycle of the lane cost beside the cycle basefee, in wei.
    pub lane_basefee: AmountText,
    /// Cycles that the lane has.
    pub capacity: u64,
    /// Cycles that fires used.
    pub consumed: u64,
    /// consumed / capacity, per mille.
    pub utilisation_per_mille: u64,
    /// Cells that the lane has.
    pub cell_capacity: u64,
    /// Cells that fires used.
    pub cells: u64,
    /// Gas bidding agents that were asked for a bid.
    pub asked: u64,
    /// What the owners of their timers paid for that, in wei: gone.
    pub questions: AmountText,
    /// Timers that fired.
    pub fired: u64,
    /// Timers that were due and waited.
    pub deferred: u64,
    /// Of them, those whose cap did not cover the price.
    pub priced_out: u64,
    /// Of them, those that ask for more cycles or cells than a fire gets.
    pub over_cap: u64,
    /// Timers removed past their time.
    pub expired: u64,
    /// Timers removed since their payer could not pay, or had not promised so much.
    pub insolvent: u64,
    /// Median priority of the timers that fired, wei per cycle.
    pub p50_tip: AmountText,
    /// The least priority of the timers that fired; absent where none did.
    pub least_priority: Option<AmountText>,
}

/// Who is favoured in the next block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fairness {
    /// The block after which it stands so.
    pub height: u64,
    /// The policy of the next block.
    pub policy: String,
    /// Whose fires count together: `actor` or `deployer`.
    pub scope: String,
    /// Blocks whose fires count.
    pub window_blocks: u64,
    /// Twice the median of the fires of those that fired.
    pub twice_median: u64,
    /// Under `eip1559` those that fired in the window, most fires first: whoever is not listed and
    /// has not fired has weight 2. Under `gba-auction` those whose weight is not 1, the heaviest
    /// first. Of either the first 1,000.
    pub members: Vec<FairnessMember>,
}

/// One that fired in the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FairnessMember {
    /// The actor, or the deployer.
    pub account: AddressText,
    /// Fires in the window; 0 under `gba-auction`, which counts none.
    pub recent: u64,
    /// Its weight, per mille: from 1000 to 2000 under `eip1559`, from 500 to 2000 under
    /// `gba-auction`.
    pub weight_per_mille: u64,
}

/// The value of a governed parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Setting {
    /// A number.
    Number(u64),
    /// One of a few words.
    Word(String),
}

impl Setting {
    /// The number that it is.
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Word(_) => None,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

/// A governed parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GovernedParameter {
    /// Its key.
    pub key: String,
    /// Its value from the next block on.
    pub value: Setting,
    /// Its value at genesis.
    pub genesis: Setting,
    /// The least that it may be; absent where it is a word.
    pub min: Option<u64>,
    /// The most; absent where it is a word.
    pub max: Option<u64>,
    /// The words that it may be; empty where it is a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The first block with this value, where the chain keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Other values that were proposed, by height.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingSetting>,
    /// What it means and in which unit.
    pub about: String,
}

/// Another value of a governed parameter, from a height on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingSetting {
    /// The first block with it.
    pub height: u64,
    /// The value.
    pub value: Setting,
    /// Who proposed last for that height; absent: the genesis document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AddressText>,
}
