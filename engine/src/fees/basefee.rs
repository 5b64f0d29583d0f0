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

/// How the lane basefee moves. Governance can change it; the default follows CIP-1 §5, with bounds
/// that no lane reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneCurve {
    /// A block moves the basefee by at most one part in this number. At least 1.
    pub change_denominator: u64,
    /// The minimum, in wei per cycle.
    pub min: u64,
    /// The maximum, in wei per cycle.
    pub max: u64,
}
record!(LaneCurve { change_denominator, min, max });

impl Default for LaneCurve {
    fn default() -> Self {
        Self { change_denominator: MAX_CHANGE as u64, min: 1, max: MOST_LANE_BASEFEE }
    }
}

impl LaneCurve {
    /// Whether a basefee lies within the bounds.
    pub const fn holds(&self, basefee: Wei) -> bool {
        self.min as u128 <= basefee.get() && basefee.get() <= self.max as u128
    }

    /// The nearest basefee within the bounds.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(fee: u128, used: u64, target: u64, expected: u128) {
        assert_eq!(next(Wei::new(fee), used, target).get(), expected, "{fee} {used} {target}");
    }

    #[test]
    fn moves_by_at_most_an_eighth_and_keeps_its_floor() {
        check(1_000, 100, 100, 1_000);
        check(1_000, 200, 100, 1_125);
        check(1_000, 150, 100, 1_062);
        check(1_000, u64::MAX, 100, 1_125);
        check(1_000, 0, 100, 875);
        check(1_000, 50, 100, 938);
        check(1, 101, 100, 2);
        check(1, 0, 100, 1);
        check(0, 0, 100, 1);
        check(7, 0, 100, 7);
    }

    #[test]
    fn the_ends_of_the_range_hold() {
        check(u128::MAX, u64::MAX, 1, u128::MAX);
        check(u128::MAX, 0, u64::MAX, u128::MAX - u128::MAX / 8);
        check(8, 1, 0, 9);
        check(8, 0, 0, 8);
    }

    fn check_lane(fee: u128, consumed: u64, lane: u64, expected: u128) {
        let next = next_lane(Wei::new(fee), consumed, lane, 8);
        assert_eq!(next.get(), expected, "{fee} {consumed} {lane}");
    }

    #[test]
    fn the_lane_s_reaches_its_bound_a_sixteenth_off_half_full() {
        check_lane(1_000, 50, 100, 1_000);
        check_lane(1_000, 56, 100, 1_120);
        check_lane(1_000, 57, 100, 1_125);
        check_lane(1_000, 44, 100, 880);
        check_lane(1_000, 43, 100, 875);
        check_lane(1_000, 0, 100, 875);
        check_lane(1, 51, 100, 2);
        check_lane(1, 0, 100, 1);
        check_lane(0, 0, 100, 1);
        check_lane(u128::MAX, u64::MAX, u64::MAX, u128::MAX);
        check_lane(u128::MAX, 0, u64::MAX, u128::MAX - u128::MAX / 8);
        check_lane(u128::MAX, u64::MAX / 2, u64::MAX, u128::MAX - u128::MAX / u128::from(u64::MAX));
        check_lane(8, 1, 0, 9);
    }

    #[test]
    fn the_lane_s_keeps_to_its_curve() {
        let curve = LaneCurve { change_denominator: 2, min: 300, max: 1_400 };
        let check = |fee, consumed, expected| {
            assert_eq!(curve.next(Wei::new(fee), consumed, 100).get(), expected);
        };
        check(800, 100, 1_200);
        check(1_200, 100, 1_400);
        check(800, 0, 400);
        check(400, 0, 300);
        check(10, 50, 300);
        check(9_999, 50, 1_400);
        assert!(curve.holds(Wei::new(300)) && curve.holds(Wei::new(1_400)));
        assert!(!curve.holds(Wei::new(299)) && !curve.holds(Wei::new(1_401)));
    }

    proptest! {
        #[test]
        fn the_lane_s_agrees_with_the_formula(
            fee in 0u128..1 << 62, consumed: u64, lane in 1u64..,
        ) {
            let (twice, whole) = (2 * i128::from(consumed), i128::from(lane));
            let step = (fee * (twice - whole).unsigned_abs().min(whole.unsigned_abs()))
                / whole.unsigned_abs();
            let step = step.min(fee / 8);
            let expected = match twice.cmp(&whole) {
                std::cmp::Ordering::Greater => fee + step.max(1),
                std::cmp::Ordering::Equal => fee,
                std::cmp::Ordering::Less => (fee - step).max(1),
            };
            check_lane(fee, consumed, lane, expected);
        }

        /// The formula as it is written, for values that do not overflow it.
        #[test]
        fn agrees_with_the_formula(fee in 0u128..1 << 64, used: u64, target in 1u64..) {
            let step = fee * u128::from(used.abs_diff(target)) / u128::from(target) / 8;
            let step = step.min(fee / 8);
            let expected = match used.cmp(&target) {
                std::cmp::Ordering::Greater => fee + step.max(1),
                std::cmp::Ordering::Equal => fee,
                std::cmp::Ordering::Less => (fee - step).max(1),
            };
            check(fee, used, target, expected);
        }
    }
}
