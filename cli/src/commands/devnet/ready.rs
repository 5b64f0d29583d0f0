//! The report of a devnet that is up.

use crate::{
    error::CliError,
    output::{Document, fields, millis, short, to_ms, warn},
};
use cowboy_devnet::{
    client::Client,
    orchestrator::home::DevnetRecord,
    topology::Name,
    types::{ChainIdText, Head, ValidatorState, ValidatorStatus},
};
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// A devnet that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct UpReport {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    pub name: Name,
    /// The chain's id, which its transactions name.
    pub chain_id: ChainIdText,
    /// The URL of its control API.
    pub rpc_url: String,
    /// Its folder.
    #[cfg_attr(test, schema(value_type = String))]
    pub home: PathBuf,
    /// The newest finalized and executed block.
    pub head: Head,
    /// Number of validators.
    pub validators: usize,
    /// Number of runners.
    pub runners: usize,
    /// The pid of the process that runs it.
    pub pid: u32,
    /// Milliseconds from the start until it was ready.
    pub ready_ms: u64,
}

impl UpReport {
    pub fn new(
        record: DevnetRecord,
        home: PathBuf,
        head: Head,
        (validators, runners): (usize, usize),
        ready: Duration,
    ) -> Self {
        Self {
            name: record.name,
            chain_id: record.chain_id,
            rpc_url: record.rpc_url,
            home,
            head,
            validators,
            runners,
            pid: record.pid,
            ready_ms: to_ms(ready),
        }
    }
}

impl Document for UpReport {
    fn text(&self) -> String {
        let head = &self.head;
        fields(&[
            ("devnet", self.name.to_string()),
            ("chain", self.chain_id.to_string()),
            ("control API", self.rpc_url.clone()),
            ("home", self.home.display().to_string()),
            ("head", format!("{} ({})", head.height, short(&head.hash))),
            ("nodes", format!("{} validators, {} runners", self.validators, self.runners)),
            ("process", self.pid.to_string()),
            ("ready after", millis(self.ready_ms)),
        ])
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}

/// Warns about validators that did not start, if the devnet continues without them.
pub async fn warn_of_dead(client: &Client) -> Result<(), CliError> {
    for validator in client.status().await?.validators {
        if validator.status == ValidatorState::Died {
            let ValidatorStatus { name, reason, .. } = validator;
            let reason = reason.unwrap_or_default();
            warn(&format!(
                "{name} does not run: {reason}\n  the others go on; to have it take the chain from \
                 them: cowboyctl validator resync {name}"
            ));
        }
    }
    Ok(())
}
