//! Costs of speculation: `cargo bench -p cowboy-engine --bench speculation -- [FILTER]`.
//!
//! * **Schedule**, printed first unless there is a filter: the times of 1,000 calls in a pipeline
//!   of eight chains of depth 5, of which the oldest is confirmed when a ninth would begin; each
//!   percentile is the median over 101 pipelines. The machine keeps 10,000 resolved tasks, as it
//!   does by default.
//! * **Memory**, likewise: 10,000 live tasks, before and after each has a commitment without a
//!   proof, in resident bytes of the process and by the machine's own count.
//! * **Rollback** of a chain of 100. No configuration permits a task at a depth of 99, so the chain
//!   is made of tasks that waited for failed ones, which are scheduled again below others.
//! * **Tree** of 100,000 tasks, four below each: to add all, to find all descendants of the root,
//!   to confirm the root.

#![expect(clippy::print_stdout, reason = "percentiles and memory are not criterion lines")]

use cowboy_engine::{
    primitives::{Hash, Wei, keccak256},
    speculation::{
        Config, EngineOutput, Graph, Opening, PROOF_BYTES, ParentLink, RollbackReason, RunRequest,
        Speculation, SubmissionResult, TaskId,
    },
};
use criterion::{BatchSize, Criterion, Throughput};
use std::{
    env, fs,
    hint::black_box,
    time::{Duration, Instant},
};

/// A claim that outlasts the benchmark.
const CLAIM: u64 = 1 << 40;
const PROOF: [u8; PROOF_BYTES] = [7; PROOF_BYTES];

fn id(n: u64) -> TaskId {
    keccak256(&[&n.to_be_bytes()])
}

fn opening(task: TaskId) -> Opening {
    Opening { output_commitment: task, constraint_hash: Hash([1; 32]), salt: [2; 32] }
}

fn machine(settings: &[(&str, &str)]) -> Speculation {
    let usual = [
        ("enabled", "true"),
        ("maxDepth", "20"),
        ("maxParallelBranches", "16"),
        ("stake.minStake", "1000000"),
        ("stake.stakePerDepth", "500000"),
        ("stake.maxStake", "1000000000000000"),
        ("limits.maxPendingOperations", "1000000"),
        ("proof.queueSize", "10000"),
    ];
    let config = Config::default().with(usual.iter().chain(settings).copied());
    let mut machine = Speculation::new(config.expect("these are in range"), 0);
    machine.set_stake(Wei::new(1_000_000_000_000_000));
    machine
}

fn schedule(machine: &mut Speculation, task: TaskId, parents: &[(TaskId, ParentLink)]) -> Duration {
    let request = RunRequest::new(task, parents, CLAIM);
    let start = Instant::now();
    let scheduled = black_box(machine.schedule(black_box(request), machine.now()));
    let took = start.elapsed();
    scheduled.expect("all limits are kept");
    took
}

/// Confirms everything in flight.
fn confirm(machine: &mut Speculation) {
    while let Some(output) = machine.poll_output() {
        if let EngineOutput::Submit { task, submission, .. } = output {
            let answered =
                machine.answer(task, submission, SubmissionResult::Confirmed, machine.now());
            answered.expect("it is in flight");
        }
    }
}

/// 1,000 tasks in chains of depth 5, from number `first` on.
fn pipeline(machine: &mut Speculation, first: u64) -> Vec<Duration> {
    let times = (0..1_000).map(|n| {
        let (at, depth) = (first + n, n % 6);
        if depth == 0 && machine.graph().branches() == 8 {
            for one in at - 48..at - 42 {
                let task = id(one);
                let done = machine.complete(task, opening(task), &PROOF, machine.now());
                done.expect("it is pending");
                confirm(machine);
            }
        }
        let parent = (depth > 0).then(|| (id(at - 1), ParentLink::Reads));
        schedule(machine, id(at), parent.as_slice())
    });
    times.collect()
}

fn percentiles() {
    let mut machine = machine(&[("maxConcurrent", "1000")]);
    let mut runs: Vec<[Duration; 4]> = Vec::new();
    for run in 0..112 {
        let mut times = pipeline(&mut machine, run * 1_000);
        // The last chains are incomplete because they end before the next pipeline begins.
        for one in 0..1_000 {
            let task = id(run * 1_000 + one);
            let _ = machine.complete(task, opening(task), &PROOF, machine.now());
            confirm(&mut machine);
        }
        machine.advance(machine.now() + 30_000);
        times.sort_unstable();
        // By then 10,000 resolved tasks are kept, and each pipeline prunes as many as it adds.
        if run > 10 {
            runs.push([times[500], times[950], times[990], times[999]]);
        }
    }
    let median = |of: usize| {
        let mut all: Vec<_> = runs.iter().map(|run| run[of]).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let [p50, p95, p99, most] = [0, 1, 2, 3].map(median);
    println!("schedule, of 1,000: p50 {p50:?}, p95 {p95:?}, p99 {p99:?}, longest {most:?}");
}

fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

fn memory() {
    const TASKS: u64 = 10_000;
    let start = resident();
    let mut machine = machine(&[]);
    // Each task joins the two before it that no task has joined yet, like the carries of a counter
    // in base two: ten thousand tasks, none deeper than 13, fewer than 16 tips.
    let mut tips: Vec<(u32, TaskId)> = Vec::new();
    for n in 0..TASKS {
        let (level, parents) = match tips[..] {
            [.., (a, left), (b, right)] if a == b => {
                tips.truncate(tips.len() - 2);
                (a + 1, vec![(left, ParentLink::Reads), (right, ParentLink::Reads)])
            }
            _ => (0, Vec::new()),
        };
        schedule(&mut machine, id(n), &parents);
        tips.push((level, id(n)));
    }
    let (pending, books) = (resident(), machine.memory());
    for n in 0..TASKS {
        machine.executed(id(n), opening(id(n)), 0).expect("it is pending");
        while machine.poll_output().is_some() {}
    }
    let (end, all) = (resident(), machine.memory());
    println!("10,000 live tasks: {} bytes resident, {books} by its books", pending - start);
    println!("their commitments: {} bytes resident, {} by its books", end - pending, all - books);
    black_box(machine);
}

/// A chain of 100 live tasks with commitments, from its root on.
fn chain() -> (Speculation, TaskId) {
    const SEGMENT: u64 = 20;
    // The first task of each segment that goes below another one.
    const JOINTS: [u64; 4] = [80, 60, 40, 20];
    let mut machine = machine(&[("rollbackPolicy", "selective"), ("breaker.threshold", "1000")]);
    for first in (0..100).step_by(SEGMENT as usize) {
        for n in first..first + SEGMENT {
            let link = if n == first + 1 { ParentLink::OrderOnly } else { ParentLink::Reads };
            let parent = (n > first).then(|| (id(n - 1), link));
            schedule(&mut machine, id(n), parent.as_slice());
        }
    }
    for first in JOINTS {
        machine.fail(id(first), RollbackReason::ManualCancel, 0).expect("it is pending");
    }
    // A segment goes below the one before it, whose last task is not that deep yet.
    for first in JOINTS {
        schedule(&mut machine, id(first), &[(id(first - 1), ParentLink::Reads)]);
    }
    for n in 0..100 {
        machine.complete(id(n), opening(id(n)), &PROOF, 0).expect("it is pending");
    }
    machine.configure([("rollbackPolicy", "cascade")], 0).expect("that is a policy");
    while machine.poll_output().is_some() {}
    assert_eq!(machine.graph().depth(&id(99)), Some(99));
    (machine, id(0))
}

fn rollback(c: &mut Criterion) {
    let (machine, root) = chain();
    let mut group = c.benchmark_group("rollback");
    group.throughput(Throughput::Elements(100));
    group.bench_function("chain of 100", |b| {
        b.iter_batched_ref(
            || machine.clone(),
            |machine| {
                let undone = machine.fail(root, RollbackReason::ProofFailed, 0);
                assert_eq!(undone, Ok(100));
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn tree(c: &mut Criterion) {
    const TASKS: u64 = 100_000;
    let tasks: Vec<(TaskId, Vec<(TaskId, ParentLink)>)> = (0..TASKS)
        .map(|n| {
            (id(n), n.checked_sub(1).map(|n| (id(n / 4), ParentLink::Reads)).into_iter().collect())
        })
        .collect();
    let add = || {
        let mut graph = Graph::default();
        for (task, parents) in &tasks {
            graph.add(*task, parents).expect("its parent is there");
        }
        graph
    };
    let mut group = c.benchmark_group("tree of 100,000");
    group.sample_size(20);
    group.bench_function("add", |b| b.iter_with_large_drop(add));
    let graph = add();
    group.bench_function("descendants", |b| {
        b.iter_with_large_drop(|| {
            let below = graph.descendants(&tasks[0].0);
            assert_eq!(below.len() as u64, TASKS - 1);
            below
        });
    });
    group.bench_function("confirm root", |b| {
        b.iter_batched_ref(
            || graph.clone(),
            |graph| {
                assert!(graph.confirm(&tasks[0].0));
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    // Without `--bench` it only has to run.
    if arguments == ["--bench"] {
        memory();
        percentiles();
    }
    let mut criterion = Criterion::default().configure_from_args();
    rollback(&mut criterion);
    tree(&mut criterion);
    criterion.final_summary();
}
