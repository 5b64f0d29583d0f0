//! A thousand runners on ten validators in one process.

use crate::{
    bare::ends,
    loopback,
    process::processor_time,
    runners::{self, Gateways},
};
use commonware_runtime::Clock;
use cowboy_devnet::{
    orchestrator::ports::{self, Transport},
    sample::validator_name,
    validator::limiter::BucketLimits,
};
use cowboy_engine::{
    presence::ThresholdRule,
    primitives::Height,
    wire::{HeartbeatKey, KeyedPing, KeyedPong, Message as _},
};
use cowboy_simulation::Setup;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinSet};

const VALIDATORS: usize = 10;
const BLOCK_TIME: Duration = Duration::from_secs(1);
/// Number of blocks before the first runner.
const WARM_UP: usize = 10;
/// Time over which the devnet's processor use is measured.
const WATCHED: Duration = Duration::from_secs(20);

/// The results of [`crowd`].
pub struct Crowd {
    /// Total number of connections: each runner's to its subset.
    pub connections: usize,
    /// Time from the first runner's start until the chain counts all of them as present.
    pub present: Duration,
    /// Resident memory in bytes per connection, for both ends together.
    pub bytes: u64,
    /// Processor time per second while only blocks are made, before the first runner and with all.
    pub quiet: f64,
    pub busy: f64,
    /// Number of runners of the restarted validator.
    pub returning: usize,
    /// Time from its goodbye until it starts again; runners retry at growing intervals.
    pub down: Duration,
    /// Time from its start until all of them are connected again.
    pub back: Duration,
}

/// Connects `runners` runners, leaves them idle, and restarts one of their validators.
pub fn crowd(runners: usize) -> Crowd {
    let mut setup = Setup::new(VALIDATORS, runners, BLOCK_TIME);
    setup.genesis.params.threshold_rule = ThresholdRule::Subset;
    loopback::run(setup, async |mut devnet| {
        let gateways = Gateways::default();
        let limits = BucketLimits::sharing_an_address(runners);
        devnet.start_all(Some(gateways.serve(&devnet, limits, BLOCK_TIME)));
        let services = devnet.validator(0).services().clone();
        let mut blocks = services.ledger.subscribe();
        // By then, validators have allocated their own memory.
        for _ in 0..WARM_UP {
            blocks.recv().await.expect("the chain goes on");
        }

        let quiet = busy(&devnet.context).await;
        let (before, begun) = (resident(), Instant::now());
        let running = runners::start(&devnet, runners);
        runners::present(&services, runners).await;
        let took = begun.elapsed();
        let gateway =
            |index: usize| gateways.0.lock().expect("no other thread panics")[&index].clone();
        let connections = (0..VALIDATORS).map(|index| *gateway(index).count().borrow()).sum();
        let bytes = resident().saturating_sub(before) / connections as u64;

        let busy = busy(&devnet.context).await;

        let (restarted, returning) = (1, *gateway(1).count().borrow());
        let gone = Instant::now();
        gateway(restarted).close(&devnet.context).await;
        devnet.stop(restarted).await;
        // Its last connections are drained for a moment.
        let port = devnet.ports.quic[&validator_name(restarted)];
        while ports::check(Transport::Udp, port).is_err() {
            devnet.context.sleep(Duration::from_millis(5)).await;
        }
        let (down, again) = (gone.elapsed(), Instant::now());
        devnet.start(restarted);
        let mut count = gateway(restarted).count();
        count.wait_for(|count| *count == returning).await.expect("it goes on");
        let back = again.elapsed();
        futures::future::join_all(running.into_iter().map(|r| r.stop(&devnet.context))).await;
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        Crowd { connections, present: took, bytes, quiet, busy, returning, down, back }
    })
}

/// The process's processor time per second, over [`WATCHED`].
async fn busy(clock: &impl Clock) -> f64 {
    let (spent, watched) = (processor_time(), Instant::now());
    clock.sleep(WATCHED).await;
    let spent = processor_time().saturating_sub(spent);
    spent.as_secs_f64() / watched.elapsed().as_secs_f64()
}

/// The results of [`bare`].
pub struct Bare {
    /// Resident memory in bytes per connection, for both ends together.
    pub bytes: u64,
    /// Handshakes per second.
    pub rate: f64,
    /// Processor time per second while a message and its answer pass on each connection once per
    /// block time.
    pub busy: f64,
}

/// A heartbeat and its answer, as they pass on the connections of a devnet.
#[derive(Clone)]
struct Heartbeat {
    pong: Vec<u8>,
    ping: Vec<u8>,
}

/// Opens this many plain QUIC connections with both ends in this process. Each has one stream for
/// its messages, which the client opens, and all messages are sent at once.
pub fn bare(connections: usize) -> Bare {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (server, client, config) = ends();
        let address = server.local_addr().expect("it is bound");
        let accepting = server.clone();
        let accepted = tokio::spawn(async move {
            let mut held = Vec::with_capacity(connections);
            while held.len() < connections {
                let incoming = accepting.accept().await.expect("a client");
                held.push(tokio::spawn(async move { incoming.await.expect("connects") }));
            }
            futures::future::join_all(held).await
        });
        let (before, begun) = (resident(), Instant::now());
        let mut ours = Vec::with_capacity(connections);
        // Few enough at a time that the socket's buffer holds their packets: nothing is
        // retransmitted.
        const AT_ONCE: usize = 16;
        for _ in 0..connections.div_ceil(AT_ONCE) {
            let connecting = (0..AT_ONCE.min(connections - ours.len())).map(|_| {
                client.connect_with(config.clone(), address, "localhost").expect("an address")
            });
            let connected = futures::future::join_all(connecting).await;
            ours.extend(connected.into_iter().map(|connected| connected.expect("it listens")));
        }
        let theirs = accepted.await.expect("all connect");
        let rate = connections as f64 / begun.elapsed().as_secs_f64();
        let bytes = resident().saturating_sub(before) / connections as u64;
        assert_eq!(theirs.len(), ours.len());

        let (key, height) = (HeartbeatKey([7; 32]), Height::new(1_000));
        let beat = Heartbeat {
            pong: KeyedPong::with_mac(1, &key, height).to_frame(),
            ping: KeyedPing::with_mac(1, &key, height, 1_000).to_frame(),
        };
        let (block, _) = watch::channel(());
        let answered = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for connection in theirs {
            let connection = connection.expect("connects");
            let block = block.subscribe();
            tasks.spawn(announce(connection, beat.clone(), block, answered.clone()));
        }
        for connection in ours {
            tasks.spawn(answer(connection, beat.clone()));
        }
        let mut blocks = tokio::time::interval(BLOCK_TIME);
        // The first ones open the streams.
        for _ in 0..2 {
            blocks.tick().await;
            block.send_replace(());
        }
        blocks.tick().await;
        let (spent, watched) = (processor_time(), Instant::now());
        answered.store(0, Ordering::Relaxed);
        while watched.elapsed() < WATCHED {
            block.send_replace(());
            blocks.tick().await;
        }
        let spent = processor_time().saturating_sub(spent);
        let busy = spent.as_secs_f64() / watched.elapsed().as_secs_f64();
        let expected = connections * WATCHED.as_secs() as usize;
        assert!(answered.load(Ordering::Relaxed) >= expected, "an answer is late");
        Bare { bytes, rate, busy }
    })
}

/// Sends a message with each block, and reads its answer.
async fn announce(
    connection: quinn::Connection,
    mut beat: Heartbeat,
    mut block: watch::Receiver<()>,
    answered: Arc<AtomicUsize>,
) {
    let (mut send, mut receive) = connection.accept_bi().await.expect("the client opens it");
    receive.read_exact(&mut beat.ping).await.expect("the stream goes on");
    while block.changed().await.is_ok() {
        send.write_all(&beat.pong).await.expect("the stream goes on");
        receive.read_exact(&mut beat.ping).await.expect("the stream goes on");
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Answers each message.
async fn answer(connection: quinn::Connection, mut beat: Heartbeat) {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    send.write_all(&beat.ping).await.expect("the stream goes on");
    while receive.read_exact(&mut beat.pong).await.is_ok() {
        send.write_all(&beat.ping).await.expect("the stream goes on");
    }
}

/// The process's resident memory in bytes (Linux only).
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).expect("the second field");
    pages.parse::<u64>().expect("a number") * rustix::param::page_size() as u64
}
