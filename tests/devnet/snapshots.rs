//! Devnets that are saved and loaded again.

use crate::{
    shape,
    support::{Home, list, on_all_hosts, wait_until},
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

on_all_hosts! {
    a_running_devnet_is_saved_and_goes_on_and_comes_back_as_it_was
}

fn balance(home: &Home, account: &str) -> String {
    home.json(&["account", "balance", account])["balance"].as_str().unwrap().to_owned()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Unfinished entries, or ones that should have been removed.
fn leftovers(home: &Home) -> Vec<String> {
    let folders = [home.path("."), home.path(".snapshots")];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.') && name != ".snapshots").collect()
}

/// Asserts that every validator has the block of this height and hash, with valid votes.
fn all_have(home: &Home, height: u64, hash: &Value) {
    for validator in 0..4 {
        let node = format!("validator-{validator}");
        let at = height.to_string();
        home.json(&["--node", &node, "chain", "wait", &at, "--timeout", "60s"]);
        assert_eq!(home.json(&["--node", &node, "chain", "block", &at])["hash"], *hash, "{node}");
    }
}

fn a_running_devnet_is_saved_and_goes_on_and_comes_back_as_it_was(home: &Home) {
    home.up(&["--wait", "5"]);
    home.json(&["account", "new", "alice", "--fund", "3cby"]);
    home.json(&["validator", "stop", "validator-3"]);
    let pid = home.pid("local");
    let job = ["job", "submit", "custom", "--", "sh", "-c", "sleep 1; echo across"];
    let job = home.json(&job)["job_id"].as_str().unwrap().to_owned();
    let saved = home.json(&["devnet", "snapshot", "save", "before"]);
    let (height, hash) = (saved["height"].as_u64().unwrap(), saved["hash"].clone());
    assert!(saved["halted_ms"].is_u64(), "{saved}");
    assert_eq!(home.pid("local"), pid, "it is the same process");
    // The devnet goes on: running validators run, the stopped one is stopped, runners are back.
    home.wait_height(height + 5);
    let status = home.json(&["devnet", "status"]);
    for validator in list(&status["validators"]) {
        let is_stopped = validator["status"] == "stopped";
        assert_eq!(is_stopped, validator["name"] == "validator-3", "{status}");
    }
    home.json(&["job", "submit", "custom", "--wait", "--timeout", "60s", "--", "echo", "on"]);
    let job = home.json(&["job", "wait", &job, "--timeout", "60s"]);
    assert_eq!(job["status"], "Verified", "one that was under way comes to its end: {job}");

    // Later changes are undone.
    let before = balance(home, "alice");
    home.json(&["account", "transfer", "alice", "dev-0", "1cby"]);
    home.json(&["account", "new", "later"]);
    assert_ne!(balance(home, "alice"), before);
    let load = ["devnet", "snapshot", "load", "before"];
    let error = home.fails(8, &[&load[..], &["--force"]].concat());
    assert!(error.contains("is running"), "{error}");
    home.json(&["devnet", "down"]);
    let error = home.fails(8, &load);
    assert!(error.contains("--force"), "{error}");
    let loaded = home.json(&[&load[..], &["--force"]].concat());
    assert_eq!((&loaded["height"], &loaded["replaced"]), (&saved["height"], &Value::Bool(true)));
    let ports = fs::read_to_string(home.path("local/data/ports.json")).unwrap();
    let up = home.json(&["devnet", "up", "--detach", "--wait", &(height + 4).to_string()]);
    assert!(up["head"]["height"].as_u64().unwrap() >= height);
    assert_eq!(fs::read_to_string(home.path("local/data/ports.json")).unwrap(), ports);
    assert_eq!(balance(home, "alice"), before);
    all_have(home, height, &hash);
    for at in [height - 1, height, height + 2] {
        let check = home.json(&["presence", "verify", &at.to_string()]);
        assert_eq!(check["valid"], true, "{check}");
    }
    // The only copy of a key is not lost.
    assert!(home.path("local/accounts/later.key").is_file());
    home.json(&["account", "transfer", "alice", "dev-0", "1cby"]);
    assert!(leftovers(home).is_empty(), "{:?}", leftovers(home));
    shape::seen(&["devnet snapshot save", "devnet snapshot load"]);
}

#[test]
fn a_snapshot_is_loaded_under_another_name_next_to_the_first() {
    let home = Home::new();
    home.up(&["--wait", "4", "--validators", "4", "--runners", "2"]);
    home.json(&["account", "fund", "dev-1", "7cby"]);
    let funded = balance(&home, "dev-1");
    home.json(&["devnet", "down"]);
    let saved = home.json(&["devnet", "snapshot", "save"]);
    let height = saved["height"].as_u64().unwrap();
    let name = format!("local-{height}");
    assert_eq!(saved["snapshot"], name.as_str());
    assert!(saved["halted_ms"].is_null(), "nothing was halted");
    home.json(&["devnet", "snapshot", "load", &name, "--name", "other"]);
    home.json(&["devnet", "up", "--detach", "--name", "local"]);
    home.json(&["devnet", "up", "--detach", "--name", "other"]);
    for devnet in ["local", "other"] {
        let ask = |args: &[&str]| home.json(&[&["--devnet", devnet], args].concat());
        assert_eq!(
            ask(&["chain", "block", &height.to_string()])["hash"],
            saved["hash"],
            "{devnet}"
        );
        let target = (height + 4).to_string();
        // The next block embeds its certificate.
        ask(&["chain", "wait", &(height + 5).to_string(), "--timeout", "60s"]);
        assert_eq!(ask(&["presence", "verify", &target])["valid"], true, "{devnet}");
        assert_eq!(ask(&["account", "balance", "dev-1"])["balance"], funded.as_str(), "{devnet}");
    }
    let ids = ["local", "other"]
        .map(|devnet| home.json(&["--devnet", devnet, "devnet", "status"])["chain_id"].clone());
    assert_eq!(ids[0], ids[1], "the chain is the same");
    let tokens = ["local", "other"]
        .map(|devnet| fs::read_to_string(home.path(devnet).join("token")).unwrap());
    assert_ne!(tokens[0], tokens[1]);
    // The two chains diverge.
    home.json(&["--devnet", "other", "account", "fund", "dev-1", "1cby"]);
    assert_eq!(
        home.json(&["--devnet", "local", "account", "balance", "dev-1"])["balance"],
        funded.as_str()
    );
    // After a restart it still has the other chain.
    home.json(&["devnet", "down", "other"]);
    home.json(&["devnet", "up", "--detach", "--name", "other"]);
}

#[test]
fn snapshots_are_listed_kept_to_their_owner_and_deleted() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    for name in ["one", "two"] {
        home.json(&["devnet", "snapshot", "save", name]);
    }
    let error = home.fails(8, &["devnet", "snapshot", "save", "one"]);
    assert!(error.contains("`one` already"), "{error}");
    assert!(home.run(&["devnet", "snapshot", "save", "No Name"]).code == 2);
    home.json(&["devnet", "down"]);
    home.fails(8, &["devnet", "snapshot", "save", "two"]);
    let all = home.json(&["devnet", "snapshot", "ls"]);
    let names: Vec<_> = list(&all).iter().map(|one| one["snapshot"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(home.run(&["--quiet", "devnet", "snapshot", "ls"]).stdout, "one\ntwo\n");
    for file in files(&home.path(".snapshots")) {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        let private = file.extension().is_some_and(|ending| ending == "key" || ending == "db");
        assert!(!private || mode.trailing_zeros() >= 6, "{}: {mode:o}", file.display());
    }
    let token = fs::read(home.path("local/token")).unwrap();
    let holds = |file: &PathBuf| {
        fs::read(file)
            .unwrap()
            .windows(token.len() - 1)
            .any(|window| window == &token[..token.len() - 1])
    };
    let with_token: Vec<_> = files(&home.path(".snapshots")).into_iter().filter(holds).collect();
    assert!(with_token.is_empty(), "{with_token:?}");

    // A snapshot of another format or with damage is refused with the reason.
    let manifest = home.path(".snapshots/one/snapshot.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"format\": 2", "\"format\": 9")).unwrap();
    let error = home.fails(1, &["devnet", "snapshot", "load", "one", "--name", "new"]);
    assert!(error.contains("format 9"), "{error}");
    let outcome = home.run(&["--quiet", "devnet", "snapshot", "ls"]);
    assert_eq!(outcome.stdout, "two\n");
    assert!(outcome.stderr.contains("format 9"), "{outcome:?}");
    fs::remove_file(home.path(".snapshots/two/devnet/topology.yaml")).unwrap();
    let error = home.fails(7, &["devnet", "snapshot", "load", "two", "--name", "new"]);
    assert!(error.contains("damaged"), "{error}");
    home.fails(3, &["devnet", "snapshot", "load", "three"]);
    assert!(!home.path("new").exists());
    home.json(&["devnet", "snapshot", "rm", "one", "two"]);
    home.fails(3, &["devnet", "snapshot", "rm", "one"]);
    assert!(list(&home.json(&["devnet", "snapshot", "ls"])).is_empty());
    assert!(leftovers(&home).is_empty(), "{:?}", leftovers(&home));
    home.fails(4, &["--devnet", "absent", "devnet", "snapshot", "save"]);
    shape::seen(&["devnet snapshot ls", "devnet snapshot rm"]);
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn what_is_no_file_or_folder_is_damage_that_stops_nothing_else() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    home.json(&["devnet", "down"]);
    for name in ["bad", "good"] {
        home.json(&["devnet", "snapshot", "save", name]);
    }
    let load = ["devnet", "snapshot", "load", "bad", "--name", "new"];
    let (bad, aside) = (home.path(".snapshots/bad"), home.path("aside"));
    for place in ["", "snapshot.json", "SHA256SUMS", "devnet"] {
        // A path that is joined with "" ends in a slash, which follows a link.
        let path = if place.is_empty() { bad.clone() } else { bad.join(place) };
        fs::rename(&path, &aside).unwrap();
        for is_pipe in [true, false] {
            match is_pipe {
                true => pipe(&path),
                false => symlink(&aside, &path).unwrap(),
            }
            let error = home.fails(7, &load);
            assert!(error.contains("is damaged"), "{place}: {error}");
            assert!(error.contains("delete it: cowboyctl devnet snapshot rm bad"), "{error}");
            let listed = home.run(&["--quiet", "devnet", "snapshot", "ls"]);
            assert!(listed.code == 0 && listed.stdout.contains("good\n"), "{place}: {listed:?}");
            if ["", "snapshot.json"].contains(&place) {
                assert_eq!(listed.stdout, "good\n", "{place}");
                assert!(listed.stderr.contains("`bad` is damaged"), "{place}: {listed:?}");
            }
            fs::remove_file(&path).unwrap();
        }
        fs::rename(&aside, &path).unwrap();
    }
    let stray = bad.join("devnet/accounts/more.key");
    fs::write(&stray, "mine").unwrap();
    let error = home.fails(7, &load);
    assert!(error.contains(&format!("remove it: {}", stray.display())), "{error}");
    fs::remove_file(stray).unwrap();
    home.json(&load);

    // The devnet's own folder, with the same result whether it runs or not.
    for is_running in [false, true] {
        if is_running {
            home.up(&["--wait", "3"]);
        }
        let link = home.path("local/data/link");
        symlink(&aside, &link).unwrap();
        let error = home.fails(7, &["--devnet", "local", "devnet", "snapshot", "save", "more"]);
        assert!(error.contains("local/data/link"), "{error}");
        assert!(error.contains("move it out of the devnet's folder"), "{error}");
        fs::remove_file(link).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    fs::rename(home.path(".snapshots"), &aside).unwrap();
    symlink(folder.path(), home.path(".snapshots")).unwrap();
    home.json(&["--devnet", "local", "devnet", "down"]);
    home.fails(1, &["--devnet", "local", "devnet", "snapshot", "save", "more"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_a_killed_removal_left_is_told_and_removed() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    home.json(&["devnet", "down"]);
    let save = |name: &str| home.json(&["devnet", "snapshot", "save", name]);
    for round in 0..4_u64 {
        save("big");
        for number in 0..2000 {
            fs::write(home.path(&format!(".snapshots/big/file-{number}")), "").unwrap();
        }
        let mut rm = home.command(&["devnet", "snapshot", "rm", "big"]).spawn().unwrap();
        thread::park_timeout(Duration::from_millis(5 + 10 * round));
        rm.kill().unwrap();
        rm.wait().unwrap();
        save("next");
        assert!(leftovers(&home).is_empty(), "{:?}", leftovers(&home));
        home.json(&["devnet", "snapshot", "rm", "next"]);
        home.run(&["devnet", "snapshot", "rm", "big"]);
    }
    // After an interrupted removal, at any point.
    for files in [&["lock", "snapshot"] as &[&str], &["snapshot"], &[]] {
        for left in [".snapshots/.unfinished-left", ".loading-left"] {
            fs::create_dir(home.path(left)).unwrap();
            for file in files {
                fs::write(home.path(left).join(file), "1").unwrap();
            }
            let doctor = home.run(&["--output", "json", "doctor"]);
            let told = |finding: &Value| {
                let subject = finding["subject"].as_str().unwrap_or_default();
                finding["check"] == "stale" && subject.ends_with(left)
            };
            assert!(list(&doctor.json()).iter().any(told), "{doctor:?}");
        }
        home.run(&["doctor", "--fix"]);
        assert!(leftovers(&home).is_empty(), "{files:?}: {:?}", leftovers(&home));
    }
}

/// Takes a port as soon as its listener stops, and holds it as long as the returned socket lives.
/// The system has no event for a free port.
fn taken<T: Send + 'static>(
    address: &Value,
    bind: fn(&str) -> std::io::Result<T>,
) -> thread::JoinHandle<T> {
    let address = address.as_str().unwrap().to_owned();
    thread::spawn(move || {
        loop {
            match bind(&address) {
                Ok(socket) => return socket,
                Err(_) => thread::park_timeout(Duration::from_millis(1)),
            }
        }
    })
}

#[test]
fn a_port_that_is_taken_while_a_devnet_is_saved_leaves_no_validator_stopped() {
    let home = Home::new();
    home.up(&["--wait", "3", "--runners", "2"]);
    let shown = |validator: &str| home.json(&["validator", "show", validator]);
    let before = [shown("validator-1"), shown("validator-2")];
    let quic = taken(&before[0]["quic"], |at| UdpSocket::bind(at));
    let p2p = taken(&before[1]["p2p"], |at| TcpListener::bind(at));
    let mut saved = home.json(&["devnet", "snapshot", "save"]);
    // A validator may have had its port back before it could be taken.
    while !(quic.is_finished() && p2p.is_finished()) {
        saved = home.json(&["devnet", "snapshot", "save"]);
    }
    let held = (quic.join().unwrap(), p2p.join().unwrap());
    home.wait_validators(|head| head);
    let after = [shown("validator-1"), shown("validator-2")];
    assert_ne!(after[0]["quic"], before[0]["quic"]);
    assert_ne!(after[1]["p2p"], before[1]["p2p"]);
    assert_eq!(after[1]["quic"], before[1]["quic"], "what is free stays");
    // Runners and validators find the new ports.
    wait_until("the runners are connected again", || {
        let connected = shown("validator-1")["connected_runners"].clone();
        list(&connected).len() == list(&before[0]["connected_runners"]).len()
    });
    drop(held);
    home.json(&["devnet", "down"]);
    home.up(&["--wait", &(saved["height"].as_u64().unwrap() + 5).to_string()]);
    assert_eq!(shown("validator-1")["quic"], after[0]["quic"], "it keeps the new one");
}
