//! The timers that may fire, best first.
//!
//! Upon a request for the next one within some room: the best of the batch that fits; those before
//! it are passed over for good, since room only shrinks. Upon the end of a batch: the next batch is
//! the best of what ranks behind it and still fits. Each is several times as large as the last, so
//! that a block passes over all due timers a logarithmic number of times, whatever they ask for.
//!
//! Under `gba-auction` there are two rounds, each in rank order (timers.md §6). In the first a
//! timer has to fit what is left of its actor's slice too: floor(lane × weight / sum of weights)
//! cycles, over the actors with a live due timer whose lifetime is not over, of which the actor's
//! fires take what they use. In the second, all that did not fire compete for what the lane has
//! left, slices or not.

use super::{Buffers, Room, prices::Rates, top::Rank};
use crate::{
    primitives::Wei,
    timer::{Due, Policy, auction::Standing},
};

/// A timer whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Its place among the due timers.
    pub index: u32,
    /// What it pays the proposer per cycle ([`Prices::priority`](super::Prices::priority)).
    pub priority: Wei,
}

/// The timers that may fire, best first.
///
/// The caller asks [`next`](Self::next) with the room that the lane has left, runs what it is
/// given, and tells [`used`](Self::used) what that took, until nothing comes any more;
/// [`fill`](Self::fill) is that loop.
#[derive(Debug)]
pub struct Ranking<'a> {
    pub(super) due: &'a [Due],
    pub(super) now: u32,
    pub(super) rates: Rates,
    /// The smallest limits of all: with less room there is nothing to look for.
    pub(super) least: Room,
    /// Whether this is the round of slices.
    pub(super) slices: bool,
    /// The pick that runs.
    pub(super) running: Option<u32>,
    pub(super) buffers: &'a mut Buffers,
}

impl Ranking<'_> {
    /// The best that has not been passed over and whose limits are within `room`, which is never
    /// more than the time before.
    pub fn next(&mut self, room: Room) -> Option<Pick> {
        self.running = None;
        if room.cycles < self.least.cycles || room.cells < self.least.cells {
            return None;
        }
        loop {
            while let Some(Rank { index, .. }) = self.buffers.top.pop() {
                let due = &self.due[index as usize];
                if self.fits(due, room)
                    && let Some(priority) = self.rates.priority(due)
                {
                    self.buffers.ready.clear(index);
                    self.running = Some(index);
                    return Some(Pick { index, priority: Wei::new(u128::from(priority)) });
                }
            }
            if !self.refill(room) {
                return None;
            }
        }
    }

    /// The pick at hand fired and took so many cycles. Not called where it did not.
    pub fn used(&mut self, cycles: u64) {
        if let Some(index) = self.running.take()
            && self.rates.policy == Policy::GbaAuction
            && let due = self.due[index as usize]
            && let Some(entrant) = self.buffers.table.entrant_mut(due.actor)
        {
            entrant.slice = entrant.slice.saturating_sub(cycles);
            entrant.standing.fire(self.now.saturating_sub(due.height), cycles);
        }
    }

    /// What each actor's due timers did so far in this block, by the actor's number
    /// (`gba-auction`; nothing under other policies).
    pub fn standings(&self) -> impl Iterator<Item = (u32, Standing)> {
        self.buffers.table.entrants().iter().map(|entrant| (entrant.number, entrant.standing))
    }

    /// Fills a lane: `fire` runs a pick and yields what it took, or `None` where it did not fire
    /// after all. Yields the sum.
    pub fn fill(&mut self, lane: Room, mut fire: impl FnMut(Pick) -> Option<Room>) -> Room {
        let mut consumed = Room::default();
        while let Some(pick) = self.next(lane.less(consumed)) {
            if let Some(used) = fire(pick) {
                self.used(used.cycles);
                consumed = consumed.plus(used);
            }
        }
        consumed
    }

    fn fits(&self, due: &Due, room: Room) -> bool {
        let gas_limit = u64::from(due.gas_limit);
        let slice = || self.buffers.table.entrant(due.actor).map_or(0, |entrant| entrant.slice);
        gas_limit <= room.cycles
            && due.cell_limit() <= room.cells
            && (!self.slices || gas_limit <= slice())
    }

    /// Looks for the next batch; false: there is none.
    fn refill(&mut self, room: Room) -> bool {
        let after = self.buffers.top.dropped_after();
        if after.is_some() {
            self.buffers.top.grow();
        } else if self.slices {
            self.slices = false;
            self.buffers.top.start();
        } else {
            return false;
        }
        for word in 0..self.buffers.ready.words() {
            for index in self.buffers.ready.ones(word) {
                let due = &self.due[index as usize];
                if !self.fits(due, room) {
                    continue;
                }
                let Some(priority) = self.rates.priority(due) else { continue };
                let weight = || self.buffers.table.known_weight(due.actor);
                let rank = self.rates.rank(index, due, priority, weight);
                if after.is_none_or(|after| rank > after) {
                    self.buffers.top.offer(rank);
                }
            }
        }
        self.buffers.top.finish();
        true
    }
}

/// One bit per due timer: whether it is ranked and has not been picked.
#[derive(Debug, Default)]
pub(super) struct Ready(Vec<u64>);

impl Ready {
    pub(super) fn start(&mut self, timers: usize) {
        self.0.clear();
        self.0.resize(timers.div_ceil(64), 0);
    }

    #[inline]
    pub(super) fn set(&mut self, index: u32) {
        self.0[index as usize / 64] |= 1 << (index % 64);
    }

    fn clear(&mut self, index: u32) {
        self.0[index as usize / 64] &= !(1 << (index % 64));
    }

    fn words(&self) -> usize {
        self.0.len()
    }

    /// The indexes whose bits a word has set.
    fn ones(&self, word: usize) -> impl Iterator<Item = u32> + use<> {
        let mut bits = self.0[word];
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(word as u32 * 64 + bit)
        })
    }
}
