//! Canonical presence is the same everywhere and derived from votes, and damage to it is found.

use crate::{
    on_purpose::first,
    shape,
    support::{Home, list, on_all_hosts, wait_until},
    timers::{number, text},
    watch::Watch,
};
use rusqlite::Connection;

on_all_hosts! {
    every_validator_shows_the_same_presence_and_it_verifies
    a_runner_that_leaves_closes_the_gap_and_comes_back_as_the_last
}

fn every_validator_shows_the_same_presence_and_it_verifies(home: &Home) {
    home.up(&[]);
    // Runners in processes of their own take some blocks longer to connect.
    let runners = (0..4).map(|index| format!("runner-{index}"));
    let all = runners.map(|runner| first(home, 1, &runner, true)).max().unwrap();
    home.wait_height(all + 5);
    let [all, later] = [all, all + 2].map(|height| height.to_string());
    for height in ["1", &all, &later] {
        let shown: Vec<_> = (0..4)
            .map(|i| home.json(&["--node", &format!("validator-{i}"), "presence", "show", height]))
            .collect();
        assert!(shown.windows(2).all(|pair| pair[0] == pair[1]), "{shown:?}");
        let verified = home.json(&["presence", "verify", height]);
        assert_eq!(verified["valid"], true);
        assert_eq!(verified["recomputed"], shown[0]["bitmap"]);
        let votes = home.json(&["presence", "votes", height]);
        assert_eq!(list(&votes["votes"]).len() as u64, votes["quorum"].as_u64().unwrap());
    }
    let shown = home.json(&["presence", "show", &all]);
    assert_eq!(list(&shown["present"]).len(), 4, "{shown}");
    home.json(&["presence", "diff", &all, &later]);
}

#[test]
fn a_flipped_bit_in_a_stored_certificate_is_found_and_named() {
    let home = Home::new();
    home.up(&["--wait", "6"]);
    let flip = |column: &str, offset: &dyn Fn(&[u8]) -> usize| {
        let file = home.path("local/validators/validator-1/index.db");
        let store = Connection::open(file).unwrap();
        let sql = format!("SELECT {column} FROM presence WHERE height = 3");
        let mut bytes: Vec<u8> = store.query_row(&sql, [], |row| row.get(0)).unwrap();
        let at = offset(&bytes);
        bytes[at] ^= 1;
        let sql = format!("UPDATE presence SET {column} = ? WHERE height = 3");
        store.execute(&sql, [bytes]).unwrap();
    };
    let verify = || {
        let args = ["--output", "json", "--node", "validator-1", "presence", "verify", "3"];
        home.run(&args)
    };
    assert_eq!(verify().code, 0);
    // Changes a byte of the last vote's signature.
    let last_signature = |bytes: &[u8]| {
        let needle = b"signature";
        bytes.windows(needle.len()).rposition(|w| w == needle).unwrap() + needle.len() + 2 + 20
    };
    flip("certificate", &last_signature);
    let found = verify();
    assert_eq!(found.code, 7, "{found:?}");
    let report = found.json();
    assert_eq!(report["valid"], false);
    let named = report["mismatches"][0]["validator"].as_str().unwrap();
    assert!(named.starts_with("validator-"), "{report}");
    flip("certificate", &last_signature);
    let again = verify();
    assert_eq!(again.code, 0, "{again:?}");
    // If a bit of the derived bitmap is flipped, the report names the runner.
    flip("bitmap", &|_| 0);
    let found = verify();
    assert_eq!(found.code, 7, "{found:?}");
    assert_eq!(found.json()["mismatches"][0]["runner"], "runner-0");
    // The other validators' files are not affected.
    home.json(&["--node", "validator-0", "presence", "verify", "3"]);
}

fn a_runner_that_leaves_closes_the_gap_and_comes_back_as_the_last(home: &Home) {
    home.up(&["--wait", "2", "--runners", "3"]);
    let mut watch = Watch::start(home, &["presence", "watch"]);
    watch.until_line("line with all runners", |line| line["present"] == 3);

    let left = number(&home.json(&["runner", "deregister", "runner-0"])["height"]);
    home.fails(3, &["runner", "show", "runner-0"]);
    let again = home.fails(6, &["runner", "deregister", "runner-0"]);
    assert!(again.contains("UnknownRunner"), "{again}");
    let unknown = home.fails(3, &["runner", "deregister", "runner-9"]);
    assert!(unknown.contains("has no runner `runner-9`"), "{unknown}");
    let gone = |line: &serde_json::Value| list(&line["vanished"]).iter().any(|n| n == "runner-0");
    watch.until_line("line without runner-0", gone);
    // Long before the periodic check of connections, which is every 32 blocks.
    wait_until("its connections are closed", || {
        let validators = home.json(&["validator", "ls"]);
        let connected = list(&validators).iter().flat_map(|v| list(&v["connected_runners"]));
        connected.into_iter().all(|name| name != "runner-0")
    });
    let names = || -> Vec<String> {
        let runners = home.json(&["runner", "ls"]);
        list(&runners).iter().map(|runner| text(&runner["name"]).to_owned()).collect()
    };
    assert_eq!(names(), ["runner-1", "runner-2"]);

    let poor = home.fails(6, &["runner", "register", "runner-0", "--stake", "1cby"]);
    assert!(poor.contains("InsufficientStake"), "{poor}");
    let back = number(&home.json(&["runner", "register", "runner-0"])["height"]);
    assert_eq!(names(), ["runner-1", "runner-2", "runner-0"]);
    let present = |line: &serde_json::Value| {
        number(&line["height"]) > back && list(&line["appeared"]).iter().any(|n| n == "runner-0")
    };
    watch.until_line("line with runner-0 again", present);
    watch.interrupt();

    // Votes on a block are indexed by the registry as of its parent.
    for (block, len) in [(left, 3), (left + 1, 2), (back, 2), (back + 1, 3)] {
        let shown = home.json(&["presence", "show", &block.to_string()]);
        assert_eq!(shown["registry_len"], len, "block {block}: {shown}");
        assert_eq!(home.json(&["presence", "verify", &block.to_string()])["valid"], true);
    }
    // A bit is never attributed to the runner that had its index before.
    for block in left + 1..=back {
        let shown = home.json(&["presence", "show", &block.to_string()]);
        assert!(list(&shown["present"]).iter().all(|name| name != "runner-0"), "{shown}");
    }
    shape::seen(&["presence watch"]);
}
