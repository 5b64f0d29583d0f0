//! A devnet's folder with something unexpected in it, and commands that are killed while they
//! change it.

use crate::support::Home;
use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    thread,
    time::Duration,
};

/// Kills of a reset in CI; `COWBOYCTL_KILL_ROUNDS=50` for more.
const ROUNDS: u32 = 4;

/// Files that a reset has to remove, so that a kill meets it at work.
const FILES: u32 = 3000;

/// Something that must stay as it is.
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
    // The soft limit is this program's own affair.
    let (code, error) = up("-S 100", "--name enough --wait 3");
    assert_eq!(code, Some(0), "{error}\n{}", home.logs());
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
            let named = format!("local/{part}: a link or a file where a devnet keeps a folder");
            assert!(error.contains(&named), "{command}: {error}");
        }
        assert_untouched(elsewhere);
        fs::remove_file(&path).unwrap();
        if had {
            fs::rename(&aside, &path).unwrap();
        }
    }
    // A lock is emptied by who takes it.
    fs::remove_file(home.path("local/lock")).unwrap();
    symlink(elsewhere.join("lock"), home.path("local/lock")).unwrap();
    home.fails(1, &["devnet", "up", "--detach"]);
    assert_untouched(elsewhere);
    fs::remove_file(home.path("local/lock")).unwrap();

    // In its own folder of jobs, only directories of jobs go.
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
        // A different moment each time, the same in every run of the test.
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
