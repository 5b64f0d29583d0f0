//! A server over streamable HTTP: each message is a POST, answered with JSON or a stream of events.
//!
//! The SDK's own client is not used because its limits are fixed and it logs URLs.

use super::{
    super::{
        ExecutorError,
        http::{body, chain, origin},
    },
    Fatal,
};
use cowboy_host::http::JSON;
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{
    RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpClientTransport,
        StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};
use std::{collections::HashMap, sync::Arc};

const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

pub(super) fn transport(
    http: reqwest::Client,
    url: &Url,
    fatal: Fatal,
) -> StreamableHttpClientTransport<SdkClient> {
    // A lost session is not renewed, because the tool might run twice.
    let config =
        StreamableHttpClientTransportConfig::with_uri(origin(url)).reinit_on_expired_session(false);
    StreamableHttpClientTransport::with_client(SdkClient { http, url: url.clone(), fatal }, config)
}

/// The SDK's HTTP client. It knows the full URL; the SDK, which may log its URL, gets only the part
/// before the path.
#[derive(Clone)]
pub(super) struct SdkClient {
    http: reqwest::Client,
    url: Url,
    fatal: Fatal,
}

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<ExecutorError>;

impl SdkClient {
    fn failed(&self, error: reqwest::Error) -> ExecutorError {
        ExecutorError::Request { url: origin(&self.url), reason: chain(&error.without_url()) }
    }

    fn refused(&self, response: &Response) -> ExecutorError {
        ExecutorError::Status { url: origin(&self.url), status: response.status().as_u16() }
    }

    async fn send(
        &self,
        mut request: RequestBuilder,
        session: Option<&str>,
        headers: Headers,
    ) -> Result<Response, ExecutorError> {
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let request =
            headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request.send().await.map_err(|error| self.failed(error))
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, ExecutorError> {
        let request = self.http.post(self.url.clone()).header(ACCEPT, format!("{JSON}, {EVENTS}"));
        let response = self.send(request.json(message), session, headers).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = text(&response, &HeaderName::from_static(SESSION)).map(str::to_owned);
        let kind = text(&response, &CONTENT_TYPE).unwrap_or_default();
        if status.is_success() && kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        if kind.starts_with(JSON) {
            let refused = self.refused(&response);
            let failed = |error| self.failed(error);
            let bytes = match body(response, self.fatal.max_message(), failed, |_| ()).await {
                Err(ExecutorError::TooMuchOutput { .. }) => return Err(self.fatal.too_much()),
                read => read?,
            };
            return match serde_json::from_slice(&bytes) {
                // An error may come with an HTTP error status as well.
                Ok(message @ ServerJsonRpcMessage::Error(_)) => {
                    Ok(StreamableHttpPostResponse::Json(message, session))
                }
                Ok(message) if status.is_success() => {
                    Ok(StreamableHttpPostResponse::Json(message, session))
                }
                _ if !status.is_success() => Err(refused),
                _ if !matches!(message, ClientJsonRpcMessage::Request(_)) => {
                    Ok(StreamableHttpPostResponse::Accepted)
                }
                _ => Err(self.strange("JSON that is not a JSON-RPC message")),
            };
        }
        match message {
            _ if !status.is_success() => Err(self.refused(&response)),
            ClientJsonRpcMessage::Request(_) => Err(self.strange("neither JSON nor events")),
            _ => Ok(StreamableHttpPostResponse::Accepted),
        }
    }

    fn strange(&self, what: &str) -> ExecutorError {
        ExecutorError::Request { url: origin(&self.url), reason: format!("answered with {what}") }
    }

    /// The events of a response, each of limited length.
    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let client = self.clone();
        let mut event = PartialEvent::default();
        let bytes = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| client.failed(error))?;
            match event.length_after(&chunk) > client.fatal.max_message() {
                true => Err(client.fatal.too_much()),
                false => Ok(chunk),
            }
        });
        SseStream::from_bytes_stream(bytes).boxed()
    }
}

#[derive(Default)]
struct PartialEvent {
    bytes: usize,
    /// The part of `bytes` in the current line.
    line: usize,
}

impl PartialEvent {
    /// The length so far of the longest event that was incomplete within `chunk`.
    fn length_after(&mut self, chunk: &[u8]) -> usize {
        let mut longest = 0;
        for byte in chunk {
            self.bytes += 1;
            match byte {
                // An empty line ends the event.
                b'\n' if self.line == 0 => self.bytes = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            longest = longest.max(self.bytes);
        }
        longest
    }
}

/// A response's header, if it is text.
fn text<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

impl StreamableHttpClient for SdkClient {
    type Error = ExecutorError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(&message, session.as_deref(), headers).await.map_err(|error| {
            self.fatal.tell(error.clone());
            StreamableHttpError::Client(error)
        })
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let request = self.http.delete(self.url.clone());
        let sent = self.send(request, Some(&*session), headers).await;
        sent.map(drop).map_err(StreamableHttpError::Client)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut request = self.http.get(self.url.clone()).header(ACCEPT, EVENTS);
        if let Some(event) = last_event {
            request = request.header(LAST_EVENT, event);
        }
        let sent = self.send(request, session.as_deref(), headers).await;
        let response = sent.map_err(StreamableHttpError::Client)?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() {
            return Err(StreamableHttpError::Client(self.refused(&response)));
        }
        Ok(self.events(response))
    }
}
