//! Runners that are killed, paused and cut off while jobs arrive, and validators that die with a
//! job in hand: each job ends once, and presence follows.

use super::*;
use commonware_runtime::Supervisor as _;
use commonware_utils::sync::Mutex;
use cowboy_devnet::{
    runner::{
        Worker,
        node::Activity,
        worker::{Pretended, TaskProgress, WorkCancelled},
    },
    sample::spec,
    transport::{DIAL_TIMEOUT, IDLE_TIMEOUT},
};
use cowboy_engine::{
    chain::{EventKind, Payload, transaction::SubmitResult},
    job::spec::{JobSpec, JobStatus},
    presence::{Connectivity, subset},
    primitives::{PublicKey, Wei},
    wire::{Body, CancelReason, JobResult},
};
use cowboy_simulation::{
    devnet::{BLOCK_TIME, Devnet, Plan, runner_key, validator_key},
    invariant::Invariants,
    scenario::{check, watch},
};
use rand::RngExt as _;
use std::{collections::BTreeMap, convert::Infallible};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};

const VALIDATORS: usize = 4;
const RUNNERS: usize = 8;
/// Dial, hello and answer over a runner's link, each message sent twice.
const HANDSHAKE: Duration = Duration::from_millis(6 * 120);

/// A devnet whose runners' jobs take one block time.
async fn devnet(context: &deterministic::Context) -> Devnet {
    Devnet::new(context.child("devnet"), VALIDATORS, RUNNERS).await.expect("a devnet")
}

fn height(devnet: &Devnet) -> u64 {
    devnet.cluster.heights().1.get()
}

async fn reach(devnet: &Devnet, height: u64) {
    assert!(devnet.cluster.reach(height, 10 * MINUTE).await, "stuck before {height}");
}

/// Runs up to a height and submits a job with each block.
async fn work(devnet: &Devnet, to: u64) -> Vec<Hash> {
    let mut jobs = Vec::new();
    while height(devnet) < to {
        jobs.extend(devnet.submit(jobs.len() % 4, spec(12)));
        reach(devnet, height(devnet) + 1).await;
    }
    jobs
}

/// Whether P of a block has the runner; `None` if the chain has no P of that block.
fn is_present(devnet: &Devnet, runner: usize, height: u64) -> Option<bool> {
    let stored = devnet.cluster.store(0).presence(Height::new(height)).expect("it answers")?;
    let address = runner_key(runner).address();
    let index = stored.registry.as_slice().iter().position(|one| *one == address)?;
    Some(stored.bitmap().expect("a bitmap").get(index as u32))
}

/// The heights at which the runner is present, or absent.
pub(super) fn heights_where(
    devnet: &Devnet,
    runner: usize,
    present: bool,
    heights: impl Iterator<Item = u64>,
) -> Vec<u64> {
    heights.filter(|height| is_present(devnet, runner, *height) == Some(present)).collect()
}

fn said(activities: &mut Receiver<Activity>) -> Vec<Activity> {
    let next = || match activities.try_recv() {
        Ok(activity) => Some(activity),
        Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        Err(TryRecvError::Lagged(missed)) => panic!("{missed} activities were missed"),
    };
    std::iter::from_fn(next).collect()
}

fn balance(state: &State, name: &str) -> Wei {
    state.account(&key(name).address()).balance
}

/// Checks that each job has exactly one end and that payments agree. Returns the verified and
/// failed jobs.
fn ends(devnet: &Devnet, jobs: &[Hash]) -> (usize, usize) {
    let state = devnet.state(0).expect("it runs");
    let mut earned: BTreeMap<_, Wei> = BTreeMap::new();
    let (mut verified, mut failed) = (0, 0);
    for job_id in jobs {
        let job = state.job(job_id).expect("no job is lost");
        let escrow = job.spec.escrow();
        let events = devnet.cluster.store(0).events_of(job_id).expect("it answers");
        let ended: Vec<_> = events
            .iter()
            .filter_map(|stored| match &stored.event.kind {
                EventKind::JobVerified(end) => Some((stored.height, end.refunded, Some(end))),
                EventKind::JobFailed(end) => Some((stored.height, end.refunded, None)),
                _ => None,
            })
            .collect();
        let [(at, refunded, end)] = ended[..] else {
            panic!("job {job_id} ended {} times: {:?}", ended.len(), job.status);
        };
        match (&job.status, end) {
            (JobStatus::Verified(assignment, outcome), Some(end)) => {
                assert_eq!(end.paid.checked_add(refunded), Some(escrow), "{job_id}");
                assert!(assignment.committee.contains(&end.runner), "{job_id}");
                assert_eq!((outcome.runner, outcome.paid), (end.runner, end.paid), "{job_id}");
                let earned = earned.entry(end.runner).or_default();
                *earned = earned.checked_add(end.paid).expect("little money");
                verified += 1;
            }
            (JobStatus::Failed(_), None) => {
                assert_eq!((at, refunded), (job.deadline(), escrow), "{job_id}");
                failed += 1;
            }
            (status, _) => panic!("job {job_id} is {status:?} and its event says otherwise"),
        }
    }
    // Runners begin with nothing but their stake, so this catches double and undue payments.
    for runner in 0..RUNNERS {
        let address = runner_key(runner).address();
        let earned = earned.get(&address).copied().unwrap_or_default();
        assert_eq!(state.account(&address).balance, earned, "runner {runner}");
    }
    (verified, failed)
}

/// The fault of a runner.
#[derive(Debug, Clone, Copy)]
enum Outage {
    Killed,
    Paused,
    CutOff,
    /// Cut off from one validator of its subset, by index.
    CutOffFrom(usize),
}

/// A runner's outage until a height.
struct Ongoing {
    runner: usize,
    what: Outage,
    until: u64,
}

async fn begin(devnet: &mut Devnet, runner: usize, what: Outage) {
    match what {
        Outage::Killed => devnet.runners.remove(&runner).expect("it runs").kill().await,
        Outage::Paused => devnet.runners[&runner].pause(true),
        Outage::CutOff => (0..VALIDATORS).for_each(|v| devnet.cut_runner(runner, v)),
        Outage::CutOffFrom(validator) => devnet.cut_runner(runner, validator),
    }
}

fn end(devnet: &mut Devnet, runner: usize, what: Outage) {
    match what {
        Outage::Killed => devnet.start_runner(runner),
        Outage::Paused => devnet.runners[&runner].pause(false),
        Outage::CutOff => (0..VALIDATORS).for_each(|v| devnet.restore_runner(runner, v)),
        Outage::CutOffFrom(validator) => devnet.restore_runner(runner, validator),
    }
}

/// Eighty blocks with one or two jobs each, some with short deadlines; every few blocks a runner
/// has an outage for a while. Returns the numbers of verified, failed and retried jobs.
async fn stormy(mut context: deterministic::Context) -> (usize, usize, usize) {
    const BLOCKS: u64 = 80;
    let mut devnet = devnet(&context).await;
    let supply = devnet.cluster.genesis().state().expect("a chain").supply().total();
    let mut invariants = Invariants::new(supply);
    let mut watching: Vec<_> = (0..VALIDATORS).map(|v| watch(&devnet.cluster, v)).collect();
    let mut ongoing: Vec<Ongoing> = Vec::new();
    let mut jobs = Vec::new();
    reach(&devnet, 4).await;
    while height(&devnet) < BLOCKS {
        let now = height(&devnet);
        for over in ongoing.extract_if(.., |outage| outage.until <= now) {
            end(&mut devnet, over.runner, over.what);
        }
        let runner = context.random_range(0..RUNNERS);
        if context.random_range(0..3) == 0 && ongoing.iter().all(|o| o.runner != runner) {
            let what = match context.random_range(0..4) {
                0 => Outage::Killed,
                1 => Outage::Paused,
                2 => Outage::CutOff,
                _ => Outage::CutOffFrom(context.random_range(0..VALIDATORS)),
            };
            begin(&mut devnet, runner, what).await;
            // Up to 12 seconds: silence ends a connection after ten.
            ongoing.push(Ongoing { runner, what, until: now + context.random_range(1..48) });
        }
        for _ in 0..context.random_range(1..3) {
            let timeout = context.random_range(3..16);
            jobs.extend(devnet.submit(jobs.len() % 4, spec(timeout)));
        }
        reach(&devnet, now + 1).await;
        for (index, blocks) in watching.iter_mut().enumerate() {
            check(&mut invariants, index, blocks.as_mut()).expect("invariants hold");
        }
    }
    // A job without a result is retried three times.
    reach(&devnet, height(&devnet) + 80).await;
    for (index, blocks) in watching.iter_mut().enumerate() {
        check(&mut invariants, index, blocks.as_mut()).expect("invariants hold");
    }
    assert_eq!(devnet.state(0).expect("it runs").open_jobs().count(), 0, "open past the deadline");
    settle(&devnet.cluster).await;
    let (verified, failed) = ends(&devnet, &jobs);
    (verified, failed, retried(&devnet, &jobs))
}

/// The number of jobs with more than one attempt.
fn retried(devnet: &Devnet, jobs: &[Hash]) -> usize {
    let state = devnet.state(0).expect("it runs");
    jobs.iter().filter(|id| state.job(id).is_some_and(|job| job.attempt.number > 0)).count()
}

#[test]
fn every_job_ends_once_whatever_happens_to_runners() {
    let (mut verified, mut failed, mut retried) = (0, 0, 0);
    for seed in 0..6 {
        let ends = run(seed, stormy);
        println!("seed {seed}: {} verified, {} failed, {} tried again", ends.0, ends.1, ends.2);
        verified += ends.0;
        failed += ends.1;
        retried += ends.2;
    }
    assert!(retried > 0, "nothing went wrong");
    assert!(verified > 3 * failed, "{verified} verified, {failed} failed");
}

#[test]
fn a_paused_runner_leaves_and_returns() {
    for seed in 0..4 {
        run(seed, async |context| {
            let devnet = devnet(&context).await;
            work(&devnet, 8).await;
            let paused = height(&devnet);
            devnet.runners[&0].pause(true);
            work(&devnet, paused + 10 + seed).await;
            let resumed = height(&devnet);
            devnet.runners[&0].pause(false);
            work(&devnet, resumed + 10).await;
            let left = paused + Connectivity::DEFAULT.presence_timeout_blocks + 1;
            assert_eq!(heights_where(&devnet, 0, true, left..=resumed), [0; 0]);
            assert_eq!(heights_where(&devnet, 0, false, resumed + 2..resumed + 9), [0; 0]);
            // The other runners did not notice.
            for runner in 1..RUNNERS {
                assert_eq!(heights_where(&devnet, runner, false, 6..resumed + 9), [0; 0]);
            }
            settle(&devnet.cluster).await;
        });
    }
}

/// The longest pause before a runner retries after this many failed connections.
fn backoff(failures: usize) -> Duration {
    Duration::from_millis(125 << failures.min(8)).min(Duration::from_millis(37_500))
}

#[test]
fn a_runner_that_is_cut_off_leaves_and_returns() {
    // Shorter and longer than the silence that ends a connection.
    for (seed, blocks) in [(0, 6), (1, 9), (2, 30), (3, 45), (4, 60), (5, 71), (6, 120)] {
        run(seed, async |context| {
            let devnet = devnet(&context).await;
            let mut activities = devnet.runners[&0].subscribe();
            work(&devnet, 8).await;
            said(&mut activities);
            // The pings for the newest block have arrived, but its successor has not.
            devnet.cluster.pass(BLOCK_TIME * 4 / 5).await;
            (0..VALIDATORS).for_each(|validator| devnet.cut_runner(0, validator));
            let cut = height(&devnet);
            work(&devnet, cut + blocks).await;
            let failures = |said: &[Activity], validator: &PublicKey| {
                let failed = |activity: &&Activity| match activity {
                    Activity::Disconnected { validator: of, .. } => of == validator,
                    _ => false,
                };
                said.iter().filter(failed).count()
            };
            let said = said(&mut activities);
            let most = (0..VALIDATORS).map(|v| failures(&said, &validator_key(v))).max();
            let most = most.expect("validators");
            (0..VALIDATORS).for_each(|validator| devnet.restore_runner(0, validator));
            let (healed, at) = (context.current(), height(&devnet));
            let mut count = devnet.runners[&0].count();
            count.wait_for(|count| *count == 3).await.expect("it runs");
            let took = context.current().duration_since(healed).expect("time passes");
            let bound = match most {
                0 => Duration::ZERO,
                failures => DIAL_TIMEOUT + backoff(failures) + HANDSHAKE,
            };
            println!("cut off for {blocks} blocks: {most} failures, back after {took:?}");
            assert!(took <= bound, "{took:?} with {most} failures, {bound:?} are right");
            let back = height(&devnet);
            work(&devnet, back + 10).await;
            // The vote on the block after these is the first for which that ping is too old.
            let left = cut + Connectivity::DEFAULT.presence_timeout_blocks + 2;
            assert_eq!(heights_where(&devnet, 0, true, left..=at), [0; 0], "{blocks}");
            assert_eq!(heights_where(&devnet, 0, false, back + 2..back + 9), [0; 0], "{blocks}");
            settle(&devnet.cluster).await;
        });
    }
}

/// The validator that submitted the result that counts.
fn submitter(devnet: &Devnet, witness: usize, job_id: &Hash) -> Option<usize> {
    let store = devnet.cluster.store(witness);
    let events = store.events_of(job_id).expect("it answers");
    let end = events.iter().find(|s| matches!(s.event.kind, EventKind::JobVerified(_)))?;
    let receipts = store.receipts(end.height).expect("it answers");
    let receipt = receipts.iter().find(|r| Some(r.transaction) == end.event.transaction)?;
    (0..VALIDATORS).find(|v| validator_key(*v).address() == receipt.sender)
}

/// How the validator that assigned a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    Stops,
    IsCutOff,
}

#[test]
fn a_result_goes_to_another_validator_where_the_accepting_one_dies() {
    for (seed, death) in [(0, Death::Stops), (1, Death::IsCutOff), (2, Death::Stops)] {
        run(seed, async |context| {
            let plan = Plan::new(VALIDATORS, RUNNERS);
            let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
            let worker = Pretended { clock: context.child("worker"), delay: BLOCK_TIME * 6 };
            devnet.start_runner_with(0, worker);
            let mut activities = devnet.runners[&0].subscribe();
            reach(&devnet, 6).await;
            let validators: Vec<_> = (0..VALIDATORS).map(validator_key).collect();
            let subset = subset::of(&runner_key(0).public_key(), &validators);
            // For a moment only one of its validators reaches it, so it accepts the job from that
            // one.
            let (holder, others) = subset.split_first().expect("three of them");
            for other in others {
                devnet.cut_runner(0, *other);
            }
            // The holder may be validator 0, so another validator serves as witness.
            let witness = others[0];
            let job_id = devnet.submit(0, spec(100)).expect("a mempool with room");
            let is_begun = |activity| match activity {
                Activity::Started { job_id: started, .. } => started == job_id,
                _ => false,
            };
            while !is_begun(activities.recv().await.expect("it runs")) {}
            for other in others {
                devnet.restore_runner(0, *other);
            }
            devnet.cluster.pass(BLOCK_TIME).await;
            let began = height(&devnet);
            match death {
                Death::Stops => devnet.cluster.stop(*holder).await,
                Death::IsCutOff => devnet.cut_runner(0, *holder),
            }
            let over = |devnet: &Devnet| {
                let job = devnet.state(witness)?.job(&job_id)?.clone();
                matches!(job.status, JobStatus::Verified(..) | JobStatus::Failed(_)).then_some(job)
            };
            while over(&devnet).is_none() {
                reach(&devnet, height(&devnet) + 1).await;
            }
            let job = over(&devnet).expect("just looked");
            assert_eq!(job.status.name(), "Verified", "{death:?}");
            let by = submitter(&devnet, witness, &job_id).expect("a validator");
            assert!(others.contains(&by), "{death:?}: validator {by} submitted it");
            let took = height(&devnet) - began;
            println!("{death:?}: the result came {took} blocks later");
            // A dead stream is detected by its silence.
            let silence = IDLE_TIMEOUT.as_millis() / BLOCK_TIME.as_millis();
            let bound = if death == Death::Stops { 16 } else { silence as u64 + 10 };
            assert!(took <= bound, "{death:?}: {took} blocks");
            assert_eq!(devnet.runners[&0].load().active_jobs, 0);
            settle(&devnet.cluster).await;
        });
    }
}

/// Results that are finished close to the deadline: some are in time, some are not.
#[test]
fn a_result_around_the_deadline_counts_once_or_not_at_all() {
    let (mut verified, mut late) = (0, 0);
    for seed in 0..5 {
        run(seed, async |context| {
            let plan = Plan::new(VALIDATORS, RUNNERS);
            let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
            for runner in 0..RUNNERS {
                let delay = Duration::from_millis(700 + 100 * runner as u64);
                let worker = Pretended { clock: context.child("worker"), delay };
                devnet.start_runner_with(runner, worker);
            }
            reach(&devnet, 6).await;
            let mut jobs = Vec::new();
            while height(&devnet) < 40 {
                jobs.extend(devnet.submit(jobs.len() % 4, spec(6)));
                reach(&devnet, height(&devnet) + 1).await;
            }
            reach(&devnet, height(&devnet) + 30).await;
            verified += ends(&devnet, &jobs).0;
            late += retried(&devnet, &jobs);
            settle(&devnet.cluster).await;
        });
    }
    println!("around the deadline: {verified} verified, {late} tried again");
    assert!(verified > 0 && late > 0, "{verified} verified, {late} tried again");
}

/// The runner's result of a job, as a payload that anyone may submit.
fn result(devnet: &Devnet, runner: usize, job_id: Hash) -> Payload {
    let body = Body::new(b"late".to_vec()).expect("small");
    let chain_id = devnet.cluster.genesis().chain_id();
    let signed = JobResult::signed(chain_id, &runner_key(runner), job_id, body);
    Payload::SubmitResult(SubmitResult {
        job_id,
        runner: runner_key(runner).address(),
        result: signed.result_data.into_bytes(),
        runner_signature: signed.runner_signed,
    })
}

#[test]
fn late_results_are_refused_and_pay_nobody() {
    run(0, async |context| {
        let plan = Plan::new(VALIDATORS, RUNNERS);
        let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
        // Runner 0 works slowly; runner 1 works at once, but is held back.
        let worker = Pretended { clock: context.child("worker"), delay: MINUTE };
        devnet.start_runner_with(0, worker);
        reach(&devnet, 6).await;
        let failed = devnet.submit(0, spec(4)).expect("a mempool with room");
        reach(&devnet, 14).await;
        devnet.runners.remove(&0).expect("it runs").kill().await;
        devnet.start_runner(1);
        reach(&devnet, 20).await;
        let verified = devnet.submit(1, spec(12)).expect("a mempool with room");
        reach(&devnet, 32).await;
        assert_eq!(ends(&devnet, &[failed, verified]), (1, 1));
        let before = devnet.state(0).expect("it runs");
        let late = [(0, failed), (1, verified), (0, verified)];
        for (runner, job_id) in late {
            devnet.send(2, result(&devnet, runner, job_id)).expect("a mempool with room");
        }
        let from = height(&devnet);
        reach(&devnet, from + 6).await;
        let sender = key("account-2").address();
        let receipts: Vec<_> = (from..=from + 6)
            .flat_map(|h| devnet.cluster.store(0).receipts(Height::new(h)).expect("it answers"))
            .filter(|receipt| receipt.sender == sender)
            .collect();
        assert_eq!(receipts.len(), late.len());
        for receipt in receipts {
            let ReceiptStatus::Failed(error) = receipt.status else {
                panic!("a late result came to {:?}", receipt.status);
            };
            assert!(error.starts_with("JobNotAssigned: "), "{error}");
        }
        let after = devnet.state(0).expect("it runs");
        let others = (0..RUNNERS)
            .map(|i| format!("runner-{i}"))
            .chain((0..2).map(|i| format!("account-{i}")));
        for name in others {
            assert_eq!(balance(&after, &name), balance(&before, &name), "{name}");
        }
        assert_eq!(ends(&devnet, &[failed, verified]), (1, 1));
        settle(&devnet.cluster).await;
    });
}

/// Works on each job until it is told to stop, and counts its current jobs.
#[derive(Clone, Default)]
struct Endless(Arc<Mutex<usize>>);

impl Worker for Endless {
    type Error = Infallible;

    async fn work(
        &self,
        _: &JobSpec,
        cancelled: WorkCancelled,
        started: impl FnOnce() + Send,
        _: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, Infallible> {
        started();
        *self.0.lock() += 1;
        // Resolves both when cancelled and when dropped.
        let _ = cancelled.await;
        *self.0.lock() -= 1;
        Ok(b"unwanted".to_vec())
    }
}

#[test]
fn work_ends_when_the_chain_takes_the_job_away() {
    for seed in 0..4 {
        run(seed, async |context| {
            let plan = Plan::new(VALIDATORS, RUNNERS);
            let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
            let worker = Endless::default();
            devnet.start_runner_with(0, worker.clone());
            let mut activities = devnet.runners[&0].subscribe();
            reach(&devnet, 6).await;
            let jobs = [5, 8].map(|timeout| devnet.submit(0, spec(timeout)).expect("room"));
            let mut started = false;
            for job_id in jobs {
                let (mut taken_at, end) = (None, height(&devnet) + 20);
                while taken_at.is_none_or(|at| height(&devnet) < at + 1) {
                    assert!(height(&devnet) < end, "the runner still has the job");
                    reach(&devnet, height(&devnet) + 1).await;
                    started |= *worker.0.lock() == 2;
                    let state = devnet.state(0).expect("it runs");
                    let taken = state.job(&job_id).is_some_and(|job| job.attempt.number > 0);
                    taken_at = taken_at.or(taken.then(|| height(&devnet)));
                }
                let stopped: Vec<_> = said(&mut activities)
                    .into_iter()
                    .filter_map(|activity| match activity {
                        Activity::Stopped { job_id, reason } => Some((job_id, reason)),
                        _ => None,
                    })
                    .collect();
                assert_eq!(stopped, [(job_id, Some(CancelReason::Expired))]);
            }
            assert!(started, "both jobs were worked on");
            assert_eq!(*worker.0.lock(), 0, "unwanted work continues");
            assert_eq!(devnet.runners[&0].load().active_jobs, 0);
            settle(&devnet.cluster).await;
        });
    }
}
