//! Tests for every transport, run on pairs of connected ends.

use super::{Connection, MAX_REASON, MAX_STREAMS, RecvStream, SendStream, TransportError};
use cowboy_engine::primitives::{Hash, keccak256};
use futures::{
    future::{join, join_all},
    poll,
};
use std::pin::pin;

/// Runs all checks. `pair` makes a new connection: the dialler's end, then the listener's.
pub async fn run<C: Connection>(pair: impl AsyncFn() -> (C, C)) {
    let (dialer, listener) = pair().await;
    heartbeat_keys_agree_and_differ(&dialer, &listener, pair().await.0);
    streams_carry_bytes(&dialer, &listener).await;
    streams_carry_bytes(&listener, &dialer).await;
    large_transfers_arrive_whole(&dialer, &listener).await;
    more_streams_than_allowed_take_turns(&dialer, &listener).await;
    a_writer_waits_for_its_reader(&dialer, &listener).await;
    an_abandoned_stream_is_told_from_a_finished_one(&dialer, &listener).await;
    closing_tells_the_reason(dialer, listener).await;

    let (dialer, listener) = pair().await;
    what_was_delivered_is_read_after_the_close(listener, dialer).await;

    let (dialer, listener) = pair().await;
    a_long_reason_is_clipped(dialer, listener).await;

    let (dialer, listener) = pair().await;
    the_last_handle_closes(dialer, listener).await;
}

fn heartbeat_keys_agree_and_differ<C: Connection>(dialer: &C, listener: &C, other: C) {
    let key = dialer.heartbeats();
    assert_eq!(key.version(), 2);
    assert_eq!(key, listener.heartbeats());
    assert_ne!(key, other.heartbeats(), "each connection has a key of its own");
}

async fn read_all(recv: &mut impl RecvStream) -> Result<Vec<u8>, TransportError> {
    let mut bytes = Vec::new();
    while let Some(more) = recv.read(16 * 1024).await? {
        assert!(!more.is_empty() && more.len() <= 16 * 1024, "{}", more.len());
        bytes.extend_from_slice(&more);
    }
    Ok(bytes)
}

async fn streams_carry_bytes<C: Connection>(a: &C, b: &C) {
    let (mut send, mut recv) = a.open().await.unwrap();
    send.write(b"").await.unwrap();
    send.write(b"ques").await.unwrap();
    send.write(b"tion").await.unwrap();
    send.finish();
    send.finish();
    assert_eq!(send.write(b"?").await, Err(TransportError::StreamFinished));
    let (mut answer, mut question) = b.accept().await.unwrap();
    assert_eq!(question.read(3).await.unwrap().unwrap(), &b"que"[..]);
    assert_eq!(read_all(&mut question).await.unwrap(), b"stion");
    assert_eq!(question.read(1).await, Ok(None), "an ended stream stays ended");
    answer.write(b"answer").await.unwrap();
    let (answered, read) = join(answer.delivered(), read_all(&mut recv)).await;
    assert_eq!(answered, Ok(()));
    assert_eq!(read.unwrap(), b"answer");
}

fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + (i >> 8) * 7 + salt) as u8).collect()
}

fn digest(bytes: &[u8]) -> Hash {
    keccak256(&[bytes])
}

/// Sends `bytes` on a stream from `a`, and checks that `b` gets and echoes them.
async fn echo<C: Connection>(a: &C, bytes: &[u8]) {
    let (mut send, mut recv) = a.open().await.unwrap();
    let write = async {
        send.write(bytes).await.unwrap();
        send.delivered().await.unwrap();
    };
    let ((), read) = join(write, read_all(&mut recv)).await;
    assert_eq!(digest(&read.unwrap()), digest(bytes));
}

/// Accepts one stream and writes its bytes back.
async fn echoed<C: Connection>(b: &C) {
    let (mut send, mut recv) = b.accept().await.unwrap();
    while let Some(bytes) = recv.read(64 * 1024).await.unwrap() {
        send.write(&bytes).await.unwrap();
    }
    send.finish();
    // Otherwise, dropping the stream before its end has arrived would discard its data.
    send.delivered().await.unwrap();
}

async fn large_transfers_arrive_whole<C: Connection>(a: &C, b: &C) {
    let (there, back) = (pattern(3_000_000, 1), pattern(1_000_003, 2));
    join(join(echo(a, &there), echoed(b)), join(echo(b, &back), echoed(a))).await;
}

async fn more_streams_than_allowed_take_turns<C: Connection>(a: &C, b: &C) {
    let count = MAX_STREAMS as usize + 70;
    let payloads: Vec<_> = (0..count).map(|i| pattern(i * 17, i)).collect();
    let ask = join_all(payloads.iter().map(|payload| echo(a, payload)));
    let answer = join_all((0..count).map(|_| echoed(b)));
    join(ask, answer).await;
}

async fn a_writer_waits_for_its_reader<C: Connection>(a: &C, b: &C) {
    let bytes = pattern(2_000_000, 3);
    let (mut send, _recv) = a.open().await.unwrap();
    let mut write = pin!(async {
        send.write(&bytes).await.unwrap();
        send.delivered().await.unwrap();
    });
    assert!(poll!(&mut write).is_pending());
    let (_send, mut recv) = b.accept().await.unwrap();
    for round in 0..20 {
        join(echo(a, &pattern(100, round)), echoed(b)).await;
        assert!(poll!(&mut write).is_pending(), "round {round}");
    }
    let (read, ()) = join(read_all(&mut recv), write).await;
    assert_eq!(digest(&read.unwrap()), digest(&bytes));
}

async fn an_abandoned_stream_is_told_from_a_finished_one<C: Connection>(a: &C, b: &C) {
    // The writer leaves.
    let (mut send, recv) = a.open().await.unwrap();
    send.write(b"half a sen").await.unwrap();
    let (answer, mut question) = b.accept().await.unwrap();
    drop(send);
    assert_eq!(read_all(&mut question).await, Err(TransportError::StreamAbandoned));
    assert_eq!(question.read(1).await, Err(TransportError::StreamAbandoned));
    drop((recv, answer));

    // The reader leaves.
    let (mut send, _recv) = a.open().await.unwrap();
    send.write(b"is anyone ").await.unwrap();
    let (_answer, question) = b.accept().await.unwrap();
    drop(question);
    let error = loop {
        if let Err(error) = send.write(&[0; 10_000]).await {
            break error;
        }
    };
    assert_eq!(error, TransportError::StreamAbandoned);
    assert_eq!(send.write(b"there?").await, Err(TransportError::StreamAbandoned));

    // The connection goes on.
    join(echo(a, b"still"), echoed(b)).await;
}

async fn closing_tells_the_reason<C: Connection>(a: C, b: C) {
    let (mut send, mut recv) = a.open().await.unwrap();
    send.write(b"x").await.unwrap();
    let (mut peer_send, mut peer_recv) = b.accept().await.unwrap();
    assert!(peer_recv.read(1).await.unwrap().is_some());

    let waiting = (b.clone(), b.clone());
    let told = join(waiting.0.closed(), waiting.1.accept());
    let close = async {
        a.close("not_in_subset");
        a.close("a second reason is not heard");
        a.closed().await;
    };
    let (((), accepted), ()) = join(told, close).await;
    let by_peer = TransportError::ClosedByPeer { reason: "not_in_subset".to_owned() };
    assert_eq!(accepted.err(), Some(by_peer.clone()));
    assert_eq!(b.open().await.err(), Some(by_peer.clone()));
    assert_eq!(peer_send.write(b"y").await, Err(by_peer.clone()));
    assert_eq!(peer_recv.read(1).await, Err(by_peer));

    assert_eq!(a.open().await.err(), Some(TransportError::Closed));
    assert_eq!(a.accept().await.err(), Some(TransportError::Closed));
    assert_eq!(send.write(b"y").await, Err(TransportError::Closed));
    assert_eq!(recv.read(1).await, Err(TransportError::Closed));
}

async fn what_was_delivered_is_read_after_the_close<C: Connection>(a: C, b: C) {
    let (mut send, _recv) = a.open().await.unwrap();
    send.write(b"goodbye").await.unwrap();
    send.delivered().await.unwrap();
    a.close("shutting_down");
    b.closed().await;
    let (_send, mut recv) = b.accept().await.unwrap();
    assert_eq!(read_all(&mut recv).await.unwrap(), b"goodbye");
}

async fn a_long_reason_is_clipped<C: Connection>(a: C, b: C) {
    let reason = "é".repeat(MAX_REASON);
    a.close(&reason);
    let expected = "é".repeat(MAX_REASON / 2);
    assert_eq!(b.accept().await.err(), Some(TransportError::ClosedByPeer { reason: expected }));
}

async fn the_last_handle_closes<C: Connection>(a: C, b: C) {
    let (mut send, recv) = a.open().await.unwrap();
    send.write(b"x").await.unwrap();
    drop(a.clone());
    drop((a, recv));
    // The stream's other half keeps the connection.
    let (_send, mut recv) = b.accept().await.unwrap();
    assert_eq!(recv.read(9).await.unwrap().unwrap(), &b"x"[..]);
    send.write(b"y").await.unwrap();
    assert_eq!(recv.read(9).await.unwrap().unwrap(), &b"y"[..]);
    drop(send);
    b.closed().await;
    let by_peer = TransportError::ClosedByPeer { reason: String::new() };
    assert_eq!(b.open().await.err(), Some(by_peer));
}
