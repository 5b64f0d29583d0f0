//! QUIC over sockets that lose and delay datagrams.

use crate::{
    faults::{At, Fault, Faults, Rule, Tap},
    transport::{
        Connection as _, RecvStream as _, SendStream as _,
        quic::{
            Dialer, QuicClient, QuicConnection, QuicListener,
            tests::{LOOPBACK, bounded, connected, identity},
        },
        suite,
    },
};
use futures::FutureExt as _;
use std::time::Duration;
use tokio::{sync::Mutex, task::yield_now};

/// A runner's and a validator's end, both behind taps.
struct Ends {
    faults: Faults,
    listener: QuicListener,
    client: QuicClient,
    dialer: Dialer,
    runner: Tap,
}

impl Ends {
    fn new() -> Self {
        let faults = Faults::new(3);
        let (validator, runner) =
            (Tap::new(faults.clone(), "validator"), Tap::new(faults.clone(), "runner"));
        let listener =
            QuicListener::bind_tapped(&identity("validator"), LOOPBACK, validator, |_| true)
                .unwrap();
        let client = QuicClient::bind_tapped(LOOPBACK, runner.clone()).unwrap();
        let dialer = client.dialer(identity("runner"));
        Self { faults, listener, client, dialer, runner }
    }

    async fn connected(&mut self) -> (QuicConnection, QuicConnection) {
        connected(&mut self.listener, &self.dialer).await
    }

    fn lay(&self, fault: Fault) -> Rule {
        self.faults.lay(fault, None, None)
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        yield_now().await;
    }
}

#[tokio::test]
async fn what_is_said_during_a_pause_arrives_after_it() {
    let mut ends = Ends::new();
    bounded(async {
        let (dialled, accepted) = ends.connected().await;
        for (pausing, speaker, hearer) in [
            ("runner", &dialled, &accepted),
            ("validator", &dialled, &accepted),
            ("runner", &accepted, &dialled),
        ] {
            let rule = ends.lay(Fault::Pause { node: pausing.into() });
            let (mut send, _) = speaker.open().await.unwrap();
            send.write(b"hello").await.unwrap();
            until(|| rule.tally.dropped() > 0).await;
            assert!(hearer.accept().now_or_never().is_none());
            ends.faults.lift(rule.id);
            let (_, mut recv) = hearer.accept().await.unwrap();
            assert_eq!(recv.read(9).await.unwrap().unwrap(), b"hello"[..]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_does_what_it_must_over_a_bad_link() {
    let ends = Ends::new();
    let at = At::link("runner".into(), "validator".into());
    let ms = Duration::from_millis;
    let delay = ends.lay(Fault::Latency { at: at.clone(), by: ms(0), jitter: ms(1) });
    let loss = ends.lay(Fault::Loss { at, per_mille: 10 });
    let ends = Mutex::new(ends);
    bounded(suite::run(async || ends.lock().await.connected().await)).await;
    assert!(delay.tally.delayed() > 0 && loss.tally.dropped() > 0);
}

/// A runner that another process runs has no tap: both directions are the validator's.
#[tokio::test]
async fn faults_work_both_ways_with_a_node_of_another_process() {
    let faults = Faults::new(3);
    let validator = Tap::new(faults.clone(), "validator");
    let mut listener =
        QuicListener::bind_tapped(&identity("validator"), LOOPBACK, validator, |_| true).unwrap();
    let client = QuicClient::bind(LOOPBACK).unwrap();
    let dialer = client.dialer(identity("runner"));
    bounded(async {
        let (dialled, accepted) = connected(&mut listener, &dialer).await;
        faults.met(accepted.address(), "runner");
        let at = At::link("runner".into(), "validator".into());
        for fault in [
            Fault::Pause { node: "runner".into() },
            Fault::Latency { at, by: Duration::from_millis(20), jitter: Duration::ZERO },
        ] {
            let rule = faults.lay(fault, None, None);
            let (mut send, _) = dialled.open().await.unwrap();
            send.write(b"hello").await.unwrap();
            let (mut answer, _) = accepted.open().await.unwrap();
            answer.write(b"yes").await.unwrap();
            until(|| rule.tally.dropped() + rule.tally.delayed() > 1).await;
            assert!(accepted.accept().now_or_never().is_none());
            assert!(dialled.accept().now_or_never().is_none());
            if rule.tally.dropped() > 0 {
                faults.lift(rule.id);
            }
            let (_, mut recv) = accepted.accept().await.unwrap();
            assert_eq!(recv.read(9).await.unwrap().unwrap(), b"hello"[..]);
            let (_, mut recv) = dialled.accept().await.unwrap();
            assert_eq!(recv.read(9).await.unwrap().unwrap(), b"yes"[..]);
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_is_killed_says_nothing() {
    let mut ends = Ends::new();
    bounded(async {
        let (dialled, accepted) = ends.connected().await;
        ends.runner.silence();
        dialled.close("goodbye");
        drop((dialled, ends.dialer));
        // None of its packets arrived.
        ends.client.endpoint.wait_idle().await;
        assert!(accepted.closed().now_or_never().is_none());
    })
    .await;
}
