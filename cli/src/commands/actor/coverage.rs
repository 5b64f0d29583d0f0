//! Coverage of actors by their tests, in the format of lcov.

use crate::{
    error::{CliError, Exit},
    output::share,
};
use cowboy_engine::actor::Coverage;
use serde::Serialize;
use std::{fmt::Write as _, fs, path::Path};

/// How much of a module its tests ran. Tests themselves and the top level are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct CoverageSummary {
    /// The file with all of it, in the format of lcov.
    file: String,
    functions: Covered,
    lines: Covered,
    /// Ways on from conditions and loops, two each.
    branches: Covered,
    /// Lines that never ran.
    missed: Vec<u32>,
}

/// A part and the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Covered {
    hit: usize,
    all: usize,
}

impl Covered {
    fn of<T>(items: impl IntoIterator<Item = T>, hit: impl Fn(&T) -> bool) -> Self {
        items.into_iter().fold(Self { hit: 0, all: 0 }, |Self { hit: before, all }, item| Self {
            hit: before + usize::from(hit(&item)),
            all: all + 1,
        })
    }

    fn text(self, of: &str) -> String {
        let Self { hit, all } = self;
        match all {
            0 => format!("no {of}"),
            _ => format!("{hit} of {all} {of} ({})", share(hit as u64, all as u64)),
        }
    }
}

impl CoverageSummary {
    /// Writes `coverage` of the module `source` to `file`.
    pub fn write(coverage: &Coverage, source: &str, file: &Path) -> Result<Self, CliError> {
        let ways = || coverage.branches.iter().flat_map(|branch| branch.counts.unwrap_or([0, 0]));
        let summary = Self {
            file: file.display().to_string(),
            functions: Covered::of(&coverage.functions, |function| function.calls > 0),
            lines: Covered::of(&coverage.lines, |(_, times)| *times > 0),
            branches: Covered::of(ways(), |times| *times > 0),
            missed: coverage.lines.iter().filter(|(_, n)| *n == 0).map(|(line, _)| *line).collect(),
        };
        let text = summary.lcov(coverage, source);
        fs::write(file, text).map_err(|error| CliError::file(Exit::Failed, file, &error))?;
        Ok(summary)
    }

    fn lcov(&self, coverage: &Coverage, source: &str) -> String {
        let mut text = format!("TN:\nSF:{source}\n");
        let mut put = |line: std::fmt::Arguments<'_>| {
            writeln!(text, "{line}").expect("a string takes all");
        };
        for function in &coverage.functions {
            put(format_args!("FN:{},{}", function.line, function.name));
        }
        for function in &coverage.functions {
            put(format_args!("FNDA:{},{}", function.calls, function.name));
        }
        put(format_args!("FNF:{}\nFNH:{}", self.functions.all, self.functions.hit));
        for (block, branch) in coverage.branches.iter().enumerate() {
            for way in 0..2 {
                // A dash: the condition itself never ran.
                let times = branch.counts.map(|counts| counts[way].to_string());
                let times = times.unwrap_or_else(|| "-".to_owned());
                put(format_args!("BRDA:{},{block},{way},{times}", branch.line));
            }
        }
        put(format_args!("BRF:{}\nBRH:{}", self.branches.all, self.branches.hit));
        for (line, times) in &coverage.lines {
            put(format_args!("DA:{line},{times}"));
        }
        put(format_args!("LF:{}\nLH:{}", self.lines.all, self.lines.hit));
        put(format_args!("end_of_record"));
        text
    }

    pub fn text(&self) -> String {
        let parts = [
            self.lines.text("lines"),
            self.branches.text("branches"),
            self.functions.text("functions"),
        ];
        let missed = match self.missed.as_slice() {
            [] => String::new(),
            [line] => format!("; line {line} never ran"),
            missed => format!("; lines {} never ran", ranges(missed)),
        };
        format!("coverage: {}{missed}\n          {}", parts.join(", "), self.file)
    }
}

/// Ascending numbers as text: 3, 5-7.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_lines_are_a_range() {
        assert_eq!(ranges(&[3, 5, 6, 7, 9]), "3, 5-7, 9");
        assert_eq!(Covered { hit: 2, all: 3 }.text("lines"), "2 of 3 lines (66.6 %)");
    }
}
