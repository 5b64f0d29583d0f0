//! `actor test`: a module's own tests, on a chain with a virtual height, without a devnet.

use super::module::{BLOCK, Source};
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::Document,
};
use clap::Args;
use cowboy_devnet::api::types::Usage;
use cowboy_engine::actor::{Budget, Error, Params};
use serde::Serialize;
use std::path::PathBuf;

/// `actor test`.
#[derive(Debug, Args)]
pub struct Test {
    /// The module's file; - for the standard input
    file: PathBuf,
    /// Only tests whose names contain this
    #[arg(long, value_name = "TEXT", env = "COWBOYCTL_FILTER", hide_env_values = true)]
    filter: Option<String>,
    /// Cycles that a test may use [default: what a block holds]
    #[arg(long, value_name = "N", env = "COWBOYCTL_CYCLES", hide_env_values = true)]
    cycles: Option<u64>,
}

/// What came of a module's tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Tested {
    file: String,
    passed: usize,
    failed: usize,
    tests: Vec<TestCase>,
}

/// What came of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TestCase {
    name: String,
    passed: bool,
    /// Where the test is defined.
    line: u32,
    usage: Usage,
    /// Why it failed: what, where, and who called whom.
    error: Option<Failed>,
    /// What was printed and logged.
    log: Vec<String>,
}

/// Why a test failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Failed {
    /// The error's name.
    name: &'static str,
    /// What went wrong.
    message: String,
    /// Where, as file:line:column; absent where no place is to blame.
    at: Option<String>,
    /// Functions under evaluation with their places, the innermost first.
    stack: Vec<String>,
}

impl Test {
    /// Runs the command.
    pub fn run(&self, cx: &Context) -> Result<(), CliError> {
        let source = Source::read(&self.file)?;
        let params = Params::default();
        let (_, module) = source.load(&params, BLOCK)?;
        let budget = Budget { cycles: self.cycles.unwrap_or(BLOCK.cycles), ..BLOCK };
        let wanted = self.filter.as_deref().unwrap_or_default();
        let tests: Vec<TestCase> = module
            .tests()
            .into_iter()
            .filter(|test| test.name.contains(wanted))
            .map(|test| {
                let report = module.test(&params, &test.name, budget);
                TestCase {
                    name: test.name,
                    passed: report.error.is_none(),
                    line: test.at.line,
                    usage: report.usage.into(),
                    error: report.error.map(|error| Failed::new(&source, error)),
                    log: report.log,
                }
            })
            .collect();
        if tests.is_empty() {
            let what = format!("{}: no function test_*{wanted}*", source.file());
            let error = CliError::new(Exit::NotFound, what);
            return Err(error.hint("a test is a function without arguments whose name begins so"));
        }
        let failed = tests.iter().filter(|test| !test.passed).count();
        let passed = tests.len() - failed;
        let tested = Tested { file: source.file(), passed, failed, tests };
        cx.ui.document(&tested)?;
        if failed > 0 {
            let all = passed + failed;
            return Err(CliError::failed(format!("{failed} of {all} tests failed")));
        }
        Ok(())
    }
}

impl Failed {
    fn new(source: &Source, error: Error) -> Self {
        let (name, at) = (error.name(), error.at.map(|at| source.place(at)));
        let frames = error.stack.iter().rev();
        let stack = frames.map(|frame| format!("{} at {}", frame.function, source.place(frame.at)));
        let stack = stack.collect();
        let bare = Error { at: None, stack: Vec::new(), kind: error.kind };
        Self { name, message: bare.to_string(), at, stack }
    }
}

impl Document for Tested {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        for test in &self.tests {
            let verdict = if test.passed { "ok    " } else { "FAILED" };
            lines.push(format!("{verdict}  {}  {} cycles", test.name, test.usage.cycles));
            if let Some(error) = &test.error {
                let place = error.at.as_deref().unwrap_or(&self.file);
                lines.push(format!("        {place}: {}", error.message));
                lines.extend(error.stack.iter().map(|frame| format!("          in {frame}")));
                lines.extend(test.log.iter().map(|line| format!("        log: {line}")));
            }
        }
        lines.push(format!("\n{} passed, {} failed", self.passed, self.failed));
        lines.join("\n")
    }

    fn id(&self) -> String {
        let failed = self.tests.iter().filter(|test| !test.passed);
        let names: Vec<_> = failed.map(|test| test.name.as_str()).collect();
        names.join("\n")
    }
}
