//! A thousand runners on ten validators in one process.

use crate::{
    bare::{LOOPBACK, ends},
    loopback,
};
use commonware_runtime::{Clock as _, Supervisor as _};
use cowboy_devnet::{
    executor::Executor,
    orchestrator::ports::{self, Transport},
    runner::{self, Runner, ValidatorAddress},
    sample::{key, validator_keys, validator_name},
    transport::{
        quic::{QuicClient, QuicListener},
        tls::Identity,
    },
    validator::{
        gateway::{self, Gateway},
        limiter::BucketLimits,
        service,
    },
};
use cowboy_engine::{presence::ThresholdRule, registry::JobKind};
use cowboy_simulation::Setup;
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

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
    /// Processor time per second while only blocks are made.
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
        let chosen = devnet.ports.clone();
        let address = move |index: usize| {
            SocketAddr::from((Ipv4Addr::LOCALHOST, chosen.quic[&validator_name(index)]))
        };
        let (listen, state) = (address.clone(), devnet.genesis.state().expect("a chain"));
        let gateways: Arc<Mutex<Vec<Option<Gateway>>>> =
            Arc::new(Mutex::new((0..VALIDATORS).map(|_| None).collect()));
        let served = gateways.clone();
        devnet.start_all(Some(Box::new(move |index| {
            let key = validator_keys(index).identity;
            let identity = Identity::new(&key).expect("an identity");
            let listener = QuicListener::bind(&identity, listen(index), |_| true).expect("a port");
            let config = gateway::GatewayConfig {
                key: key.clone(),
                limits: BucketLimits::sharing_an_address(runners),
                state: state.clone(),
            };
            let (gateway, results) = Gateway::new(config);
            served.lock().expect("no other thread panics")[index] = Some(gateway.clone());
            let serving = service::serve(gateway.clone(), results, key, listener, BLOCK_TIME);
            (Arc::new(gateway), Some(serving))
        })));
        let services = devnet.validator(0).services().clone();
        let mut blocks = services.ledger.subscribe();
        // By then, validators have allocated their own memory.
        for _ in 0..WARM_UP {
            blocks.recv().await.expect("the chain goes on");
        }

        let validators: Vec<_> = (0..VALIDATORS)
            .map(|index| ValidatorAddress {
                key: validator_keys(index).identity.public_key(),
                address: address(index),
            })
            .collect();
        let client = QuicClient::bind(LOOPBACK).expect("a socket");
        let (before, begun) = (resident(), Instant::now());
        let running: Vec<Runner> = (0..runners)
            .map(|index| {
                let key = key(&format!("runner-{index}"));
                let dialer = client.dialer(Identity::new(&key).expect("an identity"));
                let config = runner::RunnerConfig {
                    chain_id: devnet.genesis.chain_id(),
                    known: runner::targets(&key.public_key(), &validators),
                    agents: std::collections::BTreeSet::new(),
                    key,
                    kinds: [JobKind::Custom].into(),
                    withdrawn: [].into(),
                    max_concurrent_jobs: 4,
                    polling: None,
                    pledges: None,
                };
                let context = devnet.context.child("runner");
                runner::start(context, config, dialer, Executor::default())
            })
            .collect();
        let present = || {
            let state = services.ledger.head();
            state.present_at(state.height()).map_or(0, <[_]>::len)
        };
        while present() < runners {
            blocks.recv().await.expect("the chain goes on");
        }
        let took = begun.elapsed();
        let gateway = |index: usize| -> Gateway {
            gateways.lock().expect("no other thread panics")[index].clone().expect("it was started")
        };
        let connections = (0..VALIDATORS).map(|index| *gateway(index).count().borrow()).sum();
        let bytes = resident().saturating_sub(before) / connections as u64;

        let (spent, watched) = (processor_time(), Instant::now());
        devnet.context.sleep(WATCHED).await;
        let spent = processor_time().saturating_sub(spent);
        let busy = spent.as_secs_f64() / watched.elapsed().as_secs_f64();

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
        Crowd { connections, present: took, bytes, busy, returning, down, back }
    })
}

/// Opens this many plain QUIC connections with both ends in this process. Returns the memory per
/// connection in bytes and the handshakes per second.
pub fn bare(connections: usize) -> (u64, f64) {
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
        (bytes, rate)
    })
}

/// The process's resident memory in bytes (Linux only).
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).expect("the second field");
    pages.parse::<u64>().expect("a number") * rustix::param::page_size() as u64
}

/// The process's processor time (Linux only).
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
