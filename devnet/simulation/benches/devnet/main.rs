//! Throughput and latency of a devnet with four validators and eight runners.
//!
//! `cargo bench -p cowboy-simulation --bench devnet [simulated] [empty] [transfers] [timers] [jobs]
//! [attacks] [committees] [delivery] [crowd [RUNNERS]]`
//!
//! * `simulated`: blocks per second in the simulator (5 ± 1 ms links);
//! * `empty`, `transfers`, `timers`: blocks per second in real time over the loopback and the disk
//!   without a block time: with empty blocks, with 500 transfers submitted per block, whose
//!   senders' keys are known or not, both also of one validator, and with 1,000 timers that fire in
//!   each block and reschedule themselves;
//! * `jobs`: time from the block that assigns a job to the start of its command, compared with the
//!   round trip of a new stream on a bare QUIC connection, between blocks and right after a block;
//! * `attacks`: number of 200 ms blocks in ten seconds, for an idle devnet and under attacks on the
//!   timers' lane and on block space, and the attacker's costs;
//! * `committees`: for one runner and for committees of 3, 5 and 9 out of sixteen, with blocks of
//!   100 ms: jobs per second when 200 are submitted at once, and for a single job the time from the
//!   request that submits it until its end is known; the work is to run `echo`;
//! * `delivery`: 200 jobs, one submitted with each block of 100 ms, pushed, and fetched by clients
//!   that poll every 5 s and every second;
//! * `crowd`: RUNNERS (1,000) runners on ten validators with blocks of a second: time until all are
//!   present, cost of their connections, and time until they are back after a validator's restart;
//!   for comparison the same number of bare connections (`bare N`, in a process of its own).
//!
//! Files are in `$TMPDIR`. `tests/peers` runs `empty` and `transfers` next to other programs.

mod attacks;
#[path = "../../../benches/bare.rs"]
mod bare;
mod chain;
mod committees;
mod crowd;
mod delivery;
#[path = "../../../benches/figures.rs"]
mod figures;
mod jobs;
#[path = "../../../../tests/validators/loopback.rs"]
mod loopback;
mod process;
mod runners;
mod simulated;
mod whole;

use chain::{Recovery, Run, Transfers};
use cowboy_engine::primitives::InCby;
use figures::times;
use std::{
    io::{self, Write as _},
    time::Duration,
};

const VALIDATORS: usize = 4;
const RUNNERS: usize = 8;
/// For `committees`: jobs submitted together, and jobs submitted alone; the former also for
/// `delivery`.
const JOBS: usize = 200;
const SINGLE: usize = 50;
/// Numbers of runners per job.
const SIZES: [u32; 4] = [1, 3, 5, 9];
/// Number of runners for `crowd`.
const CROWD: usize = 1_000;
/// Number of connections without a devnet.
const BARE: usize = 5_000;

fn main() -> io::Result<()> {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name);
    // A number that follows a name.
    let counted = |name: &str| -> Option<usize> {
        let at = chosen.iter().position(|chosen| chosen == name)?;
        chosen.get(at + 1)?.parse().ok()
    };
    if wanted("simulated") {
        blocks("simulated, unpaced", simulated::simulated(Duration::ZERO, 500), "transactions")?;
        let paced = simulated::simulated(Duration::from_millis(250), 500);
        blocks("simulated, 250 ms", paced, "transactions")?;
    }
    if wanted("empty") {
        for (name, validators) in [("empty blocks", VALIDATORS), ("empty, one validator", 1)] {
            let run = chain::real_time(validators, Transfers::NONE, 1_000, |_| {});
            blocks(&format!("real time, {name}"), run, "transactions")?;
        }
    }
    if wanted("transfers") {
        let kinds = [
            ("transfers", VALIDATORS, Recovery::Before),
            ("and their keys", VALIDATORS, Recovery::Submitted),
            ("transfers, one", 1, Recovery::Before),
        ];
        for (name, validators, recovery) in kinds {
            let transfers = Transfers { each: 500, recovery };
            let run = chain::real_time(validators, transfers, 100, |_| {});
            blocks(&format!("real time, 500 {name}"), run, "transactions")?;
        }
    }
    if wanted("timers") {
        blocks("real time, 1,000 timers", chain::fires(100, |_| {}), "fires")?;
    }
    if wanted("jobs") {
        let mut latencies = jobs::latencies(200);
        times("assigned to started", &mut latencies.starts)?;
        times("bare stream, between blocks", &mut latencies.quiet)?;
        times("bare stream, after a block", &mut latencies.busy)?;
    }
    if wanted("attacks") {
        for attack in &attacks::ATTACKS {
            let outcome = attacks::outcome(attack);
            writeln!(
                io::stdout(),
                "{:<31} {} blocks in ten seconds, {} fires, {} transactions, for {}",
                attack.name,
                outcome.blocks,
                outcome.fires,
                outcome.transactions,
                InCby(outcome.paid),
            )?;
        }
    }
    if wanted("committees") {
        for size in SIZES {
            committee(size, &mut committees::committee(size, JOBS, SINGLE))?;
        }
    }
    if wanted("delivery") {
        let polled = |seconds| Some(Duration::from_secs(seconds));
        let ways = [("pushed", None), ("every 5 s", polled(5)), ("every second", polled(1))];
        for (name, interval) in ways {
            let mut delivery = delivery::delivery(JOBS, interval);
            times(&format!("{name}: assigned, started"), &mut delivery.starts)?;
            times(&format!("{name}: submitted, final"), &mut delivery.ends)?;
        }
    }
    if chosen.iter().any(|chosen| chosen == "bare") {
        let connections = counted("bare").unwrap_or(BARE);
        let bare = crowd::bare(connections);
        return writeln!(
            io::stdout(),
            "{connections} bare connections: {:.1} KiB each, {:.0} handshakes/s, {:.0} % of a core \
             with a message and its answer per second",
            bare.bytes as f64 / 1024.0,
            bare.rate,
            bare.busy * 100.0,
        );
    }
    if wanted("crowd") {
        let runners = counted("crowd").unwrap_or(CROWD);
        let crowd = crowd::crowd(runners);
        writeln!(
            io::stdout(),
            "{runners} runners, {} connections: all present after {:.2?}, {:.1} KiB each, {:.0} % of \
             a core at 1 s blocks, {:.0} % without runners; {} back {:.2?} after the start of their \
             validator, down for {:.2?}",
            crowd.connections,
            crowd.present,
            crowd.bytes as f64 / 1024.0,
            crowd.busy * 100.0,
            crowd.quiet * 100.0,
            crowd.returning,
            crowd.back,
            crowd.down,
        )?;
        let connections = crowd.connections.to_string();
        let program = std::env::current_exe()?;
        std::process::Command::new(program).args(["bare", &connections]).status()?;
    }
    Ok(())
}

fn committee(size: u32, done: &mut committees::Committee) -> io::Result<()> {
    let waited: Duration = done.latencies.iter().sum();
    let blocks = done.blocks as f64 / done.latencies.len() as f64;
    let share = done.interval.as_secs_f64() * done.blocks as f64 / waited.as_secs_f64();
    times(&format!("{size} for a job, alone"), &mut done.latencies)?;
    writeln!(
        io::stdout(),
        "{:<31} {:.1} jobs/s; alone {blocks:.1} blocks of {} ms, {:.0} % of the time",
        format!("{size} for a job, {JOBS} jobs"),
        done.rate,
        done.interval.as_millis(),
        share * 100.0,
    )
}

/// Prints a run whose blocks contain `what`.
fn blocks(name: &str, run: Run, what: &str) -> io::Result<()> {
    let Run { blocks, took, processor, done } = run;
    writeln!(
        io::stdout(),
        "{name:<31} {blocks:>5} blocks in {took:.2?}: {:.1} blocks/s, {} {what} each, \
         {:.2} ms of processor time per block",
        blocks as f64 / took.as_secs_f64(),
        done / blocks.max(1),
        processor.as_secs_f64() * 1_000.0 / blocks as f64,
    )
}
