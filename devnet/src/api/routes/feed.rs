//! `GET /v1/speculation/events/stream`: the actions of speculation's components as they happen, as
//! server-sent events.
//!
//! Like the stream of blocks ([`events`](super::events)), it stores only the number of the event
//! that it sends next, and has no queue: it reads the agent's journal at its reader's pace. If a
//! reader is so slow that the journal has dropped its next events, one event with the number of
//! dropped events replaces them. The stream makes room for others as the stream of blocks does.

use super::events::{LAST_EVENT_ID, Stay, last_event_id, last_seen, respond};
use crate::{
    api::{
        backend::{Backend, Speculation},
        error::ApiError,
        extract::InQuery,
        route::Route,
        state::ServerState,
    },
    types::{SPECULATION_EVENT, SpeculationEvent, SpeculationEventQuery, speculation_event_kinds},
};
use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, Method},
    response::{Response, sse::Event},
};
use cowboy_host::http::{Reader, openapi::Operation};
use futures::stream;
use std::{collections::VecDeque, future::ready, sync::Arc};
use tokio::sync::watch;

const PAGE: usize = 256;

pub(super) fn table() -> Vec<Route> {
    vec![Route::new(
        Method::GET,
        "/v1/speculation/events/stream",
        feed,
        Operation::new(
            "Events from the components of speculation as they happen: of type `speculation`, \
                 with their numbers as ids; one of type `replaced` ends a stream that makes room \
                 for another",
        )
        .one_as::<SpeculationEvent>(200, "text/event-stream")
        .query::<SpeculationEventQuery>()
        .parameter(last_event_id(
            "The number of the last event seen: the stream continues after it",
        )),
    )]
}

async fn feed(
    State(shared): State<Arc<ServerState>>,
    InQuery(query): InQuery<SpeculationEventQuery>,
    Extension(reader): Extension<Reader>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    check_events(&query)?;
    let last = headers.get(LAST_EVENT_ID).map(last_seen).transpose()?;
    let agent = agent(&shared.backend)?;
    let told = agent.told();
    let from = last.map(|last| last.saturating_add(1)).or(query.from);
    let from = from.unwrap_or_else(|| *told.borrow());
    let feed = Feed {
        stay: Stay::new(&shared, reader, &headers),
        shared,
        agent,
        told,
        query: SpeculationEventQuery { from: Some(from), limit: Some(PAGE), ..query },
        read: VecDeque::new(),
    };
    Ok(respond(stream::unfold(feed, |mut feed| async {
        let event = feed.next().await.map_or_else(|last| last, Some)?;
        Some((event, feed))
    })))
}

pub(super) fn agent(backend: &Backend) -> Result<Arc<dyn Speculation>, ApiError> {
    let no_agent = || ApiError::not_found("this devnet has no agent: it runs no pipelines");
    backend.speculation().cloned().ok_or_else(no_agent)
}

pub(super) fn check_events(query: &SpeculationEventQuery) -> Result<(), ApiError> {
    let Some(kind) = &query.kind else { return Ok(()) };
    if speculation_event_kinds().any(|one| one == kind) {
        return Ok(());
    }
    let all: Vec<_> = speculation_event_kinds().collect();
    Err(ApiError::bad_request(format!("`{kind:.40}` is not a kind: expected {}", all.join(", "))))
}

struct Feed {
    shared: Arc<ServerState>,
    agent: Arc<dyn Speculation>,
    /// Wakes when there is a new event, which is then read from the journal.
    told: watch::Receiver<u64>,
    /// The filter of the events; its `from` is the event to read next.
    query: SpeculationEventQuery,
    /// Events read but not sent yet, at most one page.
    read: VecDeque<SpeculationEvent>,
    stay: Stay,
}

impl Feed {
    /// The next event; fails at the stream's end, with its last event.
    async fn next(&mut self) -> Result<Event, Option<Event>> {
        loop {
            self.stay.until(ready(())).await?;
            if let Some(event) = self.read.pop_front() {
                let told = Event::default().event(SPECULATION_EVENT).id(event.seq.to_string());
                return told.json_data(&event).map_err(|_| None);
            }
            // Marked as seen before the read, so that events during the read wake it again.
            self.told.borrow_and_update();
            let (agent, query) = (self.agent.clone(), self.query.clone());
            let page = self.shared.blocking(move |_| Ok(agent.events(&query))).await;
            let page = page.map_err(|_| None)?;
            self.query.from = Some(page.next);
            self.read.extend(page.events);
            if !self.read.is_empty() || page.more {
                continue;
            }
            self.stay.until(self.told.changed()).await?.map_err(|_| None)?;
        }
    }
}
