//! Validators in real time: sockets on the loopback, files on the disk, stopped and started.

use commonware_cryptography::Signer as _;
use commonware_runtime::{Clock as _, Runner as _, tokio};
use cowboy_devnet::{
    chain::known::Known,
    consensus::{network::Loopback, presence::RunnerView, timing::Timing},
    orchestrator::ports::Ports,
    simulation::{Setup, cluster::transfer},
    storage::Store,
    validator::{ValidatorConfig, ValidatorHandle, node::consensus_key, start_validator},
};
use cowboy_engine::{
    chain::Genesis,
    presence::Bitmap,
    primitives::{Height, keccak256},
    registry::Order,
};
use std::{path::Path, sync::Arc, time::Duration};

const BLOCK_TIME: Duration = Duration::from_millis(100);
/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

struct Everybody;

impl RunnerView for Everybody {
    fn presence(&self, _: Height, order: &Order) -> Bitmap {
        Bitmap::from_fn(order.len(), |_| true)
    }
}

struct Devnet<'a> {
    context: tokio::Context,
    folder: &'a Path,
    genesis: Arc<Genesis>,
    ports: Vec<u16>,
    known: Known,
    running: Vec<Option<ValidatorHandle>>,
}

impl<'a> Devnet<'a> {
    fn new(context: tokio::Context, folder: &'a Path) -> Self {
        let genesis = Arc::new(Setup::new(4, 3, BLOCK_TIME).genesis);
        let names: Vec<String> = (0..4).map(|index| format!("validator-{index}")).collect();
        let ports = Ports::load_or_choose(&folder.join("ports"), &names, None).expect("free ports");
        let ports = names.iter().map(|name| ports.p2p[name]).collect();
        let running = (0..4).map(|_| None).collect();
        Self { context, folder, genesis, ports, known: Known::default(), running }
    }

    fn start(&mut self, index: usize) {
        let key = |index: usize| consensus_key(b"simulation", &format!("validator-{index}"));
        let name = format!("validator-{index}");
        let chain_id = self.genesis.chain_id();
        let store = Store::open(&self.folder.join(format!("{name}.db")), chain_id);
        let config = ValidatorConfig {
            name,
            key: key(index),
            genesis: self.genesis.clone(),
            timing: Timing::new(BLOCK_TIME),
            store: Arc::new(store.expect("the store opens")),
            known: self.known.clone(),
            view: Arc::new(Everybody),
            gateway: None,
        };
        let ports = self.ports.iter().enumerate();
        let ports = ports.map(|(index, port)| (key(index).public_key(), *port)).collect();
        let network = Loopback { key: key(index), chain_id, ports };
        let handle = start_validator(&self.context, config, network).expect("it starts");
        self.running[index] = Some(handle);
    }

    async fn stop(&mut self, index: usize) {
        self.running[index].take().expect("it runs").stop().await;
    }

    fn validator(&self, index: usize) -> &ValidatorHandle {
        self.running[index].as_ref().expect("it runs")
    }

    fn height(&self, index: usize) -> u64 {
        self.validator(index).services().ledger.head().height().get()
    }

    /// Runs until every running validator has executed `height`.
    async fn reach(&mut self, height: u64) {
        for validator in self.running.iter_mut().flatten() {
            let executed = validator.services().ledger.wait_executed(Height::new(height));
            commonware_macros::select! {
                result = executed => result.expect("the ledger goes on"),
                error = validator.ended() => panic!("a validator ended: {error}"),
                () = self.context.sleep(PATIENCE) => panic!("no block {height}"),
            }
        }
    }
}

fn run(devnet: impl AsyncFnOnce(Devnet<'_>)) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = tokio::Config::new()
        .with_storage_directory(folder.path().join("consensus"))
        .with_worker_threads(2)
        .with_tcp_nodelay(Some(true));
    tokio::Runner::new(config)
        .start(async |context| devnet(Devnet::new(context, folder.path())).await);
}

#[test]
fn a_chain_outlives_stops_of_its_validators() {
    run(async |mut devnet| {
        (0..4).for_each(|index| devnet.start(index));
        devnet.reach(5).await;

        // One stops: the others go on; it starts over its files and catches up.
        devnet.stop(3).await;
        let height = devnet.height(0);
        devnet.reach(height + 10).await;
        devnet.start(3);
        let height = devnet.height(0);
        devnet.reach(height + 5).await;

        // A transaction that one takes is executed by all.
        let services = devnet.validator(3).services();
        let transaction = transfer(&services.ledger.head(), 0, 0, 1);
        let hash = services.submit(transaction).expect("a valid transfer");
        let height = devnet.height(0);
        devnet.reach(height + 5).await;
        for index in 0..4 {
            let store = devnet.validator(index).services().ledger.store().clone();
            store.transaction(&hash).expect("the store answers").expect("executed");
        }

        // All stop, and start again with what is on the disk.
        for index in 0..4 {
            devnet.stop(index).await;
        }
        (0..4).for_each(|index| devnet.start(index));
        devnet.reach(height + 10).await;
        let stores: Vec<_> =
            (0..4).map(|index| devnet.validator(index).services().ledger.store().clone()).collect();
        for height in 1..=height {
            let blocks = stores.iter().map(|store| {
                let block = store.block(Height::new(height)).expect("the store answers");
                let (root, _) =
                    store.executed(Height::new(height)).expect("answers").expect("is there");
                keccak256(&[&block.expect("is there").hash().0, &root.0])
            });
            let blocks: Vec<_> = blocks.collect();
            assert!(blocks.windows(2).all(|pair| pair[0] == pair[1]), "height {height}");
        }
    });
}
