//! The weighted draw of a committee (spec jobs.md §4): CIP-2 §5 with CIP-11 §9.3's preference for
//! the runner used last.

use crate::{
    primitives::{Address, Hash, Height, Wei, keccak256},
    record,
    registry::MIN_STAKE,
};

/// By how much the MRU runner's weight is multiplied in draw 0.
pub const MRU_WEIGHT_MULTIPLIER: u64 = 4;

const SEED_DOMAIN: &[u8] = b"cowboy-runner-select-v2:";
const RETRY_DOMAIN: &[u8] = b"retry:";

/// floor(log2(stake / MIN_STAKE + 1)) + 1: at least 1, at most 85.
pub const fn stake_to_weight(stake: Wei) -> u64 {
    // The bit length of x is floor(log2 x) + 1.
    let multiple = stake.get() / MIN_STAKE.get() + 1;
    (u128::BITS - multiple.leading_zeros()) as u64
}

/// The seed of a job's first draw. `block_hash`: the parent of the block that records the job.
pub fn seed(block_hash: Hash, job_id: Hash, submitted_at: Height) -> Hash {
    let at = submitted_at.get().to_le_bytes();
    keccak256(&[block_hash.as_bytes(), SEED_DOMAIN, job_id.as_bytes(), &at])
}

/// The seed of the draw that retry number `retry` (from 1) makes, from the first draw's.
pub fn retry_seed(original: Hash, retry: u32) -> Hash {
    keccak256(&[original.as_bytes(), RETRY_DOMAIN, &retry.to_le_bytes()])
}

/// A drawn committee, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The runners in the order they were drawn.
    pub committee: Vec<Address>,
    /// One entry per draw.
    pub draws: Vec<Draw>,
}
record!(Selection { committee, draws });

/// One draw: `r` fell on `picked` among the candidates that were left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Its number, from 0.
    pub draw: u64,
    /// The random number, below `total`.
    pub r: u64,
    /// The weights of the candidates left, the MRU runner's multiplied where it was.
    pub total: u64,
    /// Whom it fell on.
    pub picked: Address,
}
record!(Draw { draw, r, total, picked });

/// The committee of `m` drawn from `candidates`; nobody where there are fewer: the job waits.
pub fn committee(
    candidates: &[(Address, Wei)],
    seed: Hash,
    m: usize,
    mru: Option<Address>,
) -> Selection {
    match candidates.len() < m {
        true => Selection::default(),
        false => draw(candidates, seed, m, mru),
    }
}

/// Draws `m` of `candidates` (address and stake, in any order), or all where there are fewer.
///
/// Weighted Fisher–Yates over the candidates in ascending order of address. `mru`: a runner with a
/// live MRU record, favoured in draw 0 only, and only if it is a candidate.
pub fn draw(
    candidates: &[(Address, Wei)],
    seed: Hash,
    m: usize,
    mru: Option<Address>,
) -> Selection {
    let mut sorted = candidates.to_vec();
    sorted.sort_unstable();
    let mut pool: Vec<(Address, u64)> =
        sorted.into_iter().map(|(address, stake)| (address, stake_to_weight(stake))).collect();
    // Weights are at most 85, and no list in memory is long enough for the sum to overflow.
    let mut left: u64 = pool.iter().map(|(_, weight)| weight).sum();
    let mut favoured = mru.and_then(|mru| pool.iter().position(|(address, _)| *address == mru));

    let m = m.min(pool.len());
    let mut draws = Vec::with_capacity(m);
    let mut state = seed;
    for i in 0..m {
        // Only draw 0 finds someone favoured.
        let favoured = favoured.take();
        let bonus = favoured.map_or(0, |at| pool[at].1 * (MRU_WEIGHT_MULTIPLIER - 1));
        let total = left + bonus;
        state = keccak256(&[state.as_bytes(), &(i as u64).to_le_bytes()]);
        let low = state.as_bytes().first_chunk().expect("8 of 32 bytes");
        let r = u64::from_le_bytes(*low) % total;

        let mut rest = r;
        let mut picked = i;
        loop {
            let weight = pool[picked].1 + if Some(picked) == favoured { bonus } else { 0 };
            if rest < weight {
                break;
            }
            rest -= weight;
            picked += 1;
        }
        pool.swap(i, picked);
        left -= pool[i].1;
        draws.push(Draw { draw: i as u64, r, total, picked: pool[i].0 });
    }
    Selection { committee: draws.iter().map(|draw| draw.picked).collect(), draws }
}

#[cfg(test)]
mod tests {
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

    fn candidates(n: u8) -> Vec<(Address, Wei)> {
        (0..n).map(|i| (Address([i; 20]), MIN_STAKE)).collect()
    }

    #[test]
    fn the_mru_runner_is_favoured_in_the_first_draw_only() {
        let mru = Address([3; 20]);
        let selection = draw(&candidates(5), Hash::ZERO, 3, Some(mru));
        // Every weight is 2; the bonus of 6 goes with draw 0, whoever was picked.
        let totals: Vec<_> = selection.draws.iter().map(|draw| draw.total).collect();
        assert_eq!(totals, [16, 8, 6]);
        let stranger = Some(Address([9; 20]));
        assert_eq!(
            draw(&candidates(5), Hash::ZERO, 3, stranger),
            draw(&candidates(5), Hash::ZERO, 3, None)
        );
    }

    /// Over many seeds, candidates are drawn first in proportion to their weights.
    #[test]
    fn first_draws_follow_the_weights() {
        let mru = Address([0; 20]);
        let mut first = [0u32; 4];
        for i in 0u32..8_000 {
            let seed = keccak256(&[&i.to_be_bytes()]);
            let selection = draw(&candidates(4), seed, 1, Some(mru));
            first[usize::from(selection.committee[0].0[0])] += 1;
        }
        // Weights 8, 2, 2, 2 of 14; five standard deviations are below 225.
        let expected = [4_571, 1_143, 1_143, 1_143];
        for (got, want) in first.into_iter().zip(expected) {
            assert!(got.abs_diff(want) < 225, "{first:?} drawn, {expected:?} expected");
        }
    }

    proptest! {
        #[test]
        fn a_draw_is_a_set_of_candidates_in_any_order(
            stakes in prop::collection::vec(any::<u128>(), 0..40),
            seed: [u8; 32],
            m in 0usize..50,
            mru in prop::option::of(0u8..50),
            turn in any::<prop::sample::Index>(),
        ) {
            let mut candidates: Vec<_> = stakes
                .iter()
                .enumerate()
                .map(|(i, stake)| (Address([i as u8; 20]), Wei::new(*stake)))
                .collect();
            let mru = mru.map(|i| Address([i; 20]));
            let selection = draw(&candidates, Hash(seed), m, mru);
            let distinct: BTreeSet<_> = selection.committee.iter().collect();
            prop_assert_eq!(distinct.len(), m.min(candidates.len()));
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
}
