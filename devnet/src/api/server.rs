//! The API's HTTP server: its limits, and what every request passes.
//!
//! A request is looked at in this order: its `Host` (a page in a browser that got the loopback's
//! address under a name of its own is refused), its body's length, then the route. Requests that
//! are refused early are still read to their end, within bounds: a client that is told too early
//! sees a broken connection instead of the answer.

use super::{backend::Backend, error::ApiError, routes, streams::Streams};
use crate::{
    duration::Plain,
    http::{self, Serving},
};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{
        HeaderValue, Method, StatusCode, Uri,
        header::{CACHE_CONTROL, HOST, X_CONTENT_TYPE_OPTIONS},
        uri::Authority,
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use futures::StreamExt as _;
use serde::Serialize;
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::spawn_blocking,
    time::timeout,
};

/// Requests that read a validator's store at a time.
const READERS: usize = 8;
/// The longest body that is taken: a transaction of the largest size, twice as long in hex, fits.
pub(super) const BODY_LIMIT: usize = 2 << 20;
/// The longest body that is read, and thrown away, for the sake of an answer.
const DRAIN_LIMIT: usize = 64 << 20;

/// How much the server does at a time, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections; a further one gets the place of one that waits for its client, or waits.
    pub connections: usize,
    /// Event streams, fewer than connections; a further one replaces another.
    pub streams: usize,
    /// How long a client may take for the head of its next request, and for each part of a body
    /// or an answer.
    pub client: Duration,
    /// How long a request may take from its head to the head of its answer.
    pub request: Duration,
}

impl From<Limits> for http::Limits {
    fn from(limits: Limits) -> Self {
        Self { connections: limits.connections, client: limits.client }
    }
}

/// Most connections stay free for requests, whatever streams there are; a request takes as long as
/// a validator may need to start over a long chain.
const LIMITS: Limits = Limits {
    connections: 256,
    streams: 64,
    client: Duration::from_secs(30),
    request: Duration::from_secs(30),
};

// Streams are not closed for a connection: some must be left that can be.
const _: () = assert!(LIMITS.streams < LIMITS.connections);

/// What every request shares.
pub(super) struct Shared {
    pub backend: Arc<Backend>,
    /// Places for event streams.
    pub streams: Arc<Streams>,
    readers: Semaphore,
    /// True once the server stops.
    closing: watch::Receiver<bool>,
    limits: Limits,
}

impl Shared {
    /// Runs what reads a store where it holds up no other request.
    pub async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(Arc<Backend>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let _place = self.readers.acquire().await.expect("nobody closes the semaphore");
        let backend = self.backend.clone();
        let done = spawn_blocking(move || read(backend)).await;
        done.map_err(|error| ApiError::internal(format!("the request's task failed: {error}")))?
    }

    /// What such a read comes to, as JSON that is written there too: a long answer takes its time.
    pub async fn answer<T: Serialize + 'static>(
        &self,
        read: impl FnOnce(Arc<Backend>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<Response, ApiError> {
        self.blocking(move |backend| Ok(Json(read(backend)?).into_response())).await
    }

    /// Resolves once the server stops.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        http::closed(self.closing.clone())
    }
}

/// Answers requests on `listener` in the background, on the runtime this is called on, until it is
/// stopped. Dropping what is returned stops it too.
pub fn start(listener: TcpListener, backend: Arc<Backend>) -> Serving {
    start_within(LIMITS, listener, backend)
}

/// [`start`] with other limits.
pub(super) fn start_within(
    limits: Limits,
    listener: TcpListener,
    backend: Arc<Backend>,
) -> Serving {
    http::start(limits.into(), listener, None, move |closing| {
        router(Arc::new(Shared {
            backend,
            streams: Arc::new(Streams::new(limits.streams)),
            readers: Semaphore::new(READERS),
            closing,
            limits,
        }))
    })
}

/// [`start`] for other routes: within the same limits, for the loopback only.
pub fn start_router(listener: TcpListener, router: Router) -> Serving {
    let guard = middleware::from_fn_with_state(LIMITS.request, guard);
    let router = router.fallback(no_route).method_not_allowed_fallback(wrong_method).layer(guard);
    http::start(LIMITS.into(), listener, None, |_| router)
}

/// How long a devnet may take to be saved: its whole folder is copied.
const SAVING: Duration = Duration::from_secs(3_600);

/// The routes, and what every request passes before them.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let mut router = Router::new();
    for route in routes::table() {
        router = router.route(route.path, route.handler);
    }
    router
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(shared.limits.request, guard))
        .with_state(shared)
}

async fn no_route(method: Method, uri: Uri) -> ApiError {
    let path = super::view::shown(uri.path());
    ApiError::not_found(format!("there is no {method} {path}"))
        .hint("GET /openapi.json lists the routes")
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path = super::view::shown(uri.path());
    ApiError::bad_request(format!("{path} takes no {method}"))
        .hint("GET /openapi.json lists the routes")
        .status(StatusCode::METHOD_NOT_ALLOWED)
}

/// Refuses what no route should see, and bounds the time of the rest.
async fn guard(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    let late = |limit| move |_| ApiError::timeout(format!("not done within {}", Plain(limit)));
    let begun = Instant::now();
    let answer = async {
        let (parts, body) = request.into_parts();
        let local = is_local(parts.headers.get(HOST), parts.uri.authority());
        let most = if local { BODY_LIMIT } else { 0 };
        let body = timeout(limit, receive(body, most)).await.map_err(late(limit))??;
        if !local {
            return Err(ApiError::bad_request(
                "the Host header names no loopback address: this API answers on the loopback only",
            )
            .hint("ask 127.0.0.1 or localhost"));
        }
        let body = body.ok_or_else(|| {
            ApiError::bad_request(format!("the body is longer than {BODY_LIMIT} bytes"))
                .status(StatusCode::PAYLOAD_TOO_LARGE)
        })?;
        let saves = parts.method == Method::POST && parts.uri.path() == routes::SNAPSHOTS;
        let limit = if saves { SAVING } else { limit };
        let handled = next.run(Request::from_parts(parts, Body::from(body)));
        timeout(limit.saturating_sub(begun.elapsed()), handled).await.map_err(late(limit))
    };
    let mut response = answer.await.into_response();
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Reads a body to its end; `None` where it is longer than `limit`.
async fn receive(body: Body, limit: usize) -> Result<Option<Bytes>, ApiError> {
    let mut kept = Vec::new();
    let mut length = 0;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| match http::is_late(&error) {
            true => ApiError::timeout(format!("the body: {error}")),
            false => ApiError::bad_request(format!("the body breaks off: {error}")),
        })?;
        length += chunk.len();
        if length > DRAIN_LIMIT {
            break;
        }
        if length <= limit {
            kept.extend_from_slice(&chunk);
        } else {
            kept = Vec::new();
        }
    }
    Ok((length <= limit).then(|| kept.into()))
}

/// Whether a request is for the loopback, by each name it gives.
fn is_local(host: Option<&HeaderValue>, authority: Option<&Authority>) -> bool {
    let local = |authority: &Authority| {
        let host = authority.host();
        let ip = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        host.eq_ignore_ascii_case("localhost")
            || ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    let named = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    named.is_some_and(|named| local(&named)) && authority.is_none_or(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_local() {
        let check = |host: &'static str, local: bool| {
            assert_eq!(is_local(Some(&HeaderValue::from_static(host)), None), local, "{host}");
        };
        for host in ["127.0.0.1:1234", "127.0.0.1", "localhost:1", "LocalHost", "[::1]:80"] {
            check(host, true);
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "0.0.0.0:1",
            "127.0.0.1.nip.io",
            "10.0.0.1:80",
            "[::]:1",
            "a@b@c",
        ] {
            check(host, false);
        }
        assert!(!is_local(None, None));
        let (host, other) = (HeaderValue::from_static("localhost"), "example.org:80");
        assert!(!is_local(Some(&host), Some(&other.parse().unwrap())));
    }
}
