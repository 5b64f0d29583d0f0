//! `chain snapshot`, `chain revert`, `chain forget` and `chain time`: powers of governance over the
//! state and the clock.

use crate::{
    args,
    commands::{account::Inclusion, transaction},
    context::{Context, Deadline},
    error::{CliError, Exit},
    output::{Document, Row, columns, fields, millis},
};
use clap::Args;
use cowboy_devnet::types::{HashText, StateSnapshot, Transaction};
use cowboy_engine::chain::transaction::{AdvanceTime, ForgetMark, Payload, ReturnToMark};
use serde::Serialize;
use std::time::Duration;

/// `chain snapshot`.
#[derive(Debug, Args)]
pub struct KeepState {
    #[command(flatten)]
    inclusion: Inclusion,
}

/// `chain revert`.
#[derive(Debug, Args)]
pub struct Revert {
    /// The snapshot's number, or latest
    snapshot: String,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// `chain forget`.
#[derive(Debug, Args)]
pub struct Forget {
    /// The snapshot's number, or latest
    snapshot: String,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// `chain time`.
#[derive(Debug, Args)]
pub struct Time {
    /// How far to move it ahead: +1h or +90s, 10000h at most; without it, shows how far it is
    #[arg(value_name = "+DURATION", value_parser = ahead)]
    ahead: Option<Duration>,
    #[command(flatten)]
    inclusion: Inclusion,
}

fn ahead(text: &str) -> Result<Duration, String> {
    args::duration(text.strip_prefix('+').unwrap_or(text))
}

/// A snapshot that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct MadeSnapshot {
    /// Its number.
    snapshot: u64,
    /// The block after which the state is kept.
    height: Option<u64>,
    /// The transaction that made it.
    transaction: HashText,
}

/// A state that was returned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Reverted {
    /// The snapshot's number.
    snapshot: u64,
    /// The block after which its state was kept.
    of: u64,
    /// The block after which the state is that again.
    height: Option<u64>,
    /// The transaction that returned to it.
    transaction: HashText,
}

/// The clock of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct BlockClock {
    /// How far the timestamps of new blocks are ahead of the clocks of their proposers, in
    /// milliseconds.
    ahead_ms: u64,
}

/// The number in an event that a power caused.
fn told(transaction: &Transaction, event: &str, field: &str) -> Result<u64, CliError> {
    let found = transaction.events.iter().find(|told| told.kind == event);
    found.and_then(|told| told.data[field].as_u64()).ok_or_else(|| {
        let what = format!("transaction {} has no event {event}", transaction.hash);
        CliError::new(Exit::Failed, what)
    })
}

impl KeepState {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let deadline = Deadline::after(self.inclusion.timeout);
        let done = transaction::empowered(cx, Payload::MarkState, deadline).await?.transaction;
        cx.ui.document(&MadeSnapshot {
            snapshot: told(&done, "StateMarked", "mark")?,
            height: done.height,
            transaction: done.hash,
        })
    }
}

impl Revert {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let deadline = Deadline::after(self.inclusion.timeout);
        let mark = numbered(cx, &self.snapshot).await?;
        let payload = Payload::ReturnToMark(ReturnToMark { mark });
        let done = transaction::empowered(cx, payload, deadline).await?.transaction;
        cx.ui.document(&Reverted {
            snapshot: mark,
            of: told(&done, "StateReturned", "height")?,
            height: done.height,
            transaction: done.hash,
        })
    }
}

impl Forget {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let deadline = Deadline::after(self.inclusion.timeout);
        let mark = numbered(cx, &self.snapshot).await?;
        let payload = Payload::ForgetMark(ForgetMark { mark });
        transaction::empowered(cx, payload, deadline).await?;
        cx.ui.list(&cx.client()?.state_snapshots().await?)
    }
}

/// The number that an argument names.
async fn numbered(cx: &Context, snapshot: &str) -> Result<u64, CliError> {
    if let Ok(number) = snapshot.parse() {
        return Ok(number);
    }
    if snapshot != "latest" {
        let what = format!("`{snapshot}` is not the number of a snapshot");
        return Err(CliError::new(Exit::Usage, what)
            .hint("list them: cowboyctl chain snapshots; or give `latest`"));
    }
    let all = cx.client()?.state_snapshots().await?;
    let last = all.last().map(|snapshot| snapshot.snapshot);
    last.ok_or_else(|| {
        CliError::new(Exit::NotFound, "this chain has no snapshots")
            .hint("make one: cowboyctl chain snapshot")
    })
}

impl Time {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let deadline = Deadline::after(self.inclusion.timeout);
        let ahead_ms = match self.ahead {
            None => cx.client()?.parameters().await?.ahead_ms,
            Some(ahead) => {
                let ms = u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX);
                let payload = Payload::AdvanceTime(AdvanceTime { ms });
                let done = transaction::empowered(cx, payload, deadline).await?.transaction;
                told(&done, "TimeAdvanced", "total")?
            }
        };
        cx.ui.document(&BlockClock { ahead_ms })
    }
}

fn or_pending(height: Option<u64>) -> String {
    height.map_or_else(|| "-".to_owned(), |height| height.to_string())
}

impl Document for MadeSnapshot {
    fn text(&self) -> String {
        let Self { snapshot, height, .. } = self;
        fields(&[
            ("snapshot", snapshot.to_string()),
            ("after block", or_pending(*height)),
            ("to return", format!("cowboyctl chain revert {snapshot}")),
        ])
    }

    fn id(&self) -> String {
        self.snapshot.to_string()
    }
}

impl Document for Reverted {
    fn text(&self) -> String {
        fields(&[
            ("snapshot", self.snapshot.to_string()),
            ("state of block", self.of.to_string()),
            ("after block", or_pending(self.height)),
        ])
    }

    fn id(&self) -> String {
        self.snapshot.to_string()
    }
}

impl Document for BlockClock {
    fn text(&self) -> String {
        fields(&[("ahead by", millis(self.ahead_ms))])
    }

    fn id(&self) -> String {
        self.ahead_ms.to_string()
    }
}

impl Row for StateSnapshot {
    columns! { self;
        ">snapshot" => self.snapshot.to_string(),
        ">after block" => self.height.to_string(),
    }

    fn id(&self) -> String {
        self.snapshot.to_string()
    }
}
