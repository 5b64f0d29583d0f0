//! `actor test`: runs a module's own tests on a chain with a virtual height, without a devnet.

use super::{
    coverage::CoverageSummary,
    module::{BLOCK, ModuleSource},
    property::{self, PropertyOptions},
    pytest::{self, PytestOptions},
    python,
};
use crate::{
    args,
    context::Context,
    dashboard::quoted,
    error::{CliError, Exit},
    output::Document,
};
use clap::Args;
use cowboy_devnet::types::{AddressText, AmountText, HashText, Usage};
use cowboy_engine::{
    actor::{
        Budget, Campaign, Error, ErrorKind, Handler, Property, PropertyReport, TestReport, testing,
    },
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
    property: PropertyOptions,
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
    /// A test with parameters has the usage of its costliest input, or of the one that failed.
    usage: Usage,
    /// Why it failed: the error, its place and the call stack.
    error: Option<Failed>,
    /// What was printed and logged.
    log: Vec<String>,
    /// The height at which it ended.
    height: u64,
    /// Timers that fired or were removed.
    fires: Vec<TestFire>,
    /// Inputs on which a test with parameters ran, until one failed; absent for other tests.
    inputs: Option<u64>,
    /// Inputs that `mock.assume` discarded.
    discards: Option<u64>,
    /// Steps by which the failing input became simpler.
    shrinks: Option<u64>,
    /// The seed of the inputs.
    seed: Option<u64>,
    /// The simplest input that fails.
    arguments: Vec<TestArgument>,
    /// The command that repeats the failure.
    repeat: Option<String>,
}

/// An argument of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TestArgument {
    /// The parameter.
    name: String,
    /// The argument, as an expression of the language.
    value: String,
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
            let asked = (self.filter, self.coverage);
            return pytest::run(cx, &self.file, asked, self.python, self.property).await;
        }
        if self.coverage.is_some() && self.file.as_os_str() == "-" {
            let what = "--coverage: standard input has no file name for the report";
            return Err(CliError::new(Exit::Usage, what).hint("save the module to a file"));
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
        let (campaign, has_new_seed) = self.property.campaign();
        let (mut tests, mut new_seed) = (Vec::new(), has_new_seed.then_some(campaign.seed));
        for test in module.tests().into_iter().filter(|test| test.name.contains(wanted)) {
            let case = match Property::of(&module, &test) {
                Ok(None) => TestCase::new(&source, &test, suite.test(&test.name, budget)),
                Ok(Some(property)) => {
                    // Before the first, so that a run that is interrupted can be repeated.
                    if let Some(seed) = new_seed.take() {
                        cx.ui.note(&format!("seed {seed}"));
                    }
                    let checked = property::check(cx, &suite, property, budget, campaign).await?;
                    let repeat = self.repeat(&test.name, campaign);
                    TestCase::of_property(&source, &test, (checked, campaign.seed, repeat))
                }
                Err(error) => {
                    let report = TestReport { error: Some(error), ..TestReport::of(&test.name) };
                    TestCase::new(&source, &test, report)
                }
            };
            tests.push(case);
        }
        if tests.is_empty() {
            let what = format!("{}: no function test_*{wanted}*", source.file());
            let error = CliError::new(Exit::NotFound, what);
            return Err(error.hint("a test is a function test_*"));
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

impl Test {
    /// The command that repeats the inputs of a test.
    fn repeat(&self, name: &str, campaign: Campaign) -> String {
        let Campaign { inputs, seed } = campaign;
        let file = quoted(&self.file.display().to_string());
        let mut command = format!("cowboyctl actor test {file} --filter {name}");
        let mut add = |option: String| command.push_str(&option);
        if let Some(cycles) = self.cycles {
            add(format!(" --cycles {cycles}"));
        }
        if self.policy != Policy::Eip1559 {
            add(format!(" --policy {}", self.policy.name()));
        }
        if self.charge {
            add(" --charge".to_owned());
        }
        if self.balance != Wei::ZERO {
            add(format!(" --balance {}", self.balance));
        }
        add(format!(" --fuzz {inputs} --seed {seed}"));
        command
    }
}

impl TestCase {
    fn new(source: &ModuleSource, test: &Handler, report: TestReport) -> Self {
        Self {
            name: test.name.clone(),
            passed: report.error.is_none(),
            line: test.at.line,
            usage: report.usage.into(),
            error: report.error.map(|error| Failed::new(source, error)),
            log: report.log,
            height: report.height.get(),
            fires: report.fires.into_iter().map(Into::into).collect(),
            inputs: None,
            discards: None,
            shrinks: None,
            seed: None,
            arguments: Vec::new(),
            repeat: None,
        }
    }

    fn of_property(
        source: &ModuleSource,
        test: &Handler,
        (checked, seed, repeat): (PropertyReport, u64, String),
    ) -> Self {
        let PropertyReport { report, inputs, discards, shrinks, arguments } = checked;
        let repeat = report.error.is_some().then_some(repeat);
        let argument = |(name, value)| TestArgument { name, value };
        Self {
            inputs: Some(inputs),
            discards: Some(discards),
            shrinks: Some(shrinks),
            seed: Some(seed),
            arguments: arguments.into_iter().map(argument).collect(),
            repeat,
            ..Self::new(source, test, report)
        }
    }

    /// What the text says of a property test's inputs.
    fn of_inputs(&self) -> Vec<String> {
        let Some((repeat, inputs)) = self.repeat.as_ref().zip(self.inputs) else {
            return Vec::new();
        };
        let again = format!("        again: {repeat}");
        if self.arguments.is_empty() {
            return vec![again];
        }
        let argument = |of: &TestArgument| format!("          {} = {}", of.name, of.value);
        let of = self.seed.unwrap_or_default();
        let steps = match self.shrinks.unwrap_or_default() {
            0 => "it could not be simpler".to_owned(),
            1 => "simplified in 1 step".to_owned(),
            steps => format!("simplified in {steps} steps"),
        };
        let mut lines = vec![format!("        with input {inputs} of seed {of}, {steps}:")];
        lines.extend(self.arguments.iter().map(argument));
        lines.push(again);
        lines
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
            let most = match (test.passed, test.inputs) {
                (true, Some(1)) => " at most, 1 input".to_owned(),
                (true, Some(inputs)) => format!(" at most, {inputs} inputs"),
                _ => String::new(),
            };
            lines.push(format!("{verdict}  {}  {} cycles{most}", test.name, test.usage.cycles));
            if let Some(error) = &test.error {
                let place = error.at.as_deref().unwrap_or(&self.file);
                lines.push(format!("        {place}: {}", error.message));
                lines.extend(error.stack.iter().map(|frame| format!("          in {frame}")));
                lines.extend(test.log.iter().map(|line| format!("        log: {line}")));
                lines.extend(test.of_inputs());
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
