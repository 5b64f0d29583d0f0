//! Printing of results on standard output.

use std::{
    io::{self, Write as _},
    time::Duration,
};

/// Prints the median and 99th percentile of some times.
pub fn times(name: &str, times: &mut [Duration]) -> io::Result<()> {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    writeln!(
        io::stdout(),
        "{name:<31} {:>5} times: p50 {} µs, p99 {} µs",
        times.len(),
        at(50).as_micros(),
        at(99).as_micros(),
    )
}
