//! Actors in Python on the chain, with a machine whose handlers are functions of the tests.

use super::{
    actors::{COUNTER, RELAY, calling, chain as starlark_chain, metered},
    *,
};
use crate::{
    actor::Budget,
    chain::{
        event::MessageDelivered,
        params::{INSTANCE_CYCLES, PythonTerms},
        state::{MAX_ONE_MESSAGE_BYTES, Outbox, PendingMessage},
        transaction::{DeployPython, InitCall, TransferOwnership},
    },
    primitives::cbor::{self, CborValue},
    pvm::{
        ActorCall, Fuel, HostCode, HostFault, Pvm, PvmCall, PvmFailure, PvmHost, PvmOutcome,
        Raised, TimerOrder, TokenAnswer, TokenCall,
    },
};

const PLENTY: Budget = Budget { cycles: 2_000_000, cells: 100_000 };
/// Fuel that loading a module takes.
const LOAD: u64 = 5_000;
const TUPLE: Hash = Hash([7; 32]);

/// A machine whose modules are names. `broken` does not load.
#[derive(Debug)]
struct Scripted;

type Answer = Result<Vec<u8>, HostFault>;

impl Pvm for Scripted {
    fn tuple(&self) -> Hash {
        TUPLE
    }

    fn load(&self, source: &str, fuel: u64) -> PvmOutcome {
        if fuel < LOAD {
            return PvmOutcome { fuel, result: Err(PvmFailure::OutOfFuel) };
        }
        let result = match source {
            "broken" => Err(raised("SyntaxError", "no module")),
            _ => Ok(Vec::new()),
        };
        PvmOutcome { fuel: LOAD, result }
    }

    fn call(&self, call: &PvmCall<'_>, host: &mut dyn PvmHost) -> PvmOutcome {
        let loaded = self.load(call.source, call.fuel);
        if loaded.result.is_err() {
            return loaded;
        }
        let mut fuel = Fuel(call.fuel - LOAD);
        let result = handle(call.handler, call.payload, host, &mut fuel);
        match result {
            // The instance burns what is left before it returns.
            Ok(bytes) if fuel.0 >= LOAD => {
                PvmOutcome { fuel: call.fuel - fuel.0, result: Ok(bytes) }
            }
            Ok(_) | Err(HostFault::OutOfFuel) => {
                PvmOutcome { fuel: call.fuel, result: Err(PvmFailure::OutOfFuel) }
            }
            Err(HostFault::Refused(refusal)) => PvmOutcome {
                fuel: call.fuel - fuel.0,
                result: Err(raised(refusal.code.name(), &refusal.message)),
            },
        }
    }
}

fn raised(kind: &str, message: &str) -> PvmFailure {
    PvmFailure::Raised(Box::new(Raised {
        kind: kind.to_owned(),
        message: message.to_owned(),
        slug: Some("E1230".to_owned()),
        why: Some("because".to_owned()),
        fix: None,
        traceback: "<actor>:1".to_owned(),
    }))
}

/// The payload of a call to pass on: an actor, a handler, and the rest.
fn passed_on(payload: &[u8]) -> ActorCall {
    let text = std::str::from_utf8(payload).unwrap();
    let mut parts = text.splitn(3, ' ');
    ActorCall {
        target: parts.next().unwrap().parse().unwrap(),
        handler: parts.next().unwrap().to_owned(),
        payload: parts.next().unwrap_or_default().as_bytes().to_vec(),
        cycles_limit: 0,
        access_limit: 0,
    }
}

fn handle(handler: &str, payload: &[u8], host: &mut dyn PvmHost, fuel: &mut Fuel) -> Answer {
    match handler {
        "init" => {
            let context = host.context(fuel)?;
            host.set_state(fuel, b"by", context.sender.0.to_vec())?;
            host.set_reserved_state(fuel, b"__INITIALIZED__", vec![1])?;
            Ok(payload.to_vec())
        }
        "put" => {
            host.set_state(fuel, b"k", payload.to_vec())?;
            host.emit_event(fuel, "put", payload.to_vec(), None)?;
            Ok(host.actor_owner(fuel)?.0.to_vec())
        }
        "raise" => {
            host.set_state(fuel, b"k", b"lost".to_vec())?;
            Err(HostFault::refused(HostCode::Internal, "on purpose"))
        }
        "spin" => {
            host.set_state(fuel, b"k", b"lost".to_vec())?;
            host.charge_gas(fuel, u64::MAX)?;
            Ok(Vec::new())
        }
        "reserved" => {
            host.set_state(fuel, b"__INITIALIZED__", vec![2])?;
            Ok(Vec::new())
        }
        "call" => host.call_actor(fuel, passed_on(payload)),
        "try" => Ok(match host.call_actor(fuel, passed_on(payload)) {
            Ok(answer) => answer,
            Err(HostFault::Refused(refusal)) => refusal.code.name().as_bytes().to_vec(),
            Err(fault) => return Err(fault),
        }),
        "send" => {
            let ActorCall { target, payload, .. } = passed_on(payload);
            host.send_message(fuel, target, payload)?;
            Ok(Vec::new())
        }
        "send_and_raise" => {
            let ActorCall { target, payload, .. } = passed_on(payload);
            host.send_message(fuel, target, payload)?;
            Err(HostFault::refused(HostCode::Internal, "on purpose"))
        }
        "handle_message" => {
            let context = host.context(fuel)?;
            let before = host.get_state(fuel, b"heard")?.unwrap_or_default();
            host.set_state(fuel, b"heard", [&before[..], payload].concat())?;
            host.set_state(fuel, b"from", context.sender.0.to_vec())?;
            Ok(Vec::new())
        }
        "bytes" => {
            host.set_state(fuel, &[0xff, 0], b"1".to_vec())?;
            host.set_state(fuel, b"a/1", b"2".to_vec())?;
            host.set_state(fuel, b"a/2", b"3".to_vec())?;
            let found = host.scan_state_prefix(fuel, b"a/", 10)?;
            Ok(found.into_iter().flat_map(|(_, value)| value).collect())
        }
        "ask" => {
            host.send_message(fuel, Address::DISPATCHER, payload.to_vec())?;
            Ok(Vec::new())
        }
        "tick" => {
            host.set_state(fuel, b"ticked", payload.to_vec())?;
            Ok(Vec::new())
        }
        "later" => {
            let height = Height::new(host.context(fuel)?.height.get() + 2);
            let payload = payload.to_vec();
            let (fee_payer, gas_limit, access_limit, expires_at) = (None, None, None, None);
            let timer =
                TimerOrder { height, payload, fee_payer, gas_limit, access_limit, expires_at };
            host.schedule_timer(fuel, timer).map(|id| id.0.to_vec())
        }
        "coin" => {
            let token = TokenCall::Create {
                name: "Coin".into(),
                symbol: "C".into(),
                decimals: 0,
                initial_supply: 5,
                max_supply: None,
                transfer_hook: None,
                metadata_uri: None,
            };
            let TokenAnswer::Created(id) = host.token(fuel, token)? else { unreachable!() };
            let call = TokenCall::Transfer { token: id, to: Address([1; 20]), amount: 9 };
            let refused = host.token(fuel, call).unwrap_err();
            assert_eq!(refused, HostFault::refused(HostCode::Quota, "5 of 9 are there"));
            Ok(id.0.to_vec())
        }
        "sign" => {
            let answer = host.verify_signature(fuel, 2, &[0; 32], payload, &[0; 64])?;
            Ok(vec![u8::from(answer)])
        }
        "emit" => {
            let numbers = [host.emit_event(fuel, "a", vec![], None)?, {
                host.transfer_balance(fuel, Address([3; 20]), Wei::new(1))?;
                host.emit_event(fuel, "b", vec![], None)?
            }];
            Ok(numbers.map(|number| number as u8).to_vec())
        }
        "ask__resume" => {
            let context = host.context(fuel)?;
            host.set_state(fuel, b"reply", payload.to_vec())?;
            host.set_state(fuel, b"from", context.sender.0.to_vec())?;
            Ok(Vec::new())
        }
        other => Err(HostFault::refused(HostCode::NotFound, format!("no handler {other}"))),
    }
}

fn chain() -> Chain {
    let mut genesis = genesis(1);
    genesis.params.python = Some(PythonTerms::on(TUPLE));
    let kinds = vec![JobKind::Llm, JobKind::Http, JobKind::Custom];
    genesis.runners[0].capabilities = Capabilities::of(kinds, 2);
    let mut chain = Chain::new(&genesis);
    chain.pvm = Some(Box::new(Scripted));
    chain
}

fn deployment(source: &str, init: &str) -> DeployPython {
    let init = Some(InitCall { handler: init.to_owned(), payload: b"{}".to_vec() });
    DeployPython { source: source.to_owned(), salt: None, value: Wei::ZERO, init }
}

impl Chain {
    fn python(&mut self, payload: Payload) -> (Receipt, Vec<EventKind>) {
        let signed = metered(self, "alice", payload, PLENTY);
        let Execution { mut receipts, events, .. } = self.push(vec![signed]);
        (receipts.remove(0), events.into_iter().map(|event| event.kind).collect())
    }

    fn deploy_python(&mut self, source: &str, value: Wei) -> Address {
        let deployment = DeployPython { value, ..deployment(source, "init") };
        let (receipt, _) = self.python(Payload::DeployPython(deployment));
        assert_eq!(receipt.status, ReceiptStatus::Success);
        receipt.actor.unwrap().actor
    }

    fn python_call(&mut self, actor: Address, handler: &str, payload: &str) -> Receipt {
        self.python(calling(actor, handler, payload, Wei::ZERO)).0
    }

    /// The bytes under a key of a store; empty for an absent key.
    fn kept(&self, actor: &Address, key: &str) -> &[u8] {
        self.state.stored_at(actor, key).unwrap_or_default()
    }
}

/// A runner job as a continuation of the SDK asks for it.
fn request(job_type: &str, args: Vec<CborValue>, kwargs: Vec<(&str, CborValue)>) -> Vec<u8> {
    let text = |text: &str| CborValue::Text(text.to_owned());
    let map = |entries: Vec<(&str, CborValue)>| {
        CborValue::Map(entries.into_iter().map(|(name, value)| (text(name), value)).collect())
    };
    let payload = map(vec![("args", CborValue::List(args)), ("kwargs", map(kwargs))]);
    let request = map(vec![
        ("kind", text("runner_job")),
        ("job_type", text(job_type)),
        ("payload", payload),
        ("cid", CborValue::Bytes(vec![9; 32])),
        ("reply_handler", text("ask__resume")),
    ]);
    cbor::encode(&request).unwrap()
}

fn text(text: &str) -> CborValue {
    CborValue::Text(text.to_owned())
}

fn error(receipt: &Receipt) -> &str {
    receipt.status.error().expect("it failed")
}

#[test]
fn a_deployment_and_its_init_are_one() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::cby(2));
    let alice = key("alice").address();
    assert_eq!(chain.kept(&actor, "by"), alice.0);
    assert_eq!(chain.kept(&actor, "__INITIALIZED__"), [1]);
    assert_eq!(chain.state.account(&actor).balance, Wei::cby(2));
    assert_eq!(chain.state.actor(&actor).unwrap().owner(), alice);
    // It never runs again, and a deployment whose `init` fails leaves nothing.
    let receipt = chain.python_call(actor, "init", "{}");
    assert!(error(&receipt).starts_with("InitOnlyOnce: "), "{receipt:?}");
    let before = (chain.state.actors.root(), chain.state.code.root(), chain.state.storage.root());
    for (source, init, expected) in
        [("two", "raise", "internal: on purpose"), ("broken", "init", "SyntaxError: no module")]
    {
        let (receipt, _) = chain.python(Payload::DeployPython(deployment(source, init)));
        assert!(error(&receipt).contains(expected), "{receipt:?}");
        assert!(error(&receipt).contains("E1230") && error(&receipt).contains("why: because"));
    }
    // Without `init`, the module is loaded all the same.
    let without = |source: &str| DeployPython { init: None, ..deployment(source, "") };
    let (receipt, _) = chain.python(Payload::DeployPython(without("broken")));
    assert!(error(&receipt).contains("SyntaxError"), "{receipt:?}");
    let after = (chain.state.actors.root(), chain.state.code.root(), chain.state.storage.root());
    assert_eq!(before, after);
    let (receipt, _) = chain.python(Payload::DeployPython(without("three")));
    assert_eq!(receipt.status, ReceiptStatus::Success);
}

/// A transaction in the block of the deployment finds the actor as the deployment left it.
#[test]
fn init_runs_in_the_deployment_and_not_in_another_transaction_of_its_block() {
    let mut chain = chain();
    let salted = DeployPython { salt: Some(b"s".to_vec()), ..deployment("one", "init") };
    let code = ActorCode::hash(Language::Python, "one");
    let actor = Address::of_salted_actor(&key("alice").address(), b"s", &code);
    let deploying = metered(&chain, "alice", Payload::DeployPython(salted), PLENTY);
    let calling = metered(&chain, "bob", calling(actor, "init", "{}", Wei::ZERO), PLENTY);
    let receipts = chain.push(vec![deploying, calling]).receipts;
    assert_eq!(receipts[0].status, ReceiptStatus::Success);
    assert!(error(&receipts[1]).starts_with("InitOnlyOnce: "), "{:?}", receipts[1]);
    assert_eq!(chain.kept(&actor, "by"), key("alice").address().0);
}

#[test]
fn a_salt_decides_the_address_and_is_used_once() {
    let mut chain = chain();
    let salted = DeployPython { salt: Some(b"s".to_vec()), ..deployment("one", "init") };
    let (first, _) = chain.python(Payload::DeployPython(salted.clone()));
    let code = ActorCode::hash(Language::Python, "one");
    let expected = Address::of_salted_actor(&key("alice").address(), b"s", &code);
    assert_eq!(first.actor.unwrap().actor, expected);
    let (again, _) = chain.python(Payload::DeployPython(salted.clone()));
    assert!(error(&again).starts_with("ActorExists: "), "{again:?}");
    let long = DeployPython { salt: Some(vec![0; 33]), ..salted };
    let (long, _) = chain.python(Payload::DeployPython(long));
    assert!(error(&long).starts_with("SaltTooLong: "), "{long:?}");
}

#[test]
fn a_call_pays_for_its_instance_and_its_fuel() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::ZERO);
    let receipt = chain.python_call(actor, "put", "v");
    assert_eq!(receipt.status, ReceiptStatus::Success);
    let did = receipt.actor.unwrap();
    assert_eq!(did.usage.loading, INSTANCE_CYCLES);
    // 25 cycles for the module, then the write, the event and a read, and two moves of a byte.
    assert_eq!(did.usage.evaluation, 25 + 50 + 20 + 10 + 2);
    assert_eq!((did.usage.cells, did.result), (2 + 64 + 4, key("alice").address().0.to_vec()));
    assert_eq!(chain.kept(&actor, "k"), b"v");
    for (handler, cycles) in [("raise", None), ("spin", Some(PLENTY.cycles))] {
        let receipt = chain.python_call(actor, handler, "");
        assert_eq!(receipt.status.name(), "failed");
        let used = receipt.actor.unwrap().usage.cycles();
        assert!(cycles.is_none_or(|cycles| cycles == used), "{handler}: {used}");
        assert_eq!(chain.kept(&actor, "k"), b"v");
    }
    let receipt = chain.python_call(actor, "reserved", "");
    assert!(error(&receipt).contains("forbidden"), "{receipt:?}");
    let receipt = chain.python_call(actor, "bytes", "");
    assert_eq!(receipt.actor.unwrap().result, b"23");
    assert_eq!(chain.state.stored_at(&actor, &[0xff, 0][..]), Some(&b"1"[..]));
}

#[test]
fn calls_between_actors_share_one_transaction() {
    let mut chain = chain();
    let [first, second] = ["one", "two"].map(|source| chain.deploy_python(source, Wei::ZERO));
    let receipt = chain.python_call(first, "call", &format!("{second} put deep"));
    assert_eq!(receipt.status, ReceiptStatus::Success);
    assert_eq!(chain.kept(&second, "k"), b"deep");
    // A callee that fails is undone; its caller may go on, or fail with it.
    for handler in ["raise", "nothing"] {
        let receipt = chain.python_call(first, "try", &format!("{second} {handler}"));
        assert_eq!(receipt.actor.unwrap().result, b"internal");
        assert_eq!(chain.kept(&second, "k"), b"deep");
    }
    let nested = format!("{second} put lost");
    let receipt = chain.python_call(first, "call", &format!("{second} call {first} put x"));
    assert!(error(&receipt).contains("an actor cannot be entered twice"), "{receipt:?}");
    let receipt = chain.python_call(first, "try", &format!("{first} {nested}"));
    assert_eq!(receipt.actor.unwrap().result, b"forbidden");
    let absent = key("carol").address();
    let receipt = chain.python_call(first, "try", &format!("{absent} put x"));
    assert_eq!(receipt.actor.unwrap().result, b"not_found");
    // All are out of fuel together.
    let receipt = chain.python_call(first, "try", &format!("{second} spin"));
    assert!(error(&receipt).starts_with("OutOfCycles: "), "{receipt:?}");
}

#[test]
fn both_languages_call_each_other() {
    let mut chain = chain();
    let counter = chain.deploy(COUNTER);
    let relay = chain.deploy(RELAY);
    let actor = chain.deploy_python("one", Wei::ZERO);
    let receipt = chain.python_call(actor, "call", &format!("{counter} bump"));
    assert_eq!(receipt.actor.unwrap().result, b"1");
    assert_eq!(chain.stored(&counter, "n"), Some("1"));
    let receipt = chain.python_call(actor, "try", &format!("{counter} crash"));
    assert_eq!(receipt.actor.unwrap().result, b"internal");
    assert_eq!(chain.stored(&counter, "n"), Some("1"));
    let order = format!(r#"{{"to": "{actor}", "handler": "put", "payload": "said"}}"#);
    let receipt = chain.python_call(relay, "relay", &order);
    assert_eq!(receipt.status, ReceiptStatus::Success);
    assert_eq!(chain.kept(&actor, "k"), b"said");
}

#[test]
fn a_dry_run_on_other_code_loads_it_in_the_actors_language() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::ZERO);
    let tried = |code: Option<String>| {
        let trial = Trial {
            sender: key("alice").address(),
            actor,
            handler: "raise".to_owned(),
            payload: Vec::new(),
            value: Wei::ZERO,
            budget: PLENTY,
            timer_allowance: Wei::ZERO,
            traced: Traced::Nothing,
            code,
        };
        dry_run_on(chain.pvm.as_deref(), &chain.state, &trial)
    };
    let (own, other) = (tried(None), tried(Some("two".to_owned())));
    assert_eq!(own, other);
    assert_eq!((other.language, other.usage.loading), (Language::Python, INSTANCE_CYCLES));
    let broken = tried(Some("broken".to_owned())).result.unwrap_err().to_string();
    assert!(broken.starts_with("SyntaxError: no module"), "{broken}");
    let long = tried(Some("#".repeat(70_000))).result.unwrap_err().to_string();
    assert!(long.starts_with("SourceTooLong: "), "{long}");
}

#[test]
fn a_trace_has_the_calls_inside_calls() {
    let mut chain = chain();
    let [first, second] = ["one", "two"].map(|source| chain.deploy_python(source, Wei::ZERO));
    let counter = chain.deploy(COUNTER);
    let tried = |payload: String, handler: &str| {
        let trial = Trial {
            sender: key("alice").address(),
            actor: first,
            handler: handler.to_owned(),
            payload: payload.into_bytes(),
            value: Wei::ZERO,
            budget: PLENTY,
            timer_allowance: Wei::ZERO,
            traced: Traced::Calls,
            code: None,
        };
        dry_run_on(chain.pvm.as_deref(), &chain.state, &trial)
    };
    let calls = |tried: &DryRun| -> Vec<_> {
        let call = |call: &TracedCall| (call.by, call.inside, call.actor, call.changes.len());
        tried.calls.iter().map(call).collect()
    };
    let deep = tried(format!("{second} call {counter} bump"), "call");
    let expected =
        [(None, false, first, 0), (Some(0), true, second, 0), (Some(1), true, counter, 1)];
    assert_eq!(calls(&deep), expected);
    // A call has the usage of those inside it.
    let usage = deep.calls.iter().map(|call| call.usage.cycles()).collect::<Vec<_>>();
    assert!(usage.is_sorted_by(|a, b| a > b), "{usage:?}");
    assert_eq!(deep.calls[0].usage, deep.usage);
    // What a caught failure undoes is no change.
    let caught = tried(format!("{second} raise"), "try");
    assert_eq!(calls(&caught), [(None, false, first, 0), (Some(0), true, second, 0)]);
    assert!(caught.calls[1].result.as_ref().unwrap_err().contains("on purpose"));
    assert_eq!(caught.result.as_deref(), Ok(&b"internal"[..]));
}

#[test]
fn a_message_arrives_in_the_next_block_once() {
    let mut chain = chain();
    let receiver = chain.deploy_python("one", Wei::ZERO);
    let sender = chain.deploy_python("two", Wei::cby(1));
    let receipt = chain.python_call(sender, "send", &format!("{receiver} - hey"));
    assert_eq!(receipt.status, ReceiptStatus::Success);
    assert_eq!(chain.kept(&receiver, "heard"), b"");
    let events = chain.push(vec![]).events;
    assert_eq!(chain.kept(&receiver, "heard"), b"hey");
    assert_eq!(chain.kept(&receiver, "from"), sender.0);
    let delivered = events.iter().find_map(|event| match &event.kind {
        EventKind::MessageDelivered(delivered) => Some(delivered),
        _ => None,
    });
    let Some(MessageDelivered { charged, error: None, .. }) = delivered else {
        panic!("{events:?}")
    };
    assert_eq!(chain.state.account(&sender).balance, Wei::cby(1).saturating_sub(*charged));
    chain.push(vec![]);
    assert_eq!(chain.kept(&receiver, "heard"), b"hey");
    // What sends it may fail, and the sender must be able to pay.
    let receipt = chain.python_call(sender, "send_and_raise", &format!("{receiver} - lost"));
    assert!(error(&receipt).contains("on purpose"), "{receipt:?}");
    let receipt = chain.python_call(receiver, "send", &format!("{sender} - poor"));
    assert!(error(&receipt).contains("quota: the actor has"), "{receipt:?}");
    let receipt = chain.python_call(receiver, "nothing", "");
    assert!(error(&receipt).contains("not_found: no handler nothing"), "{receipt:?}");
    chain.push(vec![]);
    assert_eq!(chain.kept(&receiver, "heard"), b"hey");
}

#[test]
fn a_job_of_an_actor_resumes_it_with_its_result() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::cby(5));
    let ask = |chain: &mut Chain, payload: &[u8]| {
        let (handler, payload) = ("ask".to_owned(), payload.to_vec());
        let call = transaction::CallActor { actor, handler, payload, value: Wei::ZERO };
        chain.python(Payload::CallActor(call)).0
    };
    let headers = CborValue::Map(vec![(text("a"), text("b"))]);
    let http = request("http", vec![text("http://127.0.0.1/")], vec![("headers", headers)]);
    assert_eq!(ask(&mut chain, &http).status, ReceiptStatus::Success);
    let jobs: Vec<_> = chain.state.jobs().map(|(id, job)| (*id, job.clone())).collect();
    let [(id, job)] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!((job.submitter, job.spec.timeout_blocks), (actor, 30));
    let Work::Http(work) = &job.spec.work else { panic!("{job:?}") };
    assert_eq!((work.method.as_str(), work.headers.len()), ("GET", 1));
    let runner = chain.committee(id)[0];
    let result = chain.result(*id, &name_of(&runner), &runner, b"it rains");
    chain.one("alice", result);
    let reply = cbor::decode(chain.kept(&actor, "reply")).unwrap();
    let expected = CborValue::Map(vec![
        (text("cid"), text(&"09".repeat(32))),
        (text("result"), text("it rains")),
        (text("reply_handler"), text("ask__resume")),
        (text("correlation_id"), CborValue::Null),
    ]);
    assert_eq!(reply, expected);
    assert_eq!(chain.kept(&actor, "from"), actor.0, "the actor itself resumes it");

    // A job that fails for good resumes it, too.
    let timeout = vec![("timeout_blocks", CborValue::Int(10.into()))];
    let http = request("http", vec![text("http://127.0.0.1/")], timeout);
    assert_eq!(ask(&mut chain, &http).status, ReceiptStatus::Success);
    for _ in 0..100 {
        chain.push(vec![]);
    }
    let reply = cbor::decode(chain.kept(&actor, "reply")).unwrap().to_string();
    // There is no other runner to try.
    assert!(reply.contains("\"reason\": \"no_replacement_available\""), "{reply}");
    assert!(reply.contains("\"attempts\": 2"), "{reply}");
}

#[test]
fn what_is_no_runner_job_is_refused_by_name() {
    let mut chain = chain();
    let rich = chain.deploy_python("one", Wei::cby(5));
    let poor = chain.deploy_python("two", Wei::ZERO);
    let mut check = |actor, payload: Vec<u8>, expected: &str| {
        let handler = "ask".to_owned();
        let call = transaction::CallActor { actor, handler, payload, value: Wei::ZERO };
        let receipt = chain.python(Payload::CallActor(call)).0;
        assert!(error(&receipt).contains(expected), "{expected}: {receipt:?}");
        assert_eq!(chain.state.jobs().count(), 0);
    };
    let number = |number: u64| CborValue::Int(number.into());
    check(rich, b"\xff".to_vec(), "a runner job: ");
    check(rich, cbor::encode(&CborValue::Null).unwrap(), "of kind `runner_job` only");
    check(rich, request("gpu", vec![], vec![]), "no runner jobs of type `gpu`");
    check(rich, request("llm", vec![], vec![]), "`prompt` is missing");
    check(rich, request("llm", vec![number(7)], vec![]), "`prompt` must be text");
    let tokens = vec![("max_tokens", number(32_769))];
    check(rich, request("llm", vec![text("hi")], tokens), "`max_tokens` is at most 32768");
    let timeout = vec![("timeout_blocks", number(9))];
    check(rich, request("llm", vec![text("hi")], timeout), "from 10 to 600, not 9");
    let bytes = vec![("x", CborValue::Bytes(vec![1]))];
    check(rich, request("mcp", vec![text("s"), text("t")], bytes), "are JSON, without bytes");
    let resume = vec![("resume_cycles", number(5_000_001))];
    check(rich, request("llm", vec![text("hi")], resume), "is at most 5000000, not 5000001");
    let secrets = vec![("secrets", CborValue::List(vec![text("KEY")]))];
    check(rich, request("http", vec![text("http://h/")], secrets), "no `secrets` for runner jobs");
    let schema = vec![("response_schema", text("{\"type\": 7}"))];
    check(rich, request("llm", vec![text("hi")], schema), "`response_schema`: ");
    let verify = |mode: &str, checks: Vec<CborValue>| {
        let entries = [
            ("mode", text(mode)),
            ("runners", number(3)),
            ("threshold", number(2)),
            ("checks", CborValue::List(checks)),
        ];
        let entries = entries.map(|(name, value)| (text(name), value));
        request("llm", vec![text("hi")], vec![("verify", CborValue::Map(entries.to_vec()))])
    };
    let entropy = CborValue::Map(vec![(text("kind"), text("entropy_check"))]);
    check(rich, verify("consensus", vec![entropy]), "no check `entropy_check`");
    check(rich, verify("zk", vec![]), "not mode zk");
    check(poor, request("llm", vec![text("hi")], vec![]), "quota: InsufficientBalance: ");
}

/// Calls `ask`, lets the only runner answer the job, and returns the reply.
fn answered(chain: &mut Chain, payload: Vec<u8>, answer: &[u8]) -> CborValue {
    let actor = chain.deploy_python("one", Wei::cby(5));
    let call = transaction::CallActor { actor, handler: "ask".into(), payload, value: Wei::ZERO };
    let (receipt, events) = chain.python(Payload::CallActor(call));
    assert_eq!(receipt.status, ReceiptStatus::Success);
    let submitted = events.iter().find_map(|event| match event {
        EventKind::JobSubmitted(submitted) => Some(submitted.job_id),
        _ => None,
    });
    let id = submitted.expect("a job was recorded");
    let runner = chain.committee(&id)[0];
    let result = chain.result(id, &name_of(&runner), &runner, answer);
    chain.one("alice", result);
    chain.push(vec![]);
    cbor::decode(chain.kept(&actor, "reply")).unwrap()
}

#[test]
fn a_structured_answer_is_a_value_that_fits_its_schema() {
    let mut chain = chain();
    let schema =
        r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;
    let mut check = |answer: &str, expected: &str| {
        let payload = request("llm", vec![text("hi")], vec![("response_schema", text(schema))]);
        let reply = answered(&mut chain, payload, answer.as_bytes());
        let CborValue::Map(entries) = &reply else { panic!("{reply}") };
        let (_, result) = entries.iter().find(|(key, _)| *key == text("result")).unwrap();
        assert_eq!(result.to_json().unwrap(), expected);
    };
    let ok = r#"{"kind":"llm_structured","model":"default","status":"ok","v":1,"value":{"n":7}}"#;
    check(r#" {"n": 7} "#, ok);
    let bad = r#"{"code":"invalid_structured_output","kind":"llm_structured","model":"default","status":"non_success","v":1}"#;
    for answer in ["", "7", "{}", r#"{"n": "7"}"#, r#"{"n": 9007199254740992}"#, "{\"n\": 7} x"] {
        check(answer, bad);
    }
    let deep = format!(r#"{{"n": 7, "d": {}{}}}"#, "[".repeat(10), "]".repeat(10));
    check(&deep, bad);
}

#[test]
fn a_timer_calls_the_handler_that_its_envelope_names() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::cby(1));
    let envelope = [("_handler", text("tick")), ("_payload", CborValue::Bytes(vec![0xff]))];
    let envelope = envelope.map(|(name, value)| (text(name), value));
    let payload = cbor::encode(&CborValue::Map(envelope.to_vec())).unwrap();
    let handler = "later".to_owned();
    let call = transaction::CallActor { actor, handler, payload, value: Wei::ZERO };
    let (receipt, _) = chain.python(Payload::CallActor(call));
    assert_eq!(receipt.status, ReceiptStatus::Success);
    for _ in 0..3 {
        chain.push(vec![]);
    }
    assert_eq!(chain.kept(&actor, "ticked"), [0xff]);
}

#[test]
fn tokens_signatures_and_events_are_the_chains() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::cby(1));
    let [first, second] = [0, 1].map(|_| chain.python_call(actor, "coin", "").actor.unwrap());
    assert_eq!(first.result.len(), 32);
    assert_ne!(first.result, second.result);
    assert_eq!(first.usage, second.usage);
    let key = [b"b".to_vec(), first.result, actor.0.to_vec()].concat();
    assert_eq!(chain.state.stored_at(&Address::TOKENS, &key[..]), Some(&5_u128.to_be_bytes()[..]));
    let receipt = chain.python_call(actor, "sign", "x");
    assert_eq!(receipt.actor.unwrap().result, [0]);
    // Other effects between two events have no numbers.
    let receipt = chain.python_call(actor, "emit", "");
    assert_eq!(receipt.actor.unwrap().result, [1, 2]);
}

#[test]
fn messages_that_wait_are_bounded() {
    let fitting = |bytes: usize| {
        let mut outbox = Outbox::default();
        let (from, cause, payload) = (Address([1; 20]), TUPLE, Arc::new(vec![0; bytes]));
        let message = PendingMessage { from, to: from, payload, cause };
        (0..10_000).take_while(|_| outbox.push(message.clone())).count()
    };
    assert_eq!([0, 1 << 16, 1 << 18, (1 << 18) + 1].map(fitting), [256, 4, 1, 0]);
    // One sender leaves room for others, until all of it is taken.
    let mut outbox = Outbox::default();
    let (cause, payload) = (TUPLE, Arc::new(vec![0; 1 << 18]));
    let sent = (0..10).filter(|sender| {
        let from = Address([*sender; 20]);
        let (to, payload) = (from, payload.clone());
        outbox.push(PendingMessage { from, to, payload, cause })
    });
    assert_eq!(sent.count(), 4);
}

#[test]
fn a_message_that_no_block_takes_is_too_long() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::cby(1));
    let long = "x".repeat(MAX_ONE_MESSAGE_BYTES + 1);
    let receipt = chain.python_call(actor, "send", &format!("{actor} - {long}"));
    let expected = "invalid_input: the payload of a message has at most 262144 bytes";
    assert!(error(&receipt).contains(expected), "{receipt:?}");
}

#[test]
fn a_message_to_no_actor_is_paid_for() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::cby(1));
    let to = Address([3; 20]);
    let receipt = chain.python_call(actor, "send", &format!("{to} - lost"));
    assert_eq!(receipt.status, ReceiptStatus::Success);
    let before = chain.state.account(&actor).balance;
    let events = chain.push(vec![]).events;
    let delivered = events.into_iter().find_map(|event| match event.kind {
        EventKind::MessageDelivered(delivered) => Some(delivered),
        _ => None,
    });
    let MessageDelivered { cycles, charged, error, .. } = delivered.unwrap();
    assert_eq!((cycles, error.is_some()), (meter::INTRINSIC_CYCLES, true));
    assert!(!charged.is_zero());
    assert_eq!(before.checked_sub(charged), Some(chain.state.account(&actor).balance));
}

#[test]
fn only_the_owner_hands_an_actor_over() {
    let mut chain = chain();
    let actor = chain.deploy_python("one", Wei::ZERO);
    let counter = chain.deploy(COUNTER);
    let [alice, bob] = ["alice", "bob"].map(|name| key(name).address());
    let hand = |actor, owner| Payload::TransferOwnership(TransferOwnership { actor, owner });
    let refused = chain.one("bob", hand(actor, bob));
    assert!(error(&refused.receipts[0]).starts_with("Unauthorized: "));
    let refused = chain.one("alice", hand(counter, bob));
    assert!(error(&refused.receipts[0]).starts_with("NotPython: "));
    chain.one("alice", hand(actor, bob));
    let receipt = chain.python_call(actor, "put", "x");
    assert_eq!(receipt.actor.unwrap().result, bob.0);
    chain.one("bob", hand(actor, alice));
    assert_eq!(chain.state.actor(&actor).unwrap().new_owner, None);
}

#[test]
fn a_chain_without_a_machine_has_no_actors_in_python() {
    let mut chain = starlark_chain();
    let (receipt, _) = chain.python(Payload::DeployPython(deployment("one", "init")));
    assert!(error(&receipt).starts_with("NoPython: "), "{receipt:?}");
}
