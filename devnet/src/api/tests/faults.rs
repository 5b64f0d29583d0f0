//! Faults: valid requests, refusals, healing.

use super::fixture::*;
use crate::{
    faults::Tap,
    types::{ErrorCode, Fault, FaultRequest, FaultSpec, LieKind, ValidatorState},
};
use cowboy_engine::presence::Bitmap;
use serde_json::{Value, json};

fn request(fault: FaultSpec) -> FaultRequest {
    FaultRequest { fault, seed: None, for_ms: None, for_blocks: None }
}

fn pause(at: &str) -> FaultSpec {
    FaultSpec::Pause { at: at.into() }
}

fn latency(at: &str, delay_us: u64, jitter_us: u64) -> FaultSpec {
    FaultSpec::Latency { at: at.into(), delay_us, jitter_us }
}

fn loss(at: &str, per_mille: u16) -> FaultSpec {
    FaultSpec::Loss { at: at.into(), per_mille }
}

fn partition(groups: &[&[&str]]) -> FaultSpec {
    let names = |group: &&[&str]| group.iter().map(|name| (*name).to_owned()).collect();
    FaultSpec::Partition { groups: groups.iter().map(names).collect() }
}

fn ids(faults: &[Fault]) -> Vec<u64> {
    faults.iter().map(|fault| fault.id).collect()
}

/// A fault in force as programs see it.
fn shown(fault: &Fault) -> Value {
    serde_json::to_value(fault).unwrap()
}

#[tokio::test]
async fn faults_are_laid_listed_and_healed() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(3);
    let client = devnet.client.clone();
    let lay = async |fault| client.lay_fault(&request(fault)).await.unwrap();
    devnet.backend.faults().reached(3);
    let first = lay(pause(&address("runner-1").to_string())).await;
    assert_eq!(
        shown(&first),
        json!({
            "id": 1, "kind": "pause", "at": "runner-1", "seed": 7, "since": 3,
            "until_height": null, "until": null, "dropped": 0, "delayed": 0, "lies": 0,
        })
    );
    let link = lay(latency("validator-2..runner-1", 50_000, 1_500)).await;
    assert_eq!(shown(&link)["at"], "runner-1..validator-2");
    lay(loss("validator-0", 5)).await;
    let groups: &[&[&str]] = &[&["validator-0", "validator-1"], &["runner-0"]];
    let parted = lay(partition(groups)).await;
    assert_eq!(shown(&parted)["groups"], json!(groups));
    let others = ["validator-2", "validator-3", "runner-1", "runner-2"];
    assert_eq!(shown(&parted)["others"], json!(others));
    assert_eq!(ids(&client.faults().await.unwrap()), [1, 2, 3, 4]);
    assert_eq!(ids(&client.status().await.unwrap().faults), [1, 2, 3, 4]);

    assert_eq!(ids(&client.heal_faults(Some("runner-1")).await.unwrap()), [1, 2]);
    // A partition does not belong to a node.
    assert!(client.heal_faults(Some("runner-1")).await.unwrap().is_empty());
    assert_eq!(ids(&client.heal_faults(Some("4")).await.unwrap()), [4]);
    let error = client.heal_faults(Some("4")).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    assert_eq!(ids(&client.heal_faults(None).await.unwrap()), [3]);
    assert!(client.heal_faults(None).await.unwrap().is_empty());
    assert!(client.status().await.unwrap().faults.is_empty());
}

#[tokio::test]
async fn what_is_killed_stands_as_a_fault_until_it_is_started() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let client = devnet.client.clone();
    let kill = async |at: &str| client.lay_fault(&request(FaultSpec::Kill { at: at.into() })).await;
    let status = async || client.validator("validator-0").await.unwrap().status;
    kill("validator-0").await.unwrap();
    assert_eq!(status().await, ValidatorState::Stopped);
    let error = kill("validator-0").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
    assert_eq!(error.to_string(), "validator `validator-0` is stopped already");
    client.start_validator("validator-0").await.unwrap();
    assert!(client.faults().await.unwrap().is_empty(), "any start heals it");

    kill("validator-0").await.unwrap();
    kill("runner-2").await.unwrap();
    let error = kill("runner-2").await.unwrap_err();
    assert_eq!(error.to_string(), "runner `runner-2` is stopped already");
    assert_eq!(ids(&client.heal_faults(None).await.unwrap()), [2, 3]);
    assert_eq!(status().await, ValidatorState::Starting);
    kill("runner-2").await.expect("it runs again");
    // A node that cannot be started stays killed and is reported; the others are healed.
    kill("validator-2").await.unwrap_err();
    kill("validator-1").await.unwrap();
}

fn lie(at: &str, votes: LieKind, of: Option<&str>) -> FaultSpec {
    FaultSpec::Lie { at: at.into(), votes, of: of.map(str::to_owned) }
}

#[tokio::test]
async fn lies_are_laid_on_validators_about_registered_runners() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let client = devnet.client.clone();
    let runner = address("runner-1").to_string();
    let request = |at: &str, votes, of| request(lie(at, votes, of));
    let about = client.lay_fault(&request("validator-0", LieKind::Ones, Some(&runner))).await;
    let about = shown(&about.unwrap());
    let expected = json!(["lie", "validator-0", "ones", "runner-1"]);
    assert_eq!(json!(["kind", "at", "votes", "of"].map(|key| about[key].clone())), expected);
    let all = client.lay_fault(&request("validator-0", LieKind::Zeros, None)).await.unwrap();
    assert_eq!(shown(&all).get("of"), None);
    // It replaces the lie about all runners, not the one about one runner.
    client.lay_fault(&request("validator-0", LieKind::Flip, None)).await.unwrap();
    assert_eq!(ids(&client.faults().await.unwrap()), [1, 3]);
    let order = devnet.backend.newest().registry().order().clone();
    let seen = Bitmap::from_fn(order.len(), |runner| runner == 0);
    let vote = |node: &str| {
        let told = Tap::new(devnet.backend.faults().clone(), node).vote(&order, seen.clone());
        told.ones().collect::<Vec<_>>()
    };
    // First runner-1 is added, then every bit is flipped.
    assert_eq!(vote("validator-0"), [2]);
    assert_eq!(vote("validator-1"), [0]);
    let lies: Vec<_> = client.faults().await.unwrap().iter().map(|fault| fault.lies).collect();
    assert_eq!(lies, [1, 1]);
    assert_eq!(ids(&client.heal_faults(Some("validator-0")).await.unwrap()), [1, 3]);
    assert_eq!(vote("validator-0"), [0]);
    let check = async |request: FaultRequest, code: ErrorCode, text: &str| {
        let error = client.lay_fault(&request).await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    let of_runner = request("runner-0", LieKind::Ones, None);
    check(of_runner, ErrorCode::BadRequest, "only validators vote").await;
    let (missing, not_found) = ("no runner `validator-1` is registered", ErrorCode::NotFound);
    check(request("validator-0", LieKind::Ones, Some("validator-1")), not_found, missing).await;
    let unknown = "no runner `` is registered";
    check(request("validator-0", LieKind::Ones, Some("")), not_found, unknown).await;
    check(request("validator-9", LieKind::Ones, None), not_found, "no node `validator-9`").await;
}

#[tokio::test]
async fn nonsense_is_refused() {
    let devnet = Devnet::new().await;
    let check = async |request: FaultRequest, code: ErrorCode, text: &str| {
        let error = devnet.client.lay_fault(&request).await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    let bad = ErrorCode::BadRequest;
    let unknown = "there is no node `validator-9`";
    check(request(pause("validator-9")), ErrorCode::NotFound, unknown).await;
    check(request(latency("validator-0..validator-9", 1, 0)), ErrorCode::NotFound, unknown).await;
    check(request(pause("faucet")), ErrorCode::NotFound, "no node `faucet`").await;
    check(request(pause("")), ErrorCode::NotFound, "no node ``").await;
    check(request(loss("runner-0", 1_001)), bad, "1001 of a thousand cannot be lost").await;
    check(request(loss("runner-0", 0)), bad, "0 of a thousand").await;
    check(request(latency("runner-0", 0, 0)), bad, "needs a delay or a jitter").await;
    check(
        request(latency("runner-0", 40_000_000, 30_000_000)),
        bad,
        "1 µs to 1 m, not by 1 m 10 s",
    )
    .await;
    check(request(latency("runner-0", u64::MAX, u64::MAX)), bad, "1 µs to 1 m, not by").await;
    check(request(loss("runner-0..runner-0", 5)), bad, "no link to itself").await;
    check(request(loss("runner-0..runner-1", 5)), bad, "no links to one another").await;
    let twice: &[&[&str]] = &[&["runner-0", "validator-0"], &["runner-0"]];
    check(request(partition(twice)), bad, "`runner-0` is in a partition twice").await;
    check(request(partition(&[])), bad, "needs at least two groups").await;
    check(request(partition(&[&[], &["runner-0"]])), bad, "has no node").await;
    let all = ["validator-0", "validator-1", "validator-2", "validator-3"];
    let everybody = [&all[..], &["runner-0", "runner-1", "runner-2"]].concat();
    check(request(partition(&[&everybody])), bad, "at least two groups").await;
    let lasting =
        |for_ms, for_blocks| FaultRequest { for_ms, for_blocks, ..request(pause("runner-0")) };
    check(lasting(Some(1), Some(1)), bad, "not both").await;
    check(lasting(Some(0), None), bad, "1 ms to 24 hours").await;
    check(lasting(Some(u64::MAX), None), bad, "1 ms to 24 hours").await;
    check(lasting(None, Some(0)), bad, "one block or more").await;
    assert!(devnet.client.faults().await.unwrap().is_empty());

    let one_group = devnet.client.lay_fault(&request(partition(&[&["runner-0"]]))).await.unwrap();
    assert_eq!(one_group.id, 1, "the rest is the other group");
    let lasting = devnet.client.lay_fault(&lasting(None, Some(5))).await.unwrap();
    assert_eq!(lasting.until_height, Some(5));
}
