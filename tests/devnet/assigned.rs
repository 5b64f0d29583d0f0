//! Jobs that the chain takes back, and runners that reject them: the notices and the costs.

use crate::{
    storm::at_work,
    support::{Home, list, wait_until},
    timers::text,
};
use cowboy_devnet::client::Client;
use serde_json::Value;

/// Submits a job with lasting processes, and returns its id once they run.
fn stay(home: &Home) -> String {
    let script = "sleep 600 & exec sleep 600";
    let submit = ["job", "submit", "custom", "--timeout-blocks", "5000", "--", "sh", "-c", script];
    let submitted = home.json(&submit);
    wait_until("the job's processes run", || !at_work(home).is_empty());
    text(&submitted["job_id"]).to_owned()
}

fn wait_gone(home: &Home) {
    wait_until("the job's processes are gone", || at_work(home).is_empty());
}

/// The validators to which the only runner is connected.
fn connected(home: &Home) -> Vec<String> {
    let runner = home.json(&["runner", "show", "runner-0"]);
    let connections = list(&runner["connections"]).iter();
    let connected = connections.filter(|connection| connection["connected"] == true);
    connected.map(|connection| text(&connection["validator"]).to_owned()).collect()
}

fn connected_sorted(home: &Home) -> Vec<String> {
    let mut connected = connected(home);
    connected.sort_unstable();
    connected
}

#[test]
fn a_cancelled_job_ends_whichever_of_its_validators_is_gone() {
    let home = Home::new();
    home.up(&["--validators", "4", "--runners", "1"]);
    wait_until("the runner is connected", || connected(&home).len() == 3);
    let subset = connected(&home);
    // One of them has the stream on which the job was accepted.
    for validator in &subset {
        let job = stay(&home);
        home.json(&["validator", "stop", validator]);
        home.json(&["job", "cancel", &job]);
        wait_gone(&home);
        home.json(&["validator", "start", validator]);
        wait_until("the runner is connected again", || connected(&home).len() == 3);
    }
}

#[test]
fn a_cancelled_job_ends_by_a_proof_where_too_few_validators_are_left_to_cancel_it() {
    let home = Home::new();
    home.up(&["--validators", "7", "--runners", "1"]);
    // With seven validators a devnet is ready before its runner is connected.
    wait_until("the runner is connected", || connected(&home).len() == 4);
    let subset = connected(&home);
    let job = stay(&home);
    // A cancellation needs three validators, and only two are left.
    for validator in &subset[..2] {
        home.json(&["validator", "stop", validator]);
    }
    home.json(&["job", "cancel", &job]);
    wait_gone(&home);
}

#[test]
fn a_job_that_was_cancelled_behind_a_partition_ends_when_the_runner_is_back() {
    let home = Home::new();
    home.up(&["--validators", "4", "--runners", "1"]);
    let job = stay(&home);
    home.json(&[
        "fault",
        "partition",
        "runner-0",
        "validator-0,validator-1,validator-2,validator-3",
    ]);
    wait_until("the runner is cut off", || connected(&home).is_empty());
    home.json(&["job", "cancel", &job]);
    home.json(&["chain", "wait", "+20"]);
    assert!(!at_work(&home).is_empty(), "it cannot know");
    home.json(&["fault", "heal"]);
    wait_until("the runner is connected again", || connected(&home).len() >= 2);
    wait_gone(&home);
}

#[test]
fn a_runner_that_rejects_a_job_loses_nothing_and_the_next_one_does_it() {
    let home = Home::new();
    home.up(&["--validators", "4", "--runners", "0", "--wait", "2"]);
    let key = home.path("picky.key").to_str().unwrap().to_owned();
    let register = ["runner", "register", "--key-file", &key, "--kinds", "custom,http"];
    assert_eq!(home.run(&register).code, 0);
    home.json(&["runner", "start", "--key-file", &key, "--kinds", "http", "--detach"]);
    wait_until("it is present", || home.json(&["runner", "show", "picky"])["present"] == true);
    let submitted = home.json(&["job", "submit", "custom", "--", "echo", "hi"]);
    let id = text(&submitted["job_id"]).to_owned();
    let shown = || home.json(&["job", "show", &id]);
    let said = |job: &Value| {
        let mut events = list(&job["events"]).iter();
        events.any(|event| {
            event["event"] == "WorkFailed" && event.to_string().contains("unsupported_kind")
        })
    };
    // It has withdrawn the kind: if its validators knew of the job in time, it was not drawn.
    let waits =
        |job: &Value| list(&job["events"]).iter().any(|event| event["event"] == "JobWaiting");
    wait_until("no runner is left to do it", || waits(&shown()));
    let rejected = said(&shown());
    assert_eq!(shown()["status"], "Pending", "drawn again, without it");
    assert_eq!(home.json(&["runner", "show", "picky"])["reputation"], 100);
    let other = home.path("willing.key").to_str().unwrap().to_owned();
    let register = ["runner", "register", "--key-file", &other, "--kinds", "custom"];
    assert_eq!(home.run(&register).code, 0);
    home.json(&["runner", "start", "--key-file", &other, "--detach"]);
    let done = home.json(&["job", "wait", &id, "--timeout", "60s"]);
    assert_eq!((&done["status"], &done["result_text"]), (&"Verified".into(), &"hi\n".into()));
    assert_eq!(done["attempts"], if rejected { 2 } else { 1 }, "{done}");
    assert_eq!(home.json(&["runner", "show", "picky"])["reputation"], 100);
    for runner in ["picky", "willing"] {
        home.json(&["runner", "stop", runner]);
    }
}

#[test]
fn every_dispatch_of_a_job_is_told_and_every_end_of_a_connection() {
    let home = Home::new();
    home.up(&["--validators", "4", "--runners", "1"]);
    let submitted = home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    let id = text(&submitted["job_id"]).to_owned();
    let dispatches = || home.json(&["job", "dispatches", &id]);
    let outcomes = |all: &Value| {
        let mut outcomes: Vec<_> =
            list(all).iter().map(|one| text(&one["outcome"]).to_owned()).collect();
        outcomes.sort_unstable();
        outcomes
    };
    wait_until("all have answered", || {
        outcomes(&dispatches()) == ["done", "duplicate", "duplicate"]
    });
    let all = dispatches();
    let assigned_at = home.json(&["job", "show", &id])["assigned_at"].clone();
    let mut validators: Vec<_> = list(&all).iter().map(|one| text(&one["validator"])).collect();
    validators.sort_unstable();
    assert_eq!(validators, connected_sorted(&home));
    for one in list(&all) {
        assert!(one["answered_ms"].is_u64(), "{one}");
        for after in ["started_ms", "done_ms"] {
            assert_eq!(one[after].is_u64(), one["outcome"] == "done", "{one}");
        }
        assert_eq!(one["assigned_at"], assigned_at, "{one}");
    }
    let error = home.fails(3, &["job", "dispatches", &format!("0x{}", "9".repeat(64))]);
    assert!(error.contains("no job"), "{error}");

    home.json(&["runner", "stop", "runner-0"]);
    home.json(&["runner", "start", "runner-0"]);
    wait_until("the runner is connected again", || connected(&home).len() == 3);
    let shown = home.json(&["runner", "show", "runner-0"]);
    for connection in list(&shown["connections"]) {
        let end = &connection["last_end"];
        match connection["connected"] == true {
            true => assert_eq!(
                (&end["by"], &end["reason"]),
                (&"runner".into(), &"shutting_down".into())
            ),
            false => assert!(end.is_null(), "{connection}"),
        }
    }
    let client = Client::of_devnet(&home.devnet("local")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let metrics = runtime.block_on(client.metrics()).unwrap();
    let sum = |series: &str| -> u64 {
        let lines = metrics.lines().filter(|line| line.starts_with(series));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(sum("runner_dispatches_total{"), 3, "{metrics}");
    assert_eq!(sum("runner_dispatch_answer_duration_ms_count{"), 3, "{metrics}");
    assert_eq!(sum("runner_dispatch_start_duration_ms_count{"), 1, "{metrics}");
    // Every validator counts the draw.
    assert_eq!(sum("runner_draws_total{"), 4, "{metrics}");
    assert_eq!(sum("runner_connections{"), 3, "{metrics}");
    assert_eq!(sum("runner_reconnects_total{"), 3, "{metrics}");
    assert_eq!(sum("presence_registered "), 1, "{metrics}");
}
