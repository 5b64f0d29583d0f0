//! The timers that may fire, best first.
//!
//! A request for the next timer within some room returns the best one of the batch that fits. Those
//! before it are skipped for good, because room only shrinks. When a batch ends, the next batch is
//! the best of the timers that rank behind it and still fit. Each batch is several times as large
//! as the last, so that a block passes over all due timers a logarithmic number of times, whatever
//! limits they have.
//!
//! Under `gba-auction` there are two rounds, each in order of rank (timers.md §6). In the first, a
//! timer also has to fit the rest of its actor's slice. A slice is floor(lane × weight / sum of
//! weights) cycles, over the actors with a live due timer whose lifetime is not over, and shrinks
//! by the cycles that the actor's fires use. In the second, all timers that did not fire compete
//! for the rest of the lane, regardless of slices.

use super::{Buffers, Room, prices::Rates, top::Rank};
use crate::{
    primitives::Wei,
    timer::{Due, Policy, auction::Standing},
};

/// The timer that is next to fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The index among the due timers.
    pub index: u32,
    /// Its payment to the proposer in wei per cycle
    /// ([`Prices::priority`](super::Prices::priority)).
    pub priority: Wei,
}

/// The timers that may fire, best first.
///
/// The caller calls [`next`](Self::next) with the room left in the lane, runs the pick, and reports
/// the cycles used with [`used`](Self::used), until there are no more picks; [`fill`](Self::fill)
/// is that loop.
#[derive(Debug)]
pub struct Ranking<'a> {
    pub(super) due: &'a [Due],
    pub(super) now: u32,
    pub(super) rates: Rates,
    /// The minimum of all limits: with less room no timer fits.
    pub(super) least: Room,
    /// Whether this is the round of slices.
    pub(super) slices: bool,
    pub(super) running: Option<u32>,
    pub(super) buffers: &'a mut Buffers,
}

impl Ranking<'_> {
    /// The best timer that has not been skipped and whose limits are within `room`, which must not
    /// exceed the room of the previous call.
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

    /// The current pick fired and used this many cycles. Must not be called if it did not fire.
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

    /// The results of each actor's due timers in this block so far, by the actor's number (only
    /// under `gba-auction`; otherwise empty).
    pub fn standings(&self) -> impl Iterator<Item = (u32, Standing)> {
        self.buffers.table.entrants().iter().map(|entrant| (entrant.number, entrant.standing))
    }

    /// Fills a lane: `fire` runs a pick and returns its usage, or `None` if it did not fire.
    /// Returns the total usage.
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

    /// Selects the next batch; returns false at the end.
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

    fn ones(&self, word: usize) -> impl Iterator<Item = u32> + use<> {
        let mut bits = self.0[word];
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(word as u32 * 64 + bit)
        })
    }
}
