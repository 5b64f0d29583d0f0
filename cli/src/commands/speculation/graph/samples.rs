//! Sample pipelines in the API's form, for tests of their drawings.

use cowboy_devnet::types::{
    Pipeline, PipelineStatus, PipelineSummary, ProofCounts, SpeculativeTask, TaskParent,
    TaskStatus, TaskTimes, Text,
};
use cowboy_engine::primitives::{Hash, Wei};

/// A task at this depth that ran on one of four runners.
pub fn task(at: usize, name: &str, parents: &[&str], status: TaskStatus) -> SpeculativeTask {
    let parent = |name: &&str| TaskParent { task: (*name).to_owned(), order_only: false };
    SpeculativeTask {
        pipeline: 3,
        task: name.to_owned(),
        task_id: Text(Hash([at as u8; 32])),
        kind: "custom".to_owned(),
        depends_on: parents.iter().map(parent).collect(),
        status,
        reason: None,
        depth: Some(0),
        bond: Some(Text(Wei::new(1_000_000))),
        attempt: 1,
        runner: Some(format!("runner-{}", at % 4)),
        fault: None,
        output_bytes: Some(2),
        output_commitment: None,
        claim_expires_at: None,
        times: TaskTimes::default(),
    }
}

pub fn summary(status: PipelineStatus, graph: &[SpeculativeTask]) -> PipelineSummary {
    let undone = [TaskStatus::Failed, TaskStatus::RolledBack, TaskStatus::Cancelled];
    let confirmed = graph.iter().filter(|task| task.status == TaskStatus::Confirmed).count();
    let last = graph.iter().filter_map(|task| task.times.confirmed_ms.or(task.times.ended_ms));
    let completed = status == PipelineStatus::Completed;
    PipelineSummary {
        pipeline: 3,
        name: "sample".to_owned(),
        status,
        tasks: graph.len() as u64,
        confirmed: confirmed as u64,
        undone: graph.iter().filter(|task| undone.contains(&task.status)).count() as u64,
        submitted_at: "2026-11-20T09:53:00Z".parse().unwrap(),
        elapsed_ms: last.max().unwrap_or(0),
        outputs_ms: completed.then(|| 500 * graph.len() as u64),
        synchronous_ms: completed.then(|| 7_500 * graph.len() as u64),
        proofs: ProofCounts::default(),
    }
}

fn pipeline(status: PipelineStatus, graph: Vec<SpeculativeTask>) -> Pipeline {
    Pipeline { summary: summary(status, &graph), graph }
}

/// Confirmed tasks in a row, each of which depends on the previous one: half a second of work, five
/// of proof, two of confirmation each.
pub fn chain(length: usize) -> Pipeline {
    let mut graph = Vec::with_capacity(length);
    let mut before = None;
    for at in 0..length {
        let last = at.checked_sub(1).map(|at| format!("step-{at}"));
        let parents: Vec<&str> = last.as_deref().into_iter().collect();
        let executed = 500 * (at as u64 + 1);
        let proved = executed + 5_000;
        let submitted = before.unwrap_or(0).max(proved);
        let times = TaskTimes {
            scheduled_ms: Some(executed - 500),
            executed_ms: Some(executed),
            proved_ms: Some(proved),
            submitted_ms: Some(submitted),
            confirmed_ms: Some(submitted + 2_000),
            ended_ms: None,
        };
        before = times.confirmed_ms;
        let bond = Text(Wei::new(1_000_000 + 500_000 * at as u128));
        let task = task(at, &format!("step-{at}"), &parents, TaskStatus::Confirmed);
        graph.push(SpeculativeTask { bond: Some(bond), times, ..task });
    }
    pipeline(PipelineStatus::Completed, graph)
}

pub fn diamond() -> Pipeline {
    let graph = [("top", vec![]), ("left", vec!["top"]), ("right", vec!["top"])]
        .into_iter()
        .chain([("bottom", vec!["left", "right"])])
        .enumerate()
        .map(|(at, (name, parents))| task(at, name, &parents, TaskStatus::Confirmed))
        .collect();
    pipeline(PipelineStatus::Completed, graph)
}

/// One task of each status, with every mark and note that a tree has.
pub fn statuses() -> Pipeline {
    use TaskStatus as S;

    let mut graph: Vec<_> = [
        ("waits", vec!["runs"], S::Waiting),
        ("runs", vec!["has-proof"], S::Running),
        ("is-proved", vec!["has-proof"], S::Proving),
        ("has-proof", vec!["is-submitted"], S::Proved),
        ("is-submitted", vec!["confirmed"], S::Submitted),
        ("confirmed", vec![], S::Confirmed),
        ("failed", vec!["confirmed"], S::Failed),
        ("rolled-back", vec!["failed"], S::RolledBack),
        ("cancelled", vec!["failed", "waits", "is-proved"], S::Cancelled),
    ]
    .into_iter()
    .enumerate()
    .map(|(at, (name, parents, status))| task(at, name, &parents, status))
    .collect();
    // Each task has passed the steps with a time, in seconds.
    let steps = |seconds: &[u64]| {
        let at = |step: usize| seconds.get(step).map(|seconds| 1_000 * seconds);
        let (scheduled_ms, executed_ms, proved_ms) = (at(0), at(1), at(2));
        let (submitted_ms, confirmed_ms) = (at(3), at(4));
        TaskTimes {
            scheduled_ms,
            executed_ms,
            proved_ms,
            submitted_ms,
            confirmed_ms,
            ended_ms: None,
        }
    };
    for (at, seconds) in [
        (1, &[30][..]),
        (2, &[30, 35]),
        (3, &[20, 25, 40]),
        (4, &[10, 15, 30, 45]),
        (5, &[0, 10, 20, 21, 40]),
        (6, &[10, 20, 30, 41]),
        (7, &[20, 22]),
    ] {
        graph[at].times = steps(seconds);
    }
    graph[6].times.ended_ms = Some(60_000);
    graph[7].times.ended_ms = Some(61_000);
    graph[8].times.ended_ms = Some(61_000);
    let waiting = &mut graph[0];
    (waiting.depth, waiting.bond, waiting.runner) = (None, None, None);
    waiting.attempt = 0;
    waiting.reason = Some("branches: 4 at most".to_owned());
    graph[1].depends_on[0].order_only = true;
    graph[8].depends_on[2].order_only = true;
    graph[6].attempt = 2;
    graph[6].reason = Some("proof_failed: the chain\nrefused the proof".to_owned());
    pipeline(PipelineStatus::Failed, graph)
}

/// Sixty tasks in branches of different lengths, some with their own branches, and one that waits
/// for all.
pub fn branches() -> Pipeline {
    let mut names: Vec<(String, Vec<String>)> = vec![("source".to_owned(), vec![])];
    for branch in 0..6 {
        let mut above = "source".to_owned();
        for step in 0..8 {
            let name = format!("branch-{branch}.{step}");
            names.push((name.clone(), vec![above.clone()]));
            // Branches 1, 3 and 5 have three leaves next to their fourth step.
            if branch % 2 == 1 && step == 2 {
                for side in ["a", "b", "c"] {
                    names.push((format!("{name}{side}"), vec![name.clone()]));
                }
            }
            above = name;
        }
    }
    let ends =
        |branches: std::ops::Range<usize>| branches.map(|branch| format!("branch-{branch}.7"));
    names.push(("join-even".to_owned(), ends(0..6).step_by(2).collect()));
    names.push(("report".to_owned(), ends(0..6).chain(["join-even".to_owned()]).collect()));
    let of = |(at, (name, parents)): (usize, &(String, Vec<String>))| {
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        let status = match at % 5 {
            0 | 1 => TaskStatus::Confirmed,
            2 => TaskStatus::Proved,
            3 => TaskStatus::Proving,
            _ => TaskStatus::Running,
        };
        let times = TaskTimes { scheduled_ms: Some(1_234 * at as u64), ..TaskTimes::default() };
        SpeculativeTask { times, ..task(at, name, &parents, status) }
    };
    let graph: Vec<_> = names.iter().enumerate().map(of).collect();
    assert_eq!(graph.len(), 60);
    pipeline(PipelineStatus::Running, graph)
}

pub fn fan(width: usize) -> Pipeline {
    let mut graph = vec![task(0, "root", &[], TaskStatus::Confirmed)];
    for at in 1..=width {
        graph.push(task(at, &format!("leaf-{at}"), &["root"], TaskStatus::Submitted));
    }
    pipeline(PipelineStatus::Running, graph)
}
