//! The same jobs pushed over connections, and fetched over HTTP by polling clients, as before there
//! were connections: they poll at an interval, and hand in a result as soon as they have it.

use crate::{
    committees::topology,
    whole::{self, Whole, verified},
};
use cowboy_devnet::{
    client::Client,
    executor::Executor,
    runner::Worker as _,
    sample::spec,
    topology::{Overrides, Topology},
    types::{Bytes, PolledJob, ResultRequest, Text},
};
use cowboy_engine::{
    job::spec::{JobSpec, Work},
    primitives::{Hash, SecretKey, codec::from_slice},
    wire::{Body, JobResult},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant, SystemTime},
};
use tokio::{sync::oneshot, task::JoinSet};

/// Timeout of a job in blocks, long enough that no runner is late.
const TIMEOUT: u64 = 2_000;

/// Latencies of jobs.
#[derive(Default)]
pub struct Delivery {
    /// Time from when a validator learns that the block with the assignment is final until the
    /// job's command runs.
    pub starts: Vec<Duration>,
    /// Time from the request that submits a job until its end is known.
    pub ends: Vec<Duration>,
}

/// Submits one of `jobs` jobs with each block. They are pushed, or fetched at this interval.
pub fn delivery(jobs: usize, polled: Option<Duration>) -> Delivery {
    let phase = if polled.is_some() { "shadow" } else { "hot-path" };
    let topology = topology(phase);
    whole::with(&topology, async |devnet| {
        let mut polling = JoinSet::new();
        if let Some(interval) = polled {
            let names = devnet.client.runners().await.expect("it answers");
            let (of, mut wait) = (names.len(), Duration::ZERO);
            for (key, runner) in keys(&topology).into_iter().zip(names) {
                devnet.client.stop_runner(&runner.name).await.expect("it runs");
                let chain_id = devnet.parameters.chain_id.0.0;
                let poller = Poller { client: devnet.client.clone(), key, chain_id };
                polling.spawn(poller.poll(wait, interval));
                // The pollers are not synchronized.
                wait += interval / u32::try_from(of).expect("few");
            }
        }
        // Waits until all have begun, so that the first jobs are like the others.
        let begun = Instant::now();
        while begun.elapsed() < polled.unwrap_or_default() {
            devnet.next().await;
        }
        let delivery = work(devnet, jobs).await;
        polling.shutdown().await;
        delivery
    })
}

/// The runners' keys, in the topology's order.
fn keys(topology: &str) -> Vec<SecretKey> {
    let parsed = Topology::parse(topology, "bench.yaml").expect("a topology");
    let plan = parsed.resolve(&Overrides::default(), topology, "bench.yaml").expect("a plan");
    plan.runners.iter().map(|runner| plan.key(&runner.name)).collect()
}

/// A job whose result is its start time, in nanoseconds since 1970.
fn clock() -> JobSpec {
    let mut spec = spec(TIMEOUT);
    spec.bounds.expected_execution_ms = 60_000;
    if let Work::Custom(command) = &mut spec.work {
        command.program = "date".to_owned();
        command.args = vec!["+%s%N".to_owned()];
    }
    spec
}

async fn work(devnet: &mut Whole, jobs: usize) -> Delivery {
    let (mut submitted, mut assigned) = (BTreeMap::new(), BTreeMap::new());
    let mut delivery = Delivery::default();
    while delivery.ends.len() < jobs {
        if submitted.len() < jobs {
            let begun = Instant::now();
            submitted.insert(devnet.submit(clock()).await, begun);
        }
        let notice = devnet.next().await;
        let known = notice.finalized_at.map(|at| SystemTime::from(at.0));
        for event in notice.events.iter().filter(|event| event.kind == "JobAssigned") {
            assigned.insert(event.job_id.expect("of a job").0, known.expect("it was told"));
        }
        delivery.ends.extend(verified(&notice).map(|job| submitted[&job].elapsed()));
    }
    for (job, assigned) in assigned {
        let result = devnet.client.job_result(&job.to_string()).await.expect("it is verified");
        let text = result.result_text.expect("digits");
        let started = Duration::from_nanos(text.trim().parse().expect("nanoseconds"));
        let started = SystemTime::UNIX_EPOCH + started;
        // Another validator may have learned of it earlier.
        delivery.starts.push(started.duration_since(assigned).unwrap_or_default());
    }
    delivery
}

/// A runner that polls.
#[derive(Clone)]
struct Poller {
    client: Client,
    key: SecretKey,
    chain_id: u64,
}

impl Poller {
    async fn poll(self, wait: Duration, interval: Duration) {
        let runner = self.key.address().to_string();
        let (mut taken, mut working): (BTreeSet<Hash>, _) = (BTreeSet::new(), JoinSet::new());
        let mut turns = tokio::time::interval_at(tokio::time::Instant::now() + wait, interval);
        loop {
            turns.tick().await;
            let answer = self.client.polled_jobs(&runner).await.expect("it is polled");
            for job in answer.jobs {
                if taken.insert(job.job_id.0) {
                    working.spawn(self.clone().work(job));
                }
            }
            while working.try_join_next().is_some() {}
        }
    }

    async fn work(self, job: PolledJob) {
        let (_keep, cancelled) = oneshot::channel();
        let spec: JobSpec = from_slice(&job.spec.0).expect("a job");
        let done = Executor::default().work(&spec, cancelled, || (), |_| ()).await;
        let body = Body::new(done.expect("it knows the time")).expect("short");
        let result = JobResult::signed(self.chain_id, &self.key, job.job_id.0, body);
        let request = ResultRequest {
            job_id: job.job_id,
            result: Text(Bytes(result.result_data.as_bytes().to_vec())),
            runner_signature: Text(Bytes(result.runner_signed.as_bytes().to_vec())),
        };
        let runner = self.key.address().to_string();
        self.client.hand_in(&runner, &request).await.expect("it is wanted");
    }
}
