//! The times that users wait for: `cargo bench -p cowboyctl --bench commands`.
//!
//! From `devnet up --detach` to a ready devnet with every runner present, 4 validators and 8
//! runners at 250 ms blocks: median of ten, and the memory of the process. Then the wall time of
//! single commands.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const ROUNDS: usize = 10;

fn cowboyctl(home: &Path, args: &[&str]) -> (Duration, String) {
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_cowboyctl"))
        .args(args)
        .env("COWBOYCTL_HOME", home)
        .env("COWBOYCTL_CONFIG", "/dev/null")
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let took = start.elapsed();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    (took, String::from_utf8_lossy(&output.stdout).into_owned())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Resident memory of the devnet's process, in MiB.
fn resident(home: &Path) -> u64 {
    let record = fs::read_to_string(home.join("local/devnet.json")).expect("it runs");
    let pid: u64 = record
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"pid\": ")?.trim_end_matches(',').parse().ok())
        .expect("the record has a pid");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let kib = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("Linux tells");
    kib.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let up = ["devnet", "up", "--detach", "--block-time", "250ms", "--runners", "8"];
    let (mut starts, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        starts.push(cowboyctl(home, &up).0);
        memory.push(resident(home));
        cowboyctl(home, &["devnet", "down"]);
        cowboyctl(home, &["devnet", "reset", "local"]);
    }
    memory.sort_unstable();
    println!("devnet up --detach to every runner present: median {:.3?}", median(starts));
    println!("resident: median {} MiB, most {} MiB", memory[ROUNDS / 2], memory[ROUNDS - 1]);
    cowboyctl(home, &[&up[..], &["--wait", "6"]].concat());
    for args in [&["--version"][..], &["presence", "show", "4"], &["chain", "head"]] {
        let times = (0..ROUNDS).map(|_| cowboyctl(home, args).0).collect();
        println!("{}: median {:.1?}", args.join(" "), median(times));
    }
    cowboyctl(home, &["devnet", "down"]);
}
