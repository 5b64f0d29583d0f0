//! `account new`: makes a key and gives it a name.

use super::Inclusion;
use crate::{
    commands::{
        devnet::saved_plan,
        transaction::{self, Signer},
    },
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Document, amount, fields},
};
use cowboy_devnet::{
    client::{Client, ClientError},
    home::{DevnetHome, DevnetState},
    runner::key,
    topology::{FAUCET, Name},
    types::{AddressText, AmountText, HashText},
};
use cowboy_engine::{
    chain::transaction::{Payload, Transfer},
    primitives::{SecretKey, Wei},
};
use serde::Serialize;
use std::path::PathBuf;

/// Prefixes of the names that the devnet gives to nodes: an account with such a name would clash.
const OF_NODES: [&str; 2] = ["validator-", "runner-"];

/// An account that was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Made {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// Its address.
    address: AddressText,
    /// The file with its key.
    #[cfg_attr(test, schema(value_type = String))]
    key_file: PathBuf,
    /// The amount that the faucet gave it.
    balance: AmountText,
    /// The faucet's transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<HashText>,
}

pub async fn run(
    cx: &Context,
    name: Name,
    fund: Option<Wei>,
    inclusion: Inclusion,
) -> Result<(), CliError> {
    let devnet = cx.existing(None)?;
    if let Some(prefix) = OF_NODES.iter().find(|prefix| name.as_str().starts_with(**prefix)) {
        let what = format!("`{name}` cannot name an account: names of nodes begin with {prefix}");
        return Err(CliError::new(Exit::Usage, what));
    }
    let client = match devnet.state()? {
        DevnetState::Absent | DevnetState::Stopped | DevnetState::Died(_) if fund.is_some() => {
            return Err(ClientError::NotRunning(devnet.name().clone()).into());
        }
        DevnetState::Absent | DevnetState::Stopped | DevnetState::Died(_) => None,
        DevnetState::Starting { .. } => {
            return Err(ClientError::Starting(devnet.name().clone()).into());
        }
        DevnetState::Running(_) => Some(cx.client_of(&devnet)?),
    };
    let deadline = Deadline::after(inclusion.timeout);
    let secret = make(&devnet, &name)?;
    let address = secret.address();
    if let Some(client) = &client
        && let Err(error) = client.name_account(name.as_str(), address).await
    {
        // The devnet does not know the account yet, and it is unused.
        devnet.remove_account(&name)?;
        return Err(error.into());
    }
    let mut made = Made {
        address: address.into(),
        key_file: devnet.account_key_path(&name),
        name,
        balance: Wei::ZERO.into(),
        transaction: None,
    };
    if let (Some(amount), Some(client)) = (fund, client) {
        let given = give(cx, &devnet, &client, &secret, amount, deadline).await;
        made.transaction = Some(given.map_err(|error| {
            let name = &made.name;
            error.hint(format!(
                "account `{name}` was created but not funded: cowboyctl account fund {name}"
            ))
        })?);
        made.balance = amount.into();
    }
    cx.ui.document(&made)
}

/// Stores a new key under an unused name.
fn make(devnet: &DevnetHome, name: &Name) -> Result<SecretKey, CliError> {
    let taken = || {
        let what = format!("`{name}` already exists on devnet `{}`", devnet.name());
        CliError::new(Exit::Conflict, what)
            .hint("choose another name, or list the accounts: cowboyctl account ls")
    };
    if let Some(plan) = saved_plan(devnet)? {
        let validators = plan.validators.iter().map(|validator| &validator.name);
        let mut names = validators
            .chain(plan.runners.iter().map(|runner| &runner.name))
            .chain(plan.accounts.iter().map(|account| &account.name));
        if names.any(|other| other == name) {
            return Err(taken());
        }
    }
    let secret = key::random();
    match devnet.add_account(name, &secret)? {
        true => Ok(secret),
        false => Err(taken()),
    }
}

async fn give(
    cx: &Context,
    devnet: &DevnetHome,
    client: &Client,
    to: &SecretKey,
    amount: Wei,
    deadline: Deadline,
) -> Result<HashText, CliError> {
    let faucet = Signer::find(devnet, FAUCET)?;
    let payload = Payload::Transfer(Transfer { to: to.address(), amount });
    let executed = transaction::execute(cx.ui, client, &faucet, payload, deadline).await?;
    Ok(executed.transaction.hash)
}

impl Document for Made {
    fn text(&self) -> String {
        fields(&[
            ("account", self.name.to_string()),
            ("address", self.address.to_string()),
            ("balance", amount(*self.balance)),
            ("key", self.key_file.display().to_string()),
        ])
    }

    fn id(&self) -> String {
        self.address.to_string()
    }
}
