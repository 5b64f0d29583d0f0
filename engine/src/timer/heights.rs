//! Timers by height and id: proves that none is missing from a range of heights.
//!
//! A timer is an empty record of [pages](super::pages) under height (8 bytes, big-endian) ‖ id, so
//! that keys are ordered by height, then by id. The timers themselves are in the
//! [book](super::book). Tier 3 of the calendar queue (timers.md §2) is the end of this tree: the
//! timers from a certain height on.

use super::pages::{
    Pages,
    proof::{self, Oversize, Shown, TreeError},
};
use crate::primitives::{Hash, Height};

/// Bytes of a key: a height and an id.
pub const KEY_BYTES: usize = 40;
/// Maximum bytes of several records in one page: about ten records. Timers that fire in the same
/// block are neighbours here; those scheduled in the same block are not, and each hashes a page.
pub const PAGE_BYTES: usize = 512;

/// All timers, by height and id. Clones are O(1) and independent.
#[derive(Clone, Default)]
pub struct Heights(Pages<KEY_BYTES, PAGE_BYTES>);

impl Heights {
    /// The hash over all timers; [`Hash::ZERO`] if it is empty.
    pub fn root(&self) -> Hash {
        self.0.root()
    }

    pub fn insert(&mut self, height: Height, id: &Hash) {
        self.0.insert(&key(height, id), &[]);
    }

    pub fn remove(&mut self, height: Height, id: &Hash) {
        self.0.remove(&key(height, id));
    }

    /// The timers from `from` to `to`, both included, in order of height and id.
    pub fn range(&self, from: Height, to: Height) -> impl Iterator<Item = (Height, Hash)> {
        let keys = self.0.range_from(key(from, &Hash::ZERO)).map(|(key, _)| split(key));
        keys.take_while(move |(height, _)| *height <= to)
    }

    /// Proves that these are all timers from `from` to `to`, both included.
    pub fn prove(&self, from: Height, to: Height, limit: usize) -> Result<Vec<u8>, Oversize> {
        let (from, to) = bounds(from, to);
        self.0.prove(&from, &to, limit)
    }
}

/// Checks a proof from [`Heights::prove`]. Returns its root and its timers, in order.
pub fn check(
    tree: &[u8],
    from: Height,
    to: Height,
) -> Result<(Hash, Vec<(Height, Hash)>), TreeError> {
    let (low, high) = bounds(from, to);
    let Shown { root, records } = proof::check::<KEY_BYTES>(tree, &low, &high)?;
    Ok((root, records.into_iter().map(|(key, _)| split(key)).collect()))
}

/// The smallest and the largest key of timers in a range of heights.
fn bounds(from: Height, to: Height) -> ([u8; KEY_BYTES], [u8; KEY_BYTES]) {
    (key(from, &Hash::ZERO), key(to, &Hash([255; 32])))
}

fn key(height: Height, id: &Hash) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&height.to_be_bytes());
    key[8..].copy_from_slice(&id.0);
    key
}

fn split(key: &[u8; KEY_BYTES]) -> (Height, Hash) {
    let (height, id) = key.split_first_chunk().expect("8 of 40 bytes");
    let id = id.try_into().expect("the other 32");
    (Height::new(u64::from_be_bytes(*height)), Hash(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::keccak256;

    #[test]
    fn ranges_are_in_order_and_the_root_knows_no_history() {
        let keys: Vec<_> =
            (0..100u64).map(|n| (Height::new(n % 7), keccak256(&[&n.to_be_bytes()]))).collect();
        let (mut one, mut other) = (Heights::default(), Heights::default());
        for (height, id) in &keys {
            one.insert(*height, id);
        }
        for (height, id) in keys.iter().rev() {
            other.insert(*height, id);
        }
        assert_eq!(one.root(), other.root());

        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for from in 0..8 {
            for to in from..9 {
                let (from, to) = (Height::new(from), Height::new(to));
                let expected = sorted.iter().filter(|(height, _)| (from..=to).contains(height));
                assert!(one.range(from, to).eq(expected.copied()));
            }
        }
        for (height, id) in keys.iter().filter(|key| key.0 < Height::new(3)) {
            one.remove(*height, id);
            other.remove(*height, id);
        }
        assert_eq!(one.root(), other.root());
        assert_eq!(one.range(Height::GENESIS, Height::new(2)).next(), None);
    }
}
