//! Pipelines of tasks that run ahead of the chain, on real devnets: the scenarios of AgenC §9.2 and
//! §9.3.

use crate::{
    shape,
    support::{Home, list, wait_until},
    timeline,
    timers::{number, text},
};
use cowboy_devnet::{
    client::Client,
    types::{Bytes, HashText, Pipeline, Text, TransactionRequest},
};
use cowboy_engine::chain::{Payload, Transaction, tasks::CompleteTask};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
};

/// A devnet whose tasks run ahead of the chain, with these options.
pub fn devnet(options: &Value) -> Home {
    let home = Home::new();
    let topology = json!({ "name": "local", "speculation": options });
    home.up_with(&topology);
    home
}

/// The plan of a pipeline on the running devnet.
fn plan(home: &Home, tasks: &Value) -> Value {
    let file = home.path("planned.json");
    fs::write(&file, json!({ "name": "test", "tasks": tasks }).to_string()).unwrap();
    home.json(&["speculation", "plan", file.to_str().unwrap()])
}

/// Submits a pipeline and returns its number.
pub fn submit(home: &Home, tasks: &Value) -> String {
    let file = home.path("pipeline.json");
    fs::write(&file, json!({ "name": "test", "tasks": tasks }).to_string()).unwrap();
    let accepted = home.json(&["speculation", "submit", file.to_str().unwrap()]);
    number(&accepted["pipeline"]).to_string()
}

fn pipeline(home: &Home, number: &str) -> Value {
    home.json(&["speculation", "show", number])
}

/// Waits until a pipeline has ended, and asserts this status.
pub fn ended(home: &Home, number: &str, status: &str) -> Value {
    let mut shown = Value::Null;
    wait_until("the pipeline has ended", || {
        shown = pipeline(home, number);
        shown["status"] != "running"
    });
    assert_eq!(shown["status"], status, "{shown}");
    shown
}

pub fn task<'a>(pipeline: &'a Value, name: &str) -> &'a Value {
    let found = list(&pipeline["graph"]).iter().find(|task| task["task"] == name);
    found.unwrap_or_else(|| panic!("no task {name}: {pipeline}"))
}

fn time(pipeline: &Value, name: &str, of: &str) -> u64 {
    number(&task(pipeline, name)["times"][of])
}

/// Waits until a task is as wanted, and returns it.
pub fn until_task(home: &Home, number: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut shown = Value::Null;
    wait_until("the task is as wanted", || {
        shown = pipeline(home, number);
        wanted(task(&shown, name))
    });
    task(&shown, name).clone()
}

pub fn configure(home: &Home, options: &[&str]) {
    home.json(&[&["speculation", "config", "set"], options].concat());
}

pub fn rollbacks(home: &Home, number: &str) -> Vec<Value> {
    list(&home.json(&["speculation", "rollbacks", "--pipeline", number])).clone()
}

/// Waits until every bond is released or slashed, and asserts that the chain's money is conserved.
pub fn settled(home: &Home) {
    let mut shown = Value::Null;
    wait_until("every bond is resolved on the chain", || {
        shown = home.json(&["devnet", "status"]);
        shown["supply"]["bonds"] == "0"
    });
    let sum = |names: &[&str]| names.iter().map(|name| wei(&shown["supply"][name])).sum::<u128>();
    let parts = sum(&["balances", "escrow", "bonds", "stakes", "burned"]);
    assert_eq!(parts, wei(&shown["supply"]["total"]), "{shown}");
    let status = home.json(&["speculation", "status"]);
    assert_eq!(status["stake_locked"], "0", "{status}");
    let stake = wei(&status["stake_available"]) + wei(&status["stake_slashed"]);
    assert_eq!(stake, 100_000_000_000_000, "{status}");
}

pub fn wei(value: &Value) -> u128 {
    text(value).parse().unwrap()
}

/// A chain of five, each of which adds a line to its parent's output.
pub fn five() -> Value {
    let task = |name: &str, parent: Option<&str>| {
        let script = format!("cat; echo {name}");
        let parents: Vec<_> = parent.into_iter().collect();
        json!({ "id": name, "depends_on": parents, "command": ["sh", "-c", script] })
    };
    let names = ["a", "b", "c", "d", "e"];
    let all = names
        .iter()
        .enumerate()
        .map(|(at, name)| task(name, at.checked_sub(1).map(|at| names[at])));
    Value::Array(all.collect())
}

/// AgenC §9.2, happy path; and the five tasks of the timeline, at a fiftieth of its times.
#[test]
fn five_tasks_run_ahead_of_the_chain_and_come_to_the_same() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "latency": "100ms", "workerThreads": 8 },
        "confirmation": { "latency": "40ms" },
    }));
    let planned = plan(&home, &five());
    let number = submit(&home, &five());
    let speculative = ended(&home, &number, "completed");
    assert_eq!((&planned["enabled"], &planned["confirmed"]), (&json!(true), &json!(5)));
    let committed = home.json(&["speculation", "commitments", "--pipeline", &number]);
    for (at, name) in ["a", "b", "c", "d", "e"].iter().enumerate() {
        let expected = task(&planned, name);
        assert_eq!((&expected["depth"], &expected["accepted"]), (&json!(at), &json!(true)));
        assert_eq!(expected["bond"], task(&speculative, name)["bond"], "{planned}");
        let committed = list(&committed).iter().find(|one| one["task"] == **name).unwrap();
        assert_eq!(committed["depth"], expected["depth"], "{committed}");
    }
    let first_confirmation = time(&speculative, "a", "confirmed_ms");
    for (parent, child) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")] {
        // Outputs exist before the first confirmation; proofs are submitted in order after it.
        assert!(time(&speculative, child, "executed_ms") < first_confirmation, "{speculative}");
        let submitted = time(&speculative, child, "submitted_ms");
        assert!(submitted >= time(&speculative, parent, "confirmed_ms"), "{speculative}");
        let bond = |name| wei(&task(&speculative, name)["bond"]);
        assert_eq!(bond(child), bond(parent) + 50_000_000_000, "minStake and stakePerDepth");
    }
    settled(&home);

    let devnet = home.devnet("local");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let both = runtime.block_on(timeline::run(&devnet, 50)).unwrap();
    assert_eq!(both.iter().map(|one| one.confirmation_ms).collect::<Vec<_>>(), [40, 8]);
    for one in both {
        let outputs = |pipeline: &Pipeline| {
            pipeline.graph.iter().map(|task| task.output_bytes.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(outputs(&one.speculative), outputs(&one.synchronous));
    }

    configure(&home, &["enabled=false"]);
    let again = submit(&home, &five());
    let synchronous = ended(&home, &again, "completed");
    for (parent, child) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")] {
        let scheduled = time(&synchronous, child, "scheduled_ms");
        assert!(scheduled >= time(&synchronous, parent, "confirmed_ms"), "{synchronous}");
    }
    let output = |number: &str| {
        text(&home.json(&["speculation", "show", number, "e"])["output_text"]).to_owned()
    };
    assert_eq!(output(&number), output(&again));
    let report = home.json(&[
        "speculation",
        "load",
        "--depth",
        "2",
        "--tasks",
        "4",
        "--parallel",
        "2",
        "--duration",
        "60s",
        "--compare",
    ]);
    let run = |at: usize| &report["runs"][at];
    for (at, speculation) in [(0, true), (1, false)] {
        assert_eq!(run(at)["speculation"], speculation, "{report}");
        let counts = (&run(at)["confirmed"], &run(at)["undone"], &run(at)["unfinished"]);
        assert_eq!(counts, (&json!(4), &json!(0), &json!(0)), "{report}");
        assert!(number_of(&run(at)["latency"]["p50_ms"]) > 0, "{report}");
    }
    assert!(wei(&run(0)["locked_peak"]) >= 150_000_000_000, "{report}");
    assert!(report["ratio"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(home.json(&["speculation", "config", "enabled"])["value"], "false", "put back");
    settled(&home);
    shape::seen(&["speculation submit", "speculation plan", "speculation load"]);
}

fn number_of(value: &Value) -> u64 {
    number(value)
}

/// A task that copies its parents' outputs. Its name and theirs have the group as a prefix.
pub fn passes_on(group: &str, name: &str, parents: &[&str], attempts: u32) -> Value {
    let full = |name: &str| format!("{group}-{name}");
    let parents: Vec<_> = parents.iter().map(|parent| full(parent)).collect();
    let command = ["cat"];
    json!({ "id": full(name), "depends_on": parents, "command": command, "attempts": attempts })
}

/// AgenC §9.2, rollback cascade and parallel branches.
#[test]
fn a_refused_proof_takes_down_what_was_built_on_it_and_nothing_else() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "latency": "300ms" },
        "maxParallelBranches": 3,
        "breaker": { "threshold": 100 },
    }));
    // Two diamonds in parallel: the first proof of one's root is wrong.
    let diamond = |at: &str, fault: Value| {
        let of = |task: &str, parents: &[&str]| passes_on(at, task, parents, 3);
        let mut root = of("a", &[]);
        root["command"] = json!(["echo", at]);
        root["reward"] = json!(1_000);
        if !fault.is_null() {
            root["fault"] = fault;
        }
        [root, of("b", &["a"]), of("c", &["a"]), of("d", &["b", "c"])]
    };
    let tasks = [diamond("bad", json!("wrong_proof")), diamond("good", Value::Null)].concat();
    // More branches than the limit allows: some wait for others.
    let before: Vec<_> =
        (0..8).map(|n| json!({ "id": format!("t{n}"), "command": ["echo", "x"] })).collect();
    let before = submit(&home, &before.into());
    ended(&home, &before, "completed");
    let refusals = &home.json(&["speculation", "status"])["tasks_rejected"];
    assert!(number(&refusals["too_many_branches"]) > 0, "{refusals}");

    let number = submit(&home, &tasks.into());
    let shown = ended(&home, &number, "completed");
    for name in ["a", "b", "c", "d"] {
        assert_eq!(task(&shown, &format!("bad-{name}"))["attempt"], 2, "{shown}");
        assert_eq!(task(&shown, &format!("good-{name}"))["attempt"], 1, "{shown}");
    }
    let undone = rollbacks(&home, &number);
    assert_eq!(undone.len(), 1, "{undone:?}");
    assert_eq!(
        (&undone[0]["task"], &undone[0]["reason"]),
        (&json!("bad-a"), &json!("proof_failed"))
    );
    let order: Vec<&str> = list(&undone[0]["undone"]).iter().map(text).collect();
    assert_eq!((order.first(), order.last()), (Some(&"bad-d"), Some(&"bad-a")), "leaves first");
    // A tenth of the trigger's bond is slashed, and nothing of the others'.
    assert_eq!(undone[0]["slashed"], "10000000000");
    settled(&home);
    let output = home.json(&["speculation", "show", &number, "bad-d"]);
    assert!(text(&output["output_text"]).contains("bad"), "{output}");
}

/// AgenC §9.2, claim expiry; §9.3, the prover dies; a wrong output; work that fails.
#[test]
fn claims_proofs_and_work_that_fail_are_tried_again_or_end_alone() {
    let home = devnet(&json!({
        "enabled": true,
        "claimBufferMs": 100,
        "proof": { "latency": "50ms", "timeoutMs": 9_000 },
        "breaker": { "threshold": 100 },
        "features": { "rolloutPercentage": 100 },
    }));
    let tasks = json!([
        { "id": "late", "command": ["echo", "1"], "claim_ms": 8_000, "attempts": 2,
          "fault": { "slow_ms": 60_000 } },
        { "id": "after-late", "depends_on": ["late"], "command": ["cat"] },
        { "id": "crashed", "command": ["echo", "2"], "attempts": 2, "fault": "crash" },
        { "id": "wrong", "command": ["echo", "3"], "expect": "4\n" },
        { "id": "fails", "command": ["sh", "-c", "echo no >&2; exit 3"] },
        { "id": "after-fails", "depends_on": ["fails"], "command": ["cat"] },
        { "id": "right", "command": ["echo", "5"], "expect": "5\n" },
    ]);
    let number = submit(&home, &tasks);
    let shown = ended(&home, &number, "failed");
    let check = |name: &str, status: &str, attempt: u64| {
        let task = task(&shown, name);
        assert_eq!(
            (&task["status"], &task["attempt"]),
            (&json!(status), &json!(attempt)),
            "{task}"
        );
    };
    check("late", "confirmed", 2);
    check("after-late", "confirmed", 2);
    check("crashed", "confirmed", 2);
    check("wrong", "failed", 1);
    check("fails", "failed", 1);
    check("after-fails", "rolled_back", 0);
    check("right", "confirmed", 1);
    assert!(text(&task(&shown, "wrong")["reason"]).contains("constraint_hash"), "{shown}");
    assert!(text(&task(&shown, "fails")["reason"]).contains('3'), "{shown}");
    let mut reasons: Vec<_> = rollbacks(&home, &number)
        .iter()
        .map(|one| (text(&one["task"]).to_owned(), text(&one["reason"]).to_owned()))
        .collect();
    reasons.sort();
    let wanted = [
        ("crashed", "proof_timeout"),
        ("fails", "manual_cancel"),
        ("late", "claim_expired"),
        ("wrong", "proof_failed"),
    ];
    assert_eq!(reasons, wanted.map(|(task, reason)| (task.to_owned(), reason.to_owned())));
    settled(&home);
}

/// AgenC §9.3, a partition during speculation, and the process killed in the middle of proofs.
#[test]
fn partitions_and_kills_lose_nothing() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "latency": "1s", "workerThreads": 8 },
        "confirmationTimeoutMs": 60_000,
    }));
    // All runners are on one side of the partition.
    let side = "validator-0,validator-1,runner-0,runner-1,runner-2,runner-3";
    home.json(&["fault", "partition", side, "validator-2,validator-3"]);
    let number = submit(&home, &five());
    // Work and proofs go on; pending blocks may still become final, then nothing does.
    until_task(&home, &number, "e", |task| task["status"] == "proved");
    home.json(&["fault", "heal"]);
    let shown = ended(&home, &number, "completed");
    assert!(rollbacks(&home, &number).is_empty(), "{shown}");

    // The devnet is killed while proofs are made, and again later.
    let number = submit(&home, &five());
    wait_until("the last proof is being made", || {
        let shown = pipeline(&home, &number);
        let proofs = &shown["proofs"];
        let counted = number_of(&proofs["queued"]) + number_of(&proofs["proving"]);
        let proving = task(&shown, "e")["status"] == "proving";
        assert!(!proving || counted > 0, "{shown}");
        proving
    });
    let args = ["speculation", "follow", &number, "-o", "jsonl"];
    let mut follow = home.command(&args);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut followed = BufReader::new(follow.stdout.take().unwrap());
    let mut lines = String::new();
    followed.read_line(&mut lines).unwrap();
    home.kill("local");
    home.up(&[]);
    until_task(&home, &number, "a", |task| task["status"] == "confirmed");
    home.kill("local");
    home.up(&[]);
    let shown = ended(&home, &number, "completed");
    assert!(rollbacks(&home, &number).is_empty(), "{shown}");
    let output = home.json(&["speculation", "show", &number, "e"]);
    assert!(text(&output["output_text"]).contains('e'), "{output}");
    // The follower has seen the end, across both kills, and each confirmation once.
    followed.read_to_string(&mut lines).unwrap();
    assert_eq!(follow.wait().unwrap().code(), Some(0), "{lines}");
    shape::check(&args, &lines);
    let confirmed = lines.lines().filter(|line| line.contains("\"confirmed\"")).count();
    assert_eq!(confirmed, 5, "{lines}");
    settled(&home);
    shape::seen(&["speculation follow"]);
}

/// AgenC §9.3, events out of order: a child's confirmation before its parent's is held.
#[test]
fn a_confirmation_before_the_parents_is_held() {
    let home = devnet(&json!({ "enabled": true }));
    let tasks = json!([
        { "id": "parent", "command": ["echo", "1"], "fault": { "late_event_ms": 5_000 } },
        { "id": "child", "depends_on": ["parent"], "command": ["cat"] },
    ]);
    let number = submit(&home, &tasks);
    until_task(&home, &number, "child", |task| task["status"] == "proved");
    let ids = |name: &str| -> HashText {
        text(&task(&pipeline(&home, &number), name)["task_id"]).parse().unwrap()
    };
    let completed = |id: &HashText| {
        let page = home.json(&["chain", "events", "--from", "1", "--kind", "TaskCompleted"]);
        page.to_string().contains(&id.to_string())
    };
    let (parent, child) = (ids("parent"), ids("child"));
    wait_until("the chain has taken the parent's proof", || completed(&parent));
    // Another client submits the child's proof with the agent's key.
    let proof = home.json(&["speculation", "show", &number, "child"]);
    let proof: Text<Bytes> = text(&proof["proof"]).parse().unwrap();
    let payload = Payload::CompleteTask(CompleteTask {
        task_id: child.0,
        parents: vec![parent.0],
        proof: proof.0.0,
    });
    send(&home, &payload);
    wait_until("the chain has taken the child's proof", || completed(&child));
    assert_ne!(task(&pipeline(&home, &number), "parent")["status"], "confirmed");
    let shown = ended(&home, &number, "completed");
    let confirmed = |name| time(&shown, name, "confirmed_ms");
    assert!(confirmed("parent") <= confirmed("child"), "{shown}");
    let log = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    assert!(log.contains("confirmed before its parents: held"), "{log}");
    // The log line of the parent's confirmation is within the span of the wait for it.
    let told = |line: &str| {
        line.contains("Speculative proof confirmed") && line.contains("speculation.confirm_wait")
    };
    assert!(log.lines().any(told), "{log}");
    settled(&home);
}

/// Sends a transaction from the agent's account, as any holder of its key could.
fn send(home: &Home, payload: &Payload) {
    let devnet = home.devnet("local");
    let key = devnet.account_key(&"agent".parse().unwrap()).unwrap().unwrap();
    let client = Client::of_devnet(&devnet).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // The agent's own transactions may take the nonce first.
        loop {
            let parameters = client.parameters().await.unwrap();
            let transaction = Transaction::with_limits(
                parameters.chain_id.0.0,
                client.account("agent").await.unwrap().next_nonce,
                *parameters.cycle_basefee,
                *parameters.cell_basefee,
                payload.clone(),
            );
            let transaction = Text(Bytes(transaction.sign(&key).to_bytes()));
            if client.submit(&TransactionRequest { transaction }).await.is_ok() {
                return;
            }
        }
    });
}

/// AgenC §9.3, memory pressure; and the circuit breaker, which falls back to the synchronous
/// pipeline and recovers.
#[test]
fn limits_hold_and_the_breaker_degrades_and_recovers() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "latency": "200ms", "queueSize": 100 },
        "limits": { "maxMemoryMb": 512 },
        // Several times as long as the pipeline that must run meanwhile takes on a slow machine.
        "breaker": { "threshold": 3, "resetMs": 15_000 },
    }));
    let hungry = json!([
        { "id": "hungry", "command": ["echo", "1"], "fault": { "memory_mb": 4_096 } },
        { "id": "child", "depends_on": ["hungry"], "command": ["cat"] },
    ]);
    let number = submit(&home, &hungry);
    let refused = until_task(&home, &number, "child", |task| !task["reason"].is_null());
    assert!(text(&refused["reason"]).contains("maxMemoryMb"), "{refused}");
    // No accepted task is dropped, and the refused one follows once there is room.
    ended(&home, &number, "completed");

    let bad =
        |n| json!({ "id": format!("bad-{n}"), "command": ["echo", "1"], "fault": "wrong_proof" });
    let number = submit(&home, &json!([bad(1), bad(2), bad(3)]));
    ended(&home, &number, "failed");
    let status = || home.json(&["speculation", "status"]);
    let breaker = || text(&status()["breaker"]).to_owned();
    assert_eq!(breaker(), "open");
    // It reports the failures that opened it, and when it lets a task through.
    let opened = &status()["breaker_opened"];
    let failed = list(&opened["failures"]).iter().map(|one| text(&one["task"]).to_owned());
    let failed: BTreeSet<_> = failed.collect();
    assert_eq!(failed, ["bad-1", "bad-2", "bad-3"].map(str::to_owned).into());
    assert!(
        list(&opened["failures"])
            .iter()
            .all(|one| number_of(&one["pipeline"]).to_string() == number)
    );
    assert_eq!((&opened["cause"], &opened["probe"]), (&json!("failures"), &Value::Null));
    assert!(text(&opened["lets_one_through_at"]) > text(&opened["since"]), "{opened}");
    let number = submit(&home, &five());
    let degraded = ended(&home, &number, "completed");
    let first_two = ["a", "b"].map(|name| task(&degraded, name).clone());
    let scheduled = time(&degraded, "b", "scheduled_ms");
    assert!(scheduled >= time(&degraded, "a", "confirmed_ms"), "{first_two:?}");
    wait_until("the breaker lets one through", || breaker() != "open");
    // A task that does not speculate does not change the breaker.
    let alone = submit(&home, &json!([{ "id": "alone", "command": ["echo", "1"] }]));
    ended(&home, &alone, "completed");
    assert_eq!(breaker(), "half_open");
    let number = submit(&home, &five());
    let recovered = ended(&home, &number, "completed");
    let scheduled = time(&recovered, "b", "scheduled_ms");
    assert!(scheduled < time(&recovered, "a", "confirmed_ms"), "{recovered}");
    assert_eq!(breaker(), "closed");
    settled(&home);
}

/// Rollback policies, checkpoints and cancellations.
#[test]
fn policies_say_what_survives() {
    let home = devnet(&json!({
        "enabled": true,
        "rollbackPolicy": "selective",
        "proof": { "latency": "300ms" },
        "breaker": { "threshold": 100 },
    }));
    let tasks = json!([
        { "id": "a", "command": ["echo", "1"], "fault": "wrong_proof", "attempts": 2 },
        { "id": "reads", "depends_on": ["a"], "command": ["cat"] },
        { "id": "waits", "depends_on": [{ "task": "a", "order_only": true }], "command": ["echo", "2"] },
    ]);
    let number = submit(&home, &tasks);
    let shown = ended(&home, &number, "completed");
    assert_eq!(task(&shown, "reads")["attempt"], 2, "{shown}");
    assert_eq!(task(&shown, "waits")["attempt"], 1, "{shown}");

    // Long enough for both children to end before their root is refused.
    configure(&home, &["rollbackPolicy=checkpoint", "proof.latency=3s"]);
    // Each run of a task writes something else; files outside the devnet keep all of it.
    let written = tempfile::tempdir().unwrap();
    let script = |name: &str| {
        let path = written.path().join(name);
        let line = format!("tee -a {} < /proc/sys/kernel/random/uuid", path.display());
        json!(["sh", "-c", line])
    };
    let tasks = json!([
        { "id": "a", "command": ["echo", "1"], "fault": "wrong_proof", "attempts": 2 },
        { "id": "kept", "depends_on": ["a"], "command": script("kept"), "checkpoint": true },
        { "id": "lost", "depends_on": ["a"], "command": script("lost") },
    ]);
    let number = submit(&home, &tasks);
    ended(&home, &number, "completed");
    let outputs = |name: &str| {
        let written = fs::read_to_string(written.path().join(name)).unwrap();
        let all: Vec<_> = written.lines().map(str::to_owned).collect();
        let shown = home.json(&["speculation", "show", &number, name]);
        assert_eq!(shown["attempt"], 2, "{shown}");
        assert_eq!(text(&shown["output_text"]).trim_end(), all.last().unwrap(), "{shown}");
        all
    };
    assert_eq!(outputs("kept").len(), 1, "kept by its checkpoint");
    let lost = outputs("lost");
    assert_eq!(lost.len(), 2, "done again: {lost:?}");
    configure(&home, &["proof.latency=300ms"]);

    let tasks = json!([
        { "id": "long", "command": ["sleep", "600"] },
        { "id": "child", "depends_on": ["long"], "command": ["cat"] },
        { "id": "other", "command": ["echo", "1"] },
    ]);
    let number = submit(&home, &tasks);
    until_task(&home, &number, "long", |task| !task["runner"].is_null());
    home.json(&["speculation", "cancel", &number, "long"]);
    let shown = ended(&home, &number, "cancelled");
    assert_eq!(task(&shown, "long")["status"], "cancelled");
    assert_eq!(task(&shown, "child")["status"], "rolled_back");
    assert_eq!(task(&shown, "other")["status"], "confirmed");
    settled(&home);
}

/// Descendants of a refused output are refused with it, even if a checkpoint keeps their outputs.
#[test]
fn a_kept_output_is_used_only_with_what_it_was_made_from() {
    // Long enough for the child to end before its root is refused.
    let home = devnet(&json!({
        "enabled": true,
        "rollbackPolicy": "checkpoint",
        "proof": { "latency": "2s" },
    }));
    let tasks = json!([
        { "id": "root", "command": ["cat", "/proc/sys/kernel/random/uuid"],
          "fault": "wrong_proof", "attempts": 2 },
        { "id": "child", "depends_on": ["root"], "command": ["cat"], "checkpoint": true },
    ]);
    let number = submit(&home, &tasks);
    until_task(&home, &number, "child", |task| task["status"] == "proving");
    let output = |name: &str| {
        text(&home.json(&["speculation", "show", &number, name])["output_text"]).to_owned()
    };
    let first = output("root");
    let shown = ended(&home, &number, "completed");
    assert_eq!(task(&shown, "child")["attempt"], 2, "{shown}");
    let root = output("root");
    assert_ne!(root, first);
    let read: Value = serde_json::from_str(&output("child")).unwrap();
    assert_eq!(read["root"], root.trim_end(), "{read}");
    settled(&home);
}

/// No validator runs while proofs are due, for longer than the timeout of a confirmation.
#[test]
fn a_lost_chain_is_no_failed_proof() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "latency": "1s" },
        "confirmationTimeoutMs": 5_000,
    }));
    let number = submit(&home, &five());
    until_task(&home, &number, "e", |task| task["status"] == "proving");
    let validators = ["validator-0", "validator-1", "validator-2", "validator-3"];
    for validator in validators {
        home.json(&["validator", "stop", validator]);
    }
    let away = || home.json(&["speculation", "status"])["chain_away"].clone();
    wait_until("it has tried to reach the chain three times", || {
        let away = away();
        !away.is_null() && number_of(&away["tries"]) >= 3
    });
    assert_eq!(away()["paused"], false);
    for validator in validators {
        home.json(&["validator", "start", validator]);
    }
    let shown = ended(&home, &number, "completed");
    assert!(rollbacks(&home, &number).is_empty(), "{shown}");
    let status = home.json(&["speculation", "status"]);
    assert_eq!((&status["stake_slashed"], &status["chain_away"]), (&json!("0"), &Value::Null));
    settled(&home);
}

/// Without speculation every level of a pipeline waits for a proof and a confirmation, which the
/// synchronous time of a pipeline counts. A test in virtual time (agent/tests/timed.rs) compares it
/// exactly; here other tests share the processors.
#[test]
fn synchronously_is_what_the_devnet_takes_without_speculation() {
    let home = devnet(&json!({
        "enabled": true,
        "proof": { "generator": "mock", "latency": "1s" },
        "confirmation": { "latency": "1500ms" },
    }));
    let cat = ["cat"];
    let of = |name: &str, on: &[&str]| json!({ "id": name, "depends_on": on, "command": cat });
    let chain = json!([of("a", &[]), of("b", &["a"]), of("c", &["b"]), of("d", &["c"])]);
    let diamond = json!([of("a", &[]), of("b", &["a"]), of("c", &["a"]), of("d", &["b", "c"])]);
    let wide: Vec<_> = (0..10).map(|n| of(&format!("t{n}"), &[])).collect();
    let pipelines = [(chain, 4), (diamond, 3), (wide.into(), 1)];
    for (tasks, levels) in &pipelines {
        let shown = ended(&home, &submit(&home, tasks), "completed");
        let figure = number_of(&shown["synchronous_ms"]);
        assert!(figure >= levels * 2_500, "{levels} levels: {shown}");
        let gains = figure > number_of(&shown["elapsed_ms"]);
        assert!(gains || *levels == 1, "{levels} levels: {shown}");
    }
    configure(&home, &["enabled=false"]);
    for (tasks, levels) in &pipelines {
        let shown = ended(&home, &submit(&home, tasks), "completed");
        let took = number_of(&shown["elapsed_ms"]);
        assert_eq!(number_of(&shown["synchronous_ms"]), took);
        assert!(took >= levels * 2_500, "{levels} levels: {shown}");
    }
}

/// The agent applies the options that it reports, before and after a restart.
#[test]
fn options_say_what_counts() {
    let home = devnet(&json!({ "enabled": true, "maxParallelBranches": 1 }));
    let value = |option: &str| home.json(&["speculation", "config", option])["value"].clone();
    let available = || home.json(&["speculation", "status"])["stake_available"].clone();
    configure(&home, &["stake.deposit=200000000000000"]);
    let more = || json!("200000000000000");
    assert_eq!((value("stake.deposit"), available()), (more(), more()));
    home.json(&["devnet", "down"]);
    home.up(&[]);
    let planned = || json!("100000000000000");
    assert_eq!((value("stake.deposit"), available()), (planned(), planned()));

    let refused =
        home.fails(2, &["speculation", "config", "set", "stake.minStake=100000000000001"]);
    assert!(refused.contains("stake.minStake"), "{refused}");
    assert!(refused.contains("stake.maxStake"), "{refused}");
    let refused = home.fails(2, &["speculation", "config", "set", "stake.deposit=5"]);
    assert!(refused.contains("stake.minStake"), "{refused}");
    let gone = home.fails(2, &["speculation", "config", "set", "proof.batchSize=2"]);
    assert!(gone.contains("no such option"), "{gone}");
    let short = json!([{ "id": "short", "command": ["echo", "1"], "claim_ms": 60_000 }]);
    let file = home.path("short.json");
    fs::write(&file, json!({ "name": "short", "tasks": short }).to_string()).unwrap();
    let refused = home.fails(2, &["speculation", "submit", file.to_str().unwrap()]);
    assert!(refused.contains("claim_ms is 60000: expected more than claimBufferMs"), "{refused}");

    // A refusal is counted once, in the status and in the metrics.
    let wide: Vec<_> =
        (0..6).map(|n| json!({ "id": format!("t{n}"), "command": ["echo", "1"] })).collect();
    ended(&home, &submit(&home, &wide.into()), "completed");
    let counted = &home.json(&["speculation", "status"])["tasks_rejected"];
    let client = Client::of_devnet(&home.devnet("local")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let metrics = runtime.block_on(client.metrics()).unwrap();
    let series = "speculation_tasks_rejected_total{reason=\"too_many_branches\"} ";
    let exported = metrics.lines().find_map(|line| line.strip_prefix(series)).unwrap();
    assert_eq!(exported.parse(), Ok(number_of(&counted["too_many_branches"])), "{counted}");
    assert_eq!(exported, "5");
}
