//! The queue that the chain agrees on: every timer, and one hash over all of them.
//!
//! Timers stand in the [book] by their ids. Of the four places where one can be
//! (timers.md §2), three follow from its heights and the current one, see [`Place::of`], and cost
//! nothing to tell apart; the fourth, the overflow tree, is content. So the commitment is
//!
//! keccak256("timers" ‖ root of the book ‖ root of the overflow ‖ next place in the order ‖ epoch),
//! integers of 8 bytes, big-endian.
//!
//! Upon a change, the queue also notes it in its [journal](super::journal). Upon the first block
//! of an epoch, [`Queue::maintain`] takes out of the overflow what came within range. Both are for
//! the [`Calendar`](super::Calendar), which finds timers by height: whoever forks a state forks
//! the journal with it, and a calendar takes it before each block.

use super::{
    Due, EPOCH_BLOCKS, EPOCH_QUEUE_LEN, RING_BUFFER_SIZE, Timer,
    book::{self, Book},
    journal::{Change, Journal, Notice, Position},
    overflow::Overflow,
    pages::{KEY_BYTES, Key, Pages},
};
use crate::primitives::{
    Address, Hash, Height,
    codec::{Decode, DecodeError, Encode, Reader, Writer},
    keccak256,
};
use std::fmt;

/// Separates the commitment from other hashes.
const TAG: &[u8] = b"timers";

/// The epoch that a block belongs to.
pub const fn epoch(height: Height) -> u64 {
    height.get() / EPOCH_BLOCKS
}

/// Where a timer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Due: in the carry-over from its height on.
    CarryOver,
    /// Tier 1: in the ring's bucket of its height.
    Ring,
    /// Tier 2: in its epoch's bucket.
    Epoch,
    /// Tier 3: in the overflow tree.
    Overflow,
}

impl Place {
    /// Where a timer for `height` is in block `now`, after the epoch's maintenance, if it was
    /// scheduled in block `scheduled_at`.
    pub const fn of(height: Height, scheduled_at: Height, now: Height) -> Self {
        // Nothing was scheduled later than now: an entry that says so must not wrap the ring.
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
    overflow: Overflow,
    /// Timers per actor. They follow from the book.
    counts: Counts,
    /// What the next timer gets: the order of insertion.
    next_seq: u64,
    /// The epoch of the last maintenance.
    epoch: u64,
    /// No content.
    journal: Journal,
}

impl Queue {
    /// Adds a timer, whose height is after the current block's, and yields its place in the order
    /// of insertion, which the queue gives. A timer of the same id gives way.
    pub fn schedule(&mut self, mut timer: Timer) -> u64 {
        self.remove(&timer.id);
        timer.seq = self.next_seq;
        self.next_seq += 1;
        self.book.insert(&timer);
        self.enter(&timer);
        self.journal.push(Change::Scheduled(Notice::of(&timer)));
        timer.seq
    }

    /// Removes the timer `id` and yields it.
    pub fn remove(&mut self, id: &Hash) -> Option<Timer> {
        let timer = self.book.remove(id)?;
        if self.overflows(&timer) {
            self.overflow.remove(timer.height, timer.id);
        }
        self.counts.subtract(&timer.actor);
        self.journal.push(Change::Removed(Position::of(&timer)));
        Some(timer)
    }

    /// Puts `timer` in the place of the one with the same id, height, place in the order, actor
    /// and payer: an extension or a bid. Yields that one; without it nothing changes.
    pub fn replace(&mut self, timer: &Timer) -> Option<Timer> {
        if !self.book.contains(&timer.id) {
            return None;
        }
        self.journal.push(Change::Replaced(Notice::of(timer)));
        self.book.insert(timer)
    }

    /// The timer `id`.
    pub fn get(&self, id: &Hash) -> Option<Timer> {
        self.book.get(id)
    }

    /// The timer of an entry of the calendar; see [`Book::find`].
    pub fn find(&self, due: &Due) -> Option<Timer> {
        self.book.find(due)
    }

    /// Whether there is a timer `id`.
    pub fn contains(&self, id: &Hash) -> bool {
        self.book.contains(id)
    }

    /// Number of timers.
    pub const fn len(&self) -> usize {
        self.book.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.book.is_empty()
    }

    /// Number of timers in the overflow tree.
    pub const fn overflow_len(&self) -> usize {
        self.overflow.len()
    }

    /// What the next timer gets as its place in the order of insertion.
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Number of timers that an actor has.
    pub fn count_of(&self, actor: &Address) -> u64 {
        self.counts.of(actor)
    }

    /// All timers, by id.
    pub fn iter(&self) -> impl Iterator<Item = Timer> {
        self.book.iter()
    }

    /// The one hash over the timers in all places (timers.md §2).
    pub fn root(&self) -> Hash {
        let (book, overflow) = (self.book.root(), self.overflow.root());
        let [seq, epoch] = [self.next_seq, self.epoch].map(u64::to_be_bytes);
        keccak256(&[TAG, book.as_bytes(), overflow.as_bytes(), &seq, &epoch])
    }

    /// At block `now`: takes out of the overflow, and yields, what came within the epoch queue's
    /// range, in order of height and id.
    pub(super) fn maintain(&mut self, now: Height) -> Vec<Timer> {
        if epoch(now) <= self.epoch {
            return Vec::new();
        }
        self.epoch = epoch(now);
        let beyond = (self.epoch + EPOCH_QUEUE_LEN + 1).saturating_mul(EPOCH_BLOCKS);
        let near = self.overflow.take_before(Height::new(beyond));
        near.iter().map(|id| self.get(id).expect("the book has what the overflow lists")).collect()
    }

    /// What happened since it was last asked, oldest first.
    pub(super) fn take_journal(&mut self) -> Vec<Change> {
        self.journal.take()
    }

    /// For a queue that is made of known timers in another order.
    #[cfg(test)]
    pub(super) const fn next_seq_is(&mut self, seq: u64) {
        self.next_seq = seq;
    }

    /// Whether a timer is in the overflow tree.
    fn overflows(&self, timer: &Timer) -> bool {
        epoch(timer.height) > self.epoch.saturating_add(EPOCH_QUEUE_LEN)
    }

    fn enter(&mut self, timer: &Timer) {
        if self.overflows(timer) {
            self.overflow.insert(timer.height, timer.id);
        }
        self.counts.add(&timer.actor);
    }
}

/// The same timers: the same root.
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
            .field("overflow", &self.overflow.len())
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
        // Nothing is set aside for what the length claims.
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

/// Timers per actor.
#[derive(Clone, Default)]
struct Counts(Pages);

impl Counts {
    fn of(&self, actor: &Address) -> u64 {
        let count = self.0.get(&Self::key(actor)).and_then(|body| body.try_into().ok());
        count.map_or(0, u64::from_be_bytes)
    }

    fn add(&mut self, actor: &Address) {
        self.0.insert(&Self::key(actor), &(self.of(actor) + 1).to_be_bytes());
    }

    fn subtract(&mut self, actor: &Address) {
        match self.of(actor).saturating_sub(1) {
            // Who has none holds no state.
            0 => self.0.remove(&Self::key(actor)),
            rest => self.0.insert(&Self::key(actor), &rest.to_be_bytes()),
        };
    }

    fn key(actor: &Address) -> Key {
        let mut key = [0; KEY_BYTES];
        key[..actor.0.len()].copy_from_slice(&actor.0);
        key
    }
}
