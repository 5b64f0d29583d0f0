//! Records by key: a persistent Merkle trie whose leaves are pages of records, not records.
//!
//! All keys have K bytes. A leaf per record would cost an allocation, a pointer and a hash each,
//! which for a hundred bytes is more than the record itself. So neighbours share a page:
//!
//! * a page contains the records of a subtree in order of their keys, one after the other: length
//!   of the body (4 bytes, big-endian) ‖ key ‖ body.
//! * a subtree is a page if it has one record, or if its records take at most PAGE bytes. Otherwise
//!   it is a branch by the first two bits (aligned, a *digit*) in which its keys differ.
//!
//! Both follow from the contents, and so do the shape and the root. Keys that agree in their first
//! digits do not create chains of branches with one child: there are at most 4 K levels, and with
//! hashes as keys about log4(n / 5) for pages of 1,024 bytes.
//!
//! [`proof`] proves which records some keys have, and that there are no others.
//!
//! page = keccak256(0x00 ‖ records), branch = keccak256(0x01 ‖ digit ‖ bitmap ‖ children), where
//! bit i of the bitmap is set if there is a child with digit i; the root of an empty trie is 32
//! zero bytes. A branch with four children is hashed in one permutation of keccak. Hashes are
//! cached per node and computed on demand: k changes between two roots hash about k paths.

pub mod proof;

use crate::primitives::{Hash, keccak256};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// Number of children of a branch: one per value of two bits.
const FAN_OUT: usize = 4;
/// Bytes before the key in a record.
const LENGTH_BYTES: usize = 4;
#[cfg(test)]
thread_local! {
    /// Nodes that this thread has hashed.
    pub(super) static HASHED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

const PAGE_TAG: &[u8] = &[0];
const BRANCH_TAG: &[u8] = &[1];

/// Byte strings by keys of K bytes, in ascending order of key. Clones are O(1) and independent.
///
/// Several records share a page while they take at most PAGE bytes. A larger PAGE makes copying and
/// hashing a page slower, and reduces the memory overhead.
#[derive(Clone)]
pub struct Pages<const K: usize, const PAGE: usize> {
    root: Option<PageNode<K, PAGE>>,
    len: usize,
}

impl<const K: usize, const PAGE: usize> Default for Pages<K, PAGE> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

#[derive(Clone)]
enum PageNode<const K: usize, const PAGE: usize> {
    Page(Arc<Page>),
    Branch(Arc<PageBranch<K, PAGE>>),
}

struct Page {
    hash: OnceLock<Hash>,
    records: Box<[u8]>,
}

/// The keys below agree in all digits before `digit`, and differ in it.
#[derive(Clone)]
struct PageBranch<const K: usize, const PAGE: usize> {
    hash: OnceLock<Hash>,
    digit: u8,
    bytes: usize,
    children: [Option<PageNode<K, PAGE>>; FAN_OUT],
}

impl<const K: usize, const PAGE: usize> Pages<K, PAGE> {
    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, key: &[u8; K]) -> Option<&[u8]> {
        let page = nearest(self.root.as_ref()?, key);
        Records(page)
            .find(|record| record.key >= key)
            .filter(|record| record.key == key)
            .map(|record| record.body)
    }

    /// Inserts a body under `key` and returns the one it replaces.
    pub fn insert(&mut self, key: &[u8; K], body: &[u8]) -> Option<Vec<u8>> {
        let split =
            self.root.as_ref().and_then(|root| first_difference(first(nearest(root, key)), key));
        let length = u32::try_from(body.len()).expect("a record is shorter than 4 GiB");
        let record = [&length.to_be_bytes(), key.as_slice(), body].concat();
        let replaced = put(&mut self.root, split, key, record);
        self.len += usize::from(replaced.is_none());
        replaced
    }

    pub fn remove(&mut self, key: &[u8; K]) -> Option<Vec<u8>> {
        // Checked first, so that a miss copies no shared path.
        self.get(key)?;
        self.len -= 1;
        Some(take(&mut self.root, key))
    }

    /// The hash over the contents; [`Hash::ZERO`] if empty.
    pub fn root(&self) -> Hash {
        self.root.as_ref().map_or(Hash::ZERO, PageNode::hash)
    }

    /// The records in ascending order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8; K], &[u8])> {
        let open = self.root.iter().collect();
        PageIter { open, records: Records(&[]) }.map(|record| (record.key, record.body))
    }

    /// The records from `from` on, inclusive, in ascending order of key.
    pub fn range_from(&self, from: [u8; K]) -> impl Iterator<Item = (&[u8; K], &[u8])> {
        let mut open = Vec::new();
        let mut at = self.root.as_ref();
        let split = at.and_then(|root| first_difference(first(nearest(root, &from)), &from));
        while let Some(node) = at.take() {
            match node {
                PageNode::Branch(branch) if split.is_none_or(|split| branch.digit <= split) => {
                    let (_, rest) = branch.children.split_at(digit(&from, branch.digit));
                    open.extend(rest[1..].iter().rev().flatten());
                    at = rest[0].as_ref();
                }
                PageNode::Branch(_) => {
                    // The whole node is on one side of `from`.
                    let below = nearest(node, &from);
                    if *first(below) > from {
                        open.push(node);
                    }
                }
                PageNode::Page(_) => open.push(node),
            }
        }
        PageIter { open, records: Records(&[]) }
            .map(|record| (record.key, record.body))
            .skip_while(move |(key, _)| **key < from)
    }

    /// The records whose keys begin with `prefix`, in ascending order.
    pub fn with_prefix<const N: usize>(
        &self,
        prefix: [u8; N],
    ) -> impl Iterator<Item = (&[u8; K], &[u8])> {
        let mut from = [0; K];
        from[..prefix.len()].copy_from_slice(&prefix);
        // Below a branch whose digit is beyond the prefix, every child may match the prefix.
        let mut at = self.root.as_ref();
        while let Some(PageNode::Branch(branch)) = at
            && usize::from(branch.digit) < prefix.len() * 4
        {
            at = branch.children[digit(&from, branch.digit)].as_ref();
        }
        PageIter { open: at.into_iter().collect(), records: Records(&[]) }
            .map(|record| (record.key, record.body))
            .filter(move |(key, _)| key.starts_with(&prefix))
    }
}

impl<const K: usize, const PAGE: usize> PageNode<K, PAGE> {
    fn hash(&self) -> Hash {
        match self {
            Self::Page(page) => *page.hash.get_or_init(|| {
                #[cfg(test)]
                HASHED.set(HASHED.get() + 1);
                keccak256(&[PAGE_TAG, page.records.as_ref()])
            }),
            Self::Branch(branch) => *branch.hash.get_or_init(|| {
                #[cfg(test)]
                HASHED.set(HASHED.get() + 1);
                branch.make_hash()
            }),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Page(page) => page.records.len(),
            Self::Branch(branch) => branch.bytes,
        }
    }

    fn page(records: Vec<u8>) -> Self {
        Self::Page(Arc::new(Page { hash: OnceLock::new(), records: records.into() }))
    }

    /// The node over these records, at least one.
    fn build(records: Vec<u8>) -> Self {
        let mut keys = Records::<K>(&records).map(|record| record.key);
        let first = keys.next().expect("a node has a record");
        match keys.last() {
            Some(last) if records.len() > PAGE => {
                let at = first_difference(first, last).expect("keys differ");
                let mut parts: [Vec<u8>; FAN_OUT] = Default::default();
                let mut rest = records.as_slice();
                while let Some(record) = Records::<K>(rest).next() {
                    let (whole, after) = rest.split_at(record.len());
                    parts[digit(record.key, at)].extend_from_slice(whole);
                    rest = after;
                }
                let children = parts.map(|part| (!part.is_empty()).then(|| Self::build(part)));
                Self::branch(at, children)
            }
            _ => Self::page(records),
        }
    }

    fn branch(digit: u8, children: [Option<Self>; FAN_OUT]) -> Self {
        let bytes = children.iter().flatten().map(Self::bytes).sum();
        Self::Branch(Arc::new(PageBranch { hash: OnceLock::new(), digit, bytes, children }))
    }
}

impl<const K: usize, const PAGE: usize> PageBranch<K, PAGE> {
    fn make_hash(&self) -> Hash {
        let mut head = [BRANCH_TAG[0], self.digit, 0];
        let mut hashes = [0; FAN_OUT * 32];
        let mut end = 0;
        for (index, child) in self.children.iter().enumerate() {
            if let Some(child) = child {
                head[2] |= 1 << index;
                hashes[end..end + 32].copy_from_slice(child.hash().as_bytes());
                end += 32;
            }
        }
        keccak256(&[&head, &hashes[..end]])
    }

    /// An unshared copy of a branch, to be changed on the way to `key`; its cached hash is dropped.
    fn change<'a>(
        shared: &'a mut Arc<Self>,
        key: &[u8; K],
    ) -> (&'a mut usize, &'a mut Option<PageNode<K, PAGE>>) {
        let branch = Arc::make_mut(shared);
        branch.hash.take();
        (&mut branch.bytes, &mut branch.children[digit(key, branch.digit)])
    }
}

/// The page with `key` if there is one; otherwise a page whose keys share the longest prefix with
/// it.
fn nearest<'a, const K: usize, const PAGE: usize>(
    root: &'a PageNode<K, PAGE>,
    key: &[u8; K],
) -> &'a [u8] {
    let mut at = root;
    loop {
        match at {
            PageNode::Page(page) => return &page.records,
            PageNode::Branch(branch) => {
                let child = branch.children[digit(key, branch.digit)].as_ref();
                let any = || branch.children.iter().flatten().next();
                at = child.or_else(any).expect("a branch has children");
            }
        }
    }
}

/// Inserts a record at its key's place; returns the body it replaces. `split` is the digit that
/// separates it from the existing keys, or `None` if it replaces a record or the trie is empty.
fn put<const K: usize, const PAGE: usize>(
    at: &mut Option<PageNode<K, PAGE>>,
    split: Option<u8>,
    key: &[u8; K],
    record: Vec<u8>,
) -> Option<Vec<u8>> {
    let replaced = match at {
        None => {
            *at = Some(PageNode::page(record));
            return None;
        }
        Some(PageNode::Page(page)) => {
            let (range, replaced) = locate(&page.records, key);
            let records = [&page.records[..range.start], &record, &page.records[range.end..]];
            *at = Some(PageNode::build(records.concat()));
            return replaced;
        }
        Some(PageNode::Branch(branch)) if split.is_none_or(|digit| branch.digit <= digit) => {
            let (bytes, child) = PageBranch::change(branch, key);
            *bytes -= child.as_ref().map_or(0, PageNode::bytes);
            let replaced = put(child, split, key, record);
            *bytes += child.as_ref().map_or(0, PageNode::bytes);
            replaced
        }
        Some(node) => {
            let split = split.expect("only a branch that is divided gets here");
            let mut children = [const { None }; FAN_OUT];
            let other = digit(first::<K>(nearest(node, key)), split);
            children[other] = at.take();
            children[digit(key, split)] = Some(PageNode::page(record));
            *at = Some(PageNode::branch(split, children));
            return None;
        }
    };
    settle(at);
    replaced
}

/// Removes the record of `key`, which must exist; returns its body.
fn take<const K: usize, const PAGE: usize>(
    at: &mut Option<PageNode<K, PAGE>>,
    key: &[u8; K],
) -> Vec<u8> {
    let removed = match at {
        None => unreachable!("only existing records are taken"),
        Some(PageNode::Page(page)) => {
            let (range, removed) = locate(&page.records, key);
            let rest = [&page.records[..range.start], &page.records[range.end..]].concat();
            *at = (!rest.is_empty()).then(|| PageNode::page(rest));
            return removed.expect("only existing records are taken");
        }
        Some(PageNode::Branch(branch)) => {
            let (bytes, child) = PageBranch::change(branch, key);
            *bytes -= child.as_ref().map_or(0, PageNode::bytes);
            let removed = take(child, key);
            *bytes += child.as_ref().map_or(0, PageNode::bytes);
            removed
        }
    };
    settle(at);
    removed
}

/// Restores the canonical shape of a branch after its records became fewer or shorter.
fn settle<const K: usize, const PAGE: usize>(at: &mut Option<PageNode<K, PAGE>>) {
    let Some(PageNode::Branch(branch)) = at else { return };
    if branch.bytes <= PAGE {
        let mut records = Vec::with_capacity(branch.bytes);
        let mut open: Vec<&PageNode<K, PAGE>> = branch.children.iter().rev().flatten().collect();
        while let Some(node) = open.pop() {
            match node {
                PageNode::Page(page) => records.extend_from_slice(&page.records),
                PageNode::Branch(below) => open.extend(below.children.iter().rev().flatten()),
            }
        }
        *at = Some(PageNode::page(records));
        return;
    }
    let mut children = branch.children.iter().flatten();
    if let (Some(only), None) = (children.next(), children.next()) {
        *at = Some(only.clone());
    }
}

fn first<const K: usize>(page: &[u8]) -> &[u8; K] {
    Records(page).next().expect("a page has a record").key
}

/// The range and the body of the record of `key` in a page; the empty range of its place if absent.
fn locate<const K: usize>(page: &[u8], key: &[u8; K]) -> (Range<usize>, Option<Vec<u8>>) {
    let mut start = 0;
    for record in Records(page) {
        if record.key == key {
            return (start..start + record.len(), Some(record.body.to_vec()));
        }
        if record.key > key {
            break;
        }
        start += record.len();
    }
    (start..start, None)
}

/// Two bits of a key; digit 0 is the most significant of the first byte.
fn digit<const K: usize>(key: &[u8; K], digit: u8) -> usize {
    usize::from(key[usize::from(digit / 4)] >> (6 - digit % 4 * 2) & 3)
}

fn first_difference<const K: usize>(a: &[u8; K], b: &[u8; K]) -> Option<u8> {
    let (byte, (a, b)) = a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b)?;
    Some(byte as u8 * 4 + (a ^ b).leading_zeros() as u8 / 2)
}

struct PageRecord<'a, const K: usize> {
    key: &'a [u8; K],
    body: &'a [u8],
}

impl<const K: usize> PageRecord<'_, K> {
    /// Its size in a page, in bytes.
    const fn len(&self) -> usize {
        LENGTH_BYTES + K + self.body.len()
    }
}

/// The records of a page, or of the rest of one.
struct Records<'a, const K: usize>(&'a [u8]);

impl<'a, const K: usize> Iterator for Records<'a, K> {
    type Item = PageRecord<'a, K>;

    fn next(&mut self) -> Option<PageRecord<'a, K>> {
        let (length, rest) = self.0.split_first_chunk::<LENGTH_BYTES>()?;
        let (key, rest) = rest.split_first_chunk().expect("a record has a key");
        let (body, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        self.0 = rest;
        Some(PageRecord { key, body })
    }
}

struct PageIter<'a, const K: usize, const PAGE: usize> {
    /// The nodes still to visit, the next on top.
    open: Vec<&'a PageNode<K, PAGE>>,
    records: Records<'a, K>,
}

impl<'a, const K: usize, const PAGE: usize> Iterator for PageIter<'a, K, PAGE> {
    type Item = PageRecord<'a, K>;

    fn next(&mut self) -> Option<PageRecord<'a, K>> {
        loop {
            if let Some(record) = self.records.next() {
                return Some(record);
            }
            match self.open.pop()? {
                PageNode::Page(page) => self.records = Records(&page.records),
                PageNode::Branch(branch) => {
                    self.open.extend(branch.children.iter().rev().flatten());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
