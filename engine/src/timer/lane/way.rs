//! Which way one due timer goes: what [`scan`](super::scan) decides of all of them, for those who
//! look at a few.

use super::Prices;
use crate::{
    primitives::{Height, Wei},
    timer::{Due, journal::narrow},
};

/// What a scan does with a due timer, before the lane has room for it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its lifetime is over: to be removed.
    Expired,
    /// Its payer has less than the most that the fire may cost: to be removed, or waiting under
    /// `gba-auction`.
    Unfunded {
        /// That most, without priority where it is priced out too.
        needs: Wei,
    },
    /// Its cap is below the price: waiting.
    PricedOut,
    /// It asks for more cycles than a fire gets under the policy: waiting.
    OverCycles,
    /// It asks for more cells than the lane has: waiting.
    OverCells,
    /// It is ranked.
    Ranked {
        /// What it pays the proposer, in wei per cycle.
        priority: Wei,
    },
}

/// The way of a live timer that is due in the block at `now` and whose payer has this balance.
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
