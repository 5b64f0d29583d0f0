//! `GET /v1/speculation/events/stream`: the actions of speculation's components as they happen, as
//! server-sent events.
//!
//! Like the stream of blocks ([`events`](super::events)), it stores only the number of the event
//! that it sends next, and has no queue: it reads the agent's journal at its reader's pace. If a
//! reader is so slow that the journal has dropped its next events, one event with the number of
//! dropped events replaces them. The stream makes room for others as the stream of blocks does.

use super::{
    backend::Speculation,
    error::ApiError,
    events::{LAST_EVENT_ID, farewell, last_seen, respond},
    extract::{InQuery, authorize},
    routes::speculation::check_events,
    server::ServerState,
    streams::StreamPlace,
    types::{SPECULATION_EVENT, SpeculationEvent, SpeculationEventQuery},
};
use crate::http::Reader;
use axum::{
    Extension,
    extract::State,
    http::HeaderMap,
    response::{Response, sse::Event},
};
use futures::{FutureExt as _, future::BoxFuture, stream};
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::watch;

/// The number of events read at a time.
const PAGE: usize = 256;

/// `GET /v1/speculation/events/stream`
pub(super) async fn feed(
    State(shared): State<Arc<ServerState>>,
    InQuery(query): InQuery<SpeculationEventQuery>,
    Extension(reader): Extension<Reader>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    check_events(&query)?;
    let last = headers.get(LAST_EVENT_ID).map(last_seen).transpose()?;
    let agent = shared.backend.speculation().cloned();
    let agent = agent
        .ok_or_else(|| ApiError::not_found("this devnet has no agent: it runs no pipelines"))?;
    let told = agent.told();
    let from = last.map(|last| last.saturating_add(1)).or(query.from);
    let from = from.unwrap_or_else(|| *told.borrow());
    let known = authorize(&headers, &shared.backend.token).is_ok();
    let place = shared.streams.take(known, move || reader.stalled());
    let feed = Feed {
        closed: shared.closed().map(|_| ()).boxed(),
        shared,
        agent,
        told,
        query: SpeculationEventQuery { from: Some(from), limit: Some(PAGE), ..query },
        read: VecDeque::new(),
        place,
        replaced: false,
    };
    Ok(respond(stream::unfold(feed, |mut feed| async {
        let event = feed.next().await?;
        Some((event, feed))
    })))
}

/// A stream of events.
struct Feed {
    shared: Arc<ServerState>,
    agent: Arc<dyn Speculation>,
    /// Wakes when there is a new event, which is then read from the journal.
    told: watch::Receiver<u64>,
    /// The filter of the events; its `from` is the event to read next.
    query: SpeculationEventQuery,
    /// Events read but not sent yet, at most one page.
    read: VecDeque<SpeculationEvent>,
    /// Resolves when the server stops.
    closed: BoxFuture<'static, ()>,
    /// One of the places for streams.
    place: StreamPlace,
    /// Another stream has taken the place, and the reader has been told.
    replaced: bool,
}

impl Feed {
    /// The next event; `None` at the stream's end.
    async fn next(&mut self) -> Option<Event> {
        if self.replaced {
            return None;
        }
        loop {
            if self.place.replaced().now_or_never().is_some() {
                self.replaced = true;
                return Some(farewell());
            }
            if (&mut self.closed).now_or_never().is_some() {
                return None;
            }
            if let Some(event) = self.read.pop_front() {
                let told = Event::default().event(SPECULATION_EVENT).id(event.seq.to_string());
                return told.json_data(&event).ok();
            }
            // Marked as seen before the read, so that events during the read wake it again.
            self.told.borrow_and_update();
            let (agent, query) = (self.agent.clone(), self.query.clone());
            let page = self.shared.blocking(move |_| Ok(agent.events(&query))).await.ok()?;
            self.query.from = Some(page.next);
            self.read.extend(page.events);
            if !self.read.is_empty() || page.more {
                continue;
            }
            tokio::select! {
                biased;
                () = &mut self.closed => return None,
                () = self.place.replaced() => {
                    self.replaced = true;
                    return Some(farewell());
                }
                told = self.told.changed() => {
                    if told.is_err() {
                        return None;
                    }
                }
            }
        }
    }
}
