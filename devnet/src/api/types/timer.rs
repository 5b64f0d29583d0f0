//! Timers: schedule and outcome, prices of the lane, fairness weights.

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
    /// Only timers with this status (default: those that wait, `scheduled` and `due`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TimerStatus>,
    /// Whether to list ended timers too, after those that wait, the newest end first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    /// The maximum number of timers (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// A timer in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerSummary {
    /// Its id.
    pub timer_id: HashText,
    /// Its name, where it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// The owner's name, where the devnet knows one.
    #[serde(default)]
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
    #[serde(default)]
    pub name: Option<String>,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// The owner's name, where the devnet knows one.
    #[serde(default)]
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

/// The blocks that `GET /v1/timers/fees` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LaneQuery {
    /// The first height (default: the newest blocks are listed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The maximum number of blocks (default 60, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The work of a block's timer lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaneBlock {
    /// The block.
    pub height: u64,
    /// The policy: `eip1559`, `fifo` or `gba-auction`.
    pub policy: String,
    /// The lane's own basefee per cycle, in wei, which a fire pays on top of the cycle basefee
    /// under `eip1559`. The other policies have none: there it is the cycle basefee itself.
    pub lane_basefee: AmountText,
    /// The total price of a fire's cycle before priority, in wei; 0 in recordings of earlier
    /// versions.
    #[serde(default)]
    pub cycle_price: AmountText,
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
    /// The number of gas bidding agents asked for a bid.
    pub asked: u64,
    /// The price that the timers' owners paid for these questions, in wei, burned.
    pub questions: AmountText,
    /// Timers that fired.
    pub fired: u64,
    /// Timers that were due and did not fire.
    pub deferred: u64,
    /// Deferred timers with a cap that did not cover the price.
    pub priced_out: u64,
    /// Deferred timers that ask for more cycles or cells than a fire may get.
    pub over_cap: u64,
    /// Timers removed because they had expired.
    pub expired: u64,
    /// Timers removed because their payer could not pay, or had not promised enough.
    pub insolvent: u64,
    /// Median priority of the timers that fired, in wei per cycle.
    pub p50_tip: AmountText,
    /// The lowest priority of the timers that fired, in wei per cycle; absent when none fired.
    pub least_priority: Option<AmountText>,
}

/// Which due timers `GET /v1/timers/due` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DueQuery {
    /// Only timers of this actor, by its address or enough of the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The number of timers to skip, the `next` of the previous page (default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// The maximum number of timers (default 20, at most 1,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The timers that are due in the next block, in the order in which its lane would take them if no
/// transaction came before them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DueTimers {
    /// The next block.
    pub height: u64,
    /// Its policy.
    pub policy: String,
    /// Cycles of that block's lane.
    pub capacity: u64,
    /// Cells of that block's lane.
    pub cell_capacity: u64,
    /// The price of a fire's cycle in that block before priority, in wei.
    pub cycle_price: AmountText,
    /// The number of timers due in that block.
    pub due: u64,
    /// The number of due timers that are ranked.
    pub ranked: u64,
    /// A page of the due timers: the ranked ones by rank, then the others, the longest waiting
    /// first.
    pub timers: Vec<DueTimer>,
    /// The offset of the next page; absent on the last page.
    pub next: Option<u64>,
}

/// A due timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DueTimer {
    /// Its id.
    pub timer_id: HashText,
    /// Its owner.
    pub actor: AddressText,
    /// The height at which it was due.
    pub height: u64,
    /// Its turn in the next block, from 1; absent when it is not ranked.
    pub rank: Option<u64>,
    /// Its actor's weight, per mille; absent under `fifo`.
    pub weight_per_mille: Option<u64>,
    /// The priority that it would pay the proposer, in wei per cycle; absent when its cap is below
    /// the price.
    pub effective_tip: Option<AmountText>,
    /// The maximum cost of the fire, in wei.
    pub max_cost: AmountText,
    /// The source of its fees.
    pub agent: AgentState,
    /// The agent.
    pub gba: Option<AddressText>,
    /// The reason why the next block does not ask the agent; absent if it does, or if the timer has
    /// no agent.
    pub not_asked: Option<String>,
    /// The reason why it did not fire in the newest block; absent when it was not due in that
    /// block.
    pub reason: Option<DeferralReason>,
    /// That reason in words, with the block's figures.
    pub explanation: Option<String>,
    /// Its fate in the next block.
    pub next: DueFate,
    /// Its fate in words.
    pub outlook: String,
}

/// The source of a timer's fees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// The timer itself, which names no agent.
    None,
    /// The last bid of its agent.
    Asked,
    /// The default bid, because its agent failed when last asked.
    Failed,
    /// The default bid, because its agent has not been asked yet.
    NotAsked,
}

names!(AgentState:
    None = "own fees",
    Asked = "asked",
    Failed = "failed",
    NotAsked = "not asked yet",
);

/// The fate of a due timer in the next block, if no transaction comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DueFate {
    /// It fires: there is room for it even if the timers before it use all that they ask for.
    Fires,
    /// The timers before it may use up the lane: it fires if they use less.
    LaneFull,
    /// Its payer cannot cover the maximum cost.
    InsufficientFunds,
    /// Its cap is below the price.
    PricedOut,
    /// It asks for more than a fire may get.
    OverCap,
    /// It has expired.
    Expired,
}

/// The bid that a timer's agent would make in the next block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimerQuote {
    /// The timer.
    pub timer_id: HashText,
    /// Its owner, who pays for questions.
    pub actor: AddressText,
    /// The agent.
    pub gba: AddressText,
    /// The next block, in which it would be asked.
    pub height: u64,
    /// That block's policy.
    pub policy: String,
    /// The reason why that block does not ask the agent; absent when it does, at its owner's turn.
    pub not_asked: Option<String>,
    /// The input of the agent.
    pub context: GbaContext,
    /// Whether the agent gave a bid.
    pub success: bool,
    /// The error of an agent that gave no bid; then the default bid counts.
    pub error: Option<String>,
    /// The bid that counts.
    pub bid: TimerBid,
    /// Cycles that the answer used.
    pub cycles: u64,
    /// Cycles that the owner would pay for, at least 1,000.
    pub paid_cycles: u64,
    /// The price that the owner would pay for the question, in wei.
    pub cost: AmountText,
    /// The price of a fire's cycle in that block before priority, in wei.
    pub cycle_price: AmountText,
    /// The priority that the timer would pay the proposer with that bid, in wei per cycle; absent
    /// when the bid's cap is below the price.
    pub effective_tip: Option<AmountText>,
    /// Its actor's weight, per mille; absent under `fifo`.
    pub weight_per_mille: Option<u64>,
    /// Its turn in that block if it is due in it, from 1; absent when it would not be ranked.
    pub rank: Option<u64>,
    /// The number of timers that would be ranked in that block, including this one.
    pub ranked: u64,
    /// The maximum cost of the fire with that bid, in wei.
    pub max_cost: AmountText,
    /// Its fate in that block if it is due in it.
    pub next: DueFate,
    /// Its fate in words.
    pub outlook: String,
}

/// The input of a gas bidding agent, `GBAContext`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GbaContext {
    /// The height at which the timer is due.
    pub trigger_block_height: u64,
    /// The block that asks the agent.
    pub current_block_height: u64,
    /// Basefee of a cycle, in wei.
    pub basefee_cycle: AmountText,
    /// Basefee of a cell, in wei.
    pub basefee_cell: AmountText,
    /// The lane's price of a cycle, in wei.
    pub basefee_lane_timer: AmountText,
    /// Cycles that the previous block used.
    pub last_block_cycle_usage: u64,
    /// Median tip of the previous block, in wei per cycle.
    pub previous_block_p50_priority_tip_per_cycle: AmountText,
    /// The balance of the timer's owner, in wei.
    pub owner_actor_balance: AmountText,
}

/// The accounts that the next block favours, and their weights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fairness {
    /// The block after which this is the state.
    pub height: u64,
    /// The policy of the next block.
    pub policy: String,
    /// The unit that fires are counted by: `actor` or `deployer`.
    pub scope: String,
    /// The number of blocks in the window.
    pub window_blocks: u64,
    /// Twice the median number of fires of the accounts that fired.
    pub twice_median: u64,
    /// The listed accounts, most fires first, at most 1,000. Under `eip1559`: those that fired in
    /// the window; an account that is not listed has weight 2. Under `gba-auction`: those that
    /// fired in the window and those with a weight other than 1; an account that is not listed has
    /// weight 1.
    pub members: Vec<FairnessMember>,
}

/// An account that fired in the window, or has a weight of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FairnessMember {
    /// The actor, or the deployer.
    pub account: AddressText,
    /// Fires in the window.
    pub recent: u64,
    /// Its weight, per mille: from 1000 to 2000 under `eip1559`; from 500 to 2000 under
    /// `gba-auction`, where only actors have weights and a deployer has 1000.
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
    /// The number; `None` for a word.
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
    /// Its key on the chain, as `system:cip5:lane_timer_cycles`.
    pub key: String,
    /// The topology field that sets its genesis value, as `timers.lane_timer_cycles`.
    #[serde(default)]
    pub name: String,
    /// Its value from the next block on.
    pub value: Setting,
    /// Its value at genesis.
    pub genesis: Setting,
    /// The unit of its value; `word` for a word.
    pub unit: String,
    /// The document that defines it.
    pub source: String,
    /// The minimum; absent for a word.
    pub min: Option<u64>,
    /// The maximum; absent for a word.
    pub max: Option<u64>,
    /// The allowed words; empty for a number, and for a parameter that is fixed at genesis, which
    /// has no bounds either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The first block with this value, if the chain stores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Other values proposed, by height.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingSetting>,
    /// Its meaning and unit.
    pub about: String,
}

/// Another value of a governed parameter, from a height on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingSetting {
    /// The first block with the value.
    pub height: u64,
    /// The value.
    pub value: Setting,
    /// The last proposer for that height; absent: the genesis document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AddressText>,
}
