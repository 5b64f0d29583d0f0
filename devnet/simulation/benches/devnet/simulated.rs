//! Blocks per second in the simulator.

use crate::{RUNNERS, VALIDATORS};
use cowboy_simulation::{Cluster, Setup};
use std::time::{Duration, Instant};

/// Runs in the simulator; returns blocks, wall time and transactions.
pub fn simulated(block_time: Duration, blocks: u64) -> (u64, Duration, u64) {
    cowboy_simulation::run(1, async |context| {
        let mut cluster = Cluster::new(context, Setup::new(VALIDATORS, RUNNERS, block_time))
            .await
            .expect("a cluster");
        cluster.start_all().expect("they start");
        let start = Instant::now();
        assert!(cluster.reach(blocks, Duration::from_secs(10_000)).await, "the chain is stuck");
        (blocks, start.elapsed(), 0)
    })
}
