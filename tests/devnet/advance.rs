//! The chain goes faster than its block time on request, and back.

use crate::{
    shape,
    support::{Home, list},
};
use serde_json::Value;
use std::{process::Stdio, thread};

/// Slightly less than the block time: no paced block comes sooner.
const PACE_MS: i64 = 1_950;

fn up(home: &Home) {
    home.json(&["devnet", "up", "--detach", "--block-time", "2s", "--wait", "1"]);
}

/// Milliseconds between the timestamps of two blocks.
fn between(home: &Home, from: u64, to: u64) -> i64 {
    let at = |height: u64| -> jiff::Timestamp {
        let block = home.json(&["chain", "block", &height.to_string()]);
        block["timestamp"].as_str().unwrap().parse().unwrap()
    };
    at(to).as_millisecond() - at(from).as_millisecond()
}

fn height(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn an_advance_takes_no_block_time_and_then_the_pace_is_back() {
    let home = Home::new();
    up(&home);
    let advanced = home.json(&["chain", "advance", "--blocks", "40"]);
    let (from, to) = (height(&advanced["from"]), height(&advanced["to"]));
    assert_eq!((to - from, height(&advanced["blocks"])), (40, 40));
    assert!(home.height() >= to);
    let taken = between(&home, from + 1, to);
    assert!(taken < 20 * PACE_MS, "40 blocks took {taken} ms of the chain's time");
    // A paced block is never early, even on a busy machine.
    home.wait_height(to + 2);
    assert!(between(&home, to, to + 1) >= PACE_MS);
    assert!(between(&home, to + 1, to + 2) >= PACE_MS);
    for at in [from + 1, from + 20, to] {
        let check = home.json(&["presence", "verify", &at.to_string()]);
        assert_eq!(check["valid"], true, "{check}");
    }
    // Runners keep up: all are still present at full speed.
    let presence = home.json(&["presence", "show", &(to - 1).to_string()]);
    assert_eq!(list(&presence["present"]).len(), 4, "{presence}");
    let next = home.run(&["--quiet", "chain", "advance", "--blocks", "1"]);
    assert!(next.stdout.trim().parse::<u64>().unwrap() > to, "{next:?}");
    shape::seen(&["chain advance"]);
}

/// A validator alone syncs its files after an advance and not in it; a kill must not matter.
#[test]
fn a_validator_alone_is_killed_while_it_advances_and_goes_on() {
    let home = Home::new();
    let up = ["devnet", "up", "--detach", "--validators", "1", "--runners", "0"];
    home.json(&up);
    for _ in 0..3 {
        let from = home.height();
        let mut advance = home.command(&["chain", "advance", "20000", "--timeout", "60s"]);
        let mut advance = advance.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        home.wait_height(from + 60);
        let seen = home.height();
        home.kill("local");
        advance.kill().unwrap();
        advance.wait().unwrap();
        home.json(&["devnet", "up", "--detach"]);
        assert!(home.height() >= seen, "{} after {seen}", home.height());
        home.wait_height(seen + 2);
    }
    home.json(&["chain", "advance", "50"]);
    home.json(&["chain", "verify", "1..latest"]);
    let deep = home.run(&["doctor", "--deep"]);
    assert!(!deep.stdout.contains("problem"), "{deep:?}");
}

#[test]
fn the_further_of_two_advances_counts() {
    let home = Home::new();
    up(&home);
    let from = home.height();
    let outcomes: Vec<Value> = thread::scope(|scope| {
        let advance = |blocks: &'static str| {
            let home = &home;
            scope.spawn(move || home.json(&["chain", "advance", "--blocks", blocks]))
        };
        let both = [advance("60"), advance("5")];
        both.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(height(&outcomes[0]["blocks"]), 60);
    assert_eq!(height(&outcomes[1]["blocks"]), 5);
    let taken = between(&home, from + 1, from + 60);
    assert!(taken < 30 * PACE_MS, "60 blocks took {taken} ms of the chain's time");
}

#[test]
fn an_advance_ends_in_time_and_needs_a_quorum() {
    let home = Home::new();
    up(&home);
    home.json(&["validator", "stop", "validator-1"]);
    home.json(&["validator", "stop", "validator-2"]);
    let error = home.fails(5, &["chain", "advance", "--blocks", "50", "--timeout", "1s"]);
    assert!(error.contains("last seen"), "{error}");
    home.json(&["validator", "start", "validator-1"]);
    let now = home.height();
    // The advance is over: the next blocks are paced.
    home.wait_height(now + 3);
    assert!(between(&home, now + 1, now + 3) >= 2 * PACE_MS);
    // With one of four validators stopped the chain advances, as fast as views are skipped.
    let advanced = home.json(&["chain", "advance", "--blocks", "10"]);
    assert_eq!(height(&advanced["blocks"]), 10);
}

#[test]
fn automine_gives_each_transaction_a_block_and_none_without() {
    let home = Home::new();
    home.json(&[
        "devnet",
        "up",
        "--detach",
        "--block-time",
        "60s",
        "--validators",
        "4",
        "--runners",
        "0",
    ]);
    assert_eq!(home.json(&["chain", "automine", "on"])["on"], true);
    let transfer = |amount: &str| {
        let sent = home.json(&["account", "transfer", "dev-0", "dev-1", amount]);
        height(&sent["height"])
    };
    // The first may find a block that is under way.
    let first = transfer("1cby");
    let blocks: Vec<u64> = (2..7).map(|n| transfer(&format!("{n}cby"))).collect();
    let expected: Vec<u64> = (first + 1..first + 6).collect();
    assert_eq!(blocks, expected, "a block for each, and none between");
    assert_eq!(home.height(), first + 5);
    home.json(&["chain", "automine", "off"]);
    let said = home.fails(5, &["account", "transfer", "dev-0", "dev-1", "9cby", "--timeout", "1s"]);
    assert!(said.contains("in the mempool"), "{said}");
    shape::seen(&["chain automine"]);
}

#[test]
fn validators_in_processes_of_their_own_go_faster_too() {
    let home = Home::apart();
    let up = ["devnet", "up", "--detach", "--hosts", "process", "--block-time", "60s"];
    home.json(&[&up[..], &["--validators", "4", "--runners", "0"]].concat());
    home.json(&["chain", "advance", "5", "--timeout", "20s"]);
    let made = home.json(&["chain", "snapshot", "--timeout", "20s"]);
    home.json(&["chain", "automine", "on"]);
    let transfer = || {
        let words = ["account", "transfer", "dev-0", "dev-1", "1cby", "--timeout", "20s"];
        height(&home.json(&words)["height"])
    };
    let first = transfer();
    assert_eq!(transfer(), first + 1);
    let back = home.json(&["chain", "revert", "latest", "--timeout", "20s"]);
    assert_eq!(back["of"], made["height"]);
}
