//! Runners in separate processes, and operators' commands to runners.

use crate::{
    on_purpose::first,
    shape,
    support::{Home, Outcome, list, wait_until},
    timers::{number, text},
};
use cowboy_devnet::types::{Bytes, Text};
use cowboy_engine::primitives::SecretKey;
use cowboy_host::process::private;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// A runner in the foreground. Dropping it ends it.
pub struct Foreground(Option<Child>);

impl Foreground {
    fn start(home: &Home, args: &[&str]) -> Self {
        Self::of(home.command(&[&["runner", "start"], args].concat()))
    }

    pub fn of(mut command: Command) -> Self {
        Self(Some(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    pub fn signal(&self, signal: Signal) {
        let child = self.0.as_ref().unwrap();
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Waits until it ends by itself, and returns the outcome.
    pub fn ended(&mut self) -> Outcome {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        Outcome {
            code: output.status.code().unwrap_or(-1),
            stdout: String::new(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A key file in the home, and its path as an argument.
pub fn key_file(home: &Home, name: &str) -> (PathBuf, String) {
    let path = home.path(name);
    let argument = path.to_str().unwrap().to_owned();
    (path, argument)
}

pub fn run_job(home: &Home, says: &str) {
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "echo", says]);
    assert_eq!(job["result_text"], format!("{says}\n"), "{job}");
}

/// A runner's status in `devnet status`, by its address.
fn status(home: &Home, address: &Value) -> String {
    let status = home.json(&["devnet", "status"]);
    let found = list(&status["runners"]).iter().find(|runner| runner["address"] == *address);
    text(&found.unwrap_or_else(|| panic!("{address} is missing: {status}"))["status"]).to_owned()
}

pub fn until_present(home: &Home, runner: &str) {
    wait_until("the runner is present", || {
        home.json(&["runner", "show", runner])["present"] == true
    });
}

#[test]
fn a_runner_of_its_own_works_outlives_the_devnets_process_and_says_goodbye() {
    let home = Home::new();
    home.up(&["--runners", "0", "--wait", "2"]);
    let (path, key) = key_file(&home, "worker.key");
    let registered = home.run(&["runner", "register", "--key-file", &key, "--kinds", "custom"]);
    assert_eq!(registered.code, 0, "{registered:?}");
    assert!(registered.stderr.contains("for stake and fees"), "{registered:?}");
    let secret = fs::read_to_string(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!format!("{registered:?}").contains(secret.trim()), "the key is shown");
    let again = home.fails(8, &["runner", "register", "--key-file", &key]);
    assert!(again.contains("is registered already"), "{again}");
    let kind = home.run(&["runner", "start", "--key-file", &key, "--kinds", "custom,http"]);
    assert_eq!(kind.code, 2, "{kind:?}");
    assert!(kind.stderr.contains("not registered for jobs of kind http"), "{kind:?}");

    let started = home.json(&["runner", "start", "--key-file", &key, "--detach"]);
    let pid = Pid::from_raw(number(&started["pid"]) as i32).unwrap();
    assert_eq!(started["name"], "worker");
    let twice = home.fails(8, &["runner", "start", "--key-file", &key, "--detach"]);
    assert!(twice.contains("runner `worker` is already running"), "{twice}");
    until_present(&home, "worker");
    assert_eq!(home.json(&["runner", "ls"])[0]["name"], "worker");
    run_job(&home, "before");

    home.json(&["devnet", "down"]);
    let load = home.json(&["runner", "backpressure", "worker"]);
    assert_eq!((&load["running"], &load["max_concurrent"]), (&true.into(), &4.into()), "{load}");
    let log = || fs::read_to_string(home.path("local/processes/worker/log")).unwrap();
    wait_until("it has noticed", || log().contains("asked again"));
    home.json(&["devnet", "up", "--detach"]);
    until_present(&home, "worker");
    // It may reconnect and work before it notices that the devnet is back.
    wait_until("it has seen that the devnet is back", || log().contains("the devnet is back"));
    run_job(&home, "after");

    let paused = home.json(&["runner", "pause", "worker"]);
    assert_eq!((&paused["accepting_new"], &paused["reason"]), (&false.into(), &"paused".into()));
    wait_until("the runner is absent", || {
        home.json(&["runner", "show", "worker"])["present"] == false
    });
    home.json(&["runner", "resume", "worker"]);
    until_present(&home, "worker");
    let limited = home.json(&["runner", "backpressure", "worker", "--max", "2"]);
    assert_eq!((&limited["max_concurrent"], &limited["accepting_new"]), (&2.into(), &true.into()));

    let stopped = home.json(&["runner", "stop", "worker"]);
    assert_eq!(stopped["running"], false, "{stopped}");
    wait_until("the process is gone", || test_kill_process(pid).is_err());
    assert_eq!(status(&home, &started["address"]), "stopped");
    let gone = home.fails(8, &["runner", "pause", "worker"]);
    assert!(gone.contains("runner `worker` is not running"), "{gone}");
    let log = log();
    assert_eq!(log.matches("asked again").count(), 1, "once for one absence: {log}");
    assert_eq!(log.matches("the devnet is back").count(), 1, "{log}");
    assert!(!log.contains(secret.trim()), "the key is in the log");

    home.json(&["runner", "deregister", "--key-file", &key]);
    let left = home.fails(3, &["runner", "start", "--key-file", &key]);
    assert!(left.contains("register it: cowboyctl runner register --key-file"), "{left}");
    shape::seen(&[
        "runner start",
        "runner stop",
        "runner pause",
        "runner resume",
        "runner backpressure",
        "runner deregister",
    ]);
}

#[test]
fn a_signal_and_another_chain_end_a_runner_of_its_own() {
    let home = Home::new();
    let up = home.up(&["--runners", "0", "--wait", "2"]);
    let (_, key) = key_file(&home, "own.key");
    home.json(&["runner", "register", "--key-file", &key, "--from", "dev-0"]);
    let address = home.json(&["runner", "ls"])[0]["address"].clone();
    let by_url = ["--key-file", &key, "--rpc-url", text(&up["rpc_url"]), "--name", "mine"];
    let mut runner = Foreground::start(&home, &[&by_url[..], &["--max-jobs", "1"]].concat());
    wait_until("it is connected", || status(&home, &address) == "connected");
    wait_until("it answers", || home.run(&["runner", "backpressure", "mine"]).code == 0);
    assert_eq!(home.json(&["runner", "backpressure", "mine"])["max_concurrent"], 1);
    runner.signal(Signal::TERM);
    let ended = runner.ended();
    assert_eq!(ended.code, 0, "{ended:?}");
    // Without a goodbye, validators keep a connection until it has been idle for ten seconds.
    assert_eq!(status(&home, &address), "stopped", "{ended:?}");

    let mut runner = Foreground::start(&home, &["--key-file", &key]);
    wait_until("it is connected", || status(&home, &address) == "connected");
    home.json(&["devnet", "reset"]);
    home.up(&[]);
    let ended = runner.ended();
    assert_eq!(ended.code, 8, "{ended:?}");
    assert!(ended.stderr.contains("devnet `local` runs another chain"), "{ended:?}");
    shape::seen(&["runner register"]);
}

#[test]
fn a_runner_of_the_devnets_process_is_paused_limited_stopped_and_started() {
    let home = Home::new();
    home.up(&["--runners", "1", "--wait", "4"]);
    home.json(&["runner", "pause", "runner-0"]);
    first(&home, home.height(), "runner-0", false);
    let resumed = home.json(&["runner", "resume", "runner-0"]);
    assert_eq!((&resumed["accepting_new"], &resumed["reason"]), (&true.into(), &Value::Null));
    first(&home, home.height(), "runner-0", true);

    // It has as many jobs as the new limit allows: it neither drops one nor takes another.
    let go = home.path("go");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo went", go.display());
    let slow = home.json(&["job", "submit", "custom", "--", "sh", "-c", &script]);
    let load = || home.json(&["runner", "backpressure", "runner-0"]);
    wait_until("it works on the job", || load()["active_jobs"] == 1);
    assert_eq!(load()["accepting_new"], true);
    let limited = home.json(&["runner", "backpressure", "runner-0", "--max", "1"]);
    assert_eq!((&limited["max_concurrent"], &limited["active_jobs"]), (&1.into(), &1.into()));
    assert_eq!(
        (&limited["accepting_new"], &limited["reason"]),
        (&false.into(), &"at capacity".into())
    );
    first(&home, home.height(), "runner-0", false);
    fs::write(&go, "").unwrap();
    let done = home.json(&["job", "wait", text(&slow["job_id"])]);
    assert_eq!(done["status"], "Verified", "{done}");
    run_job(&home, "next");

    let stopped = home.json(&["runner", "stop", "runner-0"]);
    assert_eq!((&stopped["running"], &stopped["reason"]), (&false.into(), &"stopped".into()));
    assert_eq!(status(&home, &stopped["address"]), "stopped");
    for verb in ["stop", "pause"] {
        let refused = home.fails(8, &["runner", verb, "runner-0"]);
        assert!(refused.contains("runner `runner-0` is stopped"), "{refused}");
    }
    home.json(&["runner", "start", "runner-0"]);
    home.fails(8, &["runner", "start", "runner-0"]);
    run_job(&home, "again");
}

#[test]
fn what_cannot_be_is_refused() {
    let home = Home::new();
    let (path, key) = key_file(&home, "k.key");
    let none = home.fails(4, &["runner", "register", "--key-file", &key]);
    assert!(none.contains("no devnet is running") && !path.exists(), "{none}");
    let missing = home.fails(3, &["runner", "start", "--key-file", &key]);
    assert!(missing.contains("there is no key file"), "{missing}");
    fs::write(&path, format!("{}\n", "01".repeat(32))).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    home.fails(4, &["runner", "start", "--key-file", &key]);

    home.up(&["--validators", "2", "--runners", "1"]);
    let check = |code: i32, args: &[&str], says: &str| {
        let error = home.fails(code, &[&["runner"], args].concat());
        assert!(error.contains(says), "{args:?}: {error}");
        assert!(!error.contains(&"01".repeat(32)), "{args:?}: {error}");
    };
    check(3, &["start", "--key-file", &key, "--detach"], "is not registered");
    check(3, &["pause", "nobody"], "the devnet's process runs no runner `nobody`");
    check(3, &["stop", "validator-0"], "its runners are runner-0");
    check(3, &["start", "nobody"], "the devnet's process runs no runner `nobody`");
    let nowhere = ["start", "--key-file", &key, "--rpc-url", "http://127.0.0.1:1"];
    check(4, &nowhere, "nothing answers at http://127.0.0.1:1");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    for verb in ["register", "deregister", "start"] {
        check(2, &[verb, "--key-file", &key], "its mode is 640");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    home.json(&["runner", "register", "--key-file", &key]);
    let taken = ["start", "--key-file", &key, "--name", "runner-0", "--detach"];
    check(8, &taken, "the devnet's own process has a runner `runner-0`");
    let theirs = SecretKey::derive(&0_u64.to_be_bytes(), "runner-0");
    let digits = Text(Bytes(theirs.to_bytes().to_vec())).to_string();
    fs::write(&path, digits.trim_start_matches("0x")).unwrap();
    let twice = ["start", "--key-file", &key, "--name", "other", "--detach"];
    check(8, &twice, "runner `runner-0` is already running");
    for args in [
        &["start"][..],
        &["start", "runner-0", "--key-file", "x"],
        &["start", "runner-0", "--max-jobs", "2"],
        &["register", "runner-0", "--kinds", "http"],
        &["register", "--key-file", "x", "--kinds", "llm"],
        &["backpressure", "runner-0", "--max", "0"],
    ] {
        let refused = home.run(&[&["runner"], args].concat());
        assert_eq!(refused.code, 2, "{args:?}: {refused:?}");
    }
}

#[test]
fn jobs_reach_neither_the_api_nor_the_files_of_a_devnet() {
    let home = Home::new();
    let up = home.up(&["--runners", "1", "--wait", "4"]);
    let verified = |args: &[&str]| {
        let job = home.json(&[&["job", "submit"], args].concat());
        assert_eq!(job["status"], "Verified", "{job}");
        text(&job["result_text"]).to_owned()
    };
    let token = home.devnet("local").token_path();
    let reads = ["sh", "-c", "cat \"$0\" || echo kept out", token.to_str().unwrap()];
    let read = verified(&[&["custom", "--wait", "--"], &reads[..]].concat());
    match private::can_be_kept_out() {
        Ok(()) => assert_eq!(read, "kept out\n"),
        Err(_) => assert_eq!(read, fs::read_to_string(&token).unwrap()),
    }
    let environment = verified(&["custom", "--wait", "--", "env"]);
    let known = ["PATH", "LANG", "HOME", "TMPDIR", "COWBOY_JOB_DIRECTORY"];
    let strange = |line: &&str| !known.contains(&line.split('=').next().unwrap());
    assert_eq!(environment.lines().find(strange), None, "{environment}");

    let url = format!("{}/v1/status", text(&up["rpc_url"]));
    let asks = ["http", &url, "--pointer", "/name", "--wait", "--timeout-blocks", "2"];
    let refused = home.run(&[&["job", "submit"], &asks[..]].concat());
    assert_eq!(refused.code, 1, "{refused:?}");
    let shown = home.json(&["job", "show", "latest"]);
    let failed = list(&shown["events"]).iter().find(|event| event["event"] == "WorkFailed");
    let reason = text(&failed.unwrap_or_else(|| panic!("{shown}"))["data"]["reason"]);
    assert!(reason.contains("`http: {allow_loopback: true}`"), "{reason}");

    home.json(&["runner", "stop", "runner-0"]);
    let (_, key) = key_file(&home, "local.key");
    home.json(&["runner", "register", "--key-file", &key, "--kinds", "http"]);
    home.json(&["runner", "start", "--key-file", &key, "--detach", "--allow-loopback"]);
    until_present(&home, "local");
    assert_eq!(verified(&["http", &url, "--pointer", "/name", "--wait"]), "\"local\"");
}
