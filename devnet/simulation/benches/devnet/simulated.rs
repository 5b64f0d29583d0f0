//! Blocks per second in the simulator.

use crate::{RUNNERS, VALIDATORS, chain::Run, process::processor_time};
use cowboy_simulation::{Cluster, Setup};
use std::time::{Duration, Instant};

/// Runs in the simulator.
pub fn simulated(block_time: Duration, blocks: u64) -> Run {
    cowboy_simulation::run(1, async |context| {
        let mut cluster = Cluster::new(context, Setup::new(VALIDATORS, RUNNERS, block_time))
            .await
            .expect("a cluster");
        cluster.start_all().expect("they start");
        let (start, spent) = (Instant::now(), processor_time());
        assert!(cluster.reach(blocks, Duration::from_secs(10_000)).await, "the chain is stuck");
        let (took, processor) = (start.elapsed(), processor_time().saturating_sub(spent));
        Run { blocks, took, processor, done: 0 }
    })
}
