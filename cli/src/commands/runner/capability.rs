//! `runner capability`: what of its registration a runner does not do for a while.

use super::{
    registration::registered,
    steer::{self, Steer},
};
use crate::{
    complete,
    context::Context,
    error::{CliError, Exit},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::api::types::CapabilitiesRequest;
use cowboy_engine::registry::{Ability, AbilityError};

#[derive(Debug, Subcommand)]
pub enum Capability {
    /// Have a runner do again what it had withdrawn
    Add(Labels),
    /// Have a runner withdraw some of what it is registered for, until it ends
    ///
    /// Its validators are told, also when it connects again. While a job that needs it waits to be
    /// drawn, the runner is not present for any job. One that is drawn on it all the same it
    /// rejects, and the job is drawn again in the block that has the rejection. Jobs in hand go on.
    /// To stop offering it on the chain: `runner update`.
    Remove(Labels),
}

/// A runner and labels.
#[derive(Debug, Args)]
pub struct Labels {
    /// The runner: a name or an address
    #[arg(add = ArgValueCandidates::new(complete::runners))]
    runner: String,
    /// What: a kind of jobs, llm:MODEL, mcp:SERVER, tee or pool:NAME
    #[arg(required = true, value_name = "LABEL", value_parser = label)]
    #[arg(add = ArgValueCandidates::new(complete::abilities))]
    labels: Vec<Ability>,
}

fn label(text: &str) -> Result<Ability, String> {
    text.parse().map_err(|error: AbilityError| error.to_string())
}

impl Capability {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (labels, adds) = match self {
            Self::Add(labels) => (labels, true),
            Self::Remove(labels) => (labels, false),
        };
        let Labels { runner, labels } = labels;
        // A runner in a process of its own answers also while its devnet is down.
        if let Ok(entry) = entry(cx, &runner).await {
            let (capabilities, known) = (registered(&entry)?, &entry.name);
            if let Some(label) = labels.iter().find(|label| !capabilities.has(label)) {
                let what = format!("runner `{known}` is not registered for `{label}`");
                return Err(CliError::new(Exit::Conflict, what).hint(format!(
                    "see what it is registered for: cowboyctl runner show {known}; change it: \
                     cowboyctl runner update"
                )));
            }
        }
        let labels: Vec<String> = labels.iter().map(Ability::to_string).collect();
        let request = match adds {
            true => CapabilitiesRequest { add: labels, remove: Vec::new() },
            false => CapabilitiesRequest { add: Vec::new(), remove: labels },
        };
        steer::run(cx, &runner, Steer::Change(request)).await
    }
}

/// What the devnet says of a runner.
async fn entry(cx: &Context, runner: &str) -> Result<cowboy_devnet::api::types::Runner, CliError> {
    Ok(cx.client()?.runner(&steer::known_as(cx, runner.to_owned())?).await?)
}
