//! The chain under stops, crashes and loss, on a virtual clock.

use commonware_runtime::{Clock as _, Storage as _, deterministic};
use cowboy_devnet::{
    chain::mempool::PendingPool,
    consensus::presence::RunnerView,
    sample::{key, transfer},
};
use cowboy_engine::{
    chain::{ReceiptStatus, State},
    presence::Bitmap,
    primitives::{Hash, Height, keccak256},
    registry::Order,
};
use cowboy_simulation::{Cluster, Report, Scenario, Setup, run};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

mod actors;
mod byzantine;
mod committee;
mod conditions;
mod epochs;
mod outages;
mod parameters;
mod play;
mod reveals;
mod rotation;
mod scripts;
mod services;
mod timers;

const BLOCK_TIME: Duration = Duration::from_millis(250);
const MINUTE: Duration = Duration::from_secs(60);

async fn cluster(context: deterministic::Context, setup: Setup) -> Cluster {
    Cluster::new(context, setup).await.expect("a cluster")
}

/// The end of every simulation: one chain, no validator cut off, no contradiction.
async fn settle(cluster: &Cluster) {
    assert_eq!(cluster.disagreement().expect("stores answer"), None);
    assert_eq!(cluster.blocked().await.expect("the network answers"), []);
    for validator in cluster.running() {
        let services = validator.services();
        assert_eq!(services.ledger.alarm(), None);
        assert_eq!(services.counters().conflicts, 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_chain() {
    let log = |seed| {
        run(seed, async |context| {
            let auditor = context.auditor().clone();
            let mut cluster = cluster(context, Setup::new(4, 8, Duration::ZERO)).await;
            cluster.start_all().expect("they start");
            assert!(cluster.reach(60, MINUTE).await, "stuck at {:?}", cluster.heights());
            settle(&cluster).await;
            (cluster.log_hash(0).expect("the store answers"), auditor.state())
        })
    };
    let (first, again, other): ((Hash, String), _, _) = (log(7), log(7), log(8));
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
}

#[test]
fn a_start_gives_up_no_view() {
    for seed in 0..8 {
        run(seed, async |context| {
            let mut setup = Setup::new(4, 8, BLOCK_TIME);
            setup.link.latency = Duration::from_millis(40);
            setup.link.jitter = Duration::from_millis(20);
            let mut cluster = cluster(context, setup).await;
            for index in 0..4 {
                cluster.start(index).expect("it starts");
                cluster.pass(Duration::from_millis(30)).await;
            }
            assert!(cluster.reach(8, MINUTE).await, "stuck at {:?}", cluster.heights());
            for validator in cluster.running() {
                assert_eq!(validator.services().counters().nullified, 0, "seed {seed}");
            }
            settle(&cluster).await;
        });
    }
}

#[test]
fn every_block_carries_its_parents_certificate() {
    run(1, async |context| {
        let mut cluster = cluster(context, Setup::new(4, 8, BLOCK_TIME)).await;
        cluster.start_all().expect("they start");
        let start = cluster.context().current();
        assert!(cluster.reach(100, MINUTE).await, "stuck at {:?}", cluster.heights());
        let took = cluster.context().current().duration_since(start).expect("time passes");
        assert!(took < BLOCK_TIME * 105, "100 blocks took {took:?}");
        let (certified, blocks) = cluster.parents_certified(0).expect("the store answers");
        assert_eq!(certified, blocks);
        let presence = cluster.store(0).presence(Height::new(50)).expect("the store answers");
        let bitmap = presence.expect("certified").bitmap().expect("a bitmap");
        assert_eq!((bitmap.len(), bitmap.count_ones()), (8, 8));
        settle(&cluster).await;
    });
}

#[test]
fn three_of_four_go_on_and_the_fourth_catches_up() {
    run(2, async |context| {
        let mut cluster = cluster(context, Setup::new(4, 8, BLOCK_TIME)).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(20, MINUTE).await);
        cluster.stop(3).await;
        assert!(cluster.reach(220, 5 * MINUTE).await, "stuck at {:?}", cluster.heights());
        let (certified, blocks) = cluster.parents_certified(0).expect("the store answers");
        println!(
            "one of four stopped: {certified} of {blocks} blocks carry their parent's certificate"
        );
        assert!(certified * 100 >= blocks * 95, "{certified} of {blocks}");
        let before = cluster.heights().1;
        cluster.start(3).expect("it starts again");
        assert!(cluster.reach(before.get() + 20, MINUTE).await, "behind: {:?}", cluster.heights());
        assert!(cluster.validator(3).expect("running").services().counters().finalized > 0);
        settle(&cluster).await;
    });
}

#[test]
fn two_of_four_halt_and_resume() {
    run(3, async |context| {
        let mut cluster = cluster(context, Setup::new(4, 8, BLOCK_TIME)).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(20, MINUTE).await);
        cluster.stop(1).await;
        cluster.stop(2).await;
        cluster.pass(Duration::from_secs(2)).await;
        let halted = cluster.heights();
        cluster.pass(Duration::from_secs(30)).await;
        assert_eq!(cluster.heights(), halted, "two of four decide nothing");
        cluster.start(1).expect("it starts again");
        assert!(
            cluster.reach(halted.1.get() + 20, MINUTE).await,
            "stuck at {:?}",
            cluster.heights()
        );
        settle(&cluster).await;
    });
}

#[test]
fn everybody_crashes_and_goes_on() {
    run(4, async |context| {
        let mut cluster = cluster(context, Setup::new(4, 8, BLOCK_TIME)).await;
        for round in 1..=5 {
            cluster.start_all().expect("they start");
            assert!(cluster.reach(round * 20, MINUTE).await, "stuck at {:?}", cluster.heights());
            cluster.pass(Duration::from_millis(round * 37)).await;
            for index in 0..4 {
                cluster.stop(index).await;
            }
        }
        cluster.start_all().expect("they start");
        assert!(cluster.reach(120, MINUTE).await, "stuck at {:?}", cluster.heights());
        settle(&cluster).await;
    });
}

#[test]
fn loss_and_latency_cost_certificates_but_no_blocks() {
    run(5, async |context| {
        let mut setup = Setup::new(4, 8, BLOCK_TIME);
        setup.link = commonware_p2p::simulated::Link {
            latency: Duration::from_millis(50),
            jitter: Duration::from_millis(30),
            success_rate: commonware_utils::probability!(0.98),
        };
        let mut cluster = cluster(context, setup).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(200, 5 * MINUTE).await, "stuck at {:?}", cluster.heights());
        let (certified, blocks) = cluster.parents_certified(0).expect("the store answers");
        println!(
            "20-80 ms, 2 % loss: {certified} of {blocks} blocks carry their parent's certificate"
        );
        assert!(certified * 100 >= blocks * 80, "{certified} of {blocks}");
        settle(&cluster).await;
    });
}

/// Submits `count` transfers from each account, each to a different validator than the previous
/// one.
fn submit(cluster: &Cluster, first: u64, count: u64) -> Vec<Hash> {
    let mut hashes = Vec::new();
    for nonce in first..first + count {
        for from in 0..4 {
            let running: Vec<_> = cluster.running().collect();
            let services = running[(nonce as usize + from) % running.len()].services();
            let state = services.ledger.head();
            let transaction = transfer(&state, from, nonce, (from + 1) % 4);
            hashes.push(services.submit(transaction).expect("a valid transfer"));
        }
    }
    hashes
}

fn nonces(state: &State) -> [u64; 4] {
    [0, 1, 2, 3].map(|account| state.account(&key(&format!("account-{account}")).address()).nonce)
}

#[test]
fn every_transaction_is_executed_once() {
    run(6, async |context| {
        let mut cluster = cluster(context, Setup::new(4, 0, BLOCK_TIME)).await;
        let supply = cluster.genesis().state().expect("a chain").supply().total();
        cluster.start_all().expect("they start");
        assert!(cluster.reach(3, MINUTE).await);
        let mut submitted = submit(&cluster, 0, 40);
        assert!(cluster.reach(10, MINUTE).await);
        // A crash loses transactions that are only in one mempool; these have had time to spread.
        submitted.extend(submit(&cluster, 40, 40));
        cluster.pass(Duration::from_millis(100)).await;
        cluster.stop(2).await;
        assert!(cluster.reach(30, MINUTE).await);
        cluster.start(2).expect("it starts again");
        assert!(cluster.reach(50, MINUTE).await, "stuck at {:?}", cluster.heights());
        for validator in cluster.running() {
            let services = validator.services();
            let state = services.ledger.head();
            assert_eq!(nonces(&state), [80; 4]);
            assert_eq!(state.supply().total(), supply);
            assert_eq!(services.mempool.with(PendingPool::len), 0);
        }
        let mut executed = BTreeSet::new();
        for height in 1..=cluster.heights().0.get() {
            let receipts = cluster.store(2).receipts(Height::new(height)).expect("stored");
            for receipt in receipts {
                assert_eq!(receipt.status, ReceiptStatus::Success);
                assert!(executed.insert(receipt.transaction), "{} twice", receipt.transaction);
            }
        }
        assert_eq!(executed, submitted.into_iter().collect());
        settle(&cluster).await;
    });
}

/// Validator i does not see runners whose number is i modulo 4; only validator 0 sees runner 5.
struct Partial(u32);

impl RunnerView for Partial {
    fn presence(&self, _: Height, _: &State, order: &Order) -> Bitmap {
        Bitmap::from_fn(order.len(), |runner| match runner {
            5 => self.0 == 0,
            _ => runner % 4 != self.0,
        })
    }
}

#[test]
fn what_most_validators_see_is_present() {
    run(7, async |context| {
        let mut setup = Setup::new(4, 8, BLOCK_TIME);
        setup.view = Box::new(|index| Arc::new(Partial(index as u32)));
        let mut cluster = cluster(context, setup).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(40, MINUTE).await);
        for height in 1..40 {
            let presence = cluster.store(0).presence(Height::new(height)).expect("stored");
            let bitmap = presence.expect("certified").bitmap().expect("a bitmap");
            let present: Vec<u32> = bitmap.ones().collect();
            // At least two of three votes see each of the others; one vote is below f + 1.
            assert_eq!(present, [0, 1, 2, 3, 4, 6, 7], "at {height}");
        }
        settle(&cluster).await;
    });
}

#[test]
fn a_validator_that_starts_late_takes_the_whole_chain() {
    run(8, async |context| {
        let mut cluster = cluster(context, Setup::new(4, 4, BLOCK_TIME)).await;
        for index in [0, 2, 3] {
            cluster.start(index).expect("it starts");
        }
        assert!(cluster.reach(150, 5 * MINUTE).await);
        cluster.start(1).expect("it starts");
        assert!(cluster.reach(170, MINUTE).await, "behind: {:?}", cluster.heights());
        settle(&cluster).await;
    });
}

#[test]
fn a_validator_that_comes_late_gets_blocks_that_consensus_has_dropped() {
    run(9, async |context| {
        let within = commonware_runtime::Supervisor::child(&context, "cluster");
        let mut cluster = cluster(within, Setup::new(4, 4, Duration::ZERO)).await;
        for index in [0, 2, 3] {
            cluster.start(index).expect("it starts");
        }
        let files = async |validator: &str, archive: &str| {
            let partition = format!("{validator}-{archive}-value");
            context.scan(&partition).await.expect("the archive is there").len()
        };
        assert!(cluster.reach(1_100, 10 * MINUTE).await, "stuck at {:?}", cluster.heights());
        let early = files("validator-0", "blocks").await;
        assert!(cluster.reach(2_600, 10 * MINUTE).await, "stuck at {:?}", cluster.heights());
        for archive in ["blocks", "finalizations"] {
            assert_eq!(files("validator-0", archive).await, early, "{archive}");
        }
        cluster.start(1).expect("it starts");
        assert!(cluster.reach(2_650, 10 * MINUTE).await, "behind: {:?}", cluster.heights());
        settle(&cluster).await;
    });
}

#[test]
fn a_validator_goes_on_without_its_store() {
    for (seed, height) in [(1, 90), (2, 1_700)] {
        run(seed, async |context| {
            let mut cluster = cluster(context, Setup::new(4, 4, BLOCK_TIME)).await;
            cluster.start_all().expect("they start");
            assert!(cluster.reach(height, 20 * MINUTE).await, "stuck at {:?}", cluster.heights());
            cluster.stop(1).await;
            cluster.lose_store(1).expect("SQLite opens");
            cluster.start(1).expect("it starts");
            assert!(cluster.reach(height + 20, MINUTE).await, "behind: {:?}", cluster.heights());
            settle(&cluster).await;
        });
    }
}

#[test]
fn a_validator_goes_on_without_what_consensus_kept() {
    for (seed, height) in [(1, 90), (2, 300), (3, 1_700)] {
        run(seed, async |context| {
            let within = commonware_runtime::Supervisor::child(&context, "cluster");
            let mut cluster = cluster(within, Setup::new(4, 4, BLOCK_TIME)).await;
            cluster.start_all().expect("they start");
            assert!(cluster.reach(height, 20 * MINUTE).await, "stuck at {:?}", cluster.heights());
            cluster.stop(1).await;
            let archives = ["blocks", "finalizations"].into_iter().flat_map(|archive| {
                ["meta", "key", "value"].map(|part| format!("validator-1-{archive}-{part}"))
            });
            let journals = (0..=height / 256).map(|epoch| format!("validator-1-simplex-{epoch}"));
            let metadata = "validator-1-marshal-application-metadata".to_owned();
            for partition in archives.chain(journals).chain([metadata]) {
                // An epoch's journal is removed with the epoch after it.
                let _ = context.remove(&partition, None).await;
            }
            let before = cluster.store(1).head().expect("the store answers").expect("blocks").0;
            cluster.start(1).expect("it starts");
            assert!(cluster.reach(height + 20, MINUTE).await, "behind: {:?}", cluster.heights());
            assert!(before.get() >= height);
            settle(&cluster).await;
            // It votes again without being cut off for it.
            cluster.stop(0).await;
            assert!(cluster.reach(height + 40, MINUTE).await, "stuck at {:?}", cluster.heights());
        });
    }
}

/// Four validators and eight runners, 300 blocks: the scenario that 50 seeds pass.
const SCENARIO: Scenario = Scenario { validators: 4, runners: 8, blocks: 300 };

fn scenario(seed: u64) -> Report {
    let report = run(seed, async |context| SCENARIO.run(context).await)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert!(report.submitted > 200, "seed {seed}: {report:?}");
    assert!(report.verified * 100 >= report.submitted * 95, "seed {seed}: {report:?}");
    report
}

#[test]
fn a_seed_is_a_run() {
    let first = scenario(1_000);
    assert_eq!(scenario(1_000), first);
    assert_ne!(scenario(1_001).log, first.log);
}

/// The number of seeds to play: from an environment variable, otherwise all.
fn seeds(variable: &str, all: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(all, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// Ten tests with a tenth of the seeds each, so that they run in parallel.
macro_rules! seeds {
    ($($name:ident: $remainder:literal),*) => {$(
        #[test]
        fn $name() {
            for seed in ($remainder..seeds("COWBOYCTL_SCENARIO_SEEDS", 50)).step_by(10) {
                scenario(seed);
            }
        }
    )*};
}

seeds! {
    seeds_0: 0, seeds_1: 1, seeds_2: 2, seeds_3: 3, seeds_4: 4, seeds_5: 5, seeds_6: 6, seeds_7: 7,
    seeds_8: 8, seeds_9: 9
}
