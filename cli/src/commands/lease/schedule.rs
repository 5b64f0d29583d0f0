//! `lease schedule`: runs that are submitted whenever a timer of the chain fires.

use super::{complete, connect::ServerChoice, find, submit::RunSource};
use crate::{
    complete as names,
    context::Context,
    error::{CliError, Exit, nearest},
};
use clap::Subcommand;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::types::StoreQuery;
use cowboy_engine::primitives::Address;
use cowboy_lease::messages::NewSchedule;

#[derive(Debug, Subcommand)]
pub enum Schedule {
    /// Submit a run automatically, whenever a timer of an actor fires
    ///
    /// This needs the lease server of a devnet: each fire that succeeds makes one run, from the
    /// next block on, also after restarts. `timer schedule ACTOR --every BLOCKS` makes such a
    /// timer. The server keeps the run as it is now, with its secrets.
    Add {
        #[command(flatten)]
        source: RunSource,
        /// The actor whose timers count: a name, its address or enough of its beginning, or latest
        #[arg(long, value_name = "ACTOR", add = ArgValueCandidates::new(names::actors))]
        actor: String,
        /// Only timers that call this handler [default: all timers of the actor]
        #[arg(long, value_name = "NAME")]
        handler: Option<String>,
        #[command(flatten)]
        server: ServerChoice,
    },
    /// List schedules, newest first: how many runs each has made, and the last one
    Ls {
        #[command(flatten)]
        server: ServerChoice,
    },
    /// Remove a schedule; the runs that it made stay
    Rm {
        /// The schedule: its id, or the beginning of it
        #[arg(add = ArgValueCandidates::new(complete::schedules))]
        schedule: String,
        #[command(flatten)]
        server: ServerChoice,
    },
}

impl Schedule {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Add { source, actor, handler, server } => {
                let run = source.read()?;
                let client = server.client(cx)?;
                let actor = known(cx, &actor, handler.as_deref()).await?.to_string();
                let new = NewSchedule { actor, handler, run };
                let made = client.add_schedule(&new).await?;
                cx.ui.document(&made)?;
                cx.ui.note(&format!(
                    "timers of the actor submit it; make one: cowboyctl timer schedule {} --every \
                     BLOCKS",
                    made.actor
                ));
                Ok(())
            }
            Self::Ls { server } => cx.ui.list(&server.client(cx)?.schedules().await?),
            Self::Rm { schedule, server } => {
                let client = server.client(cx)?;
                let schedule = find::schedule(&client, &schedule).await?;
                cx.ui.document(&client.remove_schedule(&schedule).await?)
            }
        }
    }
}

/// Checks that the actor is on the chain of this machine's devnet and has the handler.
async fn known(cx: &Context, actor: &str, handler: Option<&str>) -> Result<Address, CliError> {
    let client = match (cx.client(), actor.parse()) {
        (Ok(client), _) => client,
        // Without a devnet here, only the server knows whether it has a chain.
        (Err(error), Ok(address)) if error.exit == Exit::NotRunning => return Ok(address),
        (Err(error), _) => return Err(error),
    };
    let query = StoreQuery { limit: Some(1), ..StoreQuery::default() };
    let known = client.actor(actor, &query).await.map_err(|error| {
        let error = CliError::from(error);
        match error.exit {
            Exit::NotFound => error.hint("deploy one: cowboyctl actor deploy FILE"),
            _ => error,
        }
    })?;
    let Some(handler) = handler else { return Ok(*known.actor) };
    let handlers = known.handlers.iter().map(|one| one.name.as_str());
    if handlers.clone().any(|name| name == handler) {
        return Ok(*known.actor);
    }
    let what = format!("actor {} has no handler `{handler}`", known.actor);
    Err(match nearest(handler, handlers) {
        Some(meant) => CliError::new(Exit::NotFound, what).hint(format!("did you mean `{meant}`?")),
        None => CliError::new(Exit::NotFound, what)
            .hint(format!("list its handlers: cowboyctl actor show {}", known.actor)),
    })
}
