//! Hostile sources and calls: each is refused or stopped, with a position, on a small stack.

use super::{BUDGET, Fixed, call_with, load, run};
use crate::actor::Budget;

/// `count` nested blocks.
fn blocks(head: &str, count: usize) -> String {
    (0..count).flat_map(|depth| [" ".repeat(depth), head.to_owned()]).collect()
}

/// Loads a source in a thread with a stack as small as the chain's threads may have.
fn refusal(source: String) -> String {
    let thread = std::thread::Builder::new().stack_size(128 << 10);
    let loads = move || load(&source).map(drop).map_err(|error| error.to_string());
    let loaded = thread.spawn(loads).expect("a thread begins").join().expect("it does not panic");
    loaded.expect_err("it is refused")
}

#[test]
fn sources_without_end_are_refused_before_they_are_parsed() {
    const MANY: usize = 100_000;
    // A larger source is refused for its size; these fit and are as deep as possible.
    const FIT: usize = 10_000;
    let all = |part: &str, times: usize| part.repeat(times);
    let mut others = Vec::new();
    for (source, expected) in [
        (all("(", MANY), "bytes of source: at most 65536, got 100000"),
        (all("(", FIT), "open brackets: at most 64, got 65 (at 1:65)"),
        (format!("x = {}1", all("[", FIT)), "open brackets: at most 64"),
        (format!("x = {}", all("{1:", FIT)), "open brackets: at most 64"),
        (format!("x = {}1", all("-", FIT)), "operators in an expression: at most 256"),
        (format!("x = {}1", all("not ", FIT)), "operators in an expression: at most 256"),
        (format!("x = {}1", all("lambda: ", FIT / 2)), "operators in an expression: at most 256"),
        (format!("x = 1{}", all("+1", FIT)), "operators in an expression: at most 256"),
        (format!("x = 1{}", all("**1", FIT)), "operators in an expression: at most 256"),
        (format!("x = 1{}", all("<1", FIT)), "operators in an expression: at most 256"),
        (format!("x = 1{}", all(" if 1 else 1", FIT / 4)), "operators in an expression"),
        (format!("x = 1{}", all(" is 1", FIT)), "operators in an expression: at most 256"),
        (format!("x = a{}", all(".b", FIT)), "operators in an expression: at most 256"),
        (format!("x = f{}", all("()", FIT)), "operators in an expression: at most 256"),
        (format!("x = f{}", all("[0]", FIT)), "operators in an expression: at most 256"),
        (format!("x = {}1", all("f'{", FIT)), "open brackets: at most 64"),
        (format!("x = f'{}", all("{x:", FIT)), "open brackets: at most 64"),
        (format!("x = [{}1]", all("1 for x in ", FIT / 2)), "operators in an expression"),
        (format!("x = {}1", all("a = ", FIT)), "operators in an expression: at most 256"),
        (blocks("if 1:\n", 200), "nested blocks: at most 32"),
        (blocks("while 1:\n", 200), "nested blocks: at most 32"),
        (format!("x = {}", all("'a' ", 16_000) + "1"), "expected "),
        (format!("x = 0x{}", all("f", FIT)), "an integer literal has at most 4096 bits (at 1:5)"),
        (format!("x = 1{}", all("_0", FIT)), "an integer literal has at most 4096 bits"),
        ("\u{feff}x = 1".into(), "U+FEFF byte order mark at the start: remove it (at 1:1)"),
        ("x = 1\ry = 2".into(), "a carriage return without a line feed (at 1:6)"),
        ("x = '\0'".into(), "U+0000 in the source: write \\0 in a string (at 1:6)"),
    ] {
        let shown: String = source.chars().take(40).collect();
        let error = refusal(source);
        if !(error.starts_with("ModuleRefused: ") && error.contains(expected)) {
            others.push(format!("{shown}: {error}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// Sources as deep as the limits allow load and run.
#[test]
fn sources_up_to_the_limits_load_on_a_small_stack() {
    let deep = |open: &str, inner: &str, close: &str, times: usize| {
        format!("x = {}{inner}{}\n", open.repeat(times), close.repeat(times))
    };
    let blocks = blocks("if 1:\n", 32);
    for source in [
        deep("(", "1", ")", 64),
        deep("[", "1", "]", 64),
        deep("-", "1", "", 255),
        deep("not ", "1", "", 255),
        deep("lambda: ", "1", "", 31),
        deep("", "1", " + 1", 255),
        deep("", "1", " < 1", 255),
        deep("", "1", " or 1", 255),
        deep("f'{", "1", "}'", 32),
        format!("x = {}\n", "'a' ".repeat(10_000)),
        format!("{blocks}{}x = 1\n", " ".repeat(32)),
        format!("if 1:\n  x = 1\n{}", "elif 1:\n  x = 1\n".repeat(2_500)),
        format!("x = {}1\n", "1 if 1 else ".repeat(120)),
    ] {
        let shown: String = source.chars().take(40).collect();
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        let loads = move || load(&source).map(drop).map_err(|error| error.to_string());
        let loaded = thread.spawn(loads).expect("a thread begins").join();
        assert_eq!(loaded.expect("it does not panic"), Ok(()), "{shown}");
    }
}

#[test]
fn lines_end_as_they_like() {
    let source = "def f(ctx, payload):\r\n    '''a\r\n    b'''\r\n    return '''c\r\nd'''\r\n";
    assert_eq!(run(source), "\"c\\nd\"");
    assert_eq!(run(&source.replace("\r\n", "\n")), "\"c\\nd\"");
    let error = load("x = 1\r\ny = (\r\n").expect_err("it is refused").to_string();
    assert_eq!(error, "ModuleRefused: this ( is never closed (at 2:5)");
}

/// Programs that never end or that grow: each is stopped by its limit, with a million cycles.
#[test]
fn attacks_are_stopped_by_their_limit() {
    let mut others = Vec::new();
    for (body, expected) in [
        ("while True:\n    pass", "OutOfCycles"),
        ("while 1: x = 1", "OutOfCycles"),
        ("while True:\n    while False: pass\n    continue", "OutOfCycles"),
        ("x = 2\n  while True:\n    x = x * x", "IntegerTooLarge"),
        ("x = 10 ** 10 ** 10", "IntegerTooLarge"),
        ("x = 2 ** (1 << 70)", "IntegerTooLarge"),
        ("x = -3 ** 999999999", "IntegerTooLarge"),
        ("for i in range(1000000): x = 7 ** 1400", "OutOfCycles"),
        ("for i in range(1000000): x = pow(7, (1 << 4000) - 1, (1 << 4000) - 3)", "OutOfCycles"),
        ("x = f'{1:99999999999999999999}'", "ValueTooLarge"),
        ("x = f'{1:09999999}'", "ValueTooLarge"),
        ("x = f'{1:0999999999,}'", "ValueTooLarge"),
        ("x = f'{\"a\":\u{e9}>700000}'", "ValueTooLarge"),
        ("x = '%99999999d' % 1", "ValueTooLarge"),
        ("x = '%.99999999d' % 1", "ValueTooLarge"),
        ("x = '{:99999999}'.format(1)", "ValueTooLarge"),
        ("x = 'a'.center(1 << 62)", "ValueTooLarge"),
        ("x = 'a'.zfill(1 << 80)", "ValueTooLarge"),
        ("x = ['a'.ljust(1000000) for i in range(100)]", "Out"),
        ("for i in range(1000000): x = 'a'.rjust(1000000)", "Out"),
        ("x = 'a' * 1000000\n  x = f'{x}{x}'", "ValueTooLarge"),
        ("x = 'a'\n  while True: x = f'{x}{x}'", "ValueTooLarge"),
        ("x = 'a' * 1000000\n  while True: f'{x!r}'", "Out"),
        ("x = 'a' * 100000\n  for c in x: pass", "OutOf"),
        ("x = 'a' * 100000\n  y = list(x)", "ValueTooLarge"),
        ("x = sum([[1] * 1000 for i in range(50)], [])", "Out"),
        ("x = [*range(60000), *range(60000)]", "ValueTooLarge"),
        ("x = [1]\n  while True: x = [*x, *x]", "ValueTooLarge"),
        ("a, *b = range(70000)", "ValueTooLarge"),
        ("x = {}\n  while True: x = {**x, len(x): x}", "OutOf"),
        ("x = dict.fromkeys(range(65536), 0)\n  x.update({-1: 1})", "OutOf"),
        ("x = []\n  for i in range(100000): x.append(0) or x.reverse()", "OutOfCycles"),
        ("x = [0] * 60000\n  while True: x.count(1)", "OutOfCycles"),
        ("x = [0] * 60000\n  while True: x.copy()", "Out"),
        ("x = [1]\n  x.append(x)\n  x.sort(key = str)", "StackOverflow"),
        ("x = ()\n  for i in range(99): x = (int, x)\n  isinstance('a', x)", "StackOverflow"),
    ] {
        let source = format!("def f(ctx, payload):\n  {body}\n  return 1\n");
        let module = load(&source).unwrap_or_else(|error| panic!("{body}: {error}"));
        let budget = Budget { cycles: 1_000_000, cells: BUDGET.cells };
        let outcome = call_with(&Fixed::default(), &module, "f", b"", budget);
        let end = outcome.result.map_or_else(|error| error.name(), |_| "success");
        if !end.starts_with(expected) || outcome.usage.cycles() > budget.cycles {
            others.push(format!("{body}: {end}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn digits_without_end_are_refused_before_they_are_read() {
    let digits = "9".repeat(60_000);
    for (before, place) in [("", "1:1"), ("x = [1,\n  -", "2:4"), ("'9' + \\\n ", "2:2")] {
        let error = load(&format!("{before}{digits}")).expect_err("it is too long");
        let expected = format!("an integer literal has at most 4096 bits (at {place})");
        assert_eq!(error.to_string(), format!("ModuleRefused: {expected}"));
    }
    for fine in ["x = '  D'", "# D", "x = '''a\nD'''\ny = 'D'"] {
        load(&fine.replace('D', &digits[..20_000])).expect("it is text");
    }
}
