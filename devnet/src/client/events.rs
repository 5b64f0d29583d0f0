//! A devnet's event streams, resumed across lost connections: blocks as they become final, and
//! events from the components of speculation.

use super::{Client, ClientError, REQUEST_TIMEOUT, malformed};
use crate::types::{
    BlockNotice, KEEP_ALIVE_SECS, REPLACED, RETURN_MS, SPECULATION_EVENT, SpeculationEvent,
    SpeculationEventQuery, StreamQuery,
};
use cowboy_host::sse::{Parser, SseMessage};
use reqwest::{Method, Response};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::VecDeque, fmt::Debug, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// The longest message that is read, in bytes; a full block's events are far below.
const MESSAGE_LIMIT: usize = 64 << 20;

/// Silence after which a connection counts as dead: the server speaks three times within it.
const SILENCE: Duration = Duration::from_secs(3 * KEEP_ALIVE_SECS);

/// The pause before the first attempt to reconnect; it doubles to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_millis(RETURN_MS);

/// The time for which a stream tries to reconnect before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A message of one of the streams.
pub trait Streamed: DeserializeOwned {
    type Query: Serialize + Debug + Clone;
    /// The stream's path below `/v1`.
    const PATH: &'static [&'static str];
    const EVENT: &'static str;

    /// The message's number, which orders the stream and is the id of the event.
    fn number(&self) -> u64;
    /// The query without its start, to resume after the last message seen.
    fn resumed(query: &Self::Query) -> Self::Query;
}

impl Streamed for BlockNotice {
    type Query = StreamQuery;
    const PATH: &'static [&'static str] = &["events"];
    const EVENT: &'static str = "block";

    fn number(&self) -> u64 {
        self.height
    }

    fn resumed(_: &StreamQuery) -> StreamQuery {
        StreamQuery { from: None }
    }
}

impl Streamed for SpeculationEvent {
    type Query = SpeculationEventQuery;
    const PATH: &'static [&'static str] = &["speculation", "events", "stream"];
    const EVENT: &'static str = SPECULATION_EVENT;

    fn number(&self) -> u64 {
        self.seq
    }

    fn resumed(query: &SpeculationEventQuery) -> SpeculationEventQuery {
        SpeculationEventQuery { from: None, ..query.clone() }
    }
}

/// The messages of a devnet's stream, each once and in order.
///
/// When a connection ends or falls silent, the stream reconnects with the number of the last
/// returned message as `Last-Event-ID`, and drops messages that it has already returned. If the
/// devnet gave its place to another stream, it waits a second first. It ends with an error only if
/// the devnet refuses, or does not answer for 10 s.
#[derive(Debug)]
pub struct EventStream<T: Streamed = BlockNotice> {
    client: Client,
    query: T::Query,
    last: Option<u64>,
    connection: Option<(Response, Parser)>,
    /// The devnet gave the place of the last connection to another stream.
    replaced: bool,
    pending: VecDeque<T>,
}

impl<T: Streamed> EventStream<T> {
    pub(super) fn new(client: Client, query: T::Query) -> Self {
        Self {
            client,
            query,
            last: None,
            connection: None,
            replaced: false,
            pending: VecDeque::new(),
        }
    }

    /// Connects if there is no connection, so that the stream begins no later than now. Without
    /// this call, the first [`Self::next`] connects.
    pub async fn connect(&mut self) -> Result<(), ClientError> {
        if self.connection.is_none() {
            self.connection = Some((self.open().await?, Parser::new(MESSAGE_LIMIT)));
        }
        Ok(())
    }

    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<T, ClientError> {
        let mut pause = FIRST_PAUSE;
        let mut lost_since = None;
        loop {
            if let Some(notice) = self.pending.pop_front() {
                if self.last.is_none_or(|last| notice.number() > last) {
                    self.last = Some(notice.number());
                    return Ok(notice);
                }
                continue;
            }
            match self.connect().await {
                Ok(()) => {}
                Err(error @ (ClientError::Unreachable { .. } | ClientError::Timeout { .. })) => {
                    let since = *lost_since.get_or_insert_with(Instant::now);
                    // A stream that has never returned a message does not retry.
                    if self.last.is_none() || since.elapsed() > PATIENCE {
                        return Err(error);
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                    continue;
                }
                Err(error) => return Err(error),
            }
            self.read().await?;
            if self.connection.is_none() {
                if std::mem::take(&mut self.replaced) {
                    pause = MAX_PAUSE;
                }
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }

    async fn open(&self) -> Result<Response, ClientError> {
        let client = &self.client;
        let resumed = self.last.map(|_| T::resumed(&self.query));
        let query = resumed.as_ref().unwrap_or(&self.query);
        let mut request = client.request(Method::GET, T::PATH, query);
        if let Some(last) = self.last {
            request = request.header("last-event-id", last);
        }
        // The token guarantees a share of the places for streams.
        let request = client.authorized(request);
        let response = timeout(REQUEST_TIMEOUT, request.send()).await.map_err(|_| {
            ClientError::Timeout { what: super::describe(T::PATH), after: REQUEST_TIMEOUT }
        })?;
        client.accepted(T::PATH, response.map_err(|error| client.failure(T::PATH, &error))?).await
    }

    /// Reads once; a connection that ended, failed or fell silent is dropped.
    async fn read(&mut self) -> Result<(), ClientError> {
        let Some((response, parser)) = &mut self.connection else { return Ok(()) };
        let Ok(Ok(Some(bytes))) = timeout(SILENCE, response.chunk()).await else {
            self.connection = None;
            return Ok(());
        };
        let messages = parser.feed(&bytes).map_err(|_| {
            malformed(T::PATH, &format_args!("a message longer than {MESSAGE_LIMIT} bytes"))
        })?;
        for SseMessage { event, data } in messages {
            if event == T::EVENT {
                let notice = serde_json::from_str(&data).map_err(|e| malformed(T::PATH, &e))?;
                self.pending.push_back(notice);
            }
            self.replaced |= event == REPLACED;
        }
        Ok(())
    }
}
