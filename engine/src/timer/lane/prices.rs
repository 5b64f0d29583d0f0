//! The prices of a block's timers, and how they determine a timer's rank.

use super::top::Rank;
use crate::{
    primitives::Wei,
    timer::{Due, Policy, TimerConfig, eip1559, record},
};

/// The prices that are the same for all timers of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    pub policy: Policy,
    pub basefee_cycle: Wei,
    /// Lane basefee per cycle on top of `basefee_cycle`, in wei; used only under `eip1559`.
    pub basefee_lane: Wei,
    pub basefee_cell: Wei,
    /// Median priority of the previous block's fires, in wei per cycle.
    pub p50: Wei,
    pub config: TimerConfig,
}

impl Prices {
    /// The priority that a timer pays the proposer if it fires in this block, in wei per cycle;
    /// `None`: its cap is too low and it waits.
    ///
    /// An agent that has not answered yet counts as bidding twice the price that the cap must reach
    /// and a priority of p50: the default bid of `eip1559` and its equivalent under `gba-auction`.
    pub fn priority(&self, due: &Due) -> Option<Wei> {
        Rates::new(self).priority(due).map(|wei| Wei::new(u128::from(wei)))
    }

    /// The price of a cycle with that priority, in wei: basefee, lane basefee and priority
    /// (timers.md §3).
    pub fn cycle_price(&self, priority: Wei) -> Wei {
        Rates::new(self).base.saturating_add(priority)
    }

    pub fn max_cost(&self, gas_limit: u64, cell_limit: u64, priority: Wei) -> Wei {
        record::max_cost(gas_limit, self.cycle_price(priority), cell_limit, self.basefee_cell)
    }

    /// The price of a cycle of the lane on top of the cycle basefee, in wei.
    pub const fn lane(&self) -> Wei {
        match self.policy {
            Policy::Eip1559 => self.basefee_lane,
            Policy::Fifo | Policy::GbaAuction => Wei::ZERO,
        }
    }

    pub const fn room(&self) -> Room {
        Room { cycles: self.config.lane_timer_cycles, cells: self.config.lane_timer_cells }
    }

    pub const fn cap(&self) -> u64 {
        self.config.cycle_cap(self.policy)
    }
}

/// The remaining capacity of a lane, or the usage of one fire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub cycles: u64,
    pub cells: u64,
}

impl Room {
    /// The rest after `used`, saturating at 0.
    pub const fn less(self, used: Self) -> Self {
        Self {
            cycles: self.cycles.saturating_sub(used.cycles),
            cells: self.cells.saturating_sub(used.cells),
        }
    }

    pub const fn plus(self, more: Self) -> Self {
        Self {
            cycles: self.cycles.saturating_add(more.cycles),
            cells: self.cells.saturating_add(more.cells),
        }
    }
}

/// [`Prices`] in the form that a pass over all due timers uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) policy: Policy,
    /// The price that a timer's cap must reach, saturated to the width of caps. Caps are always
    /// below the maximum, so a wider price is still out of reach.
    floor: u64,
    /// The priority of the default bid, in wei per cycle.
    default: u64,
    /// The maximum priority, in wei per cycle.
    most: u64,
    /// The price of a cycle without priority.
    base: Wei,
    cell: Wei,
    /// `base` and `cell` if both fit into 64 bits, as on every realistic chain, so that products
    /// need only 64-bit factors.
    narrow: Option<[u64; 2]>,
    /// See [`Prices::cap`].
    pub(super) cap: u64,
}

impl Rates {
    pub(super) fn new(prices: &Prices) -> Self {
        let (floor, lane, most) = match prices.policy {
            Policy::Eip1559 => (prices.basefee_lane, prices.basefee_lane, u64::MAX),
            Policy::Fifo => (Wei::ZERO, Wei::ZERO, 0),
            Policy::GbaAuction => (prices.basefee_cycle, Wei::ZERO, u64::MAX),
        };
        let bid = eip1559::default_bid(floor, prices.basefee_cell, prices.p50);
        let default =
            eip1559::priority(bid.max_fee_per_cycle, bid.max_priority_fee_per_cycle, floor)
                .unwrap_or(Wei::ZERO);
        let fits = |wei: Wei| u64::try_from(wei.get()).ok();
        let cut = |wei| fits(wei).unwrap_or(u64::MAX);
        let (base, cell) = (prices.basefee_cycle.saturating_add(lane), prices.basefee_cell);
        Self {
            policy: prices.policy,
            floor: cut(floor),
            default: cut(default).min(most),
            most,
            base,
            cell,
            narrow: fits(base).zip(fits(cell)).map(<[u64; 2]>::from),
            cap: prices.cap(),
        }
    }

    /// See [`Prices::priority`].
    #[inline]
    pub(super) fn priority(&self, due: &Due) -> Option<u64> {
        if due.max_fee == Due::DEFAULT_BID {
            return Some(self.default);
        }
        let rest = due.max_fee.checked_sub(self.floor)?;
        Some(rest.min(due.max_priority).min(self.most))
    }

    /// See [`Prices::max_cost`].
    #[inline]
    pub(super) fn max_cost(&self, due: &Due, priority: u64) -> Wei {
        if let Some([base, cell]) = self.narrow
            && let Some(price) = base.checked_add(priority)
        {
            let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
            // Below 2^96 and 2^86.
            let cycles = product(price, due.gas_limit.into());
            return Wei::new(cycles + product(cell, due.cell_limit()));
        }
        let price = self.base.saturating_add(Wei::new(u128::from(priority)));
        let cells = self.cell.saturating_mul(u128::from(due.cell_limit()));
        price.saturating_mul(u128::from(due.gas_limit)).saturating_add(cells)
    }

    #[inline]
    pub(super) fn rank(
        &self,
        index: u32,
        due: &Due,
        priority: u64,
        weight: impl FnOnce() -> u64,
    ) -> Rank {
        let priority = u128::from(priority);
        if self.policy == Policy::Fifo {
            return Rank::in_turn(index);
        }
        let weight = weight();
        let key = match self.policy {
            Policy::Eip1559 => priority * u128::from(weight),
            _ => priority,
        };
        Rank::by_key(key, weight, due, index)
    }
}
