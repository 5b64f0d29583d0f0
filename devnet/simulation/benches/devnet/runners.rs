//! Runners in this process, connected over QUIC to the validators of a [`Devnet`].

use crate::loopback::{Devnet, Serve};
use commonware_runtime::Supervisor as _;
use cowboy_devnet::{
    executor::Executor,
    runner::{self, Runner, ValidatorAddress},
    sample::{key, validator_keys, validator_name},
    transport::{
        quic::{QuicClient, QuicListener},
        tls::Identity,
    },
    validator::{
        Services,
        gateway::{self, Gateway},
        limiter::BucketLimits,
        service,
    },
};
use cowboy_engine::registry::JobKind;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

/// The newest gateway of each validator that was started. Clones share them.
#[derive(Clone, Default)]
pub struct Gateways(pub Arc<Mutex<BTreeMap<usize, Gateway>>>);

impl Gateways {
    /// Serves runners with a new gateway each time a validator of `devnet` starts.
    pub fn serve(&self, devnet: &Devnet, limits: BucketLimits, block_time: Duration) -> Serve {
        let state = devnet.genesis.state().expect("a chain");
        let (gateways, address) = (self.clone(), addresses(devnet));
        Box::new(move |index| {
            let key = validator_keys(index).identity;
            let identity = Identity::new(&key).expect("an identity");
            let listener = QuicListener::bind(&identity, address(index), |_| true).expect("a port");
            let config = gateway::GatewayConfig { key: key.clone(), limits, state: state.clone() };
            let (gateway, results) = Gateway::new(config);
            let mut gateways = gateways.0.lock().expect("no other thread panics");
            gateways.insert(index, gateway.clone());
            let serving = service::serve(gateway.clone(), results, key, listener, block_time);
            (Arc::new(gateway), Some(serving))
        })
    }
}

fn addresses(devnet: &Devnet) -> impl Fn(usize) -> SocketAddr + Send + 'static {
    let ports = devnet.ports.clone();
    move |index| SocketAddr::from((Ipv4Addr::LOCALHOST, ports.quic[&validator_name(index)]))
}

/// Starts `runners` runners, each connected to its subset of the validators through one socket.
pub fn start(devnet: &Devnet, runners: usize) -> Vec<Runner> {
    let address = addresses(devnet);
    let validators: Vec<_> = (0..devnet.genesis.validators.len())
        .map(|index| ValidatorAddress {
            key: validator_keys(index).identity.public_key(),
            address: address(index),
        })
        .collect();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let client = QuicClient::bind(any).expect("a socket");
    (0..runners)
        .map(|index| {
            let key = key(&format!("runner-{index}"));
            let dialer = client.dialer(Identity::new(&key).expect("an identity"));
            let config = runner::RunnerConfig {
                chain_id: devnet.genesis.chain_id(),
                known: runner::targets(&key.public_key(), &validators),
                agents: BTreeSet::new(),
                key,
                by_hand: false,
                kinds: [JobKind::Custom].into(),
                withdrawn: [].into(),
                max_concurrent_jobs: 4,
                polling: None,
                pledges: None,
            };
            let context = devnet.context.child("runner");
            runner::start(context, config, dialer, Executor::default())
        })
        .collect()
}

/// Resolves once the chain of a validator counts this many runners as present.
pub async fn present(services: &Services, runners: usize) {
    let mut blocks = services.ledger.subscribe();
    loop {
        let state = services.ledger.head();
        if state.present_at(state.height()).is_some_and(|present| present.len() >= runners) {
            return;
        }
        blocks.recv().await.expect("the chain goes on");
    }
}
