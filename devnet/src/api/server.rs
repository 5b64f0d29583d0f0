//! The API's HTTP server: its limits, and the checks that every request passes.
//!
//! The server checks a request in this order: whether its sender may ask, the length of its body,
//! then the route. On the loopback the `Host` decides who may ask: this refuses a web page that
//! resolved its own domain name to the loopback's address. Beyond the loopback there is TLS, and
//! every request shows a token. The server still reads the body of a refused request to its end, up
//! to a limit: a client that gets the answer too early sees a broken connection instead.

use super::{
    backend::Backend,
    error::{ApiError, shown},
    extract::BODY_LIMIT,
    routes,
    state::ServerState,
};
use crate::{
    consensus::PROTOCOL,
    types::{API, API_HEADER, PROTOCOL_HEADER},
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{
        HeaderValue, Method, StatusCode, Uri,
        header::{CACHE_CONTROL, HOST, X_CONTENT_TYPE_OPTIONS},
        request::Parts,
        uri::Authority,
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use cowboy_host::{
    duration::Plain,
    http::{
        self, Serving,
        bearer::{bearer, is_token},
        tls::Acceptor,
    },
};
use futures::StreamExt as _;
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, time::timeout};

/// The longest body, in bytes, that is read and discarded so that the client gets an answer.
const DRAIN_LIMIT: usize = 64 << 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct ServerLimits {
    /// Maximum number of connections. A further one replaces a connection that waits for its
    /// client, or waits itself.
    pub connections: usize,
    /// Maximum number of event streams, below that of connections. A further one replaces another.
    pub streams: usize,
    /// The time that a client may take for the head of its next request, and for each part of a
    /// body or an answer.
    pub client: Duration,
    /// The time from the head of a request to the head of its answer.
    pub request: Duration,
    /// The same for a request that starts or stops a node.
    pub change: Duration,
}

impl From<ServerLimits> for http::ConnectionLimits {
    fn from(limits: ServerLimits) -> Self {
        Self { connections: limits.connections, client: limits.client }
    }
}

/// Most connections stay free for requests, regardless of streams.
const LIMITS: ServerLimits = ServerLimits {
    connections: 256,
    streams: 64,
    client: Duration::from_secs(30),
    request: Duration::from_secs(30),
    change: CHANGE_TIMEOUT,
};

// A new connection does not close a stream, so there must be connections that are not streams.
const _: () = assert!(LIMITS.streams < LIMITS.connections);

/// Answers requests on `listener` in the background, on the current runtime, until it is stopped.
/// Dropping the result also stops it.
pub fn start(listener: TcpListener, backend: Arc<Backend>) -> Serving {
    start_within(LIMITS, listener, backend)
}

/// As [`start`], for a listener that other hosts reach: with TLS, and for requests that show
/// `token`. Those that change state need the devnet's own token, as everywhere.
pub fn start_for_others(
    listener: TcpListener,
    backend: Arc<Backend>,
    tls: Acceptor,
    token: &str,
) -> Serving {
    let admission = Admission::Token([token, &backend.token].map(Arc::from));
    http::start(LIMITS.into(), listener, Some(tls), move |closing| {
        router(Arc::new(ServerState::new(backend, LIMITS.streams, closing)), admission, LIMITS)
    })
}

pub(super) fn start_within(
    limits: ServerLimits,
    listener: TcpListener,
    backend: Arc<Backend>,
) -> Serving {
    http::start(limits.into(), listener, None, move |closing| {
        let shared = Arc::new(ServerState::new(backend, limits.streams, closing));
        router(shared, Admission::Loopback, limits)
    })
}

/// [`start`] for other routes: within the same limits, for the loopback only.
pub fn start_router(listener: TcpListener, router: Router) -> Serving {
    let guarded = Guarded { admission: Admission::Loopback, limits: LIMITS };
    let guard = middleware::from_fn_with_state(guarded, guard);
    let router = router.fallback(no_route).method_not_allowed_fallback(wrong_method).layer(guard);
    http::start(LIMITS.into(), listener, None, |_| router)
}

/// The time limit for starting or stopping a node, which may execute blocks again, or wait for its
/// pod.
pub const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for saving a devnet, which copies its whole folder.
const SAVING: Duration = Duration::from_secs(3_600);

/// The beginnings of routes that start or stop nodes.
const CHANGING: [&str; 3] = ["/v1/validators", "/v1/runners", "/v1/faults"];

/// Whose requests are answered.
#[derive(Clone)]
enum Admission {
    /// Those to the loopback.
    Loopback,
    /// Those that show one of these tokens.
    Token([Arc<str>; 2]),
}

impl Admission {
    fn check(&self, parts: &Parts) -> Result<(), ApiError> {
        match self {
            Self::Loopback if is_local(parts.headers.get(HOST), parts.uri.authority()) => Ok(()),
            Self::Loopback => Err(ApiError::bad_request(
                "the Host header names no loopback address: this API answers on the loopback only",
            )
            .hint("ask 127.0.0.1 or localhost")),
            Self::Token(known) => {
                let shown = bearer(&parts.headers);
                let fits = shown.is_some_and(|shown| known.iter().any(|one| is_token(one, shown)));
                let refused = || ApiError::unauthorized("the request shows no token of this API");
                fits.then_some(()).ok_or_else(refused)
            }
        }
    }
}

#[derive(Clone)]
struct Guarded {
    admission: Admission,
    limits: ServerLimits,
}

fn router(shared: Arc<ServerState>, admission: Admission, limits: ServerLimits) -> Router {
    let mut router = Router::new();
    for route in routes::table(shared.backend.compat) {
        router = router.route(route.path, route.handler);
    }
    router
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Guarded { admission, limits }, guard))
        .with_state(shared)
}

async fn no_route(method: Method, uri: Uri) -> ApiError {
    let path = shown(uri.path());
    let error = ApiError::not_found(format!("there is no {method} {path}"));
    match other_version(uri.path()) {
        Some(version) => error.hint(format!(
            "this API has version {API} and the request version {version}: use the cowboyctl of \
             this devnet"
        )),
        None if method == Method::GET && routes::is_compat(uri.path()) => error.hint(
            "a devnet whose topology has `api.compat: true` has this path; this one answers under \
             /v1, see GET /openapi.json",
        ),
        None => error.hint("GET /openapi.json lists the routes"),
    }
}

/// The version of a path's API if it is another one.
fn other_version(path: &str) -> Option<u32> {
    let version = path.strip_prefix("/v")?.split('/').next()?.parse().ok()?;
    (version != API).then_some(version)
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path = shown(uri.path());
    ApiError::bad_request(format!("{path} takes no {method}"))
        .hint("GET /openapi.json lists the routes")
        .status(StatusCode::METHOD_NOT_ALLOWED)
}

/// Refuses requests that no route should see, and bounds the time of the others.
async fn guard(
    State(Guarded { admission, limits }): State<Guarded>,
    request: Request,
    next: Next,
) -> Response {
    let limit = limits.request;
    let late = |limit| move |_| ApiError::timeout(format!("not done within {}", Plain(limit)));
    let begun = Instant::now();
    let answer = async {
        let (parts, body) = request.into_parts();
        let admitted = admission.check(&parts);
        let most = if admitted.is_ok() { BODY_LIMIT } else { 0 };
        let body = timeout(limit, receive(body, most)).await.map_err(late(limit))??;
        admitted?;
        let body = body.ok_or_else(|| {
            ApiError::bad_request(format!("the body is longer than {BODY_LIMIT} bytes"))
                .status(StatusCode::PAYLOAD_TOO_LARGE)
        })?;
        let path = parts.uri.path();
        let limit = match parts.method {
            Method::POST if path == routes::SNAPSHOTS => SAVING,
            Method::POST | Method::DELETE if CHANGING.iter().any(|of| path.starts_with(of)) => {
                limits.change
            }
            _ => limit,
        };
        let handled = next.run(Request::from_parts(parts, Body::from(body)));
        timeout(limit.saturating_sub(begun.elapsed()), handled).await.map_err(late(limit))
    };
    let mut response = answer.await.into_response();
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(API_HEADER, API.into());
    headers.insert(PROTOCOL_HEADER, PROTOCOL.into());
    response
}

/// Reads a body to its end; `None` if it is longer than `limit` bytes.
async fn receive(body: Body, limit: usize) -> Result<Option<Bytes>, ApiError> {
    let mut kept = Vec::new();
    let mut length = 0;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| match http::is_late(&error) {
            true => ApiError::timeout(format!("the body: {error}")),
            false => ApiError::bad_request(format!("the body is cut off: {error}")),
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

/// Whether a request is for the loopback, according to its `Host` header and its URI.
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
