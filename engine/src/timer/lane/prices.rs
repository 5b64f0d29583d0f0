//! What a block's timers pay, and what that makes of a timer's rank.

use super::top::Rank;
use crate::{
    primitives::Wei,
    timer::{Config, Due, Policy, eip1559, record},
};

/// What a block's timers pay, the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// The block's policy.
    pub policy: Policy,
    /// Basefee of a cycle, in wei.
    pub basefee_cycle: Wei,
    /// What a cycle of the lane costs beside it, in wei; read under `eip1559` alone.
    pub basefee_lane: Wei,
    /// Basefee of a cell, in wei.
    pub basefee_cell: Wei,
    /// Median priority of the previous block's fires, in wei per cycle.
    pub p50: Wei,
    /// Limits.
    pub config: Config,
}

impl Prices {
    /// What a timer pays the proposer if it fires in this block, in wei per cycle; `None`: its cap
    /// is too low and it waits.
    ///
    /// Its agent, where it has one that has not answered yet, bids 2 × the price that its cap must
    /// reach and a priority of p50: `eip1559`'s default bid, and the like under `gba-auction`.
    pub fn priority(&self, due: &Due) -> Option<Wei> {
        Rates::new(self).priority(due).map(|wei| Wei::new(u128::from(wei)))
    }

    /// What a cycle of a fire with that priority costs, in wei: basefee, lane basefee and priority
    /// (timers.md §3).
    pub fn cycle_price(&self, priority: Wei) -> Wei {
        Rates::new(self).base.saturating_add(priority)
    }

    /// The most that such a fire of a timer with these limits costs, in wei.
    pub fn max_cost(&self, gas_limit: u64, cell_limit: u64, priority: Wei) -> Wei {
        record::max_cost(gas_limit, self.cycle_price(priority), cell_limit, self.basefee_cell)
    }

    /// What a cycle of the lane costs beside the cycle basefee, in wei.
    pub const fn lane(&self) -> Wei {
        match self.policy {
            Policy::Eip1559 => self.basefee_lane,
            Policy::Fifo | Policy::GbaAuction => Wei::ZERO,
        }
    }

    /// What the lane has.
    pub const fn room(&self) -> Room {
        Room { cycles: self.config.lane_timer_cycles, cells: self.config.lane_timer_cells }
    }

    /// Cycles beyond which a timer is not attempted.
    pub const fn cap(&self) -> u64 {
        self.config.cycle_cap(self.policy)
    }
}

/// What a lane has left for fires, or what one takes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// In cycles.
    pub cycles: u64,
    /// In cells.
    pub cells: u64,
}

impl Room {
    /// What is left once `used` is taken.
    pub const fn less(self, used: Self) -> Self {
        Self {
            cycles: self.cycles.saturating_sub(used.cycles),
            cells: self.cells.saturating_sub(used.cells),
        }
    }

    /// Both together.
    pub const fn plus(self, more: Self) -> Self {
        Self {
            cycles: self.cycles.saturating_add(more.cycles),
            cells: self.cells.saturating_add(more.cells),
        }
    }
}

/// [`Prices`] as a pass over all due timers reads them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) policy: Policy,
    /// The price that a timer's cap must reach. Cut to the width of the cap, which is always below
    /// the most: a price that is wider is out of reach still.
    floor: u64,
    /// The priority of the default bid.
    default: u64,
    /// The most that a priority can be.
    most: u64,
    /// What a cycle costs without priority.
    base: Wei,
    /// What a cell costs.
    cell: Wei,
    /// Both of these where they fit, which makes a product of two of 64 bits; they always do where
    /// a chain can be.
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

    /// Where a timer stands among those of its block.
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
