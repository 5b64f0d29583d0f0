//! Property tests: a test with parameters runs on many inputs, and one that makes it fail is
//! shrunk.
//!
//! Everything follows from the seed, the test's name and the module: input number n of a test is
//! the same on every machine, however many others run. The first is the simplest, and sizes grow
//! from there.

mod shrink;

use super::{
    error::{Error, ErrorKind, Position},
    input::{Parameters, Recorded, TestInput},
    module::{Handler, Module, TestReport},
};
use crate::primitives::keccak256;
use shrink::Shrinker;

/// Domain of the hash that seeds an input.
const DOMAIN: &[u8] = b"cowboy-property-input/v1";
/// Discarded inputs for each one that runs, at most.
const MAX_DISCARDS: u64 = 10;
/// Discarded inputs that are accepted in any case.
const MIN_DISCARDS: u64 = 100;
/// Sizes: the first input's, and the largest.
const SIZES: (u64, u64) = (4, 100);

/// How many inputs property tests run, and from which seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Campaign {
    pub inputs: u64,
    pub seed: u64,
}

/// A test of a module that has parameters.
#[derive(Clone, Debug)]
pub struct Property {
    name: String,
    at: Position,
    parameters: Parameters,
}

/// How a property test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyReport {
    /// The run of the simplest input that fails; if none does, the one that used most cycles.
    pub report: TestReport,
    /// Inputs that ran, those of shrinking excluded.
    pub inputs: u64,
    /// Inputs that `mock.assume` discarded.
    pub discards: u64,
    /// Steps by which the failing input became simpler.
    pub shrinks: u64,
    /// The failing input: parameters, and their arguments as expressions of the language.
    pub arguments: Vec<(String, String)>,
}

impl Property {
    /// The property of a test that has parameters besides the context. The error is at the first
    /// parameter for which no argument can be generated.
    pub fn of(module: &Module, test: &Handler) -> Result<Option<Self>, Error> {
        let parameters = module.parameters(&test.name)?;
        let (name, at) = (test.name.clone(), test.at);
        Ok((!parameters.listed.is_empty()).then_some(Self { name, at, parameters }))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the test on inputs until one fails, then on simpler ones that fail in the same way.
    /// Ends without a report when `run` returns none.
    pub fn check(
        &self,
        campaign: Campaign,
        mut run: impl FnMut(&TestInput) -> Option<TestReport>,
    ) -> Option<PropertyReport> {
        let Campaign { inputs: wanted, seed } = campaign;
        let most = wanted.saturating_mul(MAX_DISCARDS).max(MIN_DISCARDS);
        let (mut inputs, mut discards, mut costliest) = (0, 0, None::<TestReport>);
        while inputs < wanted {
            let (arguments, made) = self.input(seed, inputs + discards);
            let report = run(&arguments)?;
            if report.discarded {
                discards += 1;
                if discards > most {
                    let report = self.too_many_discards(report, inputs, discards);
                    let arguments = Vec::new();
                    return Some(PropertyReport {
                        report,
                        inputs,
                        discards,
                        shrinks: 0,
                        arguments,
                    });
                }
                continue;
            }
            inputs += 1;
            if report.error.is_some() {
                let (report, arguments, shrinks) = self.shrink((report, arguments, made), run);
                let names = self.parameters.listed.iter().map(|(name, _)| name.clone());
                let arguments = names.zip(arguments.literals()).collect();
                return Some(PropertyReport { report, inputs, discards, shrinks, arguments });
            }
            let cycles = |report: &TestReport| report.usage.cycles();
            if costliest.as_ref().is_none_or(|known| cycles(known) < cycles(&report)) {
                costliest = Some(report);
            }
        }
        let report = costliest.unwrap_or_else(|| TestReport::of(&self.name));
        Some(PropertyReport { report, inputs, discards, shrinks: 0, arguments: Vec::new() })
    }

    /// An input by its number, from 0.
    fn input(&self, seed: u64, number: u64) -> (TestInput, Recorded) {
        if number == 0 {
            return self.parameters.replayed(&[]);
        }
        let number_bytes = number.to_be_bytes();
        let hash = keccak256(&[DOMAIN, &seed.to_be_bytes(), &number_bytes, self.name.as_bytes()]);
        let first = hash.0.first_chunk().copied().unwrap_or_default();
        let size = SIZES.0.saturating_add(number).min(SIZES.1);
        self.parameters.drawn(u64::from_be_bytes(first), size)
    }

    fn shrink(
        &self,
        (report, arguments, made): (TestReport, TestInput, Recorded),
        mut run: impl FnMut(&TestInput) -> Option<TestReport>,
    ) -> (TestReport, TestInput, u64) {
        let failure = report.error.as_ref().map(signature);
        let mut best = (report.clone(), arguments);
        let attempt = |choices: &[u128], made_before: &Recorded| {
            let (arguments, made) = self.parameters.replayed(choices);
            if !made.is_simpler_than(made_before) {
                return None;
            }
            let report = run(&arguments)?;
            let is_same = report.error.as_ref().map(signature) == failure && !report.discarded;
            is_same.then(|| {
                best = (report, arguments);
                made
            })
        };
        let shrinks = Shrinker::new(made, attempt).finish();
        (best.0, best.1, shrinks)
    }

    fn too_many_discards(&self, report: TestReport, inputs: u64, discards: u64) -> TestReport {
        let all = inputs + discards;
        let what = format!(
            "mock.assume discarded {discards} of {all} inputs: make inputs that fit, for example \
             with mock.bound, or assume less"
        );
        let error = ErrorKind::Failed(what).at(self.at);
        TestReport { error: Some(error), discarded: false, ..report }
    }
}

/// What tells one failure from another: the error's name and its place. An exhausted resource may
/// run out anywhere, so its place is that in the test itself.
fn signature(error: &Error) -> (String, Option<Position>) {
    let name = match &error.kind {
        ErrorKind::Undone(text) => text.split(':').next().unwrap_or_default(),
        kind => kind.name(),
    };
    let at = match error.kind {
        ErrorKind::OutOfCycles { .. }
        | ErrorKind::OutOfCells { .. }
        | ErrorKind::OutOfMemory { .. }
        | ErrorKind::StackOverflow { .. } => error.stack.first().map(|frame| frame.at),
        _ => error.at,
    };
    (name.to_owned(), at)
}
