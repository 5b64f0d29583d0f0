//! Buckets of entries: lists of pieces out of one pool.
//!
//! A bucket that grew by doubling would copy itself and leave half of itself unused, thousands of
//! times over. Here a bucket is a list of pieces, all but the last of them full. The first is
//! short, since most buckets have few entries; later ones are long, since memory is read fastest
//! in its own order. Pieces come from slabs that are never given back: what one bucket leaves,
//! another takes.

use super::Due;
use std::mem;

/// Entries of a bucket's first piece, of its second, and of all after it.
const SIZES: [usize; 3] = [4, 16, 32];
/// Pieces start at multiples of so many entries, of which all sizes are multiples.
const UNIT: usize = SIZES[0];
/// Entries of a slab, which is what the pool grows by.
const SLAB: usize = 1_024;

/// Entries next to each other: where they start in units, and above that the index of their size.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Piece(u32);

impl Piece {
    const NONE: Self = Self(u32::MAX);
    const SIZE_SHIFT: u32 = 30;

    const fn new(start: usize, size: usize) -> Self {
        Self((start / UNIT) as u32 | (size as u32) << Self::SIZE_SHIFT)
    }

    /// The index of its size.
    const fn size(self) -> usize {
        (self.0 >> Self::SIZE_SHIFT) as usize
    }

    const fn entries(self) -> usize {
        SIZES[self.size()]
    }

    /// Its place among all pieces: counted in units.
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
    /// Entries that there still is room for in the last piece.
    room: u32,
}

impl Bucket {
    /// A bucket of nothing.
    pub(super) const EMPTY: Self =
        Self { first: Piece::NONE, last: Piece::NONE, entries: 0, room: 0 };

    /// Number of entries.
    pub(super) const fn len(&self) -> u32 {
        self.entries
    }
}

/// Where the entries of all buckets are.
pub(super) struct Pool {
    slabs: Vec<Box<[Due]>>,
    /// The piece after the one that starts at a unit: of its bucket, or of those that are free.
    next: Vec<Piece>,
    /// The first of the pieces that no bucket has, of each size.
    free: [Piece; SIZES.len()],
    /// Entries of the last slab that were never in a piece: those from here on.
    fresh: usize,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self { slabs: Vec::new(), next: Vec::new(), free: [Piece::NONE; SIZES.len()], fresh: SLAB }
    }

    /// Adds an entry to a bucket.
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

    /// Takes the entries of the first piece out of a bucket.
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

    /// Takes all entries out of a bucket: calls `put` with each, in order, and with the pool.
    pub(super) fn move_out(&mut self, mut bucket: Bucket, mut put: impl FnMut(&Due, &mut Self)) {
        let mut entries = Vec::with_capacity(SIZES[SIZES.len() - 1]);
        while let Some(piece) = self.take(&mut bucket) {
            // Copied, since the piece may be the next that is given out.
            entries.extend_from_slice(piece);
            entries.drain(..).for_each(|entry| put(&entry, self));
        }
    }

    /// Keeps those entries of a bucket for which `keep` says so, in their order.
    pub(super) fn retain(&mut self, bucket: &mut Bucket, mut keep: impl FnMut(&Due) -> bool) {
        let mut entries = Vec::with_capacity(SIZES[SIZES.len() - 1]);
        let mut kept = Bucket::EMPTY;
        while let Some(piece) = self.take(bucket) {
            entries.extend(piece.iter().filter(|entry| keep(entry)));
            entries.drain(..).for_each(|entry| self.push(&mut kept, entry));
        }
        *bucket = kept;
    }

    /// Adds a piece to a bucket.
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

    /// A piece of the size with that index.
    fn allocate(&mut self, size: usize) -> Piece {
        let piece = self.free[size];
        if piece != Piece::NONE {
            self.free[size] = mem::replace(&mut self.next[piece.unit()], Piece::NONE);
            return piece;
        }
        if SLAB - self.fresh < SIZES[size] {
            // What is left of the slab is good for short pieces.
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

    /// The next piece of the last slab.
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
        assert_eq!(pool.slabs.len(), 10_000_usize.div_ceil(SLAB), "used again");
    }
}
