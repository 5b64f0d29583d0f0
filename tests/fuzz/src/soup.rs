//! `soup`: loads and calls random modules, token soups, mutations and bytes.

use crate::{
    attacks,
    costs::{FEW_CYCLES, FEW_CYCLES_TIME, MOST_NANOSECONDS},
    grammar, mutate,
    rng::Rng,
    run,
};
use cowboy_engine::actor::{Error, ErrorKind, Usage};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

/// Maximum functions of a module that are run.
const MOST_FUNCTIONS: usize = 3;
/// Number of repetitions of a slow run before it counts.
const REPEATS: usize = 5;
/// A build with checks takes twice the time: its figures are printed but not judged.
const JUDGES_TIME: bool = !cfg!(debug_assertions);
/// Cases between two lines of progress: a crash is one of the cases after the last line.
const BATCH: u64 = 10_000;

/// Which cases are run.
#[derive(Clone, Debug)]
pub struct Options {
    pub count: u64,
    pub seed: u64,
    /// Index of the first case.
    pub from: u64,
    /// Whether each source is printed before it is run.
    pub verbose: bool,
    /// A file of hostile modules as a base of mutations.
    pub corpus: Option<String>,
}

/// Rates of one phase, by the cause that dominates.
#[derive(Debug, Default)]
struct Rates(BTreeMap<&'static str, Histogram>);

/// Counts of rates in hundredths of a nanosecond per cycle, and the worst.
#[derive(Debug, Default)]
struct Histogram {
    counts: BTreeMap<u64, u64>,
    total: u64,
    worst: f64,
    worst_case: u64,
}

impl Histogram {
    fn add(&mut self, rate: f64, case: u64) {
        *self.counts.entry((rate * 10.0) as u64).or_default() += 1;
        self.total += 1;
        if rate > self.worst {
            (self.worst, self.worst_case) = (rate, case);
        }
    }

    fn median(&self) -> f64 {
        let mut seen = 0;
        for (bucket, count) in &self.counts {
            seen += count;
            if seen * 2 >= self.total {
                return *bucket as f64 / 10.0;
            }
        }
        0.0
    }
}

#[derive(Debug, Default)]
struct Report {
    loads: Rates,
    calls: Rates,
    kinds: BTreeMap<(&'static str, String), u64>,
    short: Duration,
    findings: Vec<String>,
    called: u64,
}

/// The source of a case, and how it was made.
pub fn source(seed: u64, index: u64, corpus: &[String]) -> (&'static str, String) {
    let mut rng = Rng::of_case(seed, index);
    match rng.below(100) {
        0..50 => ("grammar", grammar::module(&mut rng)),
        50..70 => ("tokens", mutate::tokens(&mut rng)),
        70..92 => {
            let base = if corpus.is_empty() || rng.chance(60) {
                grammar::module(&mut rng)
            } else {
                rng.pick(corpus).clone()
            };
            let other = if corpus.is_empty() || rng.chance(50) {
                grammar::module(&mut rng)
            } else {
                rng.pick(corpus).clone()
            };
            ("mutation", mutate::mutate(&mut rng, &base, &other))
        }
        _ => ("bytes", mutate::bytes(&mut rng)),
    }
}

/// Names of functions that a source appears to define.
fn functions(source: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in source.lines() {
        let Some(rest) = line.strip_prefix("def ") else { continue };
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Report {
    fn rate(
        &mut self,
        phase: &str,
        case: u64,
        usage: &Usage,
        mut best: Duration,
        mut again: impl FnMut() -> Duration,
    ) {
        let cycles = usage.cycles();
        let slow = |elapsed: Duration| {
            if cycles < FEW_CYCLES {
                elapsed > FEW_CYCLES_TIME
            } else {
                run::rate(elapsed, cycles) > MOST_NANOSECONDS
            }
        };
        if JUDGES_TIME && slow(best) {
            for _ in 0..REPEATS {
                best = best.min(again());
            }
        }
        let rate = run::rate(best, cycles);
        if JUDGES_TIME && slow(best) {
            let cause = run::main_cause(usage);
            self.findings.push(format!(
                "case {case}: {phase} takes {best:?} for {cycles} cycles, most for {cause}: \
                {rate:.1} ns per cycle"
            ));
        }
        if cycles < FEW_CYCLES {
            self.short = self.short.max(best);
            return;
        }
        let rates = if phase == "load" { &mut self.loads } else { &mut self.calls };
        rates.0.entry(run::main_cause(usage)).or_default().add(rate, case);
    }

    fn case(&mut self, case: u64, kind: &'static str, source: &str) {
        let (usage, module, elapsed) = run::load(source);
        let (usage_again, module_again, _) = run::load(source);
        let end = match &module {
            Ok(_) => "loaded".to_owned(),
            Err(Error { kind: ErrorKind::Refused(message), .. }) => {
                let words: Vec<_> = message.split(' ').take(3).collect();
                let start: String = words.join(" ").chars().take(24).collect();
                format!("refused: {start}")
            }
            Err(error) => error.name().to_owned(),
        };
        *self.kinds.entry((kind, end)).or_default() += 1;
        self.check(case, "load", &usage, module.as_ref().err());
        if usage != usage_again || module.as_ref().err() != module_again.as_ref().err() {
            self.findings.push(format!("case {case}: two loads differ"));
        }
        self.rate("load", case, &usage, elapsed, || run::load(source).2);
        let Ok(module) = module else { return };
        let Ok(module_again) = module_again else { return };
        for name in functions(source).iter().take(MOST_FUNCTIONS) {
            self.called += 1;
            let (report, elapsed) = run::test(&module, name);
            self.check(case, "test", &report.usage, report.error.as_ref());
            if report != run::test(&module_again, name).0 {
                self.findings.push(format!("case {case}: two tests of {name} differ"));
            }
            self.rate("test", case, &report.usage, elapsed, || run::test(&module, name).1);
        }
        for handler in module.handlers().iter().take(MOST_FUNCTIONS) {
            self.called += 1;
            let payload: &[u8] = if case % 2 == 0 { b"payload" } else { &[0xff, 0, 1] };
            let (outcome, elapsed) = run::call(&module, &handler.name, payload);
            self.check(case, "call", &outcome.usage, outcome.result.as_ref().err());
            if outcome.result.is_err() && !outcome.effects.is_empty() {
                self.findings.push(format!("case {case}: a failed call has effects"));
            }
            if outcome != run::call(&module_again, &handler.name, payload).0 {
                self.findings.push(format!("case {case}: two calls of {} differ", handler.name));
            }
            self.rate("call", case, &outcome.usage, elapsed, || {
                run::call(&module, &handler.name, payload).1
            });
        }
    }

    fn check(&mut self, case: u64, phase: &str, usage: &Usage, error: Option<&Error>) {
        if usage.cycles() > run::BUDGET.cycles || usage.cells > run::BUDGET.cells {
            self.findings.push(format!("case {case}: {phase} used more than it may: {usage:?}"));
        }
        if let Some(error) = error {
            let text = error.to_string();
            if text.lines().next().is_some_and(|line| line.len() > 70_000) {
                self.findings
                    .push(format!("case {case}: {phase}: an error of {} bytes", text.len()));
            }
        }
    }
}

/// Runs the cases and prints the findings; returns their number.
pub fn soup(options: Options) -> usize {
    let corpus = options.corpus.as_deref().map(attacks::sources).unwrap_or_default();
    // A panic is a finding of its case: only its message is printed.
    std::panic::set_hook(Box::new(|info| eprintln!("panic: {info}")));
    let report = run::on_a_thread(move || {
        let mut report = Report::default();
        for index in options.from..options.from + options.count {
            let (kind, source) = source(options.seed, index, &corpus);
            if options.verbose {
                println!("--- case {index}, {kind}\n{source}\n---");
            }
            let ran = catch_unwind(AssertUnwindSafe(|| report.case(index, kind, &source)));
            if ran.is_err() {
                report.findings.push(format!("case {index}: it panics"));
            }
            let done = index - options.from + 1;
            if done % BATCH == 0 {
                println!(
                    "{done} cases, {} calls, {} findings",
                    report.called,
                    report.findings.len()
                );
                for finding in report.findings.iter().rev().take(3) {
                    println!("  {finding}");
                }
            }
        }
        report
    });
    print(&report);
    report.findings.len()
}

fn print(report: &Report) {
    let mut kinds: Vec<_> = report.kinds.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for ((kind, end), count) in kinds.iter().take(40) {
        println!("{kind:<10} {end:<40} {count:>9}");
    }
    for (phase, rates) in [("load", &report.loads), ("call", &report.calls)] {
        for (cause, of) in &rates.0 {
            println!(
                "{phase}, most for {cause}: {} of at least {FEW_CYCLES} cycles, median {:.1} ns per \
                cycle, worst {:.1} (case {})",
                of.total,
                of.median(),
                of.worst,
                of.worst_case
            );
        }
    }
    println!("longest of less than {FEW_CYCLES} cycles: {:?}", report.short);
    for finding in report.findings.iter().take(200) {
        println!("{finding}");
    }
}
