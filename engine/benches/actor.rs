//! What actors cost: a call from nothing, a loop, loading a module.
//!
//! The full `starlark` evaluator, unmetered, is measured beside this one by `tests/fuzz`: its hash
//! crate and that of the consensus library exclude one another in one build.

use cowboy_engine::{
    actor::{Budget, Call, JobRequest, Module, Params, Timer, World},
    primitives::{Address, Hash, Height, Wei},
};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

const BUDGET: Budget = Budget { cycles: 20_000_000, cells: 1_000_000 };

/// CIP-1 §7.1.
const DEFAULT_GBA: &str = "def getGasBid(context: GBAContext) -> TxFeeParams:
    return TxFeeParams(
        max_fee_per_cycle           = 2 * context.basefee_lane_timer,
        max_priority_fee_per_cycle  = context.previous_block_p50_priority_tip_per_cycle,
        # cell side: defaults to CIP-3 basefee_cell with no priority (timers are cycle-bound)
        max_fee_per_cell            = context.basefee_cell,
        max_priority_fee_per_cell   = 0,
    )
";

const LOOP: &str = "def f(ctx, payload):
    s = 0
    for i in range(1000):
        s = s + i
    return s
";

/// Nothing is there.
struct Nothing;

impl World for Nothing {
    fn state(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn balance(&self, _: &Address) -> Wei {
        Wei::ZERO
    }

    fn mru(&self, _: &Address, _: &str) -> Option<Address> {
        None
    }

    fn timer(&self, _: &Timer, _: u64) -> Result<Hash, String> {
        Ok(Hash::ZERO)
    }

    fn job(&self, _: &JobRequest, _: u64) -> Result<Hash, String> {
        Ok(Hash::ZERO)
    }
}

fn load(source: &str) -> Module {
    Module::load(source, &Params::default(), BUDGET).1.expect("the module loads")
}

fn call(handler: &str) -> Call<'_> {
    Call {
        handler,
        payload: b"",
        sender: Address([1; 20]),
        this: Address([2; 20]),
        value: Wei::ZERO,
        height: Height::new(10),
        timestamp_ms: 10_000,
        seed: Hash::ZERO,
    }
}

fn actor(c: &mut Criterion) {
    let params = Params::default();
    let gba = load(DEFAULT_GBA);
    let context = [8, 10, 1_000, 2_000, 3_000, 123, 55, 9_999];
    c.bench_function("actor/bid", |b| {
        b.iter(|| gba.bid(&params, black_box(&context), &call("getGasBid"), &Nothing, BUDGET));
    });
    let looping = load(LOOP);
    c.bench_function("actor/loop of 1,000 additions", |b| {
        b.iter(|| looping.call(&params, black_box(&call("f")), &Nothing, BUDGET));
    });
    let handler = "def handle_N(ctx, payload):
    # What handlers are like: a key, a check, a write, an event.
    total = pvm_host.get_state(\"total-N\", 0)
    amounts = [int(part) for part in payload.split(\",\") if part]
    if ctx.value < 10 and not amounts:
        fail(\"nothing to do\")
    pvm_host.set_state(\"total-N\", total + sum_of(amounts))
    pvm_host.emit(\"handled\", {\"by\": ctx.sender, \"count\": len(amounts)})
    return total

";
    let mut module = "def sum_of(xs):
    s = 0
    for x in xs:
        s += x
    return s

"
    .to_owned();
    for n in 0.. {
        let next = handler.replace('N', &n.to_string());
        if module.len() + next.len() > 10 << 10 {
            break;
        }
        module.push_str(&next);
    }
    c.bench_function("actor/load 10 KiB", |b| {
        b.iter(|| Module::load(black_box(&module), &params, BUDGET));
    });
}

criterion_group!(benches, actor);
criterion_main!(benches);
