//! The tiered calendar: finds timers by height (timers.md §2).
//!
//! | file | subject |
//! |---|---|
//! | `buckets` | entries of a height or an epoch: lists of pieces from one pool |
//! | `cancelled` | removed timers whose entries remain |
//! | `accounts` | addresses as small numbers |
//!
//! A [`Calendar`] is at a height and belongs to the queue of that height's state. In block H:
//!
//! * [`Calendar::advance`] applies the journal's changes from the blocks before. If H is the first
//!   of its epoch, the epoch's bucket moves into the ring, and timers that came within range move
//!   from the overflow tree into epoch buckets. Then the ring's bucket of H becomes due: its
//!   entries are added to the carry-over.
//! * [`Calendar::apply`] applies the journal's changes from this block so far. It may be called at
//!   any time, but must be called before the entries are ranked.
//! * [`Calendar::kill`] marks a due entry as dead at once; the journal's later change for the same
//!   timer has no effect.
//!
//! The carry-over is in order of height, then of insertion, longest waiting first, so a timer is
//! found by binary search. Buckets are in order of insertion, except where an epoch's entries meet
//! entries placed in the ring directly: these are sorted when they become due.
//!
//! A timer that is not due yet is cancelled by a mark. Its entry is dropped when the bucket is
//! read, or when most of the bucket is marked. So cancelling is O(1) on average over a bucket's
//! cancelled timers, and a single cancellation reads at most one bucket. The new entry of a timer
//! that is extended is kept separately until its old entry is read.

mod accounts;
mod buckets;
mod cancelled;

use self::{
    accounts::Accounts,
    buckets::{Bucket, EntryPool},
    cancelled::Cancelled,
};
use super::{
    Due, EPOCH_BLOCKS, EPOCH_QUEUE_LEN, Notice, PlaceOf, Queue, RING_BUFFER_SIZE, TimerChange,
    TimerPlace, journal::narrow, queue::epoch,
};
use crate::primitives::{Address, Height};
use std::{collections::BTreeMap, mem};

/// A bucket is cleared of cancelled timers' entries when it has more than this many entries per
/// live one, plus [`SLACK`]: it reads four entries for each three that it drops.
const STALE: u32 = 4;
/// Entries that a bucket may have even without live ones: its first two pieces.
const SLACK: u32 = 20;

/// A bucket, and the number of its live timers.
#[derive(Clone, Copy)]
struct Slot {
    bucket: Bucket,
    live: u32,
}

impl Slot {
    const EMPTY: Self = Self { bucket: Bucket::EMPTY, live: 0 };
}

/// Number of timers in each place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CalendarCounts {
    pub carry_over: u64,
    /// Timers in tier 1.
    pub ring: u64,
    /// Timers in tier 2.
    pub epochs: u64,
}

/// A queue's timers that are due now or within 30 days, by height.
pub struct Calendar {
    now: Height,
    accounts: Accounts,
    pool: EntryPool,
    /// Buckets by height modulo the ring's length.
    ring: Box<[Slot]>,
    /// Buckets by epoch modulo their number, for the epochs after the current one.
    epochs: Box<[Slot]>,
    cancelled: Cancelled,
    /// The current entries of timers that were replaced before they were due, by their place in the
    /// order of insertion.
    replaced: BTreeMap<u64, Due>,
    /// The latest place in the order of insertion: the reference for an entry's low bits.
    latest: u64,
    due: Vec<Due>,
    dead: usize,
    /// The indexes of due entries with an agent, ascending.
    agents: Vec<u32>,
}

impl Calendar {
    /// The calendar of `queue` in block `now`, after that block's maintenance, built only from the
    /// queue. Journal entries that an earlier calendar had not applied are dropped, because the
    /// queue includes them.
    pub fn rebuild(queue: &mut Queue, now: Height) -> Self {
        drop(queue.take_journal());
        let mut calendar = Self {
            now,
            accounts: Accounts::new(),
            pool: EntryPool::new(),
            ring: vec![Slot::EMPTY; RING_BUFFER_SIZE as usize].into(),
            epochs: vec![Slot::EMPTY; EPOCH_QUEUE_LEN as usize].into(),
            cancelled: Cancelled::default(),
            replaced: BTreeMap::new(),
            latest: queue.next_seq().saturating_sub(1),
            due: Vec::new(),
            dead: 0,
            agents: Vec::new(),
        };
        let mut carried = Vec::new();
        for timer in queue.iter() {
            let notice = Notice::of(&timer);
            // Buckets are out of order here: they are sorted when they become due.
            if timer.height > now {
                calendar.schedule(&notice);
            } else {
                carried.push(notice);
            }
        }
        carried.sort_unstable_by_key(|notice| (notice.position.height, notice.position.seq));
        for (index, notice) in (0..).zip(&carried) {
            let entry = calendar.entry(notice);
            calendar.due.push(entry);
            if notice.has_agent {
                calendar.agents.push(index);
            }
        }
        calendar
    }

    pub const fn now(&self) -> Height {
        self.now
    }

    /// Advances to block `now`, the child of the current one: timers for its height become due.
    /// Indexes into [`Calendar::due`] become invalid.
    pub fn advance(&mut self, now: Height, queue: &mut Queue) {
        debug_assert_eq!(now, self.now.next(), "blocks follow one another");
        self.apply(queue);
        self.now = now;
        self.compact();
        if now.get().is_multiple_of(EPOCH_BLOCKS) {
            self.open_epoch();
            for timer in queue.maintain(now) {
                self.schedule(&Notice::of(&timer));
            }
        }
        self.ripen();
    }

    pub fn apply(&mut self, queue: &mut Queue) {
        for change in queue.take_journal() {
            match change {
                TimerChange::Scheduled(notice) => self.schedule(&notice),
                TimerChange::Removed(position) => self.cancel(&position),
                TimerChange::Replaced(notice) => self.replace(&notice),
            }
        }
    }

    /// Adds a timer for a later height.
    pub fn schedule(&mut self, notice: &Notice) {
        self.latest = self.latest.max(notice.position.seq);
        let place = self.place(&notice.position);
        debug_assert!(place != TimerPlace::CarryOver, "a timer fires in a later block");
        if place == TimerPlace::Overflow {
            // The queue returns it when it comes within range.
            return;
        }
        let mut entry = self.entry(notice);
        if notice.has_agent && entry.max_fee != Due::DEFAULT_BID {
            // In a bucket, only this fee shows that there is an agent.
            self.replaced.insert(notice.position.seq, entry);
            entry.max_fee = Due::DEFAULT_BID;
        }
        let Self { ring, epochs, pool, .. } = self;
        let slot = slot(ring, epochs, place, notice.position.height);
        slot.live += 1;
        pool.push(&mut slot.bucket, entry);
    }

    pub fn cancel(&mut self, position: &PlaceOf) {
        match self.place(position) {
            TimerPlace::CarryOver => {
                if let Some(index) = self.find(position) {
                    self.kill(index);
                }
            }
            TimerPlace::Overflow => {}
            place => {
                self.cancelled.insert(position.seq);
                if !self.replaced.is_empty() {
                    self.replaced.remove(&position.seq);
                }
                let Self { ring, epochs, pool, cancelled, accounts, latest, .. } = self;
                let slot = slot(ring, epochs, place, position.height);
                slot.live -= 1;
                if slot.bucket.len() > STALE * slot.live + SLACK {
                    pool.retain(&mut slot.bucket, |entry| {
                        let gone = cancelled.remove(Self::seq(*latest, entry.seq));
                        if gone {
                            release(accounts, entry);
                        }
                        !gone
                    });
                }
            }
        }
    }

    pub fn replace(&mut self, notice: &Notice) {
        match self.place(&notice.position) {
            TimerPlace::CarryOver => {
                if let Some(index) = self.find(&notice.position) {
                    let Due { actor, payer, .. } = self.due[index as usize];
                    self.due[index as usize] = Due { actor, payer, ..notice.due };
                }
            }
            TimerPlace::Overflow => {}
            _ => {
                self.replaced.insert(notice.position.seq, notice.due);
            }
        }
    }

    /// The carry-over, longest waiting first. Some entries are [dead](Due::is_live).
    pub fn due(&self) -> &[Due] {
        &self.due
    }

    /// The indexes of live due entries that have an agent, longest waiting first.
    pub fn agents(&self) -> impl Iterator<Item = u32> {
        self.agents.iter().copied().filter(|index| self.due[*index as usize].is_live())
    }

    /// A due entry, dead or live.
    pub fn get(&self, index: u32) -> Option<&Due> {
        self.due.get(index as usize)
    }

    /// The account with this number; valid while a live entry names it.
    pub fn address(&self, number: u32) -> Address {
        self.accounts.address(number)
    }

    /// One more than the highest number of an account.
    pub fn accounts(&self) -> u32 {
        self.accounts.bound()
    }

    /// Marks a due entry as dead: its timer fired, expired, or is cancelled.
    pub fn kill(&mut self, index: u32) {
        let entry = &mut self.due[index as usize];
        if entry.is_live() {
            entry.gas_limit = Due::DEAD;
            release(&mut self.accounts, entry);
            self.dead += 1;
        }
    }

    /// Number of timers in each place except the overflow tree.
    pub fn counts(&self) -> CalendarCounts {
        let sum = |slots: &[Slot]| slots.iter().map(|slot| u64::from(slot.live)).sum();
        let carry_over = (self.due.len() - self.dead) as u64;
        CalendarCounts { carry_over, ring: sum(&self.ring), epochs: sum(&self.epochs) }
    }

    /// The nonempty buckets of the ring: heights and numbers of timers, ascending.
    pub fn ring(&self) -> impl Iterator<Item = (Height, u64)> {
        let heights = (1..RING_BUFFER_SIZE).map(|blocks| self.now.after(blocks));
        heights.filter_map(|height| {
            let live = self.ring[(height.get() % RING_BUFFER_SIZE) as usize].live;
            (live > 0).then_some((height, u64::from(live)))
        })
    }

    /// The nonempty buckets of epochs: epochs and numbers of timers, ascending.
    pub fn epochs(&self) -> impl Iterator<Item = (u64, u64)> {
        let epochs = (1..=EPOCH_QUEUE_LEN).map(|ahead| epoch(self.now) + ahead);
        epochs.filter_map(|epoch| {
            let live = self.epochs[(epoch % EPOCH_QUEUE_LEN) as usize].live;
            (live > 0).then_some((epoch, u64::from(live)))
        })
    }

    fn place(&self, position: &PlaceOf) -> TimerPlace {
        TimerPlace::of(position.height, position.scheduled_at, self.now)
    }

    #[inline]
    fn entry(&mut self, notice: &Notice) -> Due {
        let actor = self.accounts.hold(&notice.actor);
        let own = notice.payer == notice.actor;
        let payer = if own { actor } else { self.accounts.hold(&notice.payer) };
        Due { actor, payer, ..notice.due }
    }

    /// The full place in the order of insertion for an entry's low bits.
    fn seq(latest: u64, low: u32) -> u64 {
        latest.wrapping_sub(u64::from((latest as u32).wrapping_sub(low)))
    }

    fn find(&self, position: &PlaceOf) -> Option<u32> {
        let key = |entry: &Due| (entry.height, Self::seq(self.latest, entry.seq));
        let found =
            self.due.binary_search_by_key(&(narrow(position.height.get()), position.seq), key);
        found.ok().map(|index| index as u32)
    }

    /// Adds the ring's bucket of the current height to the carry-over.
    fn ripen(&mut self) {
        let slot = &mut self.ring[(self.now.get() % RING_BUFFER_SIZE) as usize];
        if slot.bucket.len() == 0 {
            return;
        }
        let start = self.due.len();
        let Self { pool, due, cancelled, accounts, latest, .. } = self;
        due.reserve(slot.bucket.len() as usize);
        slot.live = 0;
        while let Some(entries) = pool.take(&mut slot.bucket) {
            if cancelled.is_empty() {
                due.extend_from_slice(entries);
                continue;
            }
            for entry in entries {
                if cancelled.remove(Self::seq(*latest, entry.seq)) {
                    release(accounts, entry);
                } else {
                    due.push(*entry);
                }
            }
        }
        let added = &mut due[start..];
        let seq = |entry: &Due| Self::seq(*latest, entry.seq);
        if !added.is_sorted_by_key(seq) {
            added.sort_unstable_by_key(seq);
        }
        for (index, entry) in (start as u32..).zip(added) {
            if entry.max_fee == Due::DEFAULT_BID {
                self.agents.push(index);
            }
            if !self.replaced.is_empty()
                && let Some(other) = self.replaced.remove(&Self::seq(*latest, entry.seq))
            {
                let Due { actor, payer, .. } = *entry;
                *entry = Due { actor, payer, ..other };
            }
        }
    }

    /// Moves the bucket of the current epoch into the ring.
    fn open_epoch(&mut self) {
        let Self { ring, epochs, pool, cancelled, accounts, latest, .. } = self;
        let opened = &mut epochs[(epoch(self.now) % EPOCH_QUEUE_LEN) as usize];
        let Slot { bucket, .. } = mem::replace(opened, Slot::EMPTY);
        pool.move_out(bucket, |entry, pool| {
            if !cancelled.is_empty() && cancelled.remove(Self::seq(*latest, entry.seq)) {
                release(accounts, entry);
                return;
            }
            let slot = &mut ring[entry.height as usize % RING_BUFFER_SIZE as usize];
            slot.live += 1;
            pool.push(&mut slot.bucket, *entry);
        });
    }

    /// Drops dead entries from the carry-over when they are more than a quarter of it. So a pass
    /// over it reads few dead entries, and each dead entry pays for moving four.
    fn compact(&mut self) {
        if self.dead * 4 <= self.due.len() {
            return;
        }
        let mut agents = mem::take(&mut self.agents).into_iter().peekable();
        let mut kept = 0;
        for index in 0..self.due.len() {
            let has_agent = agents.next_if_eq(&(index as u32)).is_some();
            let entry = self.due[index];
            if entry.is_live() {
                self.due[kept] = entry;
                if has_agent {
                    self.agents.push(kept as u32);
                }
                kept += 1;
            }
        }
        self.due.truncate(kept);
        self.dead = 0;
    }
}

fn slot<'a>(
    ring: &'a mut [Slot],
    epochs: &'a mut [Slot],
    place: TimerPlace,
    height: Height,
) -> &'a mut Slot {
    match place {
        TimerPlace::Ring => &mut ring[(height.get() % RING_BUFFER_SIZE) as usize],
        _ => &mut epochs[(epoch(height) % EPOCH_QUEUE_LEN) as usize],
    }
}

fn release(accounts: &mut Accounts, entry: &Due) {
    accounts.release(entry.actor);
    if entry.payer != entry.actor {
        accounts.release(entry.payer);
    }
}

#[cfg(test)]
mod tests;
