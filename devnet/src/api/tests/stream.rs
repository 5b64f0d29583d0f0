//! The event stream: where it starts, that it misses and repeats nothing, and when it ends.

use super::fixture::*;
use crate::api::{
    server::Limits,
    types::{BlockNotice, ErrorCode},
};
use cowboy_engine::{chain::Payload, primitives::Wei};
use std::time::Duration;

/// How long a test waits for what has to happen at once.
const SOON: Duration = Duration::from_secs(20);

/// The next bytes of a stream as text, until they hold `end`.
async fn read_until(response: &mut reqwest::Response, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        let chunk = tokio::time::timeout(SOON, response.chunk()).await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk.expect("the stream goes on")).unwrap());
    }
    text
}

#[tokio::test]
async fn a_stream_has_every_block_from_the_next_one_on() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(2);
    let mut stream = devnet.client.follow(None);
    stream.connect().await.unwrap();
    let signed = devnet.sign("faucet", transfer("dev-0", Wei::cby(1)));
    devnet.push(vec![signed]);
    let notice = stream.next().await.unwrap();
    let BlockNotice { height, transactions, present, registry_len, events, .. } = &notice;
    assert_eq!((*height, *transactions, *present, *registry_len), (3, 1, 3, 3));
    assert_eq!((events.len(), notice.certificate_for), (2, vec![2]));
    let block = devnet.client.block(crate::client::BlockAt::Height(3)).await.unwrap();
    assert_eq!(
        (notice.hash, notice.proposer, notice.view),
        (block.hash, block.proposer, block.view)
    );
    assert_eq!((notice.finalized_at, notice.events), (block.finalized_at, block.events));
}

#[tokio::test]
async fn presence_and_registry_are_those_of_the_block() {
    let mut devnet = Devnet::new().await;
    devnet.push(vec![]);
    let certificate = devnet.certificate(&[1]);
    devnet.push_to(&[0, 1], vec![certificate], vec![]);
    // P(1) counts up to block 5.
    for _ in 3..=6 {
        devnet.push_to(&[0, 1], vec![], vec![]);
    }
    let leave = devnet.sign("runner-0", Payload::DeregisterRunner);
    devnet.push_to(&[0, 1], vec![], vec![leave]);
    let mut stream = devnet.client.follow(Some(0));
    let mut seen = Vec::new();
    for height in 0..=7 {
        let notice = stream.next().await.unwrap();
        assert_eq!(notice.height, height);
        seen.push((notice.present, notice.registry_len));
    }
    assert_eq!(seen, [(0, 3), (0, 3), (1, 3), (1, 3), (1, 3), (1, 3), (0, 3), (0, 2)]);
}

#[tokio::test]
async fn a_slow_reader_misses_nothing_and_gets_nothing_twice() {
    let mut devnet = Devnet::new().await;
    let mut stream = devnet.client.follow(None);
    stream.connect().await.unwrap();
    // More than the ledger remembers for its subscribers.
    for _ in 0..400 {
        devnet.push_to(&[0, 1], vec![], vec![]);
    }
    for height in 1..=400 {
        assert_eq!(stream.next().await.unwrap().height, height);
    }
    devnet.push_to(&[0, 1], vec![], vec![]);
    assert_eq!(stream.next().await.unwrap().height, 401);
}

#[tokio::test]
async fn a_stream_resumes_behind_the_last_event_seen() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(3);
    let resume = async |last: &str| {
        reqwest::Client::builder()
            .no_proxy()
            .build()
            .unwrap()
            .get(format!("{}/v1/events?from=0", devnet.url))
            .header("last-event-id", last)
            .send()
            .await
            .unwrap()
    };
    let mut response = resume("1").await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = read_until(&mut response, "id: 3\n").await;
    let ids: Vec<_> = text.lines().filter(|line| line.starts_with("id: ")).collect();
    assert_eq!(ids, ["id: 2", "id: 3"]);
    assert_eq!(text.matches("event: block\n").count(), 2);
    let refused = resume("three").await;
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("Last-Event-ID"));
}

#[tokio::test]
async fn a_stream_ends_with_its_validator_and_goes_on_at_another() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let mut any = devnet.client.follow(Some(1));
    let mut first = devnet.at("validator-0").follow(Some(1));
    assert_eq!(any.next().await.unwrap().height, 1);
    assert_eq!(first.next().await.unwrap().height, 1);
    devnet.client.stop_validator("validator-0").await.unwrap();
    devnet.push_to(&[1], vec![], vec![]);
    assert_eq!(any.next().await.unwrap().height, 2);
    let error = first.next().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unavailable));
}

#[tokio::test]
async fn streams_are_limited_in_number_and_end_with_the_server() {
    let limits = Limits { streams: 3, connections: 10, client: SOON, request: SOON };
    let devnet = Devnet::within(limits).await;
    let mut streams = Vec::new();
    for _ in 0..limits.streams {
        let response = devnet.get("/v1/events").await;
        assert_eq!(response.status(), 200);
        streams.push(response);
    }
    let refused = devnet.get("/v1/events").await;
    assert_eq!(refused.status(), 503);
    assert!(refused.text().await.unwrap().contains("too many event streams"));
    assert_eq!(devnet.get("/v1/status").await.status(), 200);

    devnet.serving.stop(SOON).await;
    for mut stream in streams {
        let end = tokio::time::timeout(SOON, stream.chunk()).await.expect("it ends");
        assert!(matches!(end, Ok(None)), "{end:?}");
    }
    assert!(devnet.client.head().await.is_err(), "nobody listens");
}
