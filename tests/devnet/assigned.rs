//! Jobs that the chain takes back, and runners that do not take them: who is told, and what it
//! costs.

use crate::{
    storm::at_work,
    support::{Home, list, wait_until},
    timers::text,
};
use serde_json::Value;

/// Submits a job whose processes stay, and yields its id once they run.
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

/// The validators that the only runner is connected to.
fn connected(home: &Home) -> Vec<String> {
    let runner = home.json(&["runner", "show", "runner-0"]);
    let connections = list(&runner["connections"]).iter();
    let connected = connections.filter(|connection| connection["connected"] == true);
    connected.map(|connection| text(&connection["validator"]).to_owned()).collect()
}

#[test]
fn a_cancelled_job_ends_whichever_of_its_validators_is_gone() {
    let home = Home::new();
    home.up(&["--validators", "4", "--runners", "1"]);
    let subset = connected(&home);
    assert_eq!(subset.len(), 3, "{subset:?}");
    // One of them has the stream that the job was accepted on.
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
    // It has withdrawn the kind: where its validators knew of the job in time, it was not drawn.
    let waits =
        |job: &Value| list(&job["events"]).iter().any(|event| event["event"] == "JobWaiting");
    wait_until("nobody is left to do it", || waits(&shown()));
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
