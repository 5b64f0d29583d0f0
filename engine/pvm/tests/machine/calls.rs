//! Calls that succeed: functions, actor classes, the SDK's quick start.

use crate::world::{Request, World};
use crate::{ACTOR, AGENT, COUNTER, HOWDY, TRIVIAL, machine, raised, run};
use cowboy_engine::primitives::Address;
use cowboy_engine::primitives::cbor::{self, CborValue};

/// What the SDK's own host leaves after the quick start, made by `vectors/quickstart.py`.
const QUICK_START: &str = include_str!("../vectors/quickstart.json");

#[test]
fn a_function_is_called_by_its_name() {
    let Some(machine) = machine(0) else { return };
    let (_, outcome) = run(&machine, TRIVIAL, "ping", b"x");
    assert_eq!(outcome.result, Ok(b"pong:x".to_vec()));
    let (_, outcome) = run(&machine, "def f(p): pass", "f", b"");
    assert_eq!(outcome.result, Ok(Vec::new()));
}

#[test]
fn a_class_needs_no_functions_around_it() {
    let Some(machine) = machine(0) else { return };
    let (class, _) = COUNTER.split_once("def _a()").unwrap();
    for source in [COUNTER, class] {
        let mut world = World::with(&[(ACTOR, source)]);
        for (handler, expected) in [("init", "ok"), ("inc", "1"), ("inc", "2")] {
            let outcome = world.call(&machine, &Request::own(ACTOR, handler, b""));
            assert_eq!(outcome.result, Ok(expected.into()));
        }
        assert_eq!(world.get(ACTOR, b"n"), Some(&[2][..]));
        assert_eq!(world.get(ACTOR, b"__INITIALIZED__"), Some(&[1][..]));
    }
    let two = format!("{class}\n@actor\nclass Other(Counter):\n    pass\n");
    let error = raised(run(&machine, &two, "inc", b"").1);
    assert_eq!(error.to_string(), "NoHandler: 2 actor classes have a method inc");
}

#[test]
fn the_quick_start_leaves_what_the_sdk_leaves() {
    let Some(machine) = machine(0) else { return };
    let expected: serde_json::Value = serde_json::from_str(QUICK_START).unwrap();
    let (class, _) = AGENT.split_once("def _a()").unwrap();
    for source in [AGENT, class] {
        let mut world = World::with(&[(ACTOR, source)]);
        let stranger = |handler, payload: &[u8]| Request {
            sender: Address([0x44; 20]),
            ..Request::own(ACTOR, handler, payload)
        };
        assert_eq!(world.call(&machine, &stranger("init", b"{}")).result, Ok(b"ok".to_vec()));
        assert_eq!(world.call(&machine, &stranger("chat", HOWDY)).result, Ok(Vec::new()));
        let (target, job) = &world.ledger.messages[0];
        assert_eq!(*target, Address::DISPATCHER);
        assert_eq!(hex::encode(job), expected["job"].as_str().unwrap());
        let reply = hex::decode(expected["reply"].as_str().unwrap()).unwrap();
        let denied = raised(world.call(&machine, &stranger("chat__resume", &reply)));
        assert_eq!(denied.slug.as_deref(), Some("E1230"), "{denied:?}");
        let outcome = world.call(&machine, &Request::own(ACTOR, "chat__resume", &reply));
        assert_eq!(outcome.result, Ok(b"ok".to_vec()));
        let store: serde_json::Map<_, _> = world
            .ledger
            .stores
            .iter()
            .map(|((_, key), value)| (hex::encode(key), hex::encode(value).into()))
            .collect();
        assert_eq!(serde_json::Value::from(store), expected["store"]);
    }
}

#[test]
fn values_cross_in_both_directions() {
    let Some(machine) = machine(0) else { return };
    let source = "
from cowboy_sdk import actor, public

@actor
class Echo:
    @public
    def double(self, value):
        return [value, value]
";
    let value =
        cbor::from_json(r#"{"big":123456789012345678901234567890,"x":[1.5,null]}"#).unwrap();
    let (_, outcome) = run(&machine, source, "double", &cbor::encode(&value).unwrap());
    let answer = cbor::decode(&outcome.result.unwrap()).unwrap();
    assert_eq!(cbor::encode(&answer), cbor::encode(&CborValue::List(vec![value.clone(), value])));
}

#[test]
fn every_host_function_answers_as_the_sdk_expects() {
    let Some(machine) = machine(0) else { return };
    for (call, expected) in [
        ("emit_event('a', {'b': 1})", "{'emit_id': 1, 'sync_outcomes': [], 'deferred_subs': []}"),
        ("token_balance_of(bytes(32), bytes(20))", "18446744073709551618"),
        ("token_total_supply(bytes(32))", "None"),
        ("token_allowance(bytes(32), bytes(20), bytes(20))", "3"),
        ("token_create(b'n', b's', 9, 10**20, None, None, None).hex()[:4]", "'0505'"),
        ("token_transfer(bytes(32), bytes(20), 1 << 100)", "None"),
        ("token_transfer_from(bytes(32), bytes(20), bytes(20), 1)", "None"),
        ("token_approve(bytes(32), bytes(20), 1)", "None"),
        ("token_mint(bytes(32), bytes(20), 1)", "None"),
        ("token_burn(bytes(32), 1)", "None"),
        ("schedule_timer(1010, b'x').hex()[:4]", "'0707'"),
        ("schedule_timer_ex(1010, b'x', gas_limit=5).hex()[:4]", "'0707'"),
        ("cancel_timer(bytes(32))", "None"),
        ("extend_timer(bytes(32), 5)", "None"),
        (
            "set_state(b'ab', b'1'), runtime.set_state(b'ac', b''), runtime.scan_state_prefix(b'')",
            "(None, None, [(b'ab', b'1'), (b'ac', b'')])",
        ),
        ("get_state(b'absent')", "None"),
        ("delete_state(b'absent')", "None"),
        ("transfer_balance(bytes(20), 1)", "None"),
        ("verify_signature(2, bytes(32), b'', bytes(64))", "True"),
        ("keccak256(b'').hex()[:8]", "'c5d24601'"),
        ("charge_gas(5)", "None"),
        ("get_owner()", "b'33333333333333333333'"),
        ("mode(), runtime.compile_time_fsm()", "('fsm', False)"),
        ("get_block_height(), runtime.get_chain_id(), runtime.hire_id()", "(1000, 1, None)"),
        ("get_actor_address().hex()[:4], runtime.get_timestamp_ms()", "('2222', 1700000000000)"),
        ("send_message(bytes(20), b'x')", "None"),
    ] {
        let source = format!(
            "from cowboy_sdk import runtime, handler_mode\n\
             def f(p):\n    return repr((runtime.{call})).encode()\n"
        );
        let (_, outcome) = run(&machine, &source, "f", b"");
        let result = outcome.result.map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(result.as_deref(), Ok(expected), "{call}");
    }
}

#[test]
fn a_module_finds_its_own_source_and_hashes_constants() {
    let Some(machine) = machine(0) else { return };
    let source = "import inspect, pvm_host\nH = pvm_host.keccak256(b'')\n\
                  def f(p): return inspect.getsource(f).encode() + H\n";
    let (_, outcome) = run(&machine, source, "f", b"");
    let result = outcome.result.unwrap();
    assert!(result.starts_with(b"def f(p): return inspect"));
    assert!(hex::encode(&result).ends_with("5d85a470"));
}
