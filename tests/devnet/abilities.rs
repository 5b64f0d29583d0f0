//! Runners withdraw abilities for a while, offer them again, and lock them again.

use crate::{
    shape,
    support::{Home, list, wait_until},
    timers::text,
};
use cowboy_engine::primitives::{InCby, Wei};
use serde_json::{Value, json};

/// Submits a job from an account without a favoured runner, and returns it after it is verified.
fn submit(home: &Home, number: usize, more: &[&str]) -> Value {
    let from = format!("dev-{}", number % 10);
    let submit = ["job", "submit", "custom", "--from", &from, "--wait"];
    let job = home.json(&[&submit[..], more, &["--", "echo", "hi"]].concat());
    assert_eq!(job["status"], "Verified", "{job}");
    home.json(&["job", "show", text(&job["job_id"])])
}

/// A runner's withdrawn abilities, if all its validators agree on them.
fn heard(home: &Home, runner: &str) -> Option<Value> {
    let shown = home.json(&["runner", "show", runner]);
    let connections = list(&shown["connections"]);
    let first = connections.first()?["withdrawn"].clone();
    connections.iter().all(|one| one["withdrawn"] == first).then_some(first)
}

fn until_heard(home: &Home, runner: &str, labels: &[&str]) {
    wait_until("its validators have heard", || heard(home, runner) == Some(json!(labels)));
}

#[test]
fn what_a_runner_withdraws_others_do_until_it_is_added_again() {
    let home = Home::new();
    home.up(&["--runners", "2", "--wait", "4"]);
    let told = home.json(&["runner", "capability", "remove", "runner-0", "custom"]);
    assert_eq!(told["withdrawn"], json!(["custom"]), "{told}");
    until_heard(&home, "runner-0", &["custom"]);
    let shown = home.run(&["runner", "show", "runner-0"]);
    assert!(shown.stdout.contains("withdrawn"), "{shown:?}");

    // Nearly all jobs reach the mempool too late for the runner's validators to know of them, and
    // half of these draw it first.
    let rejected = (0..40).map(|number| submit(&home, number, &[])).find(|job| {
        assert_eq!(job["committee"], json!(["runner-1"]), "{job}");
        job["attempts"] == 2
    });
    let job = rejected.expect("a job draws it first");
    let id = text(&job["job_id"]);
    let explained = home.json(&["job", "explain", id]);
    let candidates = list(&explained["candidates"]);
    let dropped = candidates.iter().find(|one| one["runner"] == "runner-0").unwrap();
    let reason = "in an earlier attempt at this job: the runner rejected the job: unsupported_kind";
    assert_eq!((&dropped["filter"], &dropped["reason"]), (&"exclusion".into(), &reason.into()));
    assert_eq!(explained["withdrawn"], json!([{"runner": "runner-0", "labels": ["custom"]}]));
    let verified = home.json(&["job", "verify-selection", id]);
    assert_eq!(verified["valid"], true, "{verified}");
    assert_eq!(home.json(&["runner", "show", "runner-0"])["reputation"], 100);

    let told = home.json(&["runner", "capability", "add", "runner-0", "custom"]);
    assert_eq!(told["withdrawn"], json!([]), "{told}");
    until_heard(&home, "runner-0", &[]);
    let mut jobs = (0..60).map(|number| submit(&home, number, &[]));
    assert!(jobs.any(|job| job["committee"] == json!(["runner-0"])), "it is drawn again");

    let unknown = home.fails(8, &["runner", "capability", "remove", "runner-0", "llm"]);
    assert!(unknown.contains("runner `runner-0` is not registered for `llm`"), "{unknown}");
    for label in ["fax", "llm:", ""] {
        let refused = home.run(&["runner", "capability", "remove", "runner-0", label]);
        assert_eq!(refused.code, 2, "{refused:?}");
    }
    home.fails(3, &["runner", "capability", "add", "nobody", "http"]);
    shape::seen(&["runner capability add", "runner capability remove", "job explain"]);
}

#[test]
fn a_runner_says_at_its_start_what_it_does_not_take() {
    let home = Home::new();
    home.up(&["--runners", "1", "--wait", "2"]);
    let key = home.path("own.key").to_str().unwrap().to_owned();
    let register = ["runner", "register", "--key-file", &key, "--kinds", "custom,http", "--tee"];
    assert_eq!(home.run(&register).code, 0);
    home.json(&["runner", "start", "--key-file", &key, "--kinds", "http", "--detach"]);
    until_heard(&home, "own", &["custom"]);
    let load = home.json(&["runner", "capability", "add", "own", "custom"]);
    assert_eq!(load["withdrawn"], json!([]));
    until_heard(&home, "own", &[]);
    wait_until("it is present", || home.json(&["runner", "show", "own"])["present"] == true);
    assert_eq!(home.json(&["runner", "show", "own"])["tee"], true);

    let job = submit(&home, 0, &["--tee"]);
    let own = home.json(&["runner", "show", "own"])["address"].clone();
    assert_eq!(job["committee"], json!([own]), "{job}");
    let explained = home.json(&["job", "explain", text(&job["job_id"])]);
    let other = list(&explained["candidates"]).iter().find(|one| one["runner"] == "runner-0");
    assert_eq!(other.unwrap()["filter"], "tee", "{explained}");

    // An ability without a registration cannot be withdrawn.
    home.json(&["runner", "update", "--key-file", &key, "--kinds", "http", "--tee=false"]);
    let entry = home.json(&["runner", "show", "own"]);
    assert_eq!((&entry["kinds"], &entry["tee"]), (&json!(["http"]), &json!(false)));
    let refused = home.fails(8, &["runner", "capability", "remove", "own", "custom"]);
    assert!(refused.contains("is not registered for `custom`"), "{refused}");
    home.json(&["runner", "stop", "own"]);
}

#[test]
fn a_slashed_runner_comes_back_with_more_stake() {
    let home = Home::new();
    home.up(&["--runners", "1", "--wait", "4"]);
    let job = submit(&home, 0, &["--verify", "economic_bond"]);
    home.json(&["job", "slash", text(&job["job_id"])]);
    let connected = || {
        let shown = home.json(&["runner", "show", "runner-0"]);
        list(&shown["connections"]).iter().any(|connection| connection["connected"] == true)
    };
    wait_until("its validators let it go", || !connected());
    let shown = home.json(&["runner", "show", "runner-0"]);
    let locked = InCby(Wei::new(text(&shown["stake"]).parse().unwrap()));
    let unmet = json!({
        "condition": "insufficient_stake",
        "detail": format!("it has locked {locked}, 10000 CBY are needed"),
    });
    assert_eq!((&shown["unmet"], &home.json(&["runner", "ls"])[0]["unmet"]), (&unmet, &unmet));
    let found = home.run(&["--output", "json", "doctor"]).json();
    let runners = list(&found).iter().find(|finding| finding["check"] == "runners").unwrap();
    assert_eq!(runners["state"], "warning", "{runners}");
    assert!(text(&runners["what"]).contains("(insufficient_stake: it has locked "), "{runners}");
    let fix = "cowboyctl runner update runner-0 --stake 10000cby --devnet local";
    assert!(text(&runners["fix"]).starts_with(fix), "{runners}");
    let little = home.fails(6, &["runner", "update", "runner-0", "--stake", "9999cby"]);
    assert!(little.contains("InsufficientStake"), "{little}");
    home.json(&["account", "fund", "runner-0", "10cby"]);
    let topped = home.json(&["runner", "update", "runner-0", "--stake", "10000cby"]);
    assert_eq!(topped["status"], "success", "{topped}");
    wait_until("it is present again", || {
        connected() && home.json(&["runner", "show", "runner-0"])["present"] == true
    });
    submit(&home, 1, &[]);
    home.json(&["runner", "update", "runner-0", "--stake", "10001cby"]);
    let lowered = home.fails(6, &["runner", "update", "runner-0", "--stake", "10000cby"]);
    assert!(lowered.contains("StakeLowered"), "{lowered}");
    let nothing = home.run(&["runner", "update", "runner-0"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    shape::seen(&["runner update"]);
}
