//! `simplex --block-time`: processor time of idle validators whose blocks are paced, ours with and
//! without runners, and of Simplex alone, paced alike.

use crate::{
    RUNNERS, VALIDATORS,
    figures::Figures,
    loopback,
    process::processor_time,
    runners::{self, Gateways},
    simplex::{SimplexError, alone, reach},
};
use cowboy_devnet::validator::limiter::BucketLimits;
use cowboy_simulation::Setup;
use std::time::{Duration, Instant};

/// Number of blocks before the measurement.
const WARM_UP: u64 = 10;

/// The cost of some blocks.
struct Cost {
    /// Processor time of the process per block.
    block: Duration,
    /// Processor time per second.
    busy: f64,
}

impl Cost {
    /// The cost of `blocks` blocks that began at `start`, when the process had used `spent`.
    fn since(start: Instant, spent: Duration, blocks: u64) -> Self {
        let spent = processor_time().saturating_sub(spent);
        Self {
            block: spent.div_f64(blocks as f64),
            busy: spent.as_secs_f64() / start.elapsed().as_secs_f64(),
        }
    }
}

/// Prints the processor time of `blocks` blocks of either.
pub fn compare(block_time: Duration, blocks: u64, rounds: u64) -> Result<(), SimplexError> {
    let names = ["Simplex alone", "devnet without runners", "devnet with runners"];
    let mut figures = [(); 3].map(|()| (Figures::default(), Figures::default()));
    for _ in 0..rounds {
        let costs = [
            simplex(block_time, blocks)?,
            devnet(block_time, blocks, 0),
            devnet(block_time, blocks, RUNNERS),
        ];
        for ((block, busy), cost) in figures.iter_mut().zip(costs) {
            block.push(cost.block.as_secs_f64() * 1_000.0);
            busy.push(cost.busy * 100.0);
        }
    }
    println!(
        "{VALIDATORS} validators, {RUNNERS} runners, {blocks} blocks of {block_time:?}, \
         {rounds} rounds:"
    );
    for (name, (block, busy)) in names.iter().zip(&figures) {
        println!("  {name:<23} {} ms per block, {} % of a core", block.range(1), busy.range(1));
    }
    Ok(())
}

fn simplex(block_time: Duration, blocks: u64) -> Result<Cost, SimplexError> {
    alone(VALIDATORS, block_time, async |height| {
        reach(height, WARM_UP).await?;
        let (begun, start, spent) = (*height.borrow(), Instant::now(), processor_time());
        reach(height, begun + blocks).await?;
        Ok(Cost::since(start, spent, *height.borrow() - begun))
    })
}

/// `runners` of the registered runners are connected; without any, all of them are seen.
fn devnet(block_time: Duration, blocks: u64, runners: usize) -> Cost {
    loopback::run(Setup::new(VALIDATORS, RUNNERS, block_time), async |mut devnet| {
        let limits = BucketLimits::sharing_an_address(runners);
        let serve = Gateways::default().serve(&devnet, limits, block_time);
        devnet.start_all((runners > 0).then_some(serve));
        let services = devnet.validator(0).services().clone();
        let running = runners::start(&devnet, runners);
        runners::present(&services, runners).await;
        let mut executed = services.ledger.subscribe();
        for _ in 0..WARM_UP {
            executed.recv().await.expect("the chain goes on, and is kept up with");
        }
        let (start, spent) = (Instant::now(), processor_time());
        for _ in 0..blocks {
            executed.recv().await.expect("the chain goes on, and is kept up with");
        }
        let cost = Cost::since(start, spent, blocks);
        for runner in running {
            runner.stop(&devnet.context).await;
        }
        for index in 0..VALIDATORS {
            devnet.stop(index).await;
        }
        cost
    })
}
