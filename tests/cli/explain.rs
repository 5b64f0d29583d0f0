//! `explain`: names that the book has, in a terminal.

use crate::support::Folder;
use serde_json::Value;

fn json(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_str(&folder.prints(&[&["-o", "json", "explain"], args].concat())).unwrap()
}

#[test]
fn a_field_of_a_topology_is_explained() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.prints(&["explain", "topology.chain.block_time"]), @"");
    insta::assert_snapshot!(folder.prints(&["explain", "topology.chain"]), @"");
    let field = json(&folder, &["topology", "runners[].stake"]);
    assert_eq!(field["name"], "topology.runners[].stake");
    assert_eq!(field["default"], "10000cby");
    let section = json(&folder, &["topology.timers"]);
    let first = &section["fields"][0];
    assert_eq!(first["name"], "topology.timers.policy");
    assert_eq!(first["takes"], "eip1559, fifo or gba-auction");
    let whole = json(&folder, &["topology"]);
    assert!(whole["fields"].as_array().unwrap().len() > 100, "{whole}");
    let option = json(&folder, &["topology.speculation.maxDepth"]);
    assert_eq!((&option["takes"], &option["default"]), (&"1 to 20".into(), &"5".into()));
    assert!(option["about"].as_str().unwrap().starts_with("Unconfirmed tasks"), "{option}");
}

#[test]
fn an_event_an_error_and_an_exit_code_are_explained() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.prints(&["explain", "event", "TimerFired"]), @"");
    insta::assert_snapshot!(folder.prints(&["explain", "error", "StaleInputs"]), @"");
    insta::assert_snapshot!(folder.prints(&["explain", "exit", "6"]), @"");
    // A topic need not be said, nor capitals.
    assert_eq!(json(&folder, &["JobVerified"])["topic"], "event");
    assert_eq!(json(&folder, &["staleinputs"])["name"], "StaleInputs");
    assert_eq!(json(&folder, &["WRONG_RUNNER"])["exit_code"], "1");
    assert_eq!(json(&folder, &["error", "not_found"])["exit_code"], "3");
    let yaml = folder.prints(&["-o", "yaml", "explain", "error", "BadProof"]);
    assert!(yaml.contains("name: BadProof\n"), "{yaml}");
}

#[test]
fn what_there_is_is_listed() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.prints(&["explain"]), @"");
    for (topic, least) in [("event", 50), ("error", 120), ("exit", 11)] {
        let names = folder.prints(&["--quiet", "explain", topic]);
        assert!(names.lines().count() >= least, "{topic}: {names}");
        // Each of them is found.
        for name in names.lines().step_by(10) {
            assert_eq!(json(&folder, &[topic, name])["name"], name);
        }
    }
}

#[test]
fn what_is_not_there_is_told_with_what_was_meant() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.fails(3, &["explain", "error", "StaleInput"]), @"");
    insta::assert_snapshot!(folder.fails(3, &["explain", "topology.chain.blok_time"]), @"");
    insta::assert_snapshot!(folder.fails(3, &["explain", "evnt", "TimerFired"]), @"");
    insta::assert_snapshot!(folder.fails(3, &["explain", "nothing-like-that"]), @"");
}
