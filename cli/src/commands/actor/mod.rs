//! `actor`: modules on the chain, their handlers, stores and logs.

pub(super) mod analysis;
pub(super) mod call;
pub(super) mod check;
pub(super) mod coverage;
pub(super) mod deploy;
mod logs;
mod module;
mod powers;
pub(super) mod profile;
mod property;
mod pytest;
mod python;
pub(super) mod repl;
mod show;
pub(super) mod test;

pub use show::{receipt_fields, receipt_log};

use crate::{
    args::{self, HeightArg},
    commands::transaction::{self, Author},
    complete,
    context::{Context, Deadline},
    error::{CliError, Exit},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    api::funding,
    client::Client,
    types::{ActorQuery, StoreQuery},
};
use cowboy_engine::{
    actor::Budget,
    chain::{Payload, transaction::TransferOwnership},
    primitives::{Address, Shortfall},
};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum Actor {
    /// Check whether a module would deploy; needs no devnet
    ///
    /// If it would be refused, the error names the line and column. A module in Python is read and
    /// loaded by the machine that `pvm install` made; findings are errors and warnings.
    Check(check::Check),
    /// Run a module's tests, its functions test_*; needs no devnet
    ///
    /// Each test runs on its own chain with a virtual height, which `mock` moves: docs/actors.md.
    /// A test with parameters, `def test_adds(ctx, a: int)`, runs on many inputs, and a failing one
    /// is made as simple as possible. For actors in Python it runs pytest, with the SDK's
    /// `SimulatedChain` or on a devnet.
    Test(test::Test),
    /// Deploy a module as an actor
    Deploy(deploy::Deploy),
    /// Actors, newest first
    Ls {
        /// Only actors that this account deployed: a name or an address
        #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
        deployer: Option<String>,
        /// Maximum number of actors
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show an actor: its deployer, handlers, balance and store
    Show {
        /// The actor: a name, its address or enough of its beginning, or latest
        #[arg(add = ArgValueCandidates::new(complete::actors))]
        actor: String,
        /// Only keys of its store with this prefix
        #[arg(long, value_name = "KEY")]
        prefix: Option<String>,
        /// The first key to show of its store, as the page before names it
        #[arg(long, value_name = "KEY")]
        from: Option<String>,
        /// Maximum number of keys of its store
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// As it was after this block, one of the last 256 [default: the newest]
        #[arg(long, value_name = "HEIGHT")]
        at: Option<HeightArg>,
    },
    /// Call a handler of an actor
    ///
    /// Without --cycles and --cells the call is tried on the newest state first. If it would fail
    /// there, it is not sent; otherwise its limits are what the trial used and a quarter more.
    Call(call::Call),
    /// Show what a call would spend, by line; nothing is sent
    ///
    /// It runs as a dry run. Each line of the modules that it calls has its cycles and cells, which
    /// add up to the call's usage. An actor in Python has one row for each handler.
    Profile(profile::ProfileCall),
    /// A prompt inside an actor's module: expressions on its state, calls, its store
    ///
    /// What is typed is evaluated as a dry run, with the names of the module, and nothing of it is
    /// sent. `:help` lists commands. Without a terminal, it reads lines and prints values.
    Repl(repl::Repl),
    /// Replace an actor's code, for a test; its store stays, and `init` is not called
    ///
    /// Governance signs; a chain whose genesis refuses powers refuses it.
    SetCode(powers::SetActorCode),
    /// Set or remove an entry of an actor's store, for a test
    ///
    /// Governance signs; a chain whose genesis refuses powers refuses it.
    SetState(powers::SetActorState),
    /// Hand an actor in Python over to another owner
    Transfer {
        /// The actor: a name, its address or enough of its beginning, or latest
        #[arg(add = ArgValueCandidates::new(complete::actors))]
        actor: String,
        /// The new owner: an account's name, or an address
        #[arg(long, value_name = "ACCOUNT", add = ArgValueCandidates::new(complete::accounts))]
        to: String,
        #[command(flatten)]
        author: Author,
        /// Maximum time to wait for its block
        #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "30s")]
        timeout: Duration,
    },
    /// Show what an actor logged and emitted, and how calls to it failed
    Logs(logs::Logs),
}

impl Actor {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Check(check) => check.run(cx),
            Self::Test(test) => test.run(cx).await,
            Self::Deploy(deploy) => deploy.run(cx).await,
            Self::Ls { deployer, limit } => {
                let query = ActorQuery { deployer, limit: Some(limit) };
                cx.ui.list(&cx.client()?.actors(&query).await?)
            }
            Self::Show { actor, prefix, from, limit, at } => {
                let client = cx.client()?;
                let at = HeightArg::past(at, &client).await?;
                let query = StoreQuery { prefix, from, limit: Some(limit), at };
                cx.ui.document(&client.actor(&actor, &query).await?)
            }
            Self::Transfer { actor, to, author, timeout } => {
                let (devnet, client) = cx.devnet_and_client()?;
                let signer = author.signer(&devnet, &client).await?;
                let address = address_of(&client, &actor).await?;
                let owner = *client.account(&to).await?.address;
                let transfer = TransferOwnership { actor: address, owner };
                let payload = Payload::TransferOwnership(transfer);
                let deadline = Deadline::after(timeout);
                transaction::execute(cx.ui, &client, &signer, payload, deadline).await?;
                let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
                cx.ui.document(&client.actor(&address.to_string(), &query).await?)
            }
            Self::Profile(profile) => profile.run(cx).await,
            Self::SetCode(set) => set.run(cx).await,
            Self::SetState(set) => set.run(cx).await,
            Self::Call(call) => call.run(cx).await,
            Self::Repl(repl) => repl.run(cx).await,
            Self::Logs(logs) => logs.run(cx).await,
        }
    }
}

/// Resolves an actor's name, address or beginning of an address to its address.
async fn address_of(client: &Client, actor: &str) -> Result<Address, CliError> {
    match actor.parse() {
        Ok(address) => Ok(address),
        Err(_) => {
            let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
            Ok(*client.actor(actor, &query).await?.actor)
        }
    }
}

/// Adds a margin to what a trial used, because the state in the call's block may differ from the
/// one it was tried on.
const fn with_margin(cycles: u64, cells: u64) -> Budget {
    Budget { cycles: cycles + cycles / 4 + 1_000, cells: cells + cells / 4 + 64 }
}

/// An actor's failure. The first line of `message` is the error, the others are the stack.
fn failure(message: &str) -> CliError {
    let mut lines = message.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let name = first.split_once(": ").map(|(name, _)| name);
    let name = name.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric()));
    let error = CliError::new(Exit::Rejected, first);
    let error = CliError { name: name.map(str::to_owned), ..error };
    let stack: Vec<_> = lines.collect();
    let error = if stack.is_empty() { error } else { error.detail(stack.join(", ")) };
    match Shortfall::in_text(message) {
        Some(short) => error.hint(funding(&short, None)),
        None => error,
    }
}
