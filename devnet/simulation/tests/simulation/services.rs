//! Validators with consensus and runners with connections, all simulated.

use commonware_runtime::deterministic::Context;
use cowboy_devnet::sample::{spec, transfer};
use cowboy_engine::primitives::{Hash, Height};
use cowboy_simulation::{devnet::Devnet, run};
use std::time::Duration;

async fn reach(net: &Devnet, height: u64) {
    assert!(net.cluster.reach(height, Duration::from_secs(300)).await, "at {height}");
}

fn present(net: &Devnet, height: Height) -> usize {
    net.state(0).expect("it is there").present_at(height).map_or(0, <[_]>::len)
}

/// Runs a devnet under load for a minute, with a validator that crashes and returns; returns its
/// log's hash.
async fn a_minute(context: Context) -> Hash {
    let mut net = Devnet::new(context, 4, 8).await.expect("it is there");
    reach(&net, 6).await;
    assert_eq!(present(&net, net.state(0).expect("it is there").height()), 8);
    let mut jobs = Vec::new();
    for round in 0..10 {
        for account in 0..4 {
            jobs.push(net.submit(account, spec(100)).expect("it is there"));
        }
        if round == 3 {
            net.cluster.stop(3).await;
        }
        if round == 7 {
            net.cluster.start(3).expect("it is there");
        }
        reach(&net, 8 + 4 * round).await;
    }
    reach(&net, 100).await;
    let state = net.state(0).expect("it is there");
    for job_id in &jobs {
        assert_eq!(state.job(job_id).expect("it is there").status.name(), "Verified", "{job_id}");
    }
    assert_eq!(net.cluster.disagreement().expect("it is there"), None);
    // With four validators, each runner is connected to three, including the one that returned.
    assert!(net.runners.values().all(|runner| *runner.count().borrow() == 3));
    let connected: usize = net.gateways.lock().values().map(|g| g.connected().len()).sum();
    assert_eq!(connected, 24);
    assert_eq!(present(&net, state.height()), 8);
    net.cluster.log_hash(0).expect("it is there")
}

#[test]
fn jobs_are_done_while_a_validator_crashes_and_returns() {
    let first = run(1, a_minute);
    assert_eq!(run(1, a_minute), first);
}

#[test]
fn a_validator_without_runners_runs_on() {
    run(2, async |context| {
        let net = Devnet::new(context, 4, 0).await.expect("it is there");
        reach(&net, 5).await;
        let state = net.state(0).expect("it is there");
        let services = net.cluster.validator(0).expect("it is there").services();
        services.submit(transfer(&state, 0, 0, 1)).expect("it is there");
        reach(&net, 10).await;
    });
}
