//! Gauges and counters of the timer lane, as Prometheus reads them (docs/observability.md).
//!
//! A scrape reads the store of the validator that answers. Counters grow by the blocks after the
//! last one counted, up to that validator's head. Those blocks are final and the same on every
//! validator, so each counts once even if another validator answers the next scrape. A validator
//! with a head below the last block counted adds nothing.
//!
//! Counters begin at 0 with the process: the first block counted is the one after
//! [`Backend::begun`](super::Backend::begun). Every value of a label is present from the start, so
//! that a rate sees the first event.

use crate::{
    storage::{StorageError, ValidatorStore},
    telemetry::metrics,
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{LaneReport, State},
    primitives::Height,
};
use cowboy_host::openmetrics::{self, AmountCounter, AmountGauge, CountGauge, Row, amount};
use prometheus_client::{metrics::counter::Counter, registry::Registry};

/// Maximum number of blocks that one scrape counts: half an hour at the default block time. A
/// request that explains why a timer waited reads five times as many.
const BLOCKS: u64 = 2_000;

/// Why a due timer waits, in the order of [`LaneMetrics::show_block`].
const WAITS: [&str; 3] = ["priced_out", "over_cap", "other"];

/// Why the lane removed a timer, in the order of [`LaneMetrics::count`].
const REMOVALS: [&str; 2] = ["expired", "insufficient_funds"];

metrics! {
    struct LaneSeries {
        due: CountGauge = "due", "Timers that are due and wait after the newest block";
        deferred: Row<CountGauge> =
            "deferred", "Timers that are due and wait after the newest block, by reason",
            Row::new("reason", WAITS.into_iter());
        queued: CountGauge = "queued", "Timers in the queue, due or not";
        used_cycles: CountGauge = "used_cycles", "Cycles that fires of the newest block used";
        free_cycles: CountGauge = "free_cycles", "Cycles of the lane that the newest block left";
        used_cells: CountGauge = "used_cells", "Cells that fires of the newest block used";
        free_cells: CountGauge = "free_cells", "Cells of the lane that the newest block left";
        basefee: AmountGauge =
            "basefee_wei",
            "Price of a cycle of the lane in the next block, on top of the cycle basefee";
        cycle_basefee: AmountGauge = "cycle_basefee_wei", "Price of a cycle in the next block";
        burned: AmountGauge = "burned_wei", "Lane basefees burned since genesis, in wei";
        fired: Counter = "fired", "Timers that fired";
        cycles: Counter = "cycles", "Cycles that fires used";
        cells: Counter = "cells", "Cells that fires used";
        removed: Row<Counter> =
            "removed", "Timers that the lane removed, by reason",
            Row::new("reason", REMOVALS.into_iter());
        clamped: Counter =
            "clamped", "Timers held to limits lower than those they were scheduled with";
        agents_asked: Counter = "agents_asked", "Questions to gas bidding agents";
        agents_failed: Counter = "agents_failed", "Timers whose gas bidding agent began to fail";
        questions: AmountCounter =
            "questions_wei", "Payments of timers' owners for questions to agents, in wei";
    }
}

/// The metrics of a devnet's timer lane.
#[derive(Debug)]
pub struct LaneMetrics {
    registry: Registry,
    /// The last block counted; genesis before the first.
    counted: Mutex<Height>,
    series: LaneSeries,
}

impl Default for LaneMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl LaneMetrics {
    /// Creates the metrics with every series at 0.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("timer_lane");
        let series = LaneSeries::register(&mut registry);
        Self { registry, counted: Mutex::new(Height::GENESIS), series }
    }

    /// Counts up to the head of a validator, at most [`BLOCKS`], and sets the gauges to that head.
    ///
    /// `state` is the validator's newest, and `begun` the height from which this process runs.
    pub(super) fn follow(
        &self,
        store: &ValidatorStore,
        state: &State,
        begun: Height,
    ) -> Result<(), StorageError> {
        let head = state.height();
        // Held to the end, so that two concurrent scrapes do not count a block twice.
        let mut counted = self.counted.lock();
        let done = (*counted).max(begun);
        if let Some((from, to)) = uncounted(done, store.kept_from(), head) {
            let before = from.previous().unwrap_or_default();
            let lanes = store.lanes(from, to)?;
            let clamped = store.count_events("TimerGasClamped", before, to)?;
            let failed = store.count_events("GbaFailed", before, to)?;
            for lane in lanes {
                self.count(&lane.report);
            }
            self.series.clamped.inc_by(clamped);
            self.series.agents_failed.inc_by(failed);
            *counted = to;
        }
        let newest = store.lanes(head, head)?.pop();
        self.show_state(state);
        if let Some(newest) = newest {
            self.show_block(&newest.report);
        }
        Ok(())
    }

    pub fn encode(&self) -> String {
        openmetrics::part(&self.registry)
    }

    fn count(&self, report: &LaneReport) {
        self.series.fired.inc_by(report.fired);
        self.series.cycles.inc_by(report.consumed);
        self.series.cells.inc_by(report.cells);
        for (place, timers) in [report.expired, report.insolvent].into_iter().enumerate() {
            self.series.removed.at(place).inc_by(timers);
        }
        self.series.agents_asked.inc_by(report.asked);
        self.series.questions.inc_by(amount(report.questions.get()));
    }

    fn show_block(&self, report: &LaneReport) {
        self.series.due.set(report.deferred);
        // A handler or a transaction may have cancelled timers after the scan counted them.
        let told = report.priced_out.saturating_add(report.over_cap);
        let other = report.deferred.saturating_sub(told);
        for (place, timers) in [report.priced_out, report.over_cap, other].into_iter().enumerate() {
            self.series.deferred.at(place).set(timers);
        }
        self.series.used_cycles.set(report.consumed);
        self.series.free_cycles.set(report.capacity.saturating_sub(report.consumed));
        self.series.used_cells.set(report.cells);
        self.series.free_cells.set(report.cell_capacity.saturating_sub(report.cells));
    }

    fn show_state(&self, state: &State) {
        self.series.queued.set(state.timers().len() as u64);
        self.series.basefee.set(amount(state.lane_basefee(state.height().next()).get()));
        self.series.cycle_basefee.set(amount(state.basefee_cycle().get()));
        self.series.burned.set(amount(state.lane().burned.get()));
    }
}

/// The first and the last block to count after `done`: blocks that are kept, up to the head, at
/// most [`BLOCKS`].
fn uncounted(done: Height, kept_from: Height, head: Height) -> Option<(Height, Height)> {
    let from = done.next().max(kept_from);
    let to = head.min(from.after(BLOCKS - 1));
    (from <= to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{primitives::Wei, timer::Policy};
    use cowboy_host::openmetrics::samples;
    use std::collections::BTreeMap;

    fn report() -> LaneReport {
        LaneReport {
            policy: Policy::Eip1559,
            basefee: Wei::new(7),
            capacity: 1_000,
            consumed: 600,
            cell_capacity: 500,
            cells: 200,
            asked: 4,
            questions: Wei::new(90),
            fired: 3,
            deferred: 10,
            priced_out: 5,
            over_cap: 2,
            expired: 6,
            insolvent: 1,
            p50: Wei::ZERO,
            least_priority: None,
        }
    }

    /// The series that are not 0, without the prefix.
    fn changed(metrics: &LaneMetrics) -> BTreeMap<String, u64> {
        let text = metrics.encode();
        let mut changed = BTreeMap::new();
        for (series, value) in samples(&text) {
            let name = series.strip_prefix("timer_lane_").expect("every name has the prefix");
            if value != 0.0 {
                changed.insert(name.to_owned(), value as u64);
            }
        }
        changed
    }

    fn expected<const N: usize>(series: [(&str, u64); N]) -> BTreeMap<String, u64> {
        series.map(|(name, value)| (name.to_owned(), value)).into()
    }

    #[test]
    fn every_series_is_there_from_the_start() {
        let metrics = LaneMetrics::new();
        let text = metrics.encode();
        assert_eq!(changed(&metrics), BTreeMap::new());
        for (label, values) in [("deferred", &WAITS[..]), ("removed_total", &REMOVALS[..])] {
            for value in values {
                let series = format!("timer_lane_{label}{{reason=\"{value}\"}}");
                assert!(samples(&text).contains_key(series.as_str()), "{series} of\n{text}");
            }
        }
    }

    #[test]
    fn counters_add_up_what_blocks_did() {
        let metrics = LaneMetrics::new();
        metrics.count(&report());
        metrics.count(&report());
        let twice = expected([
            ("fired_total", 6),
            ("cycles_total", 1_200),
            ("cells_total", 400),
            ("removed_total{reason=\"expired\"}", 12),
            ("removed_total{reason=\"insufficient_funds\"}", 2),
            ("agents_asked_total", 8),
            ("questions_wei_total", 180),
        ]);
        assert_eq!(changed(&metrics), twice);
    }

    #[test]
    fn gauges_are_those_of_the_newest_block() {
        let metrics = LaneMetrics::new();
        metrics.show_block(&LaneReport { consumed: 1, deferred: 99, ..report() });
        metrics.show_block(&report());
        let newest = expected([
            ("due", 10),
            ("deferred{reason=\"priced_out\"}", 5),
            ("deferred{reason=\"over_cap\"}", 2),
            ("deferred{reason=\"other\"}", 3),
            ("used_cycles", 600),
            ("free_cycles", 400),
            ("used_cells", 200),
            ("free_cells", 300),
        ]);
        assert_eq!(changed(&metrics), newest);
        // Timers waited at the scan and were cancelled later in the block.
        metrics.show_block(&LaneReport { deferred: 6, ..report() });
        assert_eq!(changed(&metrics).get("deferred{reason=\"other\"}"), None);
    }

    #[test]
    fn blocks_are_counted_in_order_once_and_a_bounded_number_at_a_time() {
        let check = |done: u64, kept_from: u64, head: u64, expected: Option<(u64, u64)>| {
            let got = uncounted(Height::new(done), Height::new(kept_from), Height::new(head));
            let got = got.map(|(from, to)| (from.get(), to.get()));
            assert_eq!(got, expected, "{done}, {kept_from}, {head}");
        };
        check(0, 1, 0, None);
        check(0, 1, 1, Some((1, 1)));
        check(7, 1, 9, Some((8, 9)));
        // A validator that is behind answers.
        check(9, 1, 7, None);
        check(9, 1, 9, None);
        // Blocks that the validator has dropped can no longer be counted.
        check(9, 258, 300, Some((258, 300)));
        check(0, 1, 5_000, Some((1, BLOCKS)));
        check(BLOCKS, 1, 5_000, Some((BLOCKS + 1, 2 * BLOCKS)));
        check(2 * BLOCKS, 1, 5_000, Some((2 * BLOCKS + 1, 5_000)));
    }
}
