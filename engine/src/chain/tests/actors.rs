//! Actors on the chain: deployments, calls, messages, fees, and dry runs.

use super::*;
use crate::{
    actor::{Budget, Usage},
    chain::actors::{RELOAD_BLOCKS, SMALL_LOADING, load},
    primitives::{Cells, Cycles},
};

pub(super) const COUNTER: &str = r#"
def bump(ctx, payload):
    n = pvm_host.get_state("n", 0) + 1
    pvm_host.set_state("n", n)
    pvm_host.emit("bumped", {"n": n})
    return n

def clear(ctx, payload):
    pvm_host.delete_state("n")

def read(ctx, payload):
    return pvm_host.get_state("n", 0)

def crash(ctx, payload):
    pvm_host.set_state("n", 99)
    pvm_host.log("about to fail")
    fail("no way")

def spin(ctx, payload):
    for _ in range(1000000):
        pass

def fill(ctx, payload):
    pvm_host.set_state("big", "x" * int(payload))

def later(ctx, payload):
    pvm_host.submit_job({"kind": "http"})

def dice(ctx, payload):
    return pvm_host.randomness("dice")

def where(ctx, payload):
    return [ctx.height, ctx.timestamp_ms, ctx.sender, ctx.value, ctx.self, payload]
"#;

/// Sends what its payload says, and records the order of its calls.
pub(super) const RELAY: &str = r#"
def note(ctx, payload):
    seen = pvm_host.get_state("seen", [])
    pvm_host.set_state("seen", seen + [payload])
    pvm_host.log("noted", payload)

def fan(ctx, payload):
    order = pvm_host.json_decode(payload)
    for name in order["names"]:
        pvm_host.send_message(order["to"], "note", name, order["value"])
    return pvm_host.get_balance()

def relay(ctx, payload):
    order = pvm_host.json_decode(payload)
    pvm_host.set_state("relayed", True)
    pvm_host.send_message(order["to"], order["handler"], order["payload"], ctx.value)

def flood(ctx, payload):
    for _ in range(3):
        pvm_host.send_message(ctx.self, "flood", payload)

def forever(ctx, payload):
    pvm_host.send_message(ctx.self, "forever")

def pay(ctx, payload):
    order = pvm_host.json_decode(payload)
    pvm_host.transfer(order["to"], order["amount"])
    return pvm_host.get_balance()
"#;

const PLENTY: Budget = Budget { cycles: 2_000_000, cells: 100_000 };

pub(super) fn metered(
    chain: &Chain,
    name: &str,
    payload: Payload,
    budget: Budget,
) -> SignedTransaction {
    let sender = key(name);
    let nonce = chain.state.account(&sender.address()).nonce;
    let (cycle, cell) = (chain.state.basefee_cycle(), chain.state.basefee_cell());
    Transaction::with_limits(chain.state.chain_id(), nonce, cycle, cell, payload)
        .buying(budget)
        .sign(&sender)
}

pub(super) fn calling(actor: Address, handler: &str, payload: &str, value: Wei) -> Payload {
    let (handler, payload) = (handler.to_owned(), payload.as_bytes().to_vec());
    Payload::CallActor(transaction::CallActor { actor, handler, payload, value })
}

impl Chain {
    fn metered(&mut self, payload: Payload, budget: Budget) -> (Receipt, Vec<EventKind>) {
        let signed = metered(self, "alice", payload, budget);
        let Execution { mut receipts, events, .. } = self.push(vec![signed]);
        let receipt = receipts.remove(0);
        let own = |event: &Event| event.transaction == Some(receipt.transaction);
        let events = events.into_iter().filter(own).map(|event| event.kind).collect();
        (receipt, events)
    }

    pub(super) fn deploy(&mut self, source: &str) -> Address {
        let payload = Payload::DeployActor(transaction::DeployActor { source: source.to_owned() });
        let (receipt, events) = self.metered(payload, PLENTY);
        assert_eq!(receipt.status, ReceiptStatus::Success);
        assert_eq!(events.len(), 1);
        receipt.actor.unwrap().actor
    }

    /// Calls a handler and returns the receipt of the successful call.
    pub(super) fn call(&mut self, actor: Address, handler: &str, payload: &str) -> ActorReceipt {
        let (receipt, _) = self.metered(calling(actor, handler, payload, Wei::ZERO), PLENTY);
        assert_eq!(receipt.status, ReceiptStatus::Success);
        receipt.actor.unwrap()
    }

    /// Calls a handler with value and returns the error.
    pub(super) fn fails(
        &mut self,
        actor: Address,
        handler: &str,
        payload: &str,
        value: Wei,
    ) -> String {
        let before = self.state.clone();
        let (receipt, events) = self.metered(calling(actor, handler, payload, value), PLENTY);
        assert_eq!(receipt.status.name(), "failed", "{:?}", receipt.actor);
        assert!(events.is_empty(), "{events:?}");
        assert_eq!(before.storage.root(), self.state.storage.root());
        let alice = key("alice").address();
        let (paid, after) = (before.account(&alice), self.state.account(&alice));
        let fee = receipt.burned.saturating_add(receipt.tip);
        assert_eq!(after.balance, paid.balance.saturating_sub(fee));
        assert_eq!(after.nonce, paid.nonce + 1);
        assert!(receipt.actor.unwrap().result.is_empty());
        receipt.status.error().unwrap().to_owned()
    }

    fn held(&self, actor: &Address) -> Wei {
        self.state.account(actor).balance
    }

    pub(super) fn stored(&self, actor: &Address, key: &str) -> Option<&str> {
        let value = self.state.stored_at(actor, key)?;
        Some(std::str::from_utf8(value).unwrap())
    }
}

pub(super) fn chain() -> Chain {
    Chain::new(&genesis(1))
}

#[test]
fn a_deployment_makes_an_actor_and_equal_sources_share_code() {
    let mut chain = chain();
    let alice = key("alice").address();
    let first = chain.deploy(COUNTER);
    assert_eq!(first, Address::of_actor(&alice, 0));
    let second = chain.deploy(COUNTER);
    assert_eq!(second, Address::of_actor(&alice, 1));
    let actor = *chain.state.actor(&first).unwrap();
    assert_eq!((actor.deployer, actor.deployed_at), (alice, Height::new(1)));
    assert_eq!(chain.state.code(&actor.code).unwrap().source(), COUNTER);
    assert_eq!(chain.state.actor(&second).unwrap().code, actor.code);
    assert_eq!(chain.state.code.len(), 1);
    assert_eq!(chain.state.actors().count(), 2);
    // Equal sources share code, not a store.
    chain.call(first, "bump", "");
    assert_eq!((chain.stored(&first, "n"), chain.stored(&second, "n")), (Some("1"), None));
}

#[test]
fn a_deployment_costs_what_loading_says_wherever_and_whenever() {
    let mut chain = chain();
    let source = COUNTER.to_owned();
    let payload = || Payload::DeployActor(transaction::DeployActor { source: source.clone() });
    let receipts: Vec<_> = (0..2).map(|_| chain.metered(payload(), PLENTY).0).collect();
    let (usage, module) = load(COUNTER, &chain.state.params().actors, PLENTY);
    let retained = module.unwrap().retained();
    assert!(usage.loading > 0 && usage.cells >= retained);
    for receipt in receipts {
        assert_eq!(receipt.actor.as_ref().unwrap().usage, usage);
        let used = receipt.cycles.get() - receipt.unused.get();
        assert_eq!(used, meter::INTRINSIC_CYCLES + usage.cycles());
    }
    // One cycle less is not enough, and usage is paid.
    let short = Budget { cycles: usage.cycles() - 1, cells: usage.cells };
    let (receipt, events) = chain.metered(payload(), short);
    assert!(events.is_empty() && receipt.cycles.get() > meter::INTRINSIC_CYCLES);
    let error = receipt.status.error().unwrap();
    assert!(error.starts_with("OutOfCycles: the limit is "), "{error}");
    assert_eq!(chain.state.actors().count(), 2);
    let exact = Budget { cycles: usage.cycles(), cells: usage.cells };
    assert_eq!(chain.metered(payload(), exact).0.status, ReceiptStatus::Success);
}

#[test]
fn a_module_that_is_none_is_refused_with_its_place() {
    let mut chain = chain();
    let mut check = |source: &str, error: &str| {
        let payload = Payload::DeployActor(transaction::DeployActor { source: source.to_owned() });
        let (receipt, events) = chain.metered(payload, PLENTY);
        assert!(events.is_empty());
        let text = receipt.status.error().unwrap();
        assert!(text.starts_with(error), "{text}");
        text.to_owned()
    };
    let text = check("def f(ctx, payload):\n    return (\n", "ModuleRefused: ");
    assert!(text.contains("(at "), "{text}");
    check("x = 1.5\n", "ModuleRefused: ");
    check(&format!("# {}\n", "x".repeat(65_536)), "ModuleRefused: ");
    assert_eq!(chain.state.actors().count() + chain.state.code.len(), 0);
}

#[test]
fn a_call_changes_the_store_and_pays_for_what_it_used() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    let before = chain.balance("alice");
    let (receipt, events) = chain.metered(calling(actor, "bump", "", Wei::ZERO), PLENTY);
    let done = receipt.actor.unwrap();
    assert_eq!((done.result.as_slice(), done.deliveries), (b"1".as_slice(), 1));
    let names: Vec<_> = events.iter().map(EventKind::name).collect();
    assert_eq!(names, ["ActorCalled", "ActorEmitted"]);
    let EventKind::ActorEmitted(emitted) = &events[1] else { panic!("{events:?}") };
    assert_eq!((emitted.name.as_str(), emitted.data.as_slice()), ("bumped", &br#"{"n":1}"#[..]));
    let used = receipt.cycles.get() - receipt.unused.get();
    assert_eq!(used, meter::INTRINSIC_CYCLES + done.usage.cycles());
    assert!(receipt.cycles.get() < PLENTY.cycles);
    let fee = receipt.burned.saturating_add(receipt.tip);
    assert_eq!(chain.balance("alice"), before.saturating_sub(fee));
    // Calls in one block see each other's effects.
    let nonce = chain.state.account(&key("alice").address()).nonce;
    let calls = (nonce..nonce + 3)
        .map(|nonce| {
            let payload = calling(actor, "bump", "", Wei::ZERO);
            let transaction = chain.sign_at("alice", nonce, payload).transaction.clone();
            transaction.buying(PLENTY).sign(&key("alice"))
        })
        .collect();
    let results: Vec<_> =
        chain.push(calls).receipts.into_iter().map(|r| r.actor.unwrap()).collect();
    let results: Vec<_> = results.iter().map(|done| done.result.as_slice()).collect();
    assert_eq!(results, [b"2", b"3", b"4"]);
    assert_eq!(chain.call(actor, "read", "").result, b"4");
    chain.call(actor, "clear", "");
    assert_eq!(chain.stored(&actor, "n"), None);
}

#[test]
fn a_call_sees_its_block_and_its_caller() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    let payload = calling(actor, "where", "hello", Wei::new(7));
    let done = chain.metered(payload, PLENTY).0.actor.unwrap();
    let head = chain.state.head();
    let (height, time, alice) = (head.height, head.timestamp_ms, key("alice").address());
    let expected = format!(r#"[{height},{time},"{alice}",7,"{actor}","hello"]"#);
    assert_eq!(std::str::from_utf8(&done.result).unwrap(), expected);
    assert_eq!(chain.held(&actor), Wei::new(7));
}

#[test]
fn randomness_differs_between_any_two_calls() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    assert_ne!(chain.call(actor, "dice", "").result, chain.call(actor, "dice", "").result);
}

#[test]
fn a_failing_call_changes_nothing_but_says_why() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    chain.call(actor, "bump", "");
    let error = chain.fails(actor, "crash", "", Wei::cby(1));
    assert!(error.starts_with("ActorError: ") && error.contains("no way"), "{error}");
    assert!(error.contains("\n  in crash at 17:"), "{error}");
    assert_eq!(chain.held(&actor), Wei::ZERO);
    let (receipt, _) = chain.metered(calling(actor, "crash", "", Wei::ZERO), PLENTY);
    let done = receipt.actor.unwrap();
    assert_eq!(done.log, [(actor, "about to fail".to_owned())]);
    assert!(done.usage.storage > 0 && done.deliveries == 1);
    assert_eq!(chain.stored(&actor, "n"), Some("1"));

    assert!(chain.fails(actor, "nothing", "", Wei::ZERO).starts_with("ActorError: "));
    assert!(chain.fails(actor, "spin", "", Wei::ZERO).starts_with("OutOfCycles: the limit is "));
    assert!(
        chain.fails(actor, "fill", "500000", Wei::ZERO).starts_with("OutOfCells: the limit is ")
    );
    let error = chain.fails(actor, "later", "", Wei::ZERO);
    assert!(error.contains("InvalidJobSpec: work is missing"), "{error}");
    let stranger = key("bob").address();
    let error = chain.fails(stranger, "bump", "", Wei::cby(1));
    assert_eq!(error, format!("UnknownActor: no actor {stranger}"));
    let error = chain.fails(actor, &"x".repeat(257), "", Wei::ZERO);
    assert!(error.starts_with("HandlerTooLong: "), "{error}");
    let error = chain.fails(actor, "bump", "", Wei::cby(2_000_000));
    assert!(error.starts_with("InsufficientBalance: "), "{error}");
}

#[test]
fn a_call_that_runs_out_pays_all_that_it_bought() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    let budget = Budget { cycles: 10_000, cells: 50 };
    let signed = metered(&chain, "alice", calling(actor, "spin", "", Wei::ZERO), budget);
    let (bought, size) = (signed.transaction.cycle_limit, signed.size());
    let receipt = chain.push(vec![signed]).receipts.remove(0);
    // The step that does not fit is not charged.
    assert!(receipt.cycles <= bought && bought.get() - receipt.cycles.get() < 500);
    assert_eq!(receipt.cells.get(), size as u64);
}

#[test]
fn limits_are_set_aside_and_given_back() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    // It costs more than alice has: skipped, although the call would use next to nothing.
    let broke = metered(&chain, "alice", calling(actor, "bump", "", Wei::ZERO), PLENTY);
    let mut dear = broke.transaction.clone();
    dear.fees.max_priority_per_cycle = Wei::cby(1);
    dear.fees.max_fee_per_cycle = Wei::cby(2);
    let receipt = chain.push(vec![dear.sign(&key("alice"))]).receipts.remove(0);
    assert!(receipt.status.error().unwrap().starts_with("InsufficientBalance: "));
    // More than a block has room for.
    let mut large = broke.transaction.clone();
    large.cycle_limit = Cycles::new(meter::MAX_BLOCK_CYCLES + 1);
    let receipt = chain.push(vec![large.sign(&key("alice"))]).receipts.remove(0);
    assert!(receipt.status.error().unwrap().starts_with("BlockFull"));
    // The maximum of a block, twice: the first uses little of it.
    let all = Budget { cycles: u64::MAX, cells: u64::MAX };
    let signed = metered(&chain, "alice", calling(actor, "bump", "", Wei::ZERO), all);
    let bought = (signed.transaction.cycle_limit, signed.transaction.cell_limit);
    let most = (Cycles::new(meter::MAX_BLOCK_CYCLES), Cells::new(meter::MAX_BLOCK_CELLS));
    assert_eq!((bought, signed.reserve()), (most, most));
    let receipts = chain.push(vec![signed]).receipts;
    assert_eq!(receipts[0].status, ReceiptStatus::Success);
    assert!(receipts[0].cycles.get() - receipts[0].unused.get() < 100_000);
}

#[test]
fn loading_a_module_is_paid_for_again_after_a_while_and_by_all_validators_alike() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    let loading = load(COUNTER, &chain.state.params().actors, PLENTY).0.cycles();
    let paid = |chain: &mut Chain, budget: Budget| {
        let (receipt, _) = chain.metered(calling(actor, "bump", "", Wei::ZERO), budget);
        let usage = receipt.actor.unwrap().usage;
        (receipt.status.error().map(str::to_owned), usage.loading, usage.cycles())
    };
    let (error, load, _) = paid(&mut chain, PLENTY);
    assert_eq!((error, load), (None, 0), "the deployment has paid");
    let wait = |chain: &mut Chain, blocks: u64| {
        (0..blocks).for_each(|_| drop(chain.push(vec![])));
    };
    for _ in 0..3 {
        wait(&mut chain, RELOAD_BLOCKS - 5);
        assert_eq!(paid(&mut chain, PLENTY).1, 0, "it is small, and in use");
    }
    wait(&mut chain, RELOAD_BLOCKS);
    // A caller that does not buy enough pays for that and nothing is loaded; the next caller pays
    // for it.
    let small = Budget { cycles: loading - 1, cells: 1_000 };
    let (error, load, all) = paid(&mut chain, small);
    assert!(error.unwrap().starts_with("OutOfCycles: the limit is"), "{load}");
    assert_eq!((load, all), (loading - 1, loading - 1));
    // A validator that has just started has nothing in memory, with the same result.
    let restarted = State::from_bytes(&chain.state.to_bytes()).unwrap();
    let block =
        chain.block(vec![metered(&chain, "alice", calling(actor, "bump", "", Wei::ZERO), PLENTY)]);
    let [first, second] = [&chain.state, &restarted].map(|state| execute(state, &block).unwrap());
    assert_eq!(first.receipts, second.receipts);
    assert_eq!(first.state.root(), second.state.root());
    let usage = first.receipts[0].actor.as_ref().unwrap().usage;
    assert_eq!(usage.loading, loading);
    chain.state = first.state;
    let (_, load, all) = paid(&mut chain, PLENTY);
    assert_eq!((load, all), (0, usage.cycles() - loading), "once");
}

#[test]
fn a_module_that_takes_long_to_load_does_not_stay_loaded_by_being_called() {
    let mut chain = chain();
    let names: Vec<_> = (0..3_000).map(|n| format!("v{n} = {n}")).collect();
    let actor = chain.deploy(&format!("{COUNTER}\n{}\n", names.join("\n")));
    let loading = chain.state.actor(&actor).unwrap().loading;
    assert!(loading > SMALL_LOADING, "{loading}");
    let mut paid = Vec::new();
    for _ in 0..RELOAD_BLOCKS / 32 * 2 {
        let (receipt, _) = chain.metered(calling(actor, "bump", "", Wei::ZERO), PLENTY);
        paid.push(receipt.actor.unwrap().usage.loading);
        (0..31).for_each(|_| drop(chain.push(vec![])));
    }
    assert_eq!(paid.iter().filter(|cycles| **cycles == loading).count(), 1, "{paid:?}");
}

#[test]
fn messages_are_delivered_in_the_order_of_sending() {
    let mut chain = chain();
    let (first, second) = (chain.deploy(RELAY), chain.deploy(RELAY));
    let order = format!(r#"{{"to":"{second}","names":["a","b","c"],"value":10}}"#);
    let (receipt, events) = chain.metered(calling(first, "fan", &order, Wei::new(100)), PLENTY);
    let done = receipt.actor.unwrap();
    assert_eq!((done.deliveries, receipt.status), (4, ReceiptStatus::Success));
    let log: Vec<_> = ["a", "b", "c"].map(|name| (second, format!("noted {name}"))).to_vec();
    assert_eq!(done.log, log);
    assert_eq!(chain.stored(&second, "seen"), Some(r#"["a","b","c"]"#));
    assert_eq!((chain.held(&first), chain.held(&second)), (Wei::new(70), Wei::new(30)));
    let moved: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            EventKind::Transferred(moved) => Some((moved.from, moved.to, moved.amount.get())),
            _ => None,
        })
        .collect();
    let alice = key("alice").address();
    let hop = (first, second, 10);
    assert_eq!(moved, [(alice, first, 100), hop, hop, hop]);
}

#[test]
fn a_message_that_fails_undoes_the_whole_transaction() {
    let mut chain = chain();
    let (relay, counter) = (chain.deploy(RELAY), chain.deploy(COUNTER));
    let to = |to: Address, handler: &str| {
        format!(r#"{{"to":"{to}","handler":"{handler}","payload":""}}"#)
    };
    let error = chain.fails(relay, "relay", &to(counter, "crash"), Wei::cby(1));
    assert!(error.starts_with("ActorError: ") && error.contains("no way"), "{error}");
    let from = format!("in message 1 from {relay} to {counter}, handler \"crash\"");
    assert!(error.lines().last().unwrap().contains(&from), "{error}");
    assert_eq!(chain.stored(&relay, "relayed"), None);
    assert_eq!((chain.held(&relay), chain.held(&counter)), (Wei::ZERO, Wei::ZERO));
    let bob = key("bob").address();
    let error = chain.fails(relay, "relay", &to(bob, "note"), Wei::ZERO);
    assert!(error.starts_with(&format!("UnknownActor: no actor {bob}\n  in message 1")), "{error}");
    // Every delivery queues two more.
    let error = chain.fails(relay, "flood", &"x".repeat(90_000), Wei::ZERO);
    assert!(error.starts_with("MessagesTooLarge: "), "{error}");
    let error = chain.fails(relay, "forever", "", Wei::ZERO);
    assert!(error.starts_with("TooManyMessages: "), "{error}");
    let (receipt, _) = chain.metered(calling(relay, "forever", "", Wei::ZERO), PLENTY);
    assert_eq!(receipt.actor.unwrap().deliveries, MAX_DELIVERIES);
}

#[test]
fn actors_pay_accounts_and_actors() {
    let mut chain = chain();
    let (relay, counter) = (chain.deploy(RELAY), chain.deploy(COUNTER));
    let carol = key("carol").address();
    for (to, amount) in [(carol, 40), (counter, 5)] {
        let order = format!(r#"{{"to":"{to}","amount":{amount}}}"#);
        let payload = calling(relay, "pay", &order, Wei::new(100));
        let (receipt, events) = chain.metered(payload, PLENTY);
        assert_eq!(receipt.status, ReceiptStatus::Success);
        assert_eq!(chain.held(&to), Wei::new(amount));
        let names: Vec<_> = events.iter().map(EventKind::name).collect();
        assert_eq!(names, ["Transferred", "ActorCalled", "Transferred"]);
    }
    assert_eq!(chain.held(&relay), Wei::new(155));
    let order = format!(r#"{{"to":"{carol}","amount":1000}}"#);
    chain.fails(relay, "pay", &order, Wei::ZERO);
}

#[test]
fn a_snapshot_loads_its_modules_again() {
    let mut chain = chain();
    let actor = chain.deploy(COUNTER);
    chain.call(actor, "bump", "");
    let signed = metered(&chain, "alice", calling(actor, "bump", "", Wei::ZERO), PLENTY);
    let block = chain.block(vec![signed]);
    let fresh = State::from_bytes(&chain.state.to_bytes()).unwrap();
    let (kept, fresh) = (execute(&chain.state, &block).unwrap(), execute(&fresh, &block).unwrap());
    assert_eq!(kept.receipts, fresh.receipts);
    assert_eq!(kept.receipts[0].actor.as_ref().unwrap().result, b"2");
    assert_eq!(kept.events, fresh.events);
    assert_eq!(kept.state.root(), fresh.state.root());
}

#[test]
fn a_dry_run_says_what_the_call_will_do() {
    let mut chain = chain();
    let (relay, counter) = (chain.deploy(RELAY), chain.deploy(COUNTER));
    let sender = key("alice").address();
    let trial = |actor, handler: &str, payload: &str, value| Trial {
        sender,
        actor,
        handler: handler.to_owned(),
        payload: payload.as_bytes().to_vec(),
        value,
        budget: PLENTY,
        timer_allowance: Wei::ZERO,
        traced: Traced::Calls,
        code: None,
    };
    let order = format!(r#"{{"to":"{counter}","handler":"bump","payload":""}}"#);
    let (before, root) = (chain.state.clone(), chain.state.root());
    let tried = dry_run(&before, &trial(relay, "relay", &order, Wei::new(3)));
    assert_eq!(before.root(), root);
    let payload = calling(relay, "relay", &order, Wei::new(3));
    let (receipt, events) = chain.metered(payload, PLENTY);
    let done = receipt.actor.unwrap();
    assert_eq!(tried.result.as_deref(), Ok(done.result.as_slice()));
    assert_eq!((tried.usage, tried.deliveries, tried.log), (done.usage, 2, done.log));
    assert_eq!((tried.events, tried.height), (events, chain.state.height()));
    let changed: Vec<_> =
        tried.changes.iter().map(|c| (c.actor, c.key.as_text().unwrap())).collect();
    let mut expected = [(relay, "relayed"), (counter, "n")];
    expected.sort_unstable();
    assert_eq!(changed, expected);
    for change in &tried.changes {
        assert_eq!(change.before, None);
        let after = chain.state.stored_at(&change.actor, change.key.clone()).map(<[u8]>::to_vec);
        assert_eq!(change.after, after);
    }
    // Each call is recorded with what it did; one caused the other.
    let [first, second] = &tried.calls[..] else { panic!("{:?}", tried.calls) };
    let of = |call: &TracedCall| (call.by, call.inside, call.sender, call.actor);
    assert_eq!(of(first), (None, false, sender, relay));
    assert_eq!(of(second), (Some(0), false, relay, counter));
    assert_eq!((second.handler.as_str(), second.result.as_deref()), ("bump", Ok(&b"1"[..])));
    assert_eq!(first.usage.plus(&second.usage), tried.usage);
    let of = |changes: &[StoreChange]| changes.iter().map(|c| c.actor).collect::<Vec<_>>();
    assert_eq!([first, second].map(|call| of(&call.changes)), [vec![relay], vec![counter]]);
    // Writing the same value is not a change; a failing call makes none.
    let again = dry_run(&chain.state, &trial(relay, "relay", &order, Wei::ZERO));
    assert_eq!(again.changes.len(), 1);
    let failed = dry_run(&chain.state, &trial(counter, "crash", "", Wei::ZERO));
    assert!(failed.result.unwrap_err().to_string().starts_with("ActorError: "));
    assert!(failed.changes.is_empty() && failed.events.is_empty() && failed.log.len() == 1);
    let [call] = &failed.calls[..] else { panic!("{:?}", failed.calls) };
    assert!(
        call.result.as_ref().unwrap_err().starts_with("ActorError: ") && call.changes.is_empty()
    );
    assert!(tried.calls.iter().all(|call| call.profile.is_none()));
    // A profile has what each call spent, but the loading of its module.
    let lines = Trial { traced: Traced::Lines, ..trial(relay, "relay", &order, Wei::ZERO) };
    let profiled = dry_run(&chain.state, &lines);
    assert_eq!(profiled.usage, again.usage);
    for call in &profiled.calls {
        let profile = call.profile.as_ref().unwrap();
        let spots = profile.spots.iter().map(|spot| spot.spent.cycles).sum::<u64>();
        let all = spots + profile.outside.cycles + call.usage.loading;
        assert_eq!(all, call.usage.cycles(), "{profile:?}");
    }
    let nothing = Trial { traced: Traced::Nothing, ..lines };
    assert!(dry_run(&chain.state, &nothing).calls.is_empty());
    // An older state answers for its own time.
    let then = dry_run(&before, &trial(counter, "read", "", Wei::ZERO));
    let now = dry_run(&chain.state, &trial(counter, "read", "", Wei::ZERO));
    assert_eq!((then.result, now.result), (Ok(b"0".to_vec()), Ok(b"1".to_vec())));
}

#[test]
fn a_dry_run_on_other_code_sees_the_actors_store_and_changes_nothing_else() {
    let mut chain = chain();
    let (relay, counter) = (chain.deploy(RELAY), chain.deploy(COUNTER));
    let twin = chain.deploy(COUNTER);
    chain.call(counter, "bump", "");
    let trial = |actor, handler: &str, payload: &str, code: Option<&str>| Trial {
        sender: key("alice").address(),
        actor,
        handler: handler.to_owned(),
        payload: payload.as_bytes().to_vec(),
        value: Wei::ZERO,
        budget: PLENTY,
        timer_allowance: Wei::ZERO,
        traced: Traced::Calls,
        code: code.map(str::to_owned),
    };
    let next = "def init(ctx, payload):\n    pvm_host.set_state(\"n\", 0)\n\
                def bump(ctx, payload):\n    n = pvm_host.get_state(\"n\", 0) + 10\n    \
                pvm_host.set_state(\"n\", n)\n    return n\n";
    let root = chain.state.root();
    let tried = dry_run(&chain.state, &trial(counter, "bump", "", Some(next)));
    assert_eq!((tried.result, tried.usage.loading), (Ok(b"11".to_vec()), 0));
    assert_eq!(tried.changes.len(), 1);
    // Another actor of the same code keeps it, and a message to it runs it.
    let tried = dry_run(&chain.state, &trial(twin, "bump", "", None));
    assert_eq!(tried.result, Ok(b"1".to_vec()));
    let order = format!(r#"{{"to":"{counter}","handler":"bump","payload":""}}"#);
    let forward = format!("{RELAY}\nMORE = 1\n");
    let tried = dry_run(&chain.state, &trial(relay, "relay", &order, Some(&forward)));
    assert_eq!(tried.calls[1].result.as_deref(), Ok(&b"2"[..]));
    // The same code is the same call.
    let own = dry_run(&chain.state, &trial(counter, "bump", "", None));
    assert_eq!(dry_run(&chain.state, &trial(counter, "bump", "", Some(COUNTER))), own);
    let check = |code: &str, expected: &str| {
        let tried = dry_run(&chain.state, &trial(counter, "bump", "", Some(code)));
        let error = tried.result.unwrap_err().to_string();
        assert!(error.starts_with("ModuleRefused: ") && error.contains(expected), "{error}");
        assert_eq!((tried.usage, tried.deliveries, tried.changes.len()), (Usage::default(), 0, 0));
    };
    check("def bump(ctx, payload):\n    return (1,\n", "(at 2:12)");
    check("x = nothing\n", "(at 1:5)");
    check(&"#".repeat(70_000), "bytes of source: at most 65536, got 70000");
    let nowhere = dry_run(&chain.state, &trial(Address([9; 20]), "bump", "", Some(next)));
    assert!(nowhere.result.unwrap_err().to_string().starts_with("UnknownActor: "));
    assert_eq!(chain.state.root(), root);
}

#[test]
fn a_store_is_read_in_order_of_keys_and_actors_are_apart() {
    let mut chain = chain();
    let source = "def put(ctx, payload):\n    pvm_host.set_state(payload, len(payload))\n";
    let (first, second) = (chain.deploy(source), chain.deploy(source));
    for name in ["b", "a/2", "a/1", "c"] {
        chain.call(first, "put", name);
        chain.call(second, "put", &format!("{name}!"));
    }
    let keys = |actor, from: &str| {
        chain.state.stored(actor, from).map(|(key, _)| key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&first, ""), ["a/1", "a/2", "b", "c"]);
    assert_eq!(keys(&first, "a/2"), ["a/2", "b", "c"]);
    assert_eq!(keys(&second, "b"), ["b!", "c!"]);
    assert_eq!(chain.stored(&first, "a/1"), Some("3"));
}
