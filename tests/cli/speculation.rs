//! Speculation commands against files and a devnet's answers.

use crate::{
    answers::{answer, hash},
    support::{Answer, Fake, Folder, Request, outcome, time},
};
use cowboy_devnet::types::*;
use cowboy_engine::primitives::{Address, Wei};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, io::Write as _, process::Stdio};

fn wei(amount: u128) -> AmountText {
    Text(Wei::new(amount))
}

fn task(name: &str, parents: &[&str], status: TaskStatus, times: TaskTimes) -> SpeculativeTask {
    let parent = |name: &&str| TaskParent { task: (*name).to_owned(), order_only: false };
    SpeculativeTask {
        pipeline: 7,
        task: name.to_owned(),
        task_id: hash(name.len() as u8),
        kind: "custom".to_owned(),
        depends_on: parents.iter().map(parent).collect(),
        status,
        reason: (status == TaskStatus::Failed).then(|| "proof_failed: it is wrong".to_owned()),
        depth: Some(parents.len() as u32),
        bond: Some(wei(1_500_000)),
        attempt: 1,
        runner: Some("runner-2".to_owned()),
        fault: None,
        output_bytes: Some(3),
        output_commitment: Some(hash(9)),
        claim_expires_at: Some(time()),
        times,
    }
}

fn times(at: [u64; 5]) -> TaskTimes {
    let [scheduled_ms, executed_ms, proved_ms, submitted_ms, confirmed_ms] = at.map(Some);
    TaskTimes { scheduled_ms, executed_ms, proved_ms, submitted_ms, confirmed_ms, ended_ms: None }
}

fn summary(status: PipelineStatus) -> PipelineSummary {
    let completed = status == PipelineStatus::Completed;
    PipelineSummary {
        pipeline: 7,
        name: "pair".to_owned(),
        status,
        tasks: 2,
        confirmed: if completed { 2 } else { 0 },
        undone: if status == PipelineStatus::Failed { 2 } else { 0 },
        submitted_at: time(),
        elapsed_ms: 9_300,
        outputs_ms: completed.then_some(400),
        synchronous_ms: completed.then_some(14_600),
        proofs: match status {
            PipelineStatus::Running => {
                ProofCounts { queued: 3, proving: 1, waiting: 2, ready: 0, in_flight: 1 }
            }
            _ => ProofCounts::default(),
        },
    }
}

fn pipeline(status: PipelineStatus) -> Pipeline {
    let of = |completed, other| match status {
        PipelineStatus::Completed => completed,
        PipelineStatus::Running => TaskStatus::Running,
        PipelineStatus::Failed | PipelineStatus::Cancelled => other,
    };
    let first = of(TaskStatus::Confirmed, TaskStatus::Failed);
    let second = of(TaskStatus::Confirmed, TaskStatus::RolledBack);
    let graph = vec![
        task("first", &[], first, times([0, 200, 5_200, 5_300, 7_300])),
        task("second", &["first"], second, times([200, 400, 5_400, 7_300, 9_300])),
    ];
    Pipeline { summary: summary(status), graph }
}

fn detail() -> TaskDetail {
    let graph = pipeline(PipelineStatus::Completed).graph;
    let sent = |kind: &str, of| TaskTransaction { kind: kind.to_owned(), transaction: hash(of) };
    TaskDetail {
        task: graph.into_iter().next_back().unwrap(),
        output: Some(Text(Bytes(b"14\n".to_vec()))),
        output_text: Some("14\n".to_owned()),
        proof: None,
        transactions: vec![sent("create_task", 0xa1), sent("complete_task_private", 0xa2)],
    }
}

fn status() -> SpeculationStatus {
    let counts = |of: &[(&str, u64)]| -> BTreeMap<String, u64> {
        of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    SpeculationStatus {
        agent: Text(Address([0xa9; 20])),
        enabled: true,
        mode: "balanced".to_owned(),
        policy: "cascade".to_owned(),
        generator: "mock".to_owned(),
        breaker: "open".to_owned(),
        breaker_opened: Some(BreakerOpened {
            cause: "failures".to_owned(),
            since: time(),
            failures: vec![
                BreakerFailure {
                    at: time(),
                    pipeline: Some(7),
                    task: Some("first".to_owned()),
                    task_id: hash(0xf1),
                    reason: "proof_failed".to_owned(),
                },
                BreakerFailure {
                    at: time(),
                    pipeline: None,
                    task: None,
                    task_id: hash(0xf2),
                    reason: "claim_expired".to_owned(),
                },
            ],
            rolled_back: 2,
            resolved: 12,
            lets_one_through_at: Some(time()),
            probe: None,
        }),
        chain_away: Some(ChainAway { since: time(), tries: 3, paused: false }),
        recent_rollbacks: 2,
        recent_tasks: 12,
        stake_available: wei(999_900_000),
        stake_locked: wei(2_500_000),
        stake_slashed: wei(100_000),
        tasks_live: 2,
        tasks_waiting: 1,
        branches: 1,
        max_depth_current: 1,
        proofs_queued: 3,
        proofs_proving: 4,
        proofs_waiting: 2,
        proofs_ready: 0,
        proofs_in_flight: 1,
        memory_bytes: 4_100,
        tasks_scheduled: 14,
        tasks_confirmed: 10,
        tasks_rolled_back: 2,
        tasks_rejected: counts(&[("max_branches", 3), ("max_depth", 1)]),
        rollbacks: counts(&[("proof_failed", 1)]),
        pipelines_running: 1,
        pipelines_done: 3,
        running: vec![summary(PipelineStatus::Running)],
        completed: vec![summary(PipelineStatus::Completed)],
    }
}

fn options(depth: u64) -> Vec<SpeculationOption> {
    let option = |option: &str, value: &str, range: &str, explicit| SpeculationOption {
        option: option.to_owned(),
        value: value.to_owned(),
        range: range.to_owned(),
        explicit,
    };
    vec![
        option("enabled", "true", "true or false", true),
        option("maxDepth", &depth.to_string(), "1 to 20", depth != 5),
        option("stake.minStake", "1000000", "0 or more", false),
    ]
}

/// The API of a devnet whose pipeline 7 has this status.
pub fn with_pipeline(request: &Request, of_pipeline: PipelineStatus) -> Answer {
    let accepted = || PipelineAccepted { pipeline: 7, name: "pair".to_owned(), tasks: 2 };
    match request.line.as_str() {
        "POST /v1/speculation/pipelines" => Answer::json(&accepted()),
        "GET /v1/speculation/pipelines?limit=100"
        | "GET /v1/speculation/pipelines?limit=1"
        | "GET /v1/speculation/pipelines?limit=2&status=running" => {
            Answer::json(&[summary(of_pipeline)])
        }
        "GET /v1/speculation/pipelines/7" => Answer::json(&pipeline(of_pipeline)),
        "GET /v1/speculation/tasks/7/second" => Answer::json(&detail()),
        "POST /v1/speculation/pipelines/7/cancel" => Answer::json(&TasksCancelled { tasks: 2 }),
        "POST /v1/speculation/pipelines/7/retry" => {
            let tasks = ["first", "second"].map(str::to_owned).to_vec();
            Answer::json(&TasksRetried { pipeline: 7, tasks })
        }
        "GET /v1/speculation/pipelines?limit=10000&status=running" => {
            let running = (of_pipeline == PipelineStatus::Running).then(|| summary(of_pipeline));
            Answer::json(&Vec::from_iter(running))
        }
        "POST /v1/speculation/tasks/7/second/cancel" => Answer::json(&TasksCancelled { tasks: 1 }),
        "GET /v1/speculation/commitments?limit=100" => Answer::json(&[SpeculativeCommitment {
            pipeline: 7,
            task: "second".to_owned(),
            task_id: hash(6),
            output_commitment: hash(9),
            constraint_hash: hash(8),
            status: "proof_ready".to_owned(),
            depth: 1,
            bond: wei(1_500_000),
            created_at: time(),
            expires_at: time(),
        }]),
        "GET /v1/speculation/proofs?limit=5&pipeline=7" => Answer::json(&[SpeculativeProof {
            pipeline: 7,
            task: "second".to_owned(),
            task_id: hash(6),
            status: "held".to_owned(),
            generator: "groth16".to_owned(),
            took_ms: Some(5_021),
            submissions: 0,
            waits_for: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
        }]),
        "GET /v1/speculation/events?pipeline=7" => Answer::json(&SpeculationEventPage {
            events: vec![
                SpeculationEvent {
                    seq: 1_000,
                    at: time(),
                    kind: "task:rejected".to_owned(),
                    pipeline: Some(7),
                    task: Some("second".to_owned()),
                    task_id: Some(hash(6)),
                    data: json!({ "reason": "breaker_open", "depth": 1, "bond": null }),
                },
                SpeculationEvent {
                    seq: 1_001,
                    at: time(),
                    kind: "stake:slashed".to_owned(),
                    pipeline: Some(7),
                    task: Some("first".to_owned()),
                    task_id: Some(hash(5)),
                    data: json!({ "amount": "100000", "reason": "proof_failed" }),
                },
            ],
            next: 1_002,
            more: true,
        }),
        "GET /v1/speculation/events?from=1002&pipeline=7" => Answer::json(&SpeculationEventPage {
            events: vec![SpeculationEvent {
                seq: 1_002,
                at: time(),
                kind: "breaker:changed".to_owned(),
                pipeline: None,
                task: None,
                task_id: None,
                data: json!({ "state": "open" }),
            }],
            next: 1_003,
            more: false,
        }),
        "GET /v1/speculation/rollbacks?limit=100&pipeline=7" => Answer::json(&[Rollback {
            at: time(),
            pipeline: 7,
            task: "first".to_owned(),
            task_id: hash(5),
            reason: "proof_failed".to_owned(),
            tasks: 2,
            undone: vec!["second".to_owned(), "first".to_owned()],
            slashed: wei(100_000),
            released: wei(2_400_000),
        }]),
        "GET /v1/speculation" => Answer::json(&status()),
        "GET /v1/speculation/config" => Answer::json(&options(5)),
        "POST /v1/speculation/config" if request.body.contains("fast") => Answer::error(
            ErrorCode::BadRequest,
            None,
            "speculation.mode: `fast` is out of range: expected conservative, balanced",
        ),
        "POST /v1/speculation/config" => Answer::json(&options(3)),
        _ => answer(request),
    }
}

pub fn fake(status: PipelineStatus) -> Fake {
    let fake = Fake::new(move |request| with_pipeline(request, status));
    let text = "name: pair\ntasks:\n- {id: first, command: [echo, a]}\n\
                - {id: second, depends_on: [first], command: [cat]}\n";
    fs::write(fake.folder.path("pair.yaml"), text).unwrap();
    fake
}

#[test]
fn tables_read_well() {
    use PipelineStatus as S;

    let mut all = String::new();
    for (status, args) in [
        (S::Running, &["submit", "pair.yaml"][..]),
        (S::Completed, &["submit", "pair.yaml", "--wait"]),
        (S::Completed, &["ls"]),
        (S::Running, &["ls", "--status", "running", "--limit", "2"]),
        (S::Completed, &["graph", "7"]),
        (S::Failed, &["graph", "latest", "--format", "dot"]),
        (S::Failed, &["graph", "7", "--format", "mermaid"]),
        (S::Completed, &["show", "latest"]),
        (S::Failed, &["show", "7"]),
        (S::Completed, &["show", "7", "second"]),
        (S::Completed, &["timeline", "7"]),
        (S::Running, &["timeline", "7"]),
        (S::Running, &["commitments"]),
        (S::Running, &["proofs", "--pipeline", "7", "--limit", "5"]),
        (S::Running, &["rollbacks", "--pipeline", "latest"]),
        (S::Running, &["events", "--pipeline", "7"]),
        (S::Failed, &["retry", "7"]),
        (S::Failed, &["retry", "7", "first"]),
        (S::Completed, &["load", "--depth", "2", "--tasks", "2", "--parallel", "1"]),
        (S::Running, &["cancel", "7"]),
        (S::Running, &["cancel", "7", "second"]),
        (S::Running, &["status"]),
        (S::Running, &["config"]),
        (S::Running, &["config", "minStake"]),
        (S::Running, &["config", "set", "maxDepth=3", "speculation.enabled=true"]),
    ] {
        let args = [&["speculation"], args].concat();
        let printed = fake(status).folder.run(&args);
        assert_eq!(printed.code, 0, "{args:?}: {printed:?}");
        let (out, err) = (printed.stdout, printed.stderr);
        all += &format!("$ cowboyctl {}\n{out}{err}\n", args.join(" "));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn documents_have_the_fields_that_scripts_rely_on() {
    let fake = fake(PipelineStatus::Completed);
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&fake.folder.prints(&[&["speculation"], args].concat())).unwrap()
    };
    let graph = json(&["graph", "7", "-o", "json"]);
    for field in ["id", "parents", "status", "depth", "bond"] {
        assert!(graph["tasks"][1].get(field).is_some(), "no {field} in {graph}");
    }
    assert_eq!(
        (&graph["edges"][0]["from"], &graph["edges"][0]["to"]),
        (&"first".into(), &"second".into())
    );
    assert_eq!(json(&["graph", "7", "--format", "json"]), graph);
    let waited = json(&["submit", "pair.yaml", "--wait", "-o", "json"]);
    assert_eq!((&waited["pipeline"], &waited["tasks"]), (&7.into(), &2.into()));
    assert_eq!(
        (&waited["status"], &waited["synchronous_ms"]),
        (&"completed".into(), &14_600.into())
    );
    assert_eq!(waited["graph"][1]["task"], "second");
    assert_eq!(json(&["show", "7", "-o", "json"]), waited);
    let timeline = json(&["timeline", "7", "-o", "json"]);
    assert_eq!(timeline["tasks"][1]["executed_ms"], 400);
    assert_eq!(json(&["show", "7", "second", "-o", "json"])["output_text"], "14\n");
    assert_eq!(json(&["config", "-o", "json"])[1]["range"], "1 to 20");
    let events = json(&["events", "--pipeline", "7", "-o", "json"]);
    assert_eq!((&events[1]["seq"], &events[1]["kind"]), (&1_001.into(), &"stake:slashed".into()));
    assert_eq!(events[2]["seq"], 1_002, "a page goes on where the last one ended");
    let refused = fake.folder.run(&["speculation", "events", "--kind", "proof:lost"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("proof:backOff"), "{refused:?}");

    let quiet = |args: &[&str]| fake.folder.prints(&[&["-q", "speculation"], args].concat());
    assert_eq!(quiet(&["ls"]), "7\n");
    assert_eq!(quiet(&["graph", "7"]), "7\n");
    assert_eq!(quiet(&["show", "7"]), "completed\n");
    assert_eq!(quiet(&["submit", "pair.yaml"]), "7\n");
    assert_eq!(quiet(&["cancel", "7"]), "2\n");
    assert_eq!(quiet(&["config", "maxDepth"]), "5\n");
}

#[test]
fn a_file_is_sent_as_it_is_written() {
    let fake = fake(PipelineStatus::Running);
    let text = r#"{"name": "p", "tasks": [{"id": "a", "command": ["true"], "fault": "crash"}]}"#;
    let mut command = fake.folder.command(&["-q", "speculation", "submit", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"7\n"[..]));
    let posted = fake.requests().into_iter().find(|r| r.line.starts_with("POST")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&posted.body).unwrap(),
        serde_json::from_str::<Value>(text).unwrap()
    );
    assert!(posted.headers.contains("authorization: bearer secret"), "{posted:?}");
}

#[test]
fn a_wait_ends_as_the_pipeline_does() {
    let args = ["speculation", "submit", "pair.yaml", "--wait"];
    let failed = fake(PipelineStatus::Failed);
    let ended = failed.folder.run(&args);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stdout.ends_with("\nfailed after 9.3 s, 0 of 2 confirmed, 2 undone\n"),
        "{ended:?}"
    );
    insta::assert_snapshot!(ended.stderr, @r"
    error: pipeline 7 ended as failed: task first: proof_failed: it is wrong
      see why: cowboyctl speculation show 7; what went with it: cowboyctl speculation rollbacks --pipeline 7
    ");
    let cancelled = fake(PipelineStatus::Cancelled).folder.run(&args);
    assert_eq!(cancelled.code, 1, "{cancelled:?}");
    let running = fake(PipelineStatus::Running);
    let late = running.folder.fails(5, &[&args[..], &["--timeout", "300ms"]].concat());
    assert!(late.contains("last seen: 0 of 2 confirmed; running: first, second\n"), "{late}");
}

fn config<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["speculation", "config"], args].concat()
}

#[test]
fn what_cannot_be_set_is_told_with_where_to_look() {
    let fake = fake(PipelineStatus::Running);
    let folder = &fake.folder;
    insta::assert_snapshot!(folder.fails(2, &config(&["set", "mode=fast"])), @r"
    error: speculation.mode: `fast` is out of range: expected conservative, balanced
      options and their ranges: cowboyctl speculation config
    ");
    insta::assert_snapshot!(folder.fails(3, &config(&["maxDpeth"])), @"
    error: speculation.maxDpeth: no such option
      did you mean `maxDepth`?
      list them: cowboyctl speculation config
    ");
    let twice = folder.fails(2, &config(&["set", "maxDepth=3", "speculation.maxDepth=4"]));
    assert_eq!(twice, "error: speculation.maxDepth is given twice\n");
    assert!(folder.fails(2, &config(&["set", "maxDepth"])).contains("expected OPTION=VALUE"));
    folder.fails(2, &config(&["set"]));
    let empty = Fake::new(|request| match request.line.as_str() {
        "GET /v1/speculation/pipelines?limit=1" => Answer::json(&Vec::<PipelineSummary>::new()),
        _ => answer(request),
    });
    insta::assert_snapshot!(empty.folder.fails(3, &["speculation", "graph", "latest"]), @r"
    error: there is no pipeline yet
      submit one: cowboyctl speculation submit FILE
    ");
}

/// A file's errors are reported without a devnet, with the exit code of `job submit -f`.
#[test]
fn a_bad_file_is_told_with_task_and_field() {
    let folder = Folder::new();
    let mut all = String::new();
    for text in [
        "",
        "name: [\n",
        "name: p\nsteps: []\n",
        "name: p\ntasks: []\n",
        "name: p\ntasks:\n- {id: a, command: [x], colour: red}\n",
        "name: p\ntasks:\n- {id: a, command: [x]}\n- {id: a, command: [x]}\n",
        "name: p\ntasks:\n- {id: a, depends_on: [b], command: [x]}\n",
        "name: p\ntasks:\n- {id: a, depends_on: [{job: b}], command: [x]}\n",
        "name: p\ntasks:\n- {id: a, depends_on: [b], command: [x]}\n\
         - {id: b, depends_on: [a], command: [x]}\n",
        "name: p\ntasks:\n- {id: a, command: [x], fault: [melt]}\n",
        "name: p\ntasks:\n- {id: a, command: [x], fault: melt}\n",
        "name: p\ntasks:\n- {id: a}\n",
    ] {
        fs::write(folder.path("bad.yaml"), text).unwrap();
        let error = folder.fails(2, &["speculation", "submit", "bad.yaml"]);
        all += &format!("{text}---\n{error}\n");
    }
    insta::assert_snapshot!(all);
    insta::assert_snapshot!(folder.fails(3, &["speculation", "submit", "none.yaml"]), @"
    error: none.yaml: no such file or folder
      check its name; paths begin at [folder]
    ");
    // With a valid file only the devnet is missing.
    fs::write(folder.path("good.yaml"), "name: p\ntasks: [{id: a, command: [x]}]\n").unwrap();
    folder.fails(4, &["speculation", "submit", "good.yaml"]);
    let mut long = folder.command(&["speculation", "submit", "long.yaml"]);
    fs::write(folder.path("long.yaml"), " ".repeat((2 << 20) + 1)).unwrap();
    let long = outcome(&mut long);
    assert_eq!(
        (long.code, long.stderr.as_str()),
        (2, "error: long.yaml: longer than 2097152 bytes\n")
    );
}

#[test]
fn what_is_no_format_and_no_pipeline_is_refused() {
    let folder = Folder::new();
    let refused = folder.fails(2, &["speculation", "graph", "1", "--format", "svg"]);
    assert!(refused.contains("[possible values: tree, dot, mermaid, json]"), "{refused}");
    let refused = folder.fails(2, &["speculation", "graph", "18446744073709551616"]);
    assert!(
        refused.contains("`18446744073709551616` is not a pipeline: expected 1 to"),
        "{refused}"
    );
    let refused = folder.fails(2, &["speculation", "ls", "--status", "done"]);
    assert!(refused.contains("expected running, completed, failed or cancelled"), "{refused}");
    for args in
        [&["submit"][..], &["show"], &["cancel"], &["submit", "a", "b"], &["config", "a", "b"]]
    {
        folder.fails(2, &[&["speculation"], args].concat());
    }
    for args in [&["ls"][..], &["status"], &["graph", "latest"], &["config", "set", "maxDepth=3"]] {
        folder.fails(4, &[&["speculation"], args].concat());
    }
}
