//! `runner`: registry entries and connections.

use super::chain::named;
use crate::{
    complete,
    context::Context,
    error::CliError,
    output::{Document, Row, amount, fields, table},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::api::types::{Runner as Entry, RunnerConnection, RunnerHealth};

#[derive(Debug, Subcommand)]
pub enum Runner {
    /// Every runner, in registry order
    Ls,
    /// A runner's registry entry and connections
    Show {
        /// The runner: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::runners))]
        runner: String,
    },
    /// The validators that a runner has to be connected to, in subset order
    Subset {
        /// The runner: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::runners))]
        runner: String,
    },
}

impl Runner {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        match self {
            Self::Ls => cx.ui.list(&client.runners().await?),
            Self::Show { runner } => cx.ui.document(&client.runner(&runner).await?),
            Self::Subset { runner } => cx.ui.list(&client.runner(&runner).await?.connections),
        }
    }
}

fn health(health: RunnerHealth) -> &'static str {
    match health {
        RunnerHealth::Healthy => "Healthy",
        RunnerHealth::Unhealthy => "Unhealthy",
        RunnerHealth::Deregistered => "Deregistered",
    }
}

fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn jobs(runner: &Entry) -> String {
    format!("{}/{}", runner.active_jobs, runner.max_concurrent_jobs)
}

impl Row for Entry {
    const HEADER: &'static [&'static str] = &[
        ">index",
        "name",
        "address",
        "status",
        "present",
        "kinds",
        ">jobs",
        ">reputation",
        ">stake",
        "subset",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.index.to_string(),
            self.name.clone(),
            self.address.to_string(),
            health(self.status).to_owned(),
            yes(self.present),
            self.kinds.join(","),
            jobs(self),
            self.reputation.to_string(),
            amount(*self.stake),
            self.subset.join(","),
        ]
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        let text = fields(&[
            ("runner", named(Some(&self.name), &self.address)),
            ("public key", self.pubkey.to_string()),
            ("index", self.index.to_string()),
            ("status", health(self.status).to_owned()),
            ("present", yes(self.present)),
            ("kinds", self.kinds.join(", ")),
            ("jobs", jobs(self)),
            ("reputation", self.reputation.to_string()),
            ("stake", amount(*self.stake)),
            ("price per second", amount(*self.price_per_second)),
            ("registered at", self.registered_at.to_string()),
        ]);
        let connections = table(RunnerConnection::HEADER, self.connections.iter().map(Row::cells));
        format!("{text}\n\n{connections}")
    }

    fn id(&self) -> String {
        self.address.to_string()
    }
}

impl Row for RunnerConnection {
    const HEADER: &'static [&'static str] =
        &["validator", "address", "connected", "present there", ">last ping"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.validator.clone(),
            self.validator_address.to_string(),
            yes(self.connected),
            yes(self.locally_present),
            self.last_ping.map_or_else(|| "-".to_owned(), |height| height.to_string()),
        ]
    }

    fn id(&self) -> String {
        self.validator.clone()
    }
}
