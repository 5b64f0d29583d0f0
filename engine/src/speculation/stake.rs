//! What an agent's stake is doing: available, locked under bonds, slashed (AgenC §5.3).
//!
//! A bond is locked at scheduling and released or slashed exactly once. available = deposited −
//! slashed; locked is a part of it. Work is accepted while locked ≤ min(available, maxStake);
//! a deposit that is taken back later stops new work, not what runs.

use crate::{primitives::Wei, record};

/// Basis points of the whole.
pub const WHOLE: u64 = 10_000;

/// An agent's stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stake {
    /// What was deposited, without what was slashed.
    pub available: Wei,
    /// Bonds of the live tasks.
    pub locked: Wei,
    /// What was ever slashed.
    pub slashed: Wei,
}
record!(Stake { available, locked, slashed });

impl Stake {
    /// Sets the deposit, as it is after all that was slashed so far.
    pub const fn set(&mut self, available: Wei) {
        self.available = available;
    }

    /// What may be locked yet, where no more than `most` may be locked in all.
    pub fn free(&self, most: Wei) -> Wei {
        self.available.min(most).saturating_sub(self.locked)
    }

    pub(super) const fn lock(&mut self, bond: Wei) {
        self.locked = self.locked.saturating_add(bond);
    }

    pub(super) const fn release(&mut self, bond: Wei) {
        self.locked = self.locked.saturating_sub(bond);
    }

    /// Ends a bond, `points` basis points of it lost, as far as they are still deposited; yields
    /// what was slashed.
    pub(super) fn slash(&mut self, bond: Wei, points: u64) -> Wei {
        self.release(bond);
        let share = bond.saturating_mul(points.min(WHOLE).into()).get() / u128::from(WHOLE);
        let lost = Wei::new(share).min(self.available);
        self.available = self.available.saturating_sub(lost);
        self.slashed = self.slashed.saturating_add(lost);
        lost
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
