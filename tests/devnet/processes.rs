//! Nodes in processes of their own, which a devnet starts, limits, watches and ends.

use crate::{
    nodes::edit,
    on_purpose::{first, is_present},
    report::unpack,
    shape,
    support::{Home, list, wait_until},
    timers::{number, text},
};
use cowboy_devnet::client::Client;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use std::{env, fs, os::unix::fs::PermissionsExt as _, process::Command, thread};

/// Rounds in CI; `COWBOYCTL_KILL_ROUNDS=100` for the whole loop.
const ROUNDS: u32 = 8;

fn topology() -> Value {
    json!({
        "name": "local",
        "hosts": "process",
        "chain": { "block_time": "100ms" },
        "validators": [
            { "name": "alpha", "cpus": "0", "memory": "4GB", "core_dumps": true },
            { "name": "beta", "restart": true, "env": { "COWBOYCTL_LOG": "warn" } },
            { "name": "gamma" },
            { "name": "delta" },
        ],
        "runners": 2,
    })
}

/// A line of a process' file in `/proc`, without its name.
fn proc_line(pid: Pid, file: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{file} has no `{name}`: {text}")).trim().to_owned()
}

/// Whether a process has a limit of 4 GB: `memory.rs` checks that of a cgroup.
fn has_limited_memory(pid: Pid) -> bool {
    let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).unwrap();
    cgroups.contains("/cowboyctl-")
        || proc_line(pid, "limits", "Max data size").starts_with("4000000000")
}

fn validator(home: &Home, name: &str) -> Value {
    home.json(&["validator", "show", name])
}

fn catches_up(home: &Home, name: &str) {
    let head = home.height().to_string();
    home.json(&["--node", name, "chain", "wait", &head, "--timeout", "60s"]);
}

fn run_job(home: &Home, says: &str) {
    let job = ["job", "submit", "custom", "--wait", "--timeout", "60s", "--", "echo", says];
    assert_eq!(home.json(&job)["result_text"], format!("{says}\n"));
}

#[test]
fn a_process_is_limited_watched_and_started_again() {
    let home = Home::new();
    let up = home.up_with(&topology());
    assert_eq!(number(&up["validators"]), 4, "{up}");
    run_job(&home, "apart");
    let process = |name| home.process_of("local", name);

    // What the topology says of a process holds for it.
    let alpha = process("alpha");
    assert_eq!(proc_line(alpha, "status", "Cpus_allowed_list:"), "0");
    assert!(has_limited_memory(alpha));
    assert!(proc_line(process("gamma"), "limits", "Max core file size").starts_with('0'));
    let environment = fs::read(format!("/proc/{}/environ", process("beta").as_raw_nonzero()));
    let environment = String::from_utf8(environment.unwrap()).unwrap();
    assert!(environment.contains("COWBOYCTL_LOG=warn"), "{environment}");

    // One that dies is shown with its end; one that is to be restarted is there again.
    kill_process(alpha, Signal::ABORT).unwrap();
    wait_until("its death is known", || validator(&home, "alpha")["status"] == "died");
    let died = validator(&home, "alpha");
    assert!(text(&died["reason"]).contains("ended by signal 6"), "{died}");
    let refused = home.fails(1, &["--node", "alpha", "chain", "head"]);
    assert!(refused.contains("`alpha` has died: its process was ended by signal 6"), "{refused}");
    home.json(&["validator", "start", "alpha"]);
    assert_eq!(proc_line(process("alpha"), "status", "Cpus_allowed_list:"), "0");
    catches_up(&home, "alpha");
    let beta = process("beta");
    kill_process(beta, Signal::KILL).unwrap();
    wait_until("it runs again", || {
        validator(&home, "beta")["status"] == "running" && process("beta") != beta
    });

    // A pause stops the process itself.
    let laid = home.json(&["fault", "pause", "gamma"]);
    assert!(proc_line(process("gamma"), "status", "State:").starts_with('T'), "{laid}");
    let paused = number(&validator(&home, "gamma")["height"]);
    home.wait_height(paused + 6);
    assert!(number(&validator(&home, "gamma")["height"]) <= paused + 1);
    home.json(&["fault", "heal", "gamma"]);
    catches_up(&home, "gamma");
    // A kill is SIGKILL, and heals by a new process.
    let delta = process("delta");
    home.json(&["fault", "kill", "delta"]);
    assert!(test_kill_process(delta).is_err());
    home.json(&["fault", "heal", "delta"]);
    catches_up(&home, "delta");

    // A chain that its validators have stored in their own folders is fetched again.
    let resynced = home.json(&["validator", "resync", "delta"]);
    assert_eq!(number(&resynced["height"]), 0, "{resynced}");
    catches_up(&home, "delta");
    run_job(&home, "again");
    let deep = home.run(&["doctor", "--deep"]);
    assert!(!deep.stdout.contains("problem"), "{deep:?}");
    assert_eq!(home.json(&["devnet", "down"])["how"], "gracefully");
}

#[test]
fn a_runners_process_is_limited_steered_and_started_again() {
    let home = Home::new();
    home.up_with(&json!({
        "name": "local",
        "hosts": "process",
        "chain": { "block_time": "100ms" },
        "runners": [
            { "name": "able", "cpus": "0", "memory": "4GB", "env": { "COWBOYCTL_LOG": "warn" } },
            { "name": "baker", "restart": true },
        ],
    }));
    run_job(&home, "apart");
    let process = |name| home.runner_process_of("local", name);
    let able = process("able");
    assert_eq!(proc_line(able, "status", "Cpus_allowed_list:"), "0");
    assert!(has_limited_memory(able));
    let load = |name| home.json(&["runner", "backpressure", name]);
    // A process stops answering before the devnet is told how it ended.
    let logged = |line| {
        wait_until(line, || home.run(&["devnet", "logs", "-n", "1000"]).stdout.contains(line));
    };

    // The API steers it as it does one of the devnet's own process.
    let client = Client::of_devnet(&home.devnet("local")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = runtime.block_on(client.limit_runner("able", 2)).unwrap();
    assert_eq!((limited.max_concurrent, limited.running), (2, true));
    assert_eq!(load("able")["max_concurrent"], 2);
    let paused = runtime.block_on(client.pause_runner("able")).unwrap();
    assert_eq!(paused.reason.as_deref(), Some("paused"));
    home.json(&["runner", "resume", "able"]);

    // One that dies is not running; one that is to be restarted is there again.
    let baker = process("baker");
    kill_process(baker, Signal::KILL).unwrap();
    wait_until("it runs again", || home.try_runner_process_of("local", "baker") != Some(baker));
    wait_until("it answers", || load("baker")["running"] == true);
    kill_process(able, Signal::ABORT).unwrap();
    wait_until("its death is known", || {
        !runtime.block_on(client.runner_load("able")).unwrap().running
    });
    logged("runner=able how=its process was ended by signal 6");
    assert_eq!(home.json(&["runner", "start", "able"])["running"], true);
    run_job(&home, "again");

    // A pause stops the process itself, a stop by its operator counts as one.
    home.json(&["fault", "pause", "baker"]);
    assert!(proc_line(process("baker"), "status", "State:").starts_with('T'));
    home.json(&["fault", "heal"]);
    let able = process("able");
    kill_process(able, Signal::TERM).unwrap();
    wait_until("it has stopped", || load("able")["running"] == false);
    logged("stopped by its operator runner=able");

    // They end with the devnet, however that ends, and a reset gives them another chain.
    let baker = process("baker");
    home.kill("local");
    wait_until("it is gone", || test_kill_process(baker).is_err());
    home.json(&["devnet", "up", "--detach"]);
    let baker = process("baker");
    home.json(&["devnet", "reset"]);
    assert!(test_kill_process(baker).is_err());
    home.json(&["devnet", "up", "--detach"]);
    run_job(&home, "afresh");
}

/// A link's faults work in both directions, though a runner's own process has no tap.
#[test]
fn a_runner_in_a_process_of_its_own_is_cut_off() {
    let home = Home::apart();
    home.up(&["--wait", "4", "--runners", "2"]);
    home.json(&["fault", "partition", "runner-1"]);
    let cut = home.height();
    let left = first(&home, cut, "runner-1", false);
    assert!(is_present(&home, left, "runner-0"));
    home.json(&["fault", "heal"]);
    first(&home, home.height(), "runner-1", true);
    home.json(&["fault", "latency", "runner-1", "20ms"]);
    let delayed = || number(&list(&home.json(&["fault", "ls"]))[0]["delayed"]);
    wait_until("messages are delayed", || delayed() > 20);
    run_job(&home, "slowly");
}

/// A program that answers as `node version` does, and runs no node.
fn program(home: &Home, name: &str, versions: &Value) -> String {
    let path = home.path(name);
    let answer = format!("#!/bin/sh\n[ \"$2\" = version ] || exit 3\necho '{versions}'\n");
    fs::write(&path, answer).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn two_builds_run_side_by_side_and_one_replaces_the_other() {
    let home = Home::apart();
    home.up(&["--wait", "2"]);
    let own = home.json(&["node", "version"]);
    let other = home.path("other");
    let released = env::var("COWBOYCTL_RELEASED").ok();
    fs::copy(released.as_deref().unwrap_or(env!("CARGO_BIN_EXE_cowboyctl")), &other).unwrap();
    let printed = Command::new(&other).args(["node", "version", "-o", "json"]).output().unwrap();
    let theirs: Value = serde_json::from_slice(&printed.stdout).unwrap_or_default();
    let speaks = |of: &Value| ["protocol", "store", "api"].map(|part| of[part].clone());
    if speaks(&theirs) != speaks(&own) {
        // A released build of other versions: it must be refused, and nothing changes.
        let args = ["devnet", "upgrade", "validator-1", "--binary", other.to_str().unwrap()];
        let refused = home.fails(8, &args);
        assert!(refused.contains(text(&own["version"])), "{refused}");
        catches_up(&home, "validator-1");
        return;
    }
    let program_of = |name: &str| {
        let pid = home.process_of("local", name).as_raw_nonzero();
        fs::read_link(format!("/proc/{pid}/exe")).unwrap()
    };
    let before = home.process_of("local", "validator-1");
    let shown = thread::scope(|scope| {
        let load = scope.spawn(|| run_job(&home, "meanwhile"));
        let args = ["devnet", "upgrade", "validator-1", "--binary", other.to_str().unwrap()];
        let shown = home.json(&args);
        load.join().unwrap();
        shown
    });
    assert_eq!(shown["version"], theirs["version"], "{shown}");
    assert_ne!(number(&shown["pid"]), before.as_raw_nonzero().get() as u64);
    assert_eq!(program_of("validator-1"), other.canonicalize().unwrap());
    assert_ne!(program_of("validator-0"), program_of("validator-1"));
    catches_up(&home, "validator-1");

    // What does not fit, or does not run, changes nothing.
    let fails = |code: i32, binary: &str| {
        home.fails(code, &["devnet", "upgrade", "validator-1", "--binary", binary])
    };
    let mut newer = own.clone();
    newer["version"] = "9.9.9".into();
    newer["protocol"] = (number(&own["protocol"]) + 1).into();
    let refused = fails(8, &program(&home, "newer", &newer));
    for version in [&newer, &own] {
        let said = format!("{} (protocol {}", text(&version["version"]), version["protocol"]);
        assert!(refused.contains(&said), "{refused}");
    }
    let refused = fails(8, &program(&home, "mute", &json!("nothing")));
    assert!(refused.contains("it tells no versions"), "{refused}");
    let refused = fails(1, &program(&home, "broken", &own));
    assert!(refused.contains("ended with code 3; it goes on with the former"), "{refused}");
    assert_eq!(program_of("validator-1"), other.canonicalize().unwrap());
    fails(3, home.path("none").to_str().unwrap());
    catches_up(&home, "validator-1");

    // It is the validator's program from now on.
    home.json(&["devnet", "down"]);
    home.json(&["devnet", "up", "--detach"]);
    assert_eq!(program_of("validator-1"), other.canonicalize().unwrap());
    shape::seen(&["devnet upgrade", "node version"]);
}

#[test]
fn logs_and_metrics_are_those_of_all_processes() {
    let home = Home::apart();
    home.up(&["--wait", "2"]);
    let all = home.run(&["devnet", "logs", "--all", "-n", "1000"]);
    assert_eq!(all.code, 0, "{all:?}");
    let times: Vec<_> = all
        .stdout
        .lines()
        .filter_map(|line| line.split_once(" | ")?.1.split(' ').next())
        .filter(|time| time.ends_with('Z'))
        .collect();
    assert!(times.is_sorted(), "{all:?}");
    for name in ["local", "validator-0", "validator-3"] {
        let begins = |line: &str| line.split(' ').next() == Some(name);
        assert!(all.stdout.lines().any(begins), "{name}: {all:?}");
    }
    let one = home.run(&["--node", "validator-2", "devnet", "logs"]).stdout;
    assert!(one.contains("cowboy_devnet::orchestrator::node: running"), "{one}");

    let client = Client::of_devnet(&home.devnet("local")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let metrics = runtime.block_on(client.metrics()).unwrap();
    for name in ["validator-0", "validator-3"] {
        let series = format!("runner_connections{{validator=\"{name}\"}} ");
        assert!(metrics.contains(&series), "{metrics}");
    }
    let file = home.path("report.tar.zst");
    home.json(&["devnet", "report", file.to_str().unwrap()]);
    let files = unpack(&file);
    for part in ["log/devnet.log", "metrics.txt", "status.json"] {
        let name = format!("nodes/validator-1/{part}");
        assert!(files.contains_key(&name), "{name}: {:?}", files.keys());
    }
    assert_eq!(files.get("api/errors.txt"), None);
    let listed = home.json(&["validator", "ls"]);
    assert!(list(&listed).iter().all(|one| one["pid"].is_u64()), "{listed}");
}

#[test]
fn nothing_of_a_devnet_stays_behind() {
    let home = Home::apart();
    home.up(&["--wait", "2"]);
    let validators: Vec<_> = (0..4).map(|index| format!("validator-{index}")).collect();
    let processes = || validators.iter().map(|name| home.process_of("local", name)).collect();
    // The process that reaps orphans may take a moment.
    let gone = |all: &Vec<Pid>| {
        wait_until("they are gone", || all.iter().all(|pid| test_kill_process(*pid).is_err()));
    };

    let first: Vec<_> = processes();
    assert_eq!(home.json(&["devnet", "down"])["how"], "gracefully");
    gone(&first);

    // Killed, it ends no one; its validators notice, except the one that is frozen.
    home.up(&[]);
    let second: Vec<_> = processes();
    home.json(&["fault", "pause", "validator-2"]);
    home.kill("local");
    home.json(&["devnet", "down"]);
    gone(&second);

    // The next start ends what is left as well, and continues with the chain.
    home.up(&[]);
    let third: Vec<_> = processes();
    let head = home.height();
    home.json(&["fault", "pause", "validator-1"]);
    home.kill("local");
    home.json(&["devnet", "up", "--detach"]);
    gone(&third);
    home.wait_height(head + 3);
    for name in &validators {
        catches_up(&home, name);
    }
    assert!(list(&home.json(&["fault", "ls"])).is_empty());
    let other = home.fails(8, &["devnet", "up", "--detach", "--name", "local"]);
    assert!(other.contains("already running"), "{other}");
    home.json(&["devnet", "down"]);
    let other = home.run(&["devnet", "up", "--detach", "--hosts", "in-process"]);
    assert!(other.code == 8 && other.stderr.contains("other hosts"), "{other:?}");
}

#[test]
fn a_snapshot_has_all_processes() {
    let home = Home::apart();
    home.up(&["--wait", "4"]);
    let saved = home.json(&["devnet", "snapshot", "save", "one"]);
    let height = number(&saved["height"]);
    home.wait_height(height + 2);
    home.json(&["devnet", "snapshot", "load", "one", "--name", "two"]);
    home.json(&["devnet", "up", "--detach", "--name", "two"]);
    let hash = |devnet: &str| {
        let block = ["--devnet", devnet, "chain", "block", &height.to_string()];
        home.json(&block)["hash"].clone()
    };
    assert_eq!(hash("local"), hash("two"));
    let more = ["--devnet", "two", "chain", "wait", "+3", "--timeout", "60s"];
    home.json(&more);
    for devnet in ["local", "two"] {
        home.json(&["devnet", "down", devnet]);
    }
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    let home = Home::new();
    let file = home.path("topology.yaml");
    let refused = |code: i32, change: &dyn Fn(&str) -> String, says: &str| {
        fs::write(&file, topology().to_string()).unwrap();
        edit(&file, change);
        let up = ["devnet", "up", "--detach", "-f", file.to_str().unwrap()];
        let outcome = home.run(&up);
        assert_eq!(outcome.code, code, "{outcome:?}");
        assert!(outcome.stderr.contains(says), "{outcome:?}");
    };
    let in_process = |text: &str| text.replace("\"process\"", "\"in-process\"");
    refused(2, &in_process, "validators[0].cpus: it is for a process of its own");
    refused(2, &|text| text.replace("4GB", "1MB"), "validators[0].memory: 1MB, expected 128MB");
    refused(
        2,
        &|text| text.replace("\"0\"", "\"2-1\""),
        "validators[0].cpus: invalid value: string \"2-1\"",
    );
    let home_of = |text: &str| text.replace("COWBOYCTL_LOG", "COWBOYCTL_HOME");
    refused(2, &home_of, "`COWBOYCTL_HOME` is set by the devnet");
    refused(2, &|text| text.replace("\"process\"", "\"moon\""), "in-process");
    let missing =
        |text: &str| text.replace("{\"name\":\"gamma\"", "{\"binary\":\"none\",\"name\":\"gamma\"");
    fs::write(&file, missing(&topology().to_string())).unwrap();
    // Three of four decide: the devnet is up, and says which validator is not.
    let up = home.run(&["devnet", "up", "--detach", "-f", file.to_str().unwrap()]);
    assert_eq!(up.code, 0, "{up:?}");
    let none = home.path("none");
    let died = validator(&home, "gamma");
    assert!(text(&died["reason"]).contains(none.to_str().unwrap()), "{died}");
    home.json(&["devnet", "down"]);
}

#[test]
fn killed_one_by_one_under_load_nothing_is_lost() {
    let rounds = env::var("COWBOYCTL_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let home = Home::apart();
    home.up(&["--wait", "2"]);
    let supply = home.json(&["devnet", "status"])["supply"]["total"].clone();
    let (mut sent, mut jobs) = (0, 0);
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let name = format!("validator-{}", round % 4);
        let killed = home.process_of("local", &name);
        thread::scope(|scope| {
            let killing = scope.spawn(|| kill_process(killed, Signal::KILL).unwrap());
            home.json(&["account", "transfer", "dev-0", "dev-1", "1wei"]);
            home.json(&["job", "submit", "custom", "--", "echo", &name]);
            killing.join().unwrap();
        });
        (sent, jobs) = (sent + 1, jobs + 1);
        wait_until("its death is known", || validator(&home, &name)["status"] == "died");
        home.json(&["validator", "start", &name]);
        catches_up(&home, &name);
    }
    let open = || -> Vec<Value> {
        let all = home.json(&["job", "ls", "--limit", "1000"]);
        assert_eq!(list(&all).len(), jobs, "{all}");
        list(&all).iter().filter(|job| job["status"] != "Verified").cloned().collect()
    };
    wait_until("every job is verified", || {
        let open = open();
        assert!(open.iter().all(|job| job["status"] != "Failed"), "{open:?}");
        open.is_empty()
    });
    let account = home.json(&["account", "balance", "dev-0"]);
    assert_eq!(number(&account["nonce"]), sent + jobs as u64, "{account}");
    assert_eq!(home.json(&["devnet", "status"])["supply"]["total"], supply);
    let head = home.height().to_string();
    let hash = |index: u32| {
        let name = format!("validator-{index}");
        home.json(&["--node", &name, "chain", "wait", &head, "--timeout", "60s"]);
        home.json(&["--node", &name, "chain", "block", &head])["hash"].clone()
    };
    let hashes: Vec<_> = (0..4).map(hash).collect();
    assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]), "{hashes:?}");
}
