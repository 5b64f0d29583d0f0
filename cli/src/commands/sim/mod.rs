//! `sim`: runs scenarios on a virtual clock, with seeds.

pub(super) mod run;
mod scenario;
pub(super) mod trace;

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, Row, columns, raw},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_simulation::script;
use run::Seeds;
use serde::Serialize;
use std::{num::NonZeroUsize, path::PathBuf, thread};

#[derive(Debug, Subcommand)]
pub enum Sim {
    /// List the scenarios that come with this program
    Ls,
    /// Print a scenario's text, as a start for your own
    Show {
        /// The scenario
        #[arg(add = ArgValueCandidates::new(scenario::names))]
        scenario: String,
    },
    /// Play a scenario: whole validators and runners in memory, on a virtual clock
    ///
    /// After every block of every validator, invariants are checked: one chain, one root, the same
    /// receipts and presence, no money made or lost, one result per job, no standstill. If one does
    /// not hold, it exits with 7 and prints how to replay it. A run is determined by its seed: the
    /// same seed gives the same digest on every machine.
    Run(Run),
    /// Play a scenario again, and show each block and each fault
    Replay(Replay),
}

/// `sim run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The scenario: a name from `sim ls`, or a YAML file
    #[arg(add = ArgValueCandidates::new(scenario::names))]
    scenario: String,
    /// The seed of all randomness
    #[arg(long, value_name = "NUMBER", default_value_t = 0, conflicts_with = "seeds")]
    seed: u64,
    /// Play it with each of these seeds, both ends included
    #[arg(long, value_name = "A..B")]
    seeds: Option<Seeds>,
    /// Number of seeds to play at the same time [default: the number of cores]
    #[arg(long, value_name = "N")]
    parallel: Option<NonZeroUsize>,
    /// Write the run's story to this file, a page for a browser
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    html: Option<PathBuf>,
}

/// `sim replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// The scenario: a name from `sim ls`, or a YAML file
    #[arg(add = ArgValueCandidates::new(scenario::names))]
    scenario: String,
    /// The seed
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// End at this height
    #[arg(long, value_name = "HEIGHT")]
    until: Option<u64>,
}

impl Sim {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Ls => {
                let all = script::all().iter().map(ListedScenario::of);
                cx.ui.list(&all.collect::<Result<Vec<_>, _>>()?)
            }
            Self::Show { scenario } => match script::named(&scenario) {
                Some(found) if cx.ui.is_for_people() => raw(found.yaml.as_bytes()),
                Some(found) => cx.ui.document(&ListedScenario::of(found)?),
                None => Err(scenario::unknown(&scenario)),
            },
            Self::Run(run) => {
                let (name, script) = scenario::load(&run.scenario)?;
                if let Some(page) = &run.html {
                    return run::told(cx, &name, &script, run.seed, page);
                }
                let seeds = run.seeds.unwrap_or(Seeds::one(run.seed));
                let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
                run::all(cx, &name, &script, seeds, run.parallel.unwrap_or_else(cores))
            }
            Self::Replay(replay) => {
                let (name, script) = scenario::load(&replay.scenario)?;
                trace::show(cx, &name, &script, replay.seed, replay.until)
            }
        }
    }
}

/// A listed scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListedScenario {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    name: &'static str,
    /// What it demonstrates.
    about: String,
    /// Number of validators.
    validators: usize,
    /// Number of runners.
    runners: usize,
    /// The height that has to be reached.
    blocks: u64,
    /// The faults that occur.
    faults: Vec<String>,
    /// Its text.
    #[cfg_attr(test, schema(value_type = String))]
    yaml: &'static str,
}

impl ListedScenario {
    fn of(scenario: &script::LibraryScenario) -> Result<Self, CliError> {
        let read = scenario.script();
        let script = read.map_err(|error| CliError::new(Exit::Usage, error.to_string()))?;
        Ok(Self {
            name: scenario.name,
            about: script.about,
            validators: script.validators,
            runners: script.runners,
            blocks: script.blocks,
            faults: script.faults.iter().map(ToString::to_string).collect(),
            yaml: scenario.yaml,
        })
    }
}

impl Row for ListedScenario {
    columns! { self;
        "scenario" => self.name.to_owned(),
        ">validators" => self.validators.to_string(),
        ">runners" => self.runners.to_string(),
        ">blocks" => self.blocks.to_string(),
        "what it shows" => self.about.clone(),
    }
    const LEAST: &'static [&'static str] = &["blocks", "runners", "validators"];

    fn id(&self) -> String {
        self.name.to_owned()
    }
}

impl Document for ListedScenario {
    fn text(&self) -> String {
        self.yaml.trim_end().to_owned()
    }

    fn id(&self) -> String {
        self.name.to_owned()
    }
}
