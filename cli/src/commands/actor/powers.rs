//! `actor set-code` and `actor set-state`: powers of governance over actors.

use super::{
    address_of,
    module::ModuleSource,
    python::{self, of_text},
};
use crate::{
    args,
    commands::{account::Inclusion, transaction},
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::StoreQuery;
use cowboy_engine::{
    actor::{Budget, effect::MAX_PAYLOAD_BYTES},
    chain::{
        Language, StoreKey,
        transaction::{Payload, SetCode, SetState},
    },
    fees::meter,
    job::json::Json,
};
use std::path::PathBuf;

/// `actor set-code`.
#[derive(Debug, Args)]
pub struct SetActorCode {
    /// The actor: a name, its address or enough of its beginning, or latest; an address without an
    /// actor becomes one
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: String,
    /// The module's file, in Python if its name ends in .py; - for the standard input
    file: PathBuf,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// `actor set-state`.
#[derive(Debug, Args)]
pub struct SetActorState {
    /// The actor: a name, its address or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: String,
    /// The key; 0x-hex for one that is not text
    key: String,
    /// The value: JSON, which a store in Python keeps as CBOR; there also bytes as 0x-hex, or the
    /// contents of @FILE
    #[arg(required_unless_present = "delete")]
    value: Option<String>,
    /// Remove the entry
    #[arg(long, conflicts_with = "value")]
    delete: bool,
    #[command(flatten)]
    inclusion: Inclusion,
}

impl SetActorCode {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let source = ModuleSource::read(&self.file)?.text;
        let client = cx.client()?;
        let language = match python::is_python(&self.file) {
            true => Language::Python,
            false => Language::Starlark,
        };
        // One that is not there yet is named by its address.
        let actor = match self.actor.parse() {
            Ok(address) => address,
            Err(_) => address_of(&client, &self.actor).await?,
        };
        let parameters = client.parameters().await?;
        if language == Language::Python && parameters.python.is_none() {
            return Err(python::no_machine());
        }
        let budget = Some(Budget {
            cycles: parameters.cycle_limit.saturating_sub(meter::INTRINSIC_CYCLES) / 2,
            cells: parameters.cell_limit / 2,
        });
        let payload = Payload::SetCode(SetCode { actor, language, source });
        let deadline = Deadline::after(self.inclusion.timeout);
        transaction::empowered_within(cx, payload, budget, deadline).await?;
        let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
        cx.ui.document(&client.actor(&actor.to_string(), &query).await?)
    }
}

impl SetActorState {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
        let known = client.actor(&self.actor, &query).await?;
        let is_python = known.language == Language::Python.name();
        let value = match self.value.filter(|_| !self.delete) {
            Some(text) if is_python && (text.starts_with("0x") || text.starts_with('@')) => {
                Some(args::payload(&text, MAX_PAYLOAD_BYTES)?)
            }
            Some(text) if is_python => Some(of_text(&client, &self.actor, &text).await?),
            Some(text) => Some(compact(&text)?.into_bytes()),
            None => None,
        };
        let (actor, key) = (*known.actor, StoreKey::shown_as(&self.key));
        let payload = Payload::SetState(SetState { actor, key, value });
        let deadline = Deadline::after(self.inclusion.timeout);
        let done = transaction::empowered(cx, payload, deadline).await?;
        cx.ui.document(&done.transaction)
    }
}

/// JSON as actors store it: without spaces.
fn compact(text: &str) -> Result<String, CliError> {
    let value = Json::parse(text.as_bytes()).map_err(|error| {
        CliError::new(Exit::Usage, format!("the value is not JSON: {error}"))
            .hint("a text needs quotes of its own: '\"ready\"'")
    })?;
    Ok(value.to_string())
}
