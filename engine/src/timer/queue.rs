//! The queue in the consensus state: every timer, and one hash over all of them.
//!
//! Timers are in two hashed trees: the [book] has them by id, [heights](super::heights) has their
//! ids by height. A timer's place, one of four (timers.md §2), follows from its heights and the
//! current one, see [`TimerPlace::of`]. So the commitment is
//!
//! keccak256("timers" ‖ root of the book ‖ root of the heights ‖ next place in the order ‖ epoch),
//! integers of 8 bytes, big-endian.
//!
//! Each change is also recorded in the queue's [journal](super::journal). In the first block of an
//! epoch, [`Queue::maintain`] returns the timers that moved from tier 3 into the epoch queue's
//! range. Both are for the [`Calendar`](super::Calendar), which keeps near timers by height: a fork
//! of a state has its own journal, and a calendar applies it before each block.

use super::{
    Due, EPOCH_BLOCKS, EPOCH_QUEUE_LEN, RING_BUFFER_SIZE, Timer,
    book::{self, Book},
    heights::Heights,
    journal::{Journal, Notice, PlaceOf, TimerChange},
    pages::{Pages, proof::Oversize},
};
use crate::primitives::{
    Address, Hash, Height,
    codec::{Decode, DecodeError, Encode, Reader, Writer},
    keccak256,
};
use std::fmt;

/// Separates the commitment from other hashes.
const TAG: &[u8] = b"timers";

/// The epoch of a block.
pub const fn epoch(height: Height) -> u64 {
    height.get() / EPOCH_BLOCKS
}

/// The first height beyond the epoch queue's range in this epoch.
const fn beyond(epoch: u64) -> Height {
    let first = epoch.saturating_add(EPOCH_QUEUE_LEN + 1);
    Height::new(first.saturating_mul(EPOCH_BLOCKS))
}

/// The inputs of the queue's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCommitment {
    pub book: Hash,
    pub heights: Hash,
    /// The next timer's place in the order of insertion.
    pub next_seq: u64,
    /// The epoch of the last maintenance.
    pub epoch: u64,
}

impl QueueCommitment {
    pub fn root(&self) -> Hash {
        let Self { book, heights, next_seq, epoch } = self;
        let [seq, epoch] = [next_seq, epoch].map(|number| number.to_be_bytes());
        keccak256(&[TAG, book.as_bytes(), heights.as_bytes(), &seq, &epoch])
    }
}

/// The place of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerPlace {
    /// Due: in the carry-over since its height.
    CarryOver,
    /// Tier 1: in the ring's bucket of its height.
    Ring,
    /// Tier 2: in its epoch's bucket.
    Epoch,
    /// Tier 3: beyond the epoch queue.
    Overflow,
}

impl TimerPlace {
    /// The place of a timer for `height` in block `now`, after the epoch's maintenance, if it was
    /// scheduled in block `scheduled_at`.
    pub const fn of(height: Height, scheduled_at: Height, now: Height) -> Self {
        // Nothing is scheduled later than now: an entry that claims so must not wrap around the
        // ring.
        let since = if scheduled_at.get() < now.get() { scheduled_at } else { now };
        if height.get() <= now.get() {
            Self::CarryOver
        } else if epoch(height) == epoch(now) || height.since(since) < RING_BUFFER_SIZE {
            Self::Ring
        } else if epoch(height) <= epoch(now).saturating_add(EPOCH_QUEUE_LEN) {
            Self::Epoch
        } else {
            Self::Overflow
        }
    }
}

/// Every timer of a state. Clones are O(1) and independent.
#[derive(Clone, Default)]
pub struct Queue {
    book: Book,
    /// The same timers by height; derived from the book.
    heights: Heights,
    /// Number of timers in tier 3; derived from the book and the epoch.
    overflow: usize,
    counts: ActorCounts,
    next_seq: u64,
    epoch: u64,
    journal: Journal,
}

impl Queue {
    /// Adds a timer for a height after the current block's, and returns its place in the order of
    /// insertion, which the queue assigns. Replaces a timer with the same id.
    pub fn schedule(&mut self, mut timer: Timer) -> u64 {
        self.remove(&timer.id);
        timer.seq = self.next_seq;
        self.next_seq += 1;
        self.book.insert(&timer);
        self.enter(&timer);
        self.journal.push(TimerChange::Scheduled(Notice::of(&timer)));
        timer.seq
    }

    pub fn remove(&mut self, id: &Hash) -> Option<Timer> {
        let timer = self.book.remove(id)?;
        self.heights.remove(timer.height, &timer.id);
        self.overflow -= usize::from(self.overflows(&timer));
        self.counts.subtract(&timer.actor);
        self.journal.push(TimerChange::Removed(PlaceOf::of(&timer)));
        Some(timer)
    }

    /// Replaces the timer with the same id, height, place in the order, actor and payer, after an
    /// extension or a bid. Returns the replaced timer; without one nothing changes.
    pub fn replace(&mut self, timer: &Timer) -> Option<Timer> {
        if !self.book.contains(&timer.id) {
            return None;
        }
        self.journal.push(TimerChange::Replaced(Notice::of(timer)));
        self.book.insert(timer)
    }

    pub fn get(&self, id: &Hash) -> Option<Timer> {
        self.book.get(id)
    }

    /// See [`Book::find`].
    pub fn find(&self, due: &Due) -> Option<Timer> {
        self.book.find(due)
    }

    pub fn contains(&self, id: &Hash) -> bool {
        self.book.contains(id)
    }

    pub const fn len(&self) -> usize {
        self.book.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.book.is_empty()
    }

    pub const fn overflow_len(&self) -> usize {
        self.overflow
    }

    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub fn count_of(&self, actor: &Address) -> u64 {
        self.counts.of(actor)
    }

    /// The same timers, `blocks` later, in the state of block `now`.
    pub fn later(&self, blocks: u64, now: Height) -> Self {
        let (next_seq, epoch) = (self.next_seq, epoch(now));
        let mut queue = Self { next_seq, epoch, ..Self::default() };
        for timer in self.iter() {
            let timer = Timer {
                height: timer.height.after(blocks),
                expires_at: timer.expires_at.after(blocks),
                scheduled_at: timer.scheduled_at.after(blocks),
                ..timer
            };
            queue.book.insert(&timer);
            queue.enter(&timer);
        }
        queue
    }

    /// In order of id.
    pub fn iter(&self) -> impl Iterator<Item = Timer> {
        self.book.iter()
    }

    /// The timers from an id on, inclusive, in order of id.
    pub fn range_from(&self, id: &Hash) -> impl Iterator<Item = Timer> {
        self.book.range_from(id)
    }

    /// The timers from height `from` to `to`, both included, in order of height and id.
    pub fn range(&self, from: Height, to: Height) -> impl Iterator<Item = (Height, Hash)> {
        self.heights.range(from, to)
    }

    /// The hash over the timers in all places (timers.md §2).
    pub fn root(&self) -> Hash {
        self.commitment().root()
    }

    pub fn commitment(&self) -> QueueCommitment {
        let Self { next_seq, epoch, .. } = *self;
        QueueCommitment { book: self.book.root(), heights: self.heights.root(), next_seq, epoch }
    }

    /// Proves the timer `id` or its absence, in at most `limit` bytes.
    pub fn prove(&self, id: &Hash, limit: usize) -> Result<Vec<u8>, Oversize> {
        self.book.prove(id, limit)
    }

    /// Proves which timers there are from height `from` to `to`, both included, in at most `limit`
    /// bytes.
    pub fn prove_range(&self, from: Height, to: Height, limit: usize) -> Result<Vec<u8>, Oversize> {
        self.heights.prove(from, to, limit)
    }

    /// The maintenance in block `now`: returns the timers that came within the epoch queue's range,
    /// in order of height and id.
    pub(super) fn maintain(&mut self, now: Height) -> Vec<Timer> {
        if epoch(now) <= self.epoch {
            return Vec::new();
        }
        let first = beyond(self.epoch);
        self.epoch = epoch(now);
        let Some(last) = beyond(self.epoch).previous() else { return Vec::new() };
        let ids = self.heights.range(first, last).map(|(_, id)| id);
        let get = |id| self.book.get(&id).expect("the book has what the heights list");
        let near: Vec<Timer> = ids.map(get).collect();
        self.overflow -= near.len();
        near
    }

    /// Returns the changes since the last call, oldest first.
    pub(super) fn take_journal(&mut self) -> Vec<TimerChange> {
        self.journal.take()
    }

    /// Sets the next place, for a queue that is rebuilt from known timers in another order.
    #[cfg(test)]
    pub(super) const fn next_seq_is(&mut self, seq: u64) {
        self.next_seq = seq;
    }

    fn overflows(&self, timer: &Timer) -> bool {
        timer.height >= beyond(self.epoch)
    }

    fn enter(&mut self, timer: &Timer) {
        self.heights.insert(timer.height, &timer.id);
        self.overflow += usize::from(self.overflows(timer));
        self.counts.add(&timer.actor);
    }
}

/// Queues with the same timers have the same root.
impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        self.root() == other.root()
    }
}

impl Eq for Queue {}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len())
            .field("overflow", &self.overflow)
            .field("next_seq", &self.next_seq)
            .field("epoch", &self.epoch)
            .field("root", &self.root())
            .finish_non_exhaustive()
    }
}

/// Next place in the order, epoch, then id and body of each timer in order of id.
impl Encode for Queue {
    fn encode(&self, w: &mut Writer) {
        w.list(3);
        w.u64(self.next_seq);
        w.u64(self.epoch);
        w.list(self.len());
        for timer in self.iter() {
            w.list(2);
            timer.id.encode(w);
            book::write(&timer, w);
        }
    }
}

impl Decode for Queue {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let pair = |r: &mut Reader<'_>, len: usize, what: &'static str| {
            (r.list(len)? == len).then_some(()).ok_or(DecodeError::Invalid(what))
        };
        pair(r, 3, "a queue has 3 parts")?;
        let mut queue = Self { next_seq: r.u64()?, epoch: r.u64()?, ..Self::default() };
        // No memory is reserved for the claimed length.
        for _ in 0..r.list(usize::MAX)? {
            pair(r, 2, "a timer is an id and a body")?;
            let timer = book::read(Hash::decode(r)?, r)?;
            if timer.seq >= queue.next_seq {
                return Err(DecodeError::Invalid("a timer from after the last one"));
            }
            if queue.book.insert(&timer).is_some() {
                return Err(DecodeError::Invalid("a timer twice"));
            }
            queue.enter(&timer);
        }
        Ok(queue)
    }
}

#[derive(Clone, Default)]
struct ActorCounts(Pages<20, 1_024>);

impl ActorCounts {
    fn of(&self, actor: &Address) -> u64 {
        let count = self.0.get(&actor.0).and_then(|body| body.try_into().ok());
        count.map_or(0, u64::from_be_bytes)
    }

    fn add(&mut self, actor: &Address) {
        self.0.insert(&actor.0, &(self.of(actor) + 1).to_be_bytes());
    }

    fn subtract(&mut self, actor: &Address) {
        match self.of(actor).saturating_sub(1) {
            // An actor without timers holds no state.
            0 => self.0.remove(&actor.0),
            rest => self.0.insert(&actor.0, &rest.to_be_bytes()),
        };
    }
}

#[cfg(test)]
mod tests;
