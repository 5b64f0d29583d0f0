//! A runner stays connected and pings a validator to which the chain no longer admits it: its bit
//! is cleared from that block on, no matter when the connection closes.

use super::{
    PATIENCE,
    refusals::{BYSTANDER, GOVERNOR, PLENTY, Peer, World, bystander, child, is_alone, run},
};
use commonware_runtime::Clock as _;
use cowboy_devnet::sample::{key, validator_keys};
use cowboy_engine::{
    chain::{Payload, State, params::MIN_EPOCH_BLOCKS, transaction::RemoveValidator},
    presence::Connectivity,
    wire::GoodbyeReason,
};
use std::time::Duration;
use tokio::time::timeout;

/// Connects the bystander, and waits until the validator has its ping.
async fn heard(world: &World) -> Peer {
    let peer = bystander(world).await;
    let pinged = || world.gateway.connected().iter().any(|runner| runner.last_ping.is_some());
    let heard = async {
        while !pinged() {
            world.context.sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, heard).await.expect("it has pinged");
    peer
}

/// The bystander's bit in a vote on the child of `parent`, at its index in the registry when the
/// bystander connected.
fn bit(world: &World, parent: &State) -> bool {
    let order = world.state.registry().order().as_slice();
    let runner = key(BYSTANDER).address();
    let index = order.iter().position(|one| *one == runner).expect("it is registered");
    let index = u32::try_from(index).expect("few runners");
    world.gateway.presence_at(parent.height().next(), parent, order).get(index)
}

#[test]
fn a_bit_lasts_as_long_as_the_overlap_of_subsets_and_no_block_longer() {
    run(PLENTY, async |world| {
        let peer = heard(&world).await;
        let validator = validator_keys(0).public().pubkey.address();
        let leaves = Payload::RemoveValidator(RemoveValidator { validator });
        let mut parent = child(&world.state, Some((GOVERNOR, leaves)));
        let until = MIN_EPOCH_BLOCKS + Connectivity::DEFAULT.overlap_blocks;
        for height in parent.height().get() + 1..until + 5 {
            assert_eq!(bit(&world, &parent), height < until, "in a vote on {height}");
            parent = child(&parent, None);
            assert_eq!(parent.height().get(), height);
        }
        // The validator does not know these blocks yet.
        assert!(is_alone(&world));
        world.gateway.advance(parent);
        assert_eq!(peer.end().await.0, Some(GoodbyeReason::NotInSubset));
    });
}

#[test]
fn a_bit_goes_when_its_runner_deregisters() {
    run(PLENTY, async |world| {
        let peer = heard(&world).await;
        assert!(bit(&world, &world.state));
        let without = child(&world.state, Some((BYSTANDER, Payload::DeregisterRunner)));
        assert!(!bit(&world, &without));
        assert!(is_alone(&world));
        world.gateway.advance(without);
        assert_eq!(peer.end().await.0, Some(GoodbyeReason::Deregistered));
    });
}
