//! Proofs over pages: the part of the trie for a range of keys, and the rest as hashes.
//!
//! A proof for the keys from `low` to `high` is the trie from its root down, each node before its
//! children, and children in order of their digits:
//!
//! ```text
//! hidden  = 0x00 ‖ hash (32 bytes)
//! page    = 0x01 ‖ bytes of the records (4, big-endian) ‖ records
//! branch  = 0x02 ‖ digit (1) ‖ bitmap (1) ‖ a node for each bit of the bitmap, the lowest first
//! nothing = 0x03, for a trie without records
//! ```
//!
//! The root is always opened, that is, not `hidden`. All keys below a branch begin with the same
//! digits, which each page below it shows. So the range of keys that a child can have is known, and
//! a child is opened exactly if the ranges overlap. If no child's range overlaps, the first child
//! is opened, to show those digits. So each range has exactly one proof, which shows every record
//! in it: hidden parts have no key of the range.

use super::{
    BRANCH_TAG, FAN_OUT, LENGTH_BYTES, PAGE_TAG, PageNode, Pages, digit, first, first_difference,
    nearest,
};
use crate::primitives::{Hash, keccak256};

const HIDDEN: u8 = 0;
const OPEN_PAGE: u8 = 1;
const OPEN_BRANCH: u8 = 2;
const NOTHING: u8 = 3;

/// The proof would exceed its maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proof takes more than {limit} bytes")]
pub struct Oversize {
    pub limit: usize,
}

/// Why bytes do not prove a trie's records in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error("byte {at} of the tree: {what}")]
    Malformed {
        /// The position, counted from the tree's first byte.
        at: usize,
        what: &'static str,
    },
    #[error("a key of the tree is not where its digits put it")]
    Misplaced,
    #[error("a part of the tree that may have keys of the range is hidden")]
    Hidden,
    #[error("a part of the tree that has no key of the range is not hidden")]
    Needless,
}

/// The proven records of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown<'a, const K: usize> {
    pub root: Hash,
    /// Keys and bodies of all records whose keys are in the range, in order.
    pub records: Vec<(&'a [u8; K], &'a [u8])>,
}

impl<const K: usize, const PAGE: usize> Pages<K, PAGE> {
    /// Proves the records with keys from `low` to `high`, both included, in at most `limit` bytes.
    pub fn prove(&self, low: &[u8; K], high: &[u8; K], limit: usize) -> Result<Vec<u8>, Oversize> {
        let mut proof = Vec::new();
        match &self.root {
            None => proof.push(NOTHING),
            Some(root) => root.prove((low, high), limit, &mut proof)?,
        }
        Ok(proof)
    }
}

impl<const K: usize, const PAGE: usize> PageNode<K, PAGE> {
    fn prove(
        &self,
        (low, high): (&[u8; K], &[u8; K]),
        limit: usize,
        proof: &mut Vec<u8>,
    ) -> Result<(), Oversize> {
        let fits = |proof: &Vec<u8>, more: usize| {
            (more <= limit.saturating_sub(proof.len())).then_some(()).ok_or(Oversize { limit })
        };
        match self {
            Self::Page(page) => {
                fits(proof, 1 + LENGTH_BYTES + page.records.len())?;
                let length = u32::try_from(page.records.len());
                let length = length.expect("a page that fits is shorter than 4 GiB");
                proof.push(OPEN_PAGE);
                proof.extend_from_slice(&length.to_be_bytes());
                proof.extend_from_slice(&page.records);
            }
            Self::Branch(branch) => {
                let children = (0..).zip(&branch.children);
                let bitmap = children.filter(|(_, child)| child.is_some());
                let bitmap = bitmap.fold(0, |bitmap, (digit, _)| bitmap | 1 << digit);
                let opened = opened(bitmap, branch.digit, first(nearest(self, low)), low, high);
                fits(proof, 3)?;
                proof.extend_from_slice(&[OPEN_BRANCH, branch.digit, bitmap]);
                for (digit, child) in branch.children.iter().enumerate() {
                    match child {
                        Some(child) if opened & 1 << digit != 0 => {
                            child.prove((low, high), limit, proof)?;
                        }
                        Some(child) => {
                            fits(proof, 33)?;
                            proof.push(HIDDEN);
                            proof.extend_from_slice(&child.hash().0);
                        }
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }
}

/// The children of a branch that a proof opens, as a bitmap. `key` is any key below the branch.
fn opened<const K: usize>(bitmap: u8, at: u8, key: &[u8; K], low: &[u8; K], high: &[u8; K]) -> u8 {
    let meets = |child: u8| {
        let (byte, shift) = (usize::from(at / 4), 6 - at % 4 * 2);
        let (mut least, mut most) = (*key, *key);
        least[byte + 1..].fill(0);
        most[byte + 1..].fill(255);
        let below = (1 << shift) - 1;
        let prefix = key[byte] & !(3 << shift | below) | child << shift;
        least[byte] = prefix;
        most[byte] = prefix | below;
        least <= *high && most >= *low
    };
    let children = (0..FAN_OUT as u8).filter(|child| bitmap & 1 << child != 0);
    let opened = children.filter(|child| meets(*child)).fold(0, |all, child| all | 1 << child);
    if opened == 0 { bitmap & bitmap.wrapping_neg() } else { opened }
}

/// Checks a proof for the keys from `low` to `high`, both included. Takes memory and time in
/// proportion to the bytes, and does not recurse.
pub fn check<'a, const K: usize>(
    bytes: &'a [u8],
    low: &[u8; K],
    high: &[u8; K],
) -> Result<Shown<'a, K>, TreeError> {
    if bytes == [NOTHING] {
        return Ok(Shown { root: Hash::ZERO, records: Vec::new() });
    }
    let mut input = PageInput { bytes, at: 0 };
    // Digits ascend along the path, so its depth is at most 4 K.
    let mut path: Vec<BranchFrame<'a, K>> = Vec::new();
    let mut records = Vec::new();
    loop {
        let at = input.at;
        let malformed = |what| TreeError::Malformed { at, what };
        let [tag] = *input.array()?;
        let mut node = match tag {
            HIDDEN if !path.is_empty() => Checked { hash: Hash(*input.array()?), keys: None },
            OPEN_PAGE => {
                let length = u32::from_be_bytes(*input.array()?);
                let page = input.take(length as usize)?;
                let keys = read_page(page, |key, body| {
                    if (low..=high).contains(&key) {
                        records.push((key, body));
                    }
                });
                let keys = keys.ok_or(malformed("expected records in order of their keys"))?;
                Checked { hash: keccak256(&[PAGE_TAG, page]), keys: Some(keys) }
            }
            OPEN_BRANCH => {
                let [digit, bitmap] = *input.array()?;
                let above = path.last().map(|frame| frame.digit);
                if usize::from(digit) >= 4 * K || above.is_some_and(|above| digit <= above) {
                    return Err(malformed("expected a digit after those above, of the key"));
                }
                if bitmap.count_ones() < 2 || bitmap >> FAN_OUT != 0 {
                    return Err(malformed("expected two to four children"));
                }
                path.push(BranchFrame::new(digit, bitmap));
                continue;
            }
            _ => return Err(malformed("expected a node that belongs there")),
        };
        // The node is added to the branch above it, which may be complete then, and so on.
        loop {
            let Some(frame) = path.last_mut() else {
                return match input.at == bytes.len() {
                    true => Ok(Shown { root: node.hash, records }),
                    false => {
                        let what = "expected the end";
                        Err(TreeError::Malformed { at: input.at, what })
                    }
                };
            };
            frame.add(&node)?;
            if frame.left != 0 {
                break;
            }
            node = path.pop().expect("it was there").complete(low, high)?;
        }
    }
}

struct Checked<'a, const K: usize> {
    hash: Hash,
    /// The first and the last key below it that were shown.
    keys: Option<(&'a [u8; K], &'a [u8; K])>,
}

/// A branch some of whose children were read.
struct BranchFrame<'a, const K: usize> {
    digit: u8,
    bitmap: u8,
    /// The bitmap of the children still to come.
    left: u8,
    opened: u8,
    hashes: [u8; FAN_OUT * 32],
    end: usize,
    keys: Option<(&'a [u8; K], &'a [u8; K])>,
}

impl<'a, const K: usize> BranchFrame<'a, K> {
    const fn new(digit: u8, bitmap: u8) -> Self {
        let hashes = [0; FAN_OUT * 32];
        Self { digit, bitmap, left: bitmap, opened: 0, hashes, end: 0, keys: None }
    }

    fn add(&mut self, child: &Checked<'a, K>) -> Result<(), TreeError> {
        let index = self.left.trailing_zeros();
        self.left &= self.left - 1;
        self.hashes[self.end..self.end + 32].copy_from_slice(&child.hash.0);
        self.end += 32;
        let Some((first, last)) = child.keys else { return Ok(()) };
        self.opened |= 1 << index;
        let (leftmost, _) = *self.keys.get_or_insert((first, last));
        let digits_agree = |key: &[u8; K]| {
            first_difference(leftmost, key).is_none_or(|differ| differ >= self.digit)
                && digit(key, self.digit) == index as usize
        };
        if !digits_agree(first) || !digits_agree(last) {
            return Err(TreeError::Misplaced);
        }
        self.keys = Some((leftmost, last));
        Ok(())
    }

    fn complete(self, low: &[u8; K], high: &[u8; K]) -> Result<Checked<'a, K>, TreeError> {
        let (first, _) = self.keys.ok_or(TreeError::Hidden)?;
        let expected = opened(self.bitmap, self.digit, first, low, high);
        if expected & !self.opened != 0 {
            return Err(TreeError::Hidden);
        }
        if self.opened & !expected != 0 {
            return Err(TreeError::Needless);
        }
        let hashes = &self.hashes[..self.end];
        let hash = keccak256(&[BRANCH_TAG, &[self.digit, self.bitmap], hashes]);
        Ok(Checked { hash, keys: self.keys })
    }
}

/// Reads the records of a page, at least one; returns its first key and its last.
fn read_page<'a, const K: usize>(
    mut page: &'a [u8],
    mut each: impl FnMut(&'a [u8; K], &'a [u8]),
) -> Option<(&'a [u8; K], &'a [u8; K])> {
    let mut keys: Option<(&[u8; K], &[u8; K])> = None;
    while !page.is_empty() {
        let (length, rest) = page.split_first_chunk::<LENGTH_BYTES>()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (body, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let first = match keys {
            Some((_, last)) if last >= key => return None,
            Some((first, _)) => first,
            None => key,
        };
        keys = Some((first, key));
        each(key, body);
        page = rest;
    }
    keys
}

struct PageInput<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> PageInput<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], TreeError> {
        let rest = &self.bytes[self.at..];
        let what = "expected more bytes";
        let taken = rest.get(..length).ok_or(TreeError::Malformed { at: self.at, what })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], TreeError> {
        Ok(self.take(N)?.first_chunk().expect("as many were taken"))
    }
}

#[cfg(test)]
mod tests;
