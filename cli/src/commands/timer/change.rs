//! `timer cancel` and `timer extend`: for the account that deployed the actor and the governing
//! account; `timer cancel` also for the account that pays.

use super::{actor_of, signer_of};
use crate::{
    args::HeightArg,
    commands::{
        account::Inclusion,
        transaction::{self, Acting, Signer},
    },
    complete,
    context::{Context, Deadline},
    error::CliError,
    output::{Document, fields},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    orchestrator::home::DevnetHome,
    topology::GOVERNANCE,
    types::{AddressText, HashText, Timer},
};
use cowboy_engine::{
    chain::transaction::{CancelTimer, ExtendTimer, Payload},
    primitives::Height,
};
use serde::Serialize;

/// The timer, and the account that changes it.
#[derive(Debug, Args)]
struct Target {
    /// The timer: a name, its id or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::timers))]
    timer: String,
    /// The account that requests the change and pays for it [default: the actor's deployer; to
    /// cancel, the timer's payer if only that account's key is here]
    #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
    from: Option<String>,
    #[command(flatten)]
    acting: Acting,
    /// Act as the governing account, for any timer [default account: governance]
    #[arg(long, conflicts_with = "acting_as")]
    system: bool,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// `timer cancel`.
#[derive(Debug, Args)]
pub struct Cancel {
    #[command(flatten)]
    target: Target,
}

/// `timer extend`.
#[derive(Debug, Args)]
pub struct Extend {
    #[command(flatten)]
    target: Target,
    /// The last height at which it may fire from now on: 120 or +10 (from now)
    #[arg(value_name = "HEIGHT")]
    until: HeightArg,
}

/// A changed timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ChangedTimer {
    timer_id: HashText,
    actor: AddressText,
    /// The change: `cancelled` or `extended`.
    change: &'static str,
    /// The last height at which it may fire; absent once it is cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    transaction: HashText,
    /// The height of the block with the change.
    height: Option<u64>,
}

impl Target {
    async fn find(&self, cx: &Context) -> Result<(DevnetHome, Client, Timer), CliError> {
        let (devnet, client) = cx.devnet_and_client()?;
        let timer = client.timer(&self.timer).await?;
        Ok((devnet, client, timer))
    }

    async fn send(
        &self,
        cx: &Context,
        (devnet, client, timer): (&DevnetHome, &Client, &Timer),
        payload: Payload,
        (change, expires_at): (&'static str, Option<u64>),
    ) -> Result<(), CliError> {
        let acting = self.acting.signer(devnet, client).await?;
        let signer = match (acting, &self.from, self.system) {
            (Some(signer), ..) => signer,
            (None, None, true) => Signer::find(devnet, GOVERNANCE)?,
            (None, from, _) => {
                let actor = actor_of(client, &timer.actor.to_string()).await?;
                let deployer = signer_of(devnet, from.as_deref(), actor.deployer);
                match (&payload, from) {
                    (Payload::CancelTimer(_), None) => deployer.or_else(|error| {
                        Signer::find(devnet, &timer.fee_payer.to_string()).map_err(|_| error)
                    })?,
                    _ => deployer?,
                }
            }
        };
        let deadline = Deadline::after(self.inclusion.timeout);
        let executed = transaction::execute(cx.ui, client, &signer, payload, deadline).await?;
        cx.ui.document(&ChangedTimer {
            timer_id: timer.timer_id,
            actor: timer.actor,
            change,
            expires_at,
            transaction: executed.transaction.hash,
            height: executed.transaction.height,
        })
    }
}

impl Cancel {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (devnet, client, timer) = self.target.find(cx).await?;
        let cancel = CancelTimer { timer_id: *timer.timer_id };
        let payload = match self.target.system {
            true => Payload::SysCancelTimer(cancel),
            false => Payload::CancelTimer(cancel),
        };
        self.target.send(cx, (&devnet, &client, &timer), payload, ("cancelled", None)).await
    }
}

impl Extend {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let (devnet, client, timer) = self.target.find(cx).await?;
        let until = self.until.height(&client).await?;
        let extend = ExtendTimer { timer_id: *timer.timer_id, expires_at: Height::new(until) };
        let payload = match self.target.system {
            true => Payload::SysExtendTimer(extend),
            false => Payload::ExtendTimer(extend),
        };
        self.target.send(cx, (&devnet, &client, &timer), payload, ("extended", Some(until))).await
    }
}

impl Document for ChangedTimer {
    fn text(&self) -> String {
        let mut lines = vec![
            ("timer", self.timer_id.to_string()),
            ("actor", self.actor.to_string()),
            ("change", self.change.to_owned()),
        ];
        lines.extend(self.expires_at.map(|height| ("expires at", height.to_string())));
        lines.extend(self.height.map(|height| ("block", height.to_string())));
        lines.push(("transaction", self.transaction.to_string()));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.timer_id.to_string()
    }
}
