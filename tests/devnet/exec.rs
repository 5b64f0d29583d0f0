//! `devnet exec`: the devnet of a command ends with it, however it ends.

use crate::support::{Home, wait_until};
use cowboy_devnet::testing::{TestDevnet, TestingError};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// Rounds in CI; `COWBOYCTL_EXEC_ROUNDS=50` for the whole loop.
const ROUNDS: u64 = 4;

const SMALL: [&str; 8] =
    ["devnet", "exec", "--validators", "1", "--runners", "0", "--block-time", "100ms"];

fn exec(home: &Home, options: &[&str], command: &[&str]) -> Command {
    home.command(&[&SMALL, options, &["--"], command].concat())
}

/// Nothing that was started with this home runs, and it has no file.
fn is_clean(home: &Home) -> bool {
    let mark = format!("COWBOYCTL_HOME={}", home.path("").display());
    let mark = mark.trim_end_matches('/').as_bytes();
    let of_home = |process: &fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark)
    };
    let running = fs::read_dir("/proc").unwrap().flatten().any(|process| of_home(&process));
    !running && fs::read_dir(home.path("")).unwrap().next().is_none()
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

#[test]
fn a_command_gets_a_devnet_and_leaves_none() {
    let home = Home::new();
    let cowboyctl = env!("CARGO_BIN_EXE_cowboyctl");
    let script = format!(
        "set -e; {cowboyctl} -q account fund 0x00000000000000000000000000000000000000aa 5cby \
         >/dev/null; {cowboyctl} -q devnet status; {cowboyctl} devnet env; cat; setsid sleep 1000 & \
         exit 7"
    );
    let mut command = exec(&home, &[], &["sh", "-c", &script]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(7), "{said} {:?}", output.stderr);
    assert!(said.starts_with("running\nexport COWBOYCTL_HOME="), "{said}");
    assert!(said.contains("export COWBOYCTL_DEVNET='exec-"), "{said}");
    assert!(is_clean(&home));

    let fails = |options: &[&str], command: &[&str]| {
        let output = exec(&home, options, command).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(fails(&[], &["sh", "-c", "kill -9 $$"]).0, Some(128 + 9));
    let (code, said) = fails(&[], &["no-such-command"]);
    assert_eq!(code, Some(3));
    assert!(said.starts_with("error: no-such-command: "), "{said}");
    let (code, said) = fails(&["--timeout", "1ms"], &["true"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(is_clean(&home));
}

#[test]
fn a_lease_runner_of_the_command_has_a_token_of_its_own() {
    let home = Home::new();
    fs::write(home.path("ci.yaml"), "name: ci\njobs:\n  unit: { steps: [\"echo tested\"] }\n")
        .unwrap();
    let cowboyctl = env!("CARGO_BIN_EXE_cowboyctl");
    let script = format!(
        "cd '{}' && {cowboyctl} lease runner --name builder --max-jobs 1 & \
         cd '{}' && {cowboyctl} lease submit ci.yaml --wait --timeout 60s && wait $! && rm ci.yaml",
        home.path("").display(),
        home.path("").display(),
    );
    let output = exec(&home, &[], &["sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // It is the runner's, and stays with its token.
    fs::remove_dir_all(home.path(".lease-runners")).unwrap();
    assert!(is_clean(&home));
}

#[test]
fn a_test_in_rust_has_a_devnet() {
    let home = Home::new();
    let script = home.path("cowboyctl");
    let program = env!("CARGO_BIN_EXE_cowboyctl");
    let folder = home.path("devnets");
    let text =
        format!("#!/bin/sh\nCOWBOYCTL_HOME='{}' exec '{program}' \"$@\"\n", folder.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let options = ["--validators", "1", "--runners", "1", "--block-time", "100ms"];
    let devnet = TestDevnet::of(script.as_os_str(), &options).unwrap();
    let job = devnet.run(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]).unwrap();
    assert_eq!(job["result_text"], "hi\n", "{job}");
    let client = devnet.client().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let head = runtime.block_on(client.head()).unwrap();
    assert!(head.height > 0, "{}", devnet.rpc_url());
    let error = devnet.run(&["chain", "block", "999999"]).unwrap_err();
    assert!(matches!(error, TestingError::Failed { code: 3, .. }), "{error}");
    drop(devnet);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);

    let error = TestDevnet::of(script.as_os_str(), &["--validators", "0"]).unwrap_err();
    assert!(error.to_string().starts_with("no devnet: error: "), "{error}");
    let error = TestDevnet::of(home.path("none").as_os_str(), &[]).unwrap_err();
    assert!(matches!(error, TestingError::NotRun { .. }), "{error}");
}

#[test]
fn the_devnet_of_a_user_is_not_removed() {
    let home = Home::new();
    home.up(&["--name", "mine", "--validators", "1", "--runners", "0"]);
    for _ in 0..2 {
        let output = exec(&home, &["--name", "mine"], &["true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(8), "{output:?}");
        home.json(&["devnet", "down", "mine"]);
    }
    assert!(home.path("mine").is_dir());
    // The one that a command gets is not the chosen one, and ends when the command ends it.
    let cowboyctl = env!("CARGO_BIN_EXE_cowboyctl");
    let output = exec(&home, &[], &[cowboyctl, "-q", "devnet", "down"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let folders: Vec<_> = fs::read_dir(home.path("")).unwrap().flatten().collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
}

/// Starts a command that says when it runs, and whose own child has left its group.
fn waiting(home: &Home, trap: &str) -> Child {
    let script = format!("{trap} setsid sleep 1000 & echo started; wait");
    exec(home, &[], &["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap()
}

fn until_started(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
}

#[test]
fn signals_go_to_the_command() {
    let home = Home::new();
    for (signal, trap, code) in [
        (Signal::TERM, "trap 'exit 9' TERM;", 9),
        (Signal::INT, "trap 'exit 10' INT;", 10),
        (Signal::HUP, "", 128 + 1),
    ] {
        let mut child = waiting(&home, trap);
        until_started(&mut child);
        kill_process(pid(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
        assert!(is_clean(&home));
    }
}

/// SIGKILL while the devnet starts, while the command runs, and in between; several at once.
#[test]
fn a_killed_process_leaves_nothing() {
    let home = Home::new();
    let rounds = env::var("COWBOYCTL_EXEC_ROUNDS").ok().and_then(|r| r.parse().ok());
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let mut children = [(); 3].map(|()| waiting(&home, ""));
        thread::park_timeout(Duration::from_millis(round * 397 % 1_500));
        if round % 2 == 0 {
            until_started(&mut children[0]);
        }
        for child in &mut children {
            kill_process(pid(child), Signal::KILL).unwrap();
            child.wait().unwrap();
        }
        wait_until("nothing is left", || is_clean(&home));
    }
}

/// All marked processes are killed at once, without the process of the inner devnet.
#[test]
fn a_killed_process_leaves_nothing_of_one_inside() {
    let home = Home::new();
    let cowboyctl = env!("CARGO_BIN_EXE_cowboyctl");
    let inner =
        [&[cowboyctl], &SMALL[..], &["--", "sh", "-c", "echo started; sleep 1000"]].concat();
    let mut outer = exec(&home, &[], &inner).stdout(Stdio::piped()).spawn().unwrap();
    until_started(&mut outer);
    kill_process(pid(&outer), Signal::KILL).unwrap();
    outer.wait().unwrap();
    wait_until("nothing is left", || is_clean(&home));
}

#[test]
fn the_end_of_the_process_that_started_it_ends_it() {
    let home = Home::new();
    let script = "\"$@\" & wait";
    let inner = exec(&home, &[], &["sh", "-c", "sleep 1000 & echo started; wait"]);
    let mut parent = Command::new("sh");
    parent.args(["-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => parent.env(name, value),
            None => parent.env_remove(name),
        };
    }
    let mut parent = parent.stdout(Stdio::piped()).spawn().unwrap();
    until_started(&mut parent);
    kill_process(pid(&parent), Signal::KILL).unwrap();
    parent.wait().unwrap();
    wait_until("nothing is left", || is_clean(&home));
}
