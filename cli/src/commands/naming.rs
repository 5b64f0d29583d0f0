//! The `--name` option: names that users give to what they create.

use crate::error::CliError;
use clap::Args;
use cowboy_devnet::{
    client::Client,
    topology::Name,
    types::{NameRequest, NamedKind},
};

/// The `--name` option.
#[derive(Debug, Clone, Default, Args)]
pub struct Naming {
    /// A name for it, which other commands accept in place of its id; the name of a timer or a job
    /// that has ended can be reused
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,
}

impl Naming {
    fn request(&self, kind: NamedKind, id: Option<String>) -> Option<NameRequest> {
        let name = self.name.as_ref()?.to_string();
        Some(NameRequest { kind, name, id })
    }

    /// Refuses a name that cannot be given, before anything is created.
    pub async fn check(&self, client: &Client, kind: NamedKind) -> Result<(), CliError> {
        if let Some(request) = self.request(kind, None) {
            client.give_name(&request).await?;
        }
        Ok(())
    }

    pub async fn give(
        &self,
        client: &Client,
        kind: NamedKind,
        id: &impl ToString,
    ) -> Result<Option<String>, CliError> {
        let Some(request) = self.request(kind, Some(id.to_string())) else { return Ok(None) };
        let given = client.give_name(&request).await.map_err(|error| {
            let made = format!("{kind} {} was created, but has no name", id.to_string());
            CliError::from(error).detail(made)
        })?;
        Ok(Some(given.name))
    }
}
