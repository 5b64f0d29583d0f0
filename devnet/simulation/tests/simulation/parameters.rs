//! The governed parameters of connections: validators execute blocks later than they vote on them,
//! and runners learn of heads over links.

use super::{
    committee::{govern, governor, reach},
    outages::heights_where,
    *,
};
use commonware_runtime::Supervisor as _;
use cowboy_engine::{
    chain::{Payload, transaction::SetParameter},
    presence::Connectivity,
};
use cowboy_simulation::devnet::{Devnet, Plan};

const VALIDATORS: usize = 4;
const RUNNERS: usize = 4;

fn set(cluster: &Cluster, key: &str, value: u64) {
    let key = format!("system:cip11:{key}");
    govern(cluster, Payload::SetParameter(SetParameter { key, value }));
}

/// The heights up to `to` whose subset epoch differs from their parent's, with its number.
fn advances(cluster: &Cluster, validator: usize, to: u64) -> Vec<(u64, u64)> {
    let number = |height| {
        let block = cluster.store(validator).block(Height::new(height));
        block.expect("it answers").expect("it is there").header.subset_epoch
    };
    (2..=to)
        .filter(|height| number(*height) != number(height - 1))
        .map(|height| (height, number(height)))
        .collect()
}

/// In the middle of consensus epochs, where no validator has executed a block's parent when the
/// block is voted on; one validator is away at that time and another one starts again.
#[test]
fn subset_epochs_of_64_blocks_rotate_at_64() {
    for (seed, block_time) in [(1, Duration::ZERO), (2, BLOCK_TIME)] {
        run(seed, async |context| {
            let mut setup = Setup::new(VALIDATORS, RUNNERS, block_time);
            setup.genesis.params.connectivity.subset_epoch_blocks = 64;
            let mut cluster = cluster(context, setup).await;
            cluster.start_all().expect("they start");
            reach(&cluster, 60).await;
            cluster.stop(3).await;
            reach(&cluster, 100).await;
            cluster.start(3).expect("it starts");
            reach(&cluster, 126).await;
            cluster.stop(0).await;
            cluster.start(0).expect("it starts");
            reach(&cluster, 265).await;
            for validator in 0..VALIDATORS {
                let expected = [(64, 1), (128, 2), (192, 3), (256, 4)];
                assert_eq!(advances(&cluster, validator, 260), expected, "seed {seed}");
            }
            settle(&cluster).await;
        });
    }
}

/// A parameter changed in the middle of a consensus epoch takes effect with the next one, on all
/// validators.
#[test]
fn another_length_counts_from_the_next_consensus_epoch_on() {
    run(3, async |context| {
        let mut setup = Setup::new(VALIDATORS, RUNNERS, Duration::ZERO);
        setup.genesis.params.epoch_blocks = 32;
        setup.genesis.params.system_deployers = vec![governor().address()];
        let mut cluster = cluster(context, setup).await;
        cluster.start_all().expect("they start");
        reach(&cluster, 40).await;
        set(&cluster, "overlap_blocks", 5);
        set(&cluster, "subset_epoch_blocks", 20);
        reach(&cluster, 130).await;
        // The third consensus epoch begins with block 64.
        assert_eq!(advances(&cluster, 0, 125), [(64, 1), (84, 2), (104, 3), (124, 4)]);
        settle(&cluster).await;
    });
}

/// On a running chain, a runner that is cut off stays present for as long as its last ping counts.
#[test]
fn a_runner_falls_out_when_it_is_governed_to() {
    for (seed, timeout) in [(4, 3), (5, 6), (6, 12)] {
        run(seed, async |context| {
            let mut plan = Plan::new(VALIDATORS, RUNNERS);
            plan.setup.genesis.params.system_deployers = vec![governor().address()];
            let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
            (0..RUNNERS).for_each(|runner| devnet.start_runner(runner));
            let height = |devnet: &Devnet| devnet.cluster.heights().1.get();
            reach(&devnet.cluster, 6).await;
            if timeout != Connectivity::DEFAULT.presence_timeout_blocks {
                set(&devnet.cluster, "presence_timeout_blocks", timeout);
            }
            reach(&devnet.cluster, 12).await;
            devnet.cluster.pass(BLOCK_TIME * 4 / 5).await;
            (0..VALIDATORS).for_each(|validator| devnet.cut_runner(0, validator));
            let cut = height(&devnet);
            let end = cut + timeout + 8;
            reach(&devnet.cluster, end + 2).await;
            // Votes on a block use the head before it.
            let kept = cut + 1..=cut + timeout;
            assert_eq!(heights_where(&devnet, 0, false, kept), [0; 0], "{timeout}");
            let left = cut + timeout + 2;
            assert_eq!(heights_where(&devnet, 0, true, left..=end), [0; 0], "{timeout}");
            settle(&devnet.cluster).await;
        });
    }
}

/// A runner that pings every third block is as present as one that pings with each block.
#[test]
fn pings_come_less_often_when_it_is_governed_so() {
    run(7, async |context| {
        let mut plan = Plan::new(VALIDATORS, RUNNERS);
        let connectivity = &mut plan.setup.genesis.params.connectivity;
        (connectivity.heartbeat_blocks, connectivity.presence_timeout_blocks) = (3, 6);
        let mut devnet = Devnet::launch(context.child("devnet"), plan).await.expect("a devnet");
        (0..RUNNERS).for_each(|runner| devnet.start_runner(runner));
        reach(&devnet.cluster, 12).await;
        let mut pinged = BTreeSet::new();
        for height in 13..40 {
            reach(&devnet.cluster, height).await;
            for gateway in devnet.gateways.lock().values() {
                pinged.extend(gateway.connected().iter().filter_map(|runner| runner.last_ping));
            }
        }
        for runner in 0..RUNNERS {
            assert_eq!(heights_where(&devnet, runner, false, 12..38), [0; 0], "runner {runner}");
        }
        // A ping arrives at the head that it answers, or one later.
        assert!(pinged.iter().all(|height| height.get() % 3 < 2), "{pinged:?}");
        settle(&devnet.cluster).await;
    });
}
