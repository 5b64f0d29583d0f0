//! `actor test`: runs a module's own tests on a chain with a virtual height, without a devnet.

use super::{
    coverage::CoverageSummary,
    module::{BLOCK, ModuleSource},
    pytest::{self, PytestOptions},
    python,
};
use crate::{
    args,
    context::Context,
    error::{CliError, Exit},
    output::Document,
};
use clap::Args;
use cowboy_devnet::types::{AddressText, AmountText, HashText, Usage};
use cowboy_engine::{
    actor::{Budget, Error, ErrorKind, testing},
    chain::{Setup, Suite},
    primitives::Wei,
    timer::Policy,
};
use serde::Serialize;
use std::path::PathBuf;

/// `actor test`.
#[derive(Debug, Args)]
pub struct Test {
    /// The module's file, - for the standard input; or tests in Python: a file or a folder
    file: PathBuf,
    /// Only tests whose names contain this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Maximum cycles per test [default: what a block holds]
    #[arg(long, value_name = "N")]
    cycles: Option<u64>,
    /// Timer policy: eip1559, fifo or gba-auction; a test sets its own with mock.policy
    #[arg(long, value_name = "POLICY", default_value = "eip1559")]
    #[arg(value_parser = args::named("policy", Policy::ALL))]
    policy: Policy,
    /// Make fires and callbacks cost what they cost on a new devnet, as mock.charge does
    #[arg(long)]
    charge: bool,
    /// The actor's balance at the beginning of each test: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    balance: Wei,
    /// Write to this file how much of the module the tests ran, in the format of lcov. For an
    /// actor in Python, `coverage` measures it, which pip installs
    #[arg(long, value_name = "FILE")]
    coverage: Option<PathBuf>,
    #[command(flatten)]
    python: PytestOptions,
}

/// The results of a module's tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Tested {
    file: String,
    /// The timer policy that tests begin with.
    policy: &'static str,
    passed: usize,
    failed: usize,
    tests: Vec<TestCase>,
    /// How much of the module they ran, with --coverage.
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<CoverageSummary>,
}

/// The result of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TestCase {
    name: String,
    passed: bool,
    /// The line that defines the test.
    line: u32,
    usage: Usage,
    /// Why it failed: the error, its place and the call stack.
    error: Option<Failed>,
    /// What was printed and logged.
    log: Vec<String>,
    /// The height at which it ended.
    height: u64,
    /// Timers that fired or were removed.
    fires: Vec<TestFire>,
}

/// A timer that fired in a test or was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TestFire {
    timer_id: HashText,
    /// Its owner.
    actor: AddressText,
    /// The handler; empty if none was called.
    handler: String,
    height: u64,
    /// `fired`, `failed`, `expired` or `unpaid`.
    outcome: &'static str,
    /// Why it failed or did not fire.
    error: Option<String>,
    cycles: u64,
    cells: u64,
    /// Wei per cycle that the proposer got.
    priority_per_cycle: AmountText,
    /// What the payer paid for the fire.
    charged: AmountText,
    /// Its agent's bid in this block.
    bid: Option<TestBid>,
}

/// An agent's bid, in wei per cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TestBid {
    max_fee_per_cycle: AmountText,
    max_priority_fee_per_cycle: AmountText,
    /// Whether the agent failed, and this is the default bid.
    failed: bool,
}

/// Why a test failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Failed {
    /// The error's name.
    name: String,
    /// What went wrong.
    message: String,
    /// The place, as file:line:column; absent if no place is to blame.
    at: Option<String>,
    /// The call stack: functions with their places, innermost first.
    stack: Vec<String>,
}

impl Test {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        if python::is_python(&self.file) || self.file.is_dir() {
            return pytest::run(cx, &self.file, (self.filter, self.coverage), self.python).await;
        }
        let source = ModuleSource::read(&self.file)?;
        let mut setup = Setup { charge: self.charge, balance: self.balance, ..Setup::default() };
        setup.params.timers.policy = self.policy;
        let (usage, module) = source.load(&setup.params.actors, BLOCK)?;
        let module = if self.coverage.is_some() { module.recorded() } else { module };
        let suite = Suite::new(&source.text, (&usage, &module), &setup);
        let suite = suite.map_err(|error| CliError::failed(error.to_string()))?;
        let budget = Budget { cycles: self.cycles.unwrap_or(BLOCK.cycles), ..BLOCK };
        let wanted = self.filter.as_deref().unwrap_or_default();
        let tests: Vec<TestCase> = module
            .tests()
            .into_iter()
            .filter(|test| test.name.contains(wanted))
            .map(|test| {
                let report = suite.test(&test.name, budget);
                TestCase {
                    name: test.name,
                    passed: report.error.is_none(),
                    line: test.at.line,
                    usage: report.usage.into(),
                    error: report.error.map(|error| Failed::new(&source, error)),
                    log: report.log,
                    height: report.height.get(),
                    fires: report.fires.into_iter().map(Into::into).collect(),
                }
            })
            .collect();
        if tests.is_empty() {
            let what = format!("{}: no function test_*{wanted}*", source.file());
            let error = CliError::new(Exit::NotFound, what);
            return Err(error.hint("a test is a function test_* without arguments"));
        }
        let failed = tests.iter().filter(|test| !test.passed).count();
        let passed = tests.len() - failed;
        let (file, policy) = (source.file(), self.policy.name());
        let coverage = match (&self.coverage, suite.coverage()) {
            (Some(to), Some(coverage)) => Some(CoverageSummary::write(&coverage, &file, to)?),
            _ => None,
        };
        let tested = Tested { file, policy, passed, failed, tests, coverage };
        cx.ui.document(&tested)?;
        if failed > 0 {
            let all = passed + failed;
            return Err(CliError::failed(format!("{failed} of {all} tests failed")));
        }
        Ok(())
    }
}

impl From<testing::Fired> for TestFire {
    fn from(fired: testing::Fired) -> Self {
        let bid = fired.bid.map(|bid| TestBid {
            max_fee_per_cycle: bid.max_fee_per_cycle.into(),
            max_priority_fee_per_cycle: bid.max_priority_fee_per_cycle.into(),
            failed: bid.failed,
        });
        Self {
            timer_id: fired.timer_id.into(),
            actor: fired.actor.into(),
            handler: fired.handler,
            height: fired.height.get(),
            outcome: fired.ending.name(),
            error: (!fired.error.is_empty()).then_some(fired.error),
            cycles: fired.cycles,
            cells: fired.cells,
            priority_per_cycle: fired.priority_per_cycle.into(),
            charged: fired.charged.into(),
            bid,
        }
    }
}

impl Failed {
    fn new(source: &ModuleSource, error: Error) -> Self {
        let name = match &error.kind {
            // The text begins with the name of the chain's error.
            ErrorKind::Undone(text) => text.split(':').next().unwrap_or_default(),
            kind => kind.name(),
        };
        let (name, at) = (name.to_owned(), error.at.map(|at| source.place(at)));
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
        lines.extend(self.coverage.iter().map(CoverageSummary::text));
        lines.join("\n")
    }

    fn id(&self) -> String {
        let failed = self.tests.iter().filter(|test| !test.passed);
        let names: Vec<_> = failed.map(|test| test.name.as_str()).collect();
        names.join("\n")
    }
}
