//! Where the language goes beyond or departs from both specifications, and what it refuses.

use super::{load, run};
use crate::actor::catalog;

/// The error of `f` with this body.
fn error_of(body: &str) -> String {
    run(&format!("def f(ctx, payload):\n    {body}\n"))
}

/// Checks that every source ends as expected.
fn check_all(cases: &[(&str, &str)], kind: &str, end: impl Fn(&str) -> String) {
    let kind = if kind.is_empty() { String::new() } else { format!("{kind}: ") };
    let differs = |(source, expected): &&(&str, &str)| end(source) != format!("{kind}{expected}");
    let others: Vec<_> = cases.iter().filter(differs).collect();
    let shown = others.iter().map(|(source, _)| format!("{source}\n  {}", end(source)));
    assert!(others.is_empty(), "{}", shown.collect::<Vec<_>>().join("\n"));
}

#[test]
fn errors_name_keys_and_values() {
    let cases = [
        ("return {}['beat']", "key not found: \"beat\" (at 2:12)"),
        ("return {'a': 1}[('x', 1)]", "key not found: (\"x\", 1) (at 2:12)"),
        ("return {}[None]", "key not found: None (at 2:12)"),
        ("return {}.pop(1 << 70)", "key not found: 1180591620717411303424 (at 2:12)"),
        ("del {}['a']", "key not found: \"a\" (at 2:9)"),
        ("return '%(beat)s' % {}", "key not found: \"beat\" (at 2:12)"),
        ("return [1, 2][2]", "index 2 is out of range: 2 elements (at 2:12)"),
        (
            "return [1, 2][1 << 70]",
            "index 1180591620717411303424 is out of range: 2 elements (at 2:12)",
        ),
        ("del [1][3]", "index 3 is out of range: 1 elements (at 2:9)"),
        ("return [1].pop(3)", "index 3 is out of range: 1 elements (at 2:12)"),
        ("return [].pop()", "pop from an empty list (at 2:12)"),
        ("return [1].index('x')", "not found in the list: \"x\" (at 2:12)"),
        ("return (1,).index([2])", "not found in the tuple: [2] (at 2:12)"),
        ("[1].remove(2)", "not found in the list: 2 (at 2:5)"),
        ("return 'abc'.index('z')", "index: substring not found: \"z\" (at 2:12)"),
        ("return int('12a')", "int() cannot parse \"12a\" in base 10 (at 2:12)"),
        ("return 1 + 'a'", "operation not supported: int + string (at 2:12)"),
        ("return [] < 1", "operation not supported: list < int (at 2:12)"),
        (
            "return [1].push(2)",
            "list has no field or method push; it has append, clear, copy, count, extend, index, insert, pop, remove, reverse, sort (at 2:12)",
        ),
        (
            "return 'a'.sub('b')",
            "string has no field or method sub; it has split, splitlines, startswith, strip, swapcase (at 2:12)",
        ),
        ("return record(a = int)(a = 1).b", "record has no field or method b; it has a (at 2:12)"),
        (
            "return pvm_host.get('a')",
            "pvm_host has no field or method get; it has get_balance, get_block_height, get_mru, get_state, get_timestamp_ms (at 2:12)",
        ),
        (
            "return ctx.hight",
            "Context has no field or method hight; it has cycles_left, height, self, sender, timestamp_ms, value (at 2:12)",
        ),
        ("return (lambda a, b: 1)(1, c = 2)", "lambda has no parameter c; it has a, b (at 2:12)"),
        (
            "return sorted([1], rev = True)",
            "sorted() has no parameter rev; by name it takes key, reverse (at 2:12)",
        ),
        ("assert 1 == 2, 'one is ' + str(2)", "assertion failed: one is 2 (at 2:5)"),
        ("assert []", "assertion failed (at 2:5)"),
        ("assert 0, {'a': 1}", "assertion failed: {\"a\": 1} (at 2:5)"),
    ];
    check_all(&cases, "ActorError", error_of);
    let long = format!("return {{}}['{}']", "x".repeat(5_000));
    let expected = format!("key not found: \"{}\u{2026} (at 2:12)", "x".repeat(128));
    check_all(&[(&long, &expected)], "ActorError", error_of);
    let deep = "x = ()\n    for i in range(100): x = (x, 1)\n    return [].index(x)";
    let expected = "not found in the list: ((((\u{2026}, \u{2026}), 1), 1), 1) (at 4:12)";
    check_all(&[(deep, expected)], "ActorError", error_of);
}

#[test]
fn what_python_has_and_the_language_has_not_is_named() {
    let cases = [
        (
            "class A:\n  pass\n",
            "`class`: there are no classes; use record(name = type, …) (at 1:1)",
        ),
        (
            "def f():\n  try:\n    pass\n",
            "`try`: nothing is caught: a call that fails changes nothing; check before, and use \
             fail(message) or assert (at 2:3)",
        ),
        ("x = 1\ndel x\n", "del removes elements: del list[index], del dict[key] (at 2:5)"),
        (
            "def f(x):\n  del x[1:]\n",
            "del removes elements: del list[index], del dict[key] (at 2:7)",
        ),
        ("def f(x):\n  x[1:] = []\n", "a slice cannot be assigned; make a new list (at 2:3)"),
        ("x = {1, 2}\n", "there are no sets; use a dict with None for values, or a list (at 1:5)"),
        (
            "x = {i for i in []}\n",
            "there are no sets; use a dict with None for values, or a list (at 1:5)",
        ),
        (
            "match 1:\n  case 1:\n    pass\n",
            "`match`: there are no patterns; use if and elif (at 1:1)",
        ),
        ("type X = int\n", "`type`: a type is a value; assign it: Name = T (at 1:1)"),
        ("x: int\n", "a variable must be declared with its value: x: T = value (at 1:1)"),
        (
            "def f(x, /): pass\n",
            "there are no positional-only parameters: leave out the / (at 1:7)",
        ),
        ("def f[T](x): pass\n", "there are no type parameters; use typing.Any (at 1:6)"),
        ("def f(x, x): pass\n", "the parameter x appears twice (at 1:10)"),
        ("x = len(*[], *[])\n", "a call takes one *list: concatenate them (at 1:14)"),
        ("x = len(*[], 1)\n", "positional arguments come before *list (at 1:14)"),
        ("x = dict(**{}, a = 1)\n", "a call takes one **dict, which comes last (at 1:16)"),
        ("x = dict(a = 1, a = 2)\n", "the argument a is given twice (at 1:17)"),
        ("break\n", "`break` outside of a loop (at 1:1)"),
        (
            "def f():\n  for i in []:\n    def g(): continue\n",
            "`continue` outside of a loop (at 3:14)",
        ),
        ("return 1\n", "`return` outside of a function (at 1:1)"),
        (
            "x = 1 is 1\n",
            "`is` asks for None, True, False or the same object; compare values with == (at 1:5)",
        ),
        (
            "x = '' is not ''\n",
            "`is` asks for None, True, False or the same object; compare values with == (at 1:5)",
        ),
        ("x = f'{1!a}'\n", "there is no conversion !a; use !r (at 1:7)"),
        ("x = [1 for x in []\n", "this [ is never closed (at 1:5)"),
        ("*a, *b = 1, 2\n", "only one starred name can take the rest (at 1:5)"),
        ("x = map(len, [])\n", "undefined name map: write a comprehension (at 1:5)"),
        (
            "x = float(1)\n",
            "undefined name float: there are no floats; use integers of a smaller unit (at 1:5)",
        ),
        ("def f(x: 7): pass\n", "an annotation must be a type, not a value (at 1:10)"),
        ("if 1:\nx = 1\n", "expected an indented block after `if` statement (at 2:1)"),
        ("x = = 1\n", "expected an expression (at 1:5)"),
        ("x = 1 2\n", "expected the end of the statement: a new line or `;` (at 1:7)"),
        ("f() = 1\n", "this cannot be assigned (at 1:1)"),
        ("x[1, 2:3]\n", "undefined name x (at 1:1)"),
        ("x = []\nx[1, 2:3]\n", "one slice at a time: there is one dimension (at 2:6)"),
        ("x = *[1]\n", "a * spreads a value only into a list, a tuple or a call (at 1:5)"),
    ];
    let refusal = |source: &str| load(source).err().map_or("it loads".into(), |e| e.to_string());
    check_all(&cases, "ModuleRefused", refusal);
}

#[test]
fn bools_are_no_ints_and_a_string_is_iterable() {
    let cases = [
        (
            "[isinstance(True, int), isinstance(True, bool), isinstance('a', typing.Iterable)]",
            "[false,true,true]",
        ),
        ("isinstance(1, int | None)", "true"),
        ("isinstance(ctx, Context)", "true"),
        ("isinstance(1, 2)", "an annotation must be a type, not int (at 2:12)"),
        ("[i for i in f'{True}']", "[\"T\",\"r\",\"u\",\"e\"]"),
        (
            "f'{True:5}'",
            "format specification \"5\" of bool: only ints and strings have one; use !s or str() \
             first (at 2:14)",
        ),
        ("f'{True!s:5}|{None!s:>6}'", "\"True |  None\""),
        ("f'{1:.2}'", "format specification \".2\" of int: an int has no precision (at 2:14)"),
        ("f'{1:.2f}'", "format specification \".2f\" of int: there are no floats (at 2:14)"),
        ("f'{1:zz}'", "not a format specification: \"zz\" (at 2:14)"),
        ("f'{\"a\":+}'", "format specification \"+\" of string: a string has no sign (at 2:14)"),
        ("sum(['a'], '')", "sum() takes no strings: use ''.join(…) (at 2:12)"),
        ("2 ** -1", "an exponent must not be negative: there are no floats (at 2:12)"),
        ("pow(2, 3, 0)", "division by zero (at 2:12)"),
        ("divmod(1, 0)", "division by zero (at 2:12)"),
        ("{'a': 1, **{'b': 2}, 'b': 3}", "{\"a\":1,\"b\":3}"),
        ("[*1]", "operation not supported: extending a list: int is not iterable (at 2:13)"),
        ("'abc' * (ctx is None)", "operation not supported: string * bool (at 2:12)"),
    ];
    // A successful result has no kind in front of it.
    let end = |expression: &str| {
        let end = error_of(&format!("return {expression}"));
        end.strip_prefix("ActorError: ").map_or_else(|| end.clone(), str::to_owned)
    };
    check_all(&cases, "", end);
}

#[test]
fn a_list_does_not_change_while_it_is_sorted() {
    let case = (
        "l = [2, 1]\n    l.sort(key = lambda x: l.append(x))",
        "this list is looped over and temporarily immutable (at 3:28)",
    );
    check_all(&[case], "ActorError", error_of);
    let source = "L = [2, 1]\nL.sort()\nfor x in L:\n  if x > 1: LAST = x\nwhile len(L) < 4: L += [0]\n\
                  def f(ctx, payload):\n  return [L, LAST]\n";
    assert_eq!(run(source), "[[1,2,0,0],2]");
    let frozen = "L = [2, 1]\ndef f(ctx, payload):\n  L.sort()\n";
    assert_eq!(run(frozen), "ActorError: this list belongs to the module and is frozen (at 3:3)");
}

/// A round of a `while` loop costs a step and the nodes that it evaluates.
#[test]
fn a_loop_pays_for_each_round() {
    let cycles = |rounds: u64| {
        let body = format!("  n = 0\n  while n < {rounds}: n += 1\n  return n\n");
        super::used(&body).evaluation
    };
    // The comparison's three nodes, the jump, the round, and the three nodes and store of the sum.
    assert_eq!(cycles(11) - cycles(10), 3 * 10 + 10 + 100 + 4 * 10);
}

#[test]
fn the_reference_names_every_function_and_method() {
    let page = include_str!("../../../../docs/actors.md");
    for function in catalog::functions() {
        let name = function.rsplit('.').next().unwrap_or_default();
        assert!(page.contains(&format!("{name}(")) || page.contains(&function), "{function}");
    }
    for (kind, method) in catalog::methods() {
        assert!(page.contains(&format!("`{method}`")), "{kind}.{method}");
    }
}
