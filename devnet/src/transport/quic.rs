//! Connections over QUIC (quinn), with the identities of [`tls`](super::tls).
//!
//! A validator has a [`QuicListener`] on one UDP port. Runners connect from the socket of a
//! [`QuicClient`], each with a [`Dialer`] under its own identity; runners may share a client,
//! unless faults must tell them apart. A connection is returned only after its handshake, which
//! verifies both identities.
//!
//! Two sides without a common version of the protocol agree on
//! [`NO_VERSION`](super::tls::NO_VERSION). The dialler opens a stream and writes the names of its
//! versions, the listener answers with its own, and both refuse the connection with an error that
//! has both.
//!
//! A socket behind a [`Tap`] loses and delays datagrams according to the devnet's faults.
//!
//! The dialler completes its handshake one step before the listener. When a listener refuses the
//! dialler's identity, the dialler therefore sees a connection that is lost at once, not a failed
//! dial.
//!
//! Everything here needs a Tokio runtime around it.

mod connection;
mod faulty;
mod socket;
#[cfg(test)]
mod tests;
mod version;

pub use connection::{QuicConnection, QuicRecv, QuicSend};

use super::{
    BACKLOG, DIAL_TIMEOUT, Dial, IDLE_TIMEOUT, Listen, MAX_STREAMS, STREAM_WINDOW, TransportError,
    clipped,
    half_open::{self, HalfOpen, Slot},
    tls::Identity,
};
use crate::faults::{Faults, Tap};
use cowboy_engine::primitives::PublicKey;
use cowboy_host::rarely::Rarely;
use quinn::{
    AsyncUdpSocket, Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use socket::{Bound, bind};
use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    sync::Arc,
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

fn endpoint(
    socket: Arc<dyn AsyncUdpSocket>,
    address: SocketAddr,
    server: Option<quinn::ServerConfig>,
) -> Result<Endpoint, TransportError> {
    let config = EndpointConfig::default();
    Endpoint::new_with_abstract_socket(config, server, socket, Arc::new(TokioRuntime))
        .map_err(|error| TransportError::Bind { address, reason: error.to_string() })
}

/// A tap of its own, on which no fault is ever laid.
fn untapped() -> Tap {
    Tap::new(Faults::new(0), "")
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
        Self::bind_with(identity, address, untapped(), admit, QuicLimits::default())
    }

    /// [`bind`](Self::bind) behind a validator's tap.
    pub fn bind_tapped(
        identity: &Identity,
        address: SocketAddr,
        tap: Tap,
        admit: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Result<Self, TransportError> {
        Self::bind_with(identity, address, tap, admit, QuicLimits::default())
    }

    fn bind_with(
        identity: &Identity,
        address: SocketAddr,
        tap: Tap,
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
        let own = Own { key: identity.public_key().clone(), versions: identity.versions().into() };
        tokio::spawn(accept_all(endpoint.clone(), own, admit, queue, limits));
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

/// What a listener says about itself.
#[derive(Clone)]
struct Own {
    key: PublicKey,
    versions: Arc<str>,
}

/// Lets attempts through their handshakes concurrently until the endpoint is closed.
async fn accept_all(
    endpoint: Endpoint,
    own: Own,
    admit: impl Fn(IpAddr) -> bool,
    queue: mpsc::Sender<QuicConnection>,
    limits: QuicLimits,
) {
    let half_open = HalfOpen::new(limits.half_open);
    let start = Instant::now();
    let mut refused = Rarely::default();
    let mut handshakes = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(ended) = handshakes.join_next() => {
                if let Ok(Some((remote, error))) = ended
                    && refused.may(remote, ms_since(start))
                {
                    tracing::warn!(%remote, %error, "a runner is refused");
                }
            }
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
                match half_open.admit(address, ms_since(start)) {
                    Some(slot) => {
                        let (own, queue) = (own.clone(), queue.clone());
                        handshakes.spawn(handshake(attempt, own, slot, queue, limits.handshake));
                    }
                    None => attempt.refuse(),
                }
            }
        }
    }
}

fn ms_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Returns the error, and the address that it is about, if the two have no version in common.
async fn handshake(
    attempt: quinn::Incoming,
    own: Own,
    mut slot: Slot,
    queue: mpsc::Sender<QuicConnection>,
    within: Duration,
) -> Option<(IpAddr, TransportError)> {
    let remote = attempt.remote_address();
    let shaken = async {
        match attempt.into_future().await {
            Ok(connection) if version::none_in_common(&connection) => {
                Err(version::answer(&connection, &own.versions).await)
            }
            Ok(connection) => QuicConnection::new(connection, &own.key),
            Err(error) => Err(version::refused(&error, &own.versions).unwrap_or(error.into())),
        }
    };
    let through = async {
        let late = TransportError::ConnectTimeout { address: remote, after: within };
        match timeout(within, shaken).await.unwrap_or(Err(late)) {
            // An error means that the listener is gone, and the connection with it.
            Ok(connection) => drop(queue.send(connection).await),
            Err(error @ TransportError::NoCommonVersion { .. }) => {
                return Some((remote.ip(), error));
            }
            Err(error) => tracing::debug!(%remote, %error, "handshake failed"),
        }
        None
    };
    tokio::select! {
        biased;
        refused = through => refused,
        () = slot.lost() => {
            tracing::debug!(%remote, "handshake ended: another has its place");
            None
        }
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
        Self::bind_tapped(address, untapped())
    }

    /// [`bind`](Self::bind) behind a runner's tap: everything sent from this client counts as that
    /// runner's.
    pub fn bind_tapped(address: SocketAddr, tap: Tap) -> Result<Self, TransportError> {
        let Bound { socket, address, .. } = bind(address, tap)?;
        let endpoint = endpoint(socket, address, None)?;
        Ok(Self { endpoint, transport: transport_config() })
    }

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
        let versions = self.identity.versions();
        let shaken = async {
            match connecting.await {
                Ok(connection) if version::none_in_common(&connection) => {
                    Err(version::ask(&connection, &versions).await)
                }
                Ok(connection) => QuicConnection::new(connection, self.identity.public_key()),
                Err(error) => Err(match verifier.refused() {
                    Some(got) => TransportError::IdentityMismatch {
                        address,
                        expected: Box::new(expected.clone()),
                        got: Box::new(got.clone()),
                    },
                    None => version::refused(&error, &versions).unwrap_or_else(|| {
                        TransportError::Connect { address, reason: error.to_string() }
                    }),
                }),
            }
        };
        let late = TransportError::ConnectTimeout { address, after: DIAL_TIMEOUT };
        timeout(DIAL_TIMEOUT, shaken).await.unwrap_or(Err(late))
    }
}
