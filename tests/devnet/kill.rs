//! SIGKILL at random moments under load: the chain stays the same, nothing is lost or done twice,
//! and money is conserved.

use crate::support::{Home, Outcome, list, on_all_hosts, wait_until};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    env,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

on_all_hosts! {
    killed_at_random_moments_nothing_is_lost
    killed_between_commit_and_reveal_no_runner_pays_for_it
}

/// Rounds in CI; `COWBOYCTL_KILL_ROUNDS=20` for the whole loop.
const ROUNDS: u32 = 4;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

fn rounds() -> u32 {
    env::var("COWBOYCTL_KILL_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(ROUNDS)
}

/// A time of at least `least_ms`, which differs in each round, but not between runs of the test.
fn moment(seed: &mut u64, least_ms: u64) -> Duration {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    Duration::from_millis(least_ms + (*seed >> 33) % 1_500)
}

/// Kills the devnet after a while in which two accounts keep it busy; returns its answer about the
/// head just before. `load` is told the account and the number of its commands. Any outcome of a
/// command is fine: the process may be killed during it.
fn killed_under(home: &Home, after: Duration, load: impl Fn(&str, u32) + Sync) -> Outcome {
    let (stop, load) = (&AtomicBool::new(false), &load);
    thread::scope(|scope| {
        for worker in 0..2 {
            scope.spawn(move || {
                let account = format!("dev-{worker}");
                let counts = (1..).take_while(|_| !stop.load(Ordering::Relaxed));
                counts.for_each(|count| load(&account, count));
            });
        }
        thread::park_timeout(after);
        let head = home.run(&["--output", "json", "chain", "head"]);
        home.kill("local");
        stop.store(true, Ordering::Relaxed);
        head
    })
}

/// The number of times that each job was verified, from the chain's events.
fn verified_jobs(home: &Home) -> BTreeMap<String, u32> {
    let mut jobs = BTreeMap::new();
    let events = home.json(&["chain", "events", "--from", "0", "--kind", "JobVerified"]);
    for event in list(&events) {
        let id = event["job_id"].as_str().or_else(|| event["data"]["job_id"].as_str()).unwrap();
        *jobs.entry(id.to_owned()).or_default() += 1;
    }
    jobs
}

/// Hashes of all blocks up to the head.
fn chain(home: &Home, to: u64) -> Vec<Value> {
    (1..=to).map(|h| home.json(&["chain", "block", &h.to_string()])["hash"].clone()).collect()
}

fn killed_at_random_moments_nothing_is_lost(home: &Home) {
    home.up(&["--seed", "11"]);
    let supply = home.json(&["devnet", "status"])["supply"]["total"].clone();
    assert!(supply.is_string(), "status tells the supply");
    let mut known: Vec<Value> = Vec::new();
    let mut seed = SEED;
    for round in 0..rounds() {
        let load = |account: &str, count: u32| {
            if count.is_multiple_of(2) {
                home.run(&["account", "transfer", account, "dev-5", "1wei"]);
            } else {
                home.run(&["job", "submit", "custom", "--from", account, "--", "echo"]);
            }
        };
        let head = killed_under(home, moment(&mut seed, 400), load);
        // A block that was reported final before the kill is final after it.
        known.extend((head.code == 0).then(|| head.json()));
        home.json(&["devnet", "up", "--detach"]);
        for told in &known {
            let height = told["height"].as_u64().unwrap();
            if height > 0 {
                let block = home.json(&["chain", "block", &height.to_string()]);
                assert_eq!(block["hash"], told["hash"], "round {round}");
            }
        }
        let status = home.json(&["devnet", "status"]);
        assert_eq!(status["supply"]["total"], supply, "round {round}");
    }
    // Every submitted job ends, and only once.
    let head = home.height();
    home.wait_height(head + 3);
    for (job, times) in verified_jobs(home) {
        assert_eq!(times, 1, "job {job} was final {times} times");
    }
    let head = home.height();
    let mut chains = (0..4).map(|i| {
        let node = format!("validator-{i}");
        let wait = ["--node", &node, "chain", "wait", &head.to_string(), "--timeout", "60s"];
        home.json(&wait);
        home.json(&["--node", &node, "chain", "block", &head.to_string()])["hash"].clone()
    });
    let first = chains.next().unwrap();
    assert!(chains.all(|hash| hash == first));
    let blocks = chain(home, head.min(20));
    assert_eq!(blocks.len() as u64, head.min(20));
}

/// Events of a kind since the chain's start.
fn events(home: &Home, kind: &str) -> Vec<Value> {
    list(&home.json(&["chain", "events", "--from", "0", "--kind", kind])).clone()
}

fn killed_between_commit_and_reveal_no_runner_pays_for_it(home: &Home) {
    home.up(&["--seed", "12"]);
    let mut seed = SEED;
    for _ in 0..rounds() {
        let load = |account: &str, _| {
            let job = ["job", "submit", "custom", "--from", account];
            let committee = ["--verify", "deterministic", "--runners", "3"];
            home.run(&[&job[..], &committee, &["--", "echo", "hi"]].concat());
        };
        killed_under(home, moment(&mut seed, 600), load);
        home.json(&["devnet", "up", "--detach"]);
    }
    let submitted = events(home, "JobSubmitted").len();
    assert!(submitted > 0, "there was load");
    wait_until("every job is verified", || events(home, "JobVerified").len() == submitted);
    assert_eq!(events(home, "JobRetried"), [] as [Value; 0]);
    let lost: Vec<_> = events(home, "ReputationChanged")
        .into_iter()
        .filter(|event| event["data"]["after"].as_u64() < event["data"]["before"].as_u64())
        .collect();
    assert_eq!(lost, [] as [Value; 0]);
    home.json(&["devnet", "down"]);
}
