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
    /// Its name, where it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// The owner's name, where the devnet knows one.
    #[serde(default)]
    pub actor_name: Option<String>,
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
    /// Its name, where it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its owner, whose handler it calls.
    pub actor: AddressText,
    /// The owner's name, where the devnet knows one.
    #[serde(default)]
    pub actor_name: Option<String>,
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
    /// The agent's last answer, which a fire counted with; absent while it was never asked.
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
    /// The lane's own basefee per cycle, in wei, which a fire pays on top of the cycle basefee
    /// under `eip1559`; under the other policies, which have none, the cycle basefee itself.
    pub lane_basefee: AmountText,
    /// What a cycle of a fire cost in all before priority, in wei; 0 in recordings of programs that
    /// did not tell it.
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

/// Which due timers `GET /v1/timers/due` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DueQuery {
    /// Only timers of this actor, by its address or enough of the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// How many to leave out first, as a page before says in `next` (default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// How many at most (default 20, at most 1,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The timers that are due in the next block, as its lane would take them if no transaction came
/// before them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DueTimers {
    /// The next block.
    pub height: u64,
    /// Its policy.
    pub policy: String,
    /// Cycles of its lane.
    pub capacity: u64,
    /// Cells of its lane.
    pub cell_capacity: u64,
    /// What a cycle of a fire costs in it before priority, in wei.
    pub cycle_price: AmountText,
    /// Timers that are due in it.
    pub due: u64,
    /// Of them, those that are ranked.
    pub ranked: u64,
    /// A page of them: by rank, then those without, the longest waiting first.
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
    /// When it was to fire.
    pub height: u64,
    /// Its turn in the next block, from 1; absent where it is not ranked.
    pub rank: Option<u64>,
    /// Its actor's weight, per mille; absent under `fifo`.
    pub weight_per_mille: Option<u64>,
    /// What it would pay the proposer, wei per cycle; absent where its cap is below the price.
    pub effective_tip: Option<AmountText>,
    /// The most that the fire may cost, in wei.
    pub max_cost: AmountText,
    /// Whose fees these are.
    pub agent: AgentState,
    /// The agent.
    pub gba: Option<AddressText>,
    /// Why the next block does not ask the agent; absent if it does, or if the timer has no agent.
    pub not_asked: Option<String>,
    /// Why it did not fire in the newest block; absent where it was not due in that.
    pub reason: Option<DeferralReason>,
    /// The same in words, with that block's figures.
    pub explanation: Option<String>,
    /// What becomes of it in the next block.
    pub next: DueFate,
    /// The same in words.
    pub outlook: String,
}

/// Whose fees a timer counts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Its own: it names no agent.
    None,
    /// Those that its agent bid last.
    Asked,
    /// The default bid: its agent failed when it was asked last.
    Failed,
    /// The default bid: its agent was not asked yet.
    NotAsked,
}

names!(AgentState:
    None = "own fees",
    Asked = "asked",
    Failed = "failed",
    NotAsked = "not asked yet",
);

/// What becomes of a due timer in the next block, if no transaction comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DueFate {
    /// There is room for it if those before it use all that they ask for.
    Fires,
    /// The timers before it may use all of the lane: it fires if they use less.
    LaneFull,
    /// Its payer cannot cover the most that it may cost.
    InsufficientFunds,
    /// Its cap is below the price.
    PricedOut,
    /// It asks for more than a fire gets.
    OverCap,
    /// Its time has passed.
    Expired,
}

/// What a timer's agent would bid in the next block.
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
    /// Why that block does not ask it; absent where it does, in its owner's turn.
    pub not_asked: Option<String>,
    /// What the agent was told.
    pub context: GbaContext,
    /// Whether it gave a bid.
    pub success: bool,
    /// Why it gave none, so that the default bid counts.
    pub error: Option<String>,
    /// The bid that counts.
    pub bid: TimerBid,
    /// Cycles that the answer took.
    pub cycles: u64,
    /// Cycles that the owner would pay for: 1,000 at least.
    pub paid_cycles: u64,
    /// What the owner would pay for the question, in wei.
    pub cost: AmountText,
    /// What a cycle of a fire costs in that block before priority, in wei.
    pub cycle_price: AmountText,
    /// What the timer would pay the proposer with that bid, wei per cycle; absent where the bid's
    /// cap is below the price.
    pub effective_tip: Option<AmountText>,
    /// Its actor's weight, per mille; absent under `fifo`.
    pub weight_per_mille: Option<u64>,
    /// Its turn in that block if it is due in it, from 1; absent where it would not be ranked.
    pub rank: Option<u64>,
    /// Timers that would be ranked in that block, this one included.
    pub ranked: u64,
    /// The most that the fire may cost with that bid, in wei.
    pub max_cost: AmountText,
    /// What would become of it in that block if it is due in it.
    pub next: DueFate,
    /// The same in words.
    pub outlook: String,
}

/// What a gas bidding agent is told, `GBAContext`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GbaContext {
    /// The height that the timer is for.
    pub trigger_block_height: u64,
    /// The block that asks.
    pub current_block_height: u64,
    /// Basefee of a cycle, in wei.
    pub basefee_cycle: AmountText,
    /// Basefee of a cell, in wei.
    pub basefee_cell: AmountText,
    /// The lane's price of a cycle, in wei.
    pub basefee_lane_timer: AmountText,
    /// Cycles that the block before used.
    pub last_block_cycle_usage: u64,
    /// Median tip of the block before, wei per cycle.
    pub previous_block_p50_priority_tip_per_cycle: AmountText,
    /// What the timer's owner has, in wei.
    pub owner_actor_balance: AmountText,
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
    /// Under `eip1559` those that fired in the window, most fires first: an account that is not
    /// listed has weight 2. Under `gba-auction` those that fired in the window and those whose
    /// weight is not 1, most fires first: an account that is not listed has weight 1. Of either the
    /// first 1,000.
    pub members: Vec<FairnessMember>,
}

/// One that fired in the window, or has a weight of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FairnessMember {
    /// The actor, or the deployer.
    pub account: AddressText,
    /// Fires in the window.
    pub recent: u64,
    /// Its weight, per mille: from 1000 to 2000 under `eip1559`; from 500 to 2000 under
    /// `gba-auction`, where weights are the actors' and a deployer has 1000.
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
    /// Its key on the chain, as `system:cip5:lane_timer_cycles`.
    pub key: String,
    /// The field of a topology with its first value, as `timers.lane_timer_cycles`.
    #[serde(default)]
    pub name: String,
    /// Its value from the next block on.
    pub value: Setting,
    /// Its value at genesis.
    pub genesis: Setting,
    /// The unit of its value; `word` where it is one.
    pub unit: String,
    /// The document that it is from.
    pub source: String,
    /// The least that it may be; absent where it is a word.
    pub min: Option<u64>,
    /// The most; absent where it is a word.
    pub max: Option<u64>,
    /// The words that it may be; empty where it is a number, and where it is fixed at genesis,
    /// which is what has no bounds either.
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
