//! Proofs that a key has no value: another key is in its place.
//!
//! The path of an absent key leads down the trie to a leaf, as every path does because each branch
//! has a child for each bit. That leaf belongs to another key, so the absent key has none.

use super::{Encode, Hash, InclusionProof, climb, encoded_leaf, path, side};

/// A proof that a key has no value in the map with a certain root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    Empty,
    /// The key's path leads to the leaf of another key.
    Occupied(Neighbour, InclusionProof),
}

/// A leaf, given only by the hashes of its key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// keccak256 of its encoded key.
    pub path: Hash,
    /// keccak256 of its encoded value.
    pub value: Hash,
}

impl Absence {
    /// The root of the map for which it proves that `key` has no value; `None` if it proves that
    /// for no map.
    pub fn root<K: Encode + ?Sized>(&self, key: &K) -> Option<Hash> {
        let Self::Occupied(neighbour, InclusionProof { steps }) = self else {
            return Some(Hash::ZERO);
        };
        let path = path(key);
        let leads_there =
            steps.iter().all(|step| side(&path, step.bit) == side(&neighbour.path, step.bit));
        if !leads_there || path == neighbour.path {
            return None;
        }
        climb(&neighbour.path, encoded_leaf(&neighbour.path, &neighbour.value), steps)
    }
}
