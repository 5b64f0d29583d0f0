//! The model with invented times.

use super::*;
use crate::speculation::pipeline::Pipeline;

const COST: Cost = Cost { work_ms: 10, proof_ms: 1_000, late_ms: 0 };

/// A block every 100 ms, seen 20 ms after it was made.
fn devnet(settings: &[(&str, &str)]) -> Devnet {
    let config = Config::default().with(settings.iter().copied()).unwrap();
    Devnet::synchronous(&config, 0, (100, 20))
}

fn ahead(settings: &[(&str, &str)]) -> Devnet {
    let settings = [&[("enabled", "true")], settings].concat();
    let config = Config::default().with(settings).unwrap();
    let stake = Wei::new(100_000_000_000_000);
    Devnet { config, stake, bonds: Bonds::DEFAULT, expires: true, ..devnet(&[]) }
}

fn played(tasks: &str, cost: Cost, devnet: &Devnet) -> Forecast {
    let text = format!("name: p\ntasks:\n{tasks}");
    let pipeline = serde_yaml::from_str::<Pipeline>(&text).unwrap().check().unwrap();
    let costs = vec![cost; pipeline.tasks.len()];
    forecast(pipeline, (&Address([1; 20]), 1), &costs, devnet)
}

fn check(tasks: &str, cost: Cost, devnet: &Devnet, expected: u64) {
    assert_eq!(played(tasks, cost, devnet).length_ms, Some(expected), "{tasks}");
}

fn chain(tasks: u32) -> String {
    let parents = |n: u32| n.checked_sub(1).map_or(String::new(), |n| format!("t{n}"));
    let task = |n| format!("- {{ id: t{n}, command: [x], depends_on: [{}] }}\n", parents(n));
    (0..tasks).map(task).collect()
}

fn wide(tasks: u32) -> String {
    let task = |n| format!("- {{ id: t{n}, command: [x] }}\n");
    (0..tasks).map(task).collect()
}

#[test]
fn a_chain_is_one_after_the_other() {
    let usual = devnet(&[]);
    // 1,010 ms, then the next block; blocks are at 50 ms after each multiple of 100 ms.
    check(&chain(1), COST, &usual, 1_050);
    check(&chain(2), COST, &usual, 2_150);
    check(&chain(2), Cost { late_ms: 7, ..COST }, &usual, 2_157);
    check(&chain(2), COST, &Devnet { latency_ms: 500, ..usual }, 3_020);
}

#[test]
fn a_wide_pipeline_waits_for_branches_provers_and_submissions() {
    let most =
        [("maxParallelBranches", "16"), ("proof.workerThreads", "16"), ("maxConcurrent", "16")];
    let fewer =
        |option: &str| devnet(&most.map(|(name, n)| (name, if name == option { "4" } else { n })));
    let many = devnet(&most);
    check(&wide(8), COST, &many, 1_050);
    check(&wide(8), COST, &fewer("maxParallelBranches"), 2_150);
    check(&wide(8), COST, &fewer("proof.workerThreads"), 2_050);
    check(&wide(8), COST, &fewer("maxConcurrent"), 1_150);
    // The sender sends at most 32 transactions at a time: proofs wait one block behind claims.
    check(&wide(16), Cost { proof_ms: 0, ..COST }, &many, 150);
    check(&wide(8), Cost { proof_ms: 0, ..COST }, &many, 50);
}

const DIAMOND: &str = "- { id: a, command: [x] }\n\
                       - { id: b, command: [x], depends_on: [a] }\n\
                       - { id: c, command: [x], depends_on: [a] }\n\
                       - { id: d, command: [x], depends_on: [b, c] }\n";

#[test]
fn a_diamond_is_as_long_as_its_longest_path() {
    check(DIAMOND, COST, &devnet(&[]), 3_250);
}

#[test]
fn ahead_of_the_chain_outputs_wait_for_outputs_and_proofs_for_blocks() {
    let usual = ahead(&[("proof.workerThreads", "8")]);
    let five = played(&chain(5), COST, &usual);
    // Proofs at 1,010 to 1,050 ms, then one block for each from 1,050 ms on.
    assert_eq!(five.length_ms, Some(1_450));
    let depths: Vec<_> = five.tasks.iter().filter_map(|task| task.depth).collect();
    assert_eq!(depths, [0, 1, 2, 3, 4]);
    let bonds: Vec<_> = five.tasks.iter().filter_map(|task| task.bond).collect();
    assert_eq!(bonds, [100, 150, 200, 250, 300].map(Wei::cby));
    assert_eq!(five.peak, Wei::cby(1_000));
    let last = &five.tasks[4];
    assert_eq!((last.executed_ms, last.submitted_ms), (Some(50), Some(1_350)));
    assert!(five.tasks.iter().all(|task| task.waits.is_empty()));
    check(DIAMOND, COST, &usual, 1_250);
}

#[test]
fn what_is_not_accepted_says_for_what_it_waits() {
    let waits = |tasks: &str, devnet: &Devnet, at: usize| {
        let forecast = played(tasks, COST, devnet);
        let waits = forecast.tasks[at].waits.clone();
        waits.into_iter().map(|w| (w.reason, w.from_ms, w.until_ms)).collect::<Vec<_>>()
    };
    let shallow = ahead(&[("maxDepth", "1")]);
    assert_eq!(waits(&chain(3), &shallow, 2), [(Reason::DepthExceeded, 20, Some(1_050))]);
    let narrow = ahead(&[("maxParallelBranches", "2")]);
    // The last never had a turn to be refused.
    for at in [2, 5] {
        let reasons: Vec<_> = waits(&wide(6), &narrow, at).iter().map(|wait| wait.0).collect();
        assert_eq!(reasons, [Reason::TooManyBranches], "{at}");
    }
    let poor = Devnet { stake: Wei::cby(260), ..ahead(&[]) };
    // 200 CBY are locked until the first is confirmed, 150 until the second is, then 100.
    assert_eq!(waits(&chain(3), &poor, 2), [(Reason::InsufficientStake, 20, Some(1_150))]);
    let never = Devnet { stake: Wei::cby(99), ..ahead(&[]) };
    assert_eq!(waits(&chain(1), &never, 0), [(Reason::InsufficientStake, 0, None)]);
    assert_eq!(played(&chain(1), COST, &never).length_ms, None);
    let off = devnet(&[]);
    assert_eq!(waits(&chain(2), &off, 1), [(Reason::Disabled, 10, Some(1_050))]);
}

#[test]
fn a_breaker_that_is_open_lets_one_through_when_its_time_is_over() {
    let open = Devnet { breaker_ms: Some(500), ..ahead(&[]) };
    let three = played(&chain(3), COST, &open);
    let begins: Vec<_> = three.tasks.iter().map(|task| task.scheduled_ms.unwrap()).collect();
    // The probe starts at 500 ms. Its child waits for the breaker until the probe is confirmed,
    // which closes it.
    assert_eq!(begins[..2], [0, 500]);
    assert!(begins[2] > three.tasks[1].confirmed_ms.unwrap() - 1, "{begins:?}");
    assert_eq!(three.tasks[1].waits[0].reason, Reason::BreakerOpen);
}

#[test]
fn what_expires_takes_along_what_was_built_on_it() {
    let late = ahead(&[("claimBufferMs", "100")]);
    let tasks = "- { id: a, command: [x], claim_ms: 500 }\n\
                 - { id: b, command: [x], depends_on: [a] }\n";
    let both = played(tasks, COST, &late);
    let failed: Vec<_> = both.tasks.iter().map(|task| task.failed).collect();
    use RollbackReason::{AncestorFailed, ClaimExpired};
    assert_eq!(failed, [Some(ClaimExpired), Some(AncestorFailed)]);
    let refused = played(tasks, COST, &ahead(&[("claimBufferMs", "500")]));
    assert_eq!(refused.tasks[0].waits[0].reason, Reason::ClaimTooSoon);
    assert_eq!((refused.length_ms, refused.tasks[1].failed), (None, Some(AncestorFailed)));
}
