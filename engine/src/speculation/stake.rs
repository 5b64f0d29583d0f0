//! An agent's stake: available, locked under bonds, slashed (AgenC §5.3).
//!
//! A bond is locked at scheduling and released or slashed exactly once. available = deposited −
//! slashed; locked is a part of it. Work is accepted while locked ≤ min(available, maxStake).
//! Withdrawing a deposit later stops new work, but not running work.
//!
//! A machine slashes by its own shares, which are the source's by default. If the bonds are on a
//! chain, set [`Slashing::NONE`](super::Slashing::NONE) and report each of the chain's slashes
//! ([`Speculation::book_slash`]): the machine's books are then the sum of the chain's events.

use super::{Bonds, DependencyStatus, Speculation, SpeculationEventKind, TaskId};
use crate::{primitives::Wei, record};

/// The whole in basis points.
pub const WHOLE: u64 = 10_000;

/// An agent's stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stake {
    /// The deposit minus all slashes, in wei.
    pub available: Wei,
    /// The bonds of the live tasks, in wei.
    pub locked: Wei,
    /// The sum of all slashes, in wei.
    pub slashed: Wei,
}
record!(Stake { available, locked, slashed });

impl Stake {
    /// Sets the deposit after all slashes so far.
    pub const fn set(&mut self, available: Wei) {
        self.available = available;
    }

    /// The stake that may still be locked if at most `most` may be locked in total.
    pub fn free(&self, most: Wei) -> Wei {
        self.available.min(most).saturating_sub(self.locked)
    }

    pub(super) const fn lock(&mut self, bond: Wei) {
        self.locked = self.locked.saturating_add(bond);
    }

    pub(super) const fn release(&mut self, bond: Wei) {
        self.locked = self.locked.saturating_sub(bond);
    }

    /// Ends a bond; `points` basis points of it are slashed, as far as they are still deposited.
    /// Returns the slashed amount.
    pub(super) fn slash(&mut self, bond: Wei, points: u64) -> Wei {
        self.release(bond);
        let share = bond.saturating_mul(points.min(WHOLE).into()).get() / u128::from(WHOLE);
        let lost = Wei::new(share).min(self.available);
        self.lose(lost);
        lost
    }

    fn lose(&mut self, lost: Wei) {
        self.available = self.available.saturating_sub(lost);
        self.slashed = self.slashed.saturating_add(lost);
    }
}

impl Speculation {
    /// Sets the required bonds, for future tasks, and the cost of future rollbacks.
    pub const fn set_bonds(&mut self, bonds: Bonds) {
        self.bonds = bonds;
    }

    pub const fn bonds(&self) -> &Bonds {
        &self.bonds
    }

    /// The bond of a task at a depth, by the options or by the requirements, whichever is higher;
    /// `None` on overflow of a u64.
    pub fn price(&self, depth: u64) -> Option<u64> {
        let base = self.config.min_stake.max(self.bonds.base);
        let per_depth = self.config.stake_per_depth.max(self.bonds.per_depth);
        per_depth.checked_mul(depth)?.checked_add(base)
    }

    /// Books a chain's slash of a bond in full, even beyond the deposit. No task speculates for
    /// `stake.cooldownPeriodMs` from then on.
    pub fn book_slash(&mut self, lost: Wei, now: u64) {
        self.advance(now);
        if !lost.is_zero() {
            self.stake.lose(lost);
            self.cooldown_until = self.now.saturating_add(self.config.cooldown_period_ms);
            self.with_breaker(|breaker, limits, now| breaker.record_slash(limits, lost, now));
        }
    }

    /// Locks a larger bond for a live task whose commitment the chain has refused for the current
    /// bond; returns whether there is enough stake.
    pub fn raise_bond(&mut self, task: &TaskId, bond: u64, now: u64) -> bool {
        self.advance(now);
        let live = |status: DependencyStatus| status.is_live();
        let Some(at) = self.graph.find(task).filter(|&at| live(self.graph.status_of(at))) else {
            return false;
        };
        let more = Wei::new(bond.saturating_sub(self.terms[at].bond).into());
        if more > self.stake.free(Wei::new(self.config.max_stake.into())) {
            return false;
        }
        self.stake.lock(more);
        self.tell(at, SpeculationEventKind::StakeLocked { amount: more });
        self.terms[at].bond = self.terms[at].bond.max(bond);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stake(available: u128, locked: u128, slashed: u128) -> Stake {
        Stake {
            available: Wei::new(available),
            locked: Wei::new(locked),
            slashed: Wei::new(slashed),
        }
    }

    #[test]
    fn what_is_free_is_bounded_by_deposit_and_limit() {
        let free = |most: u128| stake(100, 40, 0).free(Wei::new(most)).get();
        assert_eq!(free(1_000), 60);
        assert_eq!(free(50), 10);
        assert_eq!(free(30), 0);
    }

    #[test]
    fn a_share_is_rounded_down_and_never_more_than_there_is() {
        let mut some = stake(1_000, 999, 0);
        assert_eq!(some.slash(Wei::new(999), 500).get(), 49);
        assert_eq!(some, stake(951, 0, 49));
        let mut taken_back = stake(10, 999, 5);
        assert_eq!(taken_back.slash(Wei::new(999), 1_000).get(), 10);
        assert_eq!(taken_back, stake(0, 0, 15));
    }
}
