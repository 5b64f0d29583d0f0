//! Disks that fill up: small file systems in memory, in a separate mount namespace.

use crate::support::{Home, list, wait_until};
use serde_json::Value;
use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Set in the process with a separate namespace: the folder that it may mount at.
const WITHIN: &str = "COWBOYCTL_TEST_MOUNT";

/// Runs this test again in a separate mount namespace with a folder to mount at; returns the folder
/// in that process, and `None` in the outer one.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn in_a_namespace(test: &str) -> Option<PathBuf> {
    if let Some(folder) = env::var_os(WITHIN) {
        return Some(folder.into());
    }
    let can = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this system allows no mount namespace (unshare)");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("unshare")
        .args(["--map-root-user", "--mount"])
        .arg(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(WITHIN, folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "in the namespace: {status}");
    None
}

pub fn mount(at: &Path, megabytes: u32) {
    fs::create_dir_all(at).unwrap();
    let options = format!("size={megabytes}m,mode=700");
    let mut command = Command::new("mount");
    let status = command.args(["-t", "tmpfs", "-o", &options, "none"]).arg(at).status().unwrap();
    assert!(status.success(), "{status}");
}

/// Fills a file system except for `but` bytes, and returns the file that takes the space.
pub fn fill(folder: &Path, but: u64) -> PathBuf {
    let path = folder.join("fill");
    let mut file = fs::File::create(&path).unwrap();
    let it = rustix::fs::statvfs(folder).unwrap();
    let room = (it.f_bavail * it.f_frsize).saturating_sub(but);
    let block = vec![7_u8; 1 << 16];
    let mut left = room;
    while left > 0 {
        let bytes = block.len().min(left as usize);
        // Other processes write at the same time.
        match file.write(&block[..bytes]) {
            Ok(written) if written > 0 => left -= written as u64,
            _ => break,
        }
    }
    path
}

pub fn states(home: &Home) -> Vec<(String, String)> {
    let status = home.json(&["devnet", "status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list(&status["validators"]).iter().map(|v| (text(&v["status"]), text(&v["reason"]))).collect()
}

#[test]
fn validators_pause_while_the_reserve_is_gone_and_go_on_by_themselves() {
    let test = "space::validators_pause_while_the_reserve_is_gone_and_go_on_by_themselves";
    let Some(folder) = in_a_namespace(test) else { return };
    mount(&folder, 120);
    let home = Home::within(&folder);
    home.up(&["--wait", "5"]);
    // The reserve of a disk of 120 MB is 6 MB.
    let filled = fill(&folder, 4_000_000);
    wait_until("all are paused", || states(&home).iter().all(|(state, _)| state == "paused"));
    assert!(states(&home)[0].1.contains("are kept in reserve"), "{:?}", states(&home));
    let error = home.fails(1, &["account", "fund", "dev-0", "1cby"]);
    assert!(
        error.contains("validators are paused") && error.contains("free some disk space"),
        "{error}"
    );
    let at = home.height();
    let error = home.fails(5, &["chain", "wait", &(at + 100).to_string(), "--timeout", "4s"]);
    assert!(error.contains("are kept in reserve"), "{error}");
    assert_eq!(home.height(), at, "nothing is decided");
    home.json(&["chain", "block", "2"]);

    fs::remove_file(filled).unwrap();
    home.wait_height(at + 10);
    assert!(states(&home).iter().all(|(_, reason)| reason.is_empty()), "{:?}", states(&home));
    home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    home.json(&["devnet", "down"]);

    fill(&folder, 4_000_000);
    let error = home.run(&["devnet", "up", "--detach"]);
    assert_eq!(error.code, 1, "{error:?}");
    assert!(error.stderr.contains("are kept in reserve"), "{error:?}");
}

/// A devnet that runs until its disk is full, with one of its folders on a small disk.
fn without_reserve(folder: &Path, small: &str, megabytes: u32) -> (Home, PathBuf) {
    mount(folder, 200);
    let home = Home::within(folder);
    let file = home.path("topology.yaml");
    fs::write(&file, "storage: {reserve: 0}\n").unwrap();
    home.up(&["--file", file.to_str().unwrap(), "--wait", "5"]);
    home.json(&["devnet", "down"]);
    let at = home.path(&format!("local/{small}"));
    let aside = home.path("aside");
    fs::rename(&at, &aside).unwrap();
    mount(&at, megabytes);
    let copied = Command::new("cp").arg("-a").arg(aside.join(".")).arg(&at).status().unwrap();
    assert!(copied.success());
    home.up(&["--file", file.to_str().unwrap()]);
    (home, at)
}

#[test]
fn validators_that_end_on_a_full_disk_go_on_once_there_is_space() {
    let test = "space::validators_that_end_on_a_full_disk_go_on_once_there_is_space";
    let Some(folder) = in_a_namespace(test) else { return };
    let (home, consensus) = without_reserve(&folder, "data/consensus", 40);
    let filled = fill(&consensus, 0);
    // Without two of four validators the others cannot decide, and may need no space.
    let waiting = || states(&home).into_iter().filter(|(state, _)| state == "paused");
    wait_until("two wait", || waiting().count() >= 2);
    for (_, reason) in waiting() {
        let told = reason.contains("MB are free at") && reason.contains("consensus");
        assert!(told || reason.contains("a disk was full"), "{reason}");
    }
    let at = home.height();
    fs::remove_file(filled).unwrap();
    wait_until("all go on", || states(&home).iter().all(|(state, _)| state == "running"));
    home.wait_height(at + 5);
}

#[test]
fn a_disk_that_holds_no_more_files_pauses_validators_too() {
    let test = "space::a_disk_that_holds_no_more_files_pauses_validators_too";
    let Some(folder) = in_a_namespace(test) else { return };
    let options = "size=200m,mode=700,nr_inodes=1500";
    let mut command = Command::new("mount");
    let mounted = command.args(["-t", "tmpfs", "-o", options, "none"]).arg(&folder).status();
    assert!(mounted.unwrap().success());
    let home = Home::within(&folder);
    home.up(&["--wait", "5"]);
    let many = folder.join("many");
    fs::create_dir(&many).unwrap();
    let mut made = 0;
    while fs::File::create(many.join(made.to_string())).is_ok() {
        made += 1;
    }
    wait_until("all wait", || states(&home).iter().all(|(state, _)| state == "paused"));
    assert!(states(&home)[0].1.contains("more files fit at"), "{:?}", states(&home));
    let at = home.height();
    fs::remove_dir_all(many).unwrap();
    wait_until("all go on", || states(&home).iter().all(|(state, _)| state == "running"));
    home.wait_height(at + 5);
}

#[test]
fn a_full_store_costs_its_own_validator_only() {
    let test = "space::a_full_store_costs_its_own_validator_only";
    let Some(folder) = in_a_namespace(test) else { return };
    let (home, store) = without_reserve(&folder, "validators/validator-1", 8);
    let filled = fill(&store, 0);
    let one_waits = |states: Vec<(String, String)>| {
        let waiting: Vec<_> = states.iter().filter(|(state, _)| state == "paused").collect();
        // The reason comes from the check of the disk or from SQLite.
        let told = |reason: &str| reason.contains("validator-1") || reason.contains("full");
        waiting.len() == 1 && told(&waiting[0].1)
    };
    // Slow empty blocks would find room in the file for minutes.
    let module = home.path("large.star");
    fs::write(&module, format!("# {}\ndef f(ctx, payload):\n    pass\n", "x".repeat(50_000)))
        .unwrap();
    wait_until("one waits", || {
        home.run(&["actor", "deploy", &module.to_string_lossy()]);
        one_waits(states(&home))
    });
    home.wait_height(home.height() + 5);
    fs::remove_file(filled).unwrap();
    wait_until("it has caught up", || states(&home).iter().all(|(state, _)| state == "running"));
}

#[test]
fn a_full_log_and_full_job_folders_stop_nothing() {
    let test = "space::a_full_log_and_full_job_folders_stop_nothing";
    let Some(folder) = in_a_namespace(test) else { return };
    let (home, log) = without_reserve(&folder, "log", 1);
    let filled = fill(&log, 0);
    let restart = || {
        home.json(&["validator", "stop", "validator-1"]);
        home.json(&["validator", "start", "validator-1"]);
    };
    // The log's last page has room for some lines.
    (0..6).for_each(|_| restart());
    home.wait_height(home.height() + 10);
    fs::remove_file(filled).unwrap();
    restart();
    let text = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    assert!(text.contains("of this log are lost"), "{text}");

    let jobs = home.path("local/jobs");
    mount(&jobs, 1);
    let filled = fill(&jobs, 0);
    let script = "head -c 2000000 /dev/zero > out && echo written";
    let run = || home.run(&["job", "submit", "custom", "--wait", "--", "sh", "-c", script]);
    let outcome = run();
    assert_ne!(outcome.code, 0, "{outcome:?}");
    fs::remove_file(filled).unwrap();
    mount(&jobs, 20);
    let outcome = run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(states(&home).iter().all(|(state, _)| state == "running"), "{:?}", states(&home));
}
