//! Fires over a window of blocks, and the resulting weight (timers.md §4; CIP-1 §8).
//!
//! W(actor) = clip(2 − recent / max(1, median), 1, 2), where `recent` counts the actor's fires in
//! the last `fairness_window_blocks` blocks before this one and `median` is over the actors with at
//! least one. All weights of a block have the same denominator, twice the median, so that comparing
//! the integer numerators is enough to order them.
//!
//! The caller chooses the key, an actor or its deployer (§1, `fairness.scope`). In each block call
//! [`Fairness::slide`] before the timers and [`Fairness::record`] after them.

use crate::primitives::{
    Address, Hash, Height,
    codec::{Decode, DecodeError, Encode, Reader, Writer},
    merkle::Map,
};
use std::{collections::BTreeMap, sync::Arc};

/// A block's fires by key, ascending, never 0. Shared, because trees copy their entries.
type Fires = Arc<Vec<(Address, u32)>>;

/// Number of fires per key in the window. Clones are O(1) and independent.
///
/// A key without a fire in the window holds no state.
#[derive(Clone, Debug, Default)]
pub struct Fairness {
    /// The window's blocks with fires: the only part that is stored and hashed.
    blocks: Map<Height, Fires>,
    /// The sum over the blocks, by key; derived from `blocks`, like `tally`.
    sums: Map<Address, u64>,
    /// Number of keys with each sum. The sums add up to the window's fires, so n different ones
    /// need n²/2 fires: a few hundred entries, cheap to copy and to walk.
    tally: Arc<BTreeMap<u64, u64>>,
}

impl Fairness {
    /// Records the fires of the block at `height`, which must not have been recorded before.
    pub fn record(&mut self, height: Height, fires: &BTreeMap<Address, u32>) {
        debug_assert!(!self.blocks.contains_key(&height), "a block is noted once");
        let fires: Vec<_> = fires.iter().filter(|(_, n)| **n > 0).map(|(k, n)| (*k, *n)).collect();
        if !fires.is_empty() {
            self.count(&fires);
            self.blocks.insert(height, Arc::new(fires));
        }
    }

    /// Forgets all but the last `window` blocks before `now`.
    ///
    /// When the governed window shrinks, more blocks are forgotten at once; when it grows, it fills
    /// up.
    pub fn slide(&mut self, now: Height, window: u64) {
        let heights = self.blocks.iter().map(|(height, _)| *height);
        let past: Vec<_> = heights.take_while(|height| now.since(*height) > window).collect();
        for height in past {
            let fires = self.blocks.remove(&height).unwrap_or_default();
            for &(key, n) in fires.iter() {
                self.change(key, |sum| sum.saturating_sub(u64::from(n)));
            }
        }
    }

    /// The same fires, `blocks` later.
    pub fn later(mut self, blocks: u64) -> Self {
        let mut moved = Map::new();
        for (height, fires) in self.blocks.iter() {
            moved.insert(height.after(blocks), fires.clone());
        }
        self.blocks = moved;
        self
    }

    pub fn recent(&self, key: &Address) -> u64 {
        self.sums.get(key).copied().unwrap_or(0)
    }

    /// Number of keys with a fire in the window.
    pub const fn len(&self) -> usize {
        self.sums.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// The keys with fires in the window and their number of fires, in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&Address, u64)> {
        self.sums.iter().map(|(key, sum)| (key, *sum))
    }

    /// Twice the median of the sums, so that it is an integer; at least 2.
    pub fn twice_median(&self) -> u64 {
        let nth = |rank: u64| {
            let mut below = 0;
            let mut sums = self.tally.iter();
            let found = sums.find(|(_, keys)| {
                below += **keys;
                rank < below
            });
            found.map_or(0, |(sum, _)| *sum)
        };
        let keys = self.sums.len() as u64;
        (nth(keys.saturating_sub(1) / 2) + nth(keys / 2)).max(2)
    }

    pub fn root(&self) -> Hash {
        self.blocks.root()
    }

    fn count(&mut self, fires: &[(Address, u32)]) {
        for &(key, n) in fires {
            self.change(key, |sum| sum.saturating_add(u64::from(n)));
        }
    }

    fn change(&mut self, key: Address, change: impl Fn(u64) -> u64) {
        let old = self.recent(&key);
        let new = change(old);
        let tally = Arc::make_mut(&mut self.tally);
        if let Some(with) = tally.get_mut(&old) {
            *with -= 1;
            if *with == 0 {
                tally.remove(&old);
            }
        }
        if new == 0 {
            self.sums.remove(&key);
        } else {
            *tally.entry(new).or_default() += 1;
            self.sums.insert(key, new);
        }
    }
}

/// The numerator of W over the common denominator `twice_median`: from `twice_median` (W = 1) to
/// twice that (W = 2). Saturates beyond 2^64, which no realistic number of fires reaches.
pub const fn weight_numerator(recent: u64, twice_median: u64) -> u64 {
    let (doubled, most) = (recent.saturating_mul(2), twice_median.saturating_mul(2));
    most.saturating_sub(if doubled < twice_median { doubled } else { twice_median })
}

impl PartialEq for Fairness {
    fn eq(&self, other: &Self) -> bool {
        self.blocks == other.blocks
    }
}

impl Eq for Fairness {}

impl Encode for Fairness {
    fn encode(&self, w: &mut Writer) {
        self.blocks.encode(w);
    }
}

impl Decode for Fairness {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let blocks = Map::<Height, Fires>::decode(r)?;
        let mut fairness = Self { blocks: blocks.clone(), ..Self::default() };
        for (_, fires) in blocks.iter() {
            let canonical = fires.is_sorted_by(|a, b| a.0 < b.0) && fires.iter().all(|f| f.1 > 0);
            if fires.is_empty() || !canonical {
                return Err(DecodeError::Invalid("fires of a block: ascending by key, none of 0"));
            }
            fairness.count(fires);
        }
        Ok(fairness)
    }
}

#[cfg(test)]
mod tests;
