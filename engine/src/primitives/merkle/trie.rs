//! The hashed tree: a binary Patricia trie over 256-bit paths, so at most 256 levels deep.

use super::{Entry, Hash, Step, branch, side};
use crate::primitives::codec::Encode;
use std::{
    mem,
    sync::{Arc, OnceLock},
};

pub(super) enum Node<K, V> {
    Leaf(Arc<Entry<K, V>>),
    Branch(Arc<Branch<K, V>>),
}

/// The paths below agree in all bits before `bit`; child 0 has those with bit 0 there.
pub(super) struct Branch<K, V> {
    bit: u8,
    hash: OnceLock<Hash>,
    children: [Node<K, V>; 2],
}

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(entry) => Self::Leaf(Arc::clone(entry)),
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
        }
    }
}

impl<K, V> Clone for Branch<K, V> {
    fn clone(&self) -> Self {
        Self { bit: self.bit, hash: self.hash.clone(), children: self.children.clone() }
    }
}

impl<K, V> Branch<K, V> {
    /// The child that a path leads to, for a change: the cached hash is dropped.
    fn change<'a>(shared: &'a mut Arc<Self>, path: &Hash) -> &'a mut Node<K, V> {
        let branch = Arc::make_mut(shared);
        branch.hash.take();
        &mut branch.children[side(path, branch.bit)]
    }
}

impl<K: Encode, V: Encode> Node<K, V> {
    pub(super) fn hash(&self) -> Hash {
        match self {
            Self::Leaf(entry) => entry.hash(),
            Self::Branch(shared) => *shared
                .hash
                .get_or_init(|| branch(shared.bit, shared.children.each_ref().map(Self::hash))),
        }
    }
}

impl<K, V> Node<K, V> {
    /// The entry at `path` or else one that shares the longest prefix with it.
    pub(super) fn nearest(&self, path: &Hash) -> &Entry<K, V> {
        let mut at = self;
        loop {
            match at {
                Self::Leaf(entry) => return entry,
                Self::Branch(branch) => at = &branch.children[side(path, branch.bit)],
            }
        }
    }
}

/// Inserts an entry at its path and replaces the entry there, if any.
pub(super) fn insert<K, V>(root: &mut Option<Node<K, V>>, entry: Arc<Entry<K, V>>) {
    match root {
        Some(node) => {
            let split = first_difference(&node.nearest(&entry.path).path, &entry.path);
            insert_below(node, split, entry);
        }
        None => *root = Some(Node::Leaf(entry)),
    }
}

/// `split`: the bit that divides the entry from those present; `None` if it replaces one.
fn insert_below<K, V>(at: &mut Node<K, V>, split: Option<u8>, entry: Arc<Entry<K, V>>) {
    if let Node::Branch(branch) = at
        && split.is_none_or(|bit| branch.bit < bit)
    {
        return insert_below(Branch::change(branch, &entry.path), split, entry);
    }
    let path = entry.path;
    let new = Node::Leaf(entry);
    let old = mem::replace(at, new.clone());
    if let Some(bit) = split {
        let children = if side(&path, bit) == 0 { [new, old] } else { [old, new] };
        *at = Node::Branch(Arc::new(Branch { bit, hash: OnceLock::new(), children }));
    }
}

pub(super) fn remove<K, V>(root: &mut Option<Node<K, V>>, path: &Hash) {
    let present = root.as_mut().filter(|node| node.nearest(path).path == *path);
    if present.is_some_and(|node| !remove_below(node, path)) {
        *root = None;
    }
}

/// Returns whether the entry was below: a leaf cannot remove itself.
fn remove_below<K, V>(at: &mut Node<K, V>, path: &Hash) -> bool {
    let Node::Branch(branch) = at else { return false };
    let side = side(path, branch.bit);
    if matches!(branch.children[side], Node::Leaf(_)) {
        // The branch is removed too because it has nothing left to divide.
        *at = branch.children[1 - side].clone();
        return true;
    }
    remove_below(Branch::change(branch, path), path)
}

/// The steps up from the entry at `path`, or from the one that shares the longest prefix with it.
pub(super) fn prove<K: Encode, V: Encode>(root: &Node<K, V>, path: &Hash) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = root;
    while let Node::Branch(branch) = at {
        let side = side(path, branch.bit);
        steps.push(Step { bit: branch.bit, sibling: branch.children[1 - side].hash() });
        at = &branch.children[side];
    }
    steps.reverse();
    steps
}

fn first_difference(a: &Hash, b: &Hash) -> Option<u8> {
    let (byte, (a, b)) = a.0.iter().zip(&b.0).enumerate().find(|(_, (a, b))| a != b)?;
    Some(byte as u8 * 8 + (a ^ b).leading_zeros() as u8)
}
