//! Timers that a block ended, and how.

use super::BlockRecord;
use cowboy_engine::{
    chain::{
        EventKind, ReceiptStatus,
        event::{TimerCancelled, TimerCancelledInsufficientFunds, TimerExpired},
    },
    names, record,
    timer::Timer,
};
use std::collections::BTreeMap;

/// How a timer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerEnd {
    Fired,
    Failed,
    Expired,
    Cancelled,
    InsufficientFunds,
}

names!(TimerEnd:
    Fired = "fired",
    Failed = "failed",
    Expired = "expired",
    Cancelled = "cancelled",
    InsufficientFunds = "insufficient_funds",
);

/// A timer as the block that ended it found it, with the answer that its agent gave there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTimer {
    pub timer: Timer,
    pub end: TimerEnd,
}

record!(EndedTimer { timer, end });

/// The timers that a block ended, except those that it scheduled itself: first those that ended
/// without a fire, in the order of their events, then those that fired.
pub(super) fn ended(record: &BlockRecord<'_>) -> Vec<EndedTimer> {
    let BlockRecord { parent, execution, .. } = record;
    // An agent's last answer counts, including one in the block that ends its timer.
    let bids: BTreeMap<_, _> = execution.bids.iter().copied().collect();
    let events = execution.events.iter().filter_map(|event| match &event.kind {
        EventKind::TimerExpired(TimerExpired { timer_id, .. }) => {
            Some((*timer_id, TimerEnd::Expired))
        }
        EventKind::TimerCancelled(TimerCancelled { timer_id, .. }) => {
            Some((*timer_id, TimerEnd::Cancelled))
        }
        EventKind::TimerCancelledInsufficientFunds(TimerCancelledInsufficientFunds {
            timer_id,
            ..
        }) => Some((*timer_id, TimerEnd::InsufficientFunds)),
        _ => None,
    });
    let fires = execution.fires.iter().map(|fire| {
        let success = fire.status == ReceiptStatus::Success;
        (fire.timer_id, if success { TimerEnd::Fired } else { TimerEnd::Failed })
    });
    let ended = events.chain(fires).filter_map(|(id, end)| {
        let mut timer = parent.timer(&id)?;
        timer.bid = bids.get(&id).copied().or(timer.bid);
        Some(EndedTimer { timer, end })
    });
    ended.collect()
}
