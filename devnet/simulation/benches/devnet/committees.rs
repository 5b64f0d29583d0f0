//! Throughput and latency of jobs with committees of a given size.

use crate::whole::{self, Whole, interval, verified};
use cowboy_devnet::sample::spec;
use cowboy_engine::job::spec::{JobSpec, Verification, VerificationMode};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// Four validators, and runners for all jobs that are submitted at once.
const TOPOLOGY: &str = "name: bench
chain: {block_time: 100ms}
accounts: {count: 1}
runners: [RUNNERS]
";
const RUNNERS: usize = 16;
const AT_A_TIME: usize = 32;
/// Timeout of a job in blocks, long enough that no runner is late.
const TIMEOUT: u64 = 2_000;
/// Number of jobs before the measurement.
const WARM_UP: usize = 5;

/// The results for one committee size.
pub struct Committee {
    /// Jobs per second when many are submitted at once.
    pub rate: f64,
    /// For jobs one at a time: time from the request that submits a job until its end is known.
    pub latencies: Vec<Duration>,
    /// Number of blocks during the concurrent jobs, and the mean pause between them.
    pub blocks: u64,
    pub interval: Duration,
}

/// A devnet's topology with its runners.
pub fn topology(phase: &str) -> String {
    let runner = |i| format!("{{name: runner-{i}, max_concurrent_jobs: {AT_A_TIME}}}");
    let runners: Vec<_> = (0..RUNNERS).map(runner).collect();
    let migration = format!("migration: {{phase: {phase}}}\n");
    TOPOLOGY.replace("RUNNERS", &runners.join(", ")) + &migration
}

/// Runs `jobs` jobs at once with committees of this size, then `single` jobs one after the other.
/// The work is to run `echo`.
pub fn committee(size: u32, jobs: usize, single: usize) -> Committee {
    whole::with(&topology("hot-path"), async |devnet| {
        let spec = spec_of(size);
        one_by_one(devnet, &spec, WARM_UP).await;
        let rate = at_once(devnet, &spec, jobs).await;
        Committee { rate, ..one_by_one(devnet, &spec, single).await }
    })
}

fn spec_of(size: u32) -> JobSpec {
    let mut spec = spec(TIMEOUT);
    spec.bounds.expected_execution_ms = 60_000;
    if size > 1 {
        spec.verification = Verification::of(VerificationMode::Deterministic, size);
    }
    spec
}

async fn at_once(devnet: &mut Whole, spec: &JobSpec, jobs: usize) -> f64 {
    let begun = Instant::now();
    let mut open = BTreeSet::new();
    for _ in 0..jobs {
        open.insert(devnet.submit(spec.clone()).await);
    }
    while !open.is_empty() {
        let notice = devnet.next().await;
        for job in verified(&notice) {
            open.remove(&job);
        }
    }
    jobs as f64 / begun.elapsed().as_secs_f64()
}

async fn one_by_one(devnet: &mut Whole, spec: &JobSpec, jobs: usize) -> Committee {
    devnet.next().await;
    let begun = (Instant::now(), devnet.head);
    let (mut latencies, mut blocks) = (Vec::new(), 0);
    for _ in 0..jobs {
        let (submitted, head) = (Instant::now(), devnet.head);
        let job = devnet.submit(spec.clone()).await;
        loop {
            let notice = devnet.next().await;
            if verified(&notice).any(|done| done == job) {
                break;
            }
        }
        latencies.push(submitted.elapsed());
        blocks += devnet.head - head;
    }
    let interval = interval(begun, (Instant::now(), devnet.head));
    Committee { rate: 0.0, latencies, blocks, interval }
}
