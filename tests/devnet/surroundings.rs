//! Effects of the machine on a devnet: it is stopped, its clock is set, memory is short, its home
//! is read-only or has an odd name, the disk is slow, another user runs one, too.

use crate::support::{Home, wait_until};
use rustix::process::{Signal, geteuid, kill_process};
use std::{
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::Command,
};
use tempfile::TempDir;

/// A library that replaces calls for the machine's clock and disk.
struct Shim(TempDir);

impl Shim {
    /// `None` if there is no C compiler.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("shim.c");
        fs::write(&source, include_str!("surroundings.c")).unwrap();
        let library = folder.path().join("shim.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
        if compiler.status().is_ok_and(|status| status.success()) {
            return Some(Self(folder));
        }
        eprintln!("skipped: no C compiler (cc) made a library");
        None
    }

    fn set(&self, figure: &str, value: i64) {
        let new = self.0.path().join("new");
        fs::write(&new, value.to_string()).unwrap();
        fs::rename(new, self.0.path().join(figure)).unwrap();
    }

    /// Boots a devnet with this library.
    fn up(&self, home: &Home) {
        let mut up = home.command(&["devnet", "up", "--detach", "--block-time", "100ms"]);
        up.env("LD_PRELOAD", self.0.path().join("shim.so"))
            .env("SURROUNDINGS_CLOCK_SECONDS", self.0.path().join("clock"))
            .env("SURROUNDINGS_SYNC_MS", self.0.path().join("sync"));
        let output = up.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

fn works(home: &Home) {
    home.wait_height(home.height() + 5);
    home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
}

#[test]
fn a_clock_that_is_set_stops_nothing() {
    let Some(shim) = Shim::new() else { return };
    let home = Home::new();
    shim.up(&home);
    works(&home);
    for seconds in [3_600, -3_600, 0, 10 * 365 * 86_400, 0] {
        shim.set("clock", seconds);
        works(&home);
    }
    home.json(&["devnet", "down"]);
    shim.set("clock", -86_400);
    shim.up(&home);
    works(&home);
}

#[test]
fn a_slow_disk_makes_it_slow_and_no_worse() {
    let Some(shim) = Shim::new() else { return };
    let home = Home::new();
    shim.set("sync", 20);
    shim.up(&home);
    works(&home);
    home.kill("local");
    shim.up(&home);
    works(&home);
    let status = home.json(&["devnet", "status"]);
    let validators = status["validators"].as_array().unwrap();
    assert!(validators.iter().all(|v| v["status"] != "stopped" && v["status"] != "died"));
}

#[test]
fn a_process_that_was_stopped_goes_on() {
    let home = Home::new();
    home.up(&["--wait", "3"]);
    let at = home.height();
    kill_process(home.pid("local"), Signal::STOP).unwrap();
    // A request in that time gets an error and does not hang.
    let error = home.fails(5, &["chain", "wait", "1000000", "--timeout", "3s"]);
    assert!(error.contains("not within 3 s"), "{error}");
    kill_process(home.pid("local"), Signal::CONT).unwrap();
    works(&home);
    assert!(home.height() > at);
}

#[test]
fn a_home_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("h\u{e4}user und \u{2603} 'x' \"y\" $(z); #");
    fs::create_dir(&odd).unwrap();
    let home = Home::within(&odd);
    home.up(&["--wait", "3"]);
    works(&home);
    home.json(&["devnet", "snapshot", "save", "kept"]);
    home.json(&["devnet", "down"]);
    home.json(&["devnet", "snapshot", "load", "kept", "--name", "again"]);
    home.up(&["--name", "again"]);
    home.json(&["--devnet", "again", "chain", "head"]);
    assert_eq!(home.run(&["doctor"]).code, 0);
}

#[test]
fn a_home_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, Permissions::from_mode(0o555)).unwrap();
    let home = Home::new();
    let mut up = as_user(&home, &["devnet", "up", "--detach"]);
    let output = up.env("COWBOYCTL_HOME", &locked).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("Permission denied") && error.contains("locked"), "{error}");
}

/// A command as a user other than root: the test's user, or `nobody` if that is root.
fn as_user(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(args);
    if geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command
}

#[test]
fn little_memory_is_an_error_and_not_a_hang() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_cowboyctl");
    let up = |kib: u64, name: &str| {
        let script = format!(
            "ulimit -v {kib} && exec \"$0\" devnet up --detach --name {name} --timeout 50s"
        );
        let output = home.command_of("sh", &["-c", &script, program]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = up(100_000, "tiny");
    assert_ne!(code, Some(0), "{error}");
    let (code, error) = up(8_000_000, "enough");
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn two_users_do_not_meet() {
    if !geteuid().is_root() {
        return;
    }
    let first = Home::new();
    first.up(&["--wait", "2"]);
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(65_534), Some(65_534)).unwrap();
    let second = |args: &[&str]| {
        let output = as_user(&first, args).env("COWBOYCTL_HOME", &own).output().unwrap();
        (output.status.code(), format!("{output:?}"))
    };
    let (code, said) = second(&["devnet", "up", "--detach", "--wait", "2"]);
    assert_eq!(code, Some(0), "{said}");
    // Neither reads the other's keys and tokens.
    let stranger = |path: &Path| {
        let mut cat = Command::new("cat");
        cat.arg(path).uid(65_534).gid(65_534).output().unwrap().status.success()
    };
    assert!(!stranger(&first.path("local/token")));
    assert!(stranger(&own.join("local/token")));
    first.wait_height(5);
    let (code, said) = second(&["devnet", "down"]);
    assert_eq!(code, Some(0), "{said}");
    wait_until("the second has ended", || !own.join("local/devnet.json").exists());
    first.wait_height(8);
}
