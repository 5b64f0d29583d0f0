//! The order in which due timers fire, and which are removed (timers.md §3–§6).
//!
//! In each block, [`scan`] reads every due timer once and applies the first of these rules that
//! matches:
//!
//! 1. Its lifetime is over (now > expires_at): it is to be removed.
//! 2. Its payer has less than its max_cost (without priority if rule 3 applies too): it is to be
//!    removed; under `gba-auction` it waits.
//! 3. It is priced out, that is, its cap is below the lane basefee (`eip1559`) or the basefee
//!    (`gba-auction`): it waits.
//! 4. It may use more cycles than the policy allows a fire, or more cells than the lane has: it
//!    waits.
//! 5. Otherwise it is ranked.
//!
//! Timers to be removed are removed in due order while the GC budget lasts, and otherwise wait,
//! unranked. The [`Ranking`] that the scan returns yields the others best first: `fifo` in due
//! order, `eip1559` by priority × W, then W, `gba-auction` by effective tip, then weight. Ties go
//! to the lower height, then to the lower timer_id, which its owner can choose but not make count
//! before the other criteria, then to the earlier insertion. (A [`Due`] has the first 6 bytes of
//! the id. Two timers that share those and otherwise rank equal do not occur by chance. A pair that
//! was found on purpose is still ordered the same by every validator, because insertion is part of
//! the state.)
//!
//! A million timers are ranked although about a hundred of them fit. So only a batch of the best is
//! sorted ([`top`]), the next batch is selected only when the first runs out, and accounts are
//! asked for once each and their answers kept in flat arrays. Functions that the pass calls for
//! every timer are marked `inline`: the pass is generic and compiled into the crate that calls it.

mod prices;
mod rank;
mod table;
mod top;
mod way;

pub use prices::{Prices, Room};
pub use rank::{Pick, Ranking};
pub use way::{Way, way};

use super::{Due, GC_CYCLES, Policy};
use crate::primitives::{Height, Wei};
use prices::Rates;
use rank::Ready;
use table::Table;
use top::Top;

/// The scan's questions about accounts, by their numbers in the calendar: each question at most
/// once per account and block.
pub trait LaneAccounts {
    fn balance(&mut self, number: u32) -> Wei;

    /// The actor's weight: the numerator of W under `eip1559`
    /// ([`weight_numerator`](super::fairness::weight_numerator)), millionths under `gba-auction`;
    /// not asked under `fifo`.
    fn weight(&mut self, number: u32) -> u64;
}

/// Memory that is reused from block to block. Its contents do not matter.
#[derive(Debug, Default)]
pub struct Buffers {
    table: Table,
    ready: Ready,
    top: Top,
}

/// The result of a scan of the due timers.
#[derive(Debug)]
pub struct Scan<'a> {
    /// Indexes of timers to remove because their lifetime is over, in due order.
    pub expired: Vec<u32>,
    /// Indexes of timers to remove because their payer has too little, in due order. Together with
    /// `expired` at most as many as the GC budget pays for.
    pub insolvent: Vec<u32>,
    pub gc_left: u64,
    pub counts: LaneCounts,
    pub ranking: Ranking<'a>,
}

/// Number of due timers per outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    pub live: u64,
    pub ranked: u64,
    /// Timers that wait because their cap is too low.
    pub priced_out: u64,
    /// Timers that wait because their payer has too little (`gba-auction`).
    pub uncovered: u64,
    /// Timers that wait because they may use more cycles than a fire may, or more cells than the
    /// lane has.
    pub over_cap: u64,
    /// Timers that wait to be removed, beyond the GC budget.
    pub gc_waiting: u64,
}

/// Scans the entries due at `now`, in due order, and ranks those that may fire.
pub fn scan<'a>(
    due: &'a [Due],
    now: Height,
    prices: &Prices,
    accounts: &mut impl LaneAccounts,
    buffers: &'a mut Buffers,
) -> Scan<'a> {
    let rates = Rates::new(prices);
    let auction = prices.policy == Policy::GbaAuction;
    let lane = prices.room();
    let mut gc_left = prices.config.gc_cycles_per_block / GC_CYCLES;
    // Saturated like the timers' heights, so that none is beyond it.
    let now = u32::try_from(now.get()).unwrap_or(u32::MAX);

    let (mut expired, mut insolvent) = (Vec::new(), Vec::new());
    let mut counts = LaneCounts::default();
    let mut least = Room { cycles: u64::MAX, cells: u64::MAX };
    let mut collect = |list: &mut Vec<u32>, waiting: &mut u64, index: u32| {
        if gc_left == 0 {
            *waiting += 1;
        } else {
            gc_left -= 1;
            list.push(index);
        }
    };
    let Buffers { table, ready, top } = &mut *buffers;
    table.start();
    ready.start(due.len());
    top.start();
    for (index, due) in (0..).zip(due) {
        if !due.is_live() {
            continue;
        }
        counts.live += 1;
        if due.expires_at < now {
            collect(&mut expired, &mut counts.gc_waiting, index);
            continue;
        }
        let priority = rates.priority(due);
        if auction {
            let waited = now.saturating_sub(due.height);
            table.enter(due.actor, accounts).standing.note(waited, priority);
        }
        let cost = rates.max_cost(due, priority.unwrap_or(0));
        if table.balance(due.payer, accounts) < cost {
            if auction {
                counts.uncovered += 1;
            } else {
                collect(&mut insolvent, &mut counts.gc_waiting, index);
            }
            continue;
        }
        let Some(priority) = priority else {
            counts.priced_out += 1;
            continue;
        };
        let asks = Room { cycles: u64::from(due.gas_limit), cells: due.cell_limit() };
        if asks.cycles > rates.cap || asks.cells > lane.cells {
            counts.over_cap += 1;
            continue;
        }
        counts.ranked += 1;
        least.cycles = least.cycles.min(asks.cycles);
        least.cells = least.cells.min(asks.cells);
        ready.set(index);
        if asks.cycles <= lane.cycles {
            let weight = || table.weight(due.actor, accounts);
            top.offer(rates.rank(index, due, priority, weight));
        }
    }
    top.finish();
    // If no slice has room for any timer, the round of slices is skipped.
    let slices = auction && table.apportion(lane.cycles) >= least.cycles;
    let ranking = Ranking { due, now, rates, least, slices, running: None, buffers };
    Scan { expired, insolvent, gc_left, counts, ranking }
}

#[cfg(test)]
mod tests;
