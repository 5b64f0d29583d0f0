//! `sweep`: times calls of every function and method, with each parameter large in turn. Prints a
//! table of nanoseconds per cycle, the worst first.

use crate::{
    calls::{Group, Large, Run, groups},
    costs::{self, Row},
    run,
};
use cowboy_engine::{
    actor::{Budget, TestReport},
    chain::Suite,
};
use std::time::{Duration, Instant};

/// Number of timed runs of a call; the fastest counts. One is too few even for a fast call, because
/// the setup before it takes milliseconds and is subtracted.
const ROUNDS: usize = 4;
/// Number of repetitions of a call that seems to take too long, in turn with its setup.
const AGAIN: usize = 24;
/// Number of lines in the table after the findings.
const SHOWN: usize = 40;
/// Enough cells, because they are not measured here.
const CELLS: u64 = 1 << 40;

/// Many values of each kind, of the maximum size.
const VALUES: &[Large] = &[
    Large { kind: "Text", made: "'x' * 1048576" },
    Large { kind: "Text", made: "'x' * 1000" },
    Large { kind: "Text", made: "'\u{e9}' * 524288" },
    Large { kind: "Text", made: "'\\u2003' * 349525" },
    Large { kind: "Text", made: "'\\n' * 65000" },
    Large { kind: "Text", made: "'\\x01' * 200000" },
    Large { kind: "Text", made: "'1' * 1200" },
    Large { kind: "Text", made: "'0x' + 'ab' * 500000" },
    Large { kind: "Text", made: "'[' + '1,' * 65000 + '1]'" },
    Large { kind: "Text", made: "'{}' * 60000" },
    Large { kind: "Text", made: "'%s' * 60000" },
    Large { kind: "", made: "(1 << 4095) - 1" },
    Large { kind: "", made: "-(1 << 65)" },
    Large { kind: "", made: "range(65000)" },
    Large { kind: "Tuple", made: "(1,) * 65000" },
    Large { kind: "Tuple", made: "('x' * 1000,) * 1000" },
    Large { kind: "", made: "tuple[(int,) * 60000]" },
    Large { kind: "", made: "wide(1000, 'f')" },
    Large { kind: "", made: "wide(50, 'f' * 20000)" },
    Large { kind: "", made: "two" },
    Large { kind: "List", made: "[1] * 65000" },
    Large { kind: "List", made: "['x' * 100] * 10000" },
    Large { kind: "List", made: "[('k', 1)] * 20000" },
    Large { kind: "List", made: "[(1 << 4095) - i for i in range(1000)]" },
    Large { kind: "List", made: "nested(60, 1)" },
    Large { kind: "List", made: "nested(15, 2)" },
    Large { kind: "Dict", made: "{'k%d' % i: i for i in range(4000)}" },
    Large { kind: "Dict", made: "{'k' * 2000 + str(i): i for i in range(500)}" },
    Large { kind: "Dict", made: "{i: [i] for i in range(4000)}" },
];

fn once(suite: &Suite, function: &str, cycles: u64) -> (TestReport, Duration) {
    let begun = Instant::now();
    let report = suite.test(function, Budget { cycles, cells: CELLS });
    (report, begun.elapsed())
}

fn time(suite: &Suite, function: &str, cycles: u64) -> (TestReport, Duration) {
    let (report, mut fastest) = once(suite, function, cycles);
    for _ in 1..ROUNDS {
        fastest = fastest.min(once(suite, function, cycles).1);
    }
    (report, fastest)
}

/// The time of a call beyond its setup, both timed in turn.
fn beyond_idle(suite: &Suite, function: &str, cycles: u64) -> Duration {
    let (mut idle, mut call) = (Duration::MAX, Duration::MAX);
    for _ in 0..AGAIN {
        idle = idle.min(once(suite, "idle", cycles).1);
        call = call.min(once(suite, function, cycles).1);
    }
    call.saturating_sub(idle)
}

/// Rows of the calls of a group whose names contain `filter`, without the setup of each.
fn measure(group: &Group, filter: &str) -> Vec<Row> {
    if !group.calls.iter().any(|call| call.contains(filter)) {
        return Vec::new();
    }
    let row = |name: String, report: &TestReport, elapsed: Duration| {
        Row::new(name, elapsed, &report.usage, report.error.as_ref())
    };
    // The setup of the calls runs first, alone.
    let mut idle: Option<(Row, Duration)> = None;
    let (_, runs) = group.play(|suite, function, cycles| {
        let (report, mut fastest) = time(suite, function, cycles);
        match &idle {
            None => idle = Some((row(String::new(), &report, fastest), fastest)),
            Some((front, front_took)) => {
                if row(String::new(), &report, fastest).beyond(front).is_finding() {
                    fastest = *front_took + beyond_idle(suite, function, cycles);
                }
            }
        }
        (report, fastest)
    });
    let Some((front, _)) = idle else { return Vec::new() };
    let runs = runs.into_iter().filter(|run: &Run<Duration>| run.name.contains(filter));
    runs.map(|run| row(run.name, &run.report, run.found).beyond(&front)).collect()
}

/// Prints the findings and the worst of the other calls, among those whose names contain `filter`;
/// returns the number of findings.
pub fn sweep(filter: &str) -> usize {
    let filter = filter.to_owned();
    let rows = run::on_a_thread(move || {
        let groups = groups(VALUES);
        let mut rows: Vec<_> = groups.iter().flat_map(|group| measure(group, &filter)).collect();
        costs::worst_first(&mut rows);
        rows
    });
    costs::summary(&rows);
    let (findings, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(Row::is_finding);
    println!("findings:");
    costs::print(&findings);
    println!("{} runs without a finding, at worst:", others.len());
    costs::print(&others[..others.len().min(SHOWN)]);
    findings.len()
}
