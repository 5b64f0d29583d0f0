//! The policy of timers changes on a running devnet, at a height, while timers wait for the lane.
//! All validators have the same state, even if some stop, restart or join at that time.

use crate::{
    shape,
    support::{Home, list, wait_until},
    timers::{number, text},
};
use serde_json::{Value, json};
use std::fs;

const SPAMMER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/actors/spammer.star");

/// Timers that are due before the activation; the lane fires ten per block.
const TIMERS: u64 = 60;
/// Blocks until they are due: enough for the other steps before, also on slow machines.
const AHEAD: u64 = 150;

fn events(home: &Home, kind: &str) -> Vec<Value> {
    list(&home.json(&["chain", "events", "--from", "0", "--kind", kind])).clone()
}

#[test]
fn the_policy_changes_at_a_height_on_every_validator_alike() {
    let home = Home::new();
    let topology = home.path("topology.yaml");
    let yaml = json!({
        "name": "local", "validators": 4, "runners": 0,
        "timers": {
            "lane_timer_cycles": 165_000,
            "max_cycles_per_fire": 20_000,
            "max_cycles_per_fire_auction_phase": 20_000,
        },
    });
    fs::write(&topology, yaml.to_string()).unwrap();
    home.up(&["-f", topology.to_str().unwrap(), "--wait", "2"]);
    let deployed = home.json(&["actor", "deploy", SPAMMER]);
    let spammer = text(&deployed["actor"]);
    home.json(&["account", "fund", spammer, "1000cby"]);
    let terms = json!({ "timers": TIMERS, "in": AHEAD, "spin": 120, "max_fee": 1_000_000 });
    let begun = home.json(&["actor", "call", spammer, "fill", &terms.to_string()]);
    let due = number(&begun["height"]) + AHEAD;
    let at = due + 2;

    // The change is proposed and listed, but not in force.
    let proposes = |settings: &[&str], at: u64| {
        let at = at.to_string();
        home.json(&[&["chain", "params", "set"], settings, &["--at", &at]].concat())
    };
    let set = proposes(&["policy=fifo", "gc_cycles_per_block=4000000"], at);
    assert_eq!((&set["from"], &set["changes"][0]["value"]), (&at.into(), &"fifo".into()), "{set}");
    proposes(&["gc_cycles_per_block=3000000"], at + 3);
    let listed = home.json(&["chain", "params", "get", "policy"]);
    assert_eq!(listed["value"], "eip1559", "{listed}");
    let pending = &listed["pending"][0];
    assert_eq!((&pending["height"], &pending["value"]), (&at.into(), &"fifo".into()), "{listed}");
    let late = ["chain", "params", "set", "policy=fifo", "--at", "1"];
    let refused = home.fails(6, &late);
    assert!(refused.contains("ActivationInPast: block 1 has begun"), "{refused}");
    let refused = home.fails(6, &[&late[..4], &["--from", "dev-0"]].concat());
    assert!(refused.contains("Unauthorized: "), "{refused}");

    // One validator restarts from a snapshot of another's state, and one is stopped.
    home.json(&["validator", "resync", "validator-2"]);
    home.json(&["validator", "stop", "validator-3"]);
    assert!(home.height() < due, "all of that takes less than {AHEAD} blocks");
    home.wait_height(at + 1);
    home.json(&["validator", "start", "validator-3"]);
    let last = at + 8;
    home.wait_height(last);
    let roots = |node: &str| -> Vec<Value> {
        let wait = ["chain", "wait", &last.to_string(), "--timeout", "60s"];
        home.json(&[&["--node", node], &wait[..]].concat());
        let root = |height: u64| {
            let block = ["--node", node, "chain", "block", &height.to_string()];
            home.json(&block)["state_root"].clone()
        };
        (due - 1..=last).map(root).collect()
    };
    let first = roots("validator-0");
    assert!(first.iter().all(Value::is_string), "{first:?}");
    for node in ["validator-1", "validator-2", "validator-3"] {
        assert_eq!(roots(node), first, "{node}");
    }

    // The lane was full when the policy changed, and every timer fires.
    let args = ["timer", "fees", "--from", &due.to_string(), "--limit", "6"];
    let lanes = home.json(&args);
    for lane in list(&lanes) {
        let expected = if number(&lane["height"]) < at { "eip1559" } else { "fifo" };
        assert_eq!(lane["policy"], expected, "{lane}");
    }
    let before = &lanes[usize::try_from(at - 1 - due).unwrap()];
    assert!(number(&before["deferred"]) > 10, "{before}");
    assert!(number(&lanes[usize::try_from(at - due).unwrap()]["fired"]) > 0, "{lanes}");
    wait_until("every timer has fired", || {
        list(&home.json(&["timer", "ls", "--actor", spammer])).is_empty()
    });
    assert_eq!(events(&home, "TimerFired").len() as u64, TIMERS);
    let heights = |kind: &str| -> Vec<u64> {
        events(&home, kind).iter().map(|event| number(&event["height"])).collect()
    };
    assert_eq!(heights("TimerPolicyActivated"), [at]);
    assert_eq!(heights("TimerConfigActivated"), [at, at + 3]);
    let proposed = events(&home, "TimerConfigProposed");
    assert_eq!(proposed[0]["data"]["settings"]["system:cip1:policy"], "fifo");
    assert_eq!(proposed[1]["data"]["height"], at + 3);

    // The devnet has the new values after a restart, too.
    home.kill("local");
    home.json(&["devnet", "up", "--detach"]);
    let now = home.json(&["chain", "params", "get", "policy"]);
    assert_eq!((&now["value"], &now["since"]), (&"fifo".into(), &at.into()), "{now}");
    let gc = home.json(&["chain", "params", "get", "gc_cycles_per_block"]);
    assert_eq!(gc["value"], 3_000_000, "{gc}");
    shape::seen(&["chain params get", "chain params set"]);
}
