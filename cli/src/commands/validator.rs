//! `validator`: shows and changes the validator set and its members.

use super::transaction::{self, Signer};
use crate::{
    args, complete,
    context::{Context, Deadline, reach},
    error::{CliError, Exit},
    output::{Document, Row, columns, fields, named, or_dash},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    topology::{GOVERNANCE, Name},
    types::{AddressText, HashText, Validator as Entry},
};
use cowboy_engine::{
    chain::{
        GenesisValidator as Identity, Payload,
        transaction::{RemoveValidator, Transfer},
    },
    primitives::Wei,
};
use serde::Serialize;
use std::time::Duration;

/// The initial balance of a validator that joins, to pay for the transactions that carry results.
const FUNDS: Wei = Wei::cby(1_000);

#[derive(Debug, Subcommand)]
pub enum Validator {
    /// List validators, in the committee's order
    ///
    /// The index is a validator's position in the committee of the next block: certificates and
    /// votes name validators by it. A validator outside the committee has `-` for an index, comes
    /// last, and only follows the chain.
    Ls,
    /// Show a validator's identities, addresses and runners
    Show(WhichValidator),
    /// Stop a validator; it keeps its chain
    Stop(WhichValidator),
    /// Start a stopped validator; it catches up
    Start(WhichValidator),
    /// Restart a validator without its stored chain, which it takes from the others
    ///
    /// Use it for a validator whose files are damaged, as `doctor --deep` reports. It may be
    /// running or not, and at least one other must be running. The record of its votes is kept.
    Resync(WhichValidator),
    /// Add a validator, which votes from the next consensus epoch on
    ///
    /// It follows the chain at once. It joins the committee with the first block of the next epoch
    /// (`chain.epoch_blocks` of the topology, by default 256); if more than a tenth of the
    /// validators has changed, subsets of runners are drawn again.
    Add {
        /// Its name [default: the first free `validator-N`]
        name: Option<Name>,
        #[command(flatten)]
        change: CommitteeChange,
    },
    /// Remove a validator from the committee, and stop it for good at the end of the epoch
    ///
    /// Its chain stays on disk. The devnet must have another validator.
    Remove {
        /// The validator's name
        #[arg(add = ArgValueCandidates::new(complete::validators))]
        name: Name,
        #[command(flatten)]
        change: CommitteeChange,
    },
}

/// The validator that a command is about.
#[derive(Debug, Args)]
pub struct WhichValidator {
    /// The validator: a name or an address
    #[arg(add = ArgValueCandidates::new(complete::validators))]
    validator: String,
}

/// The governing account, and the time to wait.
#[derive(Debug, Args)]
pub struct CommitteeChange {
    /// The account that governs: a name, or an address whose key is in the devnet's folder
    #[arg(long, value_name = "ACCOUNT", default_value = GOVERNANCE)]
    #[arg(add = ArgValueCandidates::new(complete::accounts))]
    from: String,
    /// Maximum time to wait for the next epoch
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "10m")]
    timeout: Duration,
}

/// A change of the committee that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ChangedCommittee {
    name: String,
    address: AddressText,
    /// Whether it votes from then on.
    votes: bool,
    /// The first consensus epoch with the change.
    epoch: u64,
    /// The first block of that epoch.
    from: u64,
    transaction: HashText,
}

impl Validator {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        match self {
            Self::Ls => cx.ui.list(&client.validators().await?),
            Self::Show(WhichValidator { validator }) => {
                cx.ui.document(&client.validator(&validator).await?)
            }
            Self::Stop(WhichValidator { validator }) => {
                cx.ui.document(&client.stop_validator(&validator).await?)
            }
            Self::Start(WhichValidator { validator }) => {
                cx.ui.document(&client.start_validator(&validator).await?)
            }
            Self::Resync(WhichValidator { validator }) => {
                cx.ui.document(&client.resync_validator(&validator).await?)
            }
            Self::Add { name, change } => add(cx, &client, name, change).await,
            Self::Remove { name, change } => remove(cx, &client, &name, change).await,
        }
    }
}

async fn add(
    cx: &Context,
    client: &Client,
    name: Option<Name>,
    CommitteeChange { from, timeout }: CommitteeChange,
) -> Result<(), CliError> {
    let governor = Signer::find(&cx.running(None)?, &from)?;
    let deadline = Deadline::after(timeout);
    let entry = client.add_validator(name.as_ref().map(Name::as_str)).await?;
    let mut changed = match fund_and_vote(cx, client, &governor, &entry, deadline).await {
        Ok(changed) => changed,
        Err(error) => {
            // It only follows the chain; if it cannot be stopped, `validator ls` shows it.
            let _ = client.remove_validator(&entry.name).await;
            return Err(error);
        }
    };
    changed.votes = true;
    reach(cx.ui, client, changed.from, deadline).await?;
    cx.ui.document(&changed)
}

async fn fund_and_vote(
    cx: &Context,
    client: &Client,
    governor: &Signer,
    entry: &Entry,
    deadline: Deadline,
) -> Result<ChangedCommittee, CliError> {
    let funds = Payload::Transfer(Transfer { to: *entry.address, amount: FUNDS });
    transaction::execute(cx.ui, client, governor, funds, deadline).await?;
    let payload = Payload::AddValidator(identity(entry)?);
    decide(cx, client, governor, payload, entry, deadline).await
}

async fn remove(
    cx: &Context,
    client: &Client,
    name: &Name,
    CommitteeChange { from, timeout }: CommitteeChange,
) -> Result<(), CliError> {
    let governor = Signer::find(&cx.running(None)?, &from)?;
    let deadline = Deadline::after(timeout);
    let entry = client.validator(name.as_str()).await?;
    let payload = Payload::RemoveValidator(RemoveValidator { validator: *entry.address });
    let changed = decide(cx, client, &governor, payload, &entry, deadline).await?;
    reach(cx.ui, client, changed.from, deadline).await?;
    client.remove_validator(&entry.name).await?;
    cx.ui.document(&changed)
}

async fn decide(
    cx: &Context,
    client: &Client,
    governor: &Signer,
    payload: Payload,
    entry: &Entry,
    deadline: Deadline,
) -> Result<ChangedCommittee, CliError> {
    let executed = transaction::execute(cx.ui, client, governor, payload, deadline).await?;
    let epoch_blocks = client.parameters().await?.epoch_blocks;
    let height = executed.transaction.height.unwrap_or_default();
    let epoch = height / epoch_blocks + 1;
    Ok(ChangedCommittee {
        name: entry.name.clone(),
        address: entry.address,
        votes: false,
        epoch,
        from: epoch * epoch_blocks,
        transaction: executed.transaction.hash,
    })
}

fn identity(entry: &Entry) -> Result<Identity, CliError> {
    let consensus_key = entry.consensus_key.0.0.as_slice().try_into().map_err(|_| {
        CliError::new(Exit::Failed, "the devnet answers with a consensus key of another length")
    })?;
    Ok(Identity { pubkey: (*entry.pubkey).clone(), consensus_key })
}

impl Document for ChangedCommittee {
    fn text(&self) -> String {
        let what = if self.votes { "votes" } else { "votes no longer" };
        format!("{} {what} from block {} on (epoch {})", self.name, self.from, self.epoch)
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}

impl Row for Entry {
    columns! { self;
        let (connected, subset) = (self.connected_runners.len(), self.subset_of.len());
        ">index" => or_dash(self.index),
        "name" => self.name.clone(),
        "address" => self.address.to_string(),
        "status" => self.status.to_string(),
        ">height" => self.height.to_string(),
        ">runners connected" => format!("{connected}/{subset}"),
    }
    const LEAST: &'static [&'static str] = &["address", "runners connected"];

    fn id(&self) -> String {
        self.name.clone()
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        let mut lines = vec![
            ("validator", named(Some(&self.name), &self.address)),
            (
                "status",
                match &self.reason {
                    Some(reason) => format!("{}: {reason}", self.status),
                    None => self.status.to_string(),
                },
            ),
            ("height", self.height.to_string()),
            (
                "index",
                self.index.map_or_else(|| "not in the committee".to_owned(), |i| i.to_string()),
            ),
            ("public key", self.pubkey.to_string()),
            ("consensus key", self.consensus_key.to_string()),
            ("quic", or_dash(self.quic.clone())),
            ("p2p", or_dash(self.p2p.clone())),
            ("in the subset of", self.subset_of.join(", ")),
            ("connected runners", self.connected_runners.join(", ")),
        ];
        lines.extend(self.pid.map(|pid| ("process", pid.to_string())));
        lines.extend(self.version.clone().map(|version| ("version", version)));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.name.clone()
    }
}
