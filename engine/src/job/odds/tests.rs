//! Odds against draws counted one by one.

use super::*;
use crate::{
    job::selection::{Favoured, draw, stake_to_weight},
    primitives::{Address, Wei, keccak256},
    registry::MIN_STAKE,
};

fn fraction(of: u128, all: u128) -> Fraction {
    Fraction { of, all }
}

#[test]
fn one_of_some_is_drawn_by_its_share_of_the_weight() {
    let found = odds(&[2, 2, 3], Some((1, 4)), 1);
    let expected = [fraction(2, 13), fraction(8, 13), fraction(3, 13)];
    assert_eq!(found.iter().map(|odds| odds.first).collect::<Vec<_>>(), expected);
    assert_eq!(found.iter().map(|odds| odds.any.unwrap()).collect::<Vec<_>>(), expected);
}

#[test]
fn a_committee_of_all_has_every_candidate_and_of_too_many_none() {
    for odds in odds(&[2, 3, 4], Some((0, 4)), 3) {
        assert_eq!(odds.any, Some(Fraction::ONE));
    }
    assert_eq!(odds(&[2, 3], None, 3), []);
    assert_eq!(odds(&[2, 3], None, 0), []);
    assert_eq!(odds(&[2, 0], None, 1), []);
}

#[test]
fn of_equals_each_has_the_same_chance() {
    for odds in odds(&[5; 300], None, 64) {
        assert_eq!((odds.first, odds.any), (fraction(1, 300), Some(fraction(16, 75))));
    }
}

/// By definition: sums over every order in which `m` can be drawn, with its chance.
#[test]
fn chances_are_sums_over_all_orders() {
    /// Weights in draw 0 and after it.
    type Weights<'a> = [&'a [u16]; 2];
    fn orders(of: Weights<'_>, m: usize, chance: f64, taken: &mut Vec<usize>, sums: &mut [f64]) {
        if taken.len() == m {
            for at in taken.iter() {
                sums[*at] += chance;
            }
            return;
        }
        let weights = of[usize::from(!taken.is_empty())];
        let left: Vec<usize> = (0..weights.len()).filter(|at| !taken.contains(at)).collect();
        let total: u16 = left.iter().map(|at| weights[*at]).sum();
        for at in left {
            taken.push(at);
            let share = f64::from(weights[at]) / f64::from(total);
            orders(of, m, chance * share, taken, sums);
            taken.pop();
        }
    }
    let weights = [2, 2, 3, 7, 2, 3];
    for favoured in [None, Some((2, 4)), Some((3, 4))] {
        let mut first = weights.to_vec();
        if let Some((at, times)) = favoured {
            first[at] *= times;
        }
        for m in 1..=4 {
            let mut sums = [0.0; 6];
            orders([&first, &weights], m, 1.0, &mut Vec::new(), &mut sums);
            for (odds, sum) in odds(&weights, favoured, m).iter().zip(sums) {
                let any = odds.any.expect("small numbers");
                let exact = any.of as f64 / any.all as f64;
                assert!((exact - sum).abs() < 1e-12, "{exact} {sum}");
            }
        }
    }
}

/// Frequencies in draws with many seeds.
#[test]
fn draws_come_out_as_the_chances_say() {
    let stakes: Vec<u128> = vec![1, 1, 3, 7, 15];
    let candidates: Vec<(Address, Wei)> = (0u8..)
        .zip(&stakes)
        .map(|(i, times)| (Address([i; 20]), Wei::new(MIN_STAKE.get() * times)))
        .collect();
    let weights: Vec<u16> =
        candidates.iter().map(|(_, stake)| stake_to_weight(*stake) as u16).collect();
    let found = odds(&weights, Some((0, 4)), 2);
    let favoured = Some(Favoured { runner: Address([0; 20]), multiplier: 4 });
    let tries = 20_000u32;
    let mut counts = [0u32; 5];
    for i in 0..tries {
        let seed = keccak256(&[&i.to_be_bytes()]);
        for picked in draw(&candidates, seed, 2, favoured).committee {
            counts[usize::from(picked.0[0])] += 1;
        }
    }
    for (odds, count) in found.iter().zip(counts) {
        let any = odds.any.unwrap();
        let expected = any.of as f64 / any.all as f64;
        let got = f64::from(count) / f64::from(tries);
        assert!((expected - got).abs() < 0.02, "{expected} {got}");
    }
}

#[test]
fn numbers_that_grow_too_large_leave_the_first_draw_alone() {
    let weights: Vec<u16> = (2..80).collect();
    let found = odds(&weights, None, 40);
    assert_eq!(found.len(), 78);
    assert!(found.iter().all(|odds| odds.any.is_none()));
    assert_eq!(found[0].first, Fraction::new(2, weights.iter().sum::<u16>().into()));
}
