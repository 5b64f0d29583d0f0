//! The parameters of runners' connections, in a topology and on a running devnet.

use crate::{
    shape,
    support::{Home, list},
};
use std::fs;

/// `chain params set` with these arguments.
fn set<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["chain", "params", "set"], more].concat()
}

#[test]
fn parameters_of_connections_come_with_the_topology_and_change_at_a_height() {
    let home = Home::new();
    let file = home.path("epochs.yaml");
    let yaml = |subset: u64, overlap: u64| {
        format!(
            "runners: 2\nconnectivity:\n  subset_epoch_blocks: {subset}\n  \
             overlap_blocks: {overlap}\n"
        )
    };
    fs::write(&file, yaml(64, 64)).unwrap();
    let path = file.to_str().unwrap();
    let outcome = home.run(&["devnet", "validate", path]);
    assert_eq!(outcome.code, 2, "{outcome:?}");
    let refused = outcome.stderr;
    let expected = "connectivity.overlap_blocks: 64: expected less than 64, which is";
    assert!(refused.contains("epochs.yaml:4:") && refused.contains(expected), "{refused}");
    fs::write(&file, yaml(64, 8)).unwrap();
    home.up(&["-f", path, "--wait", "2"]);

    let get = |key: &str| home.json(&["chain", "params", "get", key]);
    let epoch = get("subset_epoch_blocks");
    assert_eq!((&epoch["value"], &epoch["genesis"]), (&64.into(), &64.into()), "{epoch}");
    assert_eq!((&epoch["unit"], &epoch["source"]), (&"blocks".into(), &"CIP-11 §13".into()));

    // Conflicting values are not sent; a dry run prints the changes without sending them.
    let conflict = home.fails(6, &set(&["heartbeat_blocks=4"]));
    assert!(conflict.contains("ParameterConflict: system:cip11:heartbeat_blocks"), "{conflict}");
    let range = home.fails(6, &set(&["mru_multiplier=101"]));
    assert!(range.contains("mru_multiplier is from 1 to 100, not 101"), "{range}");
    let dry = home.json(&set(&["ack_timeout_blocks=7", "--dry-run"]));
    assert_eq!((dry.get("transaction"), &dry["changes"][0]["value"]), (None, &7.into()), "{dry}");
    assert_eq!(get("ack_timeout_blocks")["value"], 3);

    let changes = ["ack_timeout_blocks=7", "presence_timeout_blocks=5", "--at", "+60"];
    let at = home.json(&set(&changes))["from"].as_u64().unwrap();
    assert_eq!(get("ack_timeout_blocks")["pending"][0]["value"], 7);
    home.wait_height(at.max(65) + 1);
    assert_eq!(get("ack_timeout_blocks")["value"], 7);
    assert_eq!(get("presence_timeout_blocks")["value"], 5);
    let events = ["chain", "events", "--from", "0", "--kind", "ConnectivityActivated"];
    let events = home.json(&events);
    assert_eq!(list(&events)[0]["height"], at, "{events}");

    // Consensus epochs are longer: 256 blocks.
    for (height, number) in [("63", 0), ("64", 1)] {
        let block = home.json(&["chain", "block", height]);
        assert_eq!(block["subset_epoch"], number, "{block}");
    }
    let check = home.json(&["presence", "verify", "64"]);
    assert_eq!(check["valid"], true, "{check}");
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "true"]);
    assert_eq!(job["status"], "Verified", "{job}");
    shape::seen(&["chain params get", "chain params set"]);
}
