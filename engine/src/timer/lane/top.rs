//! The best of many, best first, without sorting the rest.
//!
//! Upon an offer that is better than the bar: it is kept. Once [`SLACK`] times as many are kept as
//! are wanted, the wanted are selected, the worst of them becomes the bar, the others go. Each
//! selection is linear and drops all but a part of what it reads, so that an offer costs amortized
//! constant time in whatever order offers come, ties or not.

use crate::timer::Due;

/// How many the first batch has: more than a lane usually takes.
const FIRST: usize = 256;
/// By how much each batch is larger than the one before it, so that n offers take log n batches.
const GROWTH: usize = 8;
/// How many times the wanted are kept before the rest is dropped.
const SLACK: usize = 8;

/// Where a timer stands among those of its block: the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// How much the key lacks of the highest: the upper and the lower half.
    lack: [u64; 2],
    /// How much the weight does.
    light: u64,
    height: u32,
    id: u64,
    /// The timer's place among the due ones, which is the order of insertion within a height.
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

    /// By a key, then by weight, the highest first; then the longest waiting first; then by id,
    /// then by insertion.
    #[inline]
    pub(super) const fn by_key(key: u128, weight: u64, due: &Due, index: u32) -> Self {
        let lack = u128::MAX - key;
        let lack = [(lack >> 64) as u64, lack as u64];
        Self { lack, light: u64::MAX - weight, height: due.height, id: due.id(), index }
    }

    /// In due order.
    #[inline]
    pub(super) const fn in_turn(index: u32) -> Self {
        Self { lack: [0, index as u64], light: 0, height: 0, id: 0, index }
    }
}

/// The best of what was offered.
#[derive(Debug)]
pub(super) struct Top {
    wanted: usize,
    kept: Vec<Rank>,
    /// Nothing is kept that is worse, nothing was dropped that is better.
    bar: Rank,
    dropped: bool,
}

impl Default for Top {
    fn default() -> Self {
        Self { wanted: FIRST, kept: Vec::new(), bar: Rank::LAST, dropped: false }
    }
}

impl Top {
    /// Empties it for a first batch.
    pub(super) fn start(&mut self) {
        self.wanted = FIRST;
        self.empty();
    }

    /// Empties it for a batch larger than the last.
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

    /// Drops all but the wanted.
    fn select(&mut self) {
        if self.kept.len() > self.wanted {
            self.bar = *self.kept.select_nth_unstable(self.wanted - 1).1;
            self.kept.truncate(self.wanted);
            self.dropped = true;
        }
    }

    /// After the last offer: the best can be taken.
    pub(super) fn finish(&mut self) {
        self.select();
        self.kept.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Takes the best.
    pub(super) fn pop(&mut self) -> Option<Rank> {
        self.kept.pop()
    }

    /// Where what was dropped begins: all of it is worse than this.
    pub(super) fn dropped_after(&self) -> Option<Rank> {
        self.dropped.then_some(self.bar)
    }
}
