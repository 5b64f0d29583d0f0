//! `actor call`: runs a call on a state as a trial, or sends it as a transaction, and shows its
//! effects.
//!
//! A call may schedule timers that its sender pays for, up to the transaction's allowance. The
//! trial before a call runs with the allowance that the call will have, so a call whose allowance
//! is too small is not sent. A dry run without an allowance has no bound and shows what the call
//! would need.

use super::{address_of, failure, module::ModuleSource, python, with_margin};
use crate::{
    args::HeightArg,
    commands::{
        account::Inclusion,
        timer::allowance,
        transaction::{self, Author, TransactionLimits, reason},
    },
    complete,
    context::{Context, Deadline},
    error::{CliError, nearest},
    output::{Document, amount, warn},
};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    client::Client,
    types::{
        Bytes, BytesText, DryRun, DryRunRequest, LogLine, StoreQuery, Text, Transaction,
        TransactionStatus, Usage,
    },
};
use cowboy_engine::{
    actor::Budget,
    chain::{Payload, transaction::CallActor},
    primitives::Wei,
};
use serde::Serialize;
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

/// `actor call`.
#[derive(Debug, Args)]
pub struct Call {
    /// The actor: a name, its address or enough of its beginning, or latest
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: String,
    /// The handler to call
    handler: String,
    #[command(flatten)]
    payload: python::CallPayload,
    /// Amount to send with the call: 1.5cby, or wei
    #[arg(long, value_name = "AMOUNT", default_value = "0")]
    value: Wei,
    #[command(flatten)]
    author: Author,
    /// Maximum cycles, on top of the 21,000 of every transaction [default: from a trial run]
    #[arg(long, value_name = "N")]
    cycles: Option<u64>,
    /// Maximum cells, on top of one per byte of the transaction [default: from a trial run]
    #[arg(long, value_name = "N")]
    cells: Option<u64>,
    /// Maximum that timers scheduled by the call may ever take from the caller: 1.5cby, or wei
    /// [default: nothing; unlimited with --dry-run]
    #[arg(long, value_name = "AMOUNT")]
    timer_allowance: Option<Wei>,
    /// Show what the call would do, and send nothing; --from may be any address. A gas bidding
    /// agent's getGasBid is called as the next block would call it, for a timer of --from; the
    /// payload is a JSON object with the fields of its context to override
    #[arg(long)]
    dry_run: bool,
    /// As --dry-run, and show every call that it would make, with its usage and its changes
    #[arg(long)]
    trace: bool,
    /// With --dry-run: run on the state after this block, one of the last 256 [default: the newest]
    #[arg(long, value_name = "HEIGHT", requires = "dry_run")]
    at: Option<HeightArg>,
    /// With --dry-run: run the module in this file in place of the actor's own, with the actor's
    /// store and balance; its `init` is not called
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    with_code: Option<PathBuf>,
    #[command(flatten)]
    inclusion: Inclusion,
}

/// A sent call and its effects, in the same fields as a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Called {
    #[serde(flatten)]
    transaction: Transaction,
    /// Whether it succeeded.
    success: bool,
    /// What the handler returned.
    result: Option<Value>,
    /// The same as bytes, if the actor is in Python and returned any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(value_type = Option<String>))]
    result_bytes: Option<BytesText>,
    /// Cycles and cells used, without the intrinsic part of a transaction.
    usage: Option<Usage>,
    /// Calls begun: its own and one per message.
    deliveries: u32,
    /// What actors logged, in order; kept even if the call failed.
    log: Vec<LogLine>,
}

impl Called {
    fn of(transaction: &Transaction) -> Self {
        let receipt = transaction.actor.as_ref();
        Self {
            success: transaction.status == TransactionStatus::Success,
            result: receipt.and_then(|receipt| receipt.result.clone()),
            result_bytes: receipt.and_then(|receipt| receipt.result_bytes.clone()),
            usage: receipt.map(|receipt| receipt.usage),
            deliveries: receipt.map_or(0, |receipt| receipt.deliveries),
            log: receipt.map(|receipt| receipt.log.clone()).unwrap_or_default(),
            transaction: transaction.clone(),
        }
    }
}

impl Document for Called {
    fn text(&self) -> String {
        self.transaction.text()
    }

    fn id(&self) -> String {
        self.transaction.id()
    }
}

impl Call {
    /// A call as a transaction, with what a trial uses and a margin.
    pub const fn of(
        actor: String,
        handler: String,
        payload: Option<String>,
        from: String,
        timeout: Duration,
    ) -> Self {
        Self {
            actor,
            handler,
            payload: python::CallPayload::of(payload),
            value: Wei::ZERO,
            author: Author::of(from),
            cycles: None,
            cells: None,
            timer_allowance: None,
            dry_run: false,
            trace: false,
            at: None,
            with_code: None,
            inclusion: Inclusion { timeout },
        }
    }

    /// The same call as a dry run that shows every call, on the state after this block.
    pub fn traced(self, at: Option<HeightArg>) -> Self {
        Self { dry_run: true, trace: true, at, ..self }
    }

    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let source = match &self.with_code {
            Some(file) => {
                let source = ModuleSource::read(file)?;
                let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
                let known = cx.client()?.actor(&self.actor, &query).await?;
                Some(source.in_place_of(python::language(&known.language))?)
            }
            None => None,
        };
        self.run_on(cx, source).await
    }

    /// Runs the call; a dry run, on this module in place of the actor's own.
    pub async fn run_on(self, cx: &Context, source: Option<String>) -> Result<(), CliError> {
        let (devnet, client) = cx.devnet_and_client()?;
        let payload = self.payload.bytes(&client, &self.actor).await?;
        if self.dry_run || self.trace {
            let tried = TriedCode { source: source.as_deref(), ask_agent: true };
            let tried = self.try_on(&client, &payload, self.timer_allowance, tried).await?;
            cx.ui.document(&tried)?;
            if let Err(error) = succeeded(&tried) {
                if source.is_some() {
                    return Err(error);
                }
                return Err(self.meant(&client, &payload, &tried, error).await);
            }
            let cost = cost_to_caller(&tried);
            if self.timer_allowance.is_none() && !cost.is_zero() {
                warn(&format!(
                    "the caller would pay for timers, {} at most, which the call has to allow: {}",
                    amount(cost),
                    allowance::hint(cost),
                ));
            }
            return Ok(());
        }
        let signer = self.author.signer(&devnet, &client).await?;
        let actor = address_of(&client, &self.actor).await?;
        let budget = Some(self.budget(&client, &payload).await?);
        let timer_allowance = self.timer_allowance;
        let limits = TransactionLimits { budget, timer_allowance, ..TransactionLimits::default() };
        let (handler, value) = (self.handler, self.value);
        let payload = Payload::CallActor(CallActor { actor, handler, payload, value });
        let deadline = Deadline::after(self.inclusion.timeout);
        let executed =
            transaction::settle(cx.ui, &client, &signer, payload, limits, deadline).await?;
        // A call that failed in its block has a receipt that says how far it got.
        if executed.transaction.status == TransactionStatus::Failed {
            let transaction = &executed.transaction;
            cx.ui.document(&Called::of(transaction))?;
            let reason = reason(transaction.error.as_deref(), transaction.message.as_deref());
            let error = failure(&reason.unwrap_or_default());
            return Err(match error.hint {
                Some(_) => error,
                None => error.hint(format!("see it: cowboyctl chain tx {}", transaction.hash)),
            });
        }
        cx.ui.document(&Called::of(executed.succeeded()?))
    }

    /// The call's budget: as given, else what a trial on the newest state uses plus a margin.
    async fn budget(&self, client: &Client, payload: &[u8]) -> Result<Budget, CliError> {
        if let (Some(cycles), Some(cells)) = (self.cycles, self.cells) {
            return Ok(Budget { cycles, cells });
        }
        let allowance = self.timer_allowance.unwrap_or(Wei::ZERO);
        let tried = self.try_on(client, payload, Some(allowance), TriedCode::default()).await?;
        if let Err(error) = succeeded(&tried) {
            let nothing = "nothing was sent; to send it anyway, give --cycles and --cells";
            return Err(self.meant(client, payload, &tried, error.hint(nothing)).await);
        }
        let Budget { cycles, cells } = with_margin(tried.usage.cycles, tried.usage.cells);
        Ok(Budget { cycles: self.cycles.unwrap_or(cycles), cells: self.cells.unwrap_or(cells) })
    }

    /// Adds a hint to the error: the handler that was probably meant if the actor has no such
    /// handler, the amount needed if the timers exceed their allowance.
    async fn meant(
        &self,
        client: &Client,
        payload: &[u8],
        tried: &DryRun,
        error: CliError,
    ) -> CliError {
        let said = |name: &str| {
            [&tried.error, &tried.message].into_iter().flatten().any(|text| text.contains(name))
        };
        if said("PayerNotWilling") {
            // Without an answer, keep the error unchanged.
            let free = self.try_on(client, payload, None, TriedCode::default()).await;
            let cost = free.map_or(Wei::ZERO, |free| cost_to_caller(&free));
            return if cost.is_zero() { error } else { error.hint(allowance::hint(cost)) };
        }
        if !said("UnknownHandler") {
            return error;
        }
        // Without an answer, keep the error unchanged, because it is about the call.
        let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
        let Ok(actor) = client.actor(&self.actor, &query).await else { return error };
        let names: Vec<_> = actor.handlers.iter().map(|known| known.name.as_str()).collect();
        error.detail(match nearest(&self.handler, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("it has: {}", names.join(", ")),
        })
    }

    /// What the call would do with this allowance for timers; `None` is unlimited.
    async fn try_on(
        &self,
        client: &Client,
        payload: &[u8],
        timer_allowance: Option<Wei>,
        TriedCode { source, ask_agent }: TriedCode<'_>,
    ) -> Result<DryRun, CliError> {
        let request = DryRunRequest {
            sender: self.author.account().to_owned(),
            handler: self.handler.clone(),
            payload: Text(Bytes(payload.to_vec())),
            value: Text(self.value),
            cycles: self.cycles,
            cells: self.cells,
            timer_allowance: timer_allowance.map(Text),
            at: HeightArg::past(self.at, client).await?,
            ask_agent: Some(ask_agent),
            trace: Some(self.trace),
            profile: None,
            source: source.map(str::to_owned),
        };
        Ok(client.dry_run(&self.actor, &request).await?)
    }
}

/// The code that a dry run runs.
#[derive(Debug, Clone, Copy, Default)]
struct TriedCode<'a> {
    /// A module in place of the actor's own.
    source: Option<&'a str>,
    /// Whether an agent's function, which no transaction can call, is called as the chain calls it.
    ask_agent: bool,
}

fn cost_to_caller(tried: &DryRun) -> Wei {
    allowance::cost(&allowance::told(&tried.events), tried.sender)
}

pub(super) fn succeeded(tried: &DryRun) -> Result<(), CliError> {
    if tried.success {
        return Ok(());
    }
    let reason = reason(tried.error.as_deref(), tried.message.as_deref());
    Err(failure(&reason.unwrap_or_default()))
}
