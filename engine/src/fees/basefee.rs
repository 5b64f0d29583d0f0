//! The basefees of cycles and of cells, each with its own target (spec chain.md, "Fees"), and the
//! basefee of the timer lane (timers.md §4, CIP-1 §5).

use crate::{primitives::Wei, record};

/// A basefee never falls below 1 wei, from which it can still rise.
pub const MIN_BASEFEE: Wei = Wei::new(1);

/// A block moves a basefee by at most this fraction of it.
const MAX_CHANGE: u128 = 8;

/// The basefee after a block that used `used` units of a target of `target`.
///
/// Moves by (used − target) / target / 8, at most an eighth; rises by at least 1 wei, falls no
/// further than [`MIN_BASEFEE`]. Exact over the whole range; a rise beyond it saturates.
pub fn next(basefee: Wei, used: u64, target: u64) -> Wei {
    let fee = basefee.get();
    let step =
        Wei::new(share(fee, u128::from(used.abs_diff(target)), u128::from(target)) / MAX_CHANGE);
    if used > target {
        basefee.saturating_add(step.max(Wei::new(1)))
    } else if used < target {
        basefee.saturating_sub(step).max(MIN_BASEFEE)
    } else {
        basefee
    }
}

/// The maximum lane basefee, in wei per cycle: 1,000,000,000 CBY. It keeps the prices that timers
/// offer and pay within 64 bits.
pub const MOST_LANE_BASEFEE: u64 = 1_000_000_000_000_000_000;

record! {
    /// How the lane basefee moves. Governance can change it; the default follows CIP-1 §5, with
    /// bounds that no lane reaches.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LaneCurve {
        /// A block moves the basefee by at most one part in this number. At least 1.
        pub change_denominator: u64 = MAX_CHANGE as u64,
        /// The minimum, in wei per cycle.
        pub min: u64 = 1,
        /// The maximum, in wei per cycle.
        pub max: u64 = MOST_LANE_BASEFEE,
    }
}

impl LaneCurve {
    pub const fn holds(&self, basefee: Wei) -> bool {
        self.min as u128 <= basefee.get() && basefee.get() <= self.max as u128
    }

    pub fn clamp(&self, basefee: Wei) -> Wei {
        basefee.min(Wei::new(self.max.into())).max(Wei::new(self.min.into()))
    }

    /// [`next_lane`] within the bounds.
    pub fn next(&self, basefee: Wei, consumed: u64, lane: u64) -> Wei {
        self.clamp(next_lane(basefee, consumed, lane, self.change_denominator))
    }
}

/// The lane basefee after a block whose timers used `consumed` of the lane's `lane` cycles.
///
/// Moves by (2 × consumed − lane) / lane, at most by one part in `change_denominator`, which is an
/// eighth unless governance changes it. Unlike in [`next`], the share is not divided before it is
/// capped, so a lane that is a sixteenth away from half full already moves the basefee by the
/// maximum. Rises by at least 1 wei, falls no further than [`MIN_BASEFEE`]. Exact over the whole
/// range; a rise beyond it saturates.
pub fn next_lane(basefee: Wei, consumed: u64, lane: u64, change_denominator: u64) -> Wei {
    let fee = basefee.get();
    let (twice, lane) = (2 * u128::from(consumed), u128::from(lane));
    let most = fee / u128::from(change_denominator).max(1);
    let step = Wei::new(share(fee, twice.abs_diff(lane), lane).min(most));
    if twice > lane {
        basefee.saturating_add(step.max(Wei::new(1)))
    } else if twice < lane {
        basefee.saturating_sub(step).max(MIN_BASEFEE)
    } else {
        basefee
    }
}

/// floor(fee × min(part, whole) / whole) for a `whole` below 2^64, without overflowing a u128 in
/// between.
fn share(fee: u128, part: u128, whole: u128) -> u128 {
    if part >= whole {
        return fee;
    }
    // fee = q × whole + r: q × part stays below fee, r × part below 2^128.
    fee / whole * part + fee % whole * part / whole
}

#[cfg(test)]
mod tests;
