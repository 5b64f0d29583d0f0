//! The probability that a draw picks each candidate, over all seeds, as exact fractions.
//!
//! `r` is 64 bits of a hash modulo the total, so each fraction is off by less than total / 2^64.
//!
//! Candidates with the same weight have the same chances. The state of a draw is the number of
//! candidates of each weight that it has taken. Each state's probability follows from those one
//! draw before. The average number taken of a weight, divided by the number of candidates with that
//! weight, is the chance of each of them.

use std::collections::BTreeMap;

/// Maximum number of transitions between states; beyond it only the first draw's chances are
/// returned.
const MOST_STEPS: usize = 20_000;

/// A fraction of integers in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    pub of: u128,
    /// The denominator, not 0.
    pub all: u128,
}

impl Fraction {
    const ZERO: Self = Self { of: 0, all: 1 };
    const ONE: Self = Self { of: 1, all: 1 };

    fn new(of: u128, all: u128) -> Self {
        let by = gcd(of, all);
        Self { of: of / by, all: all / by }
    }

    fn plus(self, other: Self) -> Option<Self> {
        let by = gcd(self.all, other.all);
        let ours = self.of.checked_mul(other.all / by)?;
        let theirs = other.of.checked_mul(self.all / by)?;
        let all = self.all.checked_mul(other.all / by)?;
        Some(Self::new(ours.checked_add(theirs)?, all))
    }

    fn times(self, of: u128, all: u128) -> Option<Self> {
        // Reduced crosswise first, so that the products are in lowest terms.
        let (ours, theirs) = (Self::new(self.of, all), Self::new(of, self.all));
        Some(Self { of: ours.of.checked_mul(theirs.of)?, all: ours.all.checked_mul(theirs.all)? })
    }
}

/// The greatest common divisor; `b` is not 0.
const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while a != 0 {
        (a, b) = (b % a, a);
    }
    b
}

/// A candidate's chances over all seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Odds {
    /// The chance to be drawn first.
    pub first: Fraction,
    /// The chance to be in the committee; `None` if the numbers overflow a u128 or there are too
    /// many states.
    pub any: Option<Fraction>,
}

/// The chances of each candidate, by its weight, in a draw of `m`. `favoured` is the index of the
/// MRU runner and the factor on its weight in draw 0. Empty if there are fewer than `m` candidates,
/// because none is drawn then, if `m` is 0, or if a weight is 0, which does not occur.
pub fn odds(weights: &[u16], favoured: Option<(usize, u16)>, m: usize) -> Vec<Odds> {
    if m == 0 || weights.len() < m || weights.contains(&0) {
        return Vec::new();
    }
    // The number of candidates by their weights in draw 0 and after it.
    let of = |place: usize| {
        let weight = weights[place];
        let times = favoured.filter(|(at, _)| *at == place).map_or(1, |(_, times)| times);
        (u128::from(weight) * u128::from(times.max(1)), u128::from(weight))
    };
    let mut classes = BTreeMap::<(u128, u128), u128>::new();
    for place in 0..weights.len() {
        *classes.entry(of(place)).or_default() += 1;
    }
    let total: u128 = classes.iter().map(|((first, _), count)| first * count).sum();
    let taken =
        taken(&classes.iter().map(|(class, count)| (*class, *count)).collect::<Vec<_>>(), m);
    let order: BTreeMap<_, _> = classes.keys().zip(0usize..).collect();
    (0..weights.len())
        .map(|place| {
            let class = of(place);
            let any =
                taken.as_ref().and_then(|taken| taken[order[&class]].times(1, classes[&class]));
            Odds { first: Fraction::new(class.0, total), any }
        })
        .collect()
}

/// The average number of candidates of each class in the committee.
fn taken(classes: &[((u128, u128), u128)], m: usize) -> Option<Vec<Fraction>> {
    let mut states = BTreeMap::from([(vec![0u128; classes.len()], Fraction::ONE)]);
    let mut steps = 0;
    for draw in 0..m {
        let mut after = BTreeMap::<Vec<u128>, Fraction>::new();
        for (taken, chance) in states {
            let left = classes.iter().zip(&taken).map(|(((first, later), count), taken)| {
                (if draw == 0 { first } else { later }) * (count - taken)
            });
            let left: Vec<u128> = left.collect();
            let total: u128 = left.iter().sum();
            for (class, weight) in left.into_iter().enumerate().filter(|(_, weight)| *weight > 0) {
                steps += 1;
                if steps > MOST_STEPS {
                    return None;
                }
                let mut next = taken.clone();
                next[class] += 1;
                let sum = after.entry(next).or_insert(Fraction::ZERO);
                *sum = sum.plus(chance.times(weight, total)?)?;
            }
        }
        states = after;
    }
    let mut average = vec![Fraction::ZERO; classes.len()];
    for (taken, chance) in states {
        for (average, taken) in average.iter_mut().zip(taken) {
            *average = average.plus(chance.times(taken, 1)?)?;
        }
    }
    Some(average)
}

#[cfg(test)]
mod tests {
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
        fn orders(
            of: Weights<'_>,
            m: usize,
            chance: f64,
            taken: &mut Vec<usize>,
            sums: &mut [f64],
        ) {
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
}
