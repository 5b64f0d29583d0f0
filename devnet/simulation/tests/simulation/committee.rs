//! Committees that change between epochs, with crashes at the boundaries.

use super::*;
use cowboy_devnet::sample::validator_keys;
use cowboy_engine::{
    chain::{Payload, Transaction, transaction::RemoveValidator},
    primitives::SecretKey,
};

pub(super) const EPOCH: u64 = 8;

/// Validators `0..n`, of which the first `first` are the initial committee, with epochs of
/// [`EPOCH`] blocks and account-0 as governor.
fn setup(first: usize, n: usize, block_time: Duration) -> Setup {
    let mut setup = Setup::new(first, 4, block_time);
    setup.followers = n - first;
    setup.genesis.params.epoch_blocks = EPOCH;
    setup.genesis.params.system_deployers = vec![governor().address()];
    setup
}

pub(super) fn governor() -> SecretKey {
    key("account-0")
}

/// Submits a decision of the system deployer to every running validator.
pub(super) fn govern(cluster: &Cluster, payload: Payload) {
    let services = cluster.running().next().expect("a validator runs").services();
    let state = services.ledger.newest().state.clone();
    let sender = governor().address();
    let next = state.account(&sender).nonce;
    let nonce = services.mempool.with(|pool| pool.next_nonce(&sender, next));
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    let signed =
        Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload).sign(&governor());
    services.submit(signed).expect("a mempool with room");
}

pub(super) fn add(cluster: &Cluster, index: usize) {
    govern(cluster, Payload::AddValidator(validator_keys(index).public()));
}

pub(super) fn remove(cluster: &Cluster, index: usize) {
    let validator = validator_keys(index).public().pubkey.address();
    govern(cluster, Payload::RemoveValidator(RemoveValidator { validator }));
}

/// The committee of the next block, as validator indexes.
fn committee(cluster: &Cluster) -> Vec<usize> {
    let state = cluster.running().next().expect("a validator runs").services().ledger.head();
    let keys: Vec<_> = state.validators().iter().map(|v| v.pubkey.clone()).collect();
    (0..16).filter(|index| keys.contains(&validator_keys(*index).identity.public_key())).collect()
}

pub(super) async fn reach(cluster: &Cluster, height: u64) {
    assert!(cluster.reach(height, MINUTE * 10).await, "stuck at {:?}", cluster.heights());
}

fn nullified(cluster: &Cluster) -> u64 {
    cluster.running().map(|v| v.services().counters().nullified).sum()
}

#[test]
fn epochs_follow_one_another_without_a_view_given_up() {
    for (seed, block_time) in [(1, Duration::ZERO), (2, BLOCK_TIME), (3, BLOCK_TIME)] {
        run(seed, async |context| {
            let mut cluster = cluster(context, setup(4, 4, block_time)).await;
            cluster.start_all().expect("they start");
            reach(&cluster, 10 * EPOCH + 3).await;
            assert_eq!(nullified(&cluster), 0, "seed {seed}");
            // The last block of each epoch is also certified in its child, the first block of the
            // next epoch.
            let (certified, blocks) = cluster.parents_certified(0).expect("the store answers");
            assert_eq!(certified, blocks, "seed {seed}");
            settle(&cluster).await;
        });
    }
}

#[test]
fn validators_come_and_go_at_the_ends_of_epochs() {
    run(4, async |context| {
        let mut cluster = cluster(context, setup(4, 6, BLOCK_TIME)).await;
        cluster.start_all().expect("they start");
        reach(&cluster, 3).await;
        add(&cluster, 4);
        remove(&cluster, 0);
        reach(&cluster, EPOCH).await;
        assert_eq!(committee(&cluster), [1, 2, 3, 4]);
        reach(&cluster, 2 * EPOCH + 2).await;
        // A validator that left keeps following and may come back.
        add(&cluster, 0);
        add(&cluster, 5);
        reach(&cluster, 3 * EPOCH + 1).await;
        assert_eq!(committee(&cluster), [0, 1, 2, 3, 4, 5]);
        for index in [1, 2] {
            remove(&cluster, index);
        }
        reach(&cluster, 5 * EPOCH).await;
        assert_eq!(committee(&cluster), [0, 3, 4, 5]);
        // It votes, because the others alone are not a quorum.
        for index in [1, 2, 3] {
            cluster.stop(index).await;
        }
        reach(&cluster, 6 * EPOCH + 2).await;
        settle(&cluster).await;
    });
}

#[test]
fn who_was_away_for_epochs_finds_its_way_back() {
    for seed in 0..6 {
        run(seed, async |context| {
            let mut cluster = cluster(context, setup(4, 5, BLOCK_TIME)).await;
            cluster.start_all().expect("they start");
            // Two validators stop around an epoch's end; one returns into another committee.
            cluster.reach(EPOCH - 2, MINUTE).await;
            cluster.pass(Duration::from_millis(90 * seed)).await;
            cluster.stop(3).await;
            cluster.stop(4).await;
            reach(&cluster, 3 * EPOCH - 1).await;
            cluster.start(4).expect("it starts");
            add(&cluster, 4);
            reach(&cluster, 5 * EPOCH + 3).await;
            cluster.start(3).expect("it starts");
            reach(&cluster, 7 * EPOCH).await;
            assert_eq!(committee(&cluster), [0, 1, 2, 3, 4]);
            settle(&cluster).await;
        });
    }
}

#[test]
fn an_epochs_end_survives_a_stop_of_everybody() {
    for seed in 0..6 {
        run(seed, async |context| {
            let mut cluster = cluster(context, setup(4, 4, BLOCK_TIME)).await;
            cluster.start_all().expect("they start");
            for epoch in 1..4 {
                cluster.reach(epoch * EPOCH - 1, MINUTE).await;
                cluster.pass(Duration::from_millis(7 * seed * epoch)).await;
                for index in 0..4 {
                    cluster.stop(index).await;
                }
                cluster.start_all().expect("they start");
            }
            reach(&cluster, 5 * EPOCH).await;
            settle(&cluster).await;
        });
    }
}
