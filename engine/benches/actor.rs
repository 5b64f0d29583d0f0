//! Costs of actors: a call from scratch, a loop, loading a module.
//!
//! `tests/fuzz` compares this evaluator with the full `starlark` evaluator, unmetered: the hash
//! crate of the latter and that of the consensus library exclude each other in one build.

mod blocks;

use blocks::{child, signed};
use cowboy_engine::{
    actor::{ActorParams, Budget, Call, JobRequest, Module, Seed, TimerCall, World},
    chain::{
        self, Endowment, Genesis, GenesisValidator, Payload, ReceiptStatus, execute,
        transaction::{CallActor, DeployActor},
    },
    primitives::{Address, Hash, Height, SecretKey, Wei},
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
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

/// An empty world.
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

    fn timer(&self, _: &TimerCall, _: u64) -> Result<Hash, String> {
        Ok(Hash::ZERO)
    }

    fn job(&self, _: &JobRequest, _: u64) -> Result<(Hash, u64), String> {
        Ok((Hash::ZERO, 0))
    }
}

fn load(source: &str) -> Module {
    Module::load(source, &ActorParams::default(), BUDGET).1.expect("the module loads")
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
        seed: Seed::Fixed(Hash::ZERO),
    }
}

fn actor(c: &mut Criterion) {
    let params = ActorParams::default();
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

/// A block of calls of the counter from `examples/actors`, each by a different account, on its
/// parent's state: a validator's work once the block is final, with senders recovered before.
fn block(c: &mut Criterion) {
    const CALLS: u64 = 300;
    const CALL: Budget = Budget { cycles: 30_000, cells: 5_000 };
    let keys: Vec<SecretKey> =
        (0..CALLS).map(|i| SecretKey::derive(b"bench", &format!("caller-{i}"))).collect();
    let endow = |key: &SecretKey| Endowment { account: key.address(), balance: Wei::cby(1_000) };
    let genesis = Genesis {
        name: "bench".into(),
        timestamp_ms: 0,
        params: chain::Params::default(),
        validators: vec![GenesisValidator { pubkey: keys[0].public_key(), consensus_key: [1; 32] }],
        runners: vec![],
        endowments: keys.iter().map(endow).collect(),
    };
    let state = genesis.state().expect("a chain");
    let source = include_str!("../../examples/actors/counter.star").to_owned();
    let deploy = Payload::DeployActor(DeployActor { source });
    let deployed = child(&state, vec![signed(&state, (&keys[0], 0), deploy, CALL)]);
    let state = execute(&state, &deployed).expect("a child").state;
    let actor = Address::of_actor(&keys[0].address(), 0);
    let transactions = keys
        .iter()
        .zip(0..)
        .map(|(key, i)| {
            let call = CallActor {
                actor,
                handler: "increment".into(),
                payload: b"{\"by\": 2}".to_vec(),
                value: Wei::ZERO,
            };
            signed(&state, (key, u64::from(i == 0)), Payload::CallActor(call), CALL)
        })
        .collect();
    let calls = child(&state, transactions);
    let executed = execute(&state, &calls).expect("a child");
    assert!(executed.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
    let mut group = c.benchmark_group("actor");
    group.sample_size(30).throughput(Throughput::Elements(CALLS));
    group.bench_function("block of 300 calls", |b| b.iter(|| execute(&state, black_box(&calls))));
    group.bench_function("block of 300 calls, and root", |b| {
        b.iter(|| execute(&state, black_box(&calls)).map(|executed| executed.state.root()));
    });
    group.finish();
}

criterion_group!(benches, actor, block);
criterion_main!(benches);
