//! `costs`: times a program for every kind of work, on the inputs that are slowest for their
//! charge. Prints a table of nanoseconds per cycle, the worst first.

mod loops;
mod modules;

use crate::run;
use cowboy_engine::actor::{Error, Usage};
use loops::LOOPS;
use modules::built;
use std::{fmt::Write as _, time::Duration};

/// The maximum time of a cycle.
pub const MOST_NANOSECONDS: f64 = 50.0;
/// Programs with fewer cycles are judged by their total time.
pub const FEW_CYCLES: u64 = 2_000;
/// The maximum time of a load or a call with fewer than [`FEW_CYCLES`].
pub const FEW_CYCLES_TIME: Duration = Duration::from_micros(100);

/// Number of runs of each program; the fastest counts.
const ROUNDS: usize = 3;

/// The measurement of one kind of work.
pub struct Row {
    name: String,
    rate: f64,
    elapsed: Duration,
    cycles: u64,
    cause: &'static str,
    end: String,
}

impl Row {
    /// The row of a measurement.
    pub fn new(name: String, elapsed: Duration, usage: &Usage, error: Option<&Error>) -> Self {
        let cycles = usage.cycles();
        Self {
            name,
            rate: run::rate(elapsed, cycles),
            elapsed,
            cycles,
            cause: run::main_cause(usage),
            end: run::ending(error),
        }
    }

    /// The row without the time and the cycles of `other`.
    pub fn beyond(mut self, other: &Self) -> Self {
        self.elapsed = self.elapsed.saturating_sub(other.elapsed);
        self.cycles = self.cycles.saturating_sub(other.cycles);
        self.rate = run::rate(self.elapsed, self.cycles);
        self
    }

    /// Whether it took more than the maximum time for its cycles.
    pub fn is_finding(&self) -> bool {
        if self.cycles < FEW_CYCLES {
            return self.elapsed > FEW_CYCLES_TIME;
        }
        self.rate > MOST_NANOSECONDS
    }
}

fn measure(name: &str, source: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let loads: Vec<_> = (0..ROUNDS).map(|_| run::load(source)).collect();
    let elapsed = loads.iter().map(|(_, _, elapsed)| *elapsed).min().unwrap_or_default();
    let (usage, module, _) = &loads[0];
    let is_load = name.starts_with("load:");
    match module {
        Err(error) => rows.push(Row::new(name.to_owned(), elapsed, usage, Some(error))),
        Ok(_) if is_load => rows.push(Row::new(name.to_owned(), elapsed, usage, None)),
        Ok(module) => {
            let tests: Vec<_> = (0..ROUNDS).map(|_| run::test(module, "f")).collect();
            let elapsed = tests.iter().map(|(_, elapsed)| *elapsed).min().unwrap_or_default();
            let report = &tests[0].0;
            let error = report.error.as_ref();
            rows.push(Row::new(name.to_owned(), elapsed, &report.usage, error));
        }
    }
    rows
}

/// Prints the table of the work that matches `filter`; returns the number of findings.
pub fn costs(filter: &str) -> usize {
    let filter = filter.to_owned();
    let rows = run::on_a_thread(move || {
        let loops = LOOPS.iter().map(|(name, before, body)| {
            let mut source = String::from("def f():\n");
            if !before.is_empty() {
                let _ = writeln!(source, "  {before}");
            }
            let _ = writeln!(source, "  for i in range(1000000):\n    {body}");
            ((*name).to_owned(), source)
        });
        let cases = loops.chain(built());
        let mut rows: Vec<_> = cases
            .filter(|(name, _)| name.contains(&filter))
            .flat_map(|(name, source)| measure(&name, &source))
            .collect();
        worst_first(&mut rows);
        rows
    });
    print(&rows);
    summary(&rows);
    rows.iter().filter(|row| row.is_finding()).count()
}

/// Sorts by nanoseconds per cycle.
pub fn worst_first(rows: &mut [Row]) {
    rows.sort_by(|a, b| b.rate.total_cmp(&a.rate));
}

/// Prints a table.
pub fn print(rows: &[Row]) {
    println!("{:>9} {:>10} {:>9}  {:<10} {:<42} end", "ns/cycle", "us", "cycles", "cause", "work");
    for row in rows {
        let mark = if row.is_finding() { '*' } else { ' ' };
        println!(
            "{:>8.1}{mark} {:>10.1} {:>9}  {:<10} {:<42} {}",
            row.rate,
            row.elapsed.as_nanos() as f64 / 1000.0,
            row.cycles,
            row.cause,
            row.name,
            row.end
        );
    }
}

/// Prints for each cause the number of kinds of work, the median and the worst.
pub fn summary(rows: &[Row]) {
    let causes = ["loading", "evaluation", "data", "heap", "storage", "effects", "hashing"];
    for cause in causes {
        let of_cause = |row: &&Row| row.cause == cause && row.cycles >= FEW_CYCLES;
        let mut rates: Vec<_> = rows.iter().filter(of_cause).map(|row| row.rate).collect();
        rates.sort_by(f64::total_cmp);
        let Some(worst) = rates.last() else { continue };
        let median = rates[rates.len() / 2];
        println!("{cause}: {} kinds of work, median {median:.1}, worst {worst:.1}", rates.len());
    }
}
