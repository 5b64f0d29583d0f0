//! Actors in Python: their deployment, and payloads as the SDK's handlers take them.

use crate::{
    args,
    error::{CliError, Exit},
};
use clap::Args;
use cowboy_devnet::{
    client::Client,
    types::{Bytes, StoreQuery, Text},
};
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

/// The language with this name.
pub fn language(name: &str) -> Language {
    match name == Language::Python.name() {
        true => Language::Python,
        false => Language::Starlark,
    }
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

/// The payload of a call, in one of four forms.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct CallPayload {
    /// The payload: text, which an actor in Python gets as CBOR of its JSON; bytes as 0x-hex; or
    /// the contents of @FILE (@- for standard input)
    payload: Option<String>,
    /// The payload as JSON, which an actor in Python gets as CBOR
    #[arg(long, value_name = "JSON")]
    payload_json: Option<String>,
    /// The payload as the bytes of a text, whatever it begins with
    #[arg(long, value_name = "TEXT")]
    payload_text: Option<String>,
    /// The payload as bytes in hex, with or without 0x
    #[arg(long, value_name = "HEX")]
    payload_hex: Option<String>,
}

impl CallPayload {
    /// A payload in the form of the argument.
    pub const fn of(payload: Option<String>) -> Self {
        Self { payload, payload_json: None, payload_text: None, payload_hex: None }
    }

    /// The bytes for a handler of `actor`: for an actor in Python, JSON becomes the CBOR that its
    /// handlers read.
    pub async fn bytes(&self, client: &Client, actor: &str) -> Result<Vec<u8>, CliError> {
        if let Some(text) = &self.payload_text {
            return Ok(text.as_bytes().to_vec());
        }
        if let Some(digits) = &self.payload_hex {
            let prefixed = format!("0x{}", digits.strip_prefix("0x").unwrap_or(digits));
            let bytes = prefixed.parse::<Text<Bytes>>().map(|bytes| bytes.0.0);
            return bytes
                .map_err(|error| CliError::new(Exit::Usage, format!("--payload-hex: {error}")));
        }
        if let Some(json) = &self.payload_json {
            serde_json::from_str::<serde::de::IgnoredAny>(json).map_err(|error| {
                CliError::new(Exit::Usage, format!("--payload-json is not JSON: {error}"))
            })?;
            return of_text(client, actor, json).await;
        }
        let Some(text) = self.payload.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(Vec::new());
        };
        match text.starts_with('@') || text.starts_with("0x") {
            true => args::payload(text, MAX_PAYLOAD_BYTES),
            false => of_text(client, actor, text).await,
        }
    }
}

/// The bytes of a text, or the CBOR of its JSON for an actor in Python.
pub(super) async fn of_text(client: &Client, actor: &str, text: &str) -> Result<Vec<u8>, CliError> {
    let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
    if client.actor(actor, &query).await?.language != Language::Python.name() {
        return Ok(text.as_bytes().to_vec());
    }
    let decoded = cbor::from_json(text).and_then(|value| cbor::encode(&value));
    decoded.map_err(|error| {
        let what = format!("the payload of an actor in Python: {error}");
        CliError::new(Exit::Usage, what)
            .hint("give JSON, which is sent as CBOR; or --payload-text, --payload-hex or @FILE")
    })
}
