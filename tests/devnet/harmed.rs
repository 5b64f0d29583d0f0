//! Waits and transactions of users while any one of the four validators is paused, cut off or
//! killed.

use crate::support::{Home, list, wait_until};
use serde_json::json;
use std::{process::Stdio, thread::spawn};

/// Harms each validator in turn. A wait that began before goes on, and later transactions are
/// included.
fn each_validator(harm: &[&str]) {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "2"]);
    for validator in 0..4 {
        let name = format!("validator-{validator}");
        let begun = ["chain", "wait", "+12", "--timeout", "60s"];
        let mut command = home.command(&begun);
        let waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let waited = spawn(|| waiting.wait_with_output().unwrap());
        home.json(&[harm, &[&name]].concat());
        for send in [
            &["account", "transfer", "dev-0", "dev-1", "1cby", "--timeout", "60s"][..],
            &["job", "submit", "custom", "--wait", "--timeout", "60s", "--", "echo", "hi"],
            &["chain", "wait", "+2", "--timeout", "60s"],
        ] {
            home.json(send);
        }
        let waited = waited.join().unwrap();
        assert!(waited.status.success(), "{harm:?} {name}: {waited:?}");
        home.json(&["fault", "heal"]);
        home.wait_validators(|head| head);
    }
}

#[test]
fn waits_go_on_and_what_is_sent_is_done_while_a_validator_is_paused() {
    each_validator(&["fault", "pause"]);
}

#[test]
fn waits_go_on_and_what_is_sent_is_done_while_a_validator_is_cut_off() {
    each_validator(&["fault", "partition"]);
}

#[test]
fn waits_go_on_and_what_is_sent_is_done_while_a_validator_is_killed() {
    each_validator(&["fault", "kill"]);
}

/// The next block of any validator ends the halt of a save.
#[test]
fn a_save_measures_its_halt_while_the_first_validator_is_cut_off() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "1"]);
    home.json(&["fault", "partition", "validator-0"]);
    let saved = home.json(&["devnet", "snapshot", "save", "cut"]);
    assert!(saved["halted_ms"].is_u64(), "{saved}");
}

/// The runners' process learns of new subsets from any validator, not only from the first.
#[test]
fn runners_follow_their_subsets_while_the_first_validator_is_cut_off() {
    let home = Home::new();
    home.up_with(&json!({
        "validators": 7,
        "runners": 4,
        "connectivity": {"subset_epoch_blocks": 8, "overlap_blocks": 2},
    }));
    home.json(&["fault", "partition", "validator-0"]);
    home.wait_height(home.height() + 24);
    wait_until("each runner is connected to the rest of its subset", || {
        let (runners, status) = (home.json(&["runner", "ls"]), home.json(&["devnet", "status"]));
        list(&runners).iter().all(|runner| {
            let all = list(&status["runners"]);
            let own = all.iter().find(|other| other["name"] == runner["name"]).unwrap();
            let connected = list(&own["connected_validators"]);
            let mut subset = list(&runner["subset"]).iter().filter(|one| **one != "validator-0");
            subset.all(|validator| connected.contains(validator))
        })
    });
}

/// `--node` applies to reads and transactions, and reports if the validator is behind.
#[test]
fn a_node_that_is_asked_for_is_the_only_one_that_is_asked() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "0"]);
    home.json(&["fault", "partition", "validator-1"]);
    let at = home.height();
    home.wait_height(at + 8);
    let asked = home.run(&["--node", "validator-1", "chain", "head", "-o", "json"]);
    let behind = asked.json()["height"].as_u64().unwrap();
    assert!(behind < at + 4, "{asked:?}");
    let note = format!("--node validator-1: it is at block {behind} and the head is ");
    assert!(asked.stderr.contains(&note), "{asked:?}");
    let wait = ["--node", "validator-1", "chain", "wait", &(at + 8).to_string(), "--timeout", "3s"];
    let told = home.run(&wait);
    assert_eq!(told.code, 5, "{told:?}");
    let told = told.stderr;
    assert!(told.contains(&format!("last seen: block {behind}; ")), "{told}");
    assert!(told.contains("the asked validator is behind: the head is block "), "{told}");
    // The transaction goes only to that validator, which cannot forward it.
    let send = ["account", "transfer", "dev-0", "dev-1", "1cby", "--timeout", "2s"];
    let sent = home.run(&[&["--node", "validator-1"][..], &send].concat());
    assert_eq!(sent.code, 5, "{sent:?}");
    // The transaction that waits there takes no nonce of those that are sent to the others.
    home.json(&["account", "transfer", "dev-0", "dev-2", "1cby", "--timeout", "60s"]);
}
