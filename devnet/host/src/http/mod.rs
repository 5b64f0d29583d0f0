//! HTTP/1.1 servers: a listener, its connections, and their maximum number.
//!
//! Connections have places ([`places`]). When all places are taken, the next client replaces the
//! connection with the client that has made no progress for the longest time. So clients that are
//! idle, send a head or a body slowly, or do not read their answers cannot keep other clients out.
//! A connection is never closed for another while the server works on its request. When the server
//! works on all of them, connections end with their next answers until the newcomer has a place.
//!
//! The server handles a connection's requests one after the other. hyper reads the next one when
//! the system has accepted the whole previous answer, so unread answers do not pile up here. Before
//! each request all other connections get a turn, even if many requests wait on this connection.

pub mod bearer;
pub mod client;
pub mod openapi;
mod places;
pub mod tls;
mod watched;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, header::CONNECTION},
    response::Response,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use places::{Place, Places, Turn};
use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tls::Acceptor;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
    task::{JoinError, JoinHandle, JoinSet, yield_now},
    time::{sleep, timeout},
};
use tower_service::Service as _;
use watched::{Arriving, Watched};

pub use places::Reader;
pub use watched::is_late;

/// The time that a client waits for an answer, unless its caller sets another timeout.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer that a client reads, in bytes.
pub const ANSWER_LIMIT: usize = 64 << 20;
/// The content type of JSON.
pub const JSON: &str = "application/json";
/// The longest head of a request, in bytes.
const HEAD_LIMIT: usize = 32 << 10;
/// The time that connections without a request may take to end once the server stops, or all
/// connections if its [`Serving`] was dropped.
const GRACE: Duration = Duration::from_secs(1);
/// The pause after the system fails to accept a connection, for example for lack of file
/// descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server's limits on connections and on clients' time.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub connections: usize,
    /// The time that a client may take for its handshake, for the head of its next request, and for
    /// each part of a body that it sends or of an answer that it reads.
    pub client: Duration,
}

/// Binds a port on the loopback: the given one, or a free one.
pub async fn bind(port: Option<u16>) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))).await
}

/// A running server. Dropping it also stops it.
#[derive(Debug)]
pub struct Serving {
    close: oneshot::Sender<Duration>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Accepts no more connections, gives running requests at most `grace`, and then aborts the
    /// remaining ones.
    pub async fn stop(self, grace: Duration) {
        let Self { close, mut task } = self;
        // An error means that the task has ended.
        let _ = close.send(grace);
        if !task.is_finished() && timeout(grace + GRACE, &mut task).await.is_err() {
            task.abort();
        }
    }

    /// Resolves with the reason when the server has ended by itself. Must not be called again after
    /// that.
    pub async fn ended(&mut self) -> String {
        why_ended((&mut self.task).await)
    }

    pub fn abort(self) {
        self.task.abort();
    }
}

/// The reason why a task that should run until stopped has ended.
pub fn why_ended(ended: Result<(), JoinError>) -> String {
    ended.map_or_else(|error| error.to_string(), |()| "it was stopped".to_owned())
}

/// Answers requests on `listener` in the background, on the current runtime. `router` gets a
/// channel that turns true once the server stops.
pub fn start(
    limits: ConnectionLimits,
    listener: TcpListener,
    tls: Option<Acceptor>,
    router: impl FnOnce(watch::Receiver<bool>) -> Router,
) -> Serving {
    let (close, closed) = oneshot::channel();
    // An error means that the `Serving` was dropped.
    let shutdown = async { closed.await.unwrap_or(GRACE) };
    let (closing, told) = watch::channel(false);
    let router = router(told);
    Serving { close, task: tokio::spawn(serve(limits, listener, tls, router, closing, shutdown)) }
}

/// Resolves once the server stops.
pub async fn closed(mut closing: watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = closing.wait_for(|closing| *closing).await;
}

async fn serve(
    limits: ConnectionLimits,
    listener: TcpListener,
    tls: Option<Acceptor>,
    router: Router,
    close: watch::Sender<bool>,
    shutdown: impl Future<Output = Duration> + Send,
) {
    let closing = close.subscribe();
    let places = Arc::new(Places::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let grace = loop {
        tokio::select! {
            stream = accept(&listener) => {
                let place = tokio::select! {
                    place = places.take() => place,
                    grace = &mut shutdown => break grace,
                };
                let (router, closing, tls) = (router.clone(), closing.clone(), tls.clone());
                connections.spawn(connection(stream, limits.client, tls, router, closing, place));
            }
            Some(_) = connections.join_next() => {}
            grace = &mut shutdown => break grace,
        }
    };
    drop(listener);
    close.send_replace(true);
    if timeout(grace, end(&mut connections, &places)).await.is_err() {
        connections.shutdown().await;
    }
}

/// Waits until all connections have ended after they were told to. Connections that wait for their
/// clients do not notice, so they are closed after [`GRACE`].
async fn end(connections: &mut JoinSet<()>, places: &Places) {
    let waits = async { while connections.join_next().await.is_some() {} };
    let mut waits = pin!(waits);
    if timeout(GRACE, waits.as_mut()).await.is_err() {
        places.clear_waiting();
        waits.await;
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    patience: Duration,
    tls: Option<Acceptor>,
    router: Router,
    closing: watch::Receiver<bool>,
    place: Place,
) {
    // Small answers are sent at once.
    let _ = stream.set_nodelay(true);
    let talk = async {
        match tls {
            None => talk(stream, patience, router, closing, &place).await,
            Some(tls) => {
                // The handshake waits for the client.
                place.seat().drained();
                match timeout(patience, tls.accept(stream)).await {
                    Ok(Ok(stream)) => talk(stream, patience, router, closing, &place).await,
                    Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
                    Err(_) => tracing::debug!("a TLS handshake took too long"),
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = talk => {}
        () = place.evicted() => tracing::debug!("a connection that waited for its client made room for another"),
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    patience: Duration,
    router: Router,
    closing: watch::Receiver<bool>,
    place: &Place,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let turn = Arc::new(place.turn());
        let mut request = request.map(|body| Arriving::new(body, patience, turn.clone()));
        request.extensions_mut().insert(place.reader());
        let answer = router.clone().call(request.map(Body::new));
        let seat = place.seat();
        async move {
            yield_now().await;
            let mut response: Response = answer.await?;
            turn.begin();
            if seat.is_wanted() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| Body::new(Answering { body, _turn: turn })))
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .max_buf_size(HEAD_LIMIT)
            .serve_connection(TokioIo::new(Watched::new(stream, patience, place.seat())), service)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closed(closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// A response's body. The turn of its request ends when the body is dropped.
struct Answering {
    body: Body,
    _turn: Arc<Turn>,
}

impl axum::body::HttpBody for Answering {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
