//! Buckets of entries: lists of blocks out of one pool.
//!
//! A bucket that grew by doubling would copy itself and leave half of itself unused, thousands of
//! times over. Here a bucket is a list of blocks of [`BLOCK`] entries, all but the last of them
//! full, and blocks come from slabs that are never given back: what one bucket leaves, another
//! takes.

use super::Due;
use std::mem;

/// Entries of a block: a kilobyte.
const BLOCK: usize = 21;
/// Blocks of a slab, which is what the pool grows by.
const SLAB: usize = 64;
/// No block.
const NONE: u32 = u32::MAX;

/// A list of entries in the order in which they were added.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    first: u32,
    last: u32,
    entries: u32,
}

impl Bucket {
    /// A bucket of nothing.
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE, entries: 0 };

    /// Number of entries.
    pub(super) const fn len(&self) -> u32 {
        self.entries
    }
}

#[derive(Clone)]
struct Block {
    entries: [Due; BLOCK],
    next: u32,
}

/// Where the blocks of all buckets are.
pub(super) struct Pool {
    slabs: Vec<Box<[Block]>>,
    /// The first of the blocks that no bucket has.
    free: u32,
    /// Blocks that no bucket ever had: from here on in the last slab.
    fresh: usize,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self { slabs: Vec::new(), free: NONE, fresh: SLAB }
    }

    /// Adds an entry to a bucket.
    pub(super) fn push(&mut self, bucket: &mut Bucket, entry: Due) {
        let at = bucket.entries as usize % BLOCK;
        if at == 0 {
            let block = self.allocate();
            match bucket.last {
                NONE => bucket.first = block,
                last => self.block(last).next = block,
            }
            bucket.last = block;
        }
        self.block(bucket.last).entries[at] = entry;
        bucket.entries += 1;
    }

    /// Takes the entries of the first block out of a bucket.
    pub(super) fn take(&mut self, bucket: &mut Bucket) -> Option<&[Due]> {
        if bucket.entries == 0 {
            return None;
        }
        let (at, free) = (bucket.first, self.free);
        self.free = at;
        let here = bucket.entries.min(BLOCK as u32);
        let block = self.block(at);
        bucket.first = mem::replace(&mut block.next, free);
        bucket.entries -= here;
        if bucket.entries == 0 {
            *bucket = Bucket::EMPTY;
        }
        Some(&self.block(at).entries[..here as usize])
    }

    /// Takes all entries out of a bucket: calls `put` with each, in order, and with the pool.
    pub(super) fn move_out(&mut self, mut bucket: Bucket, mut put: impl FnMut(&Due, &mut Self)) {
        let mut entries = Vec::with_capacity(BLOCK);
        while let Some(block) = self.take(&mut bucket) {
            // Copied, since the block may be the next that is given out.
            entries.extend_from_slice(block);
            entries.drain(..).for_each(|entry| put(&entry, self));
        }
    }

    /// Keeps those entries of a bucket for which `keep` says so, in their order.
    pub(super) fn retain(&mut self, bucket: &mut Bucket, mut keep: impl FnMut(&Due) -> bool) {
        let mut entries = Vec::with_capacity(BLOCK);
        let mut kept = Bucket::EMPTY;
        while let Some(block) = self.take(bucket) {
            entries.extend(block.iter().filter(|entry| keep(entry)));
            entries.drain(..).for_each(|entry| self.push(&mut kept, entry));
        }
        *bucket = kept;
    }

    fn allocate(&mut self) -> u32 {
        if self.free != NONE {
            let block = self.free;
            self.free = mem::replace(&mut self.block(block).next, NONE);
            return block;
        }
        if self.fresh == SLAB {
            let empty = Block { entries: [Due::default(); BLOCK], next: NONE };
            self.slabs.push(vec![empty; SLAB].into());
            self.fresh = 0;
        }
        self.fresh += 1;
        ((self.slabs.len() - 1) * SLAB + self.fresh - 1) as u32
    }

    fn block(&mut self, at: u32) -> &mut Block {
        &mut self.slabs[at as usize / SLAB][at as usize % SLAB]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(numbers: impl Iterator<Item = u32>) -> Vec<Due> {
        numbers.map(|seq| Due { seq, ..Due::default() }).collect()
    }

    #[test]
    fn a_bucket_keeps_its_order_and_leaves_its_blocks() {
        let mut pool = Pool::new();
        let all = entries(0..10_000);
        for _ in 0..3 {
            let mut buckets = [Bucket::EMPTY; 3];
            for entry in &all {
                pool.push(&mut buckets[entry.seq as usize % 3], *entry);
            }
            for (n, bucket) in (0..).zip(&mut buckets) {
                pool.retain(bucket, |entry| entry.seq % 2 == 0);
                let expected = entries((n..10_000).step_by(3).filter(|seq| seq % 2 == 0));
                assert_eq!(bucket.len() as usize, expected.len());
                let mut got = Vec::new();
                while let Some(entries) = pool.take(bucket) {
                    got.extend_from_slice(entries);
                }
                assert_eq!(got, expected);
            }
        }
        assert_eq!(pool.slabs.len(), 10_000_usize.div_ceil(BLOCK * SLAB), "used again");
    }
}
