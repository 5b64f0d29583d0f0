//! A home for devnets that ends with the test, and commands that run in it.

use crate::shape;
use cowboy_devnet::home::DevnetHome;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Timeout of every wait in a test; long because machines are shared.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Tests of one scenario: with all nodes in the devnet's process, and with validators in processes
/// of their own.
macro_rules! on_all_hosts {
    ($($scenario:ident)*) => {
        mod in_process {
            $(#[test]
            fn $scenario() {
                super::$scenario(&crate::support::Home::new());
            })*
        }

        mod process {
            $(#[test]
            fn $scenario() {
                super::$scenario(&crate::support::Home::apart());
            })*
        }
    };
}

pub(crate) use on_all_hosts;

/// A folder of devnets. Dropping it ends the processes that run them.
pub struct Home {
    folder: TempDir,
    /// Whether validators run in processes of their own.
    apart: bool,
    /// The folder of machines for actors in Python.
    machines: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Runs a command with these arguments to its end.
    pub fn of(args: &[&str], command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let outcome = Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: without_waits(&String::from_utf8(output.stderr).unwrap()),
        };
        shape::check(args, &outcome.stdout);
        outcome
    }

    /// The document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: not one JSON document: {self:?}"))
    }
}

/// Standard error without the lines that report a long wait on a slow machine.
fn without_waits(said: &str) -> String {
    let begin = ["waiting for ", "starting devnet ", "stopping devnet ", "verif"];
    let tells = |line: &str| line.ends_with(" s)") && begin.iter().any(|b| line.starts_with(b));
    said.split_inclusive('\n').filter(|line| !tells(line.trim_end())).collect()
}

impl Home {
    pub fn new() -> Self {
        // All scenarios on other hosts: docs/nodes.md says which make sense there.
        let apart = env::var("COWBOYCTL_TEST_HOSTS").is_ok_and(|hosts| hosts == "process");
        Self { folder: tempfile::tempdir().unwrap(), apart, machines: None }
    }

    /// A home whose devnets run actors in Python, on the machine in the folder that
    /// `COWBOYCTL_TEST_PVM` names. `None` without that, which standard error then says.
    #[expect(clippy::print_stderr, reason = "says what is not run")]
    pub fn with_machine() -> Option<Self> {
        let machines = env::var_os("COWBOYCTL_TEST_PVM").map(PathBuf::from);
        if machines.is_none() {
            eprintln!("not run: COWBOYCTL_TEST_PVM names no folder of machines");
        }
        let mut home = Self::new();
        home.machines = Some(machines?);
        Some(home)
    }

    /// Devnets that are started from now on look here for machines.
    pub fn set_machines(&mut self, folder: PathBuf) {
        self.machines = Some(folder);
    }

    /// The folder of machines, which a home has only if it was made for them.
    pub fn machines(&self) -> PathBuf {
        self.machines.clone().unwrap_or_else(|| self.path("machines"))
    }

    /// A home for devnets with validators in processes of their own.
    pub fn apart() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), apart: true, machines: None }
    }

    /// A home in an existing folder.
    pub fn within(folder: &Path) -> Self {
        Self { folder: tempfile::tempdir_in(folder).unwrap(), apart: false, machines: None }
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_cowboyctl"), args)
    }

    /// Another program with this folder of devnets.
    pub fn command_of(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env("COWBOYCTL_HOME", self.folder.path())
            // The same result on machines with a container engine.
            .env("COWBOYCTL_CONTAINERS", "off")
            // The same result with any configuration of the developer.
            .env("COWBOYCTL_CONFIG", "/dev/null")
            .env("COWBOYCTL_PVM", self.machines())
            .env_remove("COWBOYCTL_DEVNET")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// A devnet's folder, as programs find it.
    pub fn devnet(&self, name: &str) -> DevnetHome {
        cowboy_devnet::home::Home::at(self.folder.path()).devnet(&name.parse().unwrap())
    }

    /// Runs a command to its end; it may fail.
    pub fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(args, &mut self.command(args))
    }

    /// Runs a command that succeeds, and returns its JSON, which is checked against its schema.
    pub fn json(&self, args: &[&str]) -> Value {
        let outcome = self.run(&[&["--output", "json"], args].concat());
        assert_eq!(outcome.code, 0, "{args:?}: {outcome:?}");
        outcome.json()
    }

    /// Runs a command that fails with this exit code, and returns its standard error.
    pub fn fails(&self, code: i32, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert_eq!(outcome.code, code, "{args:?}: {outcome:?}");
        assert!(outcome.stderr.lines().count() <= 3, "at most three lines: {outcome:?}");
        outcome.stderr
    }

    /// Boots a devnet of this topology, which is written to `topology.yaml`.
    pub fn up_with(&self, topology: &Value) -> Value {
        let file = self.path("topology.yaml");
        fs::write(&file, topology.to_string()).unwrap();
        self.up(&["--wait", "2", "-f", file.to_str().unwrap()])
    }

    /// Boots a devnet with the shortest block time that shared machines keep up with.
    pub fn up(&self, args: &[&str]) -> Value {
        let hosts: &[&str] = if self.apart { &["--hosts", "process"] } else { &[] };
        let up = ["devnet", "up", "--detach", "--block-time", "100ms"];
        self.json(&[&up[..], hosts, args].concat())
    }

    /// The process of a validator that has one of its own.
    pub fn process_of(&self, devnet: &str, validator: &str) -> Pid {
        let folder = self.path(devnet).join("nodes").join(validator);
        holder(&folder).unwrap_or_else(|| panic!("{} has no process", folder.display()))
    }

    /// The process of a runner that a devnet has started, once it answers.
    pub fn runner_process_of(&self, devnet: &str, runner: &str) -> Pid {
        let mut found = None;
        wait_until("the runner's process answers", || {
            found = self.try_runner_process_of(devnet, runner);
            found.is_some()
        });
        found.expect("it was found")
    }

    pub fn try_runner_process_of(&self, devnet: &str, runner: &str) -> Option<Pid> {
        let folder = self.path(devnet).join("processes").join(runner);
        folder.join("runner.json").is_file().then(|| holder(&folder))?
    }

    /// The process that runs a devnet, from the devnet's record.
    pub fn pid(&self, name: &str) -> Pid {
        self.recorded_pid(name).unwrap_or_else(|| panic!("devnet {name} has no record"))
    }

    fn recorded_pid(&self, name: &str) -> Option<Pid> {
        let text = fs::read_to_string(self.path(name).join("devnet.json")).ok()?;
        let record: Value = serde_json::from_str(&text).ok()?;
        Pid::from_raw(i32::try_from(record["pid"].as_i64()?).ok()?)
    }

    /// Kills a devnet's process and waits until it is gone.
    pub fn kill(&self, name: &str) {
        let pid = self.pid(name);
        let _ = kill_process(pid, Signal::KILL);
        // Its parent ended long ago: the process that reaps orphans may take a moment.
        wait_until("the killed process is gone", || test_kill_process(pid).is_err());
    }

    /// The last lines of every devnet's log, for a failing test.
    fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
            let log = fs::read_to_string(entry.path().join("log/devnet.log")).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let from = lines.len().saturating_sub(100);
            text += &format!("--- {}\n{}\n", entry.path().display(), lines[from..].join("\n"));
        }
        text
    }

    /// Waits until every validator runs and has blocks up to `height` of the devnet's head.
    pub fn wait_validators(&self, height: impl Fn(u64) -> u64) {
        let start = Instant::now();
        loop {
            let status = self.json(&["devnet", "status"]);
            let height = status["head"]["height"].as_u64().map(&height);
            let goes_on = |v: &Value| {
                v["status"] == "running" && height.is_some() && v["height"].as_u64() >= height
            };
            if list(&status["validators"]).iter().all(goes_on) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "after {PATIENCE:?} one does not go on: {status}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// The newest height according to the devnet's API.
    pub fn height(&self) -> u64 {
        self.json(&["chain", "head"])["height"].as_u64().unwrap()
    }

    /// Waits through the command line until the chain is at `height`.
    pub fn wait_height(&self, height: u64) {
        self.json(&["chain", "wait", &height.to_string(), "--timeout", "60s"]);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A failed write does not fail the test.
            let _ = writeln!(std::io::stderr(), "{}", self.logs());
        }
        let mut killed = Vec::new();
        for entry in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            killed.extend(self.recorded_pid(&name).filter(|pid| end(*pid)));
            for kind in ["processes", "nodes"] {
                for node in fs::read_dir(entry.path().join(kind)).into_iter().flatten().flatten() {
                    killed.extend(holder(&node.path()).filter(|pid| end(*pid)));
                }
            }
        }
        // One wait for all, because the process that reaps orphans may do so only now and then.
        wait_until("all processes have ended", || {
            killed.iter().all(|pid| test_kill_process(*pid).is_err())
        });
    }
}

/// The process that took a node's folder last.
fn holder(folder: &Path) -> Option<Pid> {
    let pid = fs::read_to_string(folder.join("lock")).ok()?;
    Pid::from_raw(pid.parse().ok()?)
}

/// Kills a process if it is still cowboyctl; returns whether it was.
fn end(pid: Pid) -> bool {
    let command = fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
    let ours = command.is_ok_and(|command| command.contains("cowboyctl"));
    if ours {
        let _ = kill_process(pid, Signal::KILL);
    }
    ours
}

/// Polls until the condition holds. Only for states of other processes, which send no notice.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// The elements of a JSON list.
pub fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}
