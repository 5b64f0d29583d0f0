//! An actor on a real chain: deployed, called, read at past heights, and failing with a source
//! position.

use crate::{
    shape,
    support::{Home, list},
};
use serde_json::Value;
use std::fs;

const COUNTER: &str = r#"
def bump(ctx, payload):
    n = pvm_host.get_state("n", 0) + 1
    pvm_host.set_state("n", n)
    pvm_host.log("bumped to", n)
    pvm_host.emit("bumped", {"n": n})
    return n

def read(ctx, payload):
    return pvm_host.get_state("n", 0)

def crash(ctx, payload):
    pvm_host.set_state("n", 1000)
    if payload == "on chain":
        fail("only on the chain")
    return inner(int(payload))

def inner(index):
    return [1, 2, 3][index]
"#;

#[test]
fn an_actor_is_deployed_called_and_read_at_any_recent_height() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    let file = home.path("counter.star");
    fs::write(&file, COUNTER).unwrap();
    let deployed = home.json(&["actor", "deploy", file.to_str().unwrap()]);
    let actor = deployed["actor"].as_str().unwrap();
    assert_eq!(list(&deployed["handlers"]).len(), 3, "{deployed}");
    assert_eq!(home.json(&["actor", "ls"])[0]["actor"], actor);

    let calls: Vec<_> = (1..=3)
        .map(|n| {
            let called = home.json(&["actor", "call", actor, "bump"]);
            assert_eq!(
                (&called["status"], &called["actor"]["result"]),
                (&"success".into(), &n.into())
            );
            assert!(called["actor"]["usage"]["by_cause"]["storage"].as_u64().unwrap() > 0);
            called["height"].as_u64().unwrap()
        })
        .collect();
    for (height, n) in calls.iter().zip(1..) {
        let height = height.to_string();
        let tried = home.json(&["actor", "call", actor, "read", "--dry-run", "--at", &height]);
        assert_eq!((&tried["result"], tried["at"].to_string()), (&n.into(), height));
    }
    let before = (calls[0] - 1).to_string();
    let args = ["-q", "actor", "call", actor, "read", "--dry-run", "--at", &before];
    assert_eq!(home.run(&args).stdout, "0\n");
    let shown = home.json(&["actor", "show", &actor[..10]]);
    assert_eq!((&shown["state"][0]["value"], &shown["source"]), (&3.into(), &COUNTER.into()));

    // A call that fails in the dry run is not sent; one that fails on the chain has a receipt.
    let refused = home.fails(6, &["actor", "call", actor, "crash", "3"]);
    assert!(refused.starts_with("error: ActorError: ") && refused.contains("(at 19:"), "{refused}");
    assert!(
        refused.contains("in inner at 19:") && refused.contains("in crash at 16:"),
        "{refused}"
    );
    let args = ["actor", "call", actor, "crash", "on chain", "--cycles", "20000", "--cells", "500"];
    let failed = home.run(&[&["-o", "json"], &args[..]].concat());
    assert_eq!(failed.code, 6, "{failed:?}");
    assert_eq!(
        (&failed.json()["error"], &failed.json()["status"]),
        (&"ActorError".into(), &"failed".into())
    );
    assert!(
        failed.stderr.contains("only on the chain") && failed.stderr.contains("(at 15:"),
        "{failed:?}"
    );
    assert_eq!(home.run(&["-q", "actor", "call", actor, "read", "--dry-run"]).stdout, "3\n");

    let log = home.json(&["actor", "logs", actor]);
    let kinds: Vec<_> = list(&log).iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["log", "event", "log", "event", "log", "event", "error"]);
    let events = home.json(&["chain", "events", "--kind", "ActorEmitted", "--from", "0"]);
    let told: Vec<_> = list(&events).iter().map(|e| e["data"]["data"]["n"].as_u64()).collect();
    assert_eq!(told, [Some(1), Some(2), Some(3)]);

    let bad = home.path("bad.star");
    fs::write(&bad, "def f(ctx, payload):\n    return (1,\n").unwrap();
    let refused = home.fails(6, &["actor", "deploy", bad.to_str().unwrap()]);
    assert!(refused.contains("bad.star:") && refused.contains("ModuleRefused"), "{refused}");
    shape::seen(&["actor deploy", "actor logs"]);
}

#[test]
fn a_trace_shows_which_call_did_what() {
    const SENDER: &str = "def poke(ctx, payload):\n    pvm_host.set_state(\"poked\", payload)\n    \
                          pvm_host.send_message(payload, \"bump\", \"\")\n    \
                          pvm_host.send_message(payload, \"crash\", \"7\")\n";
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "0"]);
    let deploy = |source: &str| {
        let file = home.path("actor.star");
        fs::write(&file, source).unwrap();
        let deployed = home.json(&["actor", "deploy", file.to_str().unwrap()]);
        deployed["actor"].as_str().unwrap().to_owned()
    };
    let (counter, sender) = (deploy(COUNTER), deploy(SENDER));
    // The second message fails, so all of it would be undone.
    let traced = home.run(&["-o", "json", "actor", "call", &sender, "poke", &counter, "--trace"]);
    assert_eq!(traced.code, 6, "{traced:?}");
    let traced = traced.json();
    let calls = list(&traced["calls"]);
    let of = |field: &str| calls.iter().map(|call| call[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("handler"), ["poke", "bump", "crash"]);
    assert_eq!(of("by"), [Value::Null, 0.into(), 0.into()]);
    assert_eq!(calls[1]["result"], 1);
    assert_eq!(calls[1]["changes"][0]["after"], 1, "{traced}");
    assert!(calls[2]["error"].as_str().unwrap().contains("index 7"), "{traced}");
    let text = home.run(&["actor", "call", &sender, "poke", &counter, "--trace"]).stdout;
    assert!(text.contains("\n  └ message ") && text.contains(" bump()"), "{text}");
    // A profile has both actors, line by line, and adds up to the usage.
    let (ok, file) = (home.path("ok.star"), home.path("stacks"));
    fs::write(&ok, SENDER.replace("crash", "bump")).unwrap();
    let ok = home.json(&["actor", "deploy", ok.to_str().unwrap()]);
    let ok = ok["actor"].as_str().unwrap();
    let profile = ["actor", "profile", ok, "poke", &counter, "--folded", file.to_str().unwrap()];
    let profiled = home.json(&profile);
    assert_eq!((&profiled["success"], &profiled["calls"]), (&true.into(), &3.into()));
    let lines = list(&profiled["lines"]);
    let sum = |field: &str| lines.iter().map(|line| line[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (&profiled["cycles"], &profiled["cells"]),
        (&sum("cycles").into(), &sum("cells").into())
    );
    let emit = lines.iter().find(|line| line["line"] == 6).unwrap();
    assert_eq!((&emit["function"], &emit["times"]), (&"bump".into(), &2.into()));
    assert_eq!(emit["source"], "pvm_host.emit(\"bumped\", {\"n\": n})");
    let stacks = fs::read_to_string(&file).unwrap();
    let all = stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(profiled["cycles"], all.sum::<u64>());
    let below = format!("{ok}.poke;{counter}.bump;bump:6 ");
    assert_eq!(stacks.matches(&below).count(), 2, "{stacks}");
    let text = home.run(&["actor", "profile", ok, "poke", &counter, "--limit", "1"]).stdout;
    assert!(
        text.contains("CYCLES") && text.contains("more lines: give a greater --limit"),
        "{text}"
    );
    // One that fails shows what it spent.
    let failing = home.run(&["-o", "json", "actor", "profile", &sender, "poke", &counter]);
    assert_eq!((failing.code, &failing.json()["success"]), (6, &false.into()));
    shape::seen(&["actor profile"]);
    // Without the option there is no trace.
    let plain = home.run(&["-o", "json", "actor", "call", &sender, "poke", &counter, "--dry-run"]);
    assert_eq!(plain.json()["calls"], Value::Null);
}

#[test]
fn validators_that_restart_have_the_same_actors() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    let file = home.path("counter.star");
    fs::write(&file, COUNTER).unwrap();
    let deployed = home.run(&["-q", "actor", "deploy", file.to_str().unwrap()]);
    let actor = deployed.stdout.trim();
    home.json(&["validator", "stop", "validator-1"]);
    home.json(&["actor", "call", actor, "bump"]);
    home.json(&["validator", "start", "validator-1"]);
    let head = home.height().to_string();
    home.json(&["--node", "validator-1", "chain", "wait", &head, "--timeout", "60s"]);
    let show = |node: &str| home.json(&["--node", node, "actor", "show", actor]);
    assert_eq!(show("validator-1"), show("validator-0"));
    // The whole devnet restarts from its snapshot.
    home.json(&["devnet", "down"]);
    home.up(&[]);
    let called = home.json(&["actor", "call", actor, "bump"]);
    assert_eq!(called["actor"]["result"], 2);
}
