//! Timers on a real chain: scheduled, fired, shown, extended, cancelled, and repeated.

use crate::{
    shape,
    support::{Home, list},
};
use serde_json::Value;

pub const HEARTBEAT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/actors/heartbeat.star");

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn a_timer_fires_is_paid_for_and_comes_again() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "0"]);
    let deployed = home.json(&["actor", "deploy", HEARTBEAT]);
    let actor = text(&deployed["actor"]);

    // Its payer has no money yet, which the command reports at once.
    let poor = home.run(&["-q", "timer", "schedule", actor, "--in", "3", "--handler", "beats"]);
    assert!(poor.code == 0 && poor.stderr.contains("cowboyctl account fund"), "{poor:?}");
    let poor = poor.stdout.trim();
    home.json(&["account", "fund", actor, "10cby"]);

    let args = ["timer", "schedule", actor, "--in", "4", "--handler", "beats", "--tier", "fast"];
    let fired = home.json(&[&args[..], &["--wait", "--timeout", "60s"]].concat());
    assert_eq!((&fired["status"], &fired["result"]), (&"fired".into(), &0.into()), "{fired}");
    assert_eq!(fired["fired_at"], fired["height"], "the lane is empty: it is on time");
    let shown = home.json(&["timer", "show", text(&fired["timer_id"])]);
    let paid: u128 = ["burned_cycle", "burned_lane", "tip", "cells"]
        .map(|part| text(&shown["charged"][part]).parse::<u128>().unwrap())
        .iter()
        .sum();
    let balance = |home: &Home| -> u128 {
        text(&home.json(&["account", "balance", actor])["balance"]).parse().unwrap()
    };
    // The other one was removed or has fired, depending on when the money came.
    let other = home.json(&["timer", "show", poor]);
    let others: u128 = match other["charged"].as_object() {
        Some(charged) => {
            assert_eq!(other["status"], "fired");
            let parts = charged.iter().filter(|(part, _)| *part != "refunded");
            parts.map(|(_, amount)| text(amount).parse::<u128>().unwrap()).sum()
        }
        None => {
            assert_eq!(other["status"], "insufficient_funds");
            0
        }
    };
    assert!(paid > 0);
    assert_eq!(balance(&home), 10_000_000_000 - paid - others, "{shown}");

    // A repeating timer, until the actor is called to stop.
    let beat = home.json(&["timer", "schedule", actor, "--every", "2", "--payload", "thump"]);
    home.wait_height(number(&beat["height"]) + 5);
    let log = home.json(&["actor", "logs", actor]);
    let beats: Vec<_> = list(&log)
        .iter()
        .filter(|line| line["name"] == "beat")
        .map(|line| (number(&line["data"]["beat"]), number(&line["height"])))
        .collect();
    assert!(beats.len() >= 3, "{log}");
    for (beat, (n, height)) in beats.iter().zip(1..).map(|(beat, n)| (beat.0, (n, beat.1))) {
        assert_eq!(beat, n);
        let first = beats[0].1;
        assert_eq!(height, first + 2 * (n - 1), "every other block: {beats:?}");
    }
    let stopped =
        home.json(&["actor", "call", actor, "stop", "--cycles", "50000", "--cells", "500"]);
    assert_eq!(stopped["status"], "success");
    assert!(list(&home.json(&["timer", "ls", "--actor", actor])).is_empty());

    let blocks = home.json(&["timer", "fees", "--limit", "1000"]);
    let fires: u64 = list(&blocks).iter().map(|block| number(&block["fired"])).sum();
    let all = home.json(&["timer", "ls", "--all", "--status", "fired"]);
    assert_eq!(fires, list(&all).len() as u64, "{all}");
    let favoured = home.json(&["timer", "fairness"]);
    assert_eq!(number(&favoured["members"][0]["recent"]), fires, "{favoured}");
}

#[test]
fn a_timer_is_extended_cancelled_and_governed() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "0"]);
    let deployed = home.json(&["actor", "deploy", HEARTBEAT, "--from", "dev-1"]);
    let actor = text(&deployed["actor"]);
    let schedule = |more: &[&str]| {
        let args = ["timer", "schedule", &actor[..10], "--handler", "beats"];
        home.json(&[&args[..], more].concat())
    };
    let args = ["--at", "+5000", "--expires", "+5100", "--payer", "sender", "--payload", "0x00ff"];
    let timer = schedule(&args);
    let id = text(&timer["timer_id"]);
    let shown = home.json(&["timer", "show", &id[..12]]);
    assert_eq!((&shown["status"], &shown["tier"]), (&"scheduled".into(), &"epoch".into()));
    assert_eq!((&shown["payload"], &shown["handler"]), (&"0x00ff".into(), &"beats".into()));
    assert_eq!(shown["fee_payer"], home.json(&["account", "balance", "dev-1"])["address"]);

    // Only its deployer and governors may change it.
    let refused = home.fails(6, &["timer", "cancel", id, "--from", "dev-0"]);
    assert!(refused.contains("Unauthorized: "), "{refused}");
    let until = (number(&timer["expires_at"]) + 100).to_string();
    home.json(&["timer", "extend", id, &until]);
    assert_eq!(home.json(&["timer", "show", id])["expires_at"].to_string(), until);
    let refused = home.fails(6, &["timer", "extend", id, "+1"]);
    assert!(refused.contains("ExpiryOutOfRange: "), "{refused}");
    let late = ["timer", "schedule", actor, "--handler", "beats", "--at", "1"];
    assert!(home.fails(6, &late).contains("HeightNotInFuture: "));
    let dear = ["timer", "schedule", actor, "--handler", "beats", "--in", "9", "--max-fee", "0"];
    assert!(home.fails(6, &dear).contains("TimerRejectedBelowBasefee: "));
    home.json(&["timer", "cancel", id, "--system"]);
    let events = home.json(&["timer", "show", id]);
    let kinds: Vec<_> = list(&events["events"]).iter().map(|event| text(&event["kind"])).collect();
    assert_eq!(kinds, ["TimerScheduled", "TimerExtended", "TimerCancelled"]);
    let refused = home.fails(6, &["timer", "cancel", id]);
    assert!(refused.contains("UnknownTimer: "), "{refused}");
    home.fails(3, &["timer", "show", "0x1234567890"]);

    // The lane has no room for it, and later has room again.
    home.json(&["chain", "params", "set", "lane_timer_cycles", "1000"]);
    home.json(&["account", "fund", actor, "10cby"]);
    let height = home.height().to_string();
    home.wait_height(height.parse::<u64>().unwrap() + 1);
    let waiting = schedule(&["--in", "2"]);
    let id = text(&waiting["timer_id"]);
    home.wait_height(number(&waiting["height"]) + 2);
    let shown = home.json(&["timer", "show", id]);
    assert_eq!((&shown["status"], &shown["tier"]), (&"due".into(), &"carry_over".into()));
    assert_eq!(shown["deferrals"][0]["reason"], "lane_full", "{shown}");
    assert_eq!(shown["deferrals"][0]["from"], waiting["height"]);
    let set = home.json(&["chain", "params", "set", "lane_timer_cycles", "2000000"]);
    assert_eq!(set["changes"][0]["before"], 1_000);
    let watched = home.run(&["-o", "jsonl", "timer", "watch", id]);
    assert_eq!(watched.code, 0, "{watched:?}");
    let last: Value = serde_json::from_str(watched.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["data"]["success"]), (&"TimerFired".into(), &true.into()));
    let refused = home.fails(6, &["chain", "params", "set", "fast", "1", "--from", "dev-0"]);
    assert!(refused.contains("Unauthorized: "), "{refused}");
    shape::seen(&["chain params set", "chain wait", "timer extend", "timer cancel", "timer watch"]);
}
