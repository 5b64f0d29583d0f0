//! `runner`: registry entries and connections.

use super::{
    account::Inclusion,
    chain::named,
    devnet::saved_plan,
    transaction::{self, Signer},
};
use crate::{
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Document, Row, amount, fields, table},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    api::types::{Runner as Entry, RunnerConnection, RunnerHealth},
    orchestrator::genesis::genesis,
    topology::Name,
};
use cowboy_engine::{
    chain::{GenesisRunner, Payload, transaction::RegisterRunner},
    primitives::{SecretKey, Wei},
};

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
    /// Take a runner of the devnet out of the registry
    ///
    /// Its stake goes back to its account, those behind it move up by one in the registry and in
    /// every vote's bitmap, and validators close its connections. A runner that has jobs stays.
    Deregister {
        /// The runner's name
        #[arg(add = ArgValueCandidates::new(complete::runners))]
        runner: Name,
        #[command(flatten)]
        inclusion: Inclusion,
    },
    /// Enter a runner of the devnet into the registry again, as the last in its order
    ///
    /// With what the devnet's topology says of it, unless another stake or price is given. Its
    /// reputation is what it was.
    Register {
        /// The runner's name
        #[arg(add = ArgValueCandidates::new(complete::runners))]
        runner: Name,
        /// What it locks, out of its account [default: as in the topology]
        #[arg(long, value_name = "AMOUNT", env = "COWBOYCTL_STAKE", hide_env_values = true)]
        stake: Option<Wei>,
        /// What it asks per second of computing [default: as in the topology]
        #[arg(long, value_name = "AMOUNT", env = "COWBOYCTL_PRICE", hide_env_values = true)]
        price: Option<Wei>,
        #[command(flatten)]
        inclusion: Inclusion,
    },
}

impl Runner {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        match self {
            Self::Deregister { runner, inclusion } => {
                let (key, _) = of_topology(cx, &runner)?;
                send(cx, key, Payload::DeregisterRunner, inclusion).await
            }
            Self::Register { runner, stake, price, inclusion } => {
                let (key, genesis) = of_topology(cx, &runner)?;
                let payload = Payload::RegisterRunner(RegisterRunner {
                    pubkey: genesis.pubkey,
                    stake: stake.unwrap_or(genesis.stake),
                    capabilities: genesis.capabilities,
                    price_per_second: price.unwrap_or(genesis.price_per_second),
                });
                send(cx, key, payload, inclusion).await
            }
            Self::Ls => cx.ui.list(&client.runners().await?),
            Self::Show { runner } => cx.ui.document(&client.runner(&runner).await?),
            Self::Subset { runner } => cx.ui.list(&client.runner(&runner).await?.connections),
        }
    }
}

/// A runner that the devnet starts: its key, and how it was registered at genesis.
fn of_topology(cx: &Context, runner: &Name) -> Result<(SecretKey, GenesisRunner), CliError> {
    let plan = saved_plan(&cx.running(None)?)?;
    let found = plan.and_then(|plan| {
        let key = plan.key(runner);
        let pubkey = key.public_key();
        let mut runners = genesis(&plan).runners.into_iter();
        Some((key, runners.find(|runner| runner.pubkey == pubkey)?))
    });
    found.ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("the devnet's topology has no runner `{runner}`"))
            .hint("see which runners there are: cowboyctl runner ls")
    })
}

/// Sends a runner's transaction.
async fn send(
    cx: &Context,
    key: SecretKey,
    payload: Payload,
    inclusion: Inclusion,
) -> Result<(), CliError> {
    let client = cx.client()?;
    let (signer, deadline) = (Signer::of(key), Deadline::after(inclusion.timeout));
    let outcome = transaction::execute(cx.ui, &client, &signer, payload, deadline).await?;
    cx.ui.document(&outcome.transaction)
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
