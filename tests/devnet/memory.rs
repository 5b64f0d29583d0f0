//! The memory limits of nodes in processes of their own.

use crate::{
    support::{Home, wait_until},
    timers::text,
};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// This program, or, once there is a file, one that takes all the memory that it gets.
fn greedy_later(home: &Home, greedy: &Path) -> String {
    let path = home.path("program");
    let (greedy, own) = (greedy.display(), env!("CARGO_BIN_EXE_cowboyctl"));
    let script = format!(
        "#!/bin/sh\n[ \"$2\" = run ] && [ -e {greedy} ] && exec tail /dev/zero\nexec {own} \"$@\"\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The node's cgroup according to the log; `None` if its limit is `RLIMIT_DATA`.
fn cgroup_of(home: &Home, node: &str) -> Option<PathBuf> {
    let log = home.run(&["devnet", "logs", "-n", "10000"]).stdout;
    let said = format!("its memory is limited node={node} limit=512MB by=");
    let line = log.lines().rev().find_map(|line| Some(line.split_once(&said)?.1));
    let line = line.unwrap_or_else(|| panic!("the log does not say how: {log}"));
    if line.starts_with("RLIMIT_DATA reason=") {
        return None;
    }
    let path = line.strip_prefix("cgroup v1 ").or_else(|| line.strip_prefix("cgroup v2 "));
    Some(path.unwrap_or_else(|| panic!("neither: {line}")).into())
}

#[test]
fn a_memory_limit_is_a_cgroup_where_one_can_be_made() {
    let home = Home::new();
    let greedy = home.path("greedy");
    let topology = json!({
        "name": "local",
        "hosts": "process",
        "chain": { "block_time": "100ms" },
        "validators": [
            {
                "name": "alpha",
                "memory": "512MB",
                "restart": true,
                "binary": greedy_later(&home, &greedy),
            },
            { "name": "beta" },
            { "name": "gamma" },
            { "name": "delta" },
        ],
        "runners": [{ "name": "able", "memory": "512MB" }],
    });
    home.up_with(&topology);
    let (Some(alpha), Some(able)) = (cgroup_of(&home, "alpha"), cgroup_of(&home, "able")) else {
        eprintln!("not run: no cgroup with a memory limit can be made here");
        return;
    };
    let processes = |cgroup: &Path| -> Vec<String> {
        let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let (validator, runner) =
        (home.process_of("local", "alpha"), home.runner_process_of("local", "able"));
    assert!(processes(&alpha).contains(&validator.as_raw_nonzero().to_string()));
    assert!(processes(&able).contains(&runner.as_raw_nonzero().to_string()));
    let limit = ["memory.limit_in_bytes", "memory.max"].map(|file| alpha.join(file));
    let limit = limit.iter().find_map(|file| fs::read_to_string(file).ok()).unwrap();
    assert_eq!(limit.trim(), "512000000");

    // What a killed devnet leaves is cleared away.
    home.kill("local");
    home.json(&["devnet", "up", "--detach"]);
    assert_eq!(cgroup_of(&home, "alpha").as_ref(), Some(&alpha));
    home.json(&["devnet", "down"]);
    assert!(!alpha.exists() && !able.exists(), "cgroups are left");
    home.json(&["devnet", "up", "--detach"]);
    home.kill("local");
    home.json(&["devnet", "rm", "local"]);
    assert!(!alpha.exists() && !able.exists(), "cgroups are left");

    // One that needs more is ended, and the reason says so.
    home.up_with(&topology);
    fs::write(&greedy, "").unwrap();
    home.json(&["validator", "stop", "alpha"]);
    assert!(!alpha.exists(), "the cgroup of a node that has ended is left");
    let refused = home.run(&["validator", "start", "alpha"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let ended = "ended by signal 9: its memory limit of 512MB ended it";
    assert!(refused.stderr.contains(ended), "{refused:?}");
    fs::remove_file(&greedy).unwrap();
    home.json(&["validator", "start", "alpha"]);
    fs::write(&greedy, "").unwrap();
    kill_process(home.process_of("local", "alpha"), Signal::KILL).unwrap();
    let shown = || -> Value { home.json(&["validator", "show", "alpha"]) };
    wait_until("it has died for good", || {
        let shown = shown();
        shown["status"] == "died" && text(&shown["reason"]).contains(ended)
    });
    home.json(&["devnet", "down"]);
    assert!(!alpha.exists() && !able.exists(), "cgroups are left");
}
