//! Blocks, transactions, events, accounts, nodes: reads of one validator's chain.

use super::fixture::*;
use crate::{
    client::BlockAt,
    types::{
        ConnectionEnd, ErrorCode, EventQuery, PresenceStanding, RunnerHealth, RunnerState,
        TransactionStatus, ValidatorState,
    },
};
use cowboy_engine::{
    chain::{GenesisValidator, Payload},
    primitives::Wei,
};

#[tokio::test]
async fn genesis_is_a_head() {
    let devnet = Devnet::new().await;
    let head = devnet.client.head().await.unwrap();
    assert_eq!((head.height, head.finalized_at), (0, None));
    let block = devnet.client.block(BlockAt::Latest).await.unwrap();
    assert_eq!((block.hash, block.proposer), (head.hash, None));
    assert_eq!(*block.state_root, devnet.state.root());
    let parameters = devnet.client.parameters().await.unwrap();
    assert_eq!((parameters.height, parameters.genesis), (1, head.hash));
    assert_eq!((parameters.validators, parameters.runners), (4, 3));
    assert_eq!(parameters.chain_id.0.0, devnet.state.chain_id());
}

#[tokio::test]
async fn a_block_tells_what_it_holds_and_did() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let paid = devnet.sign("faucet", transfer("dev-0", Wei::cby(5)));
    let poor = devnet.sign_at("faucet", 1, transfer("dev-0", Wei::cby(2_000_000)));
    let early = devnet.sign_at("faucet", 9, transfer("dev-0", Wei::cby(1)));
    devnet.push(vec![paid.clone(), poor.clone(), early.clone()]);

    let block = devnet.client.block(BlockAt::Height(3)).await.unwrap();
    assert_eq!(*block.hash, devnet.state.head_hash());
    assert_eq!(*block.parent, devnet.state.head().parent);
    assert_eq!((block.view, block.executed_height), (6, 2));
    let proposer = devnet.state.committee()[0].pubkey.address();
    assert_eq!(block.proposer_address.map(|a| a.0), Some(proposer));
    assert!(block.proposer.unwrap().starts_with("validator-"));
    assert_eq!(block.timestamp.as_millisecond() as u64, START_MS + 1_500);
    assert_eq!(block.finalized_at.unwrap().as_millisecond() as u64, START_MS + 1_520);
    assert_eq!((block.certificate_for, block.open), (vec![2], vec![]));
    let statuses: Vec<_> = block.transactions.iter().map(|t| t.status).collect();
    use TransactionStatus::{Failed, Pending, Skipped, Success};

    assert_eq!(statuses, [Success, Failed, Skipped]);
    let kinds: Vec<_> = block.events.iter().map(|e| e.kind.as_str()).collect();
    assert_eq!(kinds, ["PresenceDerived", "Transferred"]);
    assert!(block.cycles_used > 0 && block.cells_used > 0);

    let text = |hash: cowboy_engine::primitives::Hash| hash.to_string();
    let transaction = devnet.client.transaction(&text(paid.hash())).await.unwrap();
    assert_eq!((transaction.status, transaction.kind.as_str()), (Success, "transfer"));
    assert_eq!((transaction.height, transaction.index), (Some(3), Some(0)));
    assert_eq!(transaction.sender_name.as_deref(), Some("faucet"));
    assert_eq!(transaction.payload["amount"], "5000000000");
    assert_eq!(transaction.payload["to"], address("dev-0").to_string());
    assert_eq!(transaction.events.len(), 1);
    assert_eq!(transaction.events[0].data["from"], address("faucet").to_string());
    assert!(transaction.fee.unwrap().burned.get() > 0);

    let transaction = devnet.client.transaction(&text(poor.hash())).await.unwrap();
    assert_eq!(transaction.error.as_deref(), Some("InsufficientBalance"));
    assert!(transaction.fee.is_some() && transaction.events.is_empty());
    let transaction = devnet.client.transaction(&text(early.hash())).await.unwrap();
    assert_eq!((transaction.status, transaction.fee), (Skipped, None));
    assert_eq!(transaction.error.as_deref(), Some("WrongNonce"));

    let waiting = devnet.sign("dev-0", transfer("faucet", Wei::cby(1)));
    devnet.client.submit(&request(&waiting)).await.unwrap();
    let transaction = devnet.client.transaction(&text(waiting.hash())).await.unwrap();
    assert_eq!((transaction.status, transaction.height), (Pending, None));
    let error = devnet.client.transaction(&text(devnet.state.head_hash())).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    let error = devnet.client.transaction("0x12").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::BadRequest));
    assert!(error.to_string().contains("`0x12` is not a valid transaction hash"), "{error}");
}

#[tokio::test]
async fn heights_are_numbers_or_latest_and_not_ahead() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let check = async |path: &str, status: u16, message: &str| {
        let response = devnet.get(path).await;
        assert_eq!(response.status(), status, "{path}");
        let text = response.text().await.unwrap();
        assert!(text.contains(message), "{path}: {text}");
    };
    check("/v1/chain/blocks/latest", 200, "\"height\":2").await;
    check("/v1/chain/blocks/3", 404, "block 3 is not final yet; the head is 2").await;
    for height in ["-1", "+1", "1.5", "", "%20", "99999999999999999999", "%ff"] {
        let status = if height.is_empty() { 404 } else { 400 };
        check(&format!("/v1/chain/blocks/{height}"), status, "\"error\"").await;
    }
    // A validator that has fallen behind says so, and does not answer by default.
    devnet.push_to(&[1], vec![], vec![]);
    assert_eq!(devnet.client.head().await.unwrap().height, 3);
    let behind = devnet.at("validator-0");
    assert_eq!(behind.head().await.unwrap().height, 2);
    let error = behind.block(BlockAt::Height(3)).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unavailable));
    assert!(error.to_string().contains("only reached 2"), "{error}");
}

#[tokio::test]
async fn a_node_is_chosen_by_name_or_address() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    for node in ["validator-1", &address("validator-1").to_string()] {
        assert_eq!(devnet.at(node).head().await.unwrap().height, 1);
    }
    let check = async |node: &str, code: ErrorCode, message: &str| {
        for error in
            [devnet.at(node).head().await.unwrap_err(), devnet.at(node).status().await.unwrap_err()]
        {
            assert_eq!(error.code(), Some(code), "{node}");
            assert!(error.to_string().contains(message), "{error}");
        }
    };
    check("validator-2", ErrorCode::Unavailable, "`validator-2` is stopped").await;
    check("validator-9", ErrorCode::NotFound, "there is no validator `validator-9`").await;
    check("runner-0", ErrorCode::NotFound, "there is no validator `runner-0`").await;
}

#[tokio::test]
async fn event_pages_hold_whole_blocks() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let transfers = (0..3).map(|n| devnet.sign_at("faucet", n, transfer("dev-0", Wei::new(1))));
    let transfers = transfers.collect();
    devnet.push(transfers);
    devnet.push_empty(1);

    let page = async |from: u64, kind: Option<&str>, limit: usize| {
        let (from, kind) = (Some(from), kind.map(str::to_owned));
        let query = EventQuery { from, kind, limit: Some(limit) };
        let page = devnet.client.events(&query).await.unwrap();
        let places: Vec<_> = page.events.iter().map(|e| (e.height, e.index)).collect();
        (places, page.next)
    };
    // Blocks 1 (no presence), 2 and 4 have one event each, block 3 has four.
    let third = [(3, 0), (3, 1), (3, 2), (3, 3)];
    let all = [&[(1, 0), (2, 0)][..], &third, &[(4, 0)]].concat();
    assert_eq!(page(0, None, 100).await, (all, None));
    assert_eq!(page(0, None, 4).await, (vec![(1, 0), (2, 0)], Some(3)));
    assert_eq!(page(3, None, 2).await, (third.to_vec(), Some(4)));
    assert_eq!(page(4, None, 1).await, (vec![(4, 0)], None));
    assert_eq!(page(5, None, 1).await, (vec![], None));
    assert_eq!(page(0, Some("Transferred"), 1).await, (third[1..].to_vec(), Some(4)));
    assert_eq!(page(0, None, 0).await, (vec![(1, 0)], Some(2)));

    let text = devnet.get("/v1/chain/events?kind=transferred").await.text().await.unwrap();
    assert!(text.contains("no event is called `transferred`"), "{text}");
    assert!(text.contains("JobAssigned"), "{text}");
    let text = devnet.get("/v1/chain/events?limit=x").await.text().await.unwrap();
    assert!(text.contains("bad_request") && text.contains("limit"), "{text}");
    let bounds = async |path: &str, expected: &str| {
        let text = devnet.get(path).await.text().await.unwrap();
        assert!(text.contains(&format!(": expected a number from 0 to {expected}")), "{text}");
    };
    let too_large = "99999999999999999999";
    bounds(&format!("/v1/chain/events?limit={too_large}"), "18446744073709551615").await;
    let job = format!("/v1/jobs/0x{}", "01".repeat(32));
    bounds(&format!("{job}/explain?attempt={too_large}"), "4294967295").await;
    bounds(&format!("{job}/explain?attempt=4294967296"), "4294967295").await;
}

#[tokio::test]
async fn accounts_count_what_waits() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let signed = devnet.sign("faucet", transfer("dev-0", Wei::cby(5)));
    devnet.push(vec![signed]);
    for nonce in [1, 2] {
        let signed = devnet.sign_at("faucet", nonce, transfer("dev-0", Wei::cby(1)));
        devnet.client.submit(&request(&signed)).await.unwrap();
    }
    let faucet = devnet.client.account("faucet").await.unwrap();
    assert_eq!((faucet.nonce, faucet.next_nonce), (1, 3));
    assert_eq!(devnet.client.account(&faucet.address.to_string()).await.unwrap(), faucet);
    let dev = devnet.client.account("dev-0").await.unwrap();
    assert_eq!(dev.balance.0, Wei::cby(1_000_005));
    let new = devnet.client.account(&address("nobody").to_string()).await.unwrap();
    assert_eq!((new.name, new.balance.0, new.next_nonce), (None, Wei::ZERO, 0));
    let error = devnet.client.account("nobody").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));

    let accounts = devnet.client.accounts().await.unwrap();
    let names: Vec<_> = accounts.iter().map(|a| a.name.clone().unwrap()).collect();
    assert_eq!(names[..2], ["faucet", "dev-0"]);
    assert!(names.contains(&"runner-0".to_owned()), "{names:?}");
}

/// The names of a runner's subset, nearest first.
fn subset(devnet: &Devnet, runner: &str) -> Vec<String> {
    let subset = devnet.state.subset_of(&key(runner).public_key());
    let address = |validator: &&GenesisValidator| validator.pubkey.address();
    let slots = subset.iter().map(|v| devnet.backend.slot_at(&address(v)).unwrap());
    slots.map(|slot| slot.name().to_owned()).collect()
}

#[tokio::test]
async fn nodes_show_registry_set_and_connections() {
    let mut devnet = Devnet::new().await;
    let status = devnet.client.status().await.unwrap();
    assert!(!status.ready && status.running);
    assert!(status.validators.iter().any(|v| v.status == ValidatorState::Starting));
    devnet.push_empty(2);

    let status = devnet.client.status().await.unwrap();
    assert_eq!((status.name.as_str(), status.pid), ("api", Some(42)));
    assert_eq!(status.head.unwrap().height, 2);
    let state = |name: &str| status.validators.iter().find(|v| v.name == name).unwrap();
    assert_eq!(state("validator-0").status, ValidatorState::Running);
    assert_eq!(
        (state("validator-3").status, state("validator-3").height),
        (ValidatorState::Stopped, 0)
    );
    assert!(!status.ready, "two validators are stopped");
    for runner in &status.runners {
        assert_eq!(runner.status, RunnerState::Connected);
        let places = runner.connected_validators.iter().map(|name| state(name).index);
        let places: Vec<_> = places.collect();
        assert!(places.len() == 2 && places.is_sorted(), "{runner:?}");
    }

    let listed: Vec<_> = status.validators.iter().map(|v| (&v.name, v.index)).collect();
    let validators = devnet.client.validators().await.unwrap();
    assert_eq!(listed, validators.iter().map(|v| (&v.name, v.index)).collect::<Vec<_>>());
    let indices: Vec<_> = validators.iter().map(|v| v.index).collect();
    assert_eq!(indices, [0, 1, 2, 3].map(Some));
    for (validator, member) in validators.iter().zip(devnet.state.committee()) {
        assert_eq!(*validator.consensus_key.0, member.consensus_key);
        let wanted: Vec<_> = ["runner-0", "runner-1", "runner-2"]
            .into_iter()
            .filter(|runner| subset(&devnet, runner).contains(&validator.name))
            .collect();
        assert_eq!(validator.subset_of, wanted);
        let shown = devnet.client.validator(&validator.address.to_string()).await.unwrap();
        assert_eq!(shown, *validator);
    }
    let running = devnet.client.validator("validator-0").await.unwrap();
    assert_eq!(running.quic.as_deref(), Some("127.0.0.1:29001"));
    assert_eq!(running.connected_runners.len(), 3);
    let stopped = devnet.client.validator("validator-2").await.unwrap();
    assert_eq!((stopped.quic, stopped.connected_runners.len()), (None, 0));
    let error = devnet.client.validator("runner-0").await.unwrap_err();
    assert_eq!(error.to_string(), "runner-0 is not a validator");

    let runners = devnet.client.runners().await.unwrap();
    assert_eq!(runners.iter().map(|r| r.index).collect::<Vec<_>>(), [0, 1, 2]);
    let mut runner = devnet.client.runner("runner-1").await.unwrap();
    let ends: Vec<_> = runner.connections.iter_mut().map(|there| there.last_end.take()).collect();
    let lost = ConnectionEnd { by: "none".into(), reason: "lost".into(), height: 2 };
    for (end, validator) in ends.into_iter().zip(&runner.subset) {
        assert_eq!(end, (validator == "validator-1").then(|| lost.clone()), "{validator}");
    }
    assert_eq!(runner, runners[1]);
    assert_eq!((runner.status, runner.present), (RunnerHealth::Healthy, true));
    assert_eq!(runner.presence.as_ref().unwrap().standing, PresenceStanding::Present);
    assert_eq!((runner.kinds.join(","), runner.reputation), ("http,custom".to_owned(), 100));
    assert_eq!(runner.subset, subset(&devnet, "runner-1"));
    for (connection, validator) in runner.connections.iter().zip(&runner.subset) {
        assert_eq!(connection.validator, *validator);
        let expected = match validator.as_str() {
            "validator-0" | "validator-1" => (true, true, Some(7)),
            _ => (false, false, None),
        };
        let shown = (connection.connected, connection.locally_present, connection.last_ping);
        assert_eq!(shown, expected, "{validator}");
    }

    devnet.backend.set_runner_running(&address("runner-1"), false);
    let status = devnet.client.status().await.unwrap();
    assert_eq!(status.runners[1].status, RunnerState::Stopped);
    let leave = devnet.sign("runner-0", Payload::DeregisterRunner);
    devnet.push(vec![leave]);
    assert_eq!(devnet.client.runners().await.unwrap()[0].name, "runner-1");
    let error = devnet.client.runner("runner-0").await.unwrap_err();
    assert_eq!(error.to_string(), "runner runner-0 has left the registry");
    let error = devnet.client.runner("faucet").await.unwrap_err();
    assert_eq!(error.to_string(), "faucet is not registered as a runner");
}

#[tokio::test]
async fn a_devnet_at_rest_still_shows_its_nodes() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(3);
    for slot in devnet.backend.slots() {
        slot.set_stopped();
    }
    let status = devnet.client.status().await.unwrap();
    assert_eq!(status.head.unwrap().height, 3);
    assert!(status.validators.iter().all(|v| v.status == ValidatorState::Stopped));
    assert_eq!(devnet.client.validator("validator-0").await.unwrap().height, 3);
    assert_eq!(devnet.client.runners().await.unwrap().len(), 3);
    let error = devnet.client.head().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unavailable));
    assert_eq!(error.to_string(), "no validator is running");
}
