//! A devnet's folder with unexpected content, and commands that are killed while they change it.

use crate::support::{Home, list};
use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// Kills of a reset in CI; `COWBOYCTL_KILL_ROUNDS=50` for more.
const ROUNDS: u32 = 4;

/// Files that a reset has to remove: enough that a kill interrupts it.
const FILES: u32 = 3000;

/// Makes files that no command may change.
fn photos(folder: &Path) {
    fs::create_dir_all(folder.join("cowboy-job-summer")).unwrap();
    fs::write(folder.join("cowboy-job-summer/beach.jpg"), "sea").unwrap();
    fs::set_permissions(folder.join("cowboy-job-summer"), Permissions::from_mode(0o500)).unwrap();
    fs::write(folder.join("lock"), "not a lock").unwrap();
}

#[track_caller]
fn assert_untouched(folder: &Path) {
    let mode = fs::metadata(folder.join("cowboy-job-summer")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o500);
    assert_eq!(fs::read(folder.join("cowboy-job-summer/beach.jpg")).unwrap(), b"sea");
    assert_eq!(fs::read(folder.join("lock")).unwrap(), b"not a lock");
}

#[test]
fn too_few_open_files_are_told_before_anything_starts() {
    let home = Home::new();
    let up = |limit: &str, args: &str| {
        let script = format!("ulimit -n {limit} && exec \"$0\" devnet up --detach {args}");
        let program = env!("CARGO_BIN_EXE_cowboyctl");
        let mut command = home.command_of("sh", &["-c", &script, program]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = up("400", "--name few");
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("open files and sockets, this process is allowed 400"), "{error}");
    assert!(error.contains("raise the hard limit"), "{error}");
    // The program raises the soft limit itself.
    let (code, error) = up("-S 100", "--name enough --wait 3");
    assert_eq!(code, Some(0), "{error}");
}

/// Compares the needs that `devnet validate` prints with those of a devnet of seven validators.
#[test]
fn a_devnet_needs_what_it_is_said_to_need() {
    let home = Home::new();
    let file = home.path("seven.yaml");
    fs::write(&file, "name: seven\nvalidators: 7\nrunners: 5\n").unwrap();
    let file = file.to_str().unwrap();
    let needs = home.json(&["devnet", "validate", file])["needs"].clone();
    let needs = |what: &str| needs[what].as_u64().unwrap();
    let up = home.json(&["devnet", "up", "--detach", "-f", file, "--wait", "30"]);
    let process = Path::new("/proc").join(up["pid"].to_string());
    let open = fs::read_dir(process.join("fd")).unwrap().count() as u64;
    let said = needs("open_files");
    assert!(open < said && said < 4 * open, "{open} are open, {said} may be");
    let status = fs::read_to_string(process.join("status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    let said = needs("memory_mib");
    assert!(kib / 1_024 < said && said < 3 * kib / 1_024, "{kib} KiB, {said} MiB are said");
}

#[test]
fn a_link_in_the_place_of_a_folder_is_refused_and_what_it_names_is_left() {
    let home = Home::new();
    let elsewhere_folder = tempfile::tempdir().unwrap();
    let elsewhere = elsewhere_folder.path();
    photos(elsewhere);
    home.up(&["--wait", "2"]);
    home.json(&["devnet", "down"]);
    for part in ["jobs", "log", "lease", "validators", "runners", "data", "accounts", "processes"] {
        let path = home.path("local").join(part);
        let aside = home.path("aside");
        let had = fs::rename(&path, &aside).is_ok();
        symlink(elsewhere, &path).unwrap();
        for command in ["up", "reset"] {
            let detach = (command == "up").then_some("--detach");
            let error = home.fails(1, &[&["devnet", command], detach.as_slice()].concat());
            let named = format!("local/{part}: a link, or not the kind of file");
            assert!(error.contains(&named), "{command}: {error}");
        }
        assert_untouched(elsewhere);
        fs::remove_file(&path).unwrap();
        if had {
            fs::rename(&aside, &path).unwrap();
        }
    }
    // A process that takes a lock empties the file.
    fs::remove_file(home.path("local/lock")).unwrap();
    symlink(elsewhere.join("lock"), home.path("local/lock")).unwrap();
    home.fails(1, &["devnet", "up", "--detach"]);
    assert_untouched(elsewhere);
    fs::remove_file(home.path("local/lock")).unwrap();

    // In its own folder of jobs, it removes only directories of jobs.
    let jobs = home.path("local/jobs");
    symlink(elsewhere, jobs.join("cowboy-job-linked")).unwrap();
    fs::create_dir_all(jobs.join("cowboy-job-left/deep")).unwrap();
    fs::write(jobs.join("mine.txt"), "mine").unwrap();
    home.json(&["devnet", "up", "--detach"]);
    home.json(&["job", "submit", "custom", "--wait", "--timeout", "60s", "--", "echo", "on"]);
    assert!(!jobs.join("cowboy-job-left").exists());
    assert!(jobs.join("cowboy-job-linked").is_symlink());
    assert_eq!(fs::read(jobs.join("mine.txt")).unwrap(), b"mine");
    assert_untouched(elsewhere);
}

/// Replaces the file at `path` by a link or a pipe; restores it on drop.
struct Replaced {
    path: PathBuf,
    aside: Option<PathBuf>,
}

impl Replaced {
    fn by_link(home: &Home, place: &str, to: &Path) -> Self {
        let replaced = Self::removed(home, place);
        symlink(to, &replaced.path).unwrap();
        replaced
    }

    fn by_pipe(home: &Home, place: &str) -> Self {
        let replaced = Self::removed(home, place);
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &replaced.path, FileType::Fifo, mode, 0).unwrap();
        replaced
    }

    fn removed(home: &Home, place: &str) -> Self {
        let (path, aside) = (home.path(place), home.path("aside"));
        let moved = fs::rename(&path, &aside).is_ok();
        Self { path, aside: moved.then_some(aside) }
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if let Some(aside) = &self.aside {
            fs::rename(aside, &self.path).unwrap();
        }
    }
}

/// The doctor's findings of one check, except healthy ones.
fn unwell(home: &Home, args: &[&str], check: &str) -> Vec<String> {
    let outcome = home.run(&[&["--output", "json", "doctor"], args].concat());
    let report = outcome.json();
    let found = list(&report).iter().filter(|it| it["check"] == check && it["state"] != "ok");
    found.map(|it| format!("{} {}: {}", it["state"], it["subject"], it["what"])).collect()
}

#[test]
fn a_link_anywhere_in_the_folder_is_refused_and_what_it_names_is_left() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    home.json(&["devnet", "down"]);
    let elsewhere_folder = tempfile::tempdir().unwrap();
    let elsewhere = elsewhere_folder.path();
    photos(elsewhere);
    fs::write(elsewhere.join("index.db"), "a photo").unwrap();
    fs::copy(home.path("local/topology.yaml"), elsewhere.join("topology.yaml")).unwrap();
    for file in ["index.db", "topology.yaml"] {
        fs::set_permissions(elsewhere.join(file), Permissions::from_mode(0o644)).unwrap();
    }
    let count = || fs::read_dir(elsewhere).unwrap().count();
    let had = count();
    let refused = |place: &str| {
        for args in [&["devnet", "up", "--detach"][..], &["devnet", "reset"]] {
            let error = home.fails(1, args);
            assert!(error.contains(&format!("{place}: a link, or not")), "{args:?}: {error}");
        }
    };
    let folders = [
        "local/runners/runner-0/commitments",
        "local/runners/runner-0",
        "local/validators/validator-0",
        "local/data/consensus",
        "local",
    ];
    for place in folders {
        let _replaced = Replaced::by_link(&home, place, elsewhere);
        if place == "local" {
            let error = home.fails(1, &["devnet", "up", "--detach"]);
            assert!(error.contains("local: a link, or not"), "{error}");
        } else {
            refused(place);
        }
    }
    let files = [
        ("local/token", "index.db"),
        ("local/topology.yaml", "topology.yaml"),
        ("local/lease/lease.db", "index.db"),
        ("local/accounts/zz.key", "index.db"),
    ];
    for (place, file) in files {
        let _replaced = Replaced::by_link(&home, place, &elsewhere.join(file));
        refused(place);
        home.run(&["doctor", "--fix"]);
        let found = unwell(&home, &["--fix"], "folder");
        assert!(found.iter().any(|line| line.contains(place)), "{found:?}");
        assert!(home.path(place).is_symlink());
    }
    for place in ["local/devnet.json", "local/data/pipe"] {
        let _replaced = Replaced::by_pipe(&home, place);
        let error = home.fails(1, &["devnet", "up", "--detach"]);
        assert!(error.contains("local/d"), "{error}");
    }
    assert_untouched(elsewhere);
    assert_eq!(count(), had, "nothing was made or removed there");
    assert_eq!(fs::read(elsewhere.join("index.db")).unwrap(), b"a photo");
    for file in ["index.db", "topology.yaml"] {
        let mode = fs::metadata(elsewhere.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{file}");
    }
    home.up(&["--wait", "3"]);
}

#[test]
fn only_commitments_are_removed_from_among_commitments() {
    let home = Home::new();
    home.up(&["--wait", "2"]);
    home.json(&["devnet", "down"]);
    let folder = home.path("local/runners/runner-0/commitments");
    fs::write(folder.join("winter.jpg"), "snow").unwrap();
    let damaged = folder.join("ab".repeat(32));
    fs::write(&damaged, "nothing that was ever signed").unwrap();
    home.up(&["--wait", "3"]);
    assert_eq!(fs::read(folder.join("winter.jpg")).unwrap(), b"snow");
    assert!(!damaged.exists());
    let log = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    let named = log.lines().any(|line| line.contains("winter.jpg") && line.contains("left as it"));
    assert!(named, "{log}");
}

#[test]
fn the_doctor_sees_what_is_missing() {
    let home = Home::new();
    home.up(&["--wait", "4"]);
    home.json(&["devnet", "down"]);
    let fine = Vec::<String>::new();
    assert_eq!(unwell(&home, &["--deep"], "stored"), fine);
    for (place, named) in [
        ("local/validators/validator-2", "local/validator-2"),
        ("local/validators", "no validator has a chain"),
        ("local/data", "local/data is missing"),
        ("local/topology.yaml", "cannot be checked"),
    ] {
        let _removed = Replaced::removed(&home, place);
        let found = unwell(&home, &["--deep"], "stored");
        assert!(found.iter().any(|line| line.contains(named)), "{place}: {found:?}");
    }
    for place in ["local/data/speculation.db", "local/lease/lease.db"] {
        let path = home.path(place);
        let had = fs::read(&path).unwrap();
        fs::write(&path, "garbage".repeat(1000)).unwrap();
        let found = unwell(&home, &["--deep"], "stored");
        assert!(found.iter().any(|line| line.contains(place)), "{place}: {found:?}");
        fs::write(&path, had).unwrap();
    }
    let store = home.path("local/validators/validator-1/index.db");
    let store = Connection::open(store).unwrap();
    assert_eq!(store.execute("UPDATE meta SET chain_id = x'0000000000000001'", []).unwrap(), 1);
    drop(store);
    let found = unwell(&home, &["--deep"], "stored");
    let named = |line: &String| line.contains("validator-1") && line.contains("is of chain");
    assert!(found.iter().any(named), "{found:?}");

    fs::write(home.path("local/resetting"), "").unwrap();
    assert_eq!(unwell(&home, &[], "stale").len(), 1);
    assert_eq!(unwell(&home, &["--deep"], "stored").len(), 1);
    home.json(&["devnet", "reset"]);
    assert_eq!(unwell(&home, &["--deep"], "stored"), fine);

    fs::remove_file(home.path("local/lock")).unwrap();
    fs::create_dir(home.path("local/lock")).unwrap();
    for args in [&[] as &[&str], &["--devnet", "local"]] {
        let found = unwell(&home, args, "folder");
        assert!(found.iter().any(|line| line.contains("local/lock is not a file")), "{found:?}");
    }
}

#[test]
fn a_reset_that_is_killed_is_finished_by_the_next_command() {
    let rounds = env::var("COWBOYCTL_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let home = Home::new();
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut interrupted = 0;
    for round in 0..rounds.unwrap_or(ROUNDS) {
        home.up(&["--wait", "1"]);
        home.json(&["devnet", "down"]);
        for number in 0..FILES {
            let folder = home.path("local/validators/validator-0");
            fs::write(folder.join(format!("file-{number}")), "").unwrap();
        }
        let mut reset = home.command(&["devnet", "reset"]).spawn().unwrap();
        // The moment differs in each round, but not between runs of the test.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::park_timeout(Duration::from_millis(10 + (seed >> 33) % 60));
        reset.kill().unwrap();
        reset.wait().unwrap();
        interrupted += u32::from(home.path("local/resetting").exists());
        let up = home.up(&["--wait", "1"]);
        assert!(!home.path("local/resetting").exists());
        let doctor = home.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "round {round}: {up}\n{doctor:?}");
        home.json(&["devnet", "down"]);
    }
    eprintln!("{interrupted} resets were met at work");
}
