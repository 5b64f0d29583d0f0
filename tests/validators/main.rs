//! Validators in real time: sockets on the loopback, files on the disk, stopped and started.

mod flood;
mod loopback;
mod places;
mod refusals;

use commonware_runtime::{Clock as _, Supervisor as _};
use cowboy_devnet::sample::transfer;
use cowboy_engine::primitives::{Height, keccak256};
use cowboy_simulation::Setup;
use loopback::Devnet;
use std::time::Duration;

const BLOCK_TIME: Duration = Duration::from_millis(100);
/// Long enough for a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

fn height(devnet: &mut Devnet, index: usize) -> u64 {
    devnet.validator(index).services().ledger.head().height().get()
}

/// Runs until `validators` have executed `height`.
async fn reach(devnet: &mut Devnet, validators: impl IntoIterator<Item = usize>, height: u64) {
    for index in validators {
        let context = devnet.context.child("patience");
        let validator = devnet.validator(index);
        let executed = validator.services().ledger.wait_executed(Height::new(height));
        commonware_macros::select! {
            result = executed => result.expect("the ledger goes on"),
            error = validator.ended() => panic!("a validator ended: {error}"),
            () = context.sleep(PATIENCE) => panic!("no block {height}"),
        }
    }
}

#[test]
fn a_chain_outlives_stops_of_its_validators() {
    loopback::run(Setup::new(4, 3, BLOCK_TIME), async |mut devnet| {
        devnet.start_all(None);
        reach(&mut devnet, 0..4, 5).await;

        // The others go on without a stopped one, which restarts from its files and catches up.
        devnet.stop(3).await;
        let now = height(&mut devnet, 0);
        reach(&mut devnet, 0..3, now + 10).await;
        devnet.start(3);
        let now = height(&mut devnet, 0);
        reach(&mut devnet, 0..4, now + 5).await;

        // All execute a transaction that one of them accepts.
        let services = devnet.validator(3).services();
        let transaction = transfer(&services.ledger.head(), 0, 0, 1);
        let hash = services.submit(transaction).expect("a valid transfer");
        let now = height(&mut devnet, 0);
        reach(&mut devnet, 0..4, now + 5).await;
        for index in 0..4 {
            let store = devnet.validator(index).services().ledger.store().clone();
            store.transaction(&hash).expect("the store answers").expect("executed");
        }

        // All stop and restart from their files.
        for index in 0..4 {
            devnet.stop(index).await;
        }
        devnet.start_all(None);
        reach(&mut devnet, 0..4, now + 10).await;
        let stores: Vec<_> =
            (0..4).map(|index| devnet.validator(index).services().ledger.store().clone()).collect();
        for height in 1..=now {
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
