//! `peers`: times the same work here with metering and in the full evaluator without, in one run.

use crate::run::{self, BUDGET};
use cowboy_engine::actor::{ActorParams, Module};
use starlark::{
    environment::{GlobalsBuilder, LibraryExtension, Module as Oracle},
    eval::Evaluator,
    syntax::{AstModule, Dialect, DialectTypes},
    values::Value,
};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Number of measurements of each work; the median counts.
const ROUNDS: usize = 51;
/// Calls of a round.
const CALLS: u32 = 200;

const LOOP: &str = "\
def f(ctx, payload):
    s = 0
    for i in range(1000):
        s = s + i
    return s
";

/// CIP-1 §7.1 without its types, which the two evaluators name differently.
const BID: &str = "\
def getGasBid(context):
    return TxFeeParams(
        max_fee_per_cycle           = 2 * context.basefee_lane_timer,
        max_priority_fee_per_cycle  = context.previous_block_p50_priority_tip_per_cycle,
        max_fee_per_cell            = context.basefee_cell,
        max_priority_fee_per_cell   = 0,
    )
";

/// Records that the full evaluator lacks.
const RECORDS: &str = "\
TxFeeParams = record(max_fee_per_cycle = int, max_priority_fee_per_cycle = int,
    max_fee_per_cell = int, max_priority_fee_per_cell = int)
GBAContext = record(basefee_lane_timer = int, basefee_cell = int,
    previous_block_p50_priority_tip_per_cycle = int)
CONTEXT = GBAContext(basefee_lane_timer = 3000, basefee_cell = 2000,
    previous_block_p50_priority_tip_per_cycle = 55)
";

/// Median time of one call.
fn median(mut work: impl FnMut()) -> Duration {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            (0..CALLS).for_each(|_| work());
            begun.elapsed() / CALLS
        })
        .collect();
    rounds.sort_unstable();
    rounds[ROUNDS / 2]
}

fn theirs(source: &str, name: &str, arguments: &[&str]) -> Option<Duration> {
    let globals = GlobalsBuilder::extended_by(&[LibraryExtension::RecordType]).build();
    let dialect = Dialect { enable_types: DialectTypes::Enable, ..Dialect::Standard };
    let parsed = AstModule::parse("peer", format!("{RECORDS}{source}"), &dialect).ok()?;
    Oracle::with_temp_heap(|module| {
        Evaluator::new(&module).eval_module(parsed, &globals).ok()?;
        let function = module.get(name)?;
        let none = Value::new_none();
        let arguments: Vec<_> =
            arguments.iter().map(|name| module.get(name).unwrap_or(none)).collect();
        let mut fails = 0;
        let time = median(|| {
            let result = Evaluator::new(&module).eval_function(function, &arguments, &[]);
            fails += usize::from(black_box(result).is_err());
        });
        (fails == 0).then_some(time)
    })
}

/// Prints both times of each work; returns the number of failed measurements.
pub fn peers() -> usize {
    run::on_a_thread(|| {
        let params = ActorParams::default();
        let load = |source| Module::load(source, &params, BUDGET).1.expect("it loads");
        let call = run::request("f", &[]);
        let looping = load(LOOP);
        let ours = median(|| {
            black_box(looping.call(&params, &call, &run::Fake, BUDGET));
        });
        let bidding = load(BID);
        let bid = run::request("getGasBid", &[]);
        let context = [8, 10, 1_000, 2_000, 3_000, 123, 55, 9_999];
        let ours_bid = median(|| {
            black_box(bidding.bid(&params, &context, &bid, &run::Fake, BUDGET)).1.expect("it bids");
        });
        let rows = [
            ("a loop of 1,000 additions", ours, theirs(LOOP, "f", &["", ""])),
            ("a bid, on a fresh instance", ours_bid, theirs(BID, "getGasBid", &["CONTEXT"])),
        ];
        println!("{:28} {:>12} {:>12}", "", "here", "full");
        for (work, here, there) in rows {
            let there = there.map_or("failed".to_owned(), |there| format!("{there:.1?}"));
            println!("{work:28} {:>12} {there:>12}", format!("{here:.1?}"));
        }
        rows.iter().filter(|(_, _, there)| there.is_none()).count()
    })
}
