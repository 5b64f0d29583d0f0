//! Basefees against the formula as it is written.

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
