//! The reasons why a due timer did not fire, block by block, derived from the reports of those
//! blocks' lanes.
//!
//! The chain stores no reasons for waiting timers. They follow from the timer's record and the
//! block's lane, in the order of the chain's checks (timers.md §3 to §6): it has expired and waits
//! for the GC budget; its cap is below the block's price; it asks for more cycles than a fire may
//! get, or for more cells than the lane has; its limits still fitted into the rest of the lane, so
//! that only its payer can have held it back; otherwise the lane was full.
//!
//! This is exact with two exceptions. Whether the payer could pay is only known if there was room
//! and the price was covered; otherwise the chain does not check it. And only the last bid of an
//! agent is known: for earlier blocks, the bid is compared with the number of timers that the block
//! priced out, and otherwise used as it is, which the explanation says.

use crate::{
    storage::StoredLane,
    types::{Deferral, DeferralReason},
};
use cowboy_engine::{
    primitives::Height,
    timer::{Policy, Timer, lane::Room},
};
use std::collections::BTreeSet;

/// Maximum number of runs in an answer: the newest ones.
pub(super) const RUNS: usize = 1_000;

pub(super) struct Subject<'a> {
    /// Its record; the payload is not used.
    pub timer: &'a Timer,
    /// Its extensions, ascending: the block of each, and the new last height. Before the first
    /// extension the record's last height applies.
    pub lives: &'a [(Height, Height)],
    /// The blocks that lowered its limits, ascending.
    pub clamps: &'a [Clamp],
    /// Blocks with an event that its agent gave no bid. There is only one such event until the
    /// agent answers again.
    pub unanswered: &'a BTreeSet<Height>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Clamp {
    pub at: Height,
    pub before: Room,
    pub after: Room,
}

/// The reasons why the timer did not fire in these blocks, ascending. It must have been due in all
/// of them.
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

    fn asks(&self, at: Height) -> Room {
        let since = self.clamps.partition_point(|clamp| clamp.at <= at);
        let last = since.checked_sub(1).and_then(|index| self.clamps.get(index));
        match (last, self.clamps.get(since)) {
            (Some(clamp), _) => clamp.after,
            (None, Some(clamp)) => clamp.before,
            (None, None) => Room { cycles: self.timer.gas_limit, cells: self.timer.cell_limit },
        }
    }

    fn reason(&self, lane: &StoredLane) -> DeferralReason {
        let (asks, left) = (self.asks(lane.height), left(lane));
        if lane.height > self.expires_at(lane.height) {
            DeferralReason::GcWaiting
        } else if self.is_priced_out(lane) {
            DeferralReason::PricedOut
        } else if asks.cycles > lane.cap || asks.cells > lane.report.cell_capacity {
            DeferralReason::OverCap
        } else if asks.cycles <= left.cycles && asks.cells <= left.cells {
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
        // Since the last such event, the agent has failed whenever it was asked, and a default bid
        // covers the price of its own block.
        let told = self.unanswered.last();
        let failing = bid.failed && told.is_some_and(|told| *told < lane.height);
        let all = report.priced_out.saturating_add(report.over_cap) >= report.deferred;
        let is_below = bid.max_fee_per_cycle < price && !failing;
        is_below || (all && self.asks(lane.height).cycles <= lane.cap)
    }

    fn in_words(&self, reason: DeferralReason, lane: &StoredLane) -> String {
        let StoredLane { height, report, cap, .. } = lane;
        let policy = report.policy.name();
        let (Room { cycles, cells }, left) = (self.asks(*height), left(lane));
        match reason {
            DeferralReason::PricedOut => {
                let (price, what) = match report.policy {
                    Policy::GbaAuction => (lane.basefee_cycle, "the cycle basefee"),
                    _ => (report.basefee, "the lane basefee"),
                };
                match self.timer.bid.filter(|_| self.timer.gba.is_some()) {
                    Some(bid) if bid.failed => format!(
                        "its agent failed, and the default bid is below {what} of {price} wei per \
                         cycle; the last known one is {} wei, earlier ones may have differed",
                        bid.max_fee_per_cycle
                    ),
                    Some(bid) => format!(
                        "its agent's bid is below {what} of {price} wei per cycle; the last known \
                         bid is {} wei, earlier ones may have differed",
                        bid.max_fee_per_cycle
                    ),
                    None => format!(
                        "its cap of {} wei per cycle is below {what} of {price} wei",
                        self.timer.max_fee_per_cycle
                    ),
                }
            }
            DeferralReason::OverCap if cycles > *cap => {
                format!("it asks for {cycles} cycles, and under {policy} a fire gets at most {cap}")
            }
            DeferralReason::OverCap => format!(
                "it asks for {cells} cells, and the lane has {} in all",
                report.cell_capacity
            ),
            DeferralReason::LaneFull if cycles > report.capacity => {
                format!("it asks for {cycles} cycles, and the lane has {} in all", report.capacity)
            }
            DeferralReason::LaneFull => {
                let least = match (report.policy, report.least_priority) {
                    (Policy::Fifo, _) | (_, None) => String::new(),
                    (_, Some(least)) => format!(" with a priority of {least} wei or more"),
                };
                let (left, of, gas, asked) = match cycles > left.cycles {
                    true => (left.cycles, report.capacity, "cycles", cycles),
                    false => (left.cells, report.cell_capacity, "cells", cells),
                };
                format!(
                    "{} others{least} came first and left {left} of {of} {gas}; it asks for \
                     {asked}",
                    report.fired
                )
            }
            DeferralReason::InsufficientFunds => format!(
                "{} cycles and {} cells were left, and its payer could not cover the most that it \
                 may cost",
                left.cycles, left.cells
            ),
            DeferralReason::GcWaiting => format!(
                "its time passed at {}; block {height} removed {} other timers, which was all \
                 that the GC budget allowed",
                self.expires_at(*height),
                report.expired.saturating_add(report.insolvent)
            ),
        }
    }
}

const fn left(lane: &StoredLane) -> Room {
    let report = &lane.report;
    let all = Room { cycles: report.capacity, cells: report.cell_capacity };
    all.less(Room { cycles: report.consumed, cells: report.cells })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{
        chain::LaneReport,
        primitives::{Address, Hash, Wei},
        timer::Bid,
    };

    fn timer() -> Timer {
        Timer {
            id: Hash::ZERO,
            seq: 0,
            actor: Address([1; 20]),
            height: Height::new(10),
            payload: vec![],
            handler: None,
            fee_payer: Address([1; 20]),
            gas_limit: 100,
            cell_limit: 64,
            promised: None,
            expires_at: Height::new(30),
            max_fee_per_cycle: Wei::new(50),
            max_priority_fee_per_cycle: Wei::new(5),
            scheduled_at: Height::new(5),
            gba: None,
            bid: None,
        }
    }

    /// A full lane of 1,000 cycles and 640 cells whose basefee is 20.
    fn lane(height: u64) -> StoredLane {
        let report = LaneReport {
            policy: Policy::Eip1559,
            basefee: Wei::new(20),
            capacity: 1_000,
            consumed: 950,
            cell_capacity: 640,
            cells: 500,
            asked: 0,
            questions: Wei::ZERO,
            fired: 9,
            deferred: 3,
            priced_out: 1,
            over_cap: 0,
            expired: 2,
            insolvent: 1,
            p50: Wei::ZERO,
            least_priority: Some(Wei::new(4)),
        };
        let (height, basefee_cycle) = (Height::new(height), Wei::new(60));
        StoredLane { height, basefee_cycle, cap: 250, report }
    }

    fn dear(height: u64, basefee: u128) -> StoredLane {
        let mut dear = lane(height);
        dear.report.basefee = Wei::new(basefee);
        dear
    }

    fn check(timer: &Timer, lanes: &[StoredLane], expected: &[(u64, u64, DeferralReason, &str)]) {
        let subject = Subject { timer, lives: &[], clamps: &[], unanswered: &BTreeSet::new() };
        let runs = explain(&subject, lanes);
        let told: Vec<_> =
            runs.iter().map(|d| (d.from, d.to, d.reason, d.explanation.as_str())).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn runs_of_one_reason_are_joined_and_told_with_their_last_figures() {
        let lanes = [lane(10), lane(11), dear(12, 51), dear(13, 52), lane(14)];
        check(
            &timer(),
            &lanes,
            &[
                (
                    10,
                    11,
                    DeferralReason::LaneFull,
                    "9 others with a priority of 4 wei or more came first and left 50 of 1000 \
                     cycles; it asks for 100",
                ),
                (
                    12,
                    13,
                    DeferralReason::PricedOut,
                    "its cap of 50 wei per cycle is below the lane basefee of 52 wei",
                ),
                (
                    14,
                    14,
                    DeferralReason::LaneFull,
                    "9 others with a priority of 4 wei or more came first and left 50 of 1000 \
                     cycles; it asks for 100",
                ),
            ],
        );
    }

    #[test]
    fn reasons_are_tried_in_the_order_of_the_chain() {
        let late = "its time passed at 30; block 31 removed 3 other timers, which was all that the \
                    GC budget allowed";
        check(&timer(), &[dear(31, 99)], &[(31, 31, DeferralReason::GcWaiting, late)]);
        let over = Timer { gas_limit: 251, ..timer() };
        let capped = "it asks for 251 cycles, and under eip1559 a fire gets at most 250";
        check(&over, &[lane(10)], &[(10, 10, DeferralReason::OverCap, capped)]);
        let priced = "its cap of 50 wei per cycle is below the lane basefee of 51 wei";
        check(&over, &[dear(10, 51)], &[(10, 10, DeferralReason::PricedOut, priced)]);
        let small = Timer { gas_limit: 50, ..timer() };
        let poor = "50 cycles and 140 cells were left, and its payer could not cover the most that \
                    it may cost";
        check(&small, &[lane(10)], &[(10, 10, DeferralReason::InsufficientFunds, poor)]);
        let mut wide = lane(10);
        wide.cap = 9_999;
        let whole = "it asks for 2000 cycles, and the lane has 1000 in all";
        let large = Timer { gas_limit: 2_000, ..timer() };
        check(&large, &[wide], &[(10, 10, DeferralReason::LaneFull, whole)]);
    }

    #[test]
    fn each_policy_has_its_price() {
        let mut fifo = dear(10, 99);
        fifo.report.policy = Policy::Fifo;
        let full = "9 others came first and left 50 of 1000 cycles; it asks for 100";
        check(&timer(), &[fifo], &[(10, 10, DeferralReason::LaneFull, full)]);
        let mut auction = dear(10, 0);
        auction.report.policy = Policy::GbaAuction;
        let priced = "its cap of 50 wei per cycle is below the cycle basefee of 60 wei";
        check(&timer(), &[auction], &[(10, 10, DeferralReason::PricedOut, priced)]);
    }

    #[test]
    fn an_agents_bid_is_held_against_what_the_block_priced_out() {
        let bid = |max_fee| {
            let (max_fee_per_cycle, max_priority_fee_per_cycle) = (Wei::new(max_fee), Wei::ZERO);
            Some(Bid { max_fee_per_cycle, max_priority_fee_per_cycle, failed: false })
        };
        let asking = |bid| Timer { gba: Some(Address([2; 20])), bid, ..timer() };
        let reason = |timer: &Timer, lane: &StoredLane, unanswered: &[u64]| {
            let unanswered = unanswered.iter().copied().map(Height::new).collect();
            let subject = Subject { timer, lives: &[], clamps: &[], unanswered: &unanswered };
            explain(&subject, std::slice::from_ref(lane))[0].reason
        };
        use DeferralReason::{LaneFull, PricedOut};

        assert_eq!(reason(&asking(bid(19)), &lane(10), &[]), PricedOut);
        assert_eq!(reason(&asking(bid(20)), &lane(10), &[]), LaneFull);
        // The default bid covers the price: the agent was not asked, or it failed.
        assert_eq!(reason(&asking(None), &lane(10), &[]), LaneFull);
        assert_eq!(reason(&asking(bid(19)), &lane(10), &[10]), LaneFull);
        // No timer was priced out, or all of them were.
        let (mut none, mut all) = (lane(10), lane(10));
        (none.report.priced_out, all.report.priced_out) = (0, 3);
        assert_eq!(reason(&asking(bid(19)), &none, &[]), LaneFull);
        assert_eq!(reason(&asking(bid(20)), &all, &[]), PricedOut);
        // It fails since block 9: a default bid covers the price of its own block.
        let failing = asking(bid(19).map(|bid| Bid { failed: true, ..bid }));
        assert_eq!(reason(&failing, &lane(10), &[9]), LaneFull);
        assert_eq!(reason(&failing, &all, &[9]), PricedOut);
        assert_eq!(reason(&failing, &lane(10), &[11]), PricedOut);
    }

    #[test]
    fn cells_run_out_as_cycles_do() {
        let of = |cell_limit| Timer { gas_limit: 50, cell_limit, ..timer() };
        let full = "9 others with a priority of 4 wei or more came first and left 140 of 640 \
                    cells; it asks for 192";
        check(&of(192), &[lane(10)], &[(10, 10, DeferralReason::LaneFull, full)]);
        let over = "it asks for 704 cells, and the lane has 640 in all";
        check(&of(704), &[lane(10)], &[(10, 10, DeferralReason::OverCap, over)]);
    }

    #[test]
    fn a_block_before_lower_limits_is_explained_with_the_limits_of_then() {
        let room = |cycles| Room { cycles, cells: 64 };
        let timer = Timer { gas_limit: 40, ..timer() };
        let clamps = [Clamp { at: Height::new(11), before: room(100), after: room(40) }];
        let unanswered = BTreeSet::new();
        let subject =
            Subject { timer: &timer, lives: &[], clamps: &clamps, unanswered: &unanswered };
        let runs = explain(&subject, &[lane(10), lane(11)]);
        let reasons: Vec<_> = runs.iter().map(|run| (run.from, run.reason)).collect();
        use DeferralReason::{InsufficientFunds, LaneFull};

        assert_eq!(reasons, [(10, LaneFull), (11, InsufficientFunds)]);
    }

    #[test]
    fn an_extension_counts_from_its_block_on() {
        let lives = [(Height::new(5), Height::new(11)), (Height::new(13), Height::new(30))];
        let (timer, unanswered) = (timer(), BTreeSet::new());
        let subject =
            Subject { timer: &timer, lives: &lives, clamps: &[], unanswered: &unanswered };
        let runs = explain(&subject, &[lane(11), lane(12), lane(13)]);
        let reasons: Vec<_> = runs.iter().map(|run| (run.from, run.reason)).collect();
        use DeferralReason::{GcWaiting, LaneFull};

        assert_eq!(reasons, [(11, LaneFull), (12, GcWaiting), (13, LaneFull)]);
    }
}
