//! Costs of calls of actors in Python: with and without instances loaded ahead, those of Starlark,
//! and those of CPython with the SDK's own host.
//!
//! `COWBOYCTL_TEST_PVM` names a folder of machines, as `cowboyctl pvm install` makes it;
//! `COWBOYCTL_PYTHON` a Python with the SDK, without which CPython is left out.

#[path = "../../benches/blocks/mod.rs"]
mod blocks;
#[path = "../tests/machine/world.rs"]
mod world;

use blocks::{child, signed};
use cowboy_engine::{
    actor::Budget,
    chain::{
        Block, Endowment, Genesis, GenesisValidator, Params, Payload, ReceiptStatus, State,
        execute_on,
        params::PythonTerms,
        transaction::{CallActor, DeployActor, DeployPython, InitCall},
    },
    primitives::{Address, SecretKey, Wei},
    pvm::Pvm,
};
use cowboy_pvm::{artifact::Artifact, machine::Machine};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::{
    env, fs,
    hint::black_box,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    thread,
    time::Duration,
};
use world::{Request, World};

const ACTOR: Address = Address([0x22; 20]);
const ACTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine/actors");
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer.py");

const TRIVIAL: &str = include_str!("../tests/machine/actors/trivial.py");
const COUNTER: &str = include_str!("../tests/machine/actors/counter.py");
const AGENT: &str = include_str!("../tests/machine/actors/agent.py");
const STARLARK: &str = include_str!("../../../examples/actors/counter.star");

/// `{"message": "Howdy"}` in CBOR.
const HOWDY: &[u8] = b"\xa1\x67message\x65Howdy";

/// Calls of one block.
const CALLS: u64 = 100;

fn machine(pool: usize) -> Machine {
    let folder = env::var_os("COWBOYCTL_TEST_PVM").expect("COWBOYCTL_TEST_PVM names machines");
    let mut artifacts = fs::read_dir(folder).expect("COWBOYCTL_TEST_PVM is a folder").flatten();
    let artifact = artifacts.next().expect("COWBOYCTL_TEST_PVM has a machine").path();
    let artifact = Artifact::open(&artifact).expect("the machine opens");
    Machine::new(&artifact, pool).expect("the artifact makes a machine")
}

/// One call, in a world where the actor has run `init`.
fn calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("python");
    for (name, source, handler, payload) in [
        ("trivial", TRIVIAL, "ping", &b"x"[..]),
        ("counter", COUNTER, "inc", b""),
        ("agent", AGENT, "chat", HOWDY),
    ] {
        let mut begun = World::with(&[(ACTOR, source)]);
        let request = |handler, payload| Request::own(ACTOR, handler, payload);
        let alone = machine(0);
        if name != "trivial" {
            begun.call(&alone, &request("init", b"{}")).result.expect("init works");
        }
        let call = |machine: &Machine| {
            let mut world = begun.clone();
            let outcome = world.call(machine, black_box(&request(handler, payload)));
            outcome.result.expect("the call works");
            world
        };
        group.bench_function(format!("{name}, no instance ahead"), |b| b.iter(|| call(&alone)));
        let ahead = machine(2);
        call(&ahead);
        group.bench_function(format!("{name}, loaded ahead"), |b| {
            b.iter_batched(|| ahead.settle(), |()| call(&ahead), BatchSize::PerIteration);
        });
        if name == "agent" {
            let sent = call(&alone);
            let reply = reply(&sent.ledger.messages[0].1);
            group.bench_function("agent's second half, no instance ahead", |b| {
                b.iter_batched(
                    || sent.clone(),
                    |mut world| world.call(&alone, &request("chat__resume", &reply)).result,
                    BatchSize::PerIteration,
                );
            });
        }
    }
    let Ok(python) = env::var("COWBOYCTL_PYTHON") else { return };
    let peer = Command::new(python)
        .args([PEER, ACTORS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut peer = peer.expect("COWBOYCTL_PYTHON is a Python");
    let (mut asks, told) = (peer.stdin.take().expect("piped"), peer.stdout.take().expect("piped"));
    let mut told = BufReader::new(told);
    for name in ["trivial", "trivial-fresh", "counter", "counter-fresh", "agent", "agent-fresh"] {
        group.bench_function(format!("{name} in CPython"), |b| {
            b.iter_custom(|times| {
                writeln!(asks, "{name} {times}").expect("the peer runs");
                let mut line = String::new();
                told.read_line(&mut line).expect("the peer answers");
                Duration::from_secs_f64(line.trim().parse().expect("seconds"))
            });
        });
    }
    drop(asks);
    peer.wait().expect("the peer ends");
}

/// The reply to an agent's job.
fn reply(job: &[u8]) -> Vec<u8> {
    use cowboy_engine::primitives::cbor::{CborValue, decode, encode};
    let text = |text: &str| CborValue::Text(text.to_owned());
    let Ok(CborValue::Map(fields)) = decode(job) else { panic!("a job is a map") };
    let cid = fields.into_iter().find(|(name, _)| *name == text("cid"));
    let Some((_, CborValue::Bytes(cid))) = cid else { panic!("a job has a cid") };
    let map = vec![
        (text("cid"), CborValue::Text(hex::encode(cid))),
        (text("result"), text("Hello, partner!")),
        (text("reply_handler"), text("chat__resume")),
        (text("correlation_id"), CborValue::Null),
    ];
    encode(&CborValue::Map(map)).expect("a reply is a value")
}

/// A block of calls of a counter, each by a different account: a validator's work once the block
/// is final, with senders recovered before.
fn block(c: &mut Criterion) {
    let keys: Vec<SecretKey> =
        (0..CALLS).map(|i| SecretKey::derive(b"bench", &format!("caller-{i}"))).collect();
    let endow = |key: &SecretKey| Endowment { account: key.address(), balance: Wei::cby(1_000) };
    let machine = machine(2);
    let genesis = Genesis {
        name: "bench".into(),
        timestamp_ms: 0,
        params: Params { python: Some(PythonTerms::on(machine.tuple())), ..Params::default() },
        validators: vec![GenesisValidator { pubkey: keys[0].public_key(), consensus_key: [1; 32] }],
        runners: vec![],
        endowments: keys.iter().map(endow).collect(),
    };
    let state = genesis.state().expect("a chain");
    let python = DeployPython {
        source: COUNTER.to_owned(),
        salt: None,
        value: Wei::ZERO,
        init: Some(InitCall { handler: "init".into(), payload: b"{}".to_vec() }),
    };
    let starlark = DeployActor { source: STARLARK.to_owned() };
    let owner = keys[0].address();
    let actors = [python.address(&owner, 0), Address::of_actor(&owner, 1)];
    let deployments = [Payload::DeployPython(python), Payload::DeployActor(starlark)];
    let deploy = |(nonce, payload)| {
        signed(&state, (&keys[0], nonce), payload, Budget { cycles: 2_000_000, cells: 50_000 })
    };
    let deployed = child(&state, (0..).zip(deployments).map(deploy).collect());
    let run = |state: &State, block: &Block| {
        let executed = execute_on(Some(&machine), state, block).expect("a child");
        let failed = executed.receipts.iter().find(|one| one.status != ReceiptStatus::Success);
        assert!(failed.is_none(), "{failed:?}");
        executed.state
    };
    let state = run(&state, &deployed);
    let mut group = c.benchmark_group("python");
    group.sample_size(10).throughput(Throughput::Elements(CALLS));
    for (name, actor, handler, payload) in [
        ("Python", actors[0], "inc", &b""[..]),
        ("Starlark", actors[1], "increment", b"{\"by\": 2}"),
    ] {
        let call = CallActor {
            actor,
            handler: handler.into(),
            payload: payload.to_vec(),
            value: Wei::ZERO,
        };
        let sign = |(key, i): (&SecretKey, u64)| {
            let budget = Budget { cycles: 90_000, cells: 5_000 };
            let nonce = if i == 0 { 2 } else { 0 };
            signed(&state, (key, nonce), Payload::CallActor(call.clone()), budget)
        };
        let calls = child(&state, keys.iter().zip(0..).map(sign).collect());
        group.bench_function(format!("block of {CALLS} calls in {name}"), |b| {
            b.iter_batched(|| machine.settle(), |()| run(&state, &calls), BatchSize::PerIteration);
        });
        // As two validators of a process do it.
        let both =
            || thread::scope(|scope| drop([(); 2].map(|()| scope.spawn(|| run(&state, &calls)))));
        group.bench_function(format!("two blocks of {CALLS} calls in {name} at once"), |b| {
            b.iter_batched(|| machine.settle(), |()| both(), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, calls, block);
criterion_main!(benches);
