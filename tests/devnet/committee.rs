//! Validators that join and leave a running devnet.

use crate::{
    shape,
    support::{Home, list, on_all_hosts},
};
use serde_json::Value;
use std::fs;

on_all_hosts! {
    validators_join_and_leave_and_the_devnet_remembers
}

/// The names of the validators that vote on the next block.
fn committee(home: &Home) -> Vec<String> {
    let validators = home.json(&["validator", "ls"]);
    let votes = |validator: &&Value| !validator["index"].is_null();
    let mut names: Vec<_> = list(&validators)
        .iter()
        .filter(votes)
        .map(|validator| validator["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names
}

fn verified(home: &Home, height: u64) {
    let check = home.json(&["presence", "verify", &height.to_string()]);
    assert_eq!(check["valid"], true, "{check}");
}

fn validators_join_and_leave_and_the_devnet_remembers(home: &Home) {
    let file = home.path("epochs.yaml");
    let text = "name: epochs\nvalidators: 3\nrunners: 2\nchain:\n  epoch_blocks: 8\n";
    fs::write(&file, text).unwrap();
    home.up(&["-f", file.to_str().unwrap()]);

    let added = home.json(&["validator", "add"]);
    assert_eq!((&added["name"], &added["votes"]), (&"validator-3".into(), &true.into()));
    let from = added["from"].as_u64().unwrap();
    assert_eq!(from % 8, 0, "{added}");
    assert_eq!(committee(home), ["validator-0", "validator-1", "validator-2", "validator-3"]);
    home.wait_height(from + 3);
    let block = home.json(&["chain", "block", &from.to_string()]);
    assert_eq!(block["subset_epoch"], 1, "one of three is more than a tenth: {block}");

    // It votes: with one of the others stopped, the remaining three of four have to.
    home.json(&["validator", "stop", "validator-0"]);
    home.json(&["chain", "wait", "+3"]);
    home.json(&["validator", "start", "validator-0"]);

    let named = home.json(&["validator", "add", "late"]);
    assert_eq!(named["name"], "late");
    assert!(home.fails(8, &["validator", "add", "late"]).contains("is named `late`"));
    let removed = home.json(&["validator", "remove", "validator-1"]);
    assert_eq!(removed["votes"], false);
    let left = ["late", "validator-0", "validator-2", "validator-3"];
    assert_eq!(committee(home), left);
    home.fails(3, &["validator", "show", "validator-1"]);

    // The certificates of every epoch verify with that epoch's committee.
    let newest = home.height();
    for height in [2, from - 1, from, newest - 4] {
        verified(home, height);
    }
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    assert_eq!(job["status"], "Verified", "{job}");

    home.json(&["devnet", "down", "epochs"]);
    home.up(&["-f", file.to_str().unwrap()]);
    assert_eq!(committee(home), left);
    home.json(&["chain", "wait", "+10"]);
    verified(home, from);

    // A name may return after it left, and removing an unknown validator fails.
    let again = home.json(&["validator", "add", "validator-1"]);
    assert_eq!(again["votes"], true);
    assert!(home.fails(3, &["validator", "remove", "nobody"]).contains("nobody"));
    home.json(&["devnet", "down", "epochs"]);
    shape::seen(&["validator add", "validator remove"]);
}
