//! Committees of runners that commit and reveal while validators and runners die and connections
//! break.

use super::*;
use commonware_runtime::Supervisor as _;
use cowboy_devnet::{
    runner::{
        Worker,
        worker::{Pretended, TaskProgress, WorkCancelled},
    },
    sample::spec,
};
use cowboy_engine::{
    chain::EventKind,
    job::spec::{Job, JobSpec, JobStatus, Outcome, Verification, VerificationMode},
    primitives::{Address, Wei},
};
use cowboy_simulation::devnet::{BLOCK_TIME, Devnet, Plan, runner_key, validator_key};
use std::{
    convert::Infallible,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

const VALIDATORS: usize = 4;
/// The size of the committee.
const RUNNERS: usize = 3;
const TIMEOUT_BLOCKS: u64 = 40;
/// The slowest runner's working time, in tests where a participant has to wait for it.
const SLOW: Duration = Duration::from_secs(2);

/// A job whose three runners must return the same bytes.
fn shared() -> JobSpec {
    let verification = Verification::of(VerificationMode::Deterministic, RUNNERS as u32);
    JobSpec { verification, ..spec(TIMEOUT_BLOCKS) }
}

/// A devnet whose runners take these times for a job.
async fn devnet(context: &deterministic::Context, delays: [Duration; RUNNERS]) -> Devnet {
    let plan = Plan::new(VALIDATORS, RUNNERS);
    let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
    for (runner, delay) in delays.into_iter().enumerate() {
        let worker = Pretended { clock: context.child("worker"), delay };
        devnet.start_runner_with(runner, worker);
    }
    reach(&devnet, 6).await;
    devnet
}

fn height(devnet: &Devnet) -> u64 {
    devnet.cluster.heights().1.get()
}

async fn reach(devnet: &Devnet, height: u64) {
    assert!(devnet.cluster.reach(height, 10 * MINUTE).await, "stuck before {height}");
}

/// The job in the state of the running validator with the highest head.
fn job(devnet: &Devnet, job_id: &Hash) -> Option<Job> {
    let heads = devnet.cluster.running().map(|validator| validator.services().ledger.head());
    heads.max_by_key(|state| state.height())?.job(job_id).cloned()
}

/// Waits for a state of the job, for the time of two attempts.
async fn until(devnet: &Devnet, job_id: &Hash, is: impl Fn(&JobStatus) -> bool) -> Job {
    let last = height(devnet) + 2 * TIMEOUT_BLOCKS;
    while height(devnet) < last {
        if let Some(job) = job(devnet, job_id).filter(|job| is(&job.status)) {
            return job;
        }
        devnet.cluster.pass(BLOCK_TIME / 5).await;
    }
    panic!("the job is {:?}", job(devnet, job_id));
}

async fn verified(devnet: &Devnet, job_id: &Hash) -> (Job, Outcome) {
    let is_over = |status: &JobStatus| {
        matches!(status, JobStatus::Verified(..) | JobStatus::Failed(_) | JobStatus::Cancelled(_))
    };
    let job = until(devnet, job_id, is_over).await;
    match &job.status {
        JobStatus::Verified(_, outcome) => {
            // By then, every store has the events.
            reach(devnet, outcome.height.get() + 1).await;
            (job.clone(), outcome.clone())
        }
        status => panic!("the job came to {status:?}"),
    }
}

/// Waits until this runner has committed, but not all runners.
async fn committed(devnet: &Devnet, job_id: &Hash, runner: Address) {
    let has = |status: &JobStatus| match status {
        JobStatus::Running(round) => round.commitment(&runner).is_some(),
        _ => false,
    };
    until(devnet, job_id, has).await;
}

/// The events of a job in a running validator's store.
fn events(devnet: &Devnet, job_id: &Hash) -> Vec<EventKind> {
    let running = (0..VALIDATORS).find(|index| devnet.cluster.validator(*index).is_some());
    let store = devnet.cluster.store(running.expect("one runs"));
    let events = store.events_of(job_id).expect("it answers");
    events.into_iter().map(|stored| stored.event.kind).collect()
}

/// Whether the aggregator was paid.
fn is_aggregated(devnet: &Devnet, job_id: &Hash) -> bool {
    events(devnet, job_id)
        .iter()
        .any(|event| matches!(event, EventKind::RunnerPaid(paid) if paid.aggregation > Wei::ZERO))
}

/// The runner that aggregates: with equal reputations, the one with the lowest address.
fn aggregator() -> usize {
    (0..RUNNERS).min_by_key(|runner| runner_key(*runner).address()).expect("there are some")
}

#[test]
fn three_runners_commit_reveal_and_agree() {
    for seed in 0..3 {
        run(seed, async |context| {
            let devnet = devnet(&context, [BLOCK_TIME, 2 * BLOCK_TIME, 3 * BLOCK_TIME]).await;
            let jobs: Vec<_> = (0..4).filter_map(|from| devnet.submit(from, shared())).collect();
            assert_eq!(jobs.len(), 4);
            for job_id in &jobs {
                let (job, outcome) = verified(&devnet, job_id).await;
                assert_eq!((outcome.agreeing.len(), job.attempt.number), (RUNNERS, 0));
                assert!(is_aggregated(&devnet, job_id));
                assert!(outcome.height < job.commit_deadline(), "no one waits for a deadline");
            }
            for runner in devnet.runners.values() {
                assert_eq!(runner.load().active_jobs, 0);
            }
            settle(&devnet.cluster).await;
        });
    }
}

#[test]
fn a_validator_that_dies_between_commitments_and_reveals_loses_nothing() {
    for validator in 0..VALIDATORS {
        for returns in [false, true] {
            run(validator as u64, async |context| {
                let mut devnet = devnet(&context, [BLOCK_TIME, BLOCK_TIME, SLOW]).await;
                let job_id = devnet.submit(0, shared()).expect("a mempool with room");
                committed(&devnet, &job_id, runner_key(0).address()).await;
                devnet.cluster.stop(validator).await;
                if returns {
                    devnet.cluster.pass(BLOCK_TIME).await;
                    devnet.cluster.start(validator).expect("it starts again");
                }
                let (_, outcome) = verified(&devnet, &job_id).await;
                assert_eq!(outcome.agreeing.len(), RUNNERS, "validator {validator}");
                assert!(is_aggregated(&devnet, &job_id));
            });
        }
    }
}

#[test]
fn a_runner_that_is_cut_off_between_commitment_and_reveal_reveals_when_it_is_back() {
    run(0, async |context| {
        let devnet = devnet(&context, [BLOCK_TIME, BLOCK_TIME, SLOW]).await;
        let job_id = devnet.submit(0, shared()).expect("a mempool with room");
        committed(&devnet, &job_id, runner_key(0).address()).await;
        for validator in 0..VALIDATORS {
            devnet.cut_runner(0, validator);
        }
        let (job, outcome) = verified(&devnet, &job_id).await;
        assert_eq!(outcome.agreeing.len(), RUNNERS - 1, "two of three are enough");
        assert!(outcome.height < job.commit_deadline(), "no one waits for a deadline");
        assert_eq!(withheld(&devnet, &job_id), [runner_key(0).address()]);
        for validator in 0..VALIDATORS {
            devnet.restore_runner(0, validator);
        }
        while !withheld(&devnet, &job_id).is_empty() {
            assert!(height(&devnet) < job.deadline().get(), "it is asked for its result");
            devnet.cluster.pass(BLOCK_TIME / 5).await;
        }
        reach(&devnet, job.deadline().get() + 2).await;
        assert_eq!(reputation(&devnet, 0), 100, "it has shown what it committed to");
    });
}

/// The runners that committed to a result of a verified job and have not revealed it.
fn withheld(devnet: &Devnet, job_id: &Hash) -> Vec<Address> {
    let state = devnet.state(0).expect("it runs");
    let withheld = state.withheld_of(job_id).into_iter().flat_map(|withheld| &withheld.commitments);
    withheld.map(|commitment| commitment.runner).collect()
}

fn reputation(devnet: &Devnet, runner: usize) -> u32 {
    let state = devnet.state(0).expect("it runs");
    state.registry().get(&runner_key(runner).address()).expect("it is registered").reputation
}

/// Counts the jobs it works on.
struct Counting {
    usual: Pretended<deterministic::Context>,
    works: Arc<AtomicUsize>,
}

impl Worker for Counting {
    type Error = Infallible;

    async fn work(
        &self,
        spec: &JobSpec,
        cancelled: WorkCancelled,
        started: impl FnOnce() + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, Infallible> {
        self.works.fetch_add(1, Ordering::Relaxed);
        self.usual.work(spec, cancelled, started, progress).await
    }
}

#[test]
fn a_runner_that_is_killed_between_commitment_and_reveal_reveals_what_it_committed_to() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..3 {
        run(seed, async |context| {
            let mut devnet = devnet(&context, [BLOCK_TIME, BLOCK_TIME, SLOW]).await;
            devnet.kill_runner(0).await;
            devnet.keep_commitments(folder.path().join(seed.to_string()));
            let works = Arc::new(AtomicUsize::new(0));
            let worker = || {
                let usual = Pretended { clock: context.child("worker"), delay: BLOCK_TIME };
                Counting { usual, works: works.clone() }
            };
            devnet.start_runner_with(0, worker());
            reach(&devnet, height(&devnet) + 6).await;
            let job_id = devnet.submit(0, shared()).expect("a mempool with room");
            committed(&devnet, &job_id, runner_key(0).address()).await;
            devnet.kill_runner(0).await;
            devnet.cluster.pass(BLOCK_TIME).await;
            devnet.start_runner_with(0, worker());
            let (job, outcome) = verified(&devnet, &job_id).await;
            assert_eq!((outcome.agreeing.len(), job.attempt.number), (RUNNERS, 0));
            assert_eq!(works.load(Ordering::Relaxed), 1, "the work was done");
            assert!(outcome.height < job.commit_deadline(), "no one waits for a deadline");
        });
    }
}

#[test]
fn one_connection_is_enough_for_a_runner_to_reveal() {
    for kept in 0..VALIDATORS {
        run(kept as u64, async |context| {
            let devnet = devnet(&context, [BLOCK_TIME, BLOCK_TIME, SLOW]).await;
            let job_id = devnet.submit(0, shared()).expect("a mempool with room");
            let runner = runner_key(0);
            committed(&devnet, &job_id, runner.address()).await;
            let state = devnet.state(0).expect("it runs");
            let subset = state.subsets_of(&runner.public_key());
            let kept = subset[kept % subset.len()].pubkey.clone();
            for validator in 0..VALIDATORS {
                if validator_key(validator) != kept {
                    devnet.cut_runner(0, validator);
                }
            }
            let (_, outcome) = verified(&devnet, &job_id).await;
            assert_eq!(outcome.agreeing.len(), RUNNERS);
        });
    }
}

#[test]
fn without_the_aggregator_the_others_reveal_for_themselves() {
    run(0, async |context| {
        let aggregator = aggregator();
        let mut delays = [SLOW; RUNNERS];
        delays[aggregator] = BLOCK_TIME;
        let mut devnet = devnet(&context, delays).await;
        let job_id = devnet.submit(0, shared()).expect("a mempool with room");
        committed(&devnet, &job_id, runner_key(aggregator).address()).await;
        devnet.runners.remove(&aggregator).expect("it runs").kill().await;
        let closed = |status: &JobStatus| matches!(status, JobStatus::Committed(_));
        let at = until(&devnet, &job_id, closed).await;
        let from = at.own_reveals_from().expect("it is closed");
        let (job, outcome) = verified(&devnet, &job_id).await;
        assert_eq!(outcome.agreeing.len(), RUNNERS - 1);
        let waited = outcome.height.since(from);
        assert!(outcome.height >= from && waited <= 3, "{waited} blocks after {from}");
        assert!(!is_aggregated(&devnet, &job_id));
        reach(&devnet, job.deadline().get() + 2).await;
        assert_eq!(reputation(&devnet, aggregator), 95, "it never showed its result");
        settle(&devnet.cluster).await;
    });
}

#[test]
fn a_runner_that_commits_to_nothing_holds_nobody_up_for_longer_than_its_time() {
    run(0, async |context| {
        let devnet = devnet(&context, [BLOCK_TIME, BLOCK_TIME, 2 * MINUTE]).await;
        let job_id = devnet.submit(0, shared()).expect("a mempool with room");
        let (job, outcome) = verified(&devnet, &job_id).await;
        assert_eq!(outcome.agreeing.len(), RUNNERS - 1);
        assert!(is_aggregated(&devnet, &job_id));
        assert!(outcome.height <= job.commit_deadline().after(6), "{:?}", outcome.height);
        // It was told to stop.
        reach(&devnet, height(&devnet) + 3).await;
        assert_eq!(devnet.runners[&2].load().active_jobs, 0);
    });
}

/// Returns a result of its own for its first job.
struct Fickle {
    usual: Pretended<deterministic::Context>,
    own: u8,
    is_experienced: AtomicBool,
}

impl Worker for Fickle {
    type Error = Infallible;

    async fn work(
        &self,
        spec: &JobSpec,
        cancelled: WorkCancelled,
        started: impl FnOnce() + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, Infallible> {
        let result = self.usual.work(spec, cancelled, started, progress).await?;
        match self.is_experienced.swap(true, Ordering::Relaxed) {
            true => Ok(result),
            false => Ok(vec![self.own]),
        }
    }
}

#[test]
fn runners_that_did_not_agree_do_the_job_again() {
    run(0, async |context| {
        let plan = Plan::new(VALIDATORS, RUNNERS);
        let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
        for runner in 0..RUNNERS {
            let usual = Pretended { clock: context.child("worker"), delay: BLOCK_TIME };
            let is_experienced = AtomicBool::new(false);
            let worker = Fickle { usual, own: runner as u8, is_experienced };
            devnet.start_runner_with(runner, worker);
        }
        reach(&devnet, 6).await;
        let job_id = devnet.submit(0, shared()).expect("a mempool with room");
        let (job, outcome) = verified(&devnet, &job_id).await;
        assert_eq!((outcome.agreeing.len(), job.attempt.number), (RUNNERS, 1));
        assert!(is_aggregated(&devnet, &job_id));
        settle(&devnet.cluster).await;
    });
}
