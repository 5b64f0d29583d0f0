//! Selects the best of many, best first, without sorting the rest.
//!
//! An offer that is better than the bar is kept. When [`SLACK`] times as many are kept as wanted,
//! the wanted number is selected, the worst of them becomes the bar, and the others are dropped.
//! Each selection is linear and drops most of what it reads, so an offer takes amortized constant
//! time in any order of offers, with or without ties.

use crate::timer::Due;

/// Size of the first batch: more than a lane usually takes.
const FIRST: usize = 256;
/// The factor by which each batch is larger than the previous one, so that n offers take log n
/// batches.
const GROWTH: usize = 8;
/// The multiple of the wanted number that is kept before the rest is dropped.
const SLACK: usize = 8;

/// The rank of a timer among those of its block: the smallest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// The key's distance from the maximum: the upper and the lower half.
    lack: [u64; 2],
    /// The weight's distance from the maximum.
    light: u64,
    height: u32,
    id: u64,
    /// The timer's index among the due ones, which is the order of insertion within a height.
    pub(super) index: u32,
}
const _: () = assert!(size_of::<Rank>() == 40, "a batch is moved as a whole");

impl Rank {
    const LAST: Self = Self {
        lack: [u64::MAX; 2],
        light: u64::MAX,
        height: u32::MAX,
        id: u64::MAX,
        index: u32::MAX,
    };

    /// By key, then by weight, highest first; then longest waiting first; then by id, then by
    /// insertion.
    #[inline]
    pub(super) const fn by_key(key: u128, weight: u64, due: &Due, index: u32) -> Self {
        let lack = u128::MAX - key;
        let lack = [(lack >> 64) as u64, lack as u64];
        Self { lack, light: u64::MAX - weight, height: due.height, id: due.id(), index }
    }

    /// In due order (`fifo`).
    #[inline]
    pub(super) const fn in_turn(index: u32) -> Self {
        Self { lack: [0, index as u64], light: 0, height: 0, id: 0, index }
    }
}

#[derive(Debug)]
pub(super) struct Top {
    wanted: usize,
    kept: Vec<Rank>,
    /// No kept rank is worse, and no dropped rank is better.
    bar: Rank,
    dropped: bool,
}

impl Default for Top {
    fn default() -> Self {
        Self { wanted: FIRST, kept: Vec::new(), bar: Rank::LAST, dropped: false }
    }
}

impl Top {
    /// Clears it for a first batch.
    pub(super) fn start(&mut self) {
        self.wanted = FIRST;
        self.empty();
    }

    /// Clears it for a batch larger than the last.
    pub(super) fn grow(&mut self) {
        self.wanted = self.wanted.saturating_mul(GROWTH);
        self.empty();
    }

    fn empty(&mut self) {
        self.kept.clear();
        self.bar = Rank::LAST;
        self.dropped = false;
    }

    #[inline]
    pub(super) fn offer(&mut self, rank: Rank) {
        // The key decides nearly always, and is the cheapest to compare.
        if rank.lack > self.bar.lack || rank > self.bar {
            self.dropped = true;
            return;
        }
        self.kept.push(rank);
        if self.kept.len() >= self.wanted.saturating_mul(SLACK) {
            self.select();
        }
    }

    fn select(&mut self) {
        if self.kept.len() > self.wanted {
            self.bar = *self.kept.select_nth_unstable(self.wanted - 1).1;
            self.kept.truncate(self.wanted);
            self.dropped = true;
        }
    }

    /// Ends a batch: the best can be taken.
    pub(super) fn finish(&mut self) {
        self.select();
        self.kept.sort_unstable_by(|a, b| b.cmp(a));
    }

    pub(super) fn pop(&mut self) -> Option<Rank> {
        self.kept.pop()
    }

    /// The bar if anything was dropped: all dropped ranks are worse.
    pub(super) fn dropped_after(&self) -> Option<Rank> {
        self.dropped.then_some(self.bar)
    }
}
