//! Fires in the window, and the weights that follow.

use super::*;
use crate::primitives::codec::{from_slice, to_vec};
use proptest::prelude::*;

fn key(n: u8) -> Address {
    Address([n; 20])
}

fn fires(of: &[(u8, u32)]) -> BTreeMap<Address, u32> {
    of.iter().map(|&(n, fires)| (key(n), fires)).collect()
}

/// `oracle.twice_median`.
fn twice_median(mut counts: Vec<u64>) -> u64 {
    counts.retain(|&count| count >= 1);
    counts.sort_unstable();
    let mid = counts.len() / 2;
    let doubled = match counts.len() {
        0 => 0,
        odd if odd % 2 == 1 => 2 * counts[mid],
        _ => counts[mid - 1] + counts[mid],
    };
    doubled.max(2)
}

#[test]
fn the_window_ends_before_the_block_at_hand() {
    let mut fairness = Fairness::default();
    fairness.record(Height::new(5), &fires(&[(1, 2), (2, 0)]));
    fairness.record(Height::new(6), &fires(&[(1, 1), (3, 7)]));
    let check = |fairness: &Fairness, expected: [u64; 3]| {
        assert_eq!([1, 2, 3].map(|n| fairness.recent(&key(n))), expected);
    };
    let mut fork = fairness.clone();
    fork.slide(Height::new(8), 3);
    check(&fork, [3, 0, 7]);
    fork.slide(Height::new(9), 3);
    check(&fork, [1, 0, 7]);
    fork.slide(Height::new(10), 3);
    check(&fork, [0, 0, 0]);
    assert_eq!((fork.len(), fork.root()), (0, Hash::ZERO), "no key holds state");
    check(&fairness, [3, 0, 7]);
    fairness.slide(Height::new(8), 1);
    check(&fairness, [0, 0, 0]);
}

#[test]
fn weights_fall_from_two_to_one() {
    let check = |recent, m2, expected| assert_eq!(weight_numerator(recent, m2), expected);
    check(0, 2, 4);
    check(1, 2, 2);
    check(9, 2, 2);
    check(1, 5, 8);
    check(2, 5, 6);
    check(3, 5, 5);
    check(u64::MAX, 7, 7);
}

#[test]
fn fires_that_no_block_records_are_refused() {
    let check = |of: &[(u8, u32)]| {
        let of = of.iter().map(|&(n, fires)| (key(n), fires)).collect();
        let blocks = Map::<Height, Fires>::from_iter([(Height::new(1), Arc::new(of))]);
        assert!(from_slice::<Fairness>(&to_vec(&blocks)).is_err());
    };
    check(&[]);
    check(&[(1, 0)]);
    check(&[(2, 1), (1, 1)]);
    check(&[(1, 1), (1, 1)]);
}

proptest! {
    /// Sums and median equal those of a pass over all blocks, however the window changes, and a
    /// decoded value has the same.
    #[test]
    fn agrees_with_a_pass_over_the_window(
        blocks in prop::collection::vec(
            (prop::collection::btree_map(0u8..12, 0u32..5, 0..6), 1u64..20), 1..60,
        ),
    ) {
        let mut fairness = Fairness::default();
        let mut kept: Vec<(u64, BTreeMap<Address, u32>)> = Vec::new();
        for (height, (fired, window)) in (1..).zip(blocks) {
            fairness.slide(Height::new(height), window);
            kept.retain(|(at, _)| at + window >= height);
            let sum = |n: u8| -> u64 {
                let fires = kept.iter().filter_map(|(_, fires)| fires.get(&key(n)));
                fires.map(|&n| u64::from(n)).sum()
            };
            let sums: Vec<u64> = (0..12).map(sum).collect();
            let got: Vec<u64> = (0..12).map(|n| fairness.recent(&key(n))).collect();
            prop_assert_eq!(&got, &sums);
            prop_assert_eq!(fairness.len(), sums.iter().filter(|&&sum| sum > 0).count());
            prop_assert_eq!(fairness.twice_median(), twice_median(sums));
            let read: Fairness = from_slice(&to_vec(&fairness)).unwrap();
            prop_assert_eq!(&read, &fairness);
            prop_assert_eq!(&read.tally, &fairness.tally);
            prop_assert_eq!(&read.sums, &fairness.sums);
            let fired: Vec<_> = fired.into_iter().collect();
            fairness.record(Height::new(height), &fires(&fired));
            kept.push((height, fires(&fired)));
        }
    }
}
