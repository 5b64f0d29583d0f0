//! `GET /v1/speculation/events/stream`: what the components of speculation do, as it happens, as
//! server-sent events.
//!
//! As the stream of blocks ([`events`](super::events)) it knows one number, that of the event it
//! sends next, and has no queue: it reads the agent's journal at its reader's pace. Who is so slow
//! that the journal has dropped what comes next gets an event in its place that says how many those
//! were. It makes room for others as that one does.

use super::{
    backend::Speculation,
    error::ApiError,
    events::{LAST_EVENT_ID, farewell, last_seen, respond},
    extract::{InQuery, authorize},
    routes::speculation::check_events,
    server::Shared,
    streams::Place,
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

/// Events that are read at a time.
const PAGE: usize = 256;

/// `GET /v1/speculation/events/stream`
pub(super) async fn feed(
    State(shared): State<Arc<Shared>>,
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
    shared: Arc<Shared>,
    agent: Arc<dyn Speculation>,
    /// Wakes when something has happened; what, is read from the journal.
    told: watch::Receiver<u64>,
    /// Which events, from the one to read next.
    query: SpeculationEventQuery,
    /// Those that were read, a page at most.
    read: VecDeque<SpeculationEvent>,
    /// Resolves when the server stops.
    closed: BoxFuture<'static, ()>,
    /// One of the places for streams.
    place: Place,
    /// Another stream has the place, and the reader was told.
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
            // Seen before it is read: what happens meanwhile wakes it again.
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
