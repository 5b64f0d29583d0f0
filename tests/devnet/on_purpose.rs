//! Injected faults, and a devnet's reaction to them.

use crate::{
    shape,
    support::{Home, list, on_all_hosts, wait_until},
    timers::{number, text},
};
use cowboy_engine::presence::Connectivity;
use serde_json::Value;

on_all_hosts! {
    a_partition_stops_finality_until_it_is_healed
    a_paused_runner_leaves_presence_and_returns
    a_killed_validator_is_not_missed_and_catches_up
    a_validator_lies_a_runner_into_presence_where_the_rule_lets_one
    a_killed_runner_vanishes_and_works_again_once_healed
    slow_and_lossy_links_carry_the_chain_on
    what_cannot_be_is_refused
}

fn faults(home: &Home) -> Vec<Value> {
    list(&home.json(&["fault", "ls"])).clone()
}

/// Waits until P(H) is known; whether it has the runner.
pub fn is_present(home: &Home, height: u64, runner: &str) -> bool {
    let height = height.to_string();
    let mut shown = None;
    wait_until("presence is known", || {
        let outcome = home.run(&["-o", "json", "presence", "show", &height]);
        shown = (outcome.code == 0).then(|| outcome.json());
        shown.is_some()
    });
    list(&shown.unwrap()["present"]).iter().any(|name| name == runner)
}

/// The first block from `from` on whose presence includes the runner, or excludes it.
pub fn first(home: &Home, from: u64, runner: &str, present: bool) -> u64 {
    const BLOCKS: u64 = 100;
    let found = (from..from + BLOCKS).find(|height| is_present(home, *height, runner) == present);
    found.unwrap_or_else(|| panic!("not within {BLOCKS} blocks from {from}"))
}

fn a_partition_stops_finality_until_it_is_healed(home: &Home) {
    home.up(&["--wait", "3", "--runners", "1"]);
    let sides = ["validator-0,validator-1", "validator-2,validator-3"];
    let laid = home.json(&["fault", "partition", sides[0], sides[1]]);
    // Pending blocks may still become final; then nothing does.
    let halted = home.height() + 2;
    home.fails(5, &["chain", "wait", &(halted + 1).to_string(), "--timeout", "3s"]);
    let shown = faults(home);
    assert_eq!((shown.len(), &shown[0]["id"]), (1, &laid["id"]));
    assert!(number(&shown[0]["dropped"]) > 0, "{shown:?}");
    let status = home.run(&["devnet", "status"]);
    let line = "faults   partition, validator-0,validator-1 | validator-2,validator-3 | runner-0\n";
    assert!(status.stdout.contains(line), "{status:?}");
    assert_eq!(laid["others"], serde_json::json!(["runner-0"]));
    assert_eq!(home.json(&["devnet", "status"])["faults"][0]["kind"], "partition");

    home.json(&["fault", "heal"]);
    home.wait_height(halted + 5);
    assert!(faults(home).is_empty());
    // With three of four on one side, that side goes on, and the fault heals by itself.
    let laid = home.json(&["fault", "partition", "validator-3", "--for", "+5"]);
    let until = number(&laid["until_height"]);
    home.wait_height(until);
    wait_until("the fault has healed by itself", || faults(home).is_empty());
    let head = home.height().to_string();
    home.json(&["--node", "validator-3", "chain", "wait", &head, "--timeout", "60s"]);
    shape::seen(&["fault ls", "fault partition"]);
}

fn a_paused_runner_leaves_presence_and_returns(home: &Home) {
    home.up(&["--wait", "6"]);
    home.json(&["fault", "pause", "runner-1"]);
    let paused = home.height();
    let left = first(home, paused, "runner-1", false);
    // Its last ping may be for this head. Votes on a block use the head before it.
    let kept = (left - paused).saturating_sub(1);
    let most = Connectivity::DEFAULT.presence_timeout_blocks + 1;
    assert!(kept <= most, "paused at {paused}, absent from {left}");
    assert!(is_present(home, left, "runner-0"));
    home.json(&["fault", "heal", "runner-1"]);
    let healed = home.height();
    let back = first(home, healed, "runner-1", true);
    assert!(left < back, "absent from {left}, present from {back}");
    let runner = home.json(&["runner", "show", "runner-1"]);
    assert!(list(&runner["connections"]).iter().any(|c| c["connected"] == true), "{runner}");
    shape::seen(&["fault pause", "fault heal"]);
}

fn a_killed_validator_is_not_missed_and_catches_up(home: &Home) {
    home.up(&["--wait", "3"]);
    home.json(&["fault", "kill", "validator-2"]);
    let validator = || home.json(&["validator", "show", "validator-2"]);
    assert_eq!(validator()["status"], "stopped");
    let again = home.fails(8, &["fault", "kill", "validator-2"]);
    assert!(again.contains("stopped already"), "{again}");
    home.wait_height(home.height() + 8);
    let healed = home.json(&["fault", "heal", "validator-2"]);
    assert_eq!(list(&healed).len(), 1);
    let target = home.height().to_string();
    let wait = ["--node", "validator-2", "chain", "wait", &target, "--timeout", "60s"];
    home.json(&wait);
    let theirs = home.json(&["--node", "validator-2", "chain", "block", &target]);
    assert_eq!(theirs["hash"], home.json(&["chain", "block", &target])["hash"]);

    home.json(&["fault", "kill", "validator-2"]);
    assert_eq!(text(&faults(home)[0]["kind"]), "kill");
    home.json(&["validator", "start", "validator-2"]);
    assert!(faults(home).is_empty(), "a start heals it");
    shape::seen(&["fault kill"]);
}

fn a_validator_lies_a_runner_into_presence_where_the_rule_lets_one(home: &Home) {
    let file = home.path("quorum.yaml");
    let rule = "chain:\n  presence:\n    threshold_rule: quorum\n";
    std::fs::write(&file, format!("runners: 2\n{rule}")).unwrap();
    home.up(&["-f", file.to_str().unwrap(), "--wait", "4"]);
    let killed = home.json(&["fault", "kill", "runner-1"]);
    let gone = first(home, number(&killed["since"]), "runner-1", false);
    let laid = home.json(&["fault", "lie", "validator-3", "ones", "of", "runner-1"]);
    let expected = ["lie", "validator-3", "ones", "runner-1"];
    assert_eq!(["kind", "at", "votes", "of"].map(|key| text(&laid[key])), expected, "{laid}");
    let lied = first(home, number(&laid["since"]).max(gone), "runner-1", true);
    assert!(is_present(home, lied, "runner-0"), "it lies about one");
    let lie = faults(home).pop().unwrap();
    assert!(number(&lie["lies"]) > 0, "{lie}");
    home.json(&["fault", "heal", "validator-3"]);
    first(home, home.height() + 1, "runner-1", false);
    // It hides every runner, but at least two of three votes are still honest.
    home.json(&["fault", "lie", "validator-3", "zeros"]);
    let from = home.height() + 1;
    home.wait_height(from + 3);
    assert!(is_present(home, from, "runner-0"));

    let error = home.fails(2, &["fault", "lie", "validator-3", "twos"]);
    assert!(error.contains("`twos` is not a lie: expected ones, zeros or flip"), "{error}");
    let error = home.fails(2, &["fault", "lie", "runner-0", "ones"]);
    assert!(error.contains("`runner-0` is a runner: only validators vote"), "{error}");
    let error = home.fails(3, &["fault", "lie", "validator-3", "of", "runner-7"]);
    assert!(error.contains("no runner `runner-7` is registered"), "{error}");
    shape::seen(&["fault lie"]);
}

fn a_killed_runner_vanishes_and_works_again_once_healed(home: &Home) {
    home.up(&["--wait", "4", "--runners", "1"]);
    let laid = home.json(&["fault", "kill", "runner-0"]);
    first(home, number(&laid["since"]), "runner-0", false);
    let status = || text(&home.json(&["devnet", "status"])["runners"][0]["status"]).to_owned();
    assert_eq!(status(), "stopped");
    home.json(&["fault", "heal", "runner-0"]);
    first(home, home.height(), "runner-0", true);
    let job = ["job", "submit", "custom", "--wait", "--timeout", "60s", "--", "echo", "back"];
    assert_eq!(home.json(&job)["result"], "0x6261636b0a");
}

fn slow_and_lossy_links_carry_the_chain_on(home: &Home) {
    home.up(&["--wait", "3"]);
    home.json(&["fault", "latency", "validator-0", "50ms", "--jitter", "5ms"]);
    home.json(&["fault", "loss", "validator-1..validator-2", "20", "--seed", "5"]);
    home.json(&["fault", "loss", "runner-0", "10", "--for", "10m"]);
    home.wait_height(home.height() + 10);
    let shown = faults(home);
    assert!(number(&shown[0]["delayed"]) > 0, "{shown:?}");
    assert_eq!((&shown[0]["delay_us"], &shown[0]["jitter_us"]), (&50_000.into(), &5_000.into()));
    assert_eq!((&shown[1]["seed"], &shown[1]["per_mille"]), (&5.into(), &200.into()));
    assert!(number(&shown[1]["dropped"]) > 0, "{shown:?}");
    assert!(shown[2]["until"].is_string(), "{shown:?}");
    let table = home.run(&["fault", "ls"]).stdout;
    assert!(table.contains("latency 50 ms to 55 ms  validator-0 "), "{table}");
    assert!(table.contains("loss 20 %               validator-1..validator-2 "), "{table}");
    assert_eq!(list(&home.json(&["fault", "heal", "1"])).len(), 1);
    assert_eq!(home.run(&["-q", "fault", "heal"]).stdout, "2\n3\n");
    home.wait_height(home.height() + 3);
    shape::seen(&["fault latency", "fault loss"]);
}

fn what_cannot_be_is_refused(home: &Home) {
    let none = home.fails(4, &["fault", "ls"]);
    assert!(none.contains("no devnet is running"), "{none}");
    home.up(&["--validators", "2", "--runners", "1"]);
    let check = |code: i32, args: &[&str], says: &str| {
        let error = home.fails(code, &[&["fault"], args].concat());
        assert!(error.contains(says), "{args:?}: {error}");
    };
    check(3, &["kill", "validator-7"], "there is no node `validator-7`");
    check(3, &["pause", "validator-7"], "the nodes of this devnet are validator-0, validator-1");
    check(3, &["heal", "9"], "there is no fault 9 in force");
    check(3, &["loss", "validator-0..validator-7", "5"], "there is no node `validator-7`");
    let twice = ["partition", "validator-0", "runner-0,validator-0"];
    check(2, &twice, "`validator-0` is in a partition twice");
    check(2, &["partition", "validator-0,validator-1,runner-0"], "at least two groups");
    check(2, &["latency", "validator-0", "2m"], "delayed by 1 µs to 1 m, not by 2 m");
    check(2, &["pause", "runner-0", "--for", "+0"], "one block or more");
    for args in [
        &["loss", "validator-0", "150"][..],
        &["loss", "validator-0", "0"],
        &["latency", "validator-0", "soon"],
        &["pause", "validator-0", "--for", "10"],
        &["partition"],
        &["partition", "a,,b"],
    ] {
        let refused = home.run(&[&["fault"], args].concat());
        assert_eq!(refused.code, 2, "{args:?}: {refused:?}");
    }
    assert!(faults(home).is_empty());
    let nothing = home.run(&["fault", "heal", "validator-0"]);
    let note = "nothing to heal: no fault is laid on `validator-0`\n";
    assert_eq!((nothing.code, nothing.stderr.as_str()), (0, note), "{nothing:?}");
}
