//! Calls of every function and method of the language, with each parameter large in turn. They are
//! generated from the engine's tables and error messages, so that they include new functions.
//!
//! The test `metering` measures their allocations, `cowboy-fuzz sweep` their time.

use cowboy_engine::{
    actor::{ActorParams, Budget, ErrorKind, Module, TestReport, catalog},
    chain::{Setup, Suite},
    primitives::Wei,
};
use std::{collections::BTreeSet, fmt::Write as _};

/// The budget for loading a module and for finding arguments that fit.
const PLENTY: Budget = Budget { cycles: 1 << 40, cells: 1 << 40 };
/// Cycles for a call that is made once.
const ONCE: u64 = 4_000_000;
/// Cycles for a call that is made again and again.
const AGAIN: u64 = 100_000;
/// Cycles that are enough to enter a function, but not for its work on a large value.
const FEW: [u64; 2] = [400, 1_500];

/// The maximum number of positional arguments that are tried.
const PLACES: usize = 3;
/// The number of values in `P`.
const SMALL: usize = 10;
/// The head of every module: functions, a record type, and small values, one of which fits nearly
/// every parameter.
const HEAD: &str = "\
def anything(ctx = None, p = None): return 0
def spare(*a, **k): return 0
def two(a, b = 0): return 0
def typed(a: int, b: str = ''): return 0
def nested(depth, width):
  made = []
  for i in range(depth): made = [made] * width
  return made
def wide(fields, name):
  types = {name + str(i): int for i in range(fields)}
  return record(**types)(**{field: 1 for field in types})
Pair = record(a = int, b = str)
P = ['1', 3, '0x' + '11' * 20, '0x' + '22' * 32, ['1', 'b'], {'1': 1}, int, anything, True, 'split']
";
/// The actor's balance.
const BALANCE: Wei = Wei::new(1 << 60);

/// Operations on values other than calls. `W` is another value that is equal to `V`.
const OPERATIONS: [&str; 93] = [
    "V + V",
    "V + P[0]",
    "V - V",
    "V * V",
    "V * 2",
    "2 * V",
    "V // 3",
    "V // V",
    "V % 3",
    "V % V",
    "V % (V,)",
    "V % P[5]",
    "P[0] % V",
    "V & V",
    "V | V",
    "V ^ V",
    "V << 1",
    "V >> 1",
    "1 << V",
    "V == W",
    "V != W",
    "V < W",
    "V >= W",
    "V in V",
    "W in [V]",
    "P[0] in V",
    "V not in P",
    "-V",
    "+V",
    "~V",
    "not V",
    "V and V",
    "V if V else V",
    "V[1]",
    "V[-1]",
    "V[V]",
    "P[V]",
    "V[1:]",
    "V[::-1]",
    "V[::2]",
    "V[V:V:V]",
    "V.zz",
    "V()",
    "V.split(V)",
    "[V, V]",
    "{V: V}",
    "{1: V}",
    "[x for x in V]",
    "{x: x for x in V}",
    "list[V]",
    "dict[V, V]",
    "tuple[V]",
    "V | None",
    "spare(*V)",
    "spare(a = 1, **V)",
    "two(*V)",
    "two(**V)",
    "typed(b = V, a = V)",
    "Pair(a = V, b = V)",
    "Pair(**V)",
    "x: int = V",
    "x: list[int] = V",
    "x: dict[str, int] = V",
    "a, b = V",
    "x = V; x += V",
    "x = {}; x[V] = V; x[V]",
    "V ** 2",
    "V ** V",
    "2 ** V",
    "V < W < V",
    "V is W",
    "V is not V",
    "f'{V}'",
    "f'{V}{V}{W}'",
    "f'{V!r}'",
    "f'{V!s:>9}'",
    "f'{V:1048576}'",
    "f'{V:\u{e9}^500000}'",
    "f'{V:0999999,}'",
    "f'{V:_b}'",
    "f'{V:.9}'",
    "f'{P[1]:{V}}'",
    "'%1000000d' % V",
    "'%.9s|%-1000000s' % (V, V)",
    "'{:{}}'.format(P[1], V)",
    "[*V, *V]",
    "(*V, 1)",
    "{**V, **V}",
    "a, *b = V",
    "x = list(V); del x[0]",
    "for c in V: pass",
    "while V: break",
    "assert not V, V",
];

/// A value for parameters and receivers.
#[derive(Clone, Copy, Debug)]
pub struct Large {
    /// Its kind in the catalog; empty if that has no methods.
    pub kind: &'static str,
    /// The expression that makes it at a module's top level.
    pub made: &'static str,
}

/// A module with calls on one large value.
#[derive(Debug)]
pub struct Group {
    pub calls: Vec<String>,
    /// The variables of the calls, for people.
    about: String,
    source: String,
}

/// A call that was played.
#[derive(Debug)]
pub struct Run<T> {
    /// The call, how it was made, and its variables.
    pub name: String,
    pub report: TestReport,
    /// The result of the caller's measurement.
    pub found: T,
}

impl Group {
    /// The lines `before` each call make the values that it needs.
    fn new(value: &Large, globals: &str, before: &str, calls: Vec<String>) -> Self {
        let about = format!("V = {}, {}", value.made, before.trim());
        let mut source =
            format!("{HEAD}V = {}\n{globals}def idle():\n{before}  pass\n", value.made);
        for (index, call) in calls.iter().enumerate() {
            let _ = write!(
                source,
                "def g{index}(ctx = None, p = None):\n{before}  {call}\n\
                 def once{index}():\n  g{index}()\n\
                 def loop{index}():\n{before}  for i in range(1000000):\n    {call}\n\
                 def fails{index}():\n  for i in range(1000000): mock.fails(g{index})\n"
            );
        }
        Self { calls, about, source }
    }

    /// Plays each call once, then in a loop (through `mock.fails` if it fails), then with few
    /// cycles; before that, only the lines in front of the calls. `run` runs a function of the
    /// module with a limit of cycles.
    pub fn play<T>(
        &self,
        mut run: impl FnMut(&Suite, &str, u64) -> (TestReport, T),
    ) -> (Run<T>, Vec<Run<T>>) {
        let suite = suite(&self.source);
        let (report, found) = run(&suite, "idle", ONCE);
        let idle = Run { name: format!("no call, {}", self.about), report, found };
        let mut runs = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            let mut play = |how: &str, cycles: u64| {
                let cycles = idle.report.usage.cycles() + cycles;
                let (report, found) = run(&suite, &format!("{how}{index}"), cycles);
                let again = match report.error.as_ref().map(|error| &error.kind) {
                    None => Some("loop"),
                    Some(ErrorKind::Failed(_)) => Some("fails"),
                    Some(_) => None,
                };
                let name = format!("{call}, {how}, {cycles} cycles, {}", self.about);
                runs.push(Run { name, report, found });
                again
            };
            if let Some(again) = play("once", ONCE) {
                play(again, AGAIN);
            }
            for cycles in FEW {
                play("once", cycles);
            }
        }
        (idle, runs)
    }
}

/// Calls of every function and method, and operations, on each of the values.
pub fn groups(values: &[Large]) -> Vec<Group> {
    let functions = catalog::functions().into_iter();
    let functions = functions.map(|callee| Callable { callee, receiver: None });
    let methods = catalog::methods().into_iter();
    let methods =
        methods.map(|(kind, name)| Callable { callee: format!("r.{name}"), receiver: Some(kind) });
    let mut groups = Vec::new();
    for callable in functions.chain(methods) {
        let (fitting, large) = callable.arguments();
        for value in values {
            let takes = |arguments: &&String| match arguments.as_str() {
                "*V" => value.kind == "List",
                "**V" => value.kind == "Dict",
                _ => true,
            };
            let call = |arguments: &String| format!("{}({arguments})", callable.callee);
            let large: Vec<_> = large.iter().filter(takes).map(call).collect();
            if callable.receiver == Some(value.kind) {
                let calls = fitting.iter().map(call).chain(large.iter().cloned()).collect();
                groups.push(Group::new(value, "", &callable.before(true), calls));
            }
            groups.push(Group::new(value, "", &callable.before(false), large));
        }
    }
    for value in values {
        let calls = Vec::from(OPERATIONS.map(str::to_owned));
        groups.push(Group::new(value, &format!("W = {}\n", value.made), "", calls));
    }
    groups
}

/// A function or a method.
struct Callable {
    /// The text before the arguments; a method's receiver is `r`.
    callee: String,
    /// The kind of a method's receiver.
    receiver: Option<&'static str>,
}

impl Callable {
    /// The line that makes the receiver: a small value, or V.
    fn before(&self, large: bool) -> String {
        let made = match (self.receiver, large) {
            (None, _) => return String::new(),
            (Some("Text"), false) => "'a1b'",
            (Some("Text"), true) => "V",
            (Some("List"), false) => "list(P)",
            (Some("List"), true) => "list(V)",
            (Some("Tuple"), false) => "tuple(P)",
            (Some("Tuple"), true) => "tuple(V)",
            (Some("Dict"), false) => "{'1': 1}",
            (Some("Dict"), true) => "dict(V)",
            (Some(kind), _) => panic!("say here what a {kind} is made of: it has methods now"),
        };
        format!("  r = {made}\n")
    }

    /// The error of a call with these arguments; empty if it succeeds.
    fn complaint(&self, arguments: &str) -> String {
        let (before, callee) = (self.before(false), &self.callee);
        let source = format!("{HEAD}def ask():\n{before}  {callee}({arguments})\n");
        let error = suite(&source).test("ask", PLENTY).error;
        error.map_or_else(String::new, |error| error.kind.to_string())
    }

    /// The number of positional arguments that it takes, at most [`PLACES`].
    fn places(&self) -> usize {
        let complaint = self.complaint("*([None] * 20)");
        let most = complaint.split_once("takes at most ").map(|(_, rest)| rest);
        let most = most.and_then(|rest| rest.split(' ').next()?.parse().ok());
        most.unwrap_or(PLACES).min(PLACES)
    }

    /// The names of its keyword arguments.
    fn names(&self) -> Vec<String> {
        let complaint = self.complaint("zz = None");
        let names = complaint.split_once("by name it takes ").map_or("none", |(_, names)| names);
        names.split(", ").filter(|name| *name != "none").map(str::to_owned).collect()
    }

    /// Small arguments that make a call succeed: `places` positional ones, and one by name.
    fn fit(&self, places: usize, name: Option<&str>) -> Option<Vec<String>> {
        let mut prefixes = vec![String::new(); places];
        prefixes.extend(name.map(|name| format!("{name} = ")));
        let chosen = |divisor: usize| format!("P[i // {divisor} % {SMALL}]");
        let arguments: Vec<_> = (0u32..)
            .zip(&prefixes)
            .map(|(place, prefix)| format!("{prefix}{}", chosen(SMALL.pow(place))))
            .collect();
        let (before, callee, arguments) = (self.before(false), &self.callee, arguments.join(", "));
        let combinations = SMALL.pow(prefixes.len() as u32);
        let source = format!(
            "{HEAD}def g(ctx, p):\n  i = int(p)\n{before}  {callee}({arguments})\n\
             def search():\n  for i in range({combinations}):\n    \
             print('@%d' % i)\n    mock.fails(g, str(i))\n"
        );
        let report = suite(&source).test("search", PLENTY);
        if !report.error?.kind.to_string().contains("was expected to fail") {
            return None;
        }
        let found = report.log.iter().rev().find_map(|line| line.strip_prefix('@')?.parse().ok());
        let found: usize = found.expect("each try is logged before it is made");
        let value = |(place, prefix): (u32, &String)| {
            format!("{prefix}P[{}]", found / SMALL.pow(place) % SMALL)
        };
        Some((0u32..).zip(&prefixes).map(value).collect())
    }

    /// Arguments that fit, and arguments with one large value or only large positional ones.
    fn arguments(&self) -> (Vec<String>, BTreeSet<String>) {
        let mut fitting = Vec::new();
        let mut large = BTreeSet::from(["*V".to_owned(), "**V".to_owned()]);
        let most = self.places();
        for places in 0..=most {
            let fit = self.fit(places, None);
            fitting.extend(fit.as_ref().map(|fit| fit.join(", ")));
            let small = fit.unwrap_or_else(|| vec!["P[0]".to_owned(); places]);
            for place in 0..places {
                let mut arguments = small.clone();
                arguments[place] = "V".to_owned();
                large.insert(arguments.join(", "));
                large.insert(vec!["V"; places].join(", "));
            }
        }
        for name in self.names() {
            let named = format!("{name} = V");
            // More positional arguments would have more combinations than a log has lines.
            for places in 0..=most.min(2) {
                if let Some(mut arguments) = self.fit(places, Some(&name)) {
                    arguments[places].clone_from(&named);
                    large.insert(arguments.join(", "));
                }
            }
            large.insert(named);
        }
        (fitting, large)
    }
}

fn suite(source: &str) -> Suite {
    let (usage, module) = Module::load(source, &ActorParams::default(), PLENTY);
    let module = module.unwrap_or_else(|error| panic!("{error}\n{source}"));
    let setup = Setup { balance: BALANCE, ..Setup::default() };
    Suite::new(source, (&usage, &module), &setup).expect("a chain can begin so")
}
