//! A timer, its id, and the errors of requests about timers.

use crate::{
    primitives::{Address, Hash, Height, InCby, Wei, keccak256},
    record,
};

/// The last answer of a gas bidding agent (CIP-1 §7.2), or the default bid if it failed. Its fields
/// for cells are ignored: a fire pays the basefee for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bid {
    pub max_fee_per_cycle: Wei,
    /// Maximum wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: Wei,
    /// Whether the agent failed: that is reported once, until it answers again.
    pub failed: bool,
}
record!(Bid { max_fee_per_cycle, max_priority_fee_per_cycle, failed });

// For code that stores timers outside the chain; the queue has its own shorter form.
record! {
    /// A scheduled call of an actor to itself (timers.md §1).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Timer {
        /// The hash from [`timer_id`].
        pub id: Hash,
        /// The place in the order of insertion, over all of the chain's timers.
        pub seq: u64,
        /// The owner, under whose identity the handler runs.
        pub actor: Address,
        /// The earliest height at which it fires.
        pub height: Height,
        pub payload: Vec<u8>,
        /// The handler; absent: the one named in the payload, or
        /// the default.
        pub handler: Option<String>,
        /// The payer: the actor, or the sender of the scheduling transaction.
        pub fee_payer: Address,
        /// Maximum cycles of a fire.
        pub gas_limit: u64,
        /// Maximum cells of a fire: a multiple of [`Due::CELLS`](super::Due::CELLS).
        pub cell_limit: u64,
        /// Maximum cost of a fire for a payer other than the actor.
        pub promised: Option<Wei>,
        pub expires_at: Height,
        /// Maximum wei per cycle, including lane basefee and priority. At most 2^64 − 2, which
        /// exceeds every balance.
        pub max_fee_per_cycle: Wei,
        /// Maximum wei per cycle for the proposer, part of the above.
        pub max_priority_fee_per_cycle: Wei,
        pub scheduled_at: Height,
        /// The actor that is asked for a bid at fire time, which replaces the two fees above.
        pub gba: Option<Address>,
        pub bid: Option<Bid>,
    }
}

/// keccak256(actor ‖ height ‖ payload ‖ nonce), integers of 8 bytes, big-endian (timers.md §1).
pub fn timer_id(actor: &Address, height: Height, payload: &[u8], nonce: u64) -> Hash {
    keccak256(&[&actor.0, &height.to_be_bytes(), payload, &nonce.to_be_bytes()])
}

/// Why a timer is not scheduled, extended or cancelled. The text starts with the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    #[error("HeightNotInFuture: a timer fires at {now} at the earliest, not at {got}")]
    HeightNotInFuture { got: Height, now: Height },
    #[error("PayloadTooLarge: a timer's payload has at most {limit} bytes, this one has {got}")]
    PayloadTooLarge { got: usize, limit: usize },
    #[error("HandlerNameTooLong: a handler's name has at most {limit} bytes, this one has {got}")]
    HandlerNameTooLong { got: usize, limit: usize },
    #[error("InvalidFeePayer: {0} is neither the actor nor the sender of the transaction")]
    InvalidFeePayer(Address),
    #[error(
        "PayerNotWilling: {payer} may have to pay {cost} for this timer; the transaction allows \
         timers another {left} (timer_allowance)"
    )]
    PayerNotWilling { payer: Address, cost: InCby, left: InCby },
    #[error("CellLimitTooHigh: a fire uses at most {limit} cells, {got} are asked for")]
    CellLimitTooHigh { got: u64, limit: u64 },
    #[error("GasLimitTooHigh: a fire uses at most {limit} cycles, {got} are asked for")]
    GasLimitTooHigh { got: u64, limit: u64 },
    /// An expiry before the timer's height, or beyond the maximum lifetime.
    #[error("ExpiryOutOfRange: {got} is not from {min} to {max}")]
    ExpiryOutOfRange { got: Height, min: Height, max: Height },
    #[error("TooManyTimers: {actor} has {limit} timers, which is the limit")]
    TooManyTimers { actor: Address, limit: u64 },
    #[error(
        "TimerRejectedBelowBasefee: a cycle of the lane costs {basefee} wei, {got} are offered"
    )]
    TimerRejectedBelowBasefee { got: Wei, basefee: Wei },
    #[error(
        "GbaRequired: under gba-auction every timer names the actor that bids for it (gba); \
         examples/actors/default_gba.star is one"
    )]
    GbaRequired,
    #[error(
        "TimerArgDeprecated: `bid` was withdrawn; use max_fee_per_cycle and \
         max_priority_fee_per_cycle"
    )]
    TimerArgDeprecated,
    #[error("UnknownTier: {0:?} is not economy, standard, fast or urgent")]
    UnknownTier(String),
    #[error("Unauthorized: {who} may not do this to a timer of {actor}")]
    Unauthorized { who: Address, actor: Address },
    /// Never scheduled, or no longer waiting.
    #[error("UnknownTimer: no timer {0} is waiting")]
    UnknownTimer(Hash),
}

impl Timer {
    /// Maximum cost of a fire in wei (timers.md §3); saturates beyond 2^128, which exceeds every
    /// balance.
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
