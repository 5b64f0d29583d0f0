//! `timer watch`: events about timers, as lines, while their blocks become final.

use super::actor_of;
use crate::{complete, context::Context, error::CliError, output::timer::has_ended};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{
    api::types::{Event, TimerQuery},
    client::Client,
};
use std::collections::BTreeSet;

/// Events after which a timer waits no more.
const ENDS: [&str; 4] =
    ["TimerFired", "TimerExpired", "TimerCancelled", "TimerCancelledInsufficientFunds"];

/// The most timers of an actor that are known when its watch begins.
const KNOWN: usize = 10_000;

/// `timer watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The timer: its id, enough of the beginning, or latest [default: every timer]
    #[arg(conflicts_with = "actor")]
    #[arg(add = ArgValueCandidates::new(complete::timers))]
    timer: Option<String>,
    /// Every timer of this actor: its address, or enough of the beginning
    #[arg(long, value_name = "ACTOR", env = "COWBOYCTL_ACTOR", hide_env_values = true)]
    #[arg(add = ArgValueCandidates::new(complete::actors))]
    actor: Option<String>,
}

impl Watch {
    /// Runs the command.
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let client = cx.client()?;
        match (&self.timer, &self.actor) {
            (Some(timer), _) => one(cx, &client, timer).await,
            (None, Some(actor)) => of_actor(cx, &client, actor).await,
            (None, None) => {
                let mut blocks = client.follow(None);
                loop {
                    for event in blocks.next().await?.events {
                        if event.timer_id.is_some() {
                            cx.ui.record(&event)?;
                        }
                    }
                }
            }
        }
    }
}

/// What happened to a timer, and what happens until it has ended.
async fn one(cx: &Context, client: &Client, timer: &str) -> Result<(), CliError> {
    let mut blocks = client.follow(None);
    blocks.connect().await?;
    let timer = client.timer(timer).await?;
    timer.events.iter().try_for_each(|event| cx.ui.record(event))?;
    if has_ended(timer.status) {
        return Ok(());
    }
    let told = timer.events.last().map(|event| (event.height, event.index));
    let mut ended = false;
    while !ended {
        for event in blocks.next().await?.events {
            // The stream may have begun before the timer was asked for.
            let new = told.is_none_or(|told| (event.height, event.index) > told);
            let about = event.timer_id == Some(timer.timer_id);
            // What its fire does to other timers is told of as what its handler emits.
            if new && (about || event.timer == Some(timer.timer_id)) {
                cx.ui.record(&event)?;
                ended |= about && ENDS.contains(&event.kind.as_str());
            }
        }
    }
    Ok(())
}

/// What happens to the timers of an actor. Not every event says whose timer it is about.
async fn of_actor(cx: &Context, client: &Client, actor: &str) -> Result<(), CliError> {
    let mut blocks = client.follow(None);
    blocks.connect().await?;
    let actor = actor_of(client, actor).await?.actor;
    let limit = Some(KNOWN);
    let query = TimerQuery { actor: Some(actor.to_string()), limit, ..TimerQuery::default() };
    let timers = client.timers(&query).await?;
    let mut known: BTreeSet<_> =
        timers.into_iter().map(|timer| timer.timer_id.to_string()).collect();
    let actor = actor.to_string();
    loop {
        for event in blocks.next().await?.events {
            let Some(id) = event.timer_id.as_ref().map(ToString::to_string) else { continue };
            let fired = event.timer.as_ref().map(ToString::to_string);
            if is_of(&event, &actor) {
                known.insert(id.clone());
            }
            if known.contains(&id) || fired.is_some_and(|timer| known.contains(&timer)) {
                cx.ui.record(&event)?;
            }
        }
    }
}

/// Whether an event that begins or ends a timer names this actor as the owner.
fn is_of(event: &Event, actor: &str) -> bool {
    let named = event.data.get("actor").and_then(|actor| actor.as_str());
    event.kind.starts_with("Timer") && named == Some(actor)
}
