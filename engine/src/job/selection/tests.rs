//! Draws: their distribution, and what favours a runner.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn weights_grow_with_the_logarithm_of_the_stake() {
    let check = |stake: u128, weight: u64| {
        assert_eq!(stake_to_weight(Wei::new(stake)), weight, "{stake}");
    };
    let min = MIN_STAKE.get();
    check(0, 1);
    check(min - 1, 1);
    check(min, 2);
    check(3 * min - 1, 2);
    check(3 * min, 3);
    check(7 * min, 4);
    check(1_023 * min, 11);
    check(u128::MAX, 85);
}

/// Compares with the weight's definition, on both sides of each step.
#[test]
fn weights_step_where_the_definition_does() {
    let min = MIN_STAKE.get();
    let defined = |stake: u128| u64::from(u128::BITS - (stake / min + 1).leading_zeros());
    for k in 0..85 {
        let Some(step) = min.checked_mul((1 << k) - 1) else { continue };
        for stake in [step.saturating_sub(1), step, step + 1, step + min - 1, step + min] {
            assert_eq!(stake_to_weight(Wei::new(stake)), defined(stake), "{stake}");
        }
    }
    for stake in [u128::MAX, u128::MAX - min, u128::MAX - min + 1, u128::MAX / 2] {
        assert_eq!(stake_to_weight(Wei::new(stake)), defined(stake), "{stake}");
    }
}

/// An independent implementation of the rules, as in the specification's reference.
fn expected(
    candidates: &[(Address, Wei)],
    seed: Hash,
    m: usize,
    mru: Option<Favoured>,
) -> Selection {
    let mut pool = candidates.to_vec();
    pool.sort_unstable();
    let mut selection = Selection::default();
    let mut state = seed;
    for i in 0..m.min(pool.len()) {
        let weight = |(address, stake): &(Address, Wei)| {
            let favoured = mru.filter(|mru| i == 0 && mru.runner == *address);
            stake_to_weight(*stake) * favoured.map_or(1, |mru| mru.multiplier)
        };
        let weights: Vec<u64> = pool[i..].iter().map(weight).collect();
        let total = weights.iter().sum();
        state = keccak256(&[state.as_bytes(), &(i as u64).to_le_bytes()]);
        let r = u64::from_le_bytes(*state.0.first_chunk().unwrap()) % total;
        let mut rest = r;
        let mut j = 0;
        while rest >= weights[j] {
            rest -= weights[j];
            j += 1;
        }
        pool.swap(i, i + j);
        let picked = pool[i].0;
        selection.committee.push(picked);
        selection.draws.push(Draw { draw: i as u64, r, total, picked });
    }
    selection
}

#[test]
fn draws_are_the_references_whatever_the_blocks() {
    for n in [1u32, 2, 3, 100, 255, 256, 257, 511, 512, 513, 1_000] {
        let random = |i: u32| keccak256(&[&i.to_be_bytes()]).0;
        let candidate = |i: u32| {
            let [stake, address @ ..] = random(i);
            (Address(*address.first_chunk().unwrap()), Wei::new(MIN_STAKE.get() << (stake % 80)))
        };
        let mut candidates: Vec<_> = (0..n).map(candidate).collect();
        for round in 0..8u32 {
            let multiplier = [4, 1, 7, Connectivity::MAX_MULTIPLIER][round as usize % 4];
            let mru = (round % 5 > 0).then(|| {
                let runner = candidates[(round * 97 % n) as usize].0;
                Favoured { runner, multiplier }
            });
            let seed = Hash(random(round << 16));
            for m in [1, 3, 9, n as usize] {
                let drawn = draw(&candidates, seed, m, mru);
                assert_eq!(drawn, expected(&candidates, seed, m, mru), "{m} of {n}");
            }
            if round == 3 {
                candidates.sort_unstable();
            }
        }
    }
}

fn candidates(n: u8) -> Vec<(Address, Wei)> {
    (0..n).map(|i| (Address([i; 20]), MIN_STAKE)).collect()
}

#[test]
fn the_mru_runner_is_favoured_in_the_first_draw_only() {
    let mru = Address([3; 20]);
    let favoured = |runner, multiplier| Some(Favoured { runner, multiplier });
    let selection = draw(&candidates(5), Hash::ZERO, 3, favoured(mru, 4));
    // Every weight is 2; the bonus of 6 ends with draw 0, regardless of the pick.
    let totals: Vec<_> = selection.draws.iter().map(|draw| draw.total).collect();
    assert_eq!(totals, [16, 8, 6]);
    let tenfold = draw(&candidates(5), Hash::ZERO, 3, favoured(mru, 10));
    let totals: Vec<_> = tenfold.draws.iter().map(|draw| draw.total).collect();
    assert_eq!(totals, [28, 8, 6]);
    let first =
        |multiplier| draw(&candidates(1), Hash::ZERO, 1, favoured(Address([0; 20]), multiplier));
    let totals = [0, 1, 100, 101, u64::MAX].map(|multiplier| first(multiplier).draws[0].total);
    assert_eq!(totals, [2, 2, 200, 200, 200], "values out of range are clamped");
    let stranger = favoured(Address([9; 20]), 4);
    assert_eq!(
        draw(&candidates(5), Hash::ZERO, 3, stranger),
        draw(&candidates(5), Hash::ZERO, 3, None)
    );
}

proptest! {
    #[test]
    fn a_draw_is_a_set_of_candidates_in_any_order(
        stakes in prop::collection::vec(any::<u128>(), 0..40),
        seed: [u8; 32],
        m in 0usize..50,
        mru in prop::option::of(0u8..50),
        multiplier in 1..=Connectivity::MAX_MULTIPLIER,
        turn in any::<prop::sample::Index>(),
    ) {
        let mut candidates: Vec<_> = stakes
            .iter()
            .enumerate()
            .map(|(i, stake)| (Address([i as u8; 20]), Wei::new(*stake)))
            .collect();
        let runner = mru.map(|i| Address([i; 20]));
        let mru = runner.map(|runner| Favoured { runner, multiplier });
        let selection = draw(&candidates, Hash(seed), m, mru);
        let distinct: BTreeSet<_> = selection.committee.iter().collect();
        prop_assert_eq!(distinct.len(), m.min(candidates.len()));
        prop_assert_eq!(&selection, &expected(&candidates, Hash(seed), m, mru));
        for (i, draw) in selection.draws.iter().enumerate() {
            prop_assert_eq!(draw.draw, i as u64);
            prop_assert_eq!(draw.picked, selection.committee[i]);
            prop_assert!(draw.r < draw.total);
        }
        if !candidates.is_empty() {
            let by = turn.index(candidates.len());
            candidates.rotate_left(by);
        }
        prop_assert_eq!(draw(&candidates, Hash(seed), m, mru), selection);
    }
}
