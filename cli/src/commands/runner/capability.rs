//! `runner capability`: withdraws and restores capabilities of a running runner.

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
use cowboy_devnet::types::CapabilitiesRequest;
use cowboy_engine::registry::{Ability, AbilityError};

#[derive(Debug, Subcommand)]
pub enum Capability {
    /// Restore capabilities that a runner has withdrawn
    Add(Labels),
    /// Withdraw some of a runner's registered capabilities, until it ends
    ///
    /// Its validators are told, also when it reconnects. While a job that needs a withdrawn
    /// capability waits for its draw, the runner is not present for any job. If it is drawn for
    /// such a job anyway, it rejects it, and the job is drawn again in the block that has the
    /// rejection. Current jobs continue. To stop offering the capability on the chain: `runner
    /// update`.
    Remove(Labels),
}

/// A runner and labels.
#[derive(Debug, Args)]
pub struct Labels {
    /// The runner: a name or an address
    #[arg(add = ArgValueCandidates::new(complete::runners))]
    runner: String,
    /// The capability: a kind of jobs, llm:MODEL, mcp:SERVER, tee or pool:NAME
    #[arg(required = true, value_name = "LABEL", value_parser = label)]
    #[arg(add = ArgValueCandidates::new(complete::abilities))]
    labels: Vec<Ability>,
}

fn label(text: &str) -> Result<Ability, String> {
    text.parse().map_err(|error: AbilityError| error.to_string())
}

impl Capability {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (labels, adds) = match self {
            Self::Add(labels) => (labels, true),
            Self::Remove(labels) => (labels, false),
        };
        let Labels { runner, labels } = labels;
        // A runner in its own process answers even while its devnet is down.
        if let Ok(entry) = entry(cx, &runner).await {
            let (capabilities, known) = (registered(&entry)?, &entry.name);
            if let Some(label) = labels.iter().find(|label| !capabilities.has(label)) {
                let what = format!("runner `{known}` is not registered for `{label}`");
                return Err(CliError::new(Exit::Conflict, what).hint(format!(
                    "list its capabilities: cowboyctl runner show {known}; change it: \
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

async fn entry(cx: &Context, runner: &str) -> Result<cowboy_devnet::types::Runner, CliError> {
    Ok(cx.client()?.runner(&steer::known_as(cx, runner.to_owned())?).await?)
}
