//! Guarantees for scripts: shapes of output, exit codes, nothing left behind.

use crate::{
    shape,
    support::{Home, list, wait_until},
};
use rustix::process::test_kill_process;
use serde_json::Value;
use std::{net::TcpStream, thread};

fn has_fields(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no `{field}` in {value}");
    }
}

#[test]
fn a_script_boots_a_devnet_runs_a_job_and_leaves_nothing() {
    let home = Home::new();
    let up = home.up(&["--wait", "3"]);
    has_fields(
        &up,
        &[
            "name",
            "chain_id",
            "rpc_url",
            "home",
            "head",
            "validators",
            "runners",
            "pid",
            "ready_ms",
        ],
    );
    assert!(up["head"]["height"].as_u64().unwrap() >= 3);
    let status = home.json(&["devnet", "status"]);
    has_fields(&status, &["name", "running", "head", "validators", "runners"]);
    assert_eq!(list(&status["validators"]).len(), 4);
    assert_eq!(list(&status["runners"]).len(), 4);

    let job = home.json(&["job", "submit", "custom", "--wait", "--", "sh", "-c", "echo hi"]);
    has_fields(&job, &["job_id", "status", "result", "submitted_at", "final_at", "latency_ms"]);
    assert_eq!(job["status"], "Verified");
    let id = job["job_id"].as_str().unwrap();
    let result = home.run(&["job", "result", id]);
    assert_eq!((result.code, result.stdout.as_str()), (0, "hi\n"));

    let shown = home.json(&["job", "show", id]);
    has_fields(
        &shown,
        &["job_id", "kind", "submitter", "status", "committee", "attempts", "result", "events"],
    );
    let events: Vec<_> =
        list(&shown["events"]).iter().map(|e| e["event"].as_str().unwrap()).collect();
    assert_eq!(events.first().copied(), Some("JobSubmitted"));
    assert_eq!(events.last().copied(), Some("JobVerified"));

    let explained = home.json(&["job", "explain", id]);
    has_fields(&explained, &["job_id", "height", "candidates", "seed", "draws"]);
    assert_eq!(list(&explained["candidates"]).len(), 4);
    has_fields(&explained["draws"][0], &["draw", "r", "total", "picked"]);
    home.json(&["job", "verify-selection", id]);

    let mru = home.json(&["mru", "ls"]);
    has_fields(&mru[0], &["submitter", "kind", "runner", "set_at", "expires_at", "live"]);
    assert_eq!(mru[0]["runner"], explained["draws"][0]["picked"]);
    assert_eq!(mru[0]["live"], true);

    let pid = home.pid("local");
    let url = up["rpc_url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    home.json(&["devnet", "down"]);
    wait_until("the process is gone", || test_kill_process(pid).is_err());
    assert!(TcpStream::connect(url).is_err(), "the API still listens");
    assert!(!home.path("local/devnet.json").exists());
    assert!(home.fails(4, &["chain", "head"]).contains("devnet"));
    shape::seen(&["devnet up", "devnet down"]);
}

#[test]
fn exit_codes_say_what_went_wrong() {
    let home = Home::new();
    home.fails(4, &["chain", "head"]);
    home.fails(4, &["--devnet", "nowhere", "chain", "head"]);
    assert_eq!(home.run(&["chain", "fly"]).code, 2);
    home.up(&[]);
    let taken = home.fails(8, &["devnet", "up", "--detach"]);
    assert!(taken.contains("local"), "{taken}");
    home.fails(3, &["chain", "block", "1000000"]);
    home.fails(3, &["job", "show", &format!("0x{}", "0".repeat(64))]);
    home.fails(3, &["runner", "show", "nobody"]);
    home.fails(3, &["account", "balance", "0x12"]);
    let poor = home.fails(6, &["account", "transfer", "dev-0", "dev-1", "1000000000000cby"]);
    assert!(poor.contains("Insufficient"), "{poor}");
    home.fails(5, &["chain", "wait", "1000000", "--timeout", "200ms"]);
    let failing =
        home.run(&["job", "submit", "custom", "--wait", "--timeout-blocks", "5", "--", "false"]);
    assert_eq!(failing.code, 1, "{failing:?}");
}

#[test]
fn money_moves_and_shows() {
    let home = Home::new();
    home.up(&[]);
    let balance = |name: &str| -> u128 {
        let shown = home.json(&["account", "balance", name]);
        shown["balance"].as_str().unwrap().parse().unwrap()
    };
    let before = balance("dev-1");
    let sent = home.json(&["account", "transfer", "dev-0", "dev-1", "1.5cby"]);
    assert_eq!(sent["status"], "success");
    assert_eq!(balance("dev-1"), before + 1_500_000_000);
    home.json(&["account", "fund", "dev-1", "2cby"]);
    assert_eq!(balance("dev-1"), before + 3_500_000_000);
    let shown = home.json(&["chain", "tx", sent["hash"].as_str().unwrap()]);
    assert_eq!(shown["status"], "success");
    let block = home.json(&["chain", "block", &shown["height"].to_string()]);
    has_fields(
        &block,
        &[
            "height",
            "hash",
            "parent",
            "proposer",
            "view",
            "state_root",
            "transactions",
            "certificate_for",
            "events",
        ],
    );
    assert_eq!(block["transactions"][0]["hash"], sent["hash"]);
    let runners = home.json(&["runner", "ls"]);
    has_fields(
        &runners[0],
        &[
            "name",
            "address",
            "pubkey",
            "index",
            "stake",
            "reputation",
            "kinds",
            "active_jobs",
            "status",
            "subset",
            "present",
        ],
    );
    shape::seen(&["account fund"]);
}

#[test]
fn three_devnets_run_side_by_side() {
    let home = Home::new();
    let names = ["one", "two", "three"];
    thread::scope(|scope| {
        for name in names {
            let home = &home;
            scope.spawn(move || home.up(&["--name", name, "--wait", "3"]));
        }
    });
    let devnets = home.json(&["devnet", "ls"]);
    assert_eq!(list(&devnets).len(), 3);
    let which = home.fails(2, &["chain", "head"]);
    assert!(which.contains("--devnet"), "{which}");
    for name in names {
        let job =
            home.json(&["--devnet", name, "job", "submit", "custom", "--wait", "--", "echo", name]);
        assert_eq!(job["status"], "Verified");
        home.json(&["--devnet", name, "devnet", "down"]);
    }
}

#[test]
fn a_stopped_devnet_goes_on_where_it_was() {
    let home = Home::new();
    home.up(&["--wait", "5"]);
    let hash = home.json(&["chain", "block", "5"])["hash"].clone();
    home.json(&["devnet", "down"]);
    let up = home.json(&["devnet", "up", "--detach"]);
    assert!(up["head"]["height"].as_u64().unwrap() >= 5);
    assert_eq!(home.json(&["chain", "block", "5"])["hash"], hash);
    home.json(&["devnet", "reset"]);
    home.up(&["--wait", "2"]);
    assert_ne!(home.json(&["chain", "block", "1"])["hash"], hash);
    shape::seen(&["devnet reset"]);
}
