//! A hundred thousand draws against the weights: Pearson's chi-square over whole committees.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const DRAWS: u32 = 100_000;
/// Size of a committee.
const M: usize = 3;
/// The factor on the MRU runner's weight.
const MULTIPLIER: u64 = Connectivity::DEFAULT.mru_multiplier;

fn favoured(mru: Option<Address>) -> Option<Favoured> {
    mru.map(|runner| Favoured { runner, multiplier: MULTIPLIER })
}

/// The value that chi-square exceeds once in a thousand times, in thousandths, with 59 degrees of
/// freedom: five candidates have 60 ordered committees of three.
const CRITICAL: u128 = 98_324;

/// Five candidates whose weights are 1, 2, 3, 5 and 8.
fn candidates() -> Vec<(Address, Wei)> {
    let stake = |weight: u32| Wei::new(MIN_STAKE.get() * ((1 << (weight - 1)) - 1));
    [1, 2, 3, 5, 8].map(|weight| (Address([weight as u8; 20]), stake(weight))).into()
}

/// Frequency of each ordered committee.
fn drawn(mru: Option<Address>) -> BTreeMap<Vec<Address>, u32> {
    let mut found = BTreeMap::new();
    for i in 0..DRAWS {
        let seed = keccak256(&[&i.to_be_bytes()]);
        *found.entry(draw(&candidates(), seed, M, favoured(mru)).committee).or_default() += 1;
    }
    found
}

/// The chance of an ordered committee, as numerator and denominator: each member is drawn by weight
/// among the remaining ones, the MRU runner by its multiplied weight in draw 0 only.
fn chance(committee: &[Address], mru: Option<Address>) -> (u128, u128) {
    let mut left = candidates();
    let (mut numerator, mut denominator) = (1, 1);
    for (i, member) in committee.iter().enumerate() {
        let weight = |(address, stake): &(Address, Wei)| {
            let times = if i == 0 && Some(*address) == mru { MULTIPLIER } else { 1 };
            u128::from(stake_to_weight(*stake) * times)
        };
        denominator *= left.iter().map(weight).sum::<u128>();
        let at = left.iter().position(|(address, _)| address == member).expect("drawn once");
        numerator *= weight(&left.remove(at));
    }
    (numerator, denominator)
}

/// Every ordered committee of three.
fn committees() -> Vec<Vec<Address>> {
    let all: Vec<Address> = candidates().into_iter().map(|(address, _)| address).collect();
    let mut found = Vec::new();
    for a in &all {
        for b in all.iter().filter(|b| *b != a) {
            for c in all.iter().filter(|c| *c != a && *c != b) {
                found.push(vec![*a, *b, *c]);
            }
        }
    }
    found
}

/// Σ (observed − expected)² / expected, in thousandths.
fn chi_square(observed: &BTreeMap<Vec<Address>, u32>, mru: Option<Address>) -> u128 {
    let draws = u128::from(DRAWS);
    let term = |committee: Vec<Address>| {
        let (numerator, denominator) = chance(&committee, mru);
        let observed = u128::from(observed.get(&committee).copied().unwrap_or_default());
        let distance = (observed * denominator).abs_diff(draws * numerator);
        distance * distance * 1_000 / (draws * numerator * denominator)
    };
    committees().into_iter().map(term).sum()
}

/// How often the candidate was drawn first.
fn first(observed: &BTreeMap<Vec<Address>, u32>, who: Address) -> u32 {
    observed.iter().filter(|(committee, _)| committee[0] == who).map(|(_, times)| times).sum()
}

#[test]
fn committees_are_drawn_by_their_weights() {
    let drawn = drawn(None);
    let distance = chi_square(&drawn, None);
    assert!(distance < CRITICAL, "chi-square is {distance} thousandths: {drawn:?}");
}

/// The MRU runner has its multiplied weight in draw 0 and its own weight in later draws. The whole
/// distribution shows it, for light runners and for the heaviest.
#[test]
fn the_mru_runner_has_its_multiple_in_the_first_draw_alone() {
    let plain = drawn(None);
    for (mru, _) in candidates() {
        let favoured = drawn(Some(mru));
        let distance = chi_square(&favoured, Some(mru));
        assert!(distance < CRITICAL, "{mru}: chi-square is {distance} thousandths");
        // The test can tell the difference.
        assert!(chi_square(&favoured, None) > CRITICAL, "{mru}");
        let (with, without) = (first(&favoured, mru), first(&plain, mru));
        assert!(with > without, "{mru}: first in {with} of its draws, in {without} of others");
        assert!(u64::from(with) < MULTIPLIER * u64::from(without), "{mru}: {with}");
    }
}

proptest! {
    /// For all stakes, the MRU runner's share of draw 0 is at most its multiple of its share
    /// without the record, and later draws weigh the remaining candidates as if there were no
    /// record.
    #[test]
    fn the_mru_advantage_is_bounded(
        stakes in prop::collection::vec(any::<u128>(), 1..40),
        seed: [u8; 32],
        m in 1usize..40,
        mru: prop::sample::Index,
    ) {
        let candidates: Vec<_> = stakes
            .iter()
            .enumerate()
            .map(|(i, stake)| (Address([i as u8; 20]), Wei::new(*stake)))
            .collect();
        let (mru, stake) = candidates[mru.index(candidates.len())];
        let favoured = draw(&candidates, Hash(seed), m, favoured(Some(mru)));
        let weight = |stake: &Wei| stake_to_weight(*stake);
        let mut left: u64 = stakes.iter().map(|stake| weight(&Wei::new(*stake))).sum();
        let own = weight(&stake);
        let total = favoured.draws[0].total;
        // own × 4 / total ≤ 4 × own / left, and the record never lowers its share.
        prop_assert_eq!(total, left + own * (MULTIPLIER - 1));
        prop_assert!(own * MULTIPLIER * left >= own * total);
        for draw in &favoured.draws[1..] {
            let before = favoured.draws[draw.draw as usize - 1].picked;
            let (_, stake) = candidates.iter().find(|(a, _)| *a == before).expect("a candidate");
            left -= weight(stake);
            prop_assert_eq!(draw.total, left);
        }
    }
}
