//! `assert`: expressions about a running devnet.

use crate::{
    shape,
    support::{Home, list},
};

#[test]
fn expressions_are_waited_for() {
    let home = Home::new();
    home.up(&["--validators", "1", "--runners", "1"]);
    let told = home.json(&["assert", ".status.runners | all(.status == \"connected\")"]);
    assert!(told["height"].as_u64().is_some(), "{told}");
    // Begins to hold while it is waited for.
    let later = home.json(&["chain", "head"])["height"].as_u64().unwrap() + 5;
    let expression = format!(".status.head.height >= {later}");
    let told = home.json(&["assert", "--", ".status.running", &expression]);
    assert!(told["height"].as_u64().unwrap() >= later, "{told}");
    home.json(&["account", "fund", "0x00000000000000000000000000000000000000aa", "5cby"]);
    home.json(&["assert", "[.events[] | select(.kind == \"Transferred\")] | length == 1"]);
    home.json(&["assert", "any(.metrics.presence_registered[]; .value == 1)"]);
    let shown = home.json(&["assert", "--show"]);
    shape::seen(&["assert"]);
    assert!(!list(&shown["events"]).is_empty(), "{shown}");
    assert!(shown["metrics"]["presence_height"][0]["value"].as_f64().unwrap() > 0.0, "{shown}");

    let said = home.fails(1, &["assert", "--timeout", "0s", ".status.head.height > 9999"]);
    assert!(
        said.starts_with("error: `.status.head.height > 9999` does not hold at height "),
        "{said}"
    );
    let said =
        home.fails(5, &["assert", "--timeout", "300ms", ".status.ready", ".status.name == 1"]);
    assert!(said.contains("last seen: `.status.name == 1` does not hold"), "{said}");
    let said = home.fails(1, &["assert", ".status + 1"]);
    assert!(said.starts_with("error: .status + 1: cannot"), "{said}");
    let outcome = home.run(&["assert", ".status.head >"]);
    assert_eq!(outcome.code, 2, "{outcome:?}");
    assert!(outcome.stderr.starts_with("error: .status.head >: expected"), "{outcome:?}");
    home.fails(2, &["assert"]);
}
