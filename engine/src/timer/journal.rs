//! What happened to a queue since a calendar was last told, newest first.
//!
//! A list of shared links: forking it, adding to it and going back to an earlier fork are O(1), as
//! for the rest of a state. It is no content: two queues with the same timers are equal whatever
//! happened to them.

use super::{Due, Timer};
use crate::primitives::{Address, Height};
use std::sync::Arc;

/// A change of one timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is there now.
    Scheduled(Notice),
    /// It is gone.
    Removed(Position),
    /// It is another: same id, height, place in the order, actor and payer.
    Replaced(Notice),
}

/// What tells where in a calendar a timer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// When it is to fire.
    pub height: Height,
    /// When it was scheduled.
    pub scheduled_at: Height,
    /// The order of insertion.
    pub seq: u64,
}

impl Position {
    /// Where `timer` is.
    pub const fn of(timer: &Timer) -> Self {
        let Timer { height, scheduled_at, seq, .. } = *timer;
        Self { height, scheduled_at, seq }
    }
}

/// What a calendar has to know of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Where it is.
    pub position: Position,
    /// Its entry, but for the accounts' numbers, which are the calendar's to give.
    pub due: Due,
    /// Its owner.
    pub actor: Address,
    /// Who pays.
    pub payer: Address,
    /// Whether a gas bidding agent is asked for a bid once it is due.
    pub has_agent: bool,
}

impl Notice {
    /// What a calendar has to know of `timer`.
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
            position: Position::of(timer),
            due,
            actor: timer.actor,
            payer: timer.fee_payer,
            has_agent: timer.gba.is_some(),
        }
    }
}

/// As [`Due`] has it: cut to what fits.
pub fn narrow(wide: u64) -> u32 {
    wide.min(u64::from(u32::MAX)) as u32
}

/// Changes, of which only their order counts.
#[derive(Clone, Default)]
pub struct Journal(Option<Arc<Link>>);

struct Link {
    change: Change,
    earlier: Option<Arc<Link>>,
}

impl Journal {
    /// Adds what happened last.
    pub fn push(&mut self, change: Change) {
        self.0 = Some(Arc::new(Link { change, earlier: self.0.take() }));
    }

    /// Empties the journal; yields what was in it, oldest first.
    pub fn take(&mut self) -> Vec<Change> {
        let Some(newest) = self.0.take() else { return Vec::new() };
        let links = std::iter::successors(Some(newest.as_ref()), |link| link.earlier.as_deref());
        let mut changes: Vec<_> = links.map(|link| link.change).collect();
        changes.reverse();
        changes
    }
}

impl Drop for Link {
    /// One after the other: a list of a million links is no recursion of a million calls.
    fn drop(&mut self) {
        let mut next = self.earlier.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.earlier.take();
        }
    }
}
