//! The weighted draw of a committee (spec jobs.md §4): CIP-2 §5 with CIP-11 §9.3's preference for
//! the most recently used runner.

use crate::{
    presence::Connectivity,
    primitives::{Address, Hash, Height, Wei, keccak256},
    record,
    registry::MIN_STAKE,
};
use std::borrow::Cow;

const SEED_DOMAIN: &[u8] = b"cowboy-runner-select-v2:";
const RETRY_DOMAIN: &[u8] = b"retry:";

/// floor(log2(stake / MIN_STAKE + 1)) + 1: at least 1, at most 85.
pub const fn stake_to_weight(stake: Wei) -> u64 {
    // Taking the floor of the quotient does not change the floor of the logarithm. Saturating the
    // sum at 2^128 does not either, because no power of two times MIN_STAKE lies within MIN_STAKE
    // of that.
    let min = MIN_STAKE.get();
    let sum = stake.get().saturating_add(min);
    // Shifted to the sum's bit length, the minimum stake is at most twice the sum.
    let shift = min.leading_zeros() - sum.leading_zeros();
    (shift + (sum >= min << shift) as u32) as u64
}

/// The seed of a job's first draw. `made_of` is the parent hash of the block that draws, or a
/// certificate's digest ([`SeedRule`](super::SeedRule)).
pub fn seed(made_of: Hash, job_id: Hash, submitted_at: Height) -> Hash {
    let at = submitted_at.get().to_le_bytes();
    keccak256(&[made_of.as_bytes(), SEED_DOMAIN, job_id.as_bytes(), &at])
}

/// The seed of retry number `retry` (from 1), derived from the first draw's seed.
pub fn retry_seed(original: Hash, retry: u32) -> Hash {
    keccak256(&[original.as_bytes(), RETRY_DOMAIN, &retry.to_le_bytes()])
}

/// A drawn committee, and the draws that produced it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// In draw order.
    pub committee: Vec<Address>,
    pub draws: Vec<Draw>,
}
record!(Selection { committee, draws });

/// One draw: `r` selected `picked` among the remaining candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// From 0.
    pub draw: u64,
    /// The random number, below `total`.
    pub r: u64,
    /// The sum of the remaining candidates' weights, with the MRU runner's multiplied in draw 0.
    pub total: u64,
    pub picked: Address,
}
record!(Draw { draw, r, total, picked });

/// A runner with a live MRU record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Favoured {
    pub runner: Address,
    /// The factor on its weight in draw 0: 1 to [`Connectivity::MAX_MULTIPLIER`]. Other values are
    /// clamped.
    pub multiplier: u64,
}
record!(Favoured { runner, multiplier });

/// The committee of `m` drawn from `candidates`; empty if there are fewer: the job waits.
pub fn committee(
    candidates: &[(Address, Wei)],
    seed: Hash,
    m: usize,
    mru: Option<Favoured>,
) -> Selection {
    match candidates.len() < m {
        true => Selection::default(),
        false => draw(candidates, seed, m, mru),
    }
}

/// Draws `m` of `candidates` (address and stake, in any order), or all if there are fewer.
///
/// Weighted Fisher–Yates over the candidates in ascending order of address. `mru` is a runner with
/// a live MRU record, favoured in draw 0 only, and only if it is a candidate.
pub fn draw(
    candidates: &[(Address, Wei)],
    seed: Hash,
    m: usize,
    mru: Option<Favoured>,
) -> Selection {
    let mut sorted = Cow::Borrowed(candidates);
    if !is_sorted(candidates) {
        sorted.to_mut().sort_unstable();
    }
    let mut pool = WeightPool::new(&sorted);
    let mut favoured = mru.and_then(|Favoured { runner, multiplier }| {
        let at = sorted.partition_point(|(address, _)| *address < runner);
        let weight = (sorted.get(at)?.0 == runner).then(|| pool.weights[at])?;
        // A recording may contain any value.
        let multiplier = multiplier.clamp(1, Connectivity::MAX_MULTIPLIER);
        pool.set(at, weight * multiplier as u16);
        Some((at, weight))
    });

    let m = m.min(sorted.len());
    let mut draws = Vec::with_capacity(m);
    let mut state = seed;
    // The candidate at each place.
    let mut order: Vec<usize> = (0..sorted.len()).collect();
    for i in 0..m {
        let total = pool.total;
        state = keccak256(&[state.as_bytes(), &(i as u64).to_le_bytes()]);
        let low = state.as_bytes().first_chunk().expect("8 of 32 bytes");
        let r = u64::from_le_bytes(*low) % total;
        let at = pool.find(r);
        // The preference counts in draw 0 only.
        if let Some((at, weight)) = favoured.take() {
            pool.set(at, weight);
        }

        // Fisher–Yates: the first remaining candidate moves to the place of the one that was drawn.
        order.swap(i, at);
        pool.set(at, pool.weights[i]);
        pool.set(i, 0);
        draws.push(Draw { draw: i as u64, r, total, picked: sorted[order[i]].0 });
    }
    Selection { committee: draws.iter().map(|draw| draw.picked).collect(), draws }
}

/// Whether candidates are already in ascending order, as the filters leave them.
fn is_sorted(candidates: &[(Address, Wei)]) -> bool {
    // The first bytes nearly always decide, so this costs little more than comparing those.
    let first = |(Address(bytes), _): &(Address, Wei)| {
        u64::from_be_bytes(*bytes.first_chunk().expect("8 of 20 bytes"))
    };
    candidates.is_sorted_by(|a, b| first(a) < first(b) || a <= b)
}

/// Number of candidates whose weights are summed together: a draw looks at one sum per block and at
/// the weights of one block.
const BLOCK: usize = 256;

/// The weights of a draw's candidates by place; 0 at places that have been drawn.
struct WeightPool {
    weights: Vec<u16>,
    /// The sum of each block's weights.
    sums: Vec<u32>,
    total: u64,
}

const _: () = assert!(
    stake_to_weight(Wei::new(u128::MAX)) * Connectivity::MAX_MULTIPLIER <= u16::MAX as u64,
    "the largest weight fits into a u16, even multiplied"
);

impl WeightPool {
    fn new(candidates: &[(Address, Wei)]) -> Self {
        let weight = |(_, stake): &(Address, Wei)| stake_to_weight(*stake) as u16;
        let weights: Vec<u16> = candidates.iter().map(weight).collect();
        let sum = |block: &[u16]| block.iter().map(|weight| u32::from(*weight)).sum();
        let sums: Vec<u32> = weights.chunks(BLOCK).map(sum).collect();
        let total = sums.iter().map(|sum| u64::from(*sum)).sum();
        Self { weights, sums, total }
    }

    fn set(&mut self, at: usize, weight: u16) {
        let (old, sum) = (self.weights[at], &mut self.sums[at / BLOCK]);
        self.weights[at] = weight;
        *sum = *sum - u32::from(old) + u32::from(weight);
        self.total = self.total - u64::from(old) + u64::from(weight);
    }

    /// The candidate that `r`, which is below the total, selects: the weights before it sum to at
    /// most `r`, and with its own weight to more.
    fn find(&self, mut r: u64) -> usize {
        let mut block = 0;
        while r >= u64::from(self.sums[block]) {
            r -= u64::from(self.sums[block]);
            block += 1;
        }
        let mut at = block * BLOCK;
        while r >= u64::from(self.weights[at]) {
            r -= u64::from(self.weights[at]);
            at += 1;
        }
        at
    }
}

#[cfg(test)]
mod distribution;

#[cfg(test)]
mod tests;
