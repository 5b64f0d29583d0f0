//! `mru`: the most recently used runners, which the first draw of a job favours.

use crate::{
    complete,
    context::Context,
    error::CliError,
    output::{Document, Row, columns, fields, named},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::MruRecord;

#[derive(Debug, Subcommand)]
pub enum Mru {
    /// List all records
    Ls,
    /// The record of a submitter for a kind of job
    Show {
        /// The submitter: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        submitter: String,
        /// The kind of job: custom, http, llm, mcp or eth_send
        #[arg(add = ArgValueCandidates::new(complete::job_kinds))]
        kind: String,
    },
}

impl Mru {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        match self {
            Self::Ls => cx.ui.list(&client.mru_records().await?),
            Self::Show { submitter, kind } => cx.ui.document(&client.mru(&submitter, &kind).await?),
        }
    }
}

fn expiry(record: &MruRecord) -> String {
    let state = if record.live { "live" } else { "expired" };
    format!("{} ({state})", record.expires_at)
}

impl Row for MruRecord {
    columns! { self;
        "submitter" => self.submitter_name.clone().unwrap_or_else(|| self.submitter.to_string()),
        "kind" => self.kind.clone(),
        "runner" => self.runner.clone(),
        ">set at" => self.set_at.to_string(),
        "expires at" => expiry(self),
    }
    const LEAST: &'static [&'static str] = &["set at"];

    fn id(&self) -> String {
        self.runner.clone()
    }
}

impl Document for MruRecord {
    fn text(&self) -> String {
        fields(&[
            ("submitter", named(self.submitter_name.as_deref(), &self.submitter)),
            ("kind", self.kind.clone()),
            ("runner", named(Some(&self.runner), &self.runner_address)),
            ("set at", self.set_at.to_string()),
            ("expires at", expiry(self)),
        ])
    }

    fn id(&self) -> String {
        self.runner.clone()
    }
}
