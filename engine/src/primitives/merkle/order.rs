//! The search tree: AVL, height at most 1.44 log2 n, so that recursion stays shallow.

use super::Entry;
use std::{cmp::Ordering, iter, mem, sync::Arc};

/// A tree of entries, which may be empty.
pub(super) type Tree<K, V> = Option<Arc<OrderNode<K, V>>>;

pub(super) struct OrderNode<K, V> {
    entry: Arc<Entry<K, V>>,
    /// 1 + the height of the higher child.
    height: u8,
    children: [Tree<K, V>; 2],
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

impl<K, V> Clone for OrderNode<K, V> {
    fn clone(&self) -> Self {
        let Self { entry, height, children } = self;
        Self { entry: Arc::clone(entry), height: *height, children: children.clone() }
    }
}

impl<K, V> OrderNode<K, V> {
    fn update_height(&mut self) {
        self.height = 1 + self.children.each_ref().map(height).into_iter().max().unwrap_or(0);
    }
}

fn height<K, V>(tree: &Tree<K, V>) -> u8 {
    tree.as_ref().map_or(0, |node| node.height)
}

fn side(order: Ordering) -> Option<usize> {
    match order {
        Ordering::Less => Some(LEFT),
        Ordering::Equal => None,
        Ordering::Greater => Some(RIGHT),
    }
}

pub(super) fn get<'a, K: Ord, V>(tree: &'a Tree<K, V>, key: &K) -> Option<&'a Entry<K, V>> {
    let mut at = tree.as_ref()?;
    while let Some(side) = side(key.cmp(&at.entry.key)) {
        at = at.children[side].as_ref()?;
    }
    Some(&at.entry)
}

/// Inserts an entry by its key; yields the entry that it replaces.
pub(super) fn insert<K: Ord, V>(
    tree: &mut Tree<K, V>,
    entry: Arc<Entry<K, V>>,
) -> Option<Arc<Entry<K, V>>> {
    let Some(shared) = tree else {
        *tree = Some(Arc::new(OrderNode { entry, height: 1, children: [None, None] }));
        return None;
    };
    let node = Arc::make_mut(shared);
    let Some(side) = side(entry.key.cmp(&node.entry.key)) else {
        return Some(mem::replace(&mut node.entry, entry));
    };
    let replaced = insert(&mut node.children[side], entry);
    rebalance(shared);
    replaced
}

pub(super) fn remove<K: Ord, V>(tree: &mut Tree<K, V>, key: &K) -> Option<Arc<Entry<K, V>>> {
    let shared = tree.as_mut()?;
    let node = Arc::make_mut(shared);
    let removed = match side(key.cmp(&node.entry.key)) {
        Some(side) => remove(&mut node.children[side], key)?,
        None => match remove_first(&mut node.children[RIGHT]) {
            Some(next) => mem::replace(&mut node.entry, next),
            None => {
                let removed = Arc::clone(&node.entry);
                *tree = node.children[LEFT].take();
                return Some(removed);
            }
        },
    };
    rebalance(shared);
    Some(removed)
}

/// Removes the entry with the smallest key.
fn remove_first<K, V>(tree: &mut Tree<K, V>) -> Option<Arc<Entry<K, V>>> {
    let shared = tree.as_mut()?;
    let node = Arc::make_mut(shared);
    let Some(first) = remove_first(&mut node.children[LEFT]) else {
        let first = Arc::clone(&node.entry);
        *tree = node.children[RIGHT].take();
        return Some(first);
    };
    rebalance(shared);
    Some(first)
}

/// Restores the AVL invariant, that the heights of siblings differ by at most one, after one of
/// them has grown or shrunk by one.
fn rebalance<K, V>(tree: &mut Arc<OrderNode<K, V>>) {
    let node = Arc::make_mut(tree);
    node.update_height();
    let [left, right] = node.children.each_ref().map(height);
    if left.abs_diff(right) <= 1 {
        return;
    }
    let high = if left > right { LEFT } else { RIGHT };
    let child = node.children[high].as_mut().expect("the higher child exists");
    if height(&child.children[1 - high]) > height(&child.children[high]) {
        lift(child, 1 - high);
    }
    lift(tree, high);
}

/// Rotates the child on `side` up into its parent's place.
fn lift<K, V>(tree: &mut Arc<OrderNode<K, V>>, side: usize) {
    let parent = Arc::make_mut(tree);
    let mut lifted = parent.children[side].take().expect("only an existing child is lifted");
    let between = Arc::make_mut(&mut lifted).children[1 - side].take();
    parent.children[side] = between;
    parent.update_height();
    mem::swap(tree, &mut lifted);
    let (root, parent) = (Arc::make_mut(tree), lifted);
    root.children[1 - side] = Some(parent);
    root.update_height();
}

/// Entries in ascending order of key.
pub(super) struct Iter<'a, K, V> {
    /// Nodes still to visit, whose left side is done; the next node is on top.
    open: Vec<&'a OrderNode<K, V>>,
}

impl<'a, K, V> Iter<'a, K, V> {
    pub(super) fn new(tree: &'a Tree<K, V>) -> Self {
        let mut iter = Self { open: Vec::new() };
        iter.open(tree);
        iter
    }

    pub(super) fn from(tree: &'a Tree<K, V>, key: &K) -> Self
    where
        K: Ord,
    {
        let mut open = Vec::new();
        let mut at = tree.as_deref();
        while let Some(node) = at {
            let within = node.entry.key >= *key;
            if within {
                open.push(node);
            }
            at = node.children[if within { LEFT } else { RIGHT }].as_deref();
        }
        Self { open }
    }

    fn open(&mut self, tree: &'a Tree<K, V>) {
        self.open.extend(iter::successors(tree.as_deref(), |node| node.children[LEFT].as_deref()));
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = &'a Entry<K, V>;

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.open.pop()?;
        self.open(&node.children[RIGHT]);
        Some(&node.entry)
    }
}

/// Asserts order, heights and balance; yields the height.
#[cfg(test)]
pub(super) fn check<K: Ord, V>(tree: &Tree<K, V>) -> u8 {
    let Some(node) = tree else { return 0 };
    let [left, right] = node.children.each_ref().map(check);
    assert!(left.abs_diff(right) <= 1, "balanced");
    assert_eq!(node.height, 1 + left.max(right), "heights are kept");
    assert!(Iter::new(tree).is_sorted_by(|a, b| a.key < b.key), "in order");
    node.height
}
