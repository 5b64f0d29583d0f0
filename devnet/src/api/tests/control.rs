//! Requests that change state: authorization, refusals and effects.

use super::fixture::*;
use crate::{
    client::Client,
    types::{Bytes, CapabilitiesRequest, ErrorCode, Text, TransactionRequest, ValidatorState},
};
use cowboy_engine::{
    chain::{Payload, Transaction},
    primitives::{Height, Wei},
};
use futures::FutureExt as _;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

async fn post(
    devnet: &Devnet,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> (StatusCode, Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut request = client.post(format!("{}{path}", devnet.url)).json(body);
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

#[tokio::test]
async fn changing_state_needs_the_token() {
    let devnet = Devnet::new().await;
    let wrong = ["", "5ecret", "Bearer", "Bearer ", "Bearer wrong", "Bearer 5ecre", "Basic 5ecret"];
    let tokens = wrong.into_iter().map(Some).chain([None]);
    for token in tokens {
        for path in [
            "/v1/transactions",
            "/v1/validators/validator-0/stop",
            "/v1/validators/validator-0/start",
            "/v1/validators/validator-0/resync",
            "/v1/runners/runner-0/stop",
            "/v1/runners/runner-0/start",
            "/v1/runners/runner-0/pause",
            "/v1/runners/runner-0/resume",
            "/v1/runners/runner-0/backpressure",
            "/v1/runners/runner-0/capabilities",
            "/v1/faults",
            "/v1/chain/advance",
            "/v1/accounts",
            "/v1/snapshots",
            "/v1/shutdown",
        ] {
            let (status, body) = post(&devnet, path, token, &json!({ "transaction": "0x" })).await;
            assert_eq!(status, 401, "{path} {token:?}");
            assert_eq!(body["error"]["code"], "unauthorized");
            assert!(body["error"]["hint"].as_str().unwrap().contains("`token` file"));
        }
    }
    assert!(devnet.backend.slot("validator-0").unwrap().running().is_some());
    let client = Client::new(&devnet.url).unwrap();
    let error = client.stop_validator("validator-0").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unauthorized));
    for which in [None, Some("validator-0")] {
        let error = client.heal_faults(which).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Unauthorized));
    }
    let (status, _) = post(&devnet, "/v1/shutdown", Some("bearer 5ecret"), &Value::Null).await;
    assert_eq!(status, 202, "schemes have no case");
}

#[tokio::test]
async fn a_transaction_is_taken_once_and_refused_by_name() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let signed = devnet.sign("faucet", transfer("dev-0", Wei::cby(1)));
    for _ in 0..2 {
        let accepted = devnet.client.submit(&request(&signed)).await.unwrap();
        assert_eq!(*accepted.hash, signed.hash());
    }
    assert_eq!(devnet.mempool(0).with(|pool| pool.len()), 1);
    assert_eq!(devnet.mempool(1).with(|pool| pool.len()), 1, "all validators have it");
    devnet.push(vec![signed.clone()]);
    devnet.mempool(0).settle(&devnet.state);
    devnet.client.submit(&request(&signed)).await.expect("in a block: as good as taken");

    let check =
        async |request: TransactionRequest, code: ErrorCode, name: Option<&str>, text: &str| {
            let error = devnet.client.submit(&request).await.unwrap_err();
            let crate::client::ClientError::Refused(detail) = error else { panic!("{error}") };
            assert_eq!((detail.code, detail.name.as_deref()), (code, name));
            assert!(detail.message.contains(text), "{}", detail.message);
        };
    let used = devnet.sign_at("faucet", 0, transfer("dev-0", Wei::cby(2)));
    check(request(&used), ErrorCode::Rejected, Some("NonceTooLow"), "0 where 1 is next").await;
    let poor = devnet.sign("dev-0", transfer("faucet", Wei::cby(9_999_999)));
    check(request(&poor), ErrorCode::Rejected, Some("InsufficientBalance"), "CBY are missing")
        .await;
    let transaction = signed.transaction.clone();
    let foreign = Transaction { chain_id: 7, ..transaction }.sign(&key("faucet"));
    check(request(&foreign), ErrorCode::Rejected, Some("WrongChain"), "for chain 0x7").await;
    let bytes = |bytes: Vec<u8>| TransactionRequest { transaction: Text(Bytes(bytes)) };
    for garbage in [vec![], vec![0xff; 40], signed.to_bytes()[1..].to_vec()] {
        check(bytes(garbage), ErrorCode::BadRequest, None, "transaction: ").await;
    }
    let trailing = [signed.to_bytes(), vec![0]].concat();
    check(bytes(trailing), ErrorCode::BadRequest, None, "transaction: ").await;
}

#[tokio::test]
async fn a_transaction_for_one_validator_goes_to_that_one_alone() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let signed = devnet.sign("faucet", transfer("dev-0", Wei::cby(1)));
    devnet.at("validator-1").submit(&request(&signed)).await.unwrap();
    let waits = |validator: usize| devnet.mempool(validator).with(|pool| pool.len());
    assert_eq!((waits(0), waits(1)), (0, 1));
    let stopped = devnet.at("validator-2").submit(&request(&signed)).await.unwrap_err();
    assert_eq!(stopped.code(), Some(ErrorCode::Unavailable));
}

#[tokio::test]
async fn what_waits_at_a_validator_that_fell_behind_takes_no_nonce() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let signed = devnet.sign("faucet", transfer("dev-0", Wei::cby(1)));
    devnet.at("validator-1").submit(&request(&signed)).await.unwrap();
    let next = async |devnet: &Devnet| devnet.client.account("faucet").await.unwrap().next_nonce;
    assert_eq!(next(&devnet).await, 1);
    for _ in 0..4 {
        devnet.push_to(&[0], vec![], vec![]);
    }
    assert_eq!(next(&devnet).await, 0);
    let other = devnet.sign("faucet", transfer("dev-0", Wei::cby(2)));
    devnet.client.submit(&request(&other)).await.unwrap();
    assert!(devnet.mempool(0).with(|pool| pool.get(&other.hash()).is_some()));
}

#[tokio::test]
async fn a_runner_sends_its_own_heartbeat_without_token() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let beat = devnet.sign("runner-0", Payload::RunnerHeartbeat);
    let send = async |runner: &str, signed| {
        let body = serde_json::to_value(request(signed)).unwrap();
        let (status, body) =
            post(&devnet, &format!("/runner/{runner}/heartbeat"), None, &body).await;
        (status.as_u16(), body["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let own = address("runner-0").to_string();
    assert_eq!(send(&own, &beat).await, (202, String::new()));
    assert!(devnet.mempool(0).with(|pool| pool.get(&beat.hash()).is_some()));
    let (status, message) = send(&address("runner-1").to_string(), &beat).await;
    assert_eq!(status, 400);
    assert!(message.contains(&format!("signed by {own}")), "{message}");
    let other = devnet.sign("runner-0", transfer("faucet", Wei::cby(1)));
    let (status, message) = send(&own, &other).await;
    assert_eq!(status, 400);
    assert!(message.contains("a `transfer` where a `runner_heartbeat` is expected"), "{message}");
    let poor = devnet.sign("runner-1", Payload::RunnerHeartbeat);
    let (status, message) = send("runner-1", &poor).await;
    assert_eq!((status, message.split(':').next()), (422, Some("InsufficientBalance")));
}

#[tokio::test]
async fn validators_stop_and_start() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let client = devnet.client.clone();
    let stopped = client.stop_validator("validator-0").await.unwrap();
    assert_eq!((stopped.status, stopped.height), (ValidatorState::Stopped, 2));
    let error = client.stop_validator("validator-0").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
    assert_eq!(error.to_string(), "validator `validator-0` is stopped already");
    assert_eq!(client.head().await.unwrap().height, 2, "another validator answers");
    devnet.push_to(&[1], vec![], vec![]);

    let started = client.start_validator(&address("validator-0").to_string()).await.unwrap();
    assert_eq!((started.status, started.height), (ValidatorState::Starting, 2));
    let error = client.start_validator("validator-0").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
    let error = client.start_validator("validator-2").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Internal));
    assert!(error.to_string().ends_with("is not running: its port is taken"), "{error}");
    let error = client.start_validator("faucet").await.unwrap_err();
    assert_eq!(error.to_string(), "faucet is not a validator");
    assert_eq!(client.stop_validator("x").await.unwrap_err().code(), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn runners_of_the_process_are_steered_stopped_and_started() {
    let client = Devnet::new().await;
    let client = &client.client;
    let own = address("runner-1").to_string();
    let paused = client.pause_runner(&own).await.unwrap();
    assert_eq!((paused.name.as_str(), paused.accepting_new), ("runner-1", false));
    assert_eq!(paused.reason.as_deref(), Some("paused"));
    let resumed = client.resume_runner("runner-1").await.unwrap();
    assert_eq!((resumed.accepting_new, resumed.reason), (true, None));
    assert_eq!(client.limit_runner("runner-1", 1).await.unwrap().max_concurrent, 1);
    for wrong in [0, 1_025] {
        let error = client.limit_runner("runner-1", wrong).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::BadRequest), "{error}");
    }

    let change = async |runner: &str, label: &str| {
        let remove = vec![label.to_owned()];
        let request = CapabilitiesRequest { remove, ..CapabilitiesRequest::default() };
        client.change_capabilities(runner, &request).await
    };
    assert_eq!(change("runner-1", "llm:small").await.unwrap().withdrawn, ["llm:small"]);
    for (runner, label, code) in
        [("runner-1", "fax", ErrorCode::BadRequest), ("validator-0", "http", ErrorCode::NotFound)]
    {
        let error = change(runner, label).await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
    }
    let shown = client.runner("runner-1").await.unwrap();
    assert!(shown.connections.iter().any(|one| one.withdrawn == ["custom", "mcp:files"]));

    let stopped = client.stop_runner("runner-1").await.unwrap();
    assert_eq!((stopped.running, stopped.reason.as_deref()), (false, Some("stopped")));
    assert_eq!(client.runner_load("runner-1").await.unwrap(), stopped);
    for error in [
        client.stop_runner("runner-1").await.unwrap_err(),
        client.pause_runner("runner-1").await.unwrap_err(),
    ] {
        assert_eq!(error.code(), Some(ErrorCode::Conflict), "{error}");
        assert!(error.to_string().starts_with("runner `runner-1` is stopped"), "{error}");
    }
    assert!(client.start_runner("runner-1").await.unwrap().running);
    for strange in ["validator-0", "dev-0", "x", "0x12"] {
        let error = client.stop_runner(strange).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::NotFound), "{strange}: {error}");
    }
}

#[tokio::test]
async fn a_validator_is_switched_by_one_request_at_a_time() {
    let devnet = Devnet::new().await;
    let held = devnet.backend.slot("validator-0").unwrap().switching.clone().lock_owned().await;
    let error = devnet.client.stop_validator("validator-0").await.unwrap_err();
    assert_eq!(error.to_string(), "validator `validator-0` is being started or stopped");
    drop(held);
    devnet.client.stop_validator("validator-0").await.unwrap();
}

#[tokio::test]
async fn the_pace_is_lifted_from_the_head_on_and_within_bounds() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(3);
    let second = Duration::from_secs(1);
    let spared = |height| {
        let spares = devnet.backend.fast_forward().spares(Height::new(height), SystemTime::now());
        spares.now_or_never().is_some()
    };
    assert!(!spared(4));
    let advance = devnet.client.advance(5, 60 * second).await.unwrap();
    assert_eq!((advance.from, advance.to), (3, 8));
    assert!(spared(8));
    assert!(!spared(9));
    let further = devnet.client.advance(7, second).await.unwrap();
    assert_eq!(further.to, 10);
    assert!(spared(10));
    for (blocks, within) in
        [(0, second), (100_001, second), (1, Duration::ZERO), (1, 3_601 * second)]
    {
        let error = devnet.client.advance(blocks, within).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::BadRequest), "{blocks} {within:?}: {error}");
    }
    for validator in ["validator-0", "validator-1"] {
        devnet.client.stop_validator(validator).await.unwrap();
    }
    let error = devnet.client.advance(1, second).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unavailable), "{error}");
}

#[tokio::test]
async fn accounts_are_given_names() {
    let devnet = Devnet::new().await;
    let alice = devnet.client.name_account("alice", address("alice")).await.unwrap();
    assert_eq!((alice.name.as_deref(), *alice.address), (Some("alice"), address("alice")));
    devnet.client.name_account("alice", address("alice")).await.expect("it is so already");
    let accounts = devnet.client.accounts().await.unwrap();
    let names: Vec<_> = accounts.iter().filter_map(|account| account.name.as_deref()).collect();
    assert_eq!(names[..3], ["faucet", "dev-0", "alice"]);
    assert_eq!(names.iter().filter(|name| **name == "alice").count(), 1);
    for taken in ["alice", "faucet", "validator-3", "runner-0"] {
        let error = devnet.client.name_account(taken, address("mallory")).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Conflict), "{taken}: {error}");
    }
    let error = devnet.client.name_account("No Name", address("mallory")).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::BadRequest), "{error}");
    let error = devnet.client.add_validator(Some("alice")).await.unwrap_err();
    assert_eq!(error.to_string(), "`alice` is the name of an account");
}

#[tokio::test]
async fn a_devnet_is_saved_by_whoever_runs_it() {
    let devnet = Devnet::new().await;
    assert_eq!(devnet.client.save(None).await.unwrap().snapshot, "api-7");
    assert_eq!(devnet.client.save(Some("mine")).await.unwrap().snapshot, "mine");
    let error = devnet.client.save(Some("taken")).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict), "{error}");
    let error = devnet.client.save(Some("../mine")).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::BadRequest), "{error}");
}

#[tokio::test]
async fn a_shutdown_is_begun_and_answered() {
    let devnet = Devnet::new().await;
    let stopping = devnet.client.shutdown().await.unwrap();
    assert_eq!(stopping.pid, 42);
    devnet.shutdown.notified().await;
}
