//! Dicts: in insertion order, found by hash.
//!
//! Hashes pick candidates in an ordered index, and each candidate is compared with the key. So
//! neither results nor costs reveal a hash, and keys chosen to collide in a table's few bits cost
//! nothing more: only collisions of whole 64-bit hashes would.

use super::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::DefaultHasher,
};

pub(in crate::actor) type Hasher = DefaultHasher;

#[derive(Clone, Debug, Default)]
pub(in crate::actor) struct Dict {
    entries: BTreeMap<u32, (Value, Value)>,
    index: BTreeSet<(u64, u32)>,
    next: u32,
    /// Running loops over it.
    pub(in crate::actor) loops: u32,
}

impl Dict {
    /// Bytes of heap of an empty dict.
    pub(in crate::actor) const COST: u64 = 96;
    /// Bytes of heap of an entry: both trees, half full at worst.
    pub(in crate::actor) const ENTRY_COST: u64 = 128;

    pub(in crate::actor) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Places that may hold a key with this hash.
    pub(in crate::actor) fn candidates(&self, hash: u64) -> impl Iterator<Item = (u32, Value)> {
        self.index
            .range((hash, 0)..=(hash, u32::MAX))
            .map(|(_, place)| (*place, self.entries[place].0))
    }

    /// Adds a key that is not present.
    pub(in crate::actor) fn insert(&mut self, hash: u64, key: Value, value: Value) {
        self.index.insert((hash, self.next));
        self.entries.insert(self.next, (key, value));
        // Each insertion takes heap, so there are fewer insertions than bytes of heap.
        self.next += 1;
    }

    pub(in crate::actor) fn get(&self, place: u32) -> Value {
        self.entries[&place].1
    }

    pub(in crate::actor) fn set(&mut self, place: u32, value: Value) {
        if let Some(entry) = self.entries.get_mut(&place) {
            entry.1 = value;
        }
    }

    pub(in crate::actor) fn remove(&mut self, hash: u64, place: u32) -> Option<(Value, Value)> {
        self.index.remove(&(hash, place));
        self.entries.remove(&place)
    }

    pub(in crate::actor) fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
    }

    /// The first entry at or after `place`, and its place.
    pub(in crate::actor) fn from(&self, place: u32) -> Option<(u32, Value, Value)> {
        let (place, (key, value)) = self.entries.range(place..).next()?;
        Some((*place, *key, *value))
    }

    /// Keys and values in insertion order.
    pub(in crate::actor) fn iter(&self) -> impl ExactSizeIterator<Item = (Value, Value)> {
        self.entries.values().copied()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut (Value, Value)> {
        self.entries.values_mut()
    }
}
