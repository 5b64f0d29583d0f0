//! The timer lane: its blocks and prices, the due timers and their bids, fairness weights.

use super::{AddressText, AmountText, DeferralReason, HashText, TimerBid};
use cowboy_engine::names;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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
