//! Updates of a runner's registration, and the recovery of a runner that lost stake.

use super::*;
use crate::{
    chain::{
        event::RunnerUpdated,
        transaction::{SlashRunner, UpdateRunner},
    },
    job::{filter::Filter, needs, spec::VerificationMode},
    registry::Ability,
};

fn update(change: impl FnOnce(&mut UpdateRunner)) -> Payload {
    let mut update =
        UpdateRunner { capabilities: capabilities(), price_per_second: Wei::cby(1), stake: None };
    change(&mut update);
    Payload::UpdateRunner(update)
}

fn staking(stake: Wei) -> Payload {
    update(|update| update.stake = Some(stake))
}

fn refused(chain: &mut Chain, by: &str, payload: Payload, error: &str) {
    let execution = chain.one(by, payload);
    let status = &execution.receipts[0].status;
    assert!(status.error().is_some_and(|text| text.starts_with(error)), "{status:?}");
}

/// A chain with one runner, whose account has this balance.
fn chain_with(balance: Wei) -> Chain {
    let mut genesis = genesis(1);
    let root = key("root").address();
    genesis.params.system_deployers = vec![root];
    genesis.endowments.push(Endowment { account: root, balance: Wei::cby(1_000) });
    genesis.endowments.push(Endowment { account: key("runner-0").address(), balance });
    let mut chain = Chain::new(&genesis);
    chain.push(vec![]);
    chain
}

fn record(chain: &Chain) -> crate::registry::Runner {
    chain.state.registry().get(&key("runner-0").address()).unwrap().clone()
}

#[test]
fn a_stake_grows_and_is_paid_for() {
    let mut chain = chain_with(Wei::cby(1_000));
    let more = MIN_STAKE.saturating_add(Wei::cby(600));
    let execution = chain.one("runner-0", staking(more));
    let receipt = &execution.receipts[0];
    assert_eq!(receipt.status, ReceiptStatus::Success);
    let fee = receipt.burned.saturating_add(receipt.tip);
    assert_eq!(chain.balance("runner-0"), Wei::cby(400).saturating_sub(fee));
    assert_eq!(record(&chain).stake, more);
    let told = EventKind::from(RunnerUpdated { runner: key("runner-0").address(), stake: more });
    assert!(execution.events.iter().any(|event| event.kind == told));

    let before = record(&chain);
    refused(&mut chain, "runner-0", staking(more.saturating_sub(Wei::new(1))), "StakeLowered: ");
    refused(&mut chain, "runner-0", staking(Wei::cby(9_999)), "InsufficientStake: ");
    let beyond = more.saturating_add(Wei::cby(400));
    refused(&mut chain, "runner-0", staking(beyond), "InsufficientBalance: ");
    refused(&mut chain, "alice", staking(more), "UnknownRunner: ");
    let nothing = update(|update| update.capabilities.kinds.clear());
    refused(&mut chain, "runner-0", nothing, "InvalidCapabilities: ");
    assert_eq!(record(&chain), before, "what was refused changes nothing");

    chain.one("runner-0", staking(more));
    let cheaper = update(|update| update.price_per_second = Wei::new(7));
    chain.one("runner-0", cheaper);
    assert_eq!((record(&chain).stake, record(&chain).price_per_second), (more, Wei::new(7)));
    let execution = chain.one("runner-0", Payload::DeregisterRunner);
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    refused(&mut chain, "runner-0", staking(beyond), "UnknownRunner: ");
}

#[test]
fn a_slashed_runner_that_tops_up_is_let_in_and_drawn_again() {
    let mut chain = chain_with(Wei::cby(100));
    let verification =
        Verification { mode: VerificationMode::EconomicBond, ..Verification::none() };
    let job_id = chain.submit(JobSpec { verification, ..spec() });
    let runner = key("runner-0");
    chain.one("bob", chain.result(job_id, "runner-0", &runner.address(), b"wrong"));
    let slashed = chain.one("root", Payload::SlashRunner(SlashRunner { job_id }));
    assert!(kinds(&slashed).contains(&"RunnerSlashed"));
    let validator = chain.state.subset_of(&runner.public_key())[0].pubkey.clone();
    let admitted = chain.state.admit(&runner.public_key(), &validator);
    assert_eq!(admitted, Err(GoodbyeReason::InsufficientStake));
    // Without enough stake it may still change its offer.
    chain.one("runner-0", update(|update| update.price_per_second = Wei::new(1)));
    assert!(record(&chain).stake < MIN_STAKE);

    let execution = chain.one("runner-0", staking(MIN_STAKE));
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    assert_eq!(record(&chain).stake, MIN_STAKE);
    let admitted = chain.state.admit(&runner.public_key(), &validator);
    assert_eq!(admitted, Ok(runner.address()));
    let job_id = chain.submit(spec());
    assert_eq!(chain.committee(&job_id), [runner.address()]);
}

#[test]
fn a_job_that_wants_a_tee_waits_for_a_runner_that_has_one() {
    let mut chain = Chain::new(&genesis(2));
    chain.push(vec![]);
    chain.one("alice", transfer("runner-1", Wei::cby(1)));
    let job_id = chain.submit(JobSpec { tee_required: true, ..spec() });
    let execution = chain.push(vec![]);
    for verdict in &execution.draws[0].verdicts {
        assert_eq!(verdict.dropped_by, Some(Filter::Tee));
        assert_eq!(verdict.reason, "runs in no trusted execution environment");
    }
    chain.one("runner-1", update(|update| update.capabilities.tee = true));
    // Filters read the registry as of the parent.
    chain.push(vec![]);
    assert_eq!(chain.committee(&job_id), [key("runner-1").address()]);
    assert_eq!(chain.state.registry().get(&key("runner-1").address()).unwrap().active_jobs, 1);
}

#[test]
fn what_a_job_needs_is_what_filters_ask_for() {
    let named = |document: &str| {
        let spec = document::read(Json::parse(document.as_bytes()).unwrap()).unwrap();
        needs::of(&spec).map(|need| need.to_string()).collect::<Vec<_>>()
    };
    let llm = r#"{"kind": "llm", "work": {"model": "small", "embedding_model": "e",
        "messages": [{"role": "user", "content": "hi"}]}, "tee_required": true}"#;
    assert_eq!(named(llm), ["llm", "llm:small", "llm:e", "tee"]);
    let mcp = r#"{"kind": "mcp", "work": {"server": "files", "tool": "t"},
        "required_runner_pool": "eu"}"#;
    assert_eq!(named(mcp), ["mcp", "mcp:files", "pool:eu"]);
    assert_eq!(needs::of(&spec()).collect::<Vec<_>>(), [Ability::Kind(JobKind::Custom)]);
}
