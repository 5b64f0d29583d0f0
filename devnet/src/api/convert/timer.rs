//! Timers, their fires and the lane.

use super::{ToJson, actor, count};
use crate::{
    storage::{StoredLane, TimerEnd},
    types::{BlockFire, BytesText, LaneBlock, TimerBid, TimerCharge, TimerStatus, TimerTier},
};
use cowboy_engine::{
    chain::{Fire, ReceiptStatus, receipt::Charged},
    primitives::Height,
    timer::{Bid, Key, Policy, ProposedValue, Timer, TimerPlace},
};
use serde_json::Value;

/// A governed parameter's value: a word if the parameter has words, else the number.
pub(super) fn setting(key: &str, value: u64) -> Value {
    let word = Key::named(key).ok().and_then(|key| key.word(value));
    word.map_or_else(|| value.into(), Value::from)
}

impl ToJson for Vec<ProposedValue> {
    fn to_json(&self) -> Value {
        let entry =
            |ProposedValue { key, value }: &ProposedValue| (key.clone(), setting(key, *value));
        Value::Object(self.iter().map(entry).collect())
    }
}

pub(in crate::api) fn waiting(timer: &Timer, head: Height) -> TimerStatus {
    if timer.height <= head { TimerStatus::Due } else { TimerStatus::Scheduled }
}

pub(in crate::api) const fn ended(end: TimerEnd) -> TimerStatus {
    match end {
        TimerEnd::Fired => TimerStatus::Fired,
        TimerEnd::Failed => TimerStatus::Failed,
        TimerEnd::Expired => TimerStatus::Expired,
        TimerEnd::Cancelled => TimerStatus::Cancelled,
        TimerEnd::InsufficientFunds => TimerStatus::InsufficientFunds,
    }
}

pub(in crate::api) fn tier(timer: &Timer, head: Height) -> TimerTier {
    TimerPlace::of(timer.height, timer.scheduled_at, head).into()
}

pub(in crate::api) fn bid(bid: Bid) -> TimerBid {
    TimerBid {
        max_fee_per_cycle: bid.max_fee_per_cycle.into(),
        max_priority_fee_per_cycle: bid.max_priority_fee_per_cycle.into(),
        failed: bid.failed,
    }
}

pub(in crate::api) fn charge(charged: Charged) -> TimerCharge {
    TimerCharge {
        burned_cycle: charged.burned_cycle.into(),
        burned_lane: charged.burned_lane.into(),
        tip: charged.tip.into(),
        cells: charged.cells.into(),
        refunded: charged.refunded.into(),
    }
}

pub(in crate::api) fn result(fire: &Fire) -> Option<Value> {
    let result = &fire.outcome.result;
    (!result.is_empty()).then(|| actor::returned(fire.outcome.language, result))
}

pub(in crate::api) fn result_bytes(fire: &Fire) -> Option<BytesText> {
    actor::bytes_of(fire.outcome.language, &fire.outcome.result)
}

pub(in crate::api) fn fire(fire: &Fire) -> BlockFire {
    let success = fire.status == ReceiptStatus::Success;
    BlockFire {
        timer_id: fire.timer_id.into(),
        actor: fire.actor.into(),
        handler: fire.handler.clone(),
        due_at: fire.due_at.get(),
        status: if success { TimerStatus::Fired } else { TimerStatus::Failed },
        cycles: fire.cycles.get(),
        cells: fire.cells.get(),
        priority_per_cycle: fire.priority_per_cycle.into(),
    }
}

pub(in crate::api) fn lane(stored: &StoredLane) -> LaneBlock {
    let report = &stored.report;
    let share = u128::from(report.consumed) * 1_000 / u128::from(report.capacity.max(1));
    LaneBlock {
        height: stored.height.get(),
        policy: report.policy.name().to_owned(),
        lane_basefee: match report.policy {
            Policy::Eip1559 => report.basefee,
            Policy::Fifo | Policy::GbaAuction => stored.basefee_cycle,
        }
        .into(),
        cycle_price: match report.policy {
            Policy::Eip1559 => stored.basefee_cycle.saturating_add(report.basefee),
            Policy::Fifo | Policy::GbaAuction => stored.basefee_cycle,
        }
        .into(),
        capacity: report.capacity,
        consumed: report.consumed,
        utilisation_per_mille: u64::try_from(share).unwrap_or(u64::MAX),
        cell_capacity: report.cell_capacity,
        cells: report.cells,
        asked: report.asked,
        questions: report.questions.into(),
        fired: report.fired,
        deferred: report.deferred,
        priced_out: report.priced_out,
        over_cap: report.over_cap,
        expired: report.expired,
        insolvent: report.insolvent,
        p50_tip: report.p50.into(),
        least_priority: report.least_priority.map(Into::into),
    }
}

pub(in crate::api) fn buckets(
    buckets: impl IntoIterator<Item = (u64, u64)>,
) -> Vec<crate::types::TimerBucket> {
    let bucket = |(at, timers)| crate::types::TimerBucket { at, timers };
    buckets.into_iter().map(bucket).collect()
}

pub(in crate::api) fn limit(asked: Option<usize>, default: usize, most: usize) -> u32 {
    count(asked.unwrap_or(default).min(most))
}
