//! A timer, its id, and what can be wrong with one.

use crate::{
    actor::effect::called,
    primitives::{Address, Hash, Height, InCby, Wei, keccak256},
    record,
};

/// The longest name of a handler, in bytes (timers.md §1).
pub const MAX_HANDLER_BYTES: usize = 256;
/// The longest payload, in bytes (timers.md §1).
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// What a gas bidding agent answered last (CIP-1 §7.2), or the default bid where it failed to. Its
/// fields for cells are ignored: a fire pays the basefee for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bid {
    /// Most wei per cycle.
    pub max_fee_per_cycle: Wei,
    /// Most wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: Wei,
    /// Whether the agent failed: that is told once, until it answers again.
    pub failed: bool,
}
record!(Bid { max_fee_per_cycle, max_priority_fee_per_cycle, failed });

/// A scheduled call of an actor by itself (timers.md §1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// See [`timer_id`].
    pub id: Hash,
    /// Counts the chain's timers: the order of insertion.
    pub seq: u64,
    /// Its owner, under whose identity the handler runs.
    pub actor: Address,
    /// It fires at this height or later.
    pub height: Height,
    /// What the handler is given.
    pub payload: Vec<u8>,
    /// The handler; absent: the one that the payload names, or the default ([`called`]).
    pub handler: Option<String>,
    /// Who pays: the actor, or the sender of the scheduling transaction.
    pub fee_payer: Address,
    /// Cycles that a fire may use.
    pub gas_limit: u64,
    /// Cells that a fire may use: a multiple of [`Due::CELLS`](super::Due::CELLS).
    pub cell_limit: u64,
    /// The most that a fire may cost a payer who is not the actor.
    pub promised: Option<Wei>,
    /// The last height at which it may fire.
    pub expires_at: Height,
    /// Most wei per cycle, lane basefee and priority together. At most 2^64 − 2: nobody can pay
    /// more.
    pub max_fee_per_cycle: Wei,
    /// Most wei per cycle for the proposer, within the above.
    pub max_priority_fee_per_cycle: Wei,
    /// Height of the scheduling block.
    pub scheduled_at: Height,
    /// The actor that is asked for a bid at fire time, instead of the two fees above.
    pub gba: Option<Address>,
    /// The agent's last answer.
    pub bid: Option<Bid>,
}
// For whoever keeps timers beside the chain; the queue has a shorter form of its own.
record!(Timer {
    id,
    seq,
    actor,
    height,
    payload,
    handler,
    fee_payer,
    gas_limit,
    cell_limit,
    promised,
    expires_at,
    max_fee_per_cycle,
    max_priority_fee_per_cycle,
    scheduled_at,
    gba,
    bid,
});

/// keccak256(actor ‖ height ‖ payload ‖ nonce), integers of 8 bytes, big-endian (timers.md §1).
pub fn timer_id(actor: &Address, height: Height, payload: &[u8], nonce: u64) -> Hash {
    keccak256(&[&actor.0, &height.to_be_bytes(), payload, &nonce.to_be_bytes()])
}

/// Why a timer is not scheduled, extended or cancelled. The variant's name opens the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    /// The same-block prohibition.
    #[error("HeightNotInFuture: a timer fires at {now} at the earliest, not at {got}")]
    HeightNotInFuture {
        /// What was asked for.
        got: Height,
        /// The first height possible.
        now: Height,
    },
    /// More than a handler is given.
    #[error("PayloadTooLarge: a timer's payload has at most {limit} bytes, this one has {got}")]
    PayloadTooLarge {
        /// Its length in bytes.
        got: usize,
        /// The bound.
        limit: usize,
    },
    /// No handler has so long a name.
    #[error("HandlerNameTooLong: a handler's name has at most {limit} bytes, this one has {got}")]
    HandlerNameTooLong {
        /// Its length in bytes.
        got: usize,
        /// The bound.
        limit: usize,
    },
    /// Somebody who did not agree to pay.
    #[error("InvalidFeePayer: {0} is neither the actor nor the sender of the transaction")]
    InvalidFeePayer(Address),
    /// A sender who pays for no timers, or not for so much.
    #[error(
        "PayerNotWilling: {payer} may have to pay {cost} for this timer; the transaction allows \
         timers another {left} (timer_allowance)"
    )]
    PayerNotWilling {
        /// The sender.
        payer: Address,
        /// The most that the fire may cost.
        cost: InCby,
        /// What is left of the allowance.
        left: InCby,
    },
    /// More cells than a fire may use.
    #[error("CellLimitTooHigh: a fire uses at most {limit} cells, {got} are asked for")]
    CellLimitTooHigh {
        /// What was asked for.
        got: u64,
        /// The bound.
        limit: u64,
    },
    /// More cycles than a fire may use.
    #[error("GasLimitTooHigh: a fire uses at most {limit} cycles, {got} are asked for")]
    GasLimitTooHigh {
        /// What was asked for.
        got: u64,
        /// The bound.
        limit: u64,
    },
    /// A lifetime that does not reach its height, or reaches too far.
    #[error("ExpiryOutOfRange: {got} is not from {min} to {max}")]
    ExpiryOutOfRange {
        /// What was asked for.
        got: Height,
        /// The first height possible.
        min: Height,
        /// The last.
        max: Height,
    },
    /// The actor has as many as it may have.
    #[error("TooManyTimers: {actor} has {limit} timers, which is the limit")]
    TooManyTimers {
        /// The actor.
        actor: Address,
        /// The bound.
        limit: u64,
    },
    /// A cap that the lane has outgrown already.
    #[error(
        "TimerRejectedBelowBasefee: a cycle of the lane costs {basefee} wei, {got} are offered"
    )]
    TimerRejectedBelowBasefee {
        /// What was offered.
        got: Wei,
        /// The lane basefee.
        basefee: Wei,
    },
    /// A timer without an agent, under the policy whose agents bid for all timers.
    #[error(
        "GbaRequired: under gba-auction every timer names the actor that bids for it (gba); \
         examples/actors/default_gba.star is one"
    )]
    GbaRequired,
    /// A parameter of the past.
    #[error(
        "TimerArgDeprecated: `bid` was withdrawn; use max_fee_per_cycle and \
         max_priority_fee_per_cycle"
    )]
    TimerArgDeprecated,
    /// No such priority tier.
    #[error("UnknownTier: {0:?} is none of economy, standard, fast, urgent")]
    UnknownTier(String),
    /// Somebody else's timer.
    #[error("Unauthorized: {who} may not do this to a timer of {actor}")]
    Unauthorized {
        /// Who tried.
        who: Address,
        /// The owner.
        actor: Address,
    },
    /// Never scheduled, or gone.
    #[error("UnknownTimer: no timer {0} is waiting")]
    UnknownTimer(Hash),
}

impl Timer {
    /// The handler that a fire calls, and what that is given.
    pub fn call(&self) -> (String, Vec<u8>) {
        called(self.handler.as_deref(), &self.payload)
    }

    /// The most that a fire costs (timers.md §3); saturates beyond 2^128 wei, which nobody has.
    pub const fn max_cost(&self, cycle_price: Wei, basefee_cell: Wei) -> Wei {
        max_cost(self.gas_limit, cycle_price, self.cell_limit, basefee_cell)
    }
}

/// gas_limit × price + cells × basefee, saturating (timers.md §3). The price of a cycle is
/// basefee, lane basefee and priority together.
pub const fn max_cost(gas_limit: u64, cycle_price: Wei, max_cells: u64, basefee_cell: Wei) -> Wei {
    let cycles = cycle_price.saturating_mul(gas_limit as u128);
    cycles.saturating_add(basefee_cell.saturating_mul(max_cells as u128))
}
