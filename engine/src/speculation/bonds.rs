//! The bonds that a chain requires: the minimum under a commitment, and the share that is lost for
//! each reason (AgenC §4.4, §5.3).
//!
//! All values are governed (`system:tasks:`). The chain enforces them; an agent reads them there.

use super::{RollbackReason, stake::WHOLE};
use crate::{primitives::Wei, record};

record! {
    /// The lost shares of a bond, in basis points, by reason.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Slashing {
        pub proof_failed: u64,
        pub proof_timeout: u64,
        pub ancestor_failed: u64,
        pub claim_expired: u64,
        pub manual_cancel: u64,
        pub commitment_expired: u64,
    }
}

impl Slashing {
    /// The shares in AgenC §4.4: the default of a machine without a chain's values.
    pub const SOURCE: Self = Self {
        proof_failed: 1_000,
        proof_timeout: 500,
        ancestor_failed: 0,
        claim_expired: 500,
        manual_cancel: 0,
        commitment_expired: 500,
    };
    /// No shares: for a machine whose driver books the chain's slashes.
    pub const NONE: Self = Self {
        proof_failed: 0,
        proof_timeout: 0,
        ancestor_failed: 0,
        claim_expired: 0,
        manual_cancel: 0,
        commitment_expired: 0,
    };
    /// Maximum share for a reason (AgenC §12.2 bounds `slashPercentage` to 0.5).
    pub const MAX: u64 = WHOLE / 2;

    /// The share for a reason, in basis points.
    pub const fn points(&self, reason: RollbackReason) -> u64 {
        match reason {
            RollbackReason::ProofFailed => self.proof_failed,
            RollbackReason::ProofTimeout => self.proof_timeout,
            RollbackReason::AncestorFailed => self.ancestor_failed,
            RollbackReason::ClaimExpired => self.claim_expired,
            RollbackReason::ManualCancel => self.manual_cancel,
            RollbackReason::CommitmentExpired => self.commitment_expired,
        }
    }
}

/// A chain's requirements for bonds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bonds {
    /// The minimum bond of a task without uncompleted ancestors, in wei.
    pub base: u64,
    /// The addition to it per level of depth, in wei.
    pub per_depth: u64,
    pub slashing: Slashing,
}
record!(Bonds { base, per_depth, slashing });

impl Bonds {
    /// A chain's values, unless its genesis sets others. At the genesis basefee the most expensive
    /// transaction about a task, a completion, costs 0.32 CBY, and a resolution 0.04 CBY. The
    /// cheapest way to abandon a commitment loses 1 CBY, a refused proof 5 CBY.
    pub const DEFAULT: Self = Self {
        base: 50_000_000_000,
        per_depth: 25_000_000_000,
        slashing: Slashing { manual_cancel: 200, ..Slashing::SOURCE },
    };
    /// No minimum bond, and the shares of [`Slashing::SOURCE`].
    pub const UNBOUND: Self = Self { base: 0, per_depth: 0, slashing: Slashing::SOURCE };
    /// Maximum of [`Self::base`] and [`Self::per_depth`], in wei: 10⁹ CBY.
    pub const MAX: u64 = 1_000_000_000_000_000_000;

    pub const fn least(&self, depth: u32) -> Wei {
        // At most 2⁶⁴ · 2³², so exact.
        Wei::new(self.base as u128 + self.per_depth as u128 * depth as u128)
    }

    /// The lost part of a bond for a reason, rounded down.
    pub const fn slashed(&self, bond: Wei, reason: RollbackReason) -> Wei {
        const ALL: u128 = WHOLE as u128;
        let points = self.slashing.points(reason) as u128;
        // Whole ten-thousandths first, so that no bond overflows.
        let (shares, rest) = (bond.get() / ALL, bond.get() % ALL);
        Wei::new(shares * points + rest * points / ALL)
    }
}

impl Default for Bonds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_no_bond_is_too_large() {
        let check = |bond: u128, reason, expected: u128| {
            let slashed = Bonds::DEFAULT.slashed(Wei::new(bond), reason);
            assert_eq!(slashed, Wei::new(expected), "{bond} {reason}");
        };
        check(999, RollbackReason::ClaimExpired, 49);
        check(999, RollbackReason::ProofFailed, 99);
        check(10_001, RollbackReason::ProofFailed, 1_000);
        check(49, RollbackReason::ManualCancel, 0);
        check(u128::MAX, RollbackReason::ProofFailed, u128::MAX / 10);
        check(u128::MAX, RollbackReason::AncestorFailed, 0);
        check(0, RollbackReason::ProofFailed, 0);
    }

    #[test]
    fn the_least_bond_grows_with_the_depth() {
        let least = |depth| Bonds::DEFAULT.least(depth).get();
        assert_eq!((least(0), least(3)), (50_000_000_000, 125_000_000_000));
        let most = Bonds { base: Bonds::MAX, per_depth: Bonds::MAX, ..Bonds::DEFAULT };
        assert_eq!(most.least(u32::MAX).get(), u128::from(Bonds::MAX) << 32);
    }
}
