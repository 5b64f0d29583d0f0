//! One channel's receiver on a virtual clock.

use super::*;
use crate::faults::{At, Fault, Faults};
use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
use commonware_runtime::{Runner as _, Spawner as _, deterministic};
use commonware_utils::NZUsize;
use std::time::Duration;
use tokio::sync::mpsc;

/// A receiver of messages that a test supplies.
#[derive(Debug)]
struct Handed(mpsc::UnboundedReceiver<Message<PublicKey>>);

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("ended")]
struct Ended;

impl Receiver for Handed {
    type Error = Ended;
    type PublicKey = PublicKey;

    async fn recv(&mut self) -> Result<Message<PublicKey>, Ended> {
        self.0.recv().await.ok_or(Ended)
    }

    fn capacity(&self) -> NonZeroUsize {
        NZUsize!(9)
    }
}

fn key(node: u8) -> PublicKey {
    PrivateKey::from_seed(node.into()).public_key()
}

/// A validator `me` that receives messages from `a` (1) and `b` (2).
struct Bench {
    faults: Faults,
    hand: mpsc::UnboundedSender<Message<PublicKey>>,
    receiver: FaultyReceiver<deterministic::Context, Handed>,
}

impl Bench {
    fn new(context: &deterministic::Context) -> Self {
        let faults = Faults::new(1);
        for (node, number) in [("a", 1), ("b", 2)] {
            Tap::new(faults.clone(), node).sit(seat(&key(number)));
        }
        let (hand, handed) = mpsc::unbounded_channel();
        let receiver = FaultyReceiver {
            clock: Arc::new(context.child("clock")),
            tap: Tap::new(faults.clone(), "me"),
            receiver: Handed(handed),
            delayed: Delayed::default(),
        };
        Self { faults, hand, receiver }
    }

    fn send(&self, from: u8, message: u8) {
        self.hand.send((key(from), IoBuf::from(vec![message]))).unwrap();
    }

    fn lay(&self, fault: Fault) -> u64 {
        self.faults.lay(fault, None, None).id
    }

    /// The next messages, each with its time since the start, in ms.
    async fn next(&mut self, start: SystemTime, count: usize) -> Vec<(u8, u64)> {
        let mut got = Vec::new();
        for _ in 0..count {
            let (_, bytes) = self.receiver.recv().await.unwrap();
            let after = self.receiver.clock.current().duration_since(start).unwrap();
            got.push((bytes.as_ref()[0], after.as_millis() as u64));
        }
        got
    }
}

fn latency(node: &str, ms: u64) -> Fault {
    let by = Duration::from_millis(ms);
    Fault::Latency { at: At::Node(node.into()), by, jitter: Duration::ZERO }
}

#[test]
fn messages_pass_wait_or_are_lost() {
    deterministic::Runner::default().start(|context| async move {
        let mut bench = Bench::new(&context);
        let start = context.current();
        assert_eq!(bench.receiver.capacity(), NZUsize!(9));
        bench.send(1, 10);
        assert_eq!(bench.next(start, 1).await, [(10, 0)]);

        let pause = bench.lay(Fault::Pause { node: "a".into() });
        bench.send(1, 11);
        bench.send(2, 12);
        assert_eq!(bench.next(start, 1).await, [(12, 0)]);
        bench.faults.lift(pause);

        let slow = bench.lay(latency("a", 50));
        bench.send(1, 13);
        bench.send(2, 14);
        bench.send(1, 15);
        assert_eq!(bench.next(start, 3).await, [(14, 0), (13, 50), (15, 50)]);

        // Healed while messages are delayed: new messages of the same peer stay behind them.
        bench.send(1, 16);
        bench.send(2, 17);
        assert_eq!(bench.next(start, 1).await, [(17, 50)]);
        bench.faults.lift(slow);
        bench.send(1, 18);
        bench.send(2, 19);
        assert_eq!(bench.next(start, 3).await, [(19, 50), (16, 100), (18, 100)]);
        bench.send(1, 20);
        assert_eq!(bench.next(start, 1).await, [(20, 100)]);

        let Bench { hand, mut receiver, .. } = bench;
        drop(hand);
        assert_eq!(receiver.recv().await.unwrap_err(), Ended);
    });
}

#[test]
fn whoever_stops_waiting_loses_no_message() {
    deterministic::Runner::default().start(|context| async move {
        let mut bench = Bench::new(&context);
        let start = context.current();
        bench.lay(latency("me", 50));
        bench.send(1, 1);
        bench.send(2, 2);
        let waited = context.child("waiter").spawn({
            let mut receiver = bench.receiver;
            move |context| async move {
                select! {
                    _ = receiver.recv() => panic!("too early"),
                    () = context.sleep(Duration::from_millis(20)) => {},
                }
                receiver
            }
        });
        bench.receiver = waited.await.unwrap();
        // The virtual time moves one step when the waiter starts.
        let got = bench.next(start, 2).await;
        assert!(matches!(got[..], [(1, 50..55), (2, 50..55)]), "{got:?}");
    });
}
