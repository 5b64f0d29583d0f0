//! That a key has no value: where it would be, there is another one.
//!
//! The path of an absent key leads down the trie to a leaf as any path does, since a branch with
//! two children has one for each bit. That leaf is another key's, so the absent one has none.

use super::{Encode, Hash, Proof, climb, encoded_leaf, path, side};

/// That a key has no value in the map with some root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// The map is empty.
    Empty,
    /// The key's path leads to the leaf of another key.
    Occupied(Neighbour, Proof),
}

/// A leaf of which neither key nor value are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// keccak256 of its encoded key.
    pub path: Hash,
    /// keccak256 of its encoded value.
    pub value: Hash,
}

impl Absence {
    /// The root of the map in which it shows that `key` has no value; `None` where it shows that
    /// of no map.
    pub fn root<K: Encode + ?Sized>(&self, key: &K) -> Option<Hash> {
        let Self::Occupied(neighbour, Proof { steps }) = self else { return Some(Hash::ZERO) };
        let path = path(key);
        let leads_there =
            steps.iter().all(|step| side(&path, step.bit) == side(&neighbour.path, step.bit));
        if !leads_there || path == neighbour.path {
            return None;
        }
        climb(&neighbour.path, encoded_leaf(&neighbour.path, &neighbour.value), steps)
    }
}
