//! Actors under random calls while validators crash and return: all validators have the same
//! receipts.
//!
//! `COWBOYCTL_ACTOR_CALLS=100000` sets the number of calls.

use super::*;
use commonware_runtime::{Supervisor as _, deterministic::Context};
use cowboy_engine::{
    actor::Budget,
    chain::{
        Payload, Transaction,
        transaction::{CallActor, DeployActor},
    },
    primitives::{Address, Wei},
};
use cowboy_simulation::{
    invariant::Invariants,
    scenario::{check, watch},
};
use rand::{RngExt as _, seq::IndexedRandom as _};
use std::{collections::BTreeMap, env};

/// Money, messages, and their failures.
const BANK: &str = r#"
def deposit(ctx, payload):
    key = "b/" + ctx.sender
    balance = pvm_host.get_state(key, 0) + ctx.value
    pvm_host.set_state(key, balance)
    pvm_host.emit("deposited", {"by": ctx.sender, "value": ctx.value, "balance": balance})
    return balance

def withdraw(ctx, payload):
    key = "b/" + ctx.sender
    amount, balance = int(payload), pvm_host.get_state(key, 0)
    if amount > balance:
        fail("%d of %d" % (amount, balance))
    pvm_host.set_state(key, balance - amount)
    pvm_host.transfer(ctx.sender, amount)
    return balance - amount

def forward(ctx, payload):
    words = payload.split(" ")
    pvm_host.log("forwards", words[1])
    pvm_host.send_message(words[0], words[1], " ".join(words[2:]), ctx.value // 2)
    return pvm_host.get_balance()

def fan(ctx, payload):
    words = payload.split(" ")
    for i in range(int(words[1])):
        pvm_host.send_message(words[0], "deposit", "", i)

def ping(ctx, payload):
    words = payload.split(" ")
    left = int(words[1])
    pvm_host.set_state("pinged", pvm_host.get_state("pinged", 0) + 1)
    if left > 0:
        pvm_host.send_message(words[0], "ping", "%s %d" % (ctx.self, left - 1), ctx.value)
"#;

/// Work of many kinds.
const WORK: &str = r#"
def count(ctx, payload):
    seen = {}
    for i in range(int(payload)):
        key = i * 7919 % 101
        seen[key] = seen.get(key, 0) + i
    return sorted(seen.items())[:3]

def hashed(ctx, payload):
    text = payload
    for _ in range(8):
        text = pvm_host.keccak256(text)
    return text

def dice(ctx, payload):
    drawn = pvm_host.randomness(payload)
    pvm_host.set_state("last", drawn)
    return drawn

def grow(ctx, payload):
    pvm_host.set_state("grown/%d" % (ctx.height % 7), "x" * int(payload))

def forget(ctx, payload):
    for i in range(7):
        pvm_host.delete_state("grown/%d" % i)

def power(ctx, payload):
    return str(3 << int(payload))

def crash(ctx, payload):
    pvm_host.set_state("never", payload)
    pvm_host.log("about to crash", payload)
    return [1, 2, 3][int(payload)]

def rest(ctx, payload):
    state = pvm_host.json_encode({"at": ctx.height, "time": ctx.timestamp_ms, "by": ctx.sender})
    pvm_host.log(state)
    return pvm_host.json_decode(state)
"#;

/// Accounts that call.
const ACCOUNTS: usize = 4;
/// The maximum number of calls submitted at a time: well below the capacity of a block.
const BATCH: usize = 60;
/// The interval at which calls are submitted.
const STEP: Duration = Duration::from_millis(250);
/// The maximum number of blocks between crashes.
const CALM: u64 = 12;

/// The number of calls to make.
fn calls() -> usize {
    let wanted = env::var("COWBOYCTL_ACTOR_CALLS").ok();
    wanted.map_or(2_000, |wanted| wanted.parse().expect("COWBOYCTL_ACTOR_CALLS is a number"))
}

/// Submits `account-{from}`'s next transaction to a running validator; false if it is refused.
pub(super) fn send(cluster: &Cluster, from: usize, payload: Payload, budget: Budget) -> bool {
    let services = cluster.running().next().expect("most validators run").services();
    let state = services.ledger.head();
    let sender = key(&format!("account-{from}"));
    let next = state.account(&sender.address()).nonce;
    let nonce = services.mempool.with(|pool| pool.next_nonce(&sender.address(), next));
    let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
    let transaction = Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload)
        .buying(budget)
        .sign(&sender);
    services.submit(transaction).is_ok()
}

/// A random call, which may fail in any way.
fn random_call(context: &mut Context, actors: &[Address]) -> (CallActor, Budget) {
    let pick = |context: &mut Context| *actors.choose(context).expect("there are actors");
    let (actor, other) = (pick(context), pick(context));
    let handlers = [
        "deposit", "withdraw", "forward", "fan", "ping", "count", "hashed", "dice", "grow",
        "forget", "power", "crash", "rest", "nothing",
    ];
    // The first half of the actors are banks, the others workers.
    let is_bank = actors.iter().position(|a| *a == actor).is_some_and(|i| i < actors.len() / 2);
    let own = if is_bank { &handlers[..5] } else { &handlers[5..13] };
    let handlers = if context.random_range(0..20) == 0 { &handlers[..] } else { own };
    let handler = *handlers.choose(context).expect("there are handlers");
    let number = context.random_range(0..400);
    let stranger = context.random_range(0..20) == 0;
    let to = if stranger { Address([7; 20]) } else { other };
    let inner = if context.random_range(0..2) == 0 { "deposit" } else { "rest" };
    let payload = match handler {
        "forward" => format!("{to} {inner} text"),
        "fan" => format!("{to} {}", number % 12),
        "ping" => format!("{to} {}", number % 30),
        "crash" => format!("{}", number % 5),
        "grow" => format!("{}", number * 5),
        "power" => format!("{}", number * 12),
        _ => number.to_string(),
    };
    let cycles = *[300, 3_000, 20_000, 60_000, 60_000].choose(context).expect("a choice");
    let cells = *[0, 200, 2_000, 2_000, 2_000].choose(context).expect("a choice");
    let value = Wei::new(context.random_range(0..1_000));
    let (handler, payload) = (handler.to_owned(), payload.into_bytes());
    (CallActor { actor, handler, payload, value }, Budget { cycles, cells })
}

/// Deploys each module three times and returns the actors' addresses.
pub(super) async fn deploy(cluster: &Cluster, modules: &[&str]) -> Vec<Address> {
    let mut actors = Vec::new();
    for (nonce, source) in (0..).zip(modules) {
        for from in 0..3 {
            let deployer = key(&format!("account-{from}")).address();
            let payload = Payload::DeployActor(DeployActor { source: (*source).to_owned() });
            let plenty = Budget { cycles: 1_000_000, cells: 100_000 };
            assert!(send(cluster, from, payload, plenty));
            actors.push(Address::of_actor(&deployer, nonce));
        }
    }
    let deployed = |cluster: &Cluster| {
        let state = cluster.running().next().expect("they run").services().ledger.head();
        actors.iter().all(|actor| state.actor(actor).is_some())
    };
    for _ in 0..40 {
        if deployed(cluster) {
            return actors;
        }
        cluster.pass(STEP).await;
    }
    panic!("the modules are not deployed");
}

/// Counts the outcomes of a validator's transactions, by status or error.
fn outcomes(cluster: &Cluster, validator: usize, from: u64, to: u64) -> BTreeMap<String, usize> {
    let mut outcomes = BTreeMap::new();
    for height in from..=to {
        for receipt in cluster.store(validator).receipts(Height::new(height)).expect("stored") {
            let error = receipt.status.error().unwrap_or("success");
            let name = error.split(':').next().expect("a name").to_owned();
            *outcomes.entry(name).or_default() += 1;
        }
    }
    outcomes
}

#[test]
fn validators_agree_on_every_receipt_of_random_calls() {
    let wanted = calls();
    run(9, async |mut context| {
        let mut cluster = cluster(context.child("cluster"), Setup::new(4, 0, BLOCK_TIME)).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(2, MINUTE).await);
        let actors = deploy(&cluster, &[BANK, WORK]).await;
        let supply = cluster.genesis().state().expect("a chain").supply().total();
        let mut invariants = Invariants::new(supply);
        let mut watching: Vec<_> = (0..4).map(|index| watch(&cluster, index)).collect();
        let (mut executed, mut counted) = (0, cluster.heights().0.get());
        let (mut stopped, mut next_change) = (None, counted + 5);
        let mut all = BTreeMap::new();
        while executed < wanted {
            context.sleep(STEP).await;
            for (index, blocks) in watching.iter_mut().enumerate() {
                check(&mut invariants, index, blocks.as_mut()).expect("invariants hold");
            }
            let height = cluster.heights().1.get();
            if height >= next_change {
                next_change = height + context.random_range(3..CALM);
                match stopped.take() {
                    Some(index) => {
                        cluster.start(index).expect("it starts again");
                        watching[index] = watch(&cluster, index);
                    }
                    None => {
                        let index = context.random_range(0..4);
                        cluster.stop(index).await;
                        check(&mut invariants, index, watching[index].as_mut())
                            .expect("invariants hold");
                        (watching[index], stopped) = (None, Some(index));
                    }
                }
            }
            let batch = context.random_range(0..BATCH);
            for _ in 0..batch.min(wanted) {
                let from = context.random_range(0..ACCOUNTS);
                let (call, budget) = random_call(&mut context, &actors);
                send(&cluster, from, Payload::CallActor(call), budget);
            }
            let witness = (0..4).find(|index| Some(*index) != stopped).expect("most run");
            let stored = cluster.validator(witness).expect("it runs").services().ledger.head();
            let now = stored.height().get();
            for (name, count) in outcomes(&cluster, witness, counted + 1, now) {
                executed += count;
                *all.entry(name).or_insert(0) += count;
            }
            counted = counted.max(now);
        }
        if let Some(index) = stopped {
            cluster.start(index).expect("it starts again");
        }
        let end = cluster.heights().1.get() + 5;
        assert!(cluster.reach(end, 10 * MINUTE).await, "stuck at {:?}", cluster.heights());
        settle(&cluster).await;
        println!("{executed} calls in {counted} blocks: {all:?}");
        for name in ["success", "ActorError", "OutOfCycles", "OutOfCells", "UnknownActor"] {
            assert!(
                all.get(name).is_some_and(|count| count * 1_000 >= executed),
                "{name}: {all:?}"
            );
        }
    });
}

#[test]
fn the_largest_transaction_reaches_everybody() {
    run(10, async |context| {
        let mut cluster = cluster(context, Setup::new(4, 0, BLOCK_TIME)).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(2, MINUTE).await);
        let state = cluster.running().next().expect("it runs").services().ledger.head();
        let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
        let sign = |bytes: usize| {
            let (actor, handler, value) = (Address([7; 20]), "h".to_owned(), Wei::ZERO);
            let payload = vec![7; bytes];
            let payload = Payload::CallActor(CallActor { actor, handler, payload, value });
            Transaction::with_limits(state.chain_id(), 0, cycle, cell, payload)
                .sign(&key("account-0"))
        };
        // As many cells as a block holds: everything except the payload has the same length in
        // both.
        let overhead = sign(900_000).transaction.cell_limit.get() - 900_000;
        let largest = sign(1_000_000 - overhead as usize);
        assert_eq!(largest.transaction.cell_limit.get(), 1_000_000);
        let services = cluster.running().next().expect("it runs").services();
        services.submit(largest.clone()).expect("a block holds it");
        cluster.pass(2 * BLOCK_TIME).await;
        for validator in cluster.running() {
            let services = validator.services();
            let waits = services.mempool.with(|pool| pool.get(&largest.hash()).is_some());
            let stored = services.ledger.store().transaction(&largest.hash()).expect("stored");
            assert!(waits || stored.is_some());
        }
        let height = cluster.heights().1.get();
        assert!(cluster.reach(height + 8, MINUTE).await, "stuck at {:?}", cluster.heights());
        let stored = cluster.store(3).transaction(&largest.hash()).expect("stored");
        let receipt = stored.expect("in a block").receipt;
        assert!(receipt.status.error().is_some_and(|e| e.starts_with("UnknownActor: ")));
        settle(&cluster).await;
    });
}
