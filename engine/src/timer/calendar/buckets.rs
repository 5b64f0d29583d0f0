//! Buckets of entries: lists of pieces from one pool.
//!
//! A bucket that grew by doubling would copy its entries and leave half of its memory unused,
//! thousands of times over. So a bucket is a list of pieces, all but the last of them full. The
//! first is short, because most buckets have few entries; later ones are long, because sequential
//! reads are fastest. Pieces come from slabs that are never freed: one bucket's freed pieces are
//! reused by others.

use super::Due;
use std::mem;

/// Number of entries in a bucket's first piece, in its second, and in all later ones.
const SIZES: [usize; 3] = [4, 16, 32];
/// The alignment of pieces, in entries; it divides all sizes.
const UNIT: usize = SIZES[0];
/// Number of entries in a slab, by which the pool grows.
const SLAB: usize = 1_024;

/// Adjacent entries: their start in units, and above it the index of their size.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece(u32);

impl Piece {
    const NONE: Self = Self(u32::MAX);
    const SIZE_SHIFT: u32 = 30;

    const fn new(start: usize, size: usize) -> Self {
        Self((start / UNIT) as u32 | (size as u32) << Self::SIZE_SHIFT)
    }

    const fn size(self) -> usize {
        (self.0 >> Self::SIZE_SHIFT) as usize
    }

    const fn entries(self) -> usize {
        SIZES[self.size()]
    }

    /// The start of the piece in the pool, in units.
    const fn unit(self) -> usize {
        (self.0 & ((1 << Self::SIZE_SHIFT) - 1)) as usize
    }
}

/// A list of entries in the order in which they were added.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    first: Piece,
    last: Piece,
    entries: u32,
    /// Number of entries that still fit into the last piece.
    room: u32,
}

impl Bucket {
    pub(super) const EMPTY: Self =
        Self { first: Piece::NONE, last: Piece::NONE, entries: 0, room: 0 };

    pub(super) const fn len(&self) -> u32 {
        self.entries
    }
}

pub(super) struct EntryPool {
    slabs: Vec<Box<[Due]>>,
    /// The next piece after the piece that starts at a unit, in its bucket or in the list of free
    /// pieces.
    next: Vec<Piece>,
    /// The head of the list of free pieces, for each size.
    free: [Piece; SIZES.len()],
    /// The first entry of the last slab that was never in a piece.
    fresh: usize,
}

impl EntryPool {
    pub(super) const fn new() -> Self {
        Self { slabs: Vec::new(), next: Vec::new(), free: [Piece::NONE; SIZES.len()], fresh: SLAB }
    }

    #[inline]
    pub(super) fn push(&mut self, bucket: &mut Bucket, entry: Due) {
        if bucket.room == 0 {
            self.extend(bucket);
        }
        let at = bucket.last.unit() * UNIT + bucket.last.entries() - bucket.room as usize;
        self.slabs[at / SLAB][at % SLAB] = entry;
        bucket.entries += 1;
        bucket.room -= 1;
    }

    /// Removes and returns the entries of a bucket's first piece.
    pub(super) fn take(&mut self, bucket: &mut Bucket) -> Option<&[Due]> {
        if bucket.entries == 0 {
            return None;
        }
        let piece = bucket.first;
        let free = mem::replace(&mut self.free[piece.size()], piece);
        let next = mem::replace(&mut self.next[piece.unit()], free);
        let here = if next == Piece::NONE {
            let here = piece.entries() - bucket.room as usize;
            *bucket = Bucket::EMPTY;
            here
        } else {
            bucket.first = next;
            bucket.entries -= piece.entries() as u32;
            piece.entries()
        };
        let at = piece.unit() * UNIT;
        Some(&self.slabs[at / SLAB][at % SLAB..][..here])
    }

    /// Empties a bucket: calls `put` with each entry, in order, and with the pool.
    pub(super) fn move_out(&mut self, mut bucket: Bucket, mut put: impl FnMut(&Due, &mut Self)) {
        let mut entries = Vec::with_capacity(SIZES[SIZES.len() - 1]);
        while let Some(piece) = self.take(&mut bucket) {
            // Copied, because `put` may allocate the same piece again.
            entries.extend_from_slice(piece);
            entries.drain(..).for_each(|entry| put(&entry, self));
        }
    }

    /// Keeps the entries of a bucket for which `keep` returns true, in their order.
    pub(super) fn retain(&mut self, bucket: &mut Bucket, mut keep: impl FnMut(&Due) -> bool) {
        let mut entries = Vec::with_capacity(SIZES[SIZES.len() - 1]);
        let mut kept = Bucket::EMPTY;
        while let Some(piece) = self.take(bucket) {
            entries.extend(piece.iter().filter(|entry| keep(entry)));
            entries.drain(..).for_each(|entry| self.push(&mut kept, entry));
        }
        *bucket = kept;
    }

    #[inline(never)]
    fn extend(&mut self, bucket: &mut Bucket) {
        let piece = match bucket.last {
            Piece::NONE => self.allocate(0),
            last => self.allocate((last.size() + 1).min(SIZES.len() - 1)),
        };
        match bucket.last {
            Piece::NONE => bucket.first = piece,
            last => self.next[last.unit()] = piece,
        }
        bucket.last = piece;
        bucket.room = piece.entries() as u32;
    }

    fn allocate(&mut self, size: usize) -> Piece {
        let piece = self.free[size];
        if piece != Piece::NONE {
            self.free[size] = mem::replace(&mut self.next[piece.unit()], Piece::NONE);
            return piece;
        }
        if SLAB - self.fresh < SIZES[size] {
            // The rest of the slab is cut into short pieces.
            while self.fresh < SLAB {
                let short = self.cut(0);
                self.next[short.unit()] = mem::replace(&mut self.free[0], short);
            }
            self.slabs.push(vec![Due::default(); SLAB].into());
            self.next.resize(self.slabs.len() * SLAB / UNIT, Piece::NONE);
            self.fresh = 0;
        }
        self.cut(size)
    }

    /// Cuts the next piece from the last slab.
    fn cut(&mut self, size: usize) -> Piece {
        let start = (self.slabs.len() - 1) * SLAB + self.fresh;
        self.fresh += SIZES[size];
        Piece::new(start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(numbers: impl Iterator<Item = u32>) -> Vec<Due> {
        numbers.map(|seq| Due { seq, ..Due::default() }).collect()
    }

    #[test]
    fn a_bucket_keeps_its_order_and_leaves_its_pieces() {
        let mut pool = EntryPool::new();
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
        assert_eq!(pool.slabs.len(), 10_000_usize.div_ceil(SLAB), "used again");
    }
}
