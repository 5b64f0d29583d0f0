//! Damaged and missing files of validators: reported, and repaired at the next start or by hand.

use crate::support::Home;
use rusqlite::Connection;
use serde_json::Value;
use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

/// A stopped devnet with some blocks, whose validators have stored their logs.
fn stopped(blocks: &str) -> Home {
    let home = Home::new();
    home.up(&["--wait", blocks, "--timeout", "4m"]);
    home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    home.json(&["devnet", "down"]);
    home
}

fn store(home: &Home, validator: u32) -> PathBuf {
    home.path(&format!("local/validators/validator-{validator}/index.db"))
}

/// The findings of `doctor --deep` about stored data, except healthy ones.
fn faults(home: &Home) -> Vec<String> {
    let outcome = home.run(&["--output", "json", "doctor", "--deep"]);
    let findings = outcome.json();
    let stored = findings.as_array().unwrap().iter().filter(|f| f["check"] == "stored");
    let found: Vec<_> = stored.collect();
    assert!(found.len() >= 4, "a finding for each validator at least: {found:?}");
    let bad = found.into_iter().filter(|finding| finding["state"] != "ok");
    bad.map(|finding| format!("{}: {}", finding["subject"], finding["what"])).collect()
}

/// Starts the devnet and waits until all four validators go on together.
fn goes_on(home: &Home) {
    home.up(&[]);
    let head = home.json(&["chain", "head"])["height"].as_u64().unwrap();
    home.json(&["chain", "wait", &(head + 5).to_string(), "--timeout", "60s"]);
    home.wait_validators(|_| head);
}

fn flip_every_page(path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    for page in 1..length / 4096 {
        let mut bytes = [0; 512];
        let at = page * 4096 + 1024;
        file.read_exact_at(&mut bytes, at).unwrap();
        for byte in &mut bytes {
            *byte ^= 0x55;
        }
        file.write_all_at(&bytes, at).unwrap();
    }
}

#[test]
fn damaged_and_missing_stores_are_made_again() {
    let home = stopped("40");
    assert_eq!(faults(&home), Vec::<String>::new());
    flip_every_page(&store(&home, 0));
    OpenOptions::new().write(true).open(store(&home, 1)).unwrap().set_len(20_000).unwrap();
    fs::remove_file(store(&home, 2)).unwrap();
    let found = faults(&home);
    for validator in ["validator-0", "validator-1", "validator-2"] {
        let named = found.iter().filter(|line| line.contains(validator)).count();
        assert!(named >= 1, "{validator}: {found:?}");
    }
    assert!(!found.iter().any(|line| line.contains("validator-3")), "{found:?}");
    goes_on(&home);
    let log = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    for validator in ["validator-0", "validator-1"] {
        let told = log
            .lines()
            .any(|line| line.contains("its store is damaged") && line.contains(validator));
        assert!(told, "{validator}: {log}");
    }
    assert_eq!(faults(&home), Vec::<String>::new());
}

#[test]
fn what_consensus_kept_may_be_missing() {
    let home = stopped("300");
    let consensus = home.path("local/data/consensus");
    for entry in fs::read_dir(&consensus).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("validator-1-") {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    goes_on(&home);
    home.json(&["devnet", "down"]);
    // All of it is missing: every validator resumes from its newest block that is proved final.
    share_the_head(&home);
    fs::remove_dir_all(&consensus).unwrap();
    goes_on(&home);
    assert_eq!(faults(&home), Vec::<String>::new());
}

/// The files of all consensus partitions whose names have this prefix.
fn partition(home: &Home, begins: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path("local/data/consensus")).unwrap().flatten();
    let found = entries.filter(|e| e.file_name().to_string_lossy().starts_with(begins));
    let files = found.flat_map(|entry| fs::read_dir(entry.path()).unwrap().flatten());
    let files: Vec<_> = files.map(|entry| entry.path()).collect();
    assert!(!files.is_empty(), "{begins}");
    files
}

/// Whether at least two validators of a stopped devnet have stored the highest block.
fn is_shared(home: &Home) -> bool {
    let status = home.run(&["-o", "json", "devnet", "status"]).json();
    let validators = crate::support::list(&status["validators"]);
    let heights: Vec<_> = validators.iter().map(|one| one["height"].as_u64().unwrap()).collect();
    let highest = heights.iter().max();
    heights.iter().filter(|height| Some(*height) == highest).count() >= 2
}

/// Runs a stopped devnet until [`is_shared`]. A quorum that has lost its votes may decide again on
/// a block that only one validator has.
fn share_the_head(home: &Home) {
    while !is_shared(home) {
        goes_on(home);
        home.json(&["devnet", "down"]);
    }
}

fn damage(files: &[PathBuf]) {
    for file in files {
        let length = fs::metadata(file).unwrap().len();
        let file = OpenOptions::new().write(true).open(file).unwrap();
        for at in [0, length / 2, length.saturating_sub(1)] {
            file.write_all_at(&[0xff], at).unwrap();
        }
    }
}

/// A restarted validator receives blocks from the others before it has read its journal.
#[test]
fn a_journal_is_damaged_while_the_others_go_on() {
    let home = Home::new();
    home.up(&["--wait", "10"]);
    home.json(&["validator", "stop", "validator-1"]);
    home.wait_height(home.height() + 10);
    damage(&partition(&home, "validator-1-simplex-"));
    home.json(&["validator", "start", "validator-1"]);
    goes_on_running(&home);
    let log = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    let told = "its archives and the journals of its votes are removed";
    assert!(log.contains(told), "{log}");
}

#[test]
fn what_consensus_kept_may_be_damaged() {
    let home = stopped("30");
    let kinds = [
        "validator-1-blocks-meta",
        "validator-1-finalizations-key",
        "validator-1-marshal-application-metadata",
        "validator-1-marshal-cache-metadata",
        "validator-1-simplex-",
        "validator-",
    ];
    for kind in kinds {
        if kind == "validator-" {
            share_the_head(&home);
        }
        damage(&partition(&home, kind));
        goes_on(&home);
        home.json(&["devnet", "down"]);
    }
    let journal = partition(&home, "validator-2-simplex-")[0].parent().unwrap().to_owned();
    fs::remove_dir_all(&journal).unwrap();
    fs::write(&journal, "no folder").unwrap();
    goes_on(&home);
    assert_eq!(faults(&home), Vec::<String>::new());
}

#[test]
fn a_store_that_cannot_be_used_costs_its_validator_only() {
    let home = stopped("20");
    Connection::open(store(&home, 1)).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let outcome = home.run(&["devnet", "up", "--detach"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let told = "validator resync validator-1";
    assert!(outcome.stderr.contains(told), "{outcome:?}");
    let head = home.height();
    home.wait_height(head + 5);
    let status = home.json(&["devnet", "status"]);
    let states: Vec<_> = crate::support::list(&status["validators"])
        .iter()
        .map(|validator| validator["status"].as_str().unwrap())
        .collect();
    assert_eq!(states.iter().filter(|state| **state == "died").count(), 1, "{status}");
    home.json(&["validator", "resync", "validator-1"]);
    goes_on_running(&home);
    home.json(&["devnet", "down"]);
    // Two of four are too few.
    for validator in [1, 2] {
        let store = Connection::open(store(&home, validator)).unwrap();
        store.execute_batch("PRAGMA user_version = 3").unwrap();
    }
    let outcome = home.run(&["devnet", "up", "--detach"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("validator-1"), "{outcome:?}");
}

#[test]
fn a_store_without_one_of_its_tables_is_made_again() {
    let home = stopped("20");
    for statement in ["DROP TABLE presence", "DROP INDEX draw_height"] {
        Connection::open(store(&home, 1)).unwrap().execute_batch(statement).unwrap();
        let found = faults(&home);
        let name = statement.rsplit(' ').next().unwrap();
        let named = |line: &String| line.contains("validator-1") && line.contains(name);
        assert!(found.iter().any(named), "{statement}: {found:?}");
        goes_on(&home);
        assert_eq!(faults(&home), Vec::<String>::new(), "{statement}");
        home.json(&["devnet", "down"]);
    }
}

#[test]
fn a_changed_record_is_found_and_a_resync_heals_it() {
    let home = stopped("20");
    let change = |sql: &str| {
        assert_eq!(
            Connection::open(store(&home, 1)).unwrap().execute(sql, []).unwrap(),
            1,
            "{sql}"
        );
    };
    change(
        "UPDATE effects SET body = (SELECT body FROM effects WHERE height = 4) WHERE height = 5",
    );
    change("UPDATE block SET state_root = zeroblob(32) WHERE height = 6");
    change("UPDATE presence SET bitmap = x'00' WHERE height = 7");
    let found = faults(&home);
    for (place, what) in [("block 5", "events"), ("block 6", "root"), ("block 8", "presence")] {
        let named = |line: &&String| line.contains(place) && line.contains(what);
        assert!(found.iter().find(named).is_some(), "{place}: {found:?}");
    }
    assert!(found.iter().all(|line| line.contains("validator-1")), "{found:?}");
    goes_on(&home);
    let after: Value = home.json(&["validator", "resync", "validator-1"]);
    assert_eq!(after["name"], "validator-1");
    goes_on_running(&home);
    assert_eq!(faults(&home), Vec::<String>::new());
    let error = home.fails(3, &["validator", "resync", "validator-9"]);
    assert!(error.contains("validator-9"), "{error}");
}

fn goes_on_running(home: &Home) {
    home.wait_validators(|head| head.saturating_sub(3));
}

#[test]
fn the_only_validator_says_what_it_has_lost() {
    let home = Home::new();
    let size = ["--validators", "1", "--runners", "0", "--block-time", "0ms", "--wait", "1700"];
    let patient = ["--timeout", "4m"];
    home.json(&[&["devnet", "up", "--detach"], &size[..], &patient].concat());
    home.json(&["devnet", "down"]);
    fs::remove_file(store(&home, 0)).unwrap();
    let outcome = home.run(&["devnet", "up", "--detach"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("validator-0: block 1 is lost"), "{outcome:?}");
}

#[test]
fn who_lacks_what_all_have_dropped_takes_a_copy() {
    let home = Home::new();
    let file = home.path("topology.yaml");
    let text = "storage: {keep: 512}\nrunners: 0\nchain: {block_time: 0ms, epoch_blocks: 64}\n";
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    // At most twelve blocks a second if tests share two cores.
    home.json(&["devnet", "up", "--detach", "--file", file, "--wait", "900", "--timeout", "4m"]);
    let kept_from = home.json(&["devnet", "status"])["kept_from"].as_u64().unwrap();
    assert!(kept_from > 1);
    let error = home.fails(1, &["chain", "block", "1"]);
    assert!(error.contains("no longer kept"), "{error}");
    home.json(&["validator", "resync", "validator-1"]);
    goes_on_running(&home);
    home.json(&["validator", "add", "late"]);
    goes_on_running(&home);
    let log = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    assert_eq!(log.matches("the others have dropped the blocks").count(), 2, "{log}");
    home.json(&["devnet", "down"]);
    assert_eq!(faults(&home), Vec::<String>::new());
}
