//! `GET /v1/events`: every block as it becomes final, as server-sent events.
//!
//! A stream's only state is the height that it sends next. While that block is stored, it reads and
//! sends it; otherwise it waits until a validator has stored the block. So a stream has no queue: a
//! reader that is slow, or starts far back, reads the store at its own pace, and neither misses a
//! block nor gets one twice.
//!
//! Each block comes from the running validator with the highest head, so that a paused, isolated or
//! stopped validator does not hold up readers. A stream that names a validator takes blocks only
//! from that one and ends when it stops. Every stream ends when the server stops or no validator
//! runs; the reader returns with `Last-Event-ID`.
//!
//! A stream that has to make room for another ([`streams`](crate::api::streams)) ends with an event
//! that announces this and asks the reader to wait before it returns.

use crate::{
    api::{
        convert::{self, count},
        error::ApiError,
        executed::Executed,
        extract::{InQuery, authorize},
        openapi,
        route::Route,
        routes::chain::certificate_heights,
        state::ServerState,
        streams::StreamPlace,
        view::View,
    },
    storage::{EventFilter, StoredEvent},
    types::{BlockNotice, KEEP_ALIVE_SECS, NodeQuery, REPLACED, RETURN_MS, StreamQuery},
};
use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, header::CACHE_CONTROL},
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use cowboy_engine::{
    chain::{EventKind, block::MAX_OPEN, event::PresenceDerived},
    presence::Connectivity,
    primitives::Height,
};
use cowboy_host::http::{
    Reader,
    openapi::{Operation, parameter},
};
use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream};
use std::{future::ready, sync::Arc, time::Duration};
use utoipa::openapi::{
    Required,
    path::{Parameter, ParameterIn},
};

/// The header with the number of the last event that a returning reader has seen; the number of a
/// block is its height.
pub(super) const LAST_EVENT_ID: &str = "last-event-id";

pub(super) fn table() -> Vec<Route> {
    vec![Route::new(
        Method::GET,
        "/v1/events",
        events,
        Operation::new(
            "Every block as it becomes final: events of type `block`, with the heights as ids; \
                 one of type `replaced` ends a stream that makes room for another",
        )
        .one_as::<BlockNotice>(200, "text/event-stream")
        .query::<NodeQuery>()
        .query::<StreamQuery>()
        .parameter(last_event_id(
            "The height of the last block seen: the stream continues after it",
        )),
    )]
}

async fn events(
    State(shared): State<Arc<ServerState>>,
    InQuery(node): InQuery<NodeQuery>,
    InQuery(query): InQuery<StreamQuery>,
    Extension(reader): Extension<Reader>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let last = headers.get(LAST_EVENT_ID).map(last_seen).transpose()?;
    let NodeQuery { node } = node;
    // Subscribed before a validator is chosen, because that one may stop at any moment.
    let executed = Executed::new(shared.backend.clone(), node.clone());
    let view = View::of(shared.backend.clone(), node.as_deref())?;
    let next = match (last, query.from) {
        (Some(last), _) => Height::new(last).next(),
        (None, Some(from)) => {
            view.kept(Height::new(from))?;
            Height::new(from)
        }
        (None, None) => view.head().next(),
    };
    let stay = Stay::new(&shared, reader, &headers);
    let blocks = BlockStream { shared, node, executed, next, stay };
    Ok(respond(stream::unfold(blocks, |mut blocks| async {
        let event = blocks.next().await.map_or_else(|last| last, Some)?;
        Some((event, blocks))
    })))
}

pub(super) fn last_event_id(description: &str) -> Parameter {
    let within = ParameterIn::Header;
    parameter("Last-Event-ID", within, Required::False, description, openapi::text())
}

/// A response with server-sent events as they come, which must not be cached.
pub(super) fn respond(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(KEEP_ALIVE_SECS));
    let events = Sse::new(events.map(Ok::<_, axum::Error>));
    let mut response = events.keep_alive(keep_alive).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) fn last_seen(header: &HeaderValue) -> Result<u64, ApiError> {
    header.to_str().ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
        ApiError::bad_request("the header Last-Event-ID: expected the number of an event")
    })
}

struct BlockStream {
    shared: Arc<ServerState>,
    /// The validator that the request names; `None` means the one with the highest head.
    node: Option<String>,
    /// Wakes when a validator has executed a block; the block is read from a store.
    executed: Executed,
    next: Height,
    stay: Stay,
}

impl BlockStream {
    /// The next block; fails at the stream's end, with its last event.
    async fn next(&mut self) -> Result<Event, Option<Event>> {
        self.stay.until(ready(())).await?;
        let view = loop {
            let view = View::of(self.shared.backend.clone(), self.node.as_deref());
            let view = view.map_err(|_| None)?;
            if self.next <= view.head() {
                break view;
            }
            self.stay.until(self.executed.next()).await?;
        };
        let height = self.next;
        // A read error has been logged, and a returning reader gets it as an answer.
        let notice = self.shared.blocking(move |_| notice(&view, height)).await;
        let notice = notice.map_err(|_| None)?;
        self.next = height.next();
        let event = Event::default().event("block").id(height.to_string());
        event.json_data(&notice).map_err(|_| None)
    }
}

/// The last event of a stream that makes room.
fn farewell() -> Event {
    Event::default()
        .event(REPLACED)
        .retry(Duration::from_millis(RETURN_MS))
        .data("all places for event streams are taken, and another stream needed this one")
}

/// What ends a stream: the server's stop, or another stream that needs its place.
pub(super) struct Stay {
    closed: BoxFuture<'static, ()>,
    place: StreamPlace,
    /// Another stream has taken the place, and the reader has been told.
    replaced: bool,
}

impl Stay {
    pub(super) fn new(shared: &ServerState, reader: Reader, headers: &HeaderMap) -> Self {
        let known = authorize(headers, &shared.backend.token).is_ok();
        let place = shared.streams.take(known, move || reader.stalled());
        Self { closed: shared.closed().boxed(), place, replaced: false }
    }

    /// Waits for `wake`; fails if the stream ends first, with its last event.
    pub(super) async fn until<W: Future>(&mut self, wake: W) -> Result<W::Output, Option<Event>> {
        if self.replaced {
            return Err(None);
        }
        tokio::select! {
            biased;
            () = &mut self.closed => Err(None),
            () = self.place.replaced() => {
                self.replaced = true;
                Err(Some(farewell()))
            }
            woken = wake => Ok(woken),
        }
    }
}

fn notice(view: &View, height: Height) -> Result<BlockNotice, ApiError> {
    let block = view.block(height)?;
    let header = &block.header;
    let (_, finalized_at) = view.executed(height)?;
    let certified = block.certificates.iter().map(|certificate| certificate.block);
    let events = view.store().events_at(height)?;
    let (present, registry_len) = runners(view, height, &events)?;
    Ok(BlockNotice {
        height: height.get(),
        hash: header.hash().into(),
        proposer: view.proposer(header).map(|address| view.name(&address)),
        view: header.round.view,
        finalized_at,
        transactions: count(block.transactions.len()),
        fires: view.store().count_fires(height)?,
        certificate_for: certificate_heights(view, height, certified)?,
        present,
        registry_len,
        events: events.iter().map(convert::event::event).collect(),
    })
}

/// Whether a block had no recent enough P(h), according to its own events.
fn unknown(events: &[StoredEvent]) -> bool {
    events.iter().any(|stored| matches!(stored.event.kind, EventKind::PresenceUnavailable(_)))
}

/// The number of runners in the newest P(h) known in the block at `height`, which has these
/// `events`.
fn present(view: &View, height: Height, events: &[StoredEvent]) -> Result<u32, ApiError> {
    let newest = |events: &[StoredEvent]| {
        let derived = events.iter().filter(|stored| stored.height <= height);
        let derived = derived.filter_map(|stored| match stored.event.kind {
            EventKind::PresenceDerived(PresenceDerived { certified, present, .. }) => {
                Some((certified, present))
            }
            _ => None,
        });
        derived.max_by_key(|(certified, _)| *certified)
    };
    // The parent's P(h) is the newest that can be known, and it usually is known.
    let of_parent = newest(events).filter(|(certified, _)| Some(*certified) == height.previous());
    if let Some((_, present)) = of_parent {
        return Ok(present);
    }
    // P(h) is embedded after h, and it no longer counts when it is older than this.
    let most = Connectivity::MAX_PRESENCE_TIMEOUT;
    let from = Height::new(height.get().saturating_sub(most));
    let limit = count((most as usize + 1) * (MAX_OPEN + 1));
    let derived =
        view.store().events(EventFilter { from, kind: Some("PresenceDerived"), limit })?;
    Ok(newest(&derived.rows).map_or(0, |(_, present)| present))
}

/// The number of runners present in a block, and the number registered after it. Derived from
/// events, because the state of an old block is not kept.
fn runners(view: &View, height: Height, events: &[StoredEvent]) -> Result<(u32, u32), ApiError> {
    let present = match unknown(events) {
        true => 0,
        false => present(view, height, events)?,
    };
    let after = |kind| view.store().count_events(kind, height, view.head());
    let (came, left) = (after("RunnerRegistered")?, after("RunnerDeregistered")?);
    let registered = (u64::from(view.state.registry().order().len()) + left).saturating_sub(came);
    Ok((present, u32::try_from(registered).unwrap_or(u32::MAX)))
}
