//! `actor`: modules on the chain, their handlers, stores and logs.

pub(super) mod call;
pub(super) mod check;
pub(super) mod deploy;
mod logs;
mod module;
mod python;
mod show;
pub(super) mod test;

pub use show::{receipt_fields, receipt_log};

use crate::{
    complete,
    context::Context,
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
    primitives::{Address, Shortfall},
};

#[derive(Debug, Subcommand)]
pub enum Actor {
    /// Check whether a module would deploy; needs no devnet
    ///
    /// If it would be refused, the error names the line and column.
    Check(check::Check),
    /// Run a module's tests, its functions test_*; needs no devnet
    ///
    /// Each test runs on its own chain with a virtual height, which `mock` moves: docs/actors.md.
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
        /// Maximum number of keys of its store
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Call a handler of an actor
    ///
    /// Without --cycles and --cells the call is tried on the newest state first. If it would fail
    /// there, it is not sent; otherwise its limits are what the trial used and a quarter more.
    Call(call::Call),
    /// Show what an actor logged and emitted, and how calls to it failed
    Logs(logs::Logs),
}

impl Actor {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Check(check) => check.run(cx),
            Self::Test(test) => test.run(cx),
            Self::Deploy(deploy) => deploy.run(cx).await,
            Self::Ls { deployer, limit } => {
                let query = ActorQuery { deployer, limit: Some(limit) };
                cx.ui.list(&cx.client()?.actors(&query).await?)
            }
            Self::Show { actor, prefix, limit } => {
                let query = StoreQuery { prefix, from: None, limit: Some(limit) };
                cx.ui.document(&cx.client()?.actor(&actor, &query).await?)
            }
            Self::Call(call) => call.run(cx).await,
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
    let error = CliError::new(Exit::Rejected, lines.next().unwrap_or_default());
    let stack: Vec<_> = lines.collect();
    let error = if stack.is_empty() { error } else { error.detail(stack.join(", ")) };
    match Shortfall::in_text(message) {
        Some(short) => error.hint(funding(&short, None)),
        None => error,
    }
}
