//! Accounts that users make.

use crate::{
    shape,
    support::{Home, list},
};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _};

/// The balance of an account in wei.
fn balance(home: &Home, account: &str) -> u128 {
    let shown = home.json(&["account", "balance", account]);
    shown["balance"].as_str().unwrap().parse().unwrap()
}

fn entry(home: &Home, name: &str) -> Option<Value> {
    let all = home.json(&["account", "ls"]);
    list(&all).iter().find(|account| account["name"] == name).cloned()
}

#[test]
fn a_new_account_is_an_account_like_any_other() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    let made = home.json(&["account", "new", "alice", "--fund", "2cby"]);
    assert_eq!(
        (made["name"].as_str(), made["balance"].as_str()),
        (Some("alice"), Some("2000000000"))
    );
    let key = home.path("local/accounts/alice.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(made["key_file"], key.to_str().unwrap());
    assert_eq!(entry(&home, "alice").unwrap()["address"], made["address"]);
    assert_eq!(balance(&home, "alice"), 2_000_000_000);

    // The account pays and receives.
    home.json(&["account", "transfer", "alice", "dev-0", "1cby"]);
    home.json(&["account", "fund", "alice", "5cby"]);
    assert!((5_900_000_000..6_000_000_000).contains(&balance(&home, "alice")));
    let job =
        home.json(&["job", "submit", "custom", "--from", "alice", "--wait", "--", "echo", "hi"]);
    assert_eq!(job["status"], "Verified", "{job}");

    // Its name is taken, and stays taken across a restart.
    let error = home.fails(8, &["account", "new", "alice"]);
    assert!(error.contains("`alice` already"), "{error}");
    let before = fs::read_to_string(&key).unwrap();
    home.json(&["account", "new", "poor"]);
    home.json(&["devnet", "down"]);
    home.json(&["account", "new", "offline"]);
    home.fails(8, &["account", "new", "offline"]);
    home.fails(4, &["account", "new", "rich", "--fund", "1cby"]);
    home.json(&["devnet", "up", "--detach"]);
    for (name, rich) in [("alice", true), ("poor", false), ("offline", false)] {
        assert_eq!(balance(&home, name) > 0, rich, "{name}");
        assert!(entry(&home, name).is_some(), "{name}");
    }
    assert!(entry(&home, "rich").is_none());
    assert_eq!(fs::read_to_string(&key).unwrap(), before);
    // A node cannot take the name of an account.
    let error = home.fails(8, &["validator", "add", "poor"]);
    assert!(error.contains("account"), "{error}");
    shape::seen(&["account new"]);
}

#[test]
fn names_of_others_and_bad_names_are_refused() {
    let home = Home::new();
    home.up(&[]);
    for taken in ["dev-0", "faucet", "governance"] {
        home.fails(8, &["account", "new", taken]);
    }
    for bad in ["Alice", "a_b", "-a", "", "validator-9", "runner-0"] {
        let outcome = home.run(&["account", "new", "--", bad]);
        assert_eq!(outcome.code, 2, "{bad}: {outcome:?}");
    }
    let all = home.json(&["account", "ls"]);
    assert!(list(&all).iter().all(|account| account["name"] != "validator-9"), "{all}");
    assert!(!home.path("local/accounts/validator-9.key").exists());
}
