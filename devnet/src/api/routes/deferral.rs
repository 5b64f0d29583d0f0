//! Why a due timer did not fire, block by block: derived from what the lanes of those blocks did.
//!
//! Nothing is stored of a timer that waits. What the chain did with it follows from its record and
//! the block's lane, in the order in which the chain looks (timers.md §3 to §6): its time has
//! passed and it waits for the GC budget; its cap is below the block's price; it asks for more
//! cycles than a fire gets; its gas limit still fitted what the lane used, so that only its payer
//! can have held it back; else the lane was full.
//!
//! That is exact but for two things. Whether the payer could pay is told only where there was room:
//! where the lane was full it is not asked about. And the bids of an agent are known as of the last
//! one: for blocks before, it is held against how many timers the block priced out, and otherwise
//! taken as it is, which the explanation says.

use crate::{
    api::types::{Deferral, DeferralReason},
    storage::StoredLane,
};
use cowboy_engine::{
    primitives::Height,
    timer::{Policy, Timer},
};
use std::collections::BTreeSet;

/// Runs that are told of at most: the newest ones.
pub(super) const RUNS: usize = 1_000;

/// What is known of a timer that waits, or waited.
pub(super) struct Subject<'a> {
    /// Its record: the payload does not matter.
    pub timer: &'a Timer,
    /// Its extensions, ascending: from which block on it lived until when. Before the first of
    /// them, or without any, the record tells.
    pub lives: &'a [(Height, Height)],
    /// Blocks in which its agent gave no bid.
    pub unanswered: &'a BTreeSet<Height>,
}

/// Why the timer did not fire in these blocks, in all of which it was due: ascending.
pub(super) fn explain(subject: &Subject<'_>, lanes: &[StoredLane]) -> Vec<Deferral> {
    let mut runs: Vec<(Height, &StoredLane, DeferralReason)> = Vec::new();
    for lane in lanes {
        let reason = subject.reason(lane);
        match runs.last_mut() {
            Some((_, last, same)) if *same == reason && last.height.next() == lane.height => {
                *last = lane;
            }
            _ => runs.push((lane.height, lane, reason)),
        }
    }
    let told = &runs[runs.len().saturating_sub(RUNS)..];
    told.iter()
        .map(|(from, last, reason)| Deferral {
            from: from.get(),
            to: last.height.get(),
            reason: *reason,
            explanation: subject.in_words(*reason, last),
        })
        .collect()
}

impl Subject<'_> {
    fn expires_at(&self, at: Height) -> Height {
        let since = self.lives.partition_point(|(from, _)| *from <= at);
        let life = since.checked_sub(1).and_then(|index| self.lives.get(index));
        life.map_or(self.timer.expires_at, |(_, expires_at)| *expires_at)
    }

    fn reason(&self, lane: &StoredLane) -> DeferralReason {
        let report = &lane.report;
        if lane.height > self.expires_at(lane.height) {
            DeferralReason::GcWaiting
        } else if self.is_priced_out(lane) {
            DeferralReason::PricedOut
        } else if self.timer.gas_limit > lane.cap {
            DeferralReason::OverCap
        } else if report.consumed.saturating_add(self.timer.gas_limit) <= report.capacity {
            DeferralReason::InsufficientFunds
        } else {
            DeferralReason::LaneFull
        }
    }

    fn is_priced_out(&self, lane: &StoredLane) -> bool {
        let report = &lane.report;
        let price = match report.policy {
            Policy::Eip1559 => report.basefee,
            Policy::Fifo => return false,
            Policy::GbaAuction => lane.basefee_cycle,
        };
        let bid = match (self.timer.gba, self.timer.bid) {
            (None, _) => return self.timer.max_fee_per_cycle < price,
            // The default bid covers the price.
            (Some(_), None) => return false,
            (Some(_), Some(bid)) => bid,
        };
        if report.priced_out == 0 || self.unanswered.contains(&lane.height) {
            return false;
        }
        let all = report.priced_out.saturating_add(report.over_cap) >= report.deferred;
        bid.max_fee_per_cycle < price || (all && self.timer.gas_limit <= lane.cap)
    }

    fn in_words(&self, reason: DeferralReason, lane: &StoredLane) -> String {
        let StoredLane { height, report, cap, .. } = lane;
        let policy = report.policy.name();
        let gas_limit = self.timer.gas_limit;
        let left = report.capacity.saturating_sub(report.consumed);
        match reason {
            DeferralReason::PricedOut => {
                let (price, what) = match report.policy {
                    Policy::GbaAuction => (lane.basefee_cycle, "the cycle basefee"),
                    _ => (report.basefee, "the lane basefee"),
                };
                match self.timer.bid.filter(|_| self.timer.gba.is_some()) {
                    Some(bid) => format!(
                        "its agent's bid is below {what} of {price} wei per cycle; the last bid \
                         known is {} wei, earlier ones may have been others",
                        bid.max_fee_per_cycle
                    ),
                    None => format!(
                        "its cap of {} wei per cycle is below {what} of {price} wei",
                        self.timer.max_fee_per_cycle
                    ),
                }
            }
            DeferralReason::OverCap => format!(
                "it asks for {gas_limit} cycles, and under {policy} a fire gets {cap} at most"
            ),
            DeferralReason::LaneFull if gas_limit > report.capacity => format!(
                "it asks for {gas_limit} cycles, and the lane has {} in all",
                report.capacity
            ),
            DeferralReason::LaneFull => {
                let least = match (report.policy, report.least_priority) {
                    (Policy::Fifo, _) | (_, None) => String::new(),
                    (_, Some(least)) => format!(" with a priority of {least} wei or more"),
                };
                format!(
                    "{} others{least} came first and left {left} of {} cycles; it asks for \
                     {gas_limit}",
                    report.fired, report.capacity
                )
            }
            DeferralReason::InsufficientFunds => format!(
                "{left} cycles were left, and its payer could not cover the most that it may cost"
            ),
            DeferralReason::GcWaiting => format!(
                "its time passed at {}; block {height} removed {} other timers, which was all \
                 that the GC budget paid for",
                self.expires_at(*height),
                report.expired.saturating_add(report.insolvent)
            ),
        }
    }
}
