//! The simulation's validators without the simulator: sockets on the loopback, files on the disk.

use commonware_cryptography::Signer as _;
use commonware_runtime::{Runner as _, tokio};
use cowboy_devnet::{
    chain::{known::Known, ledger::Ledger},
    consensus::{
        PROTOCOL,
        hurry::Hurry,
        network::{Peer, Tcp},
        presence::RunnerView,
        timing::FastForward,
    },
    orchestrator::ports::Ports,
    sample::{validator_keys, validator_name},
    storage::ValidatorStore,
    validator::{ValidatorConfig, ValidatorHandle, node::RunnerService, start_validator},
};
use cowboy_engine::chain::Genesis;
use cowboy_simulation::Setup;
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

/// Makes a validator's view of its runners, and the gateway that serves them.
pub type Serve = Box<dyn Fn(usize) -> (Arc<dyn RunnerView>, Option<RunnerService<tokio::Context>>)>;

/// Validators that are started and stopped at will.
pub struct Devnet {
    pub context: tokio::Context,
    pub genesis: Arc<Genesis>,
    pub ports: Ports,
    setup: Setup,
    folder: PathBuf,
    known: Known,
    serve: Option<Serve>,
    running: Vec<Option<ValidatorHandle>>,
}

/// Runs `devnet` on the validators of `setup`, none of which is started yet, in a folder that is
/// removed in the end.
pub fn run<T>(setup: Setup, devnet: impl AsyncFnOnce(Devnet) -> T) -> T {
    let folder = tempfile::tempdir().expect("a folder");
    let config = tokio::Config::new()
        .with_storage_directory(folder.path().join("consensus"))
        .with_worker_threads(2)
        .with_tcp_nodelay(Some(true));
    tokio::Runner::new(config).start(async |context| {
        let count = setup.genesis.validators.len();
        let names: Vec<String> = (0..count).map(validator_name).collect();
        let ports = Ports::load_or_choose(&folder.path().join("ports"), &names, None, None);
        let running = Devnet {
            context,
            genesis: Arc::new(setup.genesis.clone()),
            ports: ports.expect("free ports"),
            setup,
            folder: folder.path().to_owned(),
            known: Known::default(),
            serve: None,
            running: (0..count).map(|_| None).collect(),
        };
        devnet(running).await
    })
}

impl Devnet {
    /// Starts every validator; each serves runners with its result of `serve`.
    pub fn start_all(&mut self, serve: Option<Serve>) {
        self.serve = serve;
        (0..self.running.len()).for_each(|index| self.start(index));
    }

    /// Starts a validator from its stored data.
    pub fn start(&mut self, index: usize) {
        let name = validator_name(index);
        let chain_id = self.genesis.chain_id();
        let store = ValidatorStore::open(&self.folder.join(format!("{name}.db")), chain_id);
        let store = Arc::new(store.expect("the store opens"));
        let (view, gateway) = match &self.serve {
            Some(serve) => serve(index),
            None => ((self.setup.view)(index), None),
        };
        let key = validator_keys(index).consensus;
        let address = |index| {
            let port = self.ports.p2p[&validator_name(index)];
            SocketAddr::from((Ipv4Addr::LOCALHOST, port))
        };
        let peers = (0..self.running.len()).map(|index| Peer {
            key: validator_keys(index).consensus.public_key(),
            address: Some(address(index)),
        });
        let network = Tcp {
            key: key.clone(),
            chain_id,
            protocol: PROTOCOL,
            listen: address(index),
            peers: ::tokio::sync::watch::channel(peers.collect()).1,
        };
        let config = ValidatorConfig {
            name,
            key,
            genesis: self.genesis.clone(),
            timing: self.setup.timing,
            fast_forward: FastForward::default(),
            hurry: Hurry::default(),
            ledger: Ledger::open(&self.genesis, store).expect("the store is sound"),
            known: self.known.clone(),
            view,
            gateway,
        };
        let handle = start_validator(&self.context, config, network).expect("it starts");
        self.running[index] = Some(handle);
    }

    /// Stops a running validator.
    pub async fn stop(&mut self, index: usize) {
        self.running[index].take().expect("it runs").stop().await;
    }

    /// A running validator.
    pub fn validator(&mut self, index: usize) -> &mut ValidatorHandle {
        self.running[index].as_mut().expect("it runs")
    }
}
