//! Tests with parameters: which inputs fail, how simple they become, and what is said of tests that
//! cannot run.

use super::*;
use crate::actor::{Budget, Campaign, Module, Property, PropertyReport};

const BUDGET: Budget = Budget { cycles: 1_000_000, cells: 1_000_000 };

/// Runs the only test of a module with this seed.
fn checked(source: &str, campaign: Campaign) -> Result<PropertyReport, String> {
    let setup = Setup::default();
    let (usage, module) = Module::load(source, &setup.params.actors, BUDGET);
    let module = module.unwrap_or_else(|error| panic!("{error}\n{source}"));
    let suite = Suite::new(source, (&usage, &module), &setup).unwrap();
    let tests = module.tests();
    assert_eq!(tests.len(), 1, "{source}");
    let property = Property::of(&module, &tests[0]).map_err(|error| error.to_string())?;
    let property = property.expect("it has parameters");
    Ok(suite.property(&property, BUDGET, campaign, || false).expect("it was not stopped"))
}

/// The simplest failing input of a test with these parameters and this body, from several seeds.
fn check(parameters: &str, body: &str, expected: &str) {
    let source = format!("def test_it({parameters}):\n    {}\n", body.replace('\n', "\n    "));
    for seed in 0..4 {
        let report = checked(&source, Campaign { inputs: 1_000, seed }).unwrap();
        assert!(report.report.error.is_some(), "seed {seed}: no input fails\n{source}");
        let arguments = report.arguments.iter().map(|(name, it)| format!("{name} = {it}"));
        let arguments = arguments.collect::<Vec<_>>().join("; ");
        assert_eq!(arguments, expected, "seed {seed}\n{source}");
    }
}

#[test]
fn failing_inputs_become_the_simplest() {
    check("x: int", "assert x < 1000", "x = 1000");
    check("ctx, x: int", "assert x > -1000", "x = -1000");
    check("x: int", "assert x < (1 << 64)", "x = 18446744073709551616");
    check(
        "x: int",
        "assert x < (1 << 200)",
        &format!("x = {}", num_bigint::BigInt::from(1) << 200),
    );
    check("x: int", "assert x != 123456789", "x = 123456789");
    check("x: int, y: int", "assert x + y < 1000", "x = 0; y = 1000");
    check("x: int, y: int", "assert x < 500 or x != y", "x = 500; y = 500");
    check("x: bool, y: bool", "assert not (x and y)", "x = True; y = True");
    check("x: list[int]", "assert sum(x) < 1000", "x = [1000]");
    check("x: list[int]", "assert len(x) < 5", "x = [0, 0, 0, 0, 0]");
    check("x: list[int]", "for n, i in enumerate(x): assert i not in x[:n]", "x = [0, 0]");
    check(
        "x: list[list[int]]",
        "assert 7 not in [len(i) for i in x]",
        "x = [[0, 0, 0, 0, 0, 0, 0]]",
    );
    check("x: str", "assert '\"' not in x", r#"x = "\"""#);
    check("x: str", "assert len(x) < 20", "x = \"aaaaaaaaaaaaaaaaaaaa\"");
    check("x: str", "assert x != 'open sesame'", "x = \"open sesame\"");
    check("x: dict[str, int]", "for v in x.values(): assert v < 10", "x = {\"\": 10}");
    check("x: dict[int, None]", "assert len(x) < 2", "x = {0: None, 1: None}");
    check("x: int | None", "assert x == None", "x = 0");
    check("x: str | int", "assert type(x) == 'string'", "x = 0");
    check("x: tuple[int, str]", "assert x[0] < 7 or x[1] == ''", "x = (7, \"a\")");
    check("x: tuple[bool, ...]", "assert not any(x)", "x = (True,)");
}

#[test]
fn records_are_generated() {
    let source = "Point = record(x = int, y = field(int, 5))\n\
                  def test_it(p: Point, q: Point):\n    assert p.x <= q.y + 3\n";
    let report = checked(source, Campaign { inputs: 1_000, seed: 1 }).unwrap();
    let expected = [("p", "Point(x = 4, y = 0)"), ("q", "Point(x = 0, y = 0)")];
    assert_eq!(report.arguments, expected.map(|(name, it)| (name.to_owned(), it.to_owned())));
}

#[test]
fn shrinking_keeps_to_the_failure_that_it_began_with() {
    // From above a million only; what is simpler fails on another line.
    let body = "if x > 1000000: fail('too much')\nassert x < 10 or x > 1000000";
    let source = format!("def test_it(x: int):\n    {}\n", body.replace('\n', "\n    "));
    let mut found = [0, 0];
    for seed in 0..20 {
        let report = checked(&source, Campaign { inputs: 1_000, seed }).unwrap();
        let error = report.report.error.unwrap();
        let index = usize::from(error.to_string().contains("too much"));
        let expected = ["10", "1000001"][index];
        assert_eq!(report.arguments[0].1, expected, "seed {seed}");
        found[index] += 1;
    }
    assert!(found.iter().all(|times| *times > 0), "{found:?}");
}

#[test]
fn a_seed_repeats_a_run_and_another_one_does_not() {
    let source =
        "def test_it(x: int, y: str):\n    print(x, y)\n    assert x < 100 or len(y) < 3\n";
    let run = |seed| checked(source, Campaign { inputs: 1_000, seed }).unwrap();
    let first = run(5);
    assert_eq!(first, run(5));
    assert_eq!(first.report.log, ["100 aaa"]);
    assert!((1..20).any(|seed| run(seed).inputs != first.inputs));
    // A campaign with more inputs begins with the same ones.
    let more = checked(source, Campaign { inputs: 100_000, seed: 5 }).unwrap();
    assert_eq!(more, first);
}

#[test]
fn a_property_that_holds_reports_its_costliest_input() {
    let source = "def test_it(ctx: Context, x: list[int], spare = 3):\n    assert spare == 3\n    \
                  for i in x: pass\n";
    let report = checked(source, Campaign { inputs: 200, seed: 0 }).unwrap();
    assert_eq!(report.report.error, None);
    assert_eq!((report.inputs, report.discards, report.shrinks), (200, 0, 0));
    assert_eq!(report.arguments, []);
    let one = checked(source, Campaign { inputs: 1, seed: 0 }).unwrap();
    assert!(report.report.usage.cycles() > one.report.usage.cycles());
}

#[test]
fn inputs_that_are_assumed_away_do_not_count() {
    let source = "def test_it(x: int):\n    mock.assume(x % 2 == 0)\n    assert x % 2 == 0\n";
    let report = checked(source, Campaign { inputs: 300, seed: 0 }).unwrap();
    assert_eq!((report.report.error, report.inputs), (None, 300));
    assert!(report.discards > 30);
    // What is assumed away is no failure to shrink to.
    check("x: int", "mock.assume(x % 7 == 3)\nassert x < 1000", "x = 1004");

    let source = "def test_it(x: int):\n    mock.assume(x == 7 and x == 8)\n";
    let report = checked(source, Campaign { inputs: 32, seed: 0 }).unwrap();
    let expected = "ActorError: mock.assume discarded 321 of 321 inputs: make inputs that fit, for \
                    example with mock.bound, or assume less (at 1:1)";
    assert_eq!(report.report.error.unwrap().to_string(), expected);
}

#[test]
fn bound_keeps_what_fits_and_wraps_the_rest() {
    let source = "def test_it(x: int, a: int, b: int):\n    low = min(a, b)\n    high = max(a, b)\n    \
                  y = mock.bound(x, low, high)\n    assert low <= y and y <= high\n    \
                  assert y == x or not (low <= x and x <= high)\n    \
                  assert (y - low - x) % (high - low + 1) == 0 or y == x\n";
    let report = checked(source, Campaign { inputs: 2_000, seed: 0 }).unwrap();
    assert_eq!(report.report.error, None, "{:?}", report.arguments);
    check("x: int", "assert mock.bound(x, 10, 20) < 15", "x = 5");
    check("x: int", "x = mock.bound(x, 1000, 2000)\nassert x < 1000", "x = 0");
    let of = |call: &str| {
        let source = format!("def test_it(x: int):\n    {call}\n");
        let report = checked(&source, Campaign { inputs: 1, seed: 0 }).unwrap();
        report.report.error.unwrap().kind.to_string()
    };
    assert_eq!(of("mock.bound(x, 3, 2)"), "mock.bound: no int is from 3 to 2");
    assert_eq!(of("mock.bound(x, 0, '9')"), "mock.bound takes ints, not string");
    assert_eq!(of("mock.bound(x, 0)"), "bound() lacks high");
}

#[test]
fn an_input_that_exhausts_the_budget_fails_the_test() {
    let source = "def test_it(x: int):\n    while x > 5: pass\n";
    let report = checked(source, Campaign { inputs: 100, seed: 3 }).unwrap();
    let error = report.report.error.unwrap();
    assert_eq!((error.name(), error.stack[0].at.line), ("OutOfCycles", 2));
    assert_eq!(report.arguments, [("x".to_owned(), "6".to_owned())]);
}

#[test]
fn tests_that_cannot_be_given_arguments_say_so() {
    let refused = |source: &str| checked(source, Campaign { inputs: 1, seed: 0 }).unwrap_err();
    let all = "bool, int, str, None, list[T], dict[K, V], tuple[T, U], tuple[T, ...], T | U and \
               records";
    for (source, why) in [
        (
            "def test_it(ctx, x): pass",
            format!("parameter x of test_it: it has no type to generate values of: {all} (at 1:18)"),
        ),
        (
            "def test_it(\n    ctx,\n    x: typing.Callable\n): pass",
            format!("parameter x of test_it: values of Callable cannot be generated, only of {all} (at 3:5)"),
        ),
        (
            "def test_it(x: list): pass",
            "parameter x of test_it: list does not say what is in it: write list[int] (at 1:13)".into(),
        ),
        (
            "def test_it(x: dict[list[int], int]): pass",
            "parameter x of test_it: list[int] cannot be the type of a dict's keys (at 1:13)".into(),
        ),
        (
            "def test_it(ctx, *, x: int): pass",
            "parameter x of test_it: it can be given by name only; generated arguments have a place \
             (at 1:21)"
                .into(),
        ),
        (
            "T = int\nfor i in range(40): T = list[T]\ndef test_it(x: T): pass",
            "parameter x of test_it: it has more than 256 types in it, or they nest deeper than 32 \
             (at 3:13)"
                .into(),
        ),
        (
            "T = int\nfor i in range(30): T = tuple[T, T]\ndef test_it(x: T): pass",
            "parameter x of test_it: it has more than 256 types in it, or they nest deeper than 32 \
             (at 3:13)"
                .into(),
        ),
    ] {
        assert_eq!(refused(source), format!("ActorError: {why}"));
    }
}

#[test]
fn a_test_without_parameters_can_assume_too() {
    let source = "def test_it():\n    mock.assume(False)\n";
    let setup = Setup::default();
    let (usage, module) = Module::load(source, &setup.params.actors, BUDGET);
    let module = module.unwrap();
    let suite = Suite::new(source, (&usage, &module), &setup).unwrap();
    assert!(Property::of(&module, &module.tests()[0]).unwrap().is_none());
    let report = suite.test("test_it", BUDGET);
    let error = report.error.unwrap().to_string();
    assert!(
        error.starts_with("ActorError: mock.assume: the condition is false (at 2:5)"),
        "{error}"
    );
}

#[test]
fn a_run_that_is_stopped_has_no_report() {
    let source = "def test_it(x: int):\n    assert x < 10\n";
    let setup = Setup::default();
    let (usage, module) = Module::load(source, &setup.params.actors, BUDGET);
    let module = module.unwrap();
    let suite = Suite::new(source, (&usage, &module), &setup).unwrap();
    let property = Property::of(&module, &module.tests()[0]).unwrap().unwrap();
    let campaign = Campaign { inputs: u64::MAX, seed: 0 };
    assert_eq!(suite.property(&property, BUDGET, campaign, || true), None);
}
