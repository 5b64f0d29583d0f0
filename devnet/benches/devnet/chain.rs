//! Blocks per second.

use crate::{RUNNERS, VALIDATORS, loopback};
use cowboy_devnet::simulation::{self, Cluster, Setup, cluster::transfer};
use cowboy_engine::primitives::Height;
use std::{
    collections::VecDeque,
    io::{self, Write as _},
    time::{Duration, Instant},
};

/// Blocks, wall time, transactions.
pub fn simulated(block_time: Duration, blocks: u64) -> (u64, Duration, u64) {
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

/// Runs for `blocks` blocks; before each of them `transfers` transfers are submitted to one
/// validator. They are signed, and their senders' keys recovered, before the clock starts: what
/// that costs is measured by itself (`cargo bench -p cowboy-engine execute`).
pub fn real_time(transfers: u64, blocks: u64) -> (u64, Duration, u64) {
    loopback::run(Setup::new(VALIDATORS, RUNNERS, Duration::ZERO), async |mut devnet| {
        let begun = Instant::now();
        devnet.start_all(None);
        let services = devnet.validator(0).services().clone();
        services.ledger.wait_executed(Height::new(1)).await.expect("a first block");
        let _ = writeln!(io::stdout(), "first block after {:?}", begun.elapsed());
        let state = services.ledger.newest().state;
        let signed = (0..transfers * blocks).map(|number| {
            let from = (number % 4) as usize;
            let transfer = transfer(&state, from, number / 4, (from + 1) % 4);
            transfer.sender().expect("it is signed");
            transfer
        });
        let mut signed: VecDeque<_> = signed.collect();
        let mut submit = |blocks: u64| {
            for _ in 0..transfers * blocks {
                let Some(transaction) = signed.front() else { return };
                // A queue that is full has enough for the next blocks.
                if services.submit(transaction.clone()).is_err() {
                    return;
                }
                signed.pop_front();
            }
        };
        let mut executed = services.ledger.subscribe();
        let (start, mut transactions) = (Instant::now(), 0);
        submit(2);
        for _ in 0..blocks {
            let block = executed.recv().await.expect("the chain goes on, and is kept up with");
            transactions += block.block.transactions.len() as u64;
            submit(1);
        }
        let took = start.elapsed();
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        (blocks, took, transactions)
    })
}
