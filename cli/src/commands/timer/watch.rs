//! `timer watch`: prints events about timers, as their blocks become final.

use super::actor_of;
use crate::{complete, context::Context, error::CliError, output::timer::has_ended};
use clap::Args;
use clap_complete::ArgValueCandidates;
use cowboy_devnet::{client::Client, types::Event};
use std::collections::BTreeSet;

const ENDS: [&str; 4] =
    ["TimerFired", "TimerExpired", "TimerCancelled", "TimerCancelledInsufficientFunds"];

const OF_AGENTS: [&str; 2] = ["GbaFailed", "AgentsAsked"];

/// `timer watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The timer: a name, its id or enough of its beginning, or latest [default: every timer]
    #[arg(conflicts_with = "actor", add = ArgValueCandidates::new(complete::timers))]
    timer: Option<String>,
    /// Every timer of this actor: a name, its address or enough of its beginning, or latest
    #[arg(long, value_name = "ACTOR", add = ArgValueCandidates::new(complete::actors))]
    actor: Option<String>,
}

impl Watch {
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

/// Prints the past events of a timer, and new ones until it has ended.
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
            // The effects of its fire on other timers are shown as what its handler emits.
            if new && (about || event.timer == Some(timer.timer_id)) {
                cx.ui.record(&event)?;
                ended |= about && ENDS.contains(&event.kind.as_str());
            }
        }
    }
    Ok(())
}

/// Prints the events of an actor's timers, and the effects of their fires on other timers.
async fn of_actor(cx: &Context, client: &Client, actor: &str) -> Result<(), CliError> {
    let mut blocks = client.follow(None);
    blocks.connect().await?;
    let actor = actor_of(client, actor).await?.actor.to_string();
    loop {
        let events = blocks.next().await?.events;
        of_owner(&events, &actor).try_for_each(|event| cx.ui.record(event))?;
    }
}

fn of_owner<'a>(events: &'a [Event], owner: &str) -> impl Iterator<Item = &'a Event> {
    let named =
        |event: &Event| event.data.get("actor").and_then(|actor| actor.as_str()).map(str::to_owned);
    let fired: BTreeSet<_> = events
        .iter()
        .filter(|event| event.kind == "TimerFired" && named(event).as_deref() == Some(owner))
        .filter_map(|event| event.timer_id.as_ref().map(ToString::to_string))
        .collect();
    let owner = owner.to_owned();
    events.iter().filter(move |event| {
        let about = event.kind.starts_with("Timer") || OF_AGENTS.contains(&event.kind.as_str());
        let through = event.timer.as_ref().map(ToString::to_string);
        about && named(event).as_deref() == Some(owner.as_str())
            || through.is_some_and(|timer| fired.contains(&timer))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_devnet::types::{HashText, Text};
    use cowboy_engine::primitives::Hash;
    use serde_json::{Value, json};

    fn hash(n: u8) -> HashText {
        Text(Hash([n; 32]))
    }

    fn event(kind: &str, timer: Option<u8>, timer_id: Option<u8>, data: Value) -> Event {
        Event {
            height: 1,
            index: 0,
            kind: kind.to_owned(),
            transaction: None,
            timer: timer.map(hash),
            job_id: None,
            timer_id: timer_id.map(hash),
            data,
        }
    }

    #[test]
    fn an_owners_events_are_known_without_having_seen_its_timers() {
        let (mine, other) = (json!({"actor": "0xaa"}), json!({"actor": "0xbb"}));
        let events = [
            event("TimerCancelledInsufficientFunds", None, Some(1), mine.clone()),
            event("TimerCancelledInsufficientFunds", None, Some(2), other.clone()),
            event("TimerExtended", None, Some(3), mine.clone()),
            event("GbaFailed", None, Some(3), mine.clone()),
            event("AgentsAsked", None, None, mine.clone()),
            event("ActorCalled", Some(4), Some(4), mine.clone()),
            event("Transferred", Some(4), Some(4), json!({"to": "0xbb"})),
            event("TimerFired", Some(4), Some(4), mine.clone()),
            event("ActorCalled", Some(5), Some(5), mine.clone()),
            event("TimerFired", Some(5), Some(5), other),
            event("ActorDeployed", None, None, mine),
        ];
        let told: Vec<_> = of_owner(&events, "0xaa")
            .map(|event| events.iter().position(|known| std::ptr::eq(known, event)).unwrap())
            .collect();
        assert_eq!(told, [0, 2, 3, 4, 5, 6, 7]);
    }
}
