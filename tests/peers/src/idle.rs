//! `simplex --block-time`: processor time of idle validators whose blocks are paced, ours with and
//! without runners, and of Simplex alone, paced alike.

use crate::{
    RUNNERS,
    chain::Run,
    figures::Figures,
    loopback,
    process::processor_time,
    runners::{self, Gateways},
    simplex::{SimplexError, alone},
};
use cowboy_devnet::validator::limiter::BucketLimits;
use cowboy_simulation::Setup;
use std::time::{Duration, Instant};

/// Number of blocks before the measurement.
const WARM_UP: u64 = 10;

/// Prints the processor time of `blocks` blocks of either.
pub fn compare(
    validators: usize,
    block_time: Duration,
    blocks: u64,
    rounds: u64,
) -> Result<(), SimplexError> {
    let names = ["Simplex alone", "devnet without runners", "devnet with runners"];
    let mut figures = names.map(|_| (Figures::default(), Figures::default()));
    for _ in 0..rounds {
        let runs = [
            alone(validators, block_time, WARM_UP, blocks)?,
            devnet(validators, block_time, blocks, 0),
            devnet(validators, block_time, blocks, RUNNERS),
        ];
        for ((each, busy), run) in figures.iter_mut().zip(runs) {
            let processor = run.processor.as_secs_f64();
            each.push(processor * 1_000.0 / run.blocks as f64);
            busy.push(processor * 100.0 / run.took.as_secs_f64());
        }
    }
    println!(
        "{validators} validators, {RUNNERS} runners, {blocks} blocks of {block_time:?}, \
         {rounds} rounds:"
    );
    for (name, (each, busy)) in names.iter().zip(&figures) {
        println!("  {name:<23} {} ms per block, {} % of a core", each.range(1), busy.range(1));
    }
    Ok(())
}

/// `runners` of the registered runners are connected; without any, all of them are seen.
fn devnet(validators: usize, block_time: Duration, blocks: u64, runners: usize) -> Run {
    loopback::run(Setup::new(validators, RUNNERS, block_time), async |mut devnet| {
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
        let (took, processor) = (start.elapsed(), processor_time().saturating_sub(spent));
        for runner in running {
            runner.stop(&devnet.context).await;
        }
        for index in 0..validators {
            devnet.stop(index).await;
        }
        Run { blocks, took, processor, done: 0 }
    })
}
