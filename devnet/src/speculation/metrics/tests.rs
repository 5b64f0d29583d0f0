//! The exported metrics are those of AgenC §8.1 and agree with what a machine did.

use super::*;
use cowboy_engine::{
    primitives::Hash,
    speculation::{
        Config, EngineOutput, Opening, PROOF_BYTES, RunRequest, SubmissionResult, TaskId,
        engine::reads, view::Counters,
    },
};
use cowboy_host::openmetrics::samples;
use std::collections::{BTreeMap, BTreeSet};

/// §8.1: name, kind, label.
const SOURCE: [(&str, &str, Option<&str>); 16] = [
    ("speculation_tasks_scheduled_total", "counter", None),
    ("speculation_tasks_rejected_total", "counter", Some("reason")),
    ("speculation_proofs_submitted_total", "counter", None),
    ("speculation_proofs_confirmed_total", "counter", None),
    ("speculation_proofs_failed_total", "counter", None),
    ("speculation_rollbacks_total", "counter", Some("reason")),
    ("speculation_tasks_rolled_back_total", "counter", None),
    ("speculation_active_commitments", "gauge", None),
    ("speculation_pending_proofs", "gauge", None),
    ("speculation_locked_stake_lamports", "gauge", None),
    ("speculation_max_depth_current", "gauge", None),
    ("speculation_proof_generation_duration_ms", "histogram", None),
    ("speculation_proof_submission_duration_ms", "histogram", None),
    ("speculation_confirmation_latency_ms", "histogram", None),
    ("speculation_rollback_duration_ms", "histogram", None),
    ("speculation_chain_depth", "histogram", None),
];

/// The additional metrics that the alerts and dashboards of §8 need.
const OURS: [(&str, &str, Option<&str>); 15] = [
    ("speculation_provers_lost_total", "counter", None),
    ("speculation_proofs", "gauge", Some("stage")),
    ("speculation_proof_workers", "gauge", None),
    ("speculation_confirmation_timeout_ms", "gauge", None),
    ("speculation_stake_slashed_lamports_total", "counter", None),
    ("speculation_available_stake_lamports", "gauge", None),
    ("speculation_min_stake_lamports", "gauge", None),
    ("speculation_enabled", "gauge", None),
    ("speculation_breaker_state", "gauge", Some("state")),
    ("speculation_breaker_override", "gauge", Some("state")),
    ("speculation_slash_limit_lamports", "gauge", None),
    ("speculation_live_tasks", "gauge", None),
    ("speculation_time_to_expiry_ms", "gauge", None),
    ("speculation_spans_exported_total", "counter", None),
    ("speculation_spans_lost_total", "counter", Some("reason")),
];

/// Names as Prometheus stores them, with their kinds and labels (but not `le`).
fn families(text: &str) -> BTreeMap<String, (&str, Option<&str>)> {
    let mut families = BTreeMap::new();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    for (name, kind) in kinds {
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let mut label = None;
        for suffix in suffixes {
            let sampled = samples(text)
                .into_keys()
                .filter_map(|series| series.strip_prefix(name)?.strip_prefix(suffix))
                .filter(|rest| rest.is_empty() || rest.starts_with('{'))
                .collect::<Vec<_>>();
            assert!(!sampled.is_empty(), "{name}{suffix} has no sample");
            let labels = sampled.iter().filter_map(|rest| rest.strip_prefix('{')?.split_once('='));
            label = label.or_else(|| labels.map(|(label, _)| label).find(|&one| one != "le"));
        }
        let total = if kind == "counter" { "_total" } else { "" };
        let before = families.insert(format!("{name}{total}"), (kind, label));
        assert_eq!(before, None, "{name} is there twice");
    }
    families
}

#[test]
fn names_kinds_and_labels_are_those_of_the_source_and_a_few_of_ours() {
    let text = Metrics::new().encode();
    let expected: BTreeMap<_, _> = SOURCE
        .into_iter()
        .chain(OURS)
        .map(|(name, kind, label)| (name.to_owned(), (kind, label)))
        .collect();
    assert_eq!(families(&text), expected);
}

#[test]
fn every_sample_belongs_to_a_family_and_starts_at_zero() {
    let text = Metrics::new().encode();
    let families = families(&text);
    for (series, value) in samples(&text) {
        let name = series.split('{').next().expect("a split yields something");
        let family = ["", "_bucket", "_sum", "_count"]
            .iter()
            .filter_map(|suffix| name.strip_suffix(suffix))
            .find(|name| families.contains_key(*name));
        assert!(family.is_some(), "{series} belongs to no family");
        assert_eq!(value.to_bits(), 0, "{series} starts at {value}");
    }
}

#[test]
fn every_reason_is_counted_under_its_own_name() {
    for &reason in Reason::ALL {
        let metrics = Metrics::new();
        metrics.rejected(reason);
        let series = format!("speculation_tasks_rejected_total{{reason=\"{reason}\"}}");
        assert_eq!(changed(&metrics), BTreeSet::from([series]));
    }
    for &reason in RollbackReason::ALL {
        let metrics = Metrics::new();
        let rollback = Summary {
            trigger: Hash([1; 32]),
            reason,
            tasks: 0,
            slashed: Wei::ZERO,
            released: Wei::ZERO,
            at: 0,
        };
        metrics.rolled_back(&rollback, Duration::from_secs(3600));
        let counted = format!("speculation_rollbacks_total{{reason=\"{reason}\"}}");
        let took = "speculation_rollback_duration_ms_bucket{le=\"+Inf\"}".to_owned();
        let count = "speculation_rollback_duration_ms_count".to_owned();
        let sum = "speculation_rollback_duration_ms_sum".to_owned();
        assert_eq!(changed(&metrics), BTreeSet::from([counted, took, count, sum]));
    }
}

/// The series that are not at 0.
fn changed(metrics: &Metrics) -> BTreeSet<String> {
    let text = metrics.encode();
    let changed = samples(&text).into_iter().filter(|(_, value)| *value != 0.0);
    changed.map(|(series, _)| series.to_owned()).collect()
}

#[test]
fn times_are_in_milliseconds_and_thresholds_are_ends_of_buckets() {
    let metrics = Metrics::new();
    metrics.proof_generated(Duration::from_micros(34_500));
    metrics.proof_delivered(Duration::from_millis(60_000));
    metrics.confirmed(Some(Duration::from_millis(60_001)));
    metrics.confirmed(None);
    metrics.scheduled(20);
    let text = metrics.encode();
    let samples = samples(&text);
    let check = |series: &str, expected: f64| {
        let got = samples.get(format!("speculation_{series}").as_str());
        assert_eq!(got, Some(&expected), "{series} of\n{text}");
    };
    check("proof_generation_duration_ms_sum", 34.5);
    check("proof_generation_duration_ms_bucket{le=\"25.0\"}", 0.0);
    check("proof_generation_duration_ms_bucket{le=\"50.0\"}", 1.0);
    check("proof_submission_duration_ms_bucket{le=\"30000.0\"}", 0.0);
    check("proof_submission_duration_ms_bucket{le=\"60000.0\"}", 1.0);
    check("confirmation_latency_ms_bucket{le=\"60000.0\"}", 0.0);
    check("confirmation_latency_ms_count", 1.0);
    check("proofs_confirmed_total", 2.0);
    check("chain_depth_bucket{le=\"19.0\"}", 0.0);
    check("chain_depth_bucket{le=\"20.0\"}", 1.0);
}

/// A machine whose actions are counted as they happen.
struct Counted {
    machine: Speculation,
    metrics: Metrics,
    now: u64,
}

impl Counted {
    fn schedule(&mut self, task: u8, parents: &[u8]) {
        let parents: Vec<TaskId> = parents.iter().map(|&parent| Hash([parent; 32])).collect();
        let parents = reads(&parents);
        let request = RunRequest::new(Hash([task; 32]), &parents, self.now + 600_000);
        match self.machine.schedule(request, self.now) {
            Ok(scheduled) => self.metrics.scheduled(scheduled.depth),
            Err(refused) => self.metrics.rejected(refused.reason),
        }
    }

    fn complete(&mut self, task: u8) {
        let opening = Opening {
            output_commitment: Hash([task; 32]),
            constraint_hash: Hash([task; 32]),
            salt: [task; 32],
        };
        let proof = [task; PROOF_BYTES];
        let done = self.machine.complete(Hash([task; 32]), opening, &proof, self.now);
        done.expect("the task waits for its output");
        self.metrics.proof_generated(Duration::from_millis(34));
    }

    /// Carries out the machine's outputs; the chain refuses the proof of task `refused`.
    fn run(&mut self, refused: u8) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                EngineOutput::Submit { task, submission, .. } => {
                    self.metrics.proof_submitted();
                    self.metrics.proof_delivered(Duration::from_millis(3));
                    let bad = task == Hash([refused; 32]);
                    let answer =
                        if bad { SubmissionResult::Rejected } else { SubmissionResult::Confirmed };
                    if bad {
                        self.metrics.proof_failed();
                    }
                    self.now += 250;
                    let answered = self.machine.answer(task, submission, answer, self.now);
                    answered.expect("the submission is in flight");
                }
                EngineOutput::Confirmed { .. } => {
                    self.metrics.confirmed(Some(Duration::from_millis(250)));
                }
                EngineOutput::RolledBack(plan) => {
                    self.metrics.rolled_back(&plan.summary, Duration::from_micros(9));
                }
                EngineOutput::Prove { .. }
                | EngineOutput::LateSuccess { .. }
                | EngineOutput::Breaker(_)
                | EngineOutput::TryChain { .. }
                | EngineOutput::ChainBack { .. } => {}
            }
        }
    }
}

#[test]
fn what_is_exported_is_what_the_machine_counted() {
    let config = Config::default().with([("enabled", "true"), ("maxDepth", "3")]);
    let mut machine = Speculation::new(config.expect("both are in range"), 0);
    machine.set_stake(Wei::new(5_000_000_000_000));
    let mut counted = Counted { machine, metrics: Metrics::new(), now: 0 };
    // 1 ← 2 ← 3 ← 4, of which 3 fails; 5 would be too deep; 6 has no known parent.
    counted.schedule(1, &[]);
    for task in 2..=5 {
        counted.schedule(task, &[task - 1]);
    }
    counted.schedule(6, &[99]);
    counted.schedule(1, &[]);
    for task in 1..=4 {
        counted.complete(task);
    }
    counted.run(3);
    counted.schedule(7, &[2]);
    counted.schedule(8, &[7]);
    counted.complete(7);

    let Counted { machine, metrics, .. } = &counted;
    metrics.set(&GaugeValues::of(machine));
    let text = metrics.encode();
    let exported = samples(&text);
    let check = |series: &str, expected: u64| {
        let got = exported.get(format!("speculation_{series}").as_str());
        assert_eq!(got, Some(&(expected as f64)), "{series} of\n{text}");
    };
    let Counters {
        tasks_scheduled,
        tasks_rejected,
        proofs_submitted,
        proofs_confirmed,
        proofs_failed,
        rollbacks,
        tasks_rolled_back,
    } = machine.counters();
    assert_eq!((*tasks_scheduled, *proofs_confirmed, *tasks_rolled_back), (6, 2, 2));
    check("tasks_scheduled_total", *tasks_scheduled);
    check("proofs_confirmed_total", *proofs_confirmed);
    check("proofs_failed_total", *proofs_failed);
    check("tasks_rolled_back_total", *tasks_rolled_back);
    // The proof of 7 is handed out, but not yet counted.
    check("proofs_submitted_total", proofs_submitted - 1);
    for (&reason, place) in Reason::ALL.iter().zip(0usize..) {
        let expected = tasks_rejected.get(place).copied().unwrap_or_default();
        check(&format!("tasks_rejected_total{{reason=\"{reason}\"}}"), expected);
    }
    for (&reason, place) in RollbackReason::ALL.iter().zip(0usize..) {
        let expected = rollbacks.get(place).copied().unwrap_or_default();
        check(&format!("rollbacks_total{{reason=\"{reason}\"}}"), expected);
    }
    let slashed = machine.stake().slashed.get();
    assert_eq!(slashed, 20_000_000_000, "a tenth of a bond of 100 CBY and twice 50 CBY");
    check("stake_slashed_lamports_total", 20_000_000_000);
    check("available_stake_lamports", 4_980_000_000_000);
    check("locked_stake_lamports", 250_000_000_000);
    check("min_stake_lamports", 100_000_000_000);
    check("active_commitments", 1);
    check("pending_proofs", 1);
    check("proofs{stage=\"submitting\"}", 1);
    check("proofs{stage=\"queued\"}", 0);
    check("proof_workers", 4);
    check("confirmation_timeout_ms", 30_000);
    check("max_depth_current", 1);
    check("enabled", 1);
    check("breaker_state{state=\"closed\"}", 1);
    check("breaker_state{state=\"open\"}", 0);
    check("chain_depth_count", 6);
    check("rollback_duration_ms_bucket{le=\"0.01\"}", 1);
}

#[test]
fn the_breaker_and_the_switch_are_seen() {
    let config = Config::default().with([("enabled", "true")]).expect("a flag");
    let mut machine = Speculation::new(config, 0);
    let metrics = Metrics::new();
    let check = |machine: &Speculation, enabled: bool, state: BreakerState| {
        metrics.set(&GaugeValues::of(machine));
        let states: BTreeSet<_> = changed(&metrics)
            .into_iter()
            .filter(|one| one.contains("breaker_state") || one.contains("enabled"))
            .collect();
        let mut expected =
            BTreeSet::from([format!("speculation_breaker_state{{state=\"{state}\"}}")]);
        expected.extend(enabled.then(|| "speculation_enabled".to_owned()));
        assert_eq!(states, expected);
    };
    check(&machine, true, BreakerState::Closed);
    machine.set_stake(Wei::cby(5_000));
    for task in 1..=5 {
        let request = RunRequest::new(Hash([task; 32]), &[], 600_000);
        machine.schedule(request, 1_000).expect("there is room for it");
        machine.fail(Hash([task; 32]), RollbackReason::ProofFailed, 1_000).expect("it is live");
    }
    check(&machine, true, BreakerState::Open);
    machine.advance(61_001);
    check(&machine, true, BreakerState::HalfOpen);
    machine.configure([("enabled", "false")], 61_001).expect("a flag");
    check(&machine, false, BreakerState::HalfOpen);
    let held = |machine: &Speculation, to: &str| {
        metrics.set(&GaugeValues::of(machine));
        let held = format!("speculation_breaker_override{{state=\"{to}\"}}");
        assert!(changed(&metrics).contains(&held), "{held}");
    };
    held(&machine, "none");
    machine.configure([("breaker.override", "closed")], 61_002).expect("a name");
    held(&machine, "closed");
    check(&machine, false, BreakerState::Closed);
}
