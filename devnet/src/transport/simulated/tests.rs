//! Simulated links: the common transport tests, and delays, losses and cuts on a virtual clock.

use super::{super::Connection as _, *};
use crate::transport::{BACKLOG, Dial as _, Listen as _, RecvStream as _, SendStream as _, suite};
use commonware_runtime::{Runner as _, Supervisor as _, deterministic};
use cowboy_engine::primitives::SecretKey;
use futures::future::{join, join_all};

type Context = deterministic::Context;

const SHORT: SimulatedLink =
    SimulatedLink { latency: Duration::from_millis(5), jitter: Duration::ZERO, loss: 0.0 };
const LONG: SimulatedLink = SimulatedLink {
    latency: Duration::from_millis(20),
    jitter: Duration::from_millis(60),
    loss: 0.02,
};
const AWFUL: SimulatedLink = SimulatedLink {
    latency: Duration::from_millis(1),
    jitter: Duration::from_millis(200),
    loss: 0.5,
};

fn key(name: &str) -> PublicKey {
    SecretKey::derive(b"simulated transport tests", name).public_key()
}

/// Runs a test on the deterministic runtime and returns the hash of the run's audit log.
fn run<F: Future<Output = ()>>(seed: u64, test: impl FnOnce(Context) -> F) -> String {
    let config =
        deterministic::Config::new().with_seed(seed).with_timeout(Some(Duration::from_secs(3_600)));
    deterministic::Runner::new(config).start(async |context| {
        let audit = context.child("audit");
        test(context).await;
        audit.auditor().state()
    })
}

async fn connected(
    fabric: &Fabric<Context>,
    listener: &mut SimListener<Context>,
) -> (SimConnection<Context>, SimConnection<Context>) {
    let (dialled, accepted) =
        join(fabric.connect(key("runner"), key("validator")), listener.accept()).await;
    (dialled.unwrap(), accepted.unwrap())
}

async fn run_suite(context: Context, link: SimulatedLink) {
    let fabric = Fabric::new(context, link);
    let listener = Mutex::new(Some(fabric.listen(key("validator")).unwrap()));
    suite::run(async || {
        let mut own = listener.lock().take().expect("one pair is made at a time");
        let pair = connected(&fabric, &mut own).await;
        *listener.lock() = Some(own);
        pair
    })
    .await;
}

#[test]
fn a_simulated_connection_does_what_a_connection_must() {
    for link in [SHORT, LONG, AWFUL] {
        run(1, |context| run_suite(context, link));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for link in [SHORT, LONG, AWFUL] {
        let first = run(1, |context| run_suite(context, link));
        assert_eq!(run(1, |context| run_suite(context, link)), first, "{link:?}");
        assert_ne!(run(2, |context| run_suite(context, link)), first, "{link:?}");
    }
}

#[test]
fn both_ends_know_each_other() {
    run(1, async |context| {
        let fabric = Fabric::new(context, SHORT);
        let mut listener = fabric.listen(key("validator")).unwrap();
        let dialer = fabric.dialer(key("runner"));
        let address = SocketAddr::new(Fabric::<Context>::address(&key("validator")), 1);
        let (validator, runner) = (key("validator"), key("runner"));
        let (dialled, accepted) = join(dialer.dial(address, &validator), listener.accept()).await;
        let (dialled, accepted) = (dialled.unwrap(), accepted.unwrap());
        assert_eq!((dialled.peer(), accepted.peer()), (&validator, &runner));
        assert_eq!(dialled.remote(), address.ip());
        assert_ne!(accepted.remote(), address.ip());
        let twice = fabric.listen(validator.clone()).err().unwrap();
        assert!(matches!(twice, TransportError::Bind { .. }), "{twice}");
        drop(listener);
        fabric.listen(validator).unwrap();
    });
}

/// The travel times of a hundred messages, each on a stream of its own.
async fn delays(context: &Context, link: SimulatedLink) -> Vec<Duration> {
    let fabric = Fabric::new(context.child("network"), SHORT);
    let mut listener = fabric.listen(key("validator")).unwrap();
    let (dialled, accepted) = connected(&fabric, &mut listener).await;
    fabric.set_link(&key("validator"), &key("runner"), link);
    let sent = context.current();
    let streams = join_all((0..90).map(async |_| {
        let (mut send, recv) = dialled.open().await.unwrap();
        send.write(b"x").await.unwrap();
        (send, recv)
    }))
    .await;
    let mut delays = Vec::new();
    let mut peers = Vec::new();
    for _ in &streams {
        peers.push(accepted.accept().await.unwrap());
        delays.push(context.current().duration_since(sent).unwrap());
    }
    delays
}

#[test]
fn messages_take_the_latency_a_share_of_the_jitter_and_what_loss_costs() {
    run(1, async |context| {
        // The runtime's clock advances in steps of a millisecond, and a wake-up costs a few.
        let slack = Duration::from_millis(5);
        let check = |delays: &[Duration], least: Duration, most: Duration| {
            for delay in delays {
                assert!((least..=most + slack).contains(delay), "{delay:?}");
            }
        };
        let ms = Duration::from_millis;

        let plain = delays(&context, SimulatedLink { latency: ms(50), ..SHORT }).await;
        check(&plain, ms(50), ms(50));

        let link = SimulatedLink { latency: ms(50), jitter: ms(100), loss: 0.0 };
        let jittery = delays(&context, link).await;
        check(&jittery, ms(50), ms(150));
        assert!(jittery[0] < ms(60) && jittery[89] > ms(140), "{jittery:?}");

        let link = SimulatedLink { latency: ms(50), jitter: ms(0), loss: 0.1 };
        let lossy = delays(&context, link).await;
        let (once, twice): (Vec<_>, Vec<_>) = lossy.iter().partition(|delay| **delay < ms(100));
        check(&once, ms(50), ms(50));
        check(&twice, ms(150), ms(150));
        assert!((3..20).contains(&twice.len()), "{}", twice.len());

        let link = SimulatedLink { latency: ms(1), jitter: ms(0), loss: 1.0 };
        check(&delays(&context, link).await, ms(11), ms(11));
    });
}

#[test]
fn a_link_restored_in_time_delivers_what_it_held_back_in_order() {
    run(1, async |context| {
        let fabric = Fabric::new(context.child("network"), AWFUL);
        let mut listener = fabric.listen(key("validator")).unwrap();
        let (dialled, accepted) = connected(&fabric, &mut listener).await;
        let (mut send, _recv) = dialled.open().await.unwrap();
        send.write(&[0]).await.unwrap();
        let (_send, mut recv) = accepted.accept().await.unwrap();
        for byte in 1..=200 {
            match byte {
                50 => fabric.cut(&key("validator"), &key("runner")),
                150 => {
                    context.sleep(IDLE_TIMEOUT.mul_f64(0.99)).await;
                    fabric.restore(&key("runner"), &key("validator"));
                }
                _ => {}
            }
            send.write(&[byte]).await.unwrap();
        }
        // Waits beyond the time at which the cut would have ended the connection.
        context.sleep(IDLE_TIMEOUT).await;
        let mut read = Vec::new();
        while read.len() <= 200 {
            read.extend_from_slice(&recv.read(1000).await.unwrap().unwrap());
        }
        assert_eq!(read, (0..=200).collect::<Vec<u8>>());
    });
}

#[test]
fn a_cut_link_loses_its_connections_at_both_ends() {
    run(1, async |context| {
        let fabric = Fabric::new(context.child("network"), SHORT);
        let mut listener = fabric.listen(key("validator")).unwrap();
        let (dialled, accepted) = connected(&fabric, &mut listener).await;
        let (bystander, other) =
            join(fabric.connect(key("other"), key("validator")), listener.accept()).await;
        let (bystander, other) = (bystander.unwrap(), other.unwrap());

        let (validator, runner) = (key("validator"), key("runner"));
        fabric.cut(&validator, &runner);
        let cut = context.current();
        // A close does not get through either.
        let (lost, closed) = join(accepted.accept(), dialled.closed()).await;
        let ((), after) = (closed, context.current().duration_since(cut).unwrap());
        assert!(matches!(lost.err(), Some(TransportError::Lost { .. })));
        assert!((IDLE_TIMEOUT..IDLE_TIMEOUT + Duration::from_millis(10)).contains(&after));

        let refused = fabric.connect(runner.clone(), validator.clone()).await.err().unwrap();
        assert!(matches!(refused, TransportError::ConnectTimeout { .. }), "{refused}");

        // Others are not affected, and a restored link connects again.
        let (mut send, _recv) = bystander.open().await.unwrap();
        send.write(b"x").await.unwrap();
        other.accept().await.unwrap();
        fabric.restore(&validator, &runner);
        connected(&fabric, &mut listener).await;
    });
}

#[test]
fn a_close_over_a_cut_link_is_heard_after_its_restoration() {
    run(1, async |context| {
        let fabric = Fabric::new(context.child("network"), SHORT);
        let mut listener = fabric.listen(key("validator")).unwrap();
        let (dialled, accepted) = connected(&fabric, &mut listener).await;
        let (validator, runner) = (key("validator"), key("runner"));
        fabric.cut(&validator, &runner);
        dialled.close("shutting_down");
        context.sleep(Duration::from_secs(1)).await;
        let mut closed = pin!(accepted.closed());
        assert!(futures::poll!(&mut closed).is_pending());
        fabric.restore(&validator, &runner);
        closed.await;
        let by_peer = TransportError::ClosedByPeer { reason: "shutting_down".to_owned() };
        assert_eq!(accepted.open().await.err(), Some(by_peer));
    });
}

#[test]
fn dialling_where_nobody_accepts_fails_in_bounded_time() {
    run(1, async |context| {
        let fabric = Fabric::new(context.child("network"), SHORT);
        let start = context.current();
        let error = fabric.connect(key("runner"), key("validator")).await.err().unwrap();
        assert!(matches!(error, TransportError::ConnectTimeout { .. }), "{error}");
        let took = context.current().duration_since(start).unwrap();
        assert!((DIAL_TIMEOUT..DIAL_TIMEOUT + Duration::from_millis(10)).contains(&took));

        // The queue of a listener that does not accept is bounded.
        let mut listener = fabric.listen(key("validator")).unwrap();
        let dialled =
            join_all((0..=BACKLOG).map(|_| fabric.connect(key("runner"), key("validator")))).await;
        let refused: Vec<_> = dialled.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(matches!(refused[..], [TransportError::Connect { .. }]), "{refused:?}");
        for _ in 0..BACKLOG {
            listener.accept().await.unwrap();
        }
    });
}

#[test]
fn closing_the_listener_ends_what_came_from_it() {
    run(1, async |context| {
        let fabric = Fabric::new(context, SHORT);
        let mut listener = fabric.listen(key("validator")).unwrap();
        let (dialled, accepted) = connected(&fabric, &mut listener).await;
        let waiting = fabric.connect(key("runner"), key("validator")).await.unwrap();
        listener.close("shutting_down");
        assert!(listener.accept().await.is_none());
        accepted.closed().await;
        for connection in [dialled, waiting] {
            let by_peer = TransportError::ClosedByPeer { reason: "shutting_down".to_owned() };
            assert_eq!(connection.accept().await.err(), Some(by_peer));
        }
        // Nothing is left of the connections.
        assert!(fabric.net.lock().routes.is_empty());
    });
}
