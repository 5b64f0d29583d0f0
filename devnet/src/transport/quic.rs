//! Connections over QUIC (quinn), with the identities of [`tls`](super::tls).
//!
//! A validator has a [`QuicListener`] on one UDP port. Runners connect from the socket of a
//! [`QuicClient`], each with a [`Dialer`] under its own identity; runners may share a client,
//! unless faults must tell them apart. A connection is returned only after its handshake, which
//! verifies both identities.
//!
//! A socket behind a [`Tap`] loses and delays datagrams according to the devnet's faults.
//!
//! The dialler completes its handshake one step before the listener. When a listener refuses the
//! dialler's identity, the dialler therefore sees a connection that is lost at once, not a failed
//! dial.
//!
//! Everything here needs a Tokio runtime around it.

mod faulty;
#[cfg(test)]
mod tests;

use super::{
    BACKLOG, DIAL_TIMEOUT, Dial, IDLE_TIMEOUT, Listen, MAX_STREAMS, RecvStream, STREAM_WINDOW,
    SendStream, TransportError, clipped,
    half_open::{self, HalfOpen, Slot},
    tls::{Identity, peer_key},
};
use crate::faults::Tap;
use bytes::Bytes;
use cowboy_engine::primitives::PublicKey;
use faulty::Faulty;
use quinn::{
    AsyncUdpSocket, ConnectionError, Endpoint, EndpointConfig, Runtime as _, TokioRuntime,
    TransportConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
    udp::{RecvMeta, Transmit},
};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::{
    convert::Infallible,
    fmt, io,
    net::{IpAddr, SocketAddr, UdpSocket},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, timeout},
};

/// A handshake that takes longer is dropped (spec connectivity §2).
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// With this many connections in the handshake or on their way into the queue, an attempt first has
/// to show that it receives packets at its address (QUIC's retry, RFC 9000 §8.1.2). Only such
/// attempts may evict others of their address, so a forged sender costs no peer its place.
const UNVALIDATED: usize = 64;

/// Attempts that quinn keeps until they are handled. That takes some 10 µs each: one batch of
/// packets from a flood may delay another address's attempt by this many.
const MAX_INCOMING: usize = 1_024;

/// Unread bytes on a whole connection. This is less than all streams' windows together: it slows
/// down only a peer that leaves its streams unread.
const CONNECTION_WINDOW: u32 = 4 * STREAM_WINDOW;

/// The round trip assumed until one is measured. It times the first retransmission, and a devnet's
/// links are short (RFC 9002 assumes 333 ms).
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// The requested size of a socket's receive buffer in bytes; the system may give less. When a
/// validator comes back, all its runners greet it at once, with four packets or more each. Packets
/// that do not fit are sent again only after [`INITIAL_RTT`] or more.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Bytes of packets buffered for attempts that are not handled yet, per attempt and in total: a
/// client's first flight with a certificate is under 4 KiB.
const INCOMING_BUFFER: (u64, u64) = (16 * 1024, 1024 * 1024);

/// The time that [`QuicListener::shutdown`] waits for peers to be told and for the port to become
/// free.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The server name in the client's first message. Certificates have no names, so it is ignored.
const SERVER_NAME: &str = "cowboy";

/// The code for resetting streams and closing connections: the reason is in the text.
const CODE: VarInt = VarInt::from_u32(0);

const _: () = assert!(IDLE_TIMEOUT.as_millis() > 3 * KEEP_ALIVE.as_millis());

/// Two keep-alive packets may be lost on an otherwise silent link.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

fn transport_config() -> Arc<TransportConfig> {
    let idle =
        IDLE_TIMEOUT.try_into().expect("ten seconds are in the range of a QUIC idle timeout");
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(MAX_STREAMS.into())
        .max_concurrent_uni_streams(0u32.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(CONNECTION_WINDOW.into())
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_rtt(INITIAL_RTT);
    Arc::new(config)
}

/// A bound socket.
struct Bound {
    socket: Arc<dyn AsyncUdpSocket>,
    address: SocketAddr,
    /// Fails once nothing uses the socket; nothing is ever sent.
    released: oneshot::Receiver<Infallible>,
}

fn bind(address: SocketAddr, tap: Option<Tap>) -> Result<Bound, TransportError> {
    let failed = |error: io::Error| TransportError::Bind { address, reason: error.to_string() };
    let socket = UdpSocket::bind(address).map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    if let Err(error) = set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER) {
        tracing::debug!(%bound, %error, "the socket keeps its receive buffer's size");
    }
    let socket = TokioRuntime.wrap_udp_socket(socket).map_err(failed)?;
    let socket = match tap {
        Some(tap) => Arc::new(Faulty::new(socket, bound, tap)),
        None => socket,
    };
    let (in_use, released) = oneshot::channel();
    Ok(Bound { socket: Arc::new(Socket { socket, _in_use: in_use }), address: bound, released })
}

fn endpoint(
    socket: Arc<dyn AsyncUdpSocket>,
    address: SocketAddr,
    server: Option<quinn::ServerConfig>,
) -> Result<Endpoint, TransportError> {
    let config = EndpointConfig::default();
    Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(TokioRuntime))
        .map_err(|error| TransportError::Bind { address, reason: error.to_string() })
}

/// The limits on peers that a listener does not know yet.
#[derive(Clone, Copy)]
struct QuicLimits {
    handshake: Duration,
    half_open: half_open::HalfOpenLimits,
    unvalidated: usize,
}

impl Default for QuicLimits {
    fn default() -> Self {
        let half_open = half_open::HalfOpenLimits::default();
        Self { handshake: HANDSHAKE_TIMEOUT, half_open, unvalidated: UNVALIDATED }
    }
}

/// Closes the endpoint's connections when it is dropped.
struct ClosedOnDrop(Endpoint);

impl Drop for ClosedOnDrop {
    fn drop(&mut self) {
        self.0.close(CODE, b"");
    }
}

/// A validator's side: listens on one UDP port.
pub struct QuicListener {
    endpoint: ClosedOnDrop,
    address: SocketAddr,
    accepted: mpsc::Receiver<QuicConnection>,
    released: oneshot::Receiver<Infallible>,
}

impl QuicListener {
    /// Binds `address` (port 0: the system chooses) and accepts connections from now on.
    ///
    /// `admit` is called with the source address of each attempt, before anything is computed for
    /// it; `false` refuses the attempt.
    pub fn bind(
        identity: &Identity,
        address: SocketAddr,
        admit: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Result<Self, TransportError> {
        Self::bind_with(identity, address, None, admit, QuicLimits::default())
    }

    /// [`bind`](Self::bind) behind a validator's tap.
    pub fn bind_tapped(
        identity: &Identity,
        address: SocketAddr,
        tap: Tap,
        admit: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Result<Self, TransportError> {
        Self::bind_with(identity, address, Some(tap), admit, QuicLimits::default())
    }

    fn bind_with(
        identity: &Identity,
        address: SocketAddr,
        tap: Option<Tap>,
        admit: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
        limits: QuicLimits,
    ) -> Result<Self, TransportError> {
        let crypto = QuicServerConfig::try_from(identity.server_config()?)
            .expect("aws-lc-rs has the suite of QUIC's first packets");
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        config
            .transport_config(transport_config())
            .migration(false)
            .max_incoming(MAX_INCOMING)
            .incoming_buffer_size(INCOMING_BUFFER.0)
            .incoming_buffer_size_total(INCOMING_BUFFER.1);
        let Bound { socket, address, released } = bind(address, tap)?;
        let endpoint = endpoint(socket, address, Some(config))?;
        let (queue, accepted) = mpsc::channel(BACKLOG);
        tokio::spawn(accept_all(endpoint.clone(), admit, queue, limits));
        Ok(Self { endpoint: ClosedOnDrop(endpoint), address, accepted, released })
    }

    /// The address that it listens on, including its port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes like [`Listen::close`], tells the peers, and waits until the port is free again. That
    /// takes a few round trips, or at most a second when a connection is still in use.
    pub async fn shutdown(mut self, reason: &str) {
        self.close(reason);
        let Self { endpoint, address, accepted, released } = self;
        drop(accepted);
        let gone = async {
            endpoint.0.wait_idle().await;
            drop(endpoint);
            let _ = released.await;
        };
        if timeout(SHUTDOWN_TIMEOUT, gone).await.is_err() {
            tracing::debug!(%address, "port still in use after shutdown");
        }
    }
}

impl Listen for QuicListener {
    type Connection = QuicConnection;

    async fn accept(&mut self) -> Option<QuicConnection> {
        self.accepted.recv().await
    }

    fn close(&mut self, reason: &str) {
        self.endpoint.0.close(CODE, clipped(reason).as_bytes());
    }
}

/// Lets attempts through their handshakes concurrently until the endpoint is closed.
async fn accept_all(
    endpoint: Endpoint,
    admit: impl Fn(IpAddr) -> bool,
    queue: mpsc::Sender<QuicConnection>,
    limits: QuicLimits,
) {
    let half_open = HalfOpen::new(limits.half_open);
    let start = Instant::now();
    let mut handshakes = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = handshakes.join_next() => {}
            attempt = endpoint.accept() => {
                let Some(attempt) = attempt else { return };
                let address = attempt.remote_address().ip();
                if !admit(address) {
                    attempt.refuse();
                    continue;
                }
                if half_open.count() >= limits.unvalidated && !attempt.remote_address_validated() {
                    // An error means that the client has already been asked.
                    if let Err(error) = attempt.retry() {
                        error.into_incoming().refuse();
                    }
                    continue;
                }
                let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                match half_open.admit(address, now) {
                    Some(slot) => {
                        handshakes.spawn(handshake(attempt, slot, queue.clone(), limits.handshake));
                    }
                    None => attempt.refuse(),
                }
            }
        }
    }
}

async fn handshake(
    attempt: quinn::Incoming,
    mut slot: Slot,
    queue: mpsc::Sender<QuicConnection>,
    within: Duration,
) {
    let remote = attempt.remote_address();
    let through = async {
        let connection = match timeout(within, attempt.into_future()).await {
            Ok(Ok(connection)) => QuicConnection::new(connection),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(TransportError::ConnectTimeout { address: remote, after: within }),
        };
        match connection {
            // An error means that the listener is gone, and the connection with it.
            Ok(connection) => drop(queue.send(connection).await),
            Err(error) => tracing::debug!(%remote, %error, "handshake failed"),
        }
    };
    tokio::select! {
        biased;
        () = through => {}
        () = slot.lost() => tracing::debug!(%remote, "handshake ended: another has its place"),
    }
}

/// One UDP socket from which any number of runners connect.
#[derive(Clone)]
pub struct QuicClient {
    endpoint: Endpoint,
    transport: Arc<TransportConfig>,
}

impl QuicClient {
    /// Binds `address`, usually port 0 of the loopback.
    pub fn bind(address: SocketAddr) -> Result<Self, TransportError> {
        Self::bind_with(address, None)
    }

    /// [`bind`](Self::bind) behind a runner's tap: everything sent from this client counts as that
    /// runner's.
    pub fn bind_tapped(address: SocketAddr, tap: Tap) -> Result<Self, TransportError> {
        Self::bind_with(address, Some(tap))
    }

    fn bind_with(address: SocketAddr, tap: Option<Tap>) -> Result<Self, TransportError> {
        let Bound { socket, address, .. } = bind(address, tap)?;
        let endpoint = endpoint(socket, address, None)?;
        Ok(Self { endpoint, transport: transport_config() })
    }

    /// A dialler that connects from this client under `identity`.
    pub fn dialer(&self, identity: Identity) -> Dialer {
        Dialer { client: self.clone(), identity }
    }

    /// Closes all connections made by this client, and waits until the peers were told.
    pub async fn shutdown(&self, reason: &str) {
        self.endpoint.close(CODE, clipped(reason).as_bytes());
        // Peers that are not told in time notice the silence.
        let _ = timeout(SHUTDOWN_TIMEOUT, self.endpoint.wait_idle()).await;
    }
}

/// A runner's side: connects under one identity.
#[derive(Clone)]
pub struct Dialer {
    client: QuicClient,
    identity: Identity,
}

impl Dial for Dialer {
    type Connection = QuicConnection;

    async fn dial(
        &self,
        address: SocketAddr,
        expected: &PublicKey,
    ) -> Result<QuicConnection, TransportError> {
        let (crypto, verifier) = self.identity.client_config(expected)?;
        let crypto = QuicClientConfig::try_from(crypto)
            .expect("aws-lc-rs has the suite of QUIC's first packets");
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(self.client.transport.clone());
        let connecting = self
            .client
            .endpoint
            .connect_with(config, address, SERVER_NAME)
            .map_err(|error| TransportError::Connect { address, reason: error.to_string() })?;
        match timeout(DIAL_TIMEOUT, connecting).await {
            Ok(Ok(connection)) => QuicConnection::new(connection),
            Ok(Err(error)) => Err(match verifier.refused() {
                Some(got) => TransportError::IdentityMismatch {
                    address,
                    expected: Box::new(expected.clone()),
                    got: Box::new(got.clone()),
                },
                None => TransportError::Connect { address, reason: error.to_string() },
            }),
            Err(_) => Err(TransportError::ConnectTimeout { address, after: DIAL_TIMEOUT }),
        }
    }
}

/// A handshaken QUIC connection.
#[derive(Clone)]
pub struct QuicConnection {
    connection: quinn::Connection,
    peer: Arc<PublicKey>,
}

impl QuicConnection {
    fn new(connection: quinn::Connection) -> Result<Self, TransportError> {
        let peer = Arc::new(peer_key(&connection)?);
        Ok(Self { connection, peer })
    }
}

impl super::Connection for QuicConnection {
    type Send = QuicSend;
    type Recv = QuicRecv;

    fn peer(&self) -> &PublicKey {
        &self.peer
    }

    fn remote(&self) -> IpAddr {
        self.connection.remote_address().ip()
    }

    async fn open(&self) -> Result<(QuicSend, QuicRecv), TransportError> {
        let (send, recv) = self.connection.open_bi().await?;
        Ok((QuicSend::new(send), QuicRecv::new(recv)))
    }

    async fn accept(&self) -> Result<(QuicSend, QuicRecv), TransportError> {
        let (send, recv) = self.connection.accept_bi().await?;
        Ok((QuicSend::new(send), QuicRecv::new(recv)))
    }

    fn close(&self, reason: &str) {
        self.connection.close(CODE, clipped(reason).as_bytes());
    }

    async fn closed(&self) {
        self.connection.closed().await;
    }
}

/// The writing half of a QUIC stream.
pub struct QuicSend {
    stream: quinn::SendStream,
    finished: bool,
}

impl QuicSend {
    const fn new(stream: quinn::SendStream) -> Self {
        Self { stream, finished: false }
    }
}

impl SendStream for QuicSend {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        if self.finished {
            return Err(TransportError::StreamFinished);
        }
        Ok(self.stream.write_all(bytes).await?)
    }

    fn finish(&mut self) {
        self.finished = true;
        // An error means that it was already finished.
        let _ = self.stream.finish();
    }

    async fn delivered(&mut self) -> Result<(), TransportError> {
        self.finish();
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(TransportError::StreamAbandoned),
            Err(quinn::StoppedError::ConnectionLost(error)) => Err(error.into()),
            Err(quinn::StoppedError::ZeroRttRejected) => unreachable!("0-RTT is never used"),
        }
    }
}

impl Drop for QuicSend {
    fn drop(&mut self) {
        if !self.finished {
            // quinn would finish the stream: the reader would take a part for the whole.
            let _ = self.stream.reset(CODE);
        }
    }
}

/// The reading half of a QUIC stream.
pub struct QuicRecv {
    stream: quinn::RecvStream,
    /// How it ended, because quinn reports that only once.
    ended: Option<Result<(), TransportError>>,
}

impl QuicRecv {
    const fn new(stream: quinn::RecvStream) -> Self {
        Self { stream, ended: None }
    }
}

impl RecvStream for QuicRecv {
    async fn read(&mut self, max: usize) -> Result<Option<Bytes>, TransportError> {
        if let Some(ended) = &self.ended {
            return ended.clone().map(|()| None);
        }
        match self.stream.read_chunk(max, true).await {
            Ok(Some(chunk)) => Ok(Some(chunk.bytes)),
            Ok(None) => {
                self.ended = Some(Ok(()));
                Ok(None)
            }
            Err(error) => {
                let error = TransportError::from(error);
                self.ended = Some(Err(error.clone()));
                Err(error)
            }
        }
    }
}

impl From<ConnectionError> for TransportError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::LocallyClosed => Self::Closed,
            ConnectionError::ApplicationClosed(close) => {
                let reason = String::from_utf8_lossy(&close.reason);
                Self::ClosedByPeer { reason: clipped(&reason).to_owned() }
            }
            lost => Self::Lost { reason: lost.to_string() },
        }
    }
}

impl From<quinn::WriteError> for TransportError {
    fn from(error: quinn::WriteError) -> Self {
        match error {
            // Closed without being finished: it was stopped before.
            quinn::WriteError::Stopped(_) | quinn::WriteError::ClosedStream => {
                Self::StreamAbandoned
            }
            quinn::WriteError::ConnectionLost(error) => error.into(),
            quinn::WriteError::ZeroRttRejected => unreachable!("0-RTT is never used"),
        }
    }
}

impl From<quinn::ReadError> for TransportError {
    fn from(error: quinn::ReadError) -> Self {
        match error {
            quinn::ReadError::Reset(_) => Self::StreamAbandoned,
            quinn::ReadError::ConnectionLost(error) => error.into(),
            quinn::ReadError::ClosedStream => unreachable!("not read from after its end"),
            quinn::ReadError::IllegalOrderedRead => unreachable!("all reads are ordered"),
            quinn::ReadError::ZeroRttRejected => unreachable!("0-RTT is never used"),
        }
    }
}

/// A UDP socket that signals when its last user is gone, so that its port can be bound again at
/// once: quinn drops sockets in background tasks.
struct Socket {
    socket: Arc<dyn AsyncUdpSocket>,
    _in_use: oneshot::Sender<Infallible>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn quinn::UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_recv(context, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
