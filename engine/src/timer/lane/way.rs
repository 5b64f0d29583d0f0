//! The outcome of one due timer: the same decision as [`scan`](super::scan), for callers with only
//! a few timers.

use super::Prices;
use crate::{
    primitives::{Height, Wei},
    timer::{Due, journal::narrow},
};

/// A scan's decision about a due timer, regardless of the room in the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Expired,
    /// Its payer has less than the maximum cost of the fire: it is to be removed, or waits under
    /// `gba-auction`.
    Unfunded {
        /// The maximum cost in wei, without priority if it is priced out too.
        needs: Wei,
    },
    PricedOut,
    /// It asks for more cycles than the policy allows a fire: it waits.
    OverCycles,
    /// It asks for more cells than the lane has: it waits.
    OverCells,
    Ranked {
        /// Its payment to the proposer, in wei per cycle.
        priority: Wei,
    },
}

/// The decision about a live timer that is due in the block at `now` and whose payer has this
/// balance.
pub fn way(due: &Due, now: Height, prices: &Prices, balance: Wei) -> Way {
    if due.expires_at < narrow(now.get()) {
        return Way::Expired;
    }
    let priority = prices.priority(due);
    let (cycles, cells) = (u64::from(due.gas_limit), due.cell_limit());
    let needs = prices.max_cost(cycles, cells, priority.unwrap_or_default());
    if balance < needs {
        return Way::Unfunded { needs };
    }
    match priority {
        None => Way::PricedOut,
        Some(_) if cycles > prices.cap() => Way::OverCycles,
        Some(_) if cells > prices.room().cells => Way::OverCells,
        Some(priority) => Way::Ranked { priority },
    }
}
