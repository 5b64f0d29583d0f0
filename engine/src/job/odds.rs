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
mod tests;
