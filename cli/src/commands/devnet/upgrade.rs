//! `devnet upgrade`: another program for a validator's own process.

use crate::{
    complete,
    context::Context,
    error::{CliError, Exit},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use std::{fs, path::PathBuf};

/// `devnet upgrade`.
#[derive(Debug, Args)]
pub struct Upgrade {
    /// The validator: a name or an address
    #[arg(value_name = "NODE", add = ArgValueCandidates::new(complete::validators))]
    validator: String,
    /// The `cowboyctl` that it runs from now on
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
}

impl Upgrade {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let path = fs::canonicalize(&self.binary).map_err(|error| {
            CliError::new(Exit::NotFound, format!("{}: {error}", self.binary.display()))
        })?;
        let Some(binary) = path.to_str() else {
            let what = format!("{}: its path is not UTF-8", path.display());
            return Err(CliError::new(Exit::Usage, what));
        };
        cx.ui.document(&cx.client()?.upgrade_validator(&self.validator, binary).await?)
    }
}
