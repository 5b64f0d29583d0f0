//! The persistent Merkle map: state that is cheap to fork and to hash.
//!
//! A [`Map`] is two trees over the same shared entries:
//!
//! * `order`, a balanced search tree by key, finds and iterates. Its shape depends on history and
//!   is never visible.
//! * `trie`, a binary Patricia trie over keccak256 of the encoded keys, is hashed. Its shape
//!   depends on the contents alone, so the root does too.
//!
//! One tree could do both, a treap with priorities hashed from the keys, but an attacker who
//! chooses keys could make it a list: n keys in ascending order with descending priorities cost n^2
//! hashes to find. Here the search tree is balanced for any keys, and a trie one level deeper costs
//! an attacker twice the hashes, up to 256 levels at the very most, so the depth is bounded.
//!
//! Both copy a path on write only if a clone shares it. Hashes are cached per node and computed
//! when a root or a proof is asked for: k changes between two roots hash about k paths.
//! leaf = keccak256(0x00 ‖ keccak256(key) ‖ keccak256(value)), branch = keccak256(0x01 ‖ bit ‖ left
//! ‖ right) where `bit` is the first at which the keys' hashes differ (0 the most significant of
//! the first byte), the root of an empty map is 32 zero bytes.

mod absence;
mod order;
mod trie;

pub use absence::{Absence, Neighbour};

use super::{
    Hash,
    codec::{Decode, DecodeError, Encode, Reader, Writer, to_vec},
    keccak256,
};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

const LEAF: &[u8] = &[0];
const BRANCH: &[u8] = &[1];

/// An ordered map whose clones are O(1) and independent, with a root hash over its contents.
///
/// Equal keys must have equal encodings and different keys different ones, which is true for every
/// type of the protocol. Reading and updating are O(log n).
pub struct Map<K, V> {
    order: order::Tree<K, V>,
    trie: Option<trie::Node<K, V>>,
    len: usize,
}

struct Entry<K, V> {
    key: K,
    value: V,
    path: Hash,
    hash: OnceLock<Hash>,
}

impl<K, V> Entry<K, V> {
    fn into_value(entry: Arc<Self>) -> V
    where
        V: Clone,
    {
        Arc::try_unwrap(entry).map_or_else(|shared| shared.value.clone(), |entry| entry.value)
    }
}

impl<K, V: Encode> Entry<K, V> {
    fn hash(&self) -> Hash {
        *self.hash.get_or_init(|| leaf(&self.path, &self.value))
    }
}

fn path<K: Encode + ?Sized>(key: &K) -> Hash {
    keccak256(&[&to_vec(key)])
}

fn leaf<V: Encode + ?Sized>(path: &Hash, value: &V) -> Hash {
    encoded_leaf(path, &keccak256(&[&to_vec(value)]))
}

/// `value`: the hash of the encoded value.
fn encoded_leaf(path: &Hash, value: &Hash) -> Hash {
    keccak256(&[LEAF, path.as_bytes(), value.as_bytes()])
}

fn branch(bit: u8, [left, right]: [Hash; 2]) -> Hash {
    keccak256(&[BRANCH, &[bit], left.as_bytes(), right.as_bytes()])
}

/// Bit `bit` of a path, as an index into a branch's children.
fn side(path: &Hash, bit: u8) -> usize {
    usize::from(path.0[usize::from(bit / 8)] >> (7 - bit % 8) & 1)
}

impl<K, V> Map<K, V> {
    pub const fn new() -> Self {
        Self { order: None, trie: None, len: 0 }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entries in ascending order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        order::Iter::new(&self.order).map(|entry| (&entry.key, &entry.value))
    }
}

impl<K: Encode + Ord, V: Encode + Clone> Map<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        order::get(&self.order, key).map(|entry| &entry.value)
    }

    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The entries from `from` on, inclusive, in ascending order of key.
    pub fn range_from(&self, from: &K) -> impl Iterator<Item = (&K, &V)> + use<'_, K, V> {
        order::Iter::from(&self.order, from).map(|entry| (&entry.key, &entry.value))
    }

    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        // Hashing a key costs more than finding it.
        let known = order::get(&self.order, &key).map(|entry| entry.path);
        let path = known.unwrap_or_else(|| path(&key));
        let entry = Arc::new(Entry { key, value, path, hash: OnceLock::new() });
        trie::insert(&mut self.trie, Arc::clone(&entry));
        let replaced = order::insert(&mut self.order, entry);
        self.len += usize::from(replaced.is_none());
        replaced.map(Entry::into_value)
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        // Checked first, so that a miss copies no shared path.
        order::get(&self.order, key)?;
        let removed = order::remove(&mut self.order, key)?;
        trie::remove(&mut self.trie, &removed.path);
        self.len -= 1;
        Some(Entry::into_value(removed))
    }

    /// The same keys with other values. Entries whose value stays keep their hashes.
    pub fn map_values(mut self, change: impl Fn(V) -> V) -> Self
    where
        K: Clone,
        V: PartialEq,
    {
        let entries = self.iter().map(|(key, value)| (key.clone(), value.clone()));
        let changed: Vec<_> = entries
            .filter_map(|(key, old)| {
                let new = change(old.clone());
                (new != old).then_some((key, new))
            })
            .collect();
        for (key, value) in changed {
            self.insert(key, value);
        }
        self
    }

    /// The hash over the contents; [`Hash::ZERO`] for an empty map.
    pub fn root(&self) -> Hash {
        self.trie.as_ref().map_or(Hash::ZERO, trie::Node::hash)
    }

    /// Proves the value of `key`; `None` if it has none.
    pub fn prove(&self, key: &K) -> Option<InclusionProof> {
        let entry = order::get(&self.order, key)?;
        Some(InclusionProof { steps: trie::prove(self.trie.as_ref()?, &entry.path) })
    }

    /// Proves that `key` has no value; `None` if it has one.
    pub fn prove_absent(&self, key: &K) -> Option<Absence> {
        let Some(trie) = &self.trie else { return Some(Absence::Empty) };
        let path = path(key);
        let nearest = trie.nearest(&path);
        (nearest.path != path).then(|| {
            let value = keccak256(&[&to_vec(&nearest.value)]);
            let neighbour = Neighbour { path: nearest.path, value };
            Absence::Occupied(neighbour, InclusionProof { steps: trie::prove(trie, &path) })
        })
    }
}

/// A proof that a key has a value in the map with a certain root: the path up from the leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InclusionProof {
    /// From the leaf's parent to the root: at most 256, `bit` strictly descending.
    pub steps: Vec<Step>,
}

/// A branch on the path up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The bit of the key's hash by which the branch divides, which determines the side of the
    /// path.
    pub bit: u8,
    pub sibling: Hash,
}

impl InclusionProof {
    pub fn verify<K, V>(&self, root: Hash, key: &K, value: &V) -> bool
    where
        K: Encode + ?Sized,
        V: Encode + ?Sized,
    {
        self.root(key, &to_vec(value)) == Some(root)
    }

    /// The root of the map in which `key` has the value encoded as `encoded`; `None` if no map has
    /// these steps.
    pub fn root<K: Encode + ?Sized>(&self, key: &K, encoded: &[u8]) -> Option<Hash> {
        let path = path(key);
        climb(&path, encoded_leaf(&path, &keccak256(&[encoded])), &self.steps)
    }
}

/// The root that the steps lead to from a leaf; `None` if no trie has these steps.
fn climb(path: &Hash, leaf: Hash, steps: &[Step]) -> Option<Hash> {
    let root = || {
        steps.iter().fold(leaf, |hash, step| {
            let mut children = [step.sibling; 2];
            children[side(path, step.bit)] = hash;
            branch(step.bit, children)
        })
    };
    steps.is_sorted_by(|below, above| below.bit > above.bit).then(root)
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Self { order: self.order.clone(), trie: self.trie.clone(), len: self.len }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Maps are equal if their roots are.
impl<K: Encode + Ord, V: Encode + Clone> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.root() == other.root()
    }
}

impl<K: Encode + Ord, V: Encode + Clone> Eq for Map<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The last value of a key wins.
impl<K: Encode + Ord, V: Encode + Clone> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Encode + Ord, V: Encode + Clone> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// A map is the list of its entries in order of their keys.
impl<K: Encode + Ord + Clone, V: Encode + Clone> Encode for Map<K, V> {
    fn encode(&self, w: &mut Writer) {
        w.list(self.len());
        for (key, value) in self.iter() {
            w.list(2);
            key.encode(w);
            value.encode(w);
        }
    }
}

impl<K, V> Decode for Map<K, V>
where
    K: Encode + Decode + Ord + Clone,
    V: Encode + Decode + Clone,
{
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(r.remaining())?;
        (0..len).map(|_| Decode::decode(r)).collect()
    }
}

#[cfg(test)]
mod tests;
