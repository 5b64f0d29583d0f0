//! `actor test --fuzz`: how many inputs property tests run, from which seed, and their run.

use crate::{context::Context, error::CliError};
use clap::Args;
use cowboy_engine::{
    actor::{Budget, Campaign, Property, PropertyReport},
    chain::Suite,
};
use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{MissedTickBehavior, interval};

/// Inputs without `--fuzz`: few enough to run with every test.
const FEW: u64 = 32;
/// The seed without `--fuzz`, so that a run in CI is the same as one before.
const FIXED_SEED: u64 = 0;
/// Maximum number of inputs: a day's work at a hundred a second.
const MAX_INPUTS: u64 = 10_000_000;
/// How often the number of inputs so far is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// Options for tests with parameters.
#[derive(Debug, Clone, Copy, Args)]
pub struct PropertyOptions {
    /// Run each test with parameters on this many inputs, 1000 without N [default: 32]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1000")]
    #[arg(value_parser = inputs)]
    fuzz: Option<u64>,
    /// The seed of the inputs, decimal or 0x… [default: 0; with --fuzz, a new one]
    #[arg(long, value_name = "NUMBER", value_parser = seed)]
    seed: Option<u64>,
}

/// Stops a run when it is dropped, because its command is interrupted.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl PropertyOptions {
    /// The inputs of the tests, and whether their seed is new.
    pub fn campaign(self) -> (Campaign, bool) {
        let inputs = self.fuzz.unwrap_or(FEW);
        let is_new = self.fuzz.is_some() && self.seed.is_none();
        let seed = match self.seed {
            Some(seed) => seed,
            None if is_new => new_seed(),
            None => FIXED_SEED,
        };
        (Campaign { inputs, seed }, is_new)
    }

    /// How many inputs `--fuzz` asks for.
    pub const fn fuzz(self) -> Option<u64> {
        self.fuzz
    }

    /// The seed that is asked for.
    pub const fn seed(self) -> Option<u64> {
        self.seed
    }
}

/// A seed that differs from run to run; short, because people type it.
fn new_seed() -> u64 {
    // The standard library seeds its hashers at random.
    u64::from(RandomState::new().hash_one(()) as u32)
}

fn inputs(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX_INPUTS).contains(number));
    number.ok_or_else(|| {
        format!("`{text}` is not a number of inputs: expected 1 to {MAX_INPUTS}; FILE comes first")
    })
}

fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| {
        format!("`{text}` is not a seed: expected a number of at most 64 bits, 12345 or 0x3039")
    })
}

/// Runs a property test, until it is done or the command is interrupted.
pub async fn check(
    cx: &Context,
    suite: &Suite,
    property: Property,
    budget: Budget,
    campaign: Campaign,
) -> Result<PropertyReport, CliError> {
    let (name, inputs) = (property.name().to_owned(), campaign.inputs);
    let progress = cx.ui.progress(format!("{name}: {inputs} inputs"));
    let (stop, runs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let _stopped_on_drop = StopOnDrop(stop.clone());
    let (suite, counted) = (suite.clone(), runs.clone());
    let mut run = tokio::task::spawn_blocking(move || {
        suite.property(&property, budget, campaign, || {
            counted.fetch_add(1, Ordering::Relaxed);
            stop.load(Ordering::Relaxed)
        })
    });
    let mut ticks = interval(SHOWN_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let done = loop {
        tokio::select! {
            done = &mut run => break done,
            _ = ticks.tick() => {
                let ran = runs.load(Ordering::Relaxed);
                progress.show(format!("{name}: {ran} runs for {inputs} inputs"));
            }
        }
    };
    let report = done.map_err(|error| CliError::failed(format!("{name}: {error}")))?;
    report.ok_or_else(CliError::interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_numbers_are_read_as_people_write_them() {
        assert_eq!(
            ["0", "12345", "0x3039", "0xffffffffffffffff"].map(|text| seed(text).ok()),
            [Some(0), Some(12345), Some(12345), Some(u64::MAX)]
        );
        for text in ["", "-1", "0x", "1e3", "18446744073709551616"] {
            assert!(seed(text).is_err(), "{text}");
        }
        assert_eq!(["1", "10000000"].map(|text| inputs(text).ok()), [Some(1), Some(10_000_000)]);
        for text in ["", "0", "10000001", "counter.star"] {
            assert!(inputs(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_seed_is_fixed_given_or_new() {
        let of = |fuzz, seed| PropertyOptions { fuzz, seed }.campaign();
        assert_eq!(of(None, None), (Campaign { inputs: 32, seed: 0 }, false));
        assert_eq!(of(None, Some(7)), (Campaign { inputs: 32, seed: 7 }, false));
        assert_eq!(of(Some(9), Some(7)), (Campaign { inputs: 9, seed: 7 }, false));
        let (first, is_new) = of(Some(9), None);
        assert!(is_new && u32::try_from(first.seed).is_ok());
        assert!((0..4).any(|_| of(Some(9), None).0.seed != first.seed));
    }
}
