//! The event stream: its start, its end, and that it neither misses nor repeats a block.

use super::fixture::*;
use crate::{
    api::server::ServerLimits,
    types::{BlockNotice, ErrorCode},
};
use cowboy_engine::{chain::Payload, primitives::Wei};
use futures::FutureExt as _;
use std::time::Duration;
use tokio::time::timeout;

/// The time that a test waits for an event that should happen at once.
const SOON: Duration = Duration::from_secs(20);

/// The next bytes of a stream as text, until they hold `end`.
async fn read_until(response: &mut reqwest::Response, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        let chunk = timeout(SOON, response.chunk()).await.unwrap().unwrap();
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
    // These are more blocks than the ledger buffers for its subscribers.
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
async fn a_stream_goes_on_where_its_validator_stands_still() {
    let mut devnet = Devnet::new().await;
    devnet.push_empty(1);
    let mut any = devnet.client.follow(Some(1));
    let mut second = devnet.at("validator-1").follow(Some(1));
    assert_eq!(any.next().await.unwrap().height, 1);
    assert_eq!(second.next().await.unwrap().height, 1);
    // The first of two validators with the same head was chosen. Now first one of them gets no
    // blocks, then the other.
    devnet.push_to(&[1], vec![], vec![]);
    assert_eq!(timeout(SOON, any.next()).await.unwrap().unwrap().height, 2);
    assert_eq!(timeout(SOON, second.next()).await.unwrap().unwrap().height, 2);
    devnet.catch_up(0);
    devnet.push_to(&[0], vec![], vec![]);
    assert_eq!(timeout(SOON, any.next()).await.unwrap().unwrap().height, 3);
    assert!(second.next().now_or_never().is_none(), "it has no block 3");
    devnet.catch_up(1);
    assert_eq!(timeout(SOON, second.next()).await.unwrap().unwrap().height, 3);
}

/// Limits with this number of streams, and long timeouts.
fn room_for(streams: usize) -> ServerLimits {
    ServerLimits { streams, connections: 20, client: SOON, request: SOON, change: SOON }
}

/// The rest of a stream.
async fn rest(mut response: reqwest::Response) -> String {
    let mut bytes = Vec::new();
    while let Some(chunk) = timeout(SOON, response.chunk()).await.expect("it ends").unwrap() {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_stream_beyond_the_limit_replaces_the_oldest_and_all_end_with_the_server() {
    let limits = room_for(3);
    let mut devnet = Devnet::within(limits).await;
    let mut streams = Vec::new();
    for _ in 0..limits.streams + 2 {
        let response = devnet.get("/v1/events").await;
        assert_eq!(response.status(), 200);
        streams.push(response);
    }
    for replaced in streams.drain(..2) {
        let text = rest(replaced).await;
        assert!(text.contains("event: replaced\n") && text.contains("retry: 1000\n"), "{text}");
        assert!(text.contains("data: all places for event streams are taken"), "{text}");
    }
    devnet.push_empty(1);
    for stream in &mut streams {
        read_until(stream, "id: 1\n").await;
    }
    assert_eq!(devnet.get("/v1/status").await.status(), 200);

    devnet.serving.stop(SOON).await;
    for stream in streams {
        assert!(!rest(stream).await.contains("replaced"));
    }
    assert!(devnet.client.head().await.is_err(), "the server is gone");
}

#[tokio::test]
async fn a_reader_whose_stream_was_replaced_comes_back_and_misses_nothing() {
    let mut devnet = Devnet::within(room_for(1)).await;
    let [mut one, mut other] = [(); 2].map(|()| devnet.client.follow(None));
    one.connect().await.unwrap();
    devnet.push_to(&[0, 1], vec![], vec![]);
    assert_eq!(one.next().await.unwrap().height, 1);
    other.connect().await.unwrap();
    devnet.push_to(&[0, 1], vec![], vec![]);
    assert_eq!(other.next().await.unwrap().height, 2);
    // Each reader returns and takes the other's place.
    assert_eq!(timeout(SOON, one.next()).await.unwrap().unwrap().height, 2);
    devnet.push_to(&[0, 1], vec![], vec![]);
    assert_eq!(timeout(SOON, other.next()).await.unwrap().unwrap().height, 3);
    assert_eq!(timeout(SOON, one.next()).await.unwrap().unwrap().height, 3);
}

#[tokio::test]
async fn streams_without_the_token_leave_room_for_those_that_show_it() {
    let mut devnet = Devnet::within(room_for(4)).await;
    // It has read nothing yet, so after a second start it would miss the first block.
    let mut known = devnet.client.follow(None);
    known.connect().await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut flood = Vec::new();
    for number in 0..8 {
        let request = client.get(format!("{}/v1/events", devnet.url));
        let request = if number % 2 == 0 { request } else { request.bearer_auth("wrong") };
        flood.push(request.send().await.unwrap());
    }
    devnet.push_empty(1);
    assert_eq!(timeout(SOON, known.next()).await.unwrap().unwrap().height, 1);
    let text = rest(flood.remove(0)).await;
    assert!(text.contains("event: replaced\n"), "{text}");
}
