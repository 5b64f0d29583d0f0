//! The changes to a queue since a calendar last took them, newest first.
//!
//! A list of shared links: forking it, adding to it and returning to an earlier fork are O(1), as
//! for the rest of a state. It is not part of the queue's contents: two queues with the same timers
//! are equal whatever their journals.

use super::{Due, Timer};
use crate::primitives::{Address, Height};
use std::sync::Arc;

/// A change to one timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerChange {
    Scheduled(Notice),
    Removed(PlaceOf),
    /// The timer was replaced by one with the same id, height, place in the order, actor and payer.
    Replaced(Notice),
}

/// The data that determine a timer's place in a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceOf {
    pub height: Height,
    pub scheduled_at: Height,
    pub seq: u64,
}

impl PlaceOf {
    pub const fn of(timer: &Timer) -> Self {
        let Timer { height, scheduled_at, seq, .. } = *timer;
        Self { height, scheduled_at, seq }
    }
}

/// The data of a timer that a calendar needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub position: PlaceOf,
    /// Its entry, without the accounts' numbers, which the calendar assigns.
    pub due: Due,
    pub actor: Address,
    pub payer: Address,
    /// Whether a gas bidding agent is asked for a bid when the timer is due.
    pub has_agent: bool,
}

impl Notice {
    pub fn of(timer: &Timer) -> Self {
        let most = u128::from(Due::DEFAULT_BID - 1);
        let (max_fee, max_priority) = match (timer.gba, timer.bid) {
            (None, _) => (timer.max_fee_per_cycle, timer.max_priority_fee_per_cycle),
            (Some(_), Some(bid)) => (bid.max_fee_per_cycle, bid.max_priority_fee_per_cycle),
            (Some(_), None) => Default::default(),
        };
        let awaits_bid = timer.gba.is_some() && timer.bid.is_none();
        let due = Due {
            id_and_cells: Due::id_and_cells(&timer.id, timer.cell_limit),
            max_fee: if awaits_bid { Due::DEFAULT_BID } else { max_fee.get().min(most) as u64 },
            max_priority: max_priority.get().min(most) as u64,
            seq: timer.seq as u32,
            height: narrow(timer.height.get()),
            expires_at: narrow(timer.expires_at.get()),
            gas_limit: narrow(timer.gas_limit).min(Due::DEAD - 1),
            actor: 0,
            payer: 0,
        };
        Self {
            position: PlaceOf::of(timer),
            due,
            actor: timer.actor,
            payer: timer.fee_payer,
            has_agent: timer.gba.is_some(),
        }
    }
}

/// Saturates to the width of the fields in [`Due`].
pub fn narrow(wide: u64) -> u32 {
    wide.min(u64::from(u32::MAX)) as u32
}

/// Changes, compared only by their order.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<JournalLink>>);

struct JournalLink {
    change: TimerChange,
    earlier: Option<Arc<JournalLink>>,
}

impl Journal {
    pub fn push(&mut self, change: TimerChange) {
        self.0 = Some(Arc::new(JournalLink { change, earlier: self.0.take() }));
    }

    /// Empties the journal; returns the changes, oldest first.
    pub fn take(&mut self) -> Vec<TimerChange> {
        let Some(newest) = self.0.take() else { return Vec::new() };
        let links = std::iter::successors(Some(newest.as_ref()), |link| link.earlier.as_deref());
        let mut changes: Vec<_> = links.map(|link| link.change).collect();
        changes.reverse();
        changes
    }
}

impl Drop for JournalLink {
    /// Iterative, because a list of a million links would recurse a million calls deep.
    fn drop(&mut self) {
        let mut next = self.earlier.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.earlier.take();
        }
    }
}
