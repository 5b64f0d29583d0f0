//! Powers of governance on a devnet: what they set, whom they act for, and a state that is returned
//! to in place.

use crate::{
    shape,
    support::{Home, list, wait_until},
    timers::{number, text},
};
use serde_json::{Value, json};
use std::fs;

const COUNTER: &str = r#"
def bump(ctx, payload):
    n = pvm_host.get_state("n", 0) + 1
    pvm_host.set_state("n", n)
    return [n, ctx.sender]

def handle_timer(ctx, payload):
    bump(ctx, payload)

def when(ctx, payload):
    return ctx.timestamp_ms
"#;

const SOMEONE: &str = "0x00000000000000000000000000000000000000aa";

fn deploy(home: &Home, source: &str) -> String {
    let file = home.path("counter.star");
    fs::write(&file, source).unwrap();
    text(&home.json(&["actor", "deploy", file.to_str().unwrap()])["actor"]).to_owned()
}

fn stored(home: &Home, actor: &str) -> Value {
    let shown = home.json(&["actor", "show", actor]);
    list(&shown["state"])
        .iter()
        .find(|entry| entry["key"] == "n")
        .map_or(Value::Null, |entry| entry["value"].clone())
}

/// Every validator has the same block and state at the newest height that all have.
fn agree(home: &Home) {
    home.wait_validators(|head| head);
    let at = home.height().to_string();
    let validators = list(&home.json(&["devnet", "status"])["validators"]).clone();
    let roots = validators.iter().map(|validator| {
        let node = text(&validator["name"]).to_owned();
        home.json(&["--node", &node, "chain", "block", &at])["state_root"].clone()
    });
    let roots: Vec<_> = roots.collect();
    assert!(roots.windows(2).all(|pair| pair[0] == pair[1]), "{roots:?}");
}

#[test]
fn governance_sets_and_acts_and_four_validators_agree() {
    let home = Home::new();
    home.up(&["--validators", "4", "--runners", "1"]);
    let actor = deploy(&home, COUNTER);
    let balance = |who: &str| home.json(&["account", "balance", who])["balance"].clone();

    let faucet: u128 = text(&balance("faucet")).parse().unwrap();
    let set = home.json(&["account", "set-balance", SOMEONE, "7cby"]);
    assert_eq!((&set["kind"], &set["status"]), (&json!("set_balance"), &json!("success")));
    assert_eq!(balance(SOMEONE), "7000000000");
    assert_eq!(balance("faucet"), (faucet - 7_000_000_000).to_string());
    home.json(&["account", "set-balance", SOMEONE, "1cby"]);
    assert_eq!(balance("faucet"), (faucet - 1_000_000_000).to_string());

    let set = home.json(&["actor", "set-state", &actor, "n", " 41 "]);
    assert_eq!(
        set["payload"],
        json!({"actor": actor, "key": "n", "value": 41, "value_bytes": "0x3431"})
    );
    assert_eq!(home.json(&["actor", "call", &actor, "bump"])["result"][0], 42);
    home.json(&["actor", "set-state", &actor, "n", "--delete"]);
    assert_eq!(stored(&home, &actor), Value::Null);
    let said = home.fails(2, &["actor", "set-state", &actor, "n", "forty"]);
    assert!(said.contains("the value is not JSON") && said.contains("quotes"), "{said}");

    // The account has no key anywhere.
    let called = home.json(&["actor", "call", &actor, "bump", "--as", SOMEONE, "--value", "1cby"]);
    assert_eq!(called["result"], json!([1, SOMEONE]));
    assert_eq!((&called["acted_as"], &called["kind"]), (&json!(SOMEONE), &json!("act_as")));
    assert_eq!(called["sender_name"], "governance");
    assert_eq!(balance(SOMEONE), "0");
    assert_eq!(home.json(&["account", "balance", SOMEONE])["nonce"], 1);
    let said = home.run(&["chain", "tx", text(&called["hash"])]).stdout;
    assert!(said.contains(&format!("acted as  {SOMEONE}\n")), "{said}");
    home.json(&["account", "set-balance", SOMEONE, "500cby"]);
    let transfer = ["account", "transfer", SOMEONE, "dev-1", "1cby"];
    home.fails(3, &transfer);
    let sent = home.json(&[&transfer[..], &["--impersonate"]].concat());
    assert_eq!((&sent["acted_as"], &sent["status"]), (&json!(SOMEONE), &json!("success")));
    assert_eq!(balance(SOMEONE), "499000000000");
    let submitted =
        home.json(&["job", "submit", "custom", "--as", SOMEONE, "--wait", "--", "echo", "hi"]);
    let job = home.json(&["job", "show", text(&submitted["job_id"])]);
    assert_eq!(job["submitter"], SOMEONE);
    let file = home.path("counter.star");
    let deployed = home.json(&["actor", "deploy", file.to_str().unwrap(), "--as", SOMEONE]);
    assert_eq!(deployed["deployer"], SOMEONE);
    let other = text(&deployed["actor"]);
    assert_eq!(home.json(&["actor", "call", other, "bump"])["result"][0], 1);
    let said = home.fails(2, &["actor", "call", other, "bump", "--as", SOMEONE, "--from", "dev-1"]);
    assert!(said.contains("cannot be used with"), "{said}");

    fs::write(&file, COUNTER.replace("+ 1", "+ 100")).unwrap();
    let shown = home.json(&["actor", "set-code", &actor, file.to_str().unwrap()]);
    assert_eq!(shown["actor"], actor);
    assert_eq!(home.json(&["actor", "call", &actor, "bump"])["result"][0], 101);
    fs::write(&file, "def bump(:").unwrap();
    let said = home.fails(6, &["actor", "set-code", &actor, file.to_str().unwrap()]);
    assert!(said.contains("ModuleRefused: this ( is never closed"), "{said}");

    let before = number(&home.json(&["actor", "call", &actor, "when", "--dry-run"])["result"]);
    assert_eq!(home.json(&["chain", "time"]), json!({"ahead_ms": 0}));
    assert_eq!(home.json(&["chain", "time", "+1h"]), json!({"ahead_ms": 3_600_000}));
    home.json(&["chain", "wait", "+3"]);
    let after = number(&home.json(&["actor", "call", &actor, "when", "--dry-run"])["result"]);
    let moved = after - before;
    assert!((3_600_000..3_660_000).contains(&moved), "{moved} ms");
    // The pace is that of before, and nothing takes the chain for halted.
    home.json(&["chain", "wait", "+5", "--timeout", "20s"]);
    home.json(&["assert", ".status.ready"]);
    agree(&home);
    home.json(&["chain", "verify", "1..latest"]);
    shape::seen(&["account set-balance", "actor set-state", "actor set-code", "chain time"]);
}

#[test]
fn a_chain_returns_with_its_timers_and_jobs_and_after_a_restart() {
    let home = Home::new();
    let topology = json!({
        "validators": 4,
        "runners": [{"name": "by-hand", "executors": {"by_hand": true}}],
    });
    home.up_with(&topology);
    let actor = deploy(&home, COUNTER);
    home.json(&["actor", "call", &actor, "bump"]);
    // It pays for its timer.
    home.json(&["account", "set-balance", &actor, "50cby"]);
    let job = home.json(&["job", "submit", "custom", "--", "work"]);
    let job = text(&job["job_id"]).to_owned();
    let assigned = || home.json(&["job", "show", &job])["status"] == "Assigned";
    wait_until("the job is assigned", assigned);
    let timer = home.json(&["timer", "schedule", &actor, "--in", "40"]);
    let timer = text(&timer["timer_id"]).to_owned();
    let made = home.json(&["chain", "snapshot"]);
    assert_eq!(
        home.json(&["chain", "snapshots"]),
        json!([{"snapshot": 1, "height": made["height"]}])
    );
    let due = number(&home.json(&["timer", "show", &timer])["height"]) - number(&made["height"]);

    let all_happens = || {
        assert_eq!(stored(&home, &actor), 1);
        home.json(&["job", "answer", &job, "done"]);
        wait_until("the job is verified", || {
            home.json(&["job", "show", &job])["status"] == "Verified"
        });
        assert_eq!(home.json(&["job", "show", &job])["result_text"], "done");
        home.json(&["chain", "advance", "60"]);
        wait_until("the timer has fired", || stored(&home, &actor) == 2);
        home.json(&["account", "transfer", "dev-0", "dev-1", "5cby"]);
        home.json(&["actor", "deploy", home.path("counter.star").to_str().unwrap()]);
    };
    let back = |which: &str| {
        let reverted = home.json(&["chain", "revert", which]);
        assert_eq!((&reverted["snapshot"], &reverted["of"]), (&json!(1), &made["height"]));
        let left = number(&home.json(&["timer", "show", &timer])["height"]);
        assert_eq!(left - number(&reverted["height"]), due);
        assert_eq!(list(&home.json(&["actor", "ls"])).len(), 1);
        assert_eq!(home.json(&["account", "balance", "dev-1"])["balance"], "1000000000000000");
        wait_until("the job is assigned", assigned);
    };
    all_happens();
    back("1");
    all_happens();
    home.json(&["chain", "snapshot"]);
    back("1");
    assert_eq!(list(&home.json(&["chain", "snapshots"])).len(), 1);
    // One validator was killed, and all of them restart from what they have stored.
    home.kill("local");
    home.json(&["devnet", "up", "--detach", "--name", "local"]);
    home.wait_validators(|head| head);
    all_happens();
    home.json(&["devnet", "down"]);
    home.json(&["devnet", "up", "--detach", "--name", "local"]);
    back("latest");
    agree(&home);
    home.json(&["chain", "verify", "1..latest"]);
    home.json(&["chain", "snapshot"]);
    let left = home.json(&["chain", "forget", "latest"]);
    assert_eq!(left, json!([{"snapshot": 1, "height": made["height"]}]));
    let said = home.fails(6, &["chain", "revert", "2"]);
    assert!(said.starts_with("error: UnknownMark: there is no snapshot 2"), "{said}");
    let said = home.fails(2, &["chain", "revert", "first"]);
    assert!(said.contains("cowboyctl chain snapshots"), "{said}");
    shape::seen(&["chain snapshot", "chain snapshots", "chain revert", "chain forget"]);
}

#[test]
fn a_topology_refuses_powers() {
    let home = Home::new();
    home.up_with(&json!({"validators": 1, "runners": 0, "chain": {"powers": "refused"}}));
    for command in [
        &["account", "set-balance", SOMEONE, "1cby"][..],
        &["chain", "snapshot"],
        &["chain", "time", "+1h"],
        &["job", "submit", "custom", "--as", "dev-0", "--", "echo"],
    ] {
        let said = home.fails(6, command);
        assert!(said.starts_with("error: NoPowers: "), "{said}");
    }
}

#[test]
fn code_and_stores_in_python_are_set() {
    let Some(home) = Home::with_machine() else { return };
    home.up_with(&json!({"validators": 2, "runners": 0}));
    let file = home.path("box.py");
    let path = file.to_str().unwrap();
    let source = |factor: u32| {
        format!(
            "from cowboy_sdk import actor, public\n\n@actor\nclass Box:\n    @public\n    \
             def init(self, payload):\n        self.storage[\"n\"] = 2\n\n    @public\n    \
             def get(self, payload):\n        return str(self.storage[\"n\"] * {factor}).encode()\n"
        )
    };
    fs::write(&file, source(1)).unwrap();
    let actor = text(&home.json(&["actor", "deploy", path])["actor"]).to_owned();
    let get = || home.json(&["actor", "call", &actor, "get", "--as", SOMEONE])["result"].clone();
    assert_eq!(get(), "2");
    let set = home.json(&["actor", "set-state", &actor, "n", "21"]);
    assert_eq!(
        (&set["payload"]["value"], &set["payload"]["value_bytes"]),
        (&json!(21), &json!("0x15"))
    );
    assert_eq!(get(), "21");
    home.json(&["actor", "set-state", &actor, "n", "0x16"]);
    fs::write(&file, source(100)).unwrap();
    home.json(&["actor", "set-code", &actor, path]);
    assert_eq!(get(), "2200");
    fs::write(&file, "def get(:\n").unwrap();
    let said = home.fails(6, &["actor", "set-code", &actor, path]);
    assert!(said.contains("SyntaxError"), "{said}");
    assert_eq!(get(), "2200");
    agree(&home);
}
