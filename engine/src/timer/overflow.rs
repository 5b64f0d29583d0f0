//! Tier 3: timers beyond the epoch queue's range, by height and id (timers.md §2).
//!
//! A [`merkle::Map`](crate::primitives::merkle::Map): a balanced search tree finds the timers in
//! that order and is not hashed; the root is that of a trie by the hashes of the keys, depends on
//! the contents alone, and says nothing of their order. The timers themselves are in the
//! [book](super::book) with all others; here is only the order in which they come within range.

use crate::primitives::{
    Hash, Height,
    codec::{Encode, Writer},
    merkle::Map,
};

/// The timers that are too far away for a bucket.
#[derive(Clone, Default)]
pub struct Overflow(Map<(Height, Hash), Listed>);

/// What stands under a key: that it is there.
#[derive(Clone)]
struct Listed;

impl Encode for Listed {
    fn encode(&self, w: &mut Writer) {
        w.list(0);
    }
}

impl Overflow {
    /// Number of timers.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The hash over them; [`Hash::ZERO`] of none.
    pub fn root(&self) -> Hash {
        self.0.root()
    }

    /// Adds the timer `id`, which fires at `height`.
    pub fn insert(&mut self, height: Height, id: Hash) {
        self.0.insert((height, id), Listed);
    }

    /// Removes a timer, if it is there.
    pub fn remove(&mut self, height: Height, id: Hash) {
        self.0.remove(&(height, id));
    }

    /// Takes out the timers that fire before `height`, in order of height and id.
    pub fn take_before(&mut self, height: Height) -> Vec<Hash> {
        let near: Vec<_> =
            self.0.iter().map(|(key, _)| *key).take_while(|key| key.0 < height).collect();
        for key in &near {
            self.0.remove(key);
        }
        near.into_iter().map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::keccak256;

    #[test]
    fn what_comes_within_range_leaves_in_order() {
        let keys: Vec<_> =
            (0..100u64).map(|n| (Height::new(n % 7), keccak256(&[&n.to_be_bytes()]))).collect();
        let (mut one, mut other) = (Overflow::default(), Overflow::default());
        for &(height, id) in &keys {
            one.insert(height, id);
        }
        for &(height, id) in keys.iter().rev() {
            other.insert(height, id);
        }
        assert_eq!(one.root(), other.root());

        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let before = |height| -> Vec<Hash> {
            let near = sorted.iter().filter(|key| key.0 < Height::new(height));
            near.map(|key| key.1).collect()
        };
        assert_eq!(one.take_before(Height::new(3)), before(3));
        assert_eq!(one.take_before(Height::new(3)), []);
        for (height, id) in keys.iter().filter(|key| key.0 < Height::new(3)) {
            other.remove(*height, *id);
        }
        assert_eq!((one.root(), one.len()), (other.root(), 100 - before(3).len()));
    }
}
