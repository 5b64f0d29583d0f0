//! A test server that acts like a lease server, or as the test wants, and records its requests.

use crate::messages::{ErrorCode, ErrorDetail, LEASE_HEADER, StaleReason};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path as UrlPath, Query, Request, State},
    http::{HeaderMap, StatusCode},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{get, post, put},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, runtime::Runtime, sync::watch, time::timeout};

/// Time limit for everything that must happen.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// A fault instead of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Unavailable,
    /// The connection breaks before the request is processed.
    Broken,
    /// The connection breaks after the request is processed.
    Unheard,
    Stale(StaleReason),
    Code(StatusCode, ErrorCode),
}

/// All requests, and the data for the answers.
#[derive(Default)]
pub(super) struct World {
    pub(super) queue: VecDeque<Value>,
    /// Faults of requests whose path has this end, each for one request.
    pub(super) faults: Vec<(&'static str, Fault)>,
    /// Faults of all such requests while the entry exists.
    pub(super) lasting: BTreeMap<&'static str, Fault>,
    /// Seconds left to cancel.
    pub(super) cancel: Option<u64>,
    /// Whether heartbeats and log pieces do not report the cancel.
    pub(super) cancel_by_wait_alone: bool,
    /// Seconds left of a job's grace.
    pub(super) grace_left: Option<u64>,
    /// Answered messages, by the last part of their path.
    pub(super) messages: Vec<(String, Value)>,
    /// Paths of requests in order.
    pub(super) asked: Vec<String>,
    pub(super) log: Vec<u8>,
    /// Longest log, in bytes.
    pub(super) log_limit: Option<usize>,
    pub(super) artifacts: BTreeMap<String, Bytes>,
    pub(super) caches: BTreeMap<String, Bytes>,
}

impl World {
    /// The messages of this kind.
    pub(super) fn of(&self, kind: &str) -> Vec<&Value> {
        let mine = self.messages.iter().filter(|(of, _)| of == kind);
        mine.map(|(_, message)| message).collect()
    }

    pub(super) fn log(&self) -> String {
        String::from_utf8_lossy(&self.log).into_owned()
    }
}

type Shared = Arc<watch::Sender<World>>;

pub(super) struct Fake {
    pub(super) world: Shared,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Fake {
    pub(super) fn start() -> Self {
        let world = Arc::new(watch::Sender::new(World::default()));
        let mut fake = Self { world, address: (Ipv4Addr::LOCALHOST, 0).into(), runtime: None };
        fake.up();
        fake
    }

    /// Answers again at the previous address.
    pub(super) fn up(&mut self) {
        let runtime = Runtime::new().unwrap();
        let listener = std::net::TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let router = router(Arc::clone(&self.world));
        runtime.spawn(async move {
            axum::serve(TcpListener::from_std(listener).unwrap(), router).await.unwrap();
        });
        self.runtime = Some(runtime);
    }

    /// Stops as if killed: connections break, new ones are refused.
    pub(super) fn down(&mut self) {
        let runtime = self.runtime.take().unwrap();
        // On another thread, because this waits: the address must be free.
        std::thread::spawn(move || runtime.shutdown_timeout(LIMIT)).join().unwrap();
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let mut result = None;
        self.world.send_modify(|world| result = Some(change(world)));
        result.unwrap()
    }

    /// Waits until the world meets the condition.
    pub(super) async fn until(&self, what: &str, so: impl FnMut(&World) -> bool) {
        let mut world = self.world.subscribe();
        let seen = timeout(LIMIT, world.wait_for(so)).await.map(drop);
        assert!(seen.is_ok(), "{what}: not seen");
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if self.runtime.is_some() {
            self.down();
        }
    }
}

fn router(world: Shared) -> Router {
    let routes = Router::new()
        .route("/lease", post(lease))
        .route("/await-cancel", post(await_cancel))
        .route("/{message}", post(message))
        .route("/log", put(log))
        .route("/artifacts/{*name}", put(artifact))
        .route("/caches/{key}", get(cache).put(keep))
        .layer(from_fn_with_state(Arc::clone(&world), faults))
        .layer(DefaultBodyLimit::max(64 << 20))
        .with_state(world);
    Router::new().nest("/api/v1/internal", routes)
}

fn broken() -> Response {
    let error = futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("broken"))]);
    Body::from_stream(error).into_response()
}

fn refusal(status: StatusCode, code: ErrorCode) -> Response {
    let detail = ErrorDetail { code, field: None, message: "as the test wants".to_owned() };
    (status, axum::Json(json!({ "error": detail }))).into_response()
}

fn stale(reason: StaleReason) -> Response {
    let body = json!({"type": "StaleLease", "lease_id": "?", "reason": reason});
    (StatusCode::CONFLICT, axum::Json(body)).into_response()
}

async fn faults(State(world): State<Shared>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let mut fault = None;
    world.send_modify(|world| {
        world.asked.push(path.clone());
        let mine = world.faults.iter().position(|(end, _)| path.contains(end));
        fault = mine.map(|at| world.faults.remove(at).1);
        let lasting = world.lasting.iter().find(|(end, _)| path.contains(**end));
        fault = fault.or(lasting.map(|(_, fault)| *fault));
    });
    match fault {
        None => next.run(request).await,
        Some(Fault::Unavailable) => {
            refusal(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Unavailable)
        }
        Some(Fault::Code(status, code)) => refusal(status, code),
        Some(Fault::Broken) => broken(),
        Some(Fault::Unheard) => {
            next.run(request).await;
            broken()
        }
        Some(Fault::Stale(reason)) => stale(reason),
    }
}

async fn lease(State(world): State<Shared>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    world.send_modify(|world| world.messages.push(("lease".to_owned(), request)));
    let mut worlds = world.subscribe();
    let wait = worlds.wait_for(|world| !world.queue.is_empty());
    if timeout(Duration::from_secs(30), wait).await.is_err() {
        return StatusCode::NO_CONTENT.into_response();
    }
    let mut granted = None;
    world.send_modify(|world| granted = world.queue.pop_front());
    match granted {
        Some(granted) => axum::Json(granted).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn await_cancel(State(world): State<Shared>, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let mut worlds = world.subscribe();
    let wait = worlds.wait_for(|world| world.cancel.is_some());
    let Ok(Ok(seconds)) =
        timeout(Duration::from_secs(30), wait).await.map(|world| world.map(|world| world.cancel))
    else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let requested = json!({
        "type": "CancelRequested", "lease_id": message["lease_id"], "job_id": "job",
        "reason": "REQUESTED", "deadline_seconds": seconds, "ts": "2026-01-04T08:00:00Z",
    });
    axum::Json(requested).into_response()
}

async fn message(
    State(world): State<Shared>,
    UrlPath(kind): UrlPath<String>,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let lease = message["lease_id"].clone();
    let (mut cancel, mut grace_left) = (None, None);
    world.send_modify(|world| {
        world.messages.push((kind.clone(), message));
        cancel = world.cancel.filter(|_| !world.cancel_by_wait_alone);
        grace_left = world.grace_left;
    });
    let answer = match kind.as_str() {
        "heartbeat" => json!({
            "lease_id": lease,
            "extend_lease": true,
            "new_lease_ttl_seconds": 30,
            "cancel_requested": cancel.is_some(),
            "cancel_deadline_seconds": cancel.unwrap_or(0),
            "grace_left_seconds": grace_left,
        }),
        _ => json!({ "lease_id": lease, "accepted": true }),
    };
    axum::Json(answer).into_response()
}

fn assert_names_its_lease(headers: &HeaderMap) {
    assert!(headers[LEASE_HEADER].to_str().unwrap().starts_with("lease_"));
}

async fn log(
    State(world): State<Shared>,
    headers: HeaderMap,
    Query(query): Query<BTreeMap<String, usize>>,
    body: Bytes,
) -> Response {
    assert_names_its_lease(&headers);
    let offset = query["offset"];
    let mut answer = None;
    world.send_modify(|world| {
        let length = world.log.len();
        if offset > length {
            answer = Some(refusal(StatusCode::CONFLICT, ErrorCode::LogGap));
        } else if world.log_limit.is_some_and(|limit| offset + body.len() > limit) {
            answer = Some(refusal(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::LogFull));
        } else {
            world.log.extend_from_slice(body.get(length - offset..).unwrap_or_default());
            let cancel = world.cancel.filter(|_| !world.cancel_by_wait_alone);
            let kept = json!({
                "bytes": world.log.len(),
                "cancel_requested": cancel.is_some(),
                "cancel_deadline_seconds": cancel.unwrap_or(0),
            });
            answer = Some(axum::Json(kept).into_response());
        }
    });
    answer.unwrap()
}

async fn artifact(
    State(world): State<Shared>,
    headers: HeaderMap,
    UrlPath(name): UrlPath<String>,
    body: Bytes,
) -> Response {
    assert_names_its_lease(&headers);
    let answer = json!({ "uri": format!("/kept/{name}"), "bytes": body.len() });
    world.send_modify(|world| drop(world.artifacts.insert(name, body)));
    axum::Json(answer).into_response()
}

async fn cache(
    State(world): State<Shared>,
    headers: HeaderMap,
    UrlPath(key): UrlPath<String>,
) -> Response {
    assert_names_its_lease(&headers);
    let kept = world.borrow().caches.get(&key).cloned();
    match kept {
        Some(bytes) => bytes.into_response(),
        None => refusal(StatusCode::NOT_FOUND, ErrorCode::NotFound),
    }
}

async fn keep(
    State(world): State<Shared>,
    headers: HeaderMap,
    UrlPath(key): UrlPath<String>,
    body: Bytes,
) -> Response {
    assert_names_its_lease(&headers);
    let answer = json!({ "bytes": body.len() });
    world.send_modify(|world| drop(world.caches.insert(key, body)));
    axum::Json(answer).into_response()
}
