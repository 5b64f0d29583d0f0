//! Counters, gauges and histograms of speculation, as Prometheus reads them (AgenC §8.1).
//!
//! Names, kinds and labels are those of §8.1. The alerts and dashboards of §8.1 and §8.4 also need
//! the available stake, the minimum stake, the slashed stake, the switch and the circuit breaker,
//! so these are exported too. A name that ends in `lamports` is in wei here, because both are the
//! smallest unit of their chains.
//!
//! The driver of a machine reports events as they happen, and gauges when it is asked:
//!
//! | upon | call |
//! |---|---|
//! | a task accepted or refused | [`Metrics::scheduled`], [`Metrics::rejected`] |
//! | a proof made | [`Metrics::proof_generated`] |
//! | `Output::Submit`, each attempt | [`Metrics::proof_submitted`] |
//! | a proof that reached the chain | [`Metrics::proof_delivered`] |
//! | `Output::Confirmed` | [`Metrics::confirmed`] |
//! | a prover that died during a proof | [`Metrics::prover_lost`] |
//! | a proof not made, refused, or not delivered | [`Metrics::proof_failed`] |
//! | `Output::RolledBack` | [`Metrics::rolled_back`] |
//! | a scrape, after `Speculation::advance` | [`Metrics::set`], then [`Metrics::encode`] |
//!
//! Counters begin at 0 with the process, even when a restored machine has counted before, as
//! Prometheus expects after a restart. The series of all reasons exist from the start, so the first
//! event of a kind is an increase from 0 and not a new series, which no rate would show.

use crate::telemetry::{self, metrics};
use cowboy_engine::{
    primitives::Wei,
    speculation::{
        BreakerState, Override, Reason, RollbackReason, Speculation, Summary, config::MAX_DEPTH,
        view::Gauges,
    },
};
use cowboy_host::openmetrics::{self, AmountCounter, AmountGauge, CountGauge, Row, amount};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};
use std::{sync::Arc, time::Duration};

/// Upper bounds of the buckets for proofs and confirmations, in milliseconds: from below a proof's
/// 34 ms (docs/performance.md) to the longest `confirmationTimeoutMs` (§7.1), with a bound at half
/// of its default for the alert SpeculationConfirmationSlow.
const LATENCY_MS: [f64; 16] = [
    5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0, 15_000.0,
    30_000.0, 60_000.0, 120_000.0, 300_000.0,
];

const STAGES: [&str; 5] = ["queued", "proving", "waiting", "ready", "submitting"];

/// Upper bounds of the buckets for rollbacks, in milliseconds: from a small rollback without
/// stopping any work, with a bound at the 500 ms that §9.4 allows for a hundred tasks.
const ROLLBACK_MS: [f64; 12] =
    [0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 5_000.0];

/// The values of the gauges at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaugeValues {
    /// The gauges that §8.1 lists.
    pub gauges: Gauges,
    /// The deposited stake less the slashed stake, in wei; bonds are locked from it.
    pub available_stake: Wei,
    /// The minimum stake in wei: `stake.minStake`, or the chain's minimum if that is higher.
    pub min_stake: Wei,
    /// `proof.workerThreads`: number of concurrent proofs.
    pub workers: u64,
    /// `confirmationTimeoutMs`: the longest time for a confirmation.
    pub confirmation_timeout_ms: u64,
    /// `speculation.enabled`.
    pub enabled: bool,
    pub breaker: BreakerState,
    /// The operator's `breaker.override`.
    pub held: Override,
    /// `breaker.slashLimit`: the slashing allowed per hour, in wei; zero means no limit.
    pub slash_limit: Wei,
    pub live_tasks: u64,
    /// Milliseconds until the first of their claims expires; 0 without a claim.
    pub time_to_expiry_ms: u64,
}

impl GaugeValues {
    /// Reads a machine at the latest time it was told. Advance it first, otherwise an open breaker
    /// looks open for as long as nothing happens.
    pub fn of(machine: &Speculation) -> Self {
        let config = machine.config();
        Self {
            gauges: machine.gauges(),
            available_stake: machine.stake().available,
            min_stake: Wei::new(machine.price(0).map_or(u128::MAX, u128::from)),
            workers: config.worker_threads,
            confirmation_timeout_ms: config.confirmation_timeout_ms,
            enabled: config.enabled,
            breaker: machine.breaker_state(),
            held: config.breaker.held,
            slash_limit: Wei::new(config.breaker.slash_limit.into()),
            live_tasks: machine.graph().live() as u64,
            time_to_expiry_ms: machine.time_to_expiry().unwrap_or(0),
        }
    }
}

metrics! {
    struct SpeculationSeries {
        tasks_scheduled: Counter = "tasks_scheduled", "Tasks accepted";
        tasks_rejected: Row<Counter> =
            "tasks_rejected", "Tasks refused, by reason",
            Row::new("reason", Reason::ALL.iter().map(|one| one.name()));
        proofs_submitted: Counter =
            "proofs_submitted", "Proofs handed out for submission, repetitions included";
        proofs_confirmed: Counter = "proofs_confirmed", "Tasks confirmed";
        proofs_failed: Counter =
            "proofs_failed", "Proofs that could not be made, were refused, or were not delivered";
        provers_lost: Counter = "provers_lost", "Provers that died over a proof";
        rollbacks: Row<Counter> =
            "rollbacks", "Rollbacks, by reason",
            Row::new("reason", RollbackReason::ALL.iter().map(|one| one.name()));
        tasks_rolled_back: Counter =
            "tasks_rolled_back", "Tasks undone, those that failed among them";
        stake_slashed: AmountCounter = "stake_slashed_lamports", "Stake slashed, in wei";
        active_commitments: CountGauge =
            "active_commitments", "Commitments whose proofs may still be confirmed";
        pending_proofs: CountGauge =
            "pending_proofs", "Proofs that are queued, being made, wait, are ready or in flight";
        proofs: Row<CountGauge> =
            "proofs", "Pending proofs, by stage", Row::new("stage", STAGES.into_iter());
        proof_workers: CountGauge = "proof_workers", "Proofs made at a time, proof.workerThreads";
        confirmation_timeout: CountGauge =
            "confirmation_timeout_ms",
            "Milliseconds that a confirmation may take, confirmationTimeoutMs";
        locked_stake: AmountGauge = "locked_stake_lamports", "Bonds of the live tasks, in wei";
        max_depth_current: CountGauge = "max_depth_current", "Depth of the deepest live task";
        available_stake: AmountGauge =
            "available_stake_lamports", "Stake deposited, without what was slashed, in wei";
        min_stake: AmountGauge =
            "min_stake_lamports", "The least bond, by stake.minStake or by the chain, in wei";
        enabled: CountGauge = "enabled", "Whether speculation is switched on";
        breaker_state: Row<CountGauge> =
            "breaker_state", "1 for the state that the circuit breaker is in",
            Row::new("state", BreakerState::ALL.iter().map(|one| one.name()));
        breaker_override: Row<CountGauge> =
            "breaker_override",
            "1 for what an operator holds the circuit breaker to, breaker.override",
            Row::new("state", Override::ALL.iter().map(|one| one.name()));
        slash_limit: AmountGauge =
            "slash_limit_lamports",
            "What may be slashed within an hour, breaker.slashLimit, in wei; 0 for no limit";
        live_tasks: CountGauge = "live_tasks", "Tasks on their way";
        time_to_expiry: CountGauge =
            "time_to_expiry_ms",
            "Milliseconds until the first claim on a task expires, 0 without a claim";
        proof_generation: Histogram =
            "proof_generation_duration_ms", "Milliseconds to make a proof",
            Histogram::new(LATENCY_MS);
        proof_submission: Histogram =
            "proof_submission_duration_ms",
            "Milliseconds from a proof's handing out until it has reached the chain",
            Histogram::new(LATENCY_MS);
        confirmation: Histogram =
            "confirmation_latency_ms",
            "Milliseconds from a proof's reaching the chain until it is confirmed",
            Histogram::new(LATENCY_MS);
        rollback: Histogram =
            "rollback_duration_ms", "Milliseconds to carry out a rollback",
            Histogram::new(ROLLBACK_MS);
        chain_depth: Histogram =
            "chain_depth", "Depth at which tasks were accepted",
            Histogram::new((0..=MAX_DEPTH).map(|depth| depth as f64));
    }
}

/// The metrics of one agent's speculation. Clones share the counters.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    series: SpeculationSeries,
    spans: telemetry::Counts,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates the metrics with every series at 0.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("speculation");
        let series = SpeculationSeries::register(&mut registry);
        let spans = telemetry::Counts::default();
        let help = "Spans that the collector took";
        registry.register("spans_exported", help, spans.exported.clone());
        let help = "Spans that did not reach the collector, by reason";
        registry.register("spans_lost", help, spans.lost.clone());
        Self { registry: Arc::new(registry), series, spans }
    }

    pub const fn spans(&self) -> &telemetry::Counts {
        &self.spans
    }

    pub fn scheduled(&self, depth: u32) {
        self.series.tasks_scheduled.inc();
        self.series.chain_depth.observe(depth.into());
    }

    pub fn rejected(&self, reason: Reason) {
        self.series.tasks_rejected.at(reason as usize).inc();
    }

    pub fn proof_generated(&self, took: Duration) {
        self.series.proof_generation.observe(milliseconds(took));
    }

    /// Counts a proof handed out for submission, for the first time or again.
    pub fn proof_submitted(&self) {
        self.series.proofs_submitted.inc();
    }

    /// Counts a proof that reached the chain, and the time since it was handed out.
    pub fn proof_delivered(&self, took: Duration) {
        self.series.proof_submission.observe(milliseconds(took));
    }

    /// Counts a confirmed task, and the time since its proof reached the chain. `None` when another
    /// submitter brought the proof there.
    pub fn confirmed(&self, waited: Option<Duration>) {
        self.series.proofs_confirmed.inc();
        if let Some(waited) = waited {
            self.series.confirmation.observe(milliseconds(waited));
        }
    }

    /// Counts a proof that could not be made, was refused by the chain, or was not delivered.
    pub fn proof_failed(&self) {
        self.series.proofs_failed.inc();
    }

    pub fn prover_lost(&self) {
        self.series.provers_lost.inc();
    }

    pub fn rolled_back(&self, rollback: &Summary, took: Duration) {
        self.series.rollbacks.at(rollback.reason as usize).inc();
        self.series.tasks_rolled_back.inc_by(rollback.tasks);
        self.slashed(rollback.slashed);
        self.series.rollback.observe(milliseconds(took));
    }

    /// Adds stake that was slashed other than by the machine itself.
    pub fn slashed(&self, lost: Wei) {
        self.series.stake_slashed.inc_by(amount(lost.get()));
    }

    pub fn set(&self, standing: &GaugeValues) {
        let gauges = &standing.gauges;
        self.series.active_commitments.set(gauges.active_commitments);
        self.series.pending_proofs.set(gauges.pending_proofs);
        let stages = [
            gauges.queued_proofs,
            gauges.proving,
            gauges.waiting_proofs,
            gauges.ready_proofs,
            gauges.submitting_proofs,
        ];
        for (at, count) in stages.into_iter().enumerate() {
            self.series.proofs.at(at).set(count);
        }
        self.series.proof_workers.set(standing.workers);
        self.series.confirmation_timeout.set(standing.confirmation_timeout_ms);
        self.series.locked_stake.set(amount(gauges.locked_stake.get()));
        self.series.max_depth_current.set(gauges.max_depth_current.into());
        self.series.available_stake.set(amount(standing.available_stake.get()));
        self.series.min_stake.set(amount(standing.min_stake.get()));
        self.series.enabled.set(standing.enabled.into());
        for &state in BreakerState::ALL {
            self.series.breaker_state.at(state as usize).set((state == standing.breaker).into());
        }
        for &held in Override::ALL {
            self.series.breaker_override.at(held as usize).set((held == standing.held).into());
        }
        self.series.slash_limit.set(amount(standing.slash_limit.get()));
        self.series.live_tasks.set(standing.live_tasks);
        self.series.time_to_expiry.set(standing.time_to_expiry_ms);
    }

    /// Encodes all metrics as a part of an OpenMetrics text.
    pub fn encode(&self) -> String {
        openmetrics::part(&self.registry)
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests;
