//! `account`: balances and transfers.

pub(super) mod new;

use super::transaction;
use crate::{
    args, complete,
    context::{Context, Deadline},
    error::CliError,
    output::{Document, Row, amount, columns, fields, named, or_dash},
};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    topology::{FAUCET, Name},
    types::Account as Entry,
};
use cowboy_engine::{
    chain::transaction::{Payload, SetBalance, Transfer},
    primitives::Wei,
};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Account {
    /// Every account
    Ls,
    /// Show an account's balance
    Balance {
        /// The account: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        account: String,
    },
    /// Create an account: a named key in the devnet's folder
    ///
    /// It works like the topology's accounts: --from takes its name. The chain has no record of it
    /// until it receives money.
    New {
        /// Its name: 1 to 32 characters of a-z, 0-9 and -
        name: Name,
        /// Fund it from the faucet: 1.5cby, or wei
        #[arg(long, value_name = "AMOUNT")]
        fund: Option<Wei>,
        #[command(flatten)]
        inclusion: Inclusion,
    },
    /// Fund an account from the faucet
    Fund {
        /// The receiver: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        to: String,
        /// The amount: 1.5cby, or wei
        amount: Wei,
        #[command(flatten)]
        inclusion: Inclusion,
    },
    /// Set an account's balance, for a test
    ///
    /// The faucet pays the difference or gets it, so the supply stays. Governance signs; a chain
    /// whose genesis refuses powers refuses it.
    SetBalance {
        /// The account: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        account: String,
        /// The balance: 1.5cby, or wei
        balance: Wei,
        #[command(flatten)]
        inclusion: Inclusion,
    },
    /// Move money between accounts
    Transfer {
        /// The sender: a name, or an address whose key is in the devnet's folder
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        from: String,
        /// The receiver: a name or an address
        #[arg(add = ArgValueCandidates::new(complete::accounts))]
        to: String,
        /// The amount: 1.5cby, or wei
        amount: Wei,
        /// Act for the sender without its key, for a test: governance signs and pays the fee, and
        /// the receipt says so
        #[arg(long)]
        impersonate: bool,
        #[command(flatten)]
        inclusion: Inclusion,
    },
}

/// The time limit for a transaction's inclusion.
#[derive(Debug, Args)]
pub struct Inclusion {
    /// How long to wait until the transaction is in a finalized block
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    pub timeout: Duration,
}

impl Account {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::New { name, fund, inclusion } => new::run(cx, name, fund, inclusion).await,
            Self::Ls => cx.ui.list(&cx.client()?.accounts().await?),
            Self::Balance { account } => cx.ui.document(&cx.client()?.account(&account).await?),
            Self::Fund { to, amount, inclusion } => {
                transfer(cx, (FAUCET, false), (&to, amount), inclusion).await
            }
            Self::SetBalance { account, balance, inclusion } => {
                let client = cx.client()?;
                let counterpart = transaction::address_of(&client, FAUCET).await?;
                let account = transaction::address_of(&client, &account).await?;
                let set = SetBalance { account, balance, counterpart };
                let deadline = Deadline::after(inclusion.timeout);
                let set = transaction::empowered(cx, Payload::SetBalance(set), deadline).await?;
                cx.ui.document(&set.transaction)
            }
            Self::Transfer { from, to, amount, impersonate, inclusion } => {
                transfer(cx, (&from, impersonate), (&to, amount), inclusion).await
            }
        }
    }
}

async fn transfer(
    cx: &Context,
    (from, impersonate): (&str, bool),
    (to, amount): (&str, Wei),
    inclusion: Inclusion,
) -> Result<(), CliError> {
    let (devnet, client) = cx.devnet_and_client()?;
    let to = transaction::address_of(&client, to).await?;
    let payload = Payload::Transfer(Transfer { to, amount });
    let signer = match impersonate {
        true => transaction::Signer::acting_as(&devnet, &client, from).await?,
        false => transaction::Signer::find(&devnet, from)?,
    };
    let deadline = Deadline::after(inclusion.timeout);
    let outcome = transaction::execute(cx.ui, &client, &signer, payload, deadline).await?;
    cx.ui.document(&outcome.transaction)
}

impl Row for Entry {
    columns! { self;
        "name" => or_dash(self.name.clone()),
        "address" => self.address.to_string(),
        ">balance" => amount(*self.balance),
        ">nonce" => self.nonce.to_string(),
    }
    const LEAST: &'static [&'static str] = &["nonce", "address"];

    fn id(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.address.to_string())
    }
}

impl Document for Entry {
    fn text(&self) -> String {
        fields(&[
            ("account", named(self.name.as_deref(), &self.address)),
            ("balance", amount(*self.balance)),
            ("nonce", self.nonce.to_string()),
        ])
    }

    fn id(&self) -> String {
        self.balance.to_string()
    }
}
