//! Modules run from source, and their expected results.

mod hostile;
mod language;
mod profile;
mod python;

use super::{
    ActorParams, Budget, Call, CallOutcome, Effect, Error, ErrorKind, Module, Schedule, Usage,
    World,
    effect::{JobRequest, Seed, TimerCall},
    value::{Namespace, known},
};
use crate::{
    primitives::{Address, Hash, Height, Wei},
    timer::eip1559::default_bid,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BUDGET: Budget = Budget { cycles: 10_000_000, cells: 1_000_000 };

/// A world with fixed contents.
#[derive(Default)]
struct Fixed {
    state: BTreeMap<String, Vec<u8>>,
    balance: u128,
}

impl World for Fixed {
    fn state(&self, key: &str) -> Option<Vec<u8>> {
        self.state.get(key).cloned()
    }

    fn balance(&self, _: &Address) -> Wei {
        Wei::new(self.balance)
    }

    fn mru(&self, _: &Address, kind: &str) -> Option<Address> {
        (kind == "http").then_some(Address([7; 20]))
    }

    fn timer(&self, timer: &TimerCall, index: u64) -> Result<Hash, String> {
        Ok(Hash([timer.height.get() as u8 + index as u8; 32]))
    }

    fn job(&self, _: &JobRequest, _: u64) -> Result<(Hash, u64), String> {
        Err("no jobs here".into())
    }
}

fn load(source: &str) -> Result<Module, Error> {
    Module::load(source, &ActorParams::default(), BUDGET).1
}

fn call_in(world: &Fixed, module: &Module, handler: &str, payload: &[u8]) -> CallOutcome {
    call_with(world, module, handler, payload, BUDGET)
}

fn a_call<'a>(handler: &'a str, payload: &'a [u8]) -> Call<'a> {
    Call {
        handler,
        payload,
        sender: Address([1; 20]),
        this: Address([2; 20]),
        value: Wei::new(5),
        height: Height::new(10),
        timestamp_ms: 10_000,
        seed: Seed::Fixed(Hash([3; 32])),
    }
}

fn call_with(
    world: &Fixed,
    module: &Module,
    handler: &str,
    payload: &[u8],
    budget: Budget,
) -> CallOutcome {
    let call = a_call(handler, payload);
    module.call(&ActorParams::default(), &call, world, budget)
}

/// The return value of the module's `f` as JSON, or the first line of its error.
fn run(source: &str) -> String {
    let module = match load(source) {
        Ok(module) => module,
        Err(error) => return error.to_string(),
    };
    match call_in(&Fixed { balance: 1_000, ..Fixed::default() }, &module, "f", b"payload").result {
        Ok(json) => String::from_utf8(json).expect("JSON is text"),
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

fn check(expression: &str, expected: &str) {
    let source = format!("def f(ctx, payload):\n    return {expression}\n");
    assert_eq!(run(&source), expected, "{expression}");
}

#[test]
fn expressions_come_to_what_the_language_says() {
    check("1 + 2 * 3", "7");
    check("-7 // 2", "-4");
    check("-7 % 3", "2");
    check("7 // -2", "-4");
    check("(1 << 100) // 3", "422550200076076467165567735125");
    check("-9223372036854775808 // -1", "9223372036854775808");
    check("-9223372036854775808 % -1", "0");
    check("-(-9223372036854775807 - 1)", "9223372036854775808");
    check("(1 << 26) << 13", "549755813888");
    check("-1 >> 5000", "-1");
    check("5 >> 70", "0");
    check("~5", "-6");
    check("6 & 3 | 8 ^ 1", "11");
    check("1 < 2 and not 3 < 2 or fail('no')", "true");
    check("[1, 2] + [3]", "[1,2,3]");
    check("(1, 2) * 2", "[1,2,1,2]");
    check("'ab' * 2 + 'c'", "\"ababc\"");
    check("'b' in 'abc'", "true");
    check("3 not in [1, 2]", "true");
    check("2 in {1: 2}", "false");
    check(
        "[3 in range(4), 1 << 70 in range(4), 'a' in range(4), [] in range(4)]",
        "[true,false,false,false]",
    );
    check("[1, [2, (3,)]] == [1, [2, (3,)]]", "true");
    check("(1, 'a') < (1, 'b')", "true");
    check("1 == True", "false");
    check("'yes' if payload == 'payload' else 'no'", "\"yes\"");
    check("[x * y for x in range(3) for y in [1, 2] if x != 1]", "[0,0,2,4]");
    check("{k: v for k, v in [('a', 1), ('b', 2)]}", "{\"a\":1,\"b\":2}");
    check("{'a': 1} | {'b': 2, 'a': 3}", "{\"a\":3,\"b\":2}");
    check("'hello'[1:-1]", "\"ell\"");
    check("'hello'[::-1]", "\"olleh\"");
    check("['hello'[-(1 << 80):1 << 80], [1, 2, 3][::-(1 << 70)]]", "[\"hello\",[3]]");
    check("'h\u{e9}llo'[1]", "\"\u{e9}\"");
    check("[1, 2, 3, 4][::2]", "[1,3]");
    check("list(range(10)[2:8:3])", "[2,5]");
    check("[1, 2, 3][-1]", "3");
    check("(lambda x, *y, **z: [x, y, z])(1, 2, 3, a = 4)", "[1,[2,3],{\"a\":4}]");
    check("[f2() for f2 in [lambda: i for i in range(3)]]", "[2,2,2]");
    check("[x for x in [[1]] for x in x]", "[1]");
    check("[1 for x in [] for y in z for z in ()]", "[]");
    check(
        "[1 for x in [1] for y in z for z in ()]",
        "ActorError: this variable is referenced before assignment (at 2:37)",
    );
    check("'%s %r %d %x %%' % ('a', 'b', 3, 255)", "\"a \\\"b\\\" 3 ff %\"");
    check(
        "'{} {0}'.format(1)",
        "ActorError: cannot switch from automatic field numbering to manual \
        field specification (at 2:12)",
    );
    check("'{0} {b!r} {{}}'.format(1, b = 'x')", "\"1 \\\"x\\\" {}\"");
    check("str([1, 'a', None, {1: (2,)}])", "\"[1, \\\"a\\\", None, {1: (2,)}]\"");
    check("repr('a\\n\\x01\"')", "\"\\\"a\\\\n\\\\x01\\\\\\\"\\\"\"");
    check("type(f)", "\"function\"");
    check("[ctx.height, ctx.value, ctx.timestamp_ms]", "[10,5,10000]");
    check("ctx.self", "\"0x0202020202020202020202020202020202020202\"");
    check("hash('abc')", "96354");
}

#[test]
fn builtins_come_to_what_the_language_says() {
    check("sorted([3, 1, 2], reverse = True)", "[3,2,1]");
    check("sorted(['bb', 'a', 'cc'], key = len)", "[\"a\",\"bb\",\"cc\"]");
    check("sorted(['bb', 'a', 'cc'], key = len, reverse = True)", "[\"bb\",\"cc\",\"a\"]");
    check("[min([2, 1]), max(1, 3, 2), max(['a', 'bbb'], key = len)]", "[1,3,\"bbb\"]");
    check("enumerate(['a', 'b'], 5)", "[[5,\"a\"],[6,\"b\"]]");
    check("zip([1, 2], 'ab'.elems(), range(9))", "[[1,\"a\",0],[2,\"b\",1]]");
    check(
        "[int('0x1f', 16), int('-12'), int('0b11', 0), int(True), int('z', 36)]",
        "[31,-12,3,1,35]",
    );
    check("int('12a')", "ActorError: int() cannot parse \"12a\" in base 10 (at 2:12)");
    check("[all([1, 0]), any([0, 1]), all([]), any([])]", "[false,true,true,false]");
    check("reversed([1, 2])", "[2,1]");
    check("dict([(1, 2)], a = 3).items()", "[[1,2],[\"a\",3]]");
    check("[abs(-5), abs(-9223372036854775807 - 1)]", "[5,9223372036854775808]");
    check(
        "[hasattr('', 'split'), getattr('a,b', 'split')(','), getattr(1, 'x', 2)]",
        "[true,[\"a\",\"b\"],2]",
    );
    check("[chr(8364), ord('a')]", "[\"\u{20ac}\",97]");
    check("[bool([]), bool('x'), tuple([1]), list((2,))]", "[false,true,[1],[2]]");
    check("len('h\u{e9}') + len({1: 2}) + len(range(1, 10, 4))", "6");
    check(
        "json_decode('{\"a\": [1, -2, true, null, \"\\\\u00e9\\\\n\"]}')",
        "{\"a\":[1,-2,true,null,\"\u{e9}\\n\"]}",
    );
    check(
        "json_decode('1.5')",
        "ActorError: there are no floats: JSON here has only integers (at 2:12)",
    );
    check("json_encode({'a': (1, None)})", "\"{\\\"a\\\":[1,null]}\"");
    check("dir({})[:3]", "[\"clear\",\"copy\",\"fromkeys\"]");
}

#[test]
fn strings_have_their_methods() {
    check("'a b  c'.split()", "[\"a\",\"b\",\"c\"]");
    check("'a b  c '.split(None, 1)", "[\"a\",\"b  c \"]");
    check("' a b  c'.rsplit(None, 1)", "[\" a b\",\"c\"]");
    check("'a.b.c'.rsplit('.', 1)", "[\"a.b\",\"c\"]");
    check("'a.b.c'.split('.', 1)", "[\"a\",\"b.c\"]");
    check("'a\\r\\nb\\nc\\rd'.splitlines()", "[\"a\",\"b\",\"c\",\"d\"]");
    check("'a\\r\\nb\\n'.splitlines(True)", "[\"a\\r\\n\",\"b\\n\"]");
    check("'aXbXc'.partition('X')", "[\"a\",\"X\",\"bXc\"]");
    check("'aXbXc'.rpartition('X')", "[\"aXb\",\"X\",\"c\"]");
    check("'abc'.rpartition('X')", "[\"\",\"\",\"abc\"]");
    check("'abcabc'.replace('b', 'XX', 1)", "\"aXXcabc\"");
    check("'ab'.replace('', '-')", "\"-a-b-\"");
    check(
        "['abcabc'.find('c'), 'abcabc'.rfind('c'), 'abc'.find('z'), 'abcabc'.find('c', 3)]",
        "[2,5,-1,5]",
    );
    check("'\u{e9}\u{e9}x'.find('x')", "2");
    check("'banana'.count('a', 2)", "2");
    check(
        "['abc'.find('', 2, 1), 'abc'.count('', 2, 1), 'abc'.startswith('', 2, 1)]",
        "[-1,0,false]",
    );
    check("['abc'.find('', 3), 'abc'.find('', 4), 'abc'.count('', 3)]", "[3,-1,1]");
    check("'xxabxx'.strip('x')", "\"ab\"");
    check("[' a '.lstrip(), ' a '.rstrip()]", "[\"a \",\" a\"]");
    check(
        "['Hello World'.istitle(), 'hello wORLD'.title(), 'hELLO'.capitalize()]",
        "[true,\"Hello World\",\"Hello\"]",
    );
    check("['abc'.startswith(('x', 'a')), 'abc'.endswith('c', 0, 2)]", "[true,false]");
    check(
        "['a1'.isalnum(), 'a'.isalpha(), '12'.isdigit(), 'a b'.islower(), ' '.isspace(), 'A'.isupper()]",
        "[true,true,true,true,true,true]",
    );
    check("'-'.join(['a', 'b'])", "\"a-b\"");
    check("['unhappy'.removeprefix('un'), 'a.b'.removesuffix('.b')]", "[\"happy\",\"a\"]");
    check(
        "'a'.splitlines(1)",
        "ActorError: splitlines() got int for its parameter keepends, want bool (at 2:12)",
    );
    check("'abc'.index('z')", "ActorError: index: substring not found: \"z\" (at 2:12)");
}

#[test]
fn statements_do_what_the_language_says() {
    let cases = [
        ("x = [1]\n    y = x\n    y += [2]\n    return x", "[1,2]"),
        ("x = (1,)\n    y = x\n    y += (2,)\n    return x", "[1]"),
        ("a, (b, c) = 1, [2, 3]\n    return [c, b, a]", "[3,2,1]"),
        ("d = {}\n    d['a'] = 1\n    d['a'] += 4\n    return d", "{\"a\":5}"),
        (
            "r = []\n    for i in range(10):\n        if i == 2:\n            continue\n        if i == 5:\n            break\n        r.append(i)\n    return r",
            "[0,1,3,4]",
        ),
        (
            "for i in range(3):\n        for j in range(3):\n            if j == i:\n                return [i, j]",
            "[0,0]",
        ),
        (
            "def g(n):\n        return 1 if n < 2 else n * g(n - 1)\n    return g(25)",
            "15511210043330985984000000",
        ),
        (
            "def outer():\n        n = [0]\n        def inner():\n            n[0] += 1\n            return n[0]\n        return inner\n    i = outer()\n    i()\n    return i()",
            "2",
        ),
        (
            "l = [1, 2, 3]\n    l.insert(-1, 9)\n    l.remove(2)\n    return [l, l.pop(0), l.index(3), l]",
            "[[9,3],1,1,[9,3]]",
        ),
        (
            "d = {'a': 1}\n    d.setdefault('b', 2)\n    d.update([('c', 3)], e = 4)\n    return [d.pop('a'), d.popitem(), d.get('z', 0), d.keys(), d.values()]",
            "[1,[\"b\",2],0,[\"c\",\"e\"],[3,4]]",
        ),
        (
            "x: int = 'a'",
            "ActorError: the value assigned has the wrong type: expected int, got string (at 2:8)",
        ),
        (
            "return x\n    x = 1",
            "ActorError: this variable is referenced before assignment (at 2:12)",
        ),
        ("for x in [1, 2]:\n        pass\n    return x", "2"),
        (
            "a = [1]\n    for x in a:\n        a.append(x)",
            "ActorError: this list is looped over and temporarily immutable (at 4:9)",
        ),
        ("a = [1]\n    for x in a:\n        pass\n    a.append(2)\n    return a", "[1,2]"),
        ("a = [1]\n    for x in a:\n        break\n    a.append(2)\n    return a", "[1,2]"),
        ("return {1: 1, 1: 2}", "ActorError: this dict has the same key twice (at 2:19)"),
        ("return 1 // 0", "ActorError: division by zero (at 2:12)"),
        ("return [][0]", "ActorError: index 0 is out of range: 0 elements (at 2:12)"),
        ("return 'a' + 1", "ActorError: operation not supported: string + int (at 2:12)"),
        ("fail('no', 1)", "ActorError: fail: no 1 (at 2:5)"),
    ];
    for (body, expected) in cases {
        assert_eq!(run(&format!("def f(ctx, payload):\n    {body}\n")), expected, "{body}");
    }
}

#[test]
fn records_and_annotations_are_checked() {
    let source = |body: &str| {
        format!(
            "R = record(a = int, b = field(list[str], []))\n\
             def g(x: int | None, y: dict[str, int] = {{}}, *z: int) -> str:\n    return 'ok' if x else 7\n\
             def f(ctx, payload):\n    return {body}\n"
        )
    };
    for (body, expected) in [
        ("R(a = 1)", "{\"a\":1,\"b\":[]}"),
        ("R(b = ['x'], a = 1).b", "[\"x\"]"),
        ("R(a = 1) == R(a = 1)", "true"),
        ("str(R(a = 1))", "\"R(a=1, b=[])\""),
        ("R(a = 1, c = 2)", "ActorError: R has no field c (at 5:12)"),
        ("R()", "ActorError: R lacks the field a (at 5:12)"),
        (
            "R(a = 'x')",
            "ActorError: field a has the wrong type: expected int, got string (at 5:12)",
        ),
        ("g(1, {'a': 1}, 2, 3)", "\"ok\""),
        ("g('a')", "ActorError: x has the wrong type: expected int | None, got string (at 5:12)"),
        (
            "g(1, {'a': 'b'})",
            "ActorError: y has the wrong type: expected dict[str, int], got dict (at 5:12)",
        ),
        (
            "g(None)",
            "ActorError: the value returned has the wrong type: expected str, got int (at 3:5)",
        ),
        ("g(1, {}, 'a')", "ActorError: z has the wrong type: expected int, got string (at 5:12)"),
        ("g()", "ActorError: g lacks an argument for its parameter x (at 5:12)"),
        ("g(1, q = 2)", "ActorError: g has no parameter q; it has x, y (at 5:12)"),
    ] {
        assert_eq!(run(&source(body)), expected, "{body}");
    }
}

/// CIP-1 §7.1, word for word.
const DEFAULT_GBA: &str = "def getGasBid(context: GBAContext) -> TxFeeParams:
    return TxFeeParams(
        max_fee_per_cycle           = 2 * context.basefee_lane_timer,
        max_priority_fee_per_cycle  = context.previous_block_p50_priority_tip_per_cycle,
        # cell side: defaults to CIP-3 basefee_cell with no priority (timers are cycle-bound)
        max_fee_per_cell            = context.basefee_cell,
        max_priority_fee_per_cell   = 0,
    )
";

/// The same agent as an actor with tests.
const EXAMPLE_GBA: &str = include_str!("../../../examples/actors/default_gba.star");

/// The agent's answer in a context.
fn bid(module: &Module, context: &[u128; 8]) -> Result<[u128; 4], Error> {
    let call = a_call("getGasBid", &[]);
    let (usage, bid) =
        module.bid(&ActorParams::default(), context, &call, &Fixed::default(), BUDGET);
    assert!(usage.cycles() < 20_000, "one call may use 20,000 (timers.md §4): {usage:?}");
    bid
}

#[test]
fn the_bidding_function_runs_as_its_source_prints_it() {
    let module = load(DEFAULT_GBA).expect("it is printed there");
    let context = [8, 10, 1_000, 2_000, u128::MAX / 4, 123, 55, 9_999];
    assert_eq!(bid(&module, &context).expect("it bids"), [u128::MAX / 4 * 2, 55, 2_000, 0]);
    assert!(EXAMPLE_GBA.contains(DEFAULT_GBA), "the example is that");
}

proptest! {
    /// The example bids what the chain bids by default.
    #[test]
    fn the_example_bids_as_the_chain_does(
        context: [u64; 8],
        shifts in prop::array::uniform8(0u32..64),
    ) {
        let module = load(EXAMPLE_GBA).expect("it deploys");
        // Prices of every magnitude. Twice the lane's price must fit in an amount.
        let context: [u128; 8] = std::array::from_fn(|n| u128::from(context[n]) << shifts[n] >> 1);
        let [.., basefee_cell, lane, _, p50, _] = context.map(Wei::new);
        let built_in = default_bid(lane, basefee_cell, p50);
        prop_assert_eq!(bid(&module, &context).expect("it bids"), [
            built_in.max_fee_per_cycle.get(),
            built_in.max_priority_fee_per_cycle.get(),
            built_in.max_fee_per_cell.get(),
            built_in.max_priority_fee_per_cell.get(),
        ]);
    }
}

#[test]
fn errors_say_where_and_who_called() {
    let source = "def inner(x):\n    y = x\n    return y.nothing\n\ndef f(ctx, payload):\n    return [inner(1)]\n";
    let module = load(source).expect("it loads");
    let error = call_in(&Fixed::default(), &module, "f", b"").result.expect_err("it fails");
    assert_eq!(
        error.to_string(),
        "ActorError: int has no field or method nothing (at 3:12)\n  in inner at 3:12\n  in f at 6:13"
    );
}

#[test]
fn refusals_say_which_limit_and_where() {
    for (source, expected) in [
        (
            "x = 1.5\n",
            "ModuleRefused: there are no floats; use integers of a smaller unit (at 1:5)",
        ),
        ("x = t'{1}'\n", "ModuleRefused: there are no template strings; use an f-string (at 1:5)"),
        (
            "load('a', 'b')\n",
            "ModuleRefused: undefined name load: there is no load; a module imports nothing (at 1:1)",
        ),
        ("def f():\n    return y\n", "ModuleRefused: undefined name y (at 2:12)"),
        (
            "def f():\n    return 1 / 2\n",
            "ModuleRefused: there are no floats and so no `/`; use `//` (at 2:12)",
        ),
        (
            "x = set([1])\n",
            "ModuleRefused: undefined name set: there are no sets; use a dict with None for values, \
             or a list (at 1:5)",
        ),
        ("def f(:\n", "ModuleRefused: this ( is never closed (at 1:6)"),
        (
            "def f(:):\n",
            "ModuleRefused: expected a parameter or the end of the parameter list (at 1:7)",
        ),
        ("x = [\n", "ModuleRefused: this [ is never closed (at 1:5)"),
        (
            "a.b = 1\n",
            "ModuleRefused: attributes cannot be assigned; make a new record, or use a dict (at 1:1)",
        ),
    ] {
        assert_eq!(load(source).expect_err("it is refused").to_string(), expected, "{source}");
    }
    let deep = format!("x = {}1{}\n", "[".repeat(65), "]".repeat(65));
    let error = load(&deep).expect_err("it is refused");
    assert_eq!(error.to_string(), "ModuleRefused: open brackets: at most 64, got 65 (at 1:69)");
    let long = format!("x = 1{}\n", "+1".repeat(256));
    let error = load(&long).expect_err("it is refused");
    assert_eq!(
        error.to_string(),
        "ModuleRefused: operators in an expression: at most 256, got 257 (at 1:516)"
    );
}

#[test]
fn globals_are_frozen_and_shared_by_calls() {
    let source = "L = [1]\nD = {'a': L}\nN = [0]\ndef f(ctx, payload):\n    return [L, D, len(D)]\ndef g(ctx, payload):\n    L.append(2)\ndef h(ctx, payload):\n    D['b'] = 1\n";
    let module = load(source).expect("it loads");
    let world = Fixed::default();
    for _ in 0..2 {
        let outcome = call_in(&world, &module, "f", b"");
        assert_eq!(outcome.result.expect("it reads"), b"[[1],{\"a\":[1]},1]");
    }
    for (handler, expected) in [
        ("g", "ActorError: this list belongs to the module and is frozen (at 7:5)"),
        ("h", "ActorError: this dict belongs to the module and is frozen (at 9:5)"),
    ] {
        let error = call_in(&world, &module, handler, b"").result.expect_err("it is frozen");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn the_host_is_read_and_asked() {
    let source = r#"
def f(ctx, payload):
    n = pvm_host.get_state("n", 0)
    pvm_host.set_state("n", n + 1)
    pvm_host.set_state("gone", 1)
    pvm_host.delete_state("gone")
    pvm_host.transfer(ctx.sender, 300)
    pvm_host.send_message("0x0909090909090909090909090909090909090909", "hello", {"a": 1}, value = 100)
    pvm_host.emit("counted", {"n": n + 1})
    print("n is", n)
    pvm_host.log("and", [n])
    t = pvm_host.schedule_timer(ctx.height + 5, "tick")
    pvm_host.cancel_timer(t)
    return [pvm_host.get_state("n"), pvm_host.get_state("gone"), pvm_host.get_balance(),
        pvm_host.get_mru("http"), pvm_host.get_mru("llm"), t[:6], pvm_host.get_block_height()]
"#;
    let module = load(source).expect("it loads");
    let mut world = Fixed { balance: 1_000, ..Fixed::default() };
    world.state.insert("n".into(), b"41".to_vec());
    let outcome = call_in(&world, &module, "f", b"");
    let expected =
        "[42,null,600,\"0x0707070707070707070707070707070707070707\",null,\"0x0f0f\",10]";
    assert_eq!(String::from_utf8(outcome.result.expect("it runs")).unwrap_or_default(), expected);
    assert_eq!(outcome.log, ["n is 41", "and [41]"]);
    let (to, timer) = (Address([9; 20]), Hash([15; 32]));
    assert_eq!(outcome.effects[0], Effect::SetState { key: "gone".into(), value: None });
    assert_eq!(
        outcome.effects[1],
        Effect::SetState { key: "n".into(), value: Some(b"42".to_vec()) }
    );
    assert_eq!(
        outcome.effects[2],
        Effect::Transfer { to: Address([1; 20]), amount: Wei::new(300) }
    );
    assert_eq!(
        outcome.effects[3],
        Effect::Message {
            to,
            handler: "hello".into(),
            payload: b"{\"a\":1}".to_vec(),
            value: Wei::new(100)
        }
    );
    assert_eq!(
        outcome.effects[4],
        Effect::Emit { name: "counted".into(), data: b"{\"n\":42}".to_vec() }
    );
    assert!(matches!(&outcome.effects[5], Effect::ScheduleTimer { id, .. } if *id == timer));
    assert_eq!(outcome.effects[6], Effect::CancelTimer(timer));
    assert!(outcome.usage.storage == 4 * 10 + 3 * 50 + 2 * 10, "{:?}", outcome.usage);
}

#[test]
fn a_call_that_fails_asks_for_nothing_and_keeps_its_log() {
    let source = "def f(ctx, payload):\n    pvm_host.set_state('a', 1)\n    print('before')\n    pvm_host.transfer(ctx.sender, 2000)\n";
    let module = load(source).expect("it loads");
    let outcome = call_in(&Fixed { balance: 1_000, ..Fixed::default() }, &module, "f", b"");
    let error = outcome.result.expect_err("it has less");
    assert!(error.to_string().starts_with("ActorError: InsufficientBalance"), "{error}");
    assert!(outcome.effects.is_empty());
    assert_eq!(outcome.log, ["before"]);
}

#[test]
fn a_module_that_loads_has_no_host() {
    let error = load("x = pvm_host.get_state('a')\n").expect_err("nothing is there");
    assert_eq!(
        error.to_string().lines().next(),
        Some("ActorError: there is no host while the module loads: call it in a function (at 1:5)")
    );
}

#[test]
fn limits_name_what_was_hit_and_by_how_much() {
    let loops = "def f(ctx, payload):\n    for i in range(2000000000):\n        pass\n";
    let module = load(loops).expect("it loads");
    let call =
        |cycles| call_with(&Fixed::default(), &module, "f", &[], Budget { cycles, cells: 0 });
    let outcome = call(1_000);
    let error = outcome.result.expect_err("it never ends");
    assert!(
        matches!(error.kind, ErrorKind::OutOfCycles { limit: 1_000, short: 1..=100 }),
        "{error}"
    );
    assert!(outcome.usage.cycles() <= 1_000);
}

/// `ctx` has the type that the editor stub gives it.
#[test]
fn a_context_is_a_context() {
    let source = "def f(ctx: Context, payload: str) -> int:\n    return g(ctx)\n\
                  def g(ctx: Context) -> int:\n    return ctx.height\n\
                  def h(ctx, payload):\n    return g(payload)\n";
    let module = load(source).expect("it loads");
    let world = Fixed::default();
    assert_eq!(call_in(&world, &module, "f", b"").result.expect("it is one"), b"10");
    let error = call_in(&world, &module, "h", b"").result.expect_err("refused").to_string();
    assert!(error.contains("expected Context, got string (at 6:12)"), "{error}");
}

#[test]
fn handlers_are_the_functions_that_can_be_called() {
    let source = "def a(ctx, payload):\n    pass\ndef _b(ctx, payload):\n    pass\ndef c(ctx):\n    pass\ndef d(ctx, payload, more = 1):\n    pass\ndef test_e(ctx, payload):\n    pass\nx = lambda ctx, payload: 1\n";
    let module = load(source).expect("it loads");
    let names: Vec<_> = module.handlers().into_iter().map(|handler| handler.name).collect();
    assert_eq!(names, ["a", "d", "x"]);
    assert_eq!(module.tests().len(), 1);
    let outcome = call_in(&Fixed::default(), &module, "_b", b"");
    assert!(outcome.result.is_err(), "what begins with _ is the module's own");
}

#[test]
fn usage_is_what_was_spent() {
    let module = load("def f(ctx, payload):\n    return 1 + 2\n").expect("it loads");
    let outcome = call_in(&Fixed::default(), &module, "f", b"");
    // The call, four nodes and the literals' sum; the argument's text; its heap.
    let Usage { evaluation, .. } = outcome.usage;
    assert_eq!(evaluation, 100 + 4 * 10, "{:?}", outcome.usage);
}

/// Every function is documented, for readers and for editors.
#[test]
fn documents_know_every_function_and_charge() {
    let page = include_str!("../../../docs/actors.md");
    let stub = include_str!("../../../examples/actors/__builtins__.pyi");
    for namespace in [Namespace::Host, Namespace::Mock] {
        for name in namespace.members() {
            assert!(page.contains(&format!("{name}(")), "docs/actors.md lacks {name}");
            assert!(stub.contains(&format!("def {name}(")), "__builtins__.pyi lacks {name}");
        }
    }
    for field in known::GBA_CONTEXT_FIELDS.iter().chain(&known::TX_FEE_PARAMS_FIELDS) {
        assert!(stub.contains(&format!("    {field}: int")), "__builtins__.pyi lacks {field}");
    }
    let of = Schedule::default();
    let charges = [
        ("a syntax node evaluated: an expression, a statement, a name assigned".into(), of.node),
        ("a call of a function, builtin or method".into(), of.call),
        ("a step of a loop or comprehension".into(), of.step),
        (format!("{} bytes moved, compared (both sides) or hashed", of.data_bytes), 1),
        ("an element copied, compared or passed".into(), 1),
        ("a key of a dict looked for, and again for each halving of the dict".into(), 1),
        (format!("{} bytes of a string searched for another", of.search_bytes), 1),
        ("each that is found".into(), 1),
        (
            format!(
                "{} bytes of ASCII text read by character: escapes, formats, JSON",
                of.text_bytes
            ),
            1,
        ),
        (format!("{} bytes of ASCII text whose case or class is asked for", of.text_bytes), 2),
        ("a byte of other text read by character; twice for case and class".into(), 1),
        (
            format!(
                "{} products of 64-bit words, in arithmetic beyond 64 bits and conversions",
                of.word_products
            ),
            1,
        ),
        ("a KiB of heap".into(), of.heap_kib),
        (
            "a character, or a pair of `items`, `enumerate` or `zip`, made an object".into(),
            of.object,
        ),
        ("a key of the store read".into(), of.storage_read),
        ("a key of the store written or deleted".into(), of.storage_write),
        ("a message or transfer".into(), of.message),
        ("a timer scheduled, cancelled or extended".into(), of.timer),
        ("a job".into(), of.job),
        ("an event or a line of log".into(), of.emit),
        ("32 bytes hashed with keccak256".into(), of.keccak_word),
        ("a module, when it is deployed".into(), of.module),
        ("a token of it".into(), of.token),
    ];
    let rows: Vec<String> = charges
        .iter()
        .map(|(work, cycles): &(String, _)| format!("| {work} | {cycles} |\n"))
        .collect();
    let rows = rows.concat();
    let table = format!("<!-- charges -->\n| work | cycles |\n|---|---|\n{rows}<!-- /charges -->");
    assert!(page.contains(&table), "docs/actors.md has another table of charges:\n{table}");
    assert!(page.contains(&format!("The table is version {}", of.version)));
}

/// Usage of a function with this body, by cause.
fn used(body: &str) -> Usage {
    let source = format!("def f(ctx, payload):\n{body}");
    let module = load(&source).expect("it loads");
    call_in(&Fixed::default(), &module, "f", b"").usage
}

#[test]
fn what_is_kept_or_found_is_paid_for() {
    // Each parameter of a type.
    let types = used("    t = (int,) * 60000\n    for i in range(5): tuple[t]\n    return 1\n");
    assert!(types.data > 5 * 60_000, "{types:?}");
    assert!(types.heap > 6 * 60_000 * 16 / 1024 * 10, "{types:?}");
    // Each match of a search.
    let found = used("    return ('a' * 60000).count('a')\n");
    assert!(found.data > 60_000, "{found:?}");
    // A dict hashes functions and record types by identity, so it does not compare them.
    let keys = "    d = {(lambda: i): i for i in range(1000)}\n    \
                e = {record(): i for i in range(1000)}\n    return len(d) + len(e)\n";
    assert_eq!(run(&format!("def f(ctx, payload):\n{keys}")), "2000");
    // A dict still finds functions as keys after the module is frozen.
    assert_eq!(run("def g(): pass\nD = {g: 1, len: 2}\ndef f(ctx, payload): return D[g]\n"), "1");
}

#[test]
fn arguments_by_name_find_their_parameters() {
    let call = |arguments: &str| {
        let g = "def g(a = 0, *b, **c):\n    return [a, list(b), c]\n";
        run(&format!("{g}def f(ctx, payload):\n    return g({arguments})\n"))
    };
    assert_eq!(call("1, 2, x = 3, **{'y': 4}"), r#"[1,[2],{"x":3,"y":4}]"#);
    assert_eq!(call("**{'a': 1, 'z': 2}"), r#"[1,[],{"z":2}]"#);
    for (arguments, error) in [
        ("a = 1, **{'a': 2}", "an argument is given both by name and after **"),
        ("1, **{'a': 2}", "parameter a is given more than once"),
    ] {
        assert!(call(arguments).contains(error), "{}", call(arguments));
    }
    check("print(x = 1)", "ActorError: print() has no parameter x; by name it takes sep (at 2:12)");
    check("len(x = 1)", "ActorError: len() has no parameter x; by name it takes none (at 2:12)");
    check(
        "print(sep = 1)",
        "ActorError: print() got int for its parameter sep, want string (at 2:12)",
    );
}

#[test]
fn text_is_written_with_its_escapes() {
    check("repr('\\x00\\x7f\u{e9}\\\\\"\\t')", r#""\"\\x00\\x7fé\\\\\\\"\\t\"""#);
    check("json_encode('\\x00\\x1f\\x7f\\r')", "\"\\\"\\\\u0000\\\\u001f\u{7f}\\\\r\\\"\"");
    check(
        "'%x %X %o %d' % (1 << 200, -255, -8, 1 << 64)",
        "\"100000000000000000000000000000000000000000000000000 -FF -10 18446744073709551616\"",
    );
}
