//! From the votes of one certificate to P(H) (spec connectivity.md §5).

use super::Bitmap;
use crate::presence::bit_counts::{BLOCK_BITS, BLOCK_BYTES, Tally};
use crate::primitives::codec::words;

/// The number of votes that makes a runner present: the parameter `presence.threshold_rule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThresholdRule {
    /// f + 1 of the whole validator set, so that at least one of them is honest.
    #[default]
    Committee,
    /// The same formula over the votes in the certificate: the source's code block taken literally.
    Quorum,
    /// Per runner, the same formula over the votes by validators of its subset.
    Subset,
}

words!(ThresholdRule, ThresholdRuleError, "a threshold rule", "committee, quorum or subset":
    Committee = "committee", Quorum = "quorum", Subset = "subset");

/// Votes in a certificate of `n` validators: n − floor((n − 1) / 3).
pub const fn quorum(n: u32) -> u32 {
    n - n.saturating_sub(1) / 3
}

/// floor((base − 1) / 3) + 1: f + 1 if `base` = 3f + 1. For a base of 0 it is 1, which is never
/// reached.
pub const fn of(base: u32) -> u32 {
    base.saturating_sub(1) / 3 + 1
}

/// For each of `registry_len` runners, the number of `votes` (validator index, bitmap) that report
/// it as present. Missing bits count as 0, surplus bits are ignored.
pub fn counts(votes: &[(u32, &Bitmap)], registry_len: u32) -> Vec<u32> {
    let mut tally = Tally::new(votes, 0);
    let mut counts = Vec::with_capacity(registry_len as usize);
    for block in 0..registry_len.div_ceil(BLOCK_BITS) {
        let bits = BLOCK_BITS.min(registry_len - block * BLOCK_BITS);
        tally.count(block as usize, bits.div_ceil(64) as usize);
        counts.extend((0..bits).map(|bit| tally.get(bit)));
    }
    counts
}

/// P(H) over a registry of `registry_len` runners, from the votes of H's certificate.
///
/// `votes`: validator index and bitmap, each validator at most once; bitmaps may be of any length
/// (missing bits are 0, surplus bits are ignored). `validators`: size of the set that the indices
/// point into. `members`: per runner, the validator indices of its subset, read by
/// [`ThresholdRule::Subset`] only; a runner without an entry is absent.
pub fn canonical(
    votes: &[(u32, &Bitmap)],
    registry_len: u32,
    validators: u32,
    rule: ThresholdRule,
    members: &[Vec<u32>],
) -> Bitmap {
    match rule {
        ThresholdRule::Committee => at_least(of(validators), votes, registry_len),
        ThresholdRule::Quorum => at_least(of(votes.len() as u32), votes, registry_len),
        ThresholdRule::Subset => by_subset(votes, registry_len, validators, members),
    }
}

fn at_least(need: u32, votes: &[(u32, &Bitmap)], registry_len: u32) -> Bitmap {
    if need as usize > votes.len() {
        return Bitmap::new(registry_len);
    }
    let mut bytes = vec![0; registry_len.div_ceil(8) as usize];
    let mut tally = Tally::new(votes, need);
    for (block, bytes) in bytes.chunks_mut(BLOCK_BYTES).enumerate() {
        let mut reached = tally.count(block, bytes.len().div_ceil(8)).iter();
        let (words, rest) = bytes.as_chunks_mut();
        for (word, reached) in words.iter_mut().zip(&mut reached) {
            *word = reached.to_le_bytes();
        }
        for (byte, reached) in rest.iter_mut().zip(reached.flat_map(|word| word.to_le_bytes())) {
            *byte = reached;
        }
    }
    Bitmap::truncated(registry_len, bytes)
}

/// Each runner has its own validators, at most eight. Reading their votes is all the work, and no
/// word holds more than one answer.
fn by_subset(
    votes: &[(u32, &Bitmap)],
    registry_len: u32,
    validators: u32,
    members: &[Vec<u32>],
) -> Bitmap {
    let mut cast_by = vec![None; validators as usize];
    for (validator, bitmap) in votes {
        if let Some(vote) = cast_by.get_mut(*validator as usize) {
            *vote = Some(*bitmap);
        }
    }
    Bitmap::from_fn(registry_len, |runner| {
        let subset = members.get(runner as usize).map_or(&[][..], Vec::as_slice);
        let mut cast = 0;
        let mut present = 0;
        for vote in subset.iter().filter_map(|v| cast_by.get(*v as usize).copied().flatten()) {
            cast += 1;
            present += u32::from(vote.get(runner));
        }
        present >= of(cast)
    })
}

/// How often a runner connected to its whole subset is present, as a fraction of integers: `.0` of
/// the `.1` equally likely quorums of `validators` contain at least `need` of its `k` validators.
/// `None` if the numbers overflow a u128 (well above 100 validators) or `k` exceeds `validators`.
///
/// The omitted validators are hypergeometric over the k (§5, "Known limit").
pub fn visibility(validators: u32, k: u32, need: u32) -> Option<(u128, u128)> {
    let others = validators.checked_sub(k)?;
    let omitted = validators - quorum(validators);
    let mut visible = 0u128;
    for missing in 0..=omitted.min(k) {
        if k - missing >= need {
            let ways = binomial(k, missing)?.checked_mul(binomial(others, omitted - missing)?)?;
            visible = visible.checked_add(ways)?;
        }
    }
    Some((visible, binomial(validators, omitted)?))
}

/// n over k.
fn binomial(n: u32, k: u32) -> Option<u128> {
    if k > n {
        return Some(0);
    }
    // After step i the value is n over i + 1: each division is exact.
    (0..k.min(n - k)).try_fold(1u128, |value, i| {
        value.checked_mul(u128::from(n - i)).map(|product| product / u128::from(i + 1))
    })
}

#[cfg(test)]
mod tests;
