//! `sim`: scenarios on a virtual clock, with seeds.

pub(super) mod run;
mod scenario;
pub(super) mod trace;

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{Document, Row, raw},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_simulation::script;
use run::Seeds;
use serde::Serialize;
use std::{num::NonZeroUsize, thread};

#[derive(Debug, Subcommand)]
pub enum Sim {
    /// The scenarios that come with this program
    Ls,
    /// A scenario's text: something to begin one's own with
    Show {
        /// The scenario
        #[arg(add = ArgValueCandidates::new(scenario::names))]
        scenario: String,
    },
    /// Play a scenario: whole validators and runners in memory, on a clock of their own
    ///
    /// After every block of every validator invariants are checked: one chain, one root, the same
    /// receipts and presence, no money made or lost, one result a job, no standstill. Exits with 7
    /// where one does not hold, and says how to replay it. A seed is a run: the same one gives the
    /// same digest on every machine.
    Run(Run),
    /// Play a scenario again, and show each block and each fault
    Replay(Replay),
}

/// `sim run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The scenario: a name, as `sim ls` has them, or a YAML file
    #[arg(add = ArgValueCandidates::new(scenario::names))]
    scenario: String,
    /// What everything is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 0, conflicts_with = "seeds")]
    #[arg(env = "COWBOYCTL_SEED", hide_env_values = true)]
    seed: u64,
    /// Play it with each of these seeds, both ends included
    #[arg(long, value_name = "A..B", env = "COWBOYCTL_SEEDS", hide_env_values = true)]
    seeds: Option<Seeds>,
    /// Seeds at a time [default: as many as there are cores]
    #[arg(long, value_name = "N", env = "COWBOYCTL_PARALLEL", hide_env_values = true)]
    parallel: Option<NonZeroUsize>,
}

/// `sim replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// The scenario: a name, as `sim ls` has them, or a YAML file
    #[arg(add = ArgValueCandidates::new(scenario::names))]
    scenario: String,
    /// The seed
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    #[arg(env = "COWBOYCTL_SEED", hide_env_values = true)]
    seed: u64,
    /// End at this height
    #[arg(long, value_name = "HEIGHT", env = "COWBOYCTL_UNTIL", hide_env_values = true)]
    until: Option<u64>,
}

impl Sim {
    /// Runs the command.
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Ls => cx.ui.list(&entries()?),
            Self::Show { scenario } => match script::named(&scenario) {
                Some(found) if cx.ui.is_for_people() => raw(found.yaml.as_bytes()),
                Some(found) => cx.ui.document(&Entry::of(found)?),
                None => Err(scenario::unknown(&scenario)),
            },
            Self::Run(run) => {
                let (name, script) = scenario::load(&run.scenario)?;
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

/// A scenario in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Entry {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    name: &'static str,
    /// What it shows.
    about: String,
    /// Validators.
    validators: usize,
    /// Runners.
    runners: usize,
    /// The height that has to be reached.
    blocks: u64,
    /// What goes wrong.
    faults: Vec<String>,
    /// Its text.
    #[cfg_attr(test, schema(value_type = String))]
    yaml: &'static str,
}

impl Entry {
    fn of(scenario: &script::Scenario) -> Result<Self, CliError> {
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

fn entries() -> Result<Vec<Entry>, CliError> {
    script::all().iter().map(Entry::of).collect()
}

impl Row for Entry {
    const HEADER: &'static [&'static str] =
        &["scenario", ">validators", ">runners", ">blocks", "what it shows"];
    const LEAST: &'static [&'static str] = &["blocks", "runners", "validators"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.to_owned(),
            self.validators.to_string(),
            self.runners.to_string(),
            self.blocks.to_string(),
            self.about.clone(),
        ]
    }

    fn id(&self) -> String {
        self.name.to_owned()
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        self.yaml.trim_end().to_owned()
    }

    fn id(&self) -> String {
        self.name.to_owned()
    }
}
