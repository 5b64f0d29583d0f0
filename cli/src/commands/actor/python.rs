//! Actors in Python: their deployment, and payloads as the SDK's handlers take them.

use crate::{
    args,
    error::{CliError, Exit},
};
use clap::Args;
use cowboy_devnet::{client::Client, types::StoreQuery};
use cowboy_engine::{
    actor::{Budget, effect::MAX_PAYLOAD_BYTES},
    chain::{
        Language,
        transaction::{DeployPython, InitCall, MAX_SALT},
    },
    primitives::{Wei, cbor},
};
use std::path::Path;

/// The end of the names of files with actors in Python.
const EXTENSION: &str = "py";
/// Cycles for a deployment if none are given: four times what the SDK's largest recipe takes.
const DEPLOYMENT_CYCLES: u64 = 2_000_000;
/// Cells for what `init` stores.
const INIT_CELLS: u64 = 100_000;

/// Options of a deployment in Python.
#[derive(Debug, Args)]
#[command(next_help_heading = "Actors in Python (FILE.py)")]
pub struct PythonOptions {
    /// The payload of `init`, as bytes of text, or bytes as 0x-hex, or the contents of @FILE
    #[arg(long, value_name = "PAYLOAD", default_value = "{}")]
    init_payload: String,
    /// Do not call `init`
    #[arg(long)]
    no_init: bool,
    /// Makes the address follow from sender, salt and source: up to 32 bytes, text or 0x-hex
    #[arg(long, value_name = "SALT")]
    salt: Option<String>,
    /// Amount to give the actor, which pays for its messages, timers and jobs: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    value: Wei,
}

/// Whether a file has an actor in Python.
pub fn is_python(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == EXTENSION)
}

impl PythonOptions {
    /// The deployment of a module, and how much it may use.
    pub fn deployment(self, source: String) -> Result<(DeployPython, Budget), CliError> {
        let salt = self.salt.as_deref().map(|salt| args::payload(salt, MAX_SALT)).transpose()?;
        let init = match self.no_init {
            true => None,
            false => Some(InitCall {
                handler: "init".to_owned(),
                payload: args::payload(&self.init_payload, MAX_PAYLOAD_BYTES)?,
            }),
        };
        let budget = Budget { cycles: DEPLOYMENT_CYCLES, cells: INIT_CELLS };
        Ok((DeployPython { source, salt, value: self.value, init }, budget))
    }
}

/// That a devnet's chain runs no actors in Python, and what to do about it.
pub fn no_machine() -> CliError {
    let what = "this devnet's chain has no machine for actors in Python";
    CliError::new(Exit::Rejected, what).hint(
        "make one with `cowboyctl pvm install`; a devnet that is new, or that \
         `cowboyctl devnet rm` has removed before, begins with it",
    )
}

/// The payload of a call: for an actor in Python, JSON becomes the CBOR that its handlers read;
/// 0x-hex and files are bytes as they are.
pub async fn payload(client: &Client, actor: &str, text: &str) -> Result<Vec<u8>, CliError> {
    let bytes = args::payload(text, MAX_PAYLOAD_BYTES)?;
    if text.is_empty() || text.starts_with(['@']) || text.starts_with("0x") {
        return Ok(bytes);
    }
    let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
    if client.actor(actor, &query).await?.language != Language::Python.name() {
        return Ok(bytes);
    }
    let decoded = cbor::from_json(text).and_then(|value| cbor::encode(&value));
    decoded.map_err(|error| {
        let what = format!("the payload of an actor in Python: {error}");
        CliError::new(Exit::Usage, what)
            .hint("give JSON, which is sent as CBOR; or bytes as 0x-hex, or @FILE")
    })
}
