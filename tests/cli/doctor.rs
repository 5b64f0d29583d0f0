//! `doctor`: each kind of damage is made, found, and repaired if that is safe.

use crate::{
    answers::answer,
    shape,
    support::{Fake, Folder, Outcome, time},
};
use cowboy_devnet::{
    orchestrator::{home::DevnetRecord, ports::Ports},
    runner::folder::RunnerFolder,
    storage::ValidatorStore,
    types::{ChainId, Text},
};
use cowboy_lease::folder::LeaseFolder;
use serde_json::Value;
use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

/// The command's exit code and the findings of one check.
fn found(folder: &Folder, args: &[&str], check: &str) -> (i32, Vec<Value>) {
    let outcome = folder.run(&[&["doctor", "-o", "json"], args].concat());
    shape::seen(&["doctor"]);
    let all = findings(&outcome);
    (outcome.code, all.into_iter().filter(|finding| finding["check"] == check).collect())
}

fn findings(outcome: &Outcome) -> Vec<Value> {
    let Ok(Value::Array(all)) = serde_json::from_str(&outcome.stdout) else {
        panic!("no list of findings: {outcome:?}");
    };
    for finding in &all {
        let fields: Vec<_> = finding.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["check", "fix", "fixed", "state", "subject", "what"], "{finding}");
    }
    all
}

/// The state of the only finding of a check.
fn state(folder: &Folder, check: &str) -> String {
    let (_, found) = found(folder, &[], check);
    let [finding] = &found[..] else { panic!("{check}: {found:?}") };
    finding["state"].as_str().unwrap().to_owned()
}

/// A devnet that has been started and stopped, in a private home.
fn stopped(name: &str) -> Folder {
    let folder = Folder::new();
    let devnet = folder.devnet(name);
    let lock = devnet.lock().unwrap();
    lock.write_topology(&format!("name: {name}\nvalidators: 1\nrunners: 1\n")).unwrap();
    lock.write_token("secret").unwrap();
    drop(lock);
    private(folder.home().path());
    folder
}

fn private(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn where_nothing_is_wrong_nothing_is_said_to_be() {
    let folder = stopped("a");
    let outcome = folder.run(&["doctor", "-o", "json"]);
    let of_devnet: Vec<_> = findings(&outcome)
        .into_iter()
        // The rest depends on the machine.
        .filter(|finding| finding["subject"] == "a")
        .collect();
    assert!(of_devnet.len() >= 4, "{outcome:?}");
    for finding in of_devnet {
        assert_eq!(finding["state"], "ok", "{finding}");
    }
    let empty = Folder::new();
    assert_eq!(state(&empty, "home"), "ok");
    assert_eq!(empty.run(&["--devnet", "nowhere", "doctor"]).code, 4);
}

#[test]
fn an_open_home_is_closed() {
    let folder = stopped("a");
    let home = folder.home();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(state(&folder, "home"), "warning");
    fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
    assert_eq!(state(&folder, "home"), "problem");
    let (_, repaired) = found(&folder, &["--fix"], "home");
    assert_eq!(repaired[0]["fixed"], true, "{repaired:?}");
    assert!(repaired[0]["fix"].as_str().unwrap().starts_with("did: chmod 700 "), "{repaired:?}");
    assert_eq!(mode(home.path()), 0o700);
    assert_eq!(state(&folder, "home"), "ok");
}

#[test]
fn keys_that_others_may_read_are_closed() {
    let folder = stopped("a");
    let token = folder.devnet("a").token_path();
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let (code, wrong) = found(&folder, &[], "keys");
    assert_eq!((code, wrong.len()), (1, 1), "{wrong:?}");
    assert_eq!(wrong[0]["state"], "problem");
    let path = token.display().to_string();
    assert_eq!(wrong[0]["fix"], format!("chmod 600 {path}"));
    assert_eq!(mode(&token), 0o644, "nothing is touched without --fix");
    let (_, repaired) = found(&folder, &["--fix"], "keys");
    assert_eq!((&repaired[0]["fixed"], mode(&token)), (&Value::Bool(true), 0o600));
    assert_eq!(state(&folder, "keys"), "ok");
}

#[test]
fn what_killed_processes_left_is_removed() {
    let folder = stopped("a");
    let devnet = folder.devnet("a");
    let record = DevnetRecord {
        name: "a".parse().unwrap(),
        pid: 1,
        started_at: time(),
        rpc_url: "http://127.0.0.1:1".to_owned(),
        chain_id: Text(ChainId(1)),
        lease_url: None,
    };
    devnet.lock().unwrap().write_record(&record).unwrap();
    let half_written = devnet.path().join("topology.new");
    fs::write(&half_written, "na").unwrap();
    let runner = RunnerFolder::of(&devnet, &"mine".parse().unwrap());
    drop(runner.lock().unwrap().unwrap());
    let of_runner = runner.path().join("runner.json");
    fs::write(&of_runner, "{}").unwrap();
    let lease = LeaseFolder::of(folder.home().path());
    drop(lease.lock().unwrap().announce("http://127.0.0.1:1").unwrap());
    let of_lease = lease.path().join("server.json");
    let files = [devnet.record_path(), half_written, of_runner, of_lease];
    assert!(files.iter().all(|file| file.exists()));

    let (_, stale) = found(&folder, &[], "stale");
    assert_eq!(stale.len(), 4, "{stale:?}");
    assert!(stale.iter().all(|finding| finding["state"] == "warning"), "{stale:?}");
    let (_, repaired) = found(&folder, &["--fix"], "stale");
    assert!(repaired.iter().all(|finding| finding["fixed"] == true), "{repaired:?}");
    assert!(files.iter().all(|file| !file.exists()));
    assert_eq!(found(&folder, &[], "stale").1, [Value::Null; 0]);
    // A malformed record is removed, too.
    fs::write(devnet.record_path(), "{").unwrap();
    assert_eq!(found(&folder, &["--fix"], "stale").1.len(), 1);
    assert!(!devnet.record_path().exists());
}

#[test]
fn a_running_devnet_keeps_what_it_has() {
    let fake = Fake::new(answer);
    let devnet = fake.folder.devnet("local");
    let (_, stale) = found(&fake.folder, &["--fix"], "stale");
    assert_eq!(stale, [Value::Null; 0]);
    assert!(devnet.record_path().exists());
}

#[test]
fn a_topology_that_does_not_parse_is_named() {
    let folder = stopped("a");
    let path = folder.devnet("a").topology_path();
    fs::write(&path, "name: a\nvalidators: many\n").unwrap();
    let (code, wrong) = found(&folder, &[], "topology");
    assert_eq!((code, &wrong[0]["state"]), (1, &"problem".into()), "{wrong:?}");
    let what = wrong[0]["what"].as_str().unwrap();
    assert!(what.contains("topology.yaml:2:13: validators: "), "{what}");
}

#[test]
fn a_taken_port_is_told_with_its_owner() {
    let folder = stopped("a");
    let devnet = folder.devnet("a");
    fs::create_dir_all(devnet.data_path()).unwrap();
    let file = devnet.data_path().join("ports.json");
    let ports = Ports::load_or_choose(&file, &["validator-0".to_owned()], None, None).unwrap();
    assert_eq!(state(&folder, "ports"), "ok");
    let _taken = TcpListener::bind(("127.0.0.1", ports.api)).unwrap();
    let (code, wrong) = found(&folder, &["--fix"], "ports");
    assert_eq!((code, wrong.len()), (1, 1), "{wrong:?}");
    let what = wrong[0]["what"].as_str().unwrap();
    assert!(what.contains(&format!("the control API: port {} is taken by ", ports.api)), "{what}");
    assert!(what.contains(&format!("(pid {})", std::process::id())), "{what}");
    assert!(file.exists(), "ports stay");
}

#[test]
fn a_chain_of_another_version_is_told_and_left_alone() {
    let folder = stopped("a");
    let validator = folder.devnet("a").validators_path().join("validator-0");
    fs::create_dir_all(&validator).unwrap();
    let path = validator.join("index.db");
    drop(ValidatorStore::open(&path, 7).unwrap());
    assert_eq!(state(&folder, "format"), "ok");
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let (code, wrong) = found(&folder, &["--fix"], "format");
    assert_eq!(
        (code, &wrong[0]["state"], &wrong[0]["fixed"]),
        (1, &"problem".into(), &false.into())
    );
    assert!(wrong[0]["what"].as_str().unwrap().contains("format 99"), "{wrong:?}");
    assert!(path.exists());
}

#[test]
fn a_running_devnet_is_asked_what_is_wrong() {
    let fake = Fake::new(answer);
    let (_, validators) = found(&fake.folder, &[], "validators");
    assert_eq!(validators[0]["state"], "warning", "one is behind: {validators:?}");
    assert!(validators[0]["what"].as_str().unwrap().contains("validator-3"), "{validators:?}");
    // Its newest block dates from the day on which the answers were written.
    let (code, finality) = found(&fake.folder, &[], "finality");
    assert_eq!((code, &finality[0]["state"]), (1, &"problem".into()), "{finality:?}");
    let (_, runners) = found(&fake.folder, &[], "runners");
    assert_eq!(runners[0]["state"], "ok", "{runners:?}");
    let (_, answers) = found(&fake.folder, &[], "answers");
    assert_eq!(answers[0]["state"], "ok", "{answers:?}");
    let (_, faults) = found(&fake.folder, &[], "faults");
    assert!(faults[0]["fix"].as_str().is_none_or(|fix| fix.contains("fault heal")), "{faults:?}");
}

#[test]
fn a_devnet_that_does_not_answer_is_a_problem() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = stopped("a");
    let lock = folder.devnet("a").lock().unwrap();
    lock.write_record(&DevnetRecord {
        name: "a".parse().unwrap(),
        pid: std::process::id(),
        started_at: time(),
        rpc_url: format!("http://{}", listener.local_addr().unwrap()),
        chain_id: Text(ChainId(1)),
        lease_url: None,
    })
    .unwrap();
    let (code, wrong) = found(&folder, &["--timeout", "200ms"], "answers");
    assert_eq!((code, &wrong[0]["state"]), (1, &"problem".into()), "{wrong:?}");
}

#[test]
fn people_see_what_to_do_below_what_is_wrong() {
    let folder = stopped("a");
    let token = folder.devnet("a").token_path();
    fs::set_permissions(&token, Permissions::from_mode(0o640)).unwrap();
    let outcome = folder.run(&["doctor"]);
    let lines: Vec<_> = outcome.stdout.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("problem  keys ")).unwrap();
    assert!(lines[at].ends_with("others may read it"), "{outcome:?}");
    assert!(lines[at + 1].trim().starts_with("chmod 600 "), "{outcome:?}");
    assert!(outcome.stderr.starts_with("error: "), "{outcome:?}");
    assert!(outcome.stderr.contains("cowboyctl doctor --fix"), "{outcome:?}");
    let quiet = folder.run(&["doctor", "-q"]);
    assert!(quiet.stdout.lines().any(|line| line.starts_with("keys /")), "{quiet:?}");
    let lines = folder.run(&["doctor", "-o", "jsonl"]);
    assert!(lines.stdout.lines().count() > 4, "{lines:?}");
}
