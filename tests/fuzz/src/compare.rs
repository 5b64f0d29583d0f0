//! `compare`: runs random programs in this evaluator and in the full one. Both have to succeed and
//! print the same, or both have to fail.
//!
//! Exceptions:
//!
//! * `<<` is `shl(a, b)`, which multiplies in the full evaluator: its `(1 << 26) << 13` is 0.
//! * Programs that reach a limit of this evaluator (entries, bits, strings, cycles) are not
//!   compared.
//! * The full evaluator escapes non-ASCII characters in `repr`, this one does not: its text is
//!   unescaped, and programs with such strings print none within another.
//! * The full evaluator's `int` accepts `_` between digits, which is not in the specification.
//! * `istitle` of text without case is true in the full evaluator, false by the specification: it
//!   is not called on strings beyond ASCII.
//! * Counts and indexes have 32 bits in the full evaluator, and are bounded only by limits here.
//! * The full evaluator panics on a string of more than 4 GiB.
//! * `"".find("", 1, -9)` is 0 in the full evaluator and -1 here, `"a".find("", -2, -3)` is the
//!   reverse; here it is as in Python. Only non-empty strings are searched between two indexes.
//! * `int` of a string without a base has base 0 in the full evaluator and 10 by the specification:
//!   it is called only with a base, or on strings without a prefix.
//! * A string is a collection of its characters here, as in Python, but not by the specification.
//! * Formats have specifications here, as in Python, but not by the specification.
//! * `hash`, records and cyclic values are not in the programs, because their texts differ.

use crate::{rng::Rng, soup::Options, typed};
use cowboy_engine::actor::{ActorParams, Budget, ErrorKind, Module};
use starlark::{
    environment::{Globals, Module as Oracle},
    eval::Evaluator,
    syntax::{AstModule, Dialect},
};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

const BUDGET: Budget = Budget { cycles: 20_000_000, cells: 1_000_000 };
/// Limit of the full evaluator's work, as a safeguard: programs are small.
const ORACLE_TICKS: u64 = 10_000_000;
/// Differences that are printed in full.
const SHOWN: usize = 25;

const OURS: &str = "def shl(a, b): return a << b\ndef mul(a, b): return a * b\n";
const THEIRS: &str = "\
def powers():
    made = [1]
    for i in range(100): made.append(made[-1] * 2)
    return made
POWERS = powers()
def shl(a, b): return (a + 0) * POWERS[b]
def mul(a, b):
    for _ in [0]: pass
    return a * b
";
const END: &str = "R = repr(f())\ndef answer(ctx, payload): return R\n";

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Text(String),
    Failed(String),
    Limit(&'static str),
    Panicked,
}

fn ours(program: &str) -> End {
    let source = format!("{OURS}{program}{END}");
    let params = ActorParams::default();
    let module = match Module::load(&source, &params, BUDGET).1 {
        Ok(module) => module,
        Err(error) => {
            return match error.kind {
                ErrorKind::Failed(_) | ErrorKind::Refused(_) => End::Failed(error.to_string()),
                _ => End::Limit(error.name()),
            };
        }
    };
    match module
        .call(&params, &crate::run::request("answer", &[]), &crate::run::Fake, BUDGET)
        .result
    {
        Ok(json) => match serde_json::from_slice(&json) {
            Ok(text) => End::Text(text),
            Err(error) => End::Failed(format!("not JSON: {error}")),
        },
        Err(error) => End::Limit(error.name()),
    }
}

/// The text of a `repr` with escapes of characters beyond ASCII replaced by the characters.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escape = &rest[at..];
        let digits = match escape.as_bytes().get(1) {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let code = escape.get(2..2 + digits).and_then(|code| u32::from_str_radix(code, 16).ok());
        match code.filter(|code| *code >= 0x80).and_then(char::from_u32) {
            Some(character) => {
                plain.push(character);
                rest = &escape[2 + digits..];
            }
            None => {
                let width = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
                plain.push_str(&escape[..width]);
                rest = &escape[width..];
            }
        }
    }
    plain + rest
}

fn theirs(program: &str, globals: &Globals) -> End {
    let source = format!("{THEIRS}{program}{END}");
    let dialect =
        Dialect { enable_load: false, enable_keyword_only_arguments: true, ..Dialect::Standard };
    let failed = |error: starlark::Error| End::Failed(error.to_string());
    let parsed = match AstModule::parse("program", source, &dialect) {
        Ok(parsed) => parsed,
        Err(error) => return failed(error),
    };
    Oracle::with_temp_heap(|module| {
        let mut evaluator = Evaluator::new(&module);
        if let Err(error) = evaluator.set_max_tick_count(ORACLE_TICKS) {
            return End::Failed(error.to_string());
        }
        if let Err(error) = evaluator.eval_module(parsed, globals) {
            return failed(error);
        }
        match module.get("R").and_then(|value| value.unpack_str().map(str::to_owned)) {
            Some(text) => End::Text(unescaped(&text)),
            None => End::Failed("it has no result".to_owned()),
        }
    })
}

/// Runs the programs and prints differences; returns their number.
pub fn compare(options: Options) -> usize {
    std::panic::set_hook(Box::new(|_| {}));
    crate::run::on_a_thread(move || {
        let globals = Globals::standard();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut differences = 0;
        for index in options.from..options.from + options.count {
            let program = typed::program(&mut Rng::of_case(options.seed, index));
            let own = ours(&program);
            // The full evaluator would take gigabytes for a program that reaches a limit here.
            if let End::Limit(name) = own {
                *counts.entry(format!("{name} here: not compared")).or_default() += 1;
                continue;
            }
            let asked = catch_unwind(AssertUnwindSafe(|| theirs(&program, &globals)));
            let other = asked.unwrap_or(End::Panicked);
            if options.verbose {
                println!("--- case {index}\n{program}--- {own:?}\n--- {other:?}");
            }
            let kind = match (&own, &other) {
                (End::Text(a), End::Text(b)) if a == b => "both succeed".to_owned(),
                (End::Failed(_), End::Failed(_)) => "both fail".to_owned(),
                (_, End::Panicked) => "the full evaluator panics: not compared".to_owned(),
                (End::Text(_), End::Failed(why)) if why.contains("fit in i32") => {
                    "beyond 32 bits there: not compared".to_owned()
                }
                (End::Text(_), End::Failed(why))
                    if why.contains("iter") && why.contains("string") =>
                {
                    "a string is a collection here: not compared".to_owned()
                }
                (End::Text(_), End::Failed(why)) if why.contains("format") => {
                    "a format is a specification here: not compared".to_owned()
                }
                _ => {
                    differences += 1;
                    if differences <= SHOWN {
                        println!(
                            "--- case {index} differs\n{program}--- here: {own:?}\n--- there: {other:?}"
                        );
                    }
                    "different".to_owned()
                }
            };
            *counts.entry(kind).or_default() += 1;
        }
        for (kind, count) in counts {
            println!("{kind:<40} {count:>9}");
        }
        differences
    })
}
