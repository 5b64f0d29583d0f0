//! Blocks per second of a devnet of four validators.
//!
//! `cargo bench -p cowboy-devnet --bench chain [simulated] [empty] [transfers]`: in the simulator
//! (5 ± 1 ms links), and in real time over the loopback and the disk with no pacing, with empty
//! blocks and with 500 transfers submitted per block. The folder for files is `$TMPDIR`.

use commonware_cryptography::Signer as _;
use commonware_runtime::{Clock as _, Runner as _, tokio};
use cowboy_devnet::{
    chain::known::Known,
    consensus::{network::Loopback, presence::RunnerView, timing::Timing},
    orchestrator::ports::Ports,
    simulation::{self, Cluster, Setup, cluster::transfer},
    storage::Store,
    validator::{ValidatorConfig, ValidatorHandle, node::consensus_key, start_validator},
};
use cowboy_engine::{presence::Bitmap, primitives::Height, registry::Order};
use std::{
    io::{self, Write as _},
    sync::Arc,
    time::{Duration, Instant},
};

const VALIDATORS: usize = 4;
const RUNNERS: usize = 8;

struct Everybody;

impl RunnerView for Everybody {
    fn presence(&self, _: Height, order: &Order) -> Bitmap {
        Bitmap::from_fn(order.len(), |_| true)
    }
}

fn main() -> io::Result<()> {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    if wanted("simulated") {
        say("simulated, unpaced", simulated(Duration::ZERO, 500))?;
        say("simulated, 250 ms", simulated(Duration::from_millis(250), 500))?;
    }
    if wanted("empty") {
        say("real time, empty blocks", real_time(0, Duration::from_secs(10)))?;
    }
    if wanted("transfers") {
        say("real time, 500 transfers", real_time(500, Duration::from_secs(10)))?;
    }
    Ok(())
}

fn say(name: &str, (blocks, took, transactions): (u64, Duration, u64)) -> io::Result<()> {
    let per_second = u128::from(blocks) * 10_000 / took.as_millis().max(1);
    let each = transactions / blocks.max(1);
    writeln!(
        io::stdout(),
        "{name:<26} {blocks:>5} blocks in {took:.2?}: {}.{} blocks/s, {each} transactions each",
        per_second / 10,
        per_second % 10,
    )
}

/// Blocks, wall time, transactions.
fn simulated(block_time: Duration, blocks: u64) -> (u64, Duration, u64) {
    simulation::run(1, async |context| {
        let mut cluster = Cluster::new(context, Setup::new(VALIDATORS, RUNNERS, block_time))
            .await
            .expect("a cluster");
        cluster.start_all().expect("they start");
        let start = Instant::now();
        assert!(cluster.reach(blocks, Duration::from_secs(10_000)).await, "the chain is stuck");
        (blocks, start.elapsed(), 0)
    })
}

fn real_time(transfers: u64, duration: Duration) -> (u64, Duration, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = tokio::Config::new()
        .with_storage_directory(folder.path().join("consensus"))
        .with_worker_threads(2)
        .with_tcp_nodelay(Some(true));
    tokio::Runner::new(config).start(async |context| {
        let genesis = Arc::new(Setup::new(VALIDATORS, RUNNERS, Duration::ZERO).genesis);
        let names: Vec<String> =
            (0..VALIDATORS).map(|index| format!("validator-{index}")).collect();
        let ports =
            Ports::load_or_choose(&folder.path().join("ports"), &names, None).expect("free ports");
        let key = |name: &str| consensus_key(b"simulation", name);
        let known = Known::default();
        let begun = Instant::now();
        let validators: Vec<ValidatorHandle> = names
            .iter()
            .map(|name| {
                let chain_id = genesis.chain_id();
                let store = Store::open(&folder.path().join(format!("{name}.db")), chain_id);
                let config = ValidatorConfig {
                    name: name.clone(),
                    key: key(name),
                    genesis: genesis.clone(),
                    timing: Timing::new(Duration::ZERO),
                    store: Arc::new(store.expect("the store opens")),
                    known: known.clone(),
                    view: Arc::new(Everybody),
                    gateway: None,
                };
                let ports =
                    names.iter().map(|name| (key(name).public_key(), ports.p2p[name])).collect();
                let network = Loopback { key: key(name), chain_id, ports };
                start_validator(&context, config, network).expect("it starts")
            })
            .collect();
        let services = validators[0].services();
        services.ledger.wait_executed(Height::new(1)).await.expect("a first block");
        let _ = writeln!(io::stdout(), "first block after {:?}", begun.elapsed());
        let mut nonces = [0; 4];
        let mut submit = |blocks: u64| {
            let state = services.ledger.newest().state;
            for number in 0..transfers * blocks {
                let from = (number % 4) as usize;
                let transaction = transfer(&state, from, nonces[from], (from + 1) % 4);
                // A queue that is full has enough for the next blocks.
                if services.submit(transaction).is_ok() {
                    nonces[from] += 1;
                }
            }
        };
        let (start, first) = (Instant::now(), services.ledger.head().height().get());
        let mut seen = first;
        submit(2);
        while start.elapsed() < duration {
            services.ledger.wait_executed(Height::new(seen + 1)).await.expect("the chain goes on");
            let height = services.ledger.newest().state.height().get();
            submit(height - seen);
            seen = height;
            // Lets the validators' tasks have the thread.
            context.sleep(Duration::ZERO).await;
        }
        let (took, last) = (start.elapsed(), services.ledger.head().height().get());
        let executed = |height| services.ledger.store().receipts(Height::new(height));
        let transactions: usize =
            (first + 1..=last).map(|height| executed(height).expect("stored").len()).sum();
        for validator in validators {
            validator.stop().await;
        }
        (last - first, took, transactions as u64)
    })
}
