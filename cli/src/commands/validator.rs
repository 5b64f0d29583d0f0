//! `validator`: the set and its members' state.

use super::chain::named;
use crate::{
    complete,
    context::Context,
    error::CliError,
    output::{Document, Row, fields},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::api::types::{Validator as Entry, ValidatorState};

#[derive(Debug, Subcommand)]
pub enum Validator {
    /// Every validator, in the set's order
    Ls,
    /// A validator's identities, addresses and runners
    Show {
        /// The validator: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::validators))]
        validator: String,
    },
    /// Stop a validator; it keeps its chain
    Stop {
        /// The validator: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::validators))]
        validator: String,
    },
    /// Start a stopped validator; it catches up
    Start {
        /// The validator: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::validators))]
        validator: String,
    },
}

impl Validator {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        match self {
            Self::Ls => cx.ui.list(&client.validators().await?),
            Self::Show { validator } => cx.ui.document(&client.validator(&validator).await?),
            Self::Stop { validator } => cx.ui.document(&client.stop_validator(&validator).await?),
            Self::Start { validator } => cx.ui.document(&client.start_validator(&validator).await?),
        }
    }
}

/// A state as JSON has it.
pub fn state(state: ValidatorState) -> &'static str {
    match state {
        ValidatorState::Starting => "starting",
        ValidatorState::Running => "running",
        ValidatorState::CatchingUp => "catching_up",
        ValidatorState::Stopped => "stopped",
    }
}

impl Row for Entry {
    const HEADER: &'static [&'static str] =
        &[">index", "name", "address", "status", ">height", ">runners connected"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.index.to_string(),
            self.name.clone(),
            self.address.to_string(),
            state(self.status).to_owned(),
            self.height.to_string(),
            format!("{}/{}", self.connected_runners.len(), self.subset_of.len()),
        ]
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        fields(&[
            ("validator", named(Some(&self.name), &self.address)),
            ("status", state(self.status).to_owned()),
            ("height", self.height.to_string()),
            ("index", self.index.to_string()),
            ("public key", self.pubkey.to_string()),
            ("consensus key", self.consensus_key.to_string()),
            ("quic", or_dash(&self.quic)),
            ("p2p", or_dash(&self.p2p)),
            ("in the subset of", self.subset_of.join(", ")),
            ("connected runners", self.connected_runners.join(", ")),
        ])
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}
