//! Authenticated connections between runners and validators (spec connectivity §2).
//!
//! A [`Connection`] is bound to one on-chain key at either end and carries bidirectional byte
//! streams. The protocol above it is written once, against the traits of this module, and runs on
//! two implementations:
//!
//! * [`quic`]: quinn over UDP, with the identities of [`tls`];
//! * [`simulated`]: in memory on commonware's deterministic runtime, over links with latency,
//!   jitter and loss that a scenario sets and cuts.
//!
//! A stream delivers its bytes in order and complete, or fails: nothing is lost, duplicated or
//! altered. There is no order between streams. A writer waits while the reader is behind: the bytes
//! in flight are bounded on every stream and every connection.

pub mod driver;
pub mod half_open;
pub mod quic;
pub mod simulated;
#[cfg(test)]
mod suite;

pub mod tls;

use bytes::Bytes;
use cowboy_engine::{primitives::PublicKey, session::heartbeat::Heartbeats};
use cowboy_host::duration::Plain;
use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Why a connection could not be made or a stream cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    #[error("cannot bind UDP {address}: {reason}")]
    Bind { address: SocketAddr, reason: String },
    /// No connection was established, for a reason other than the peer's identity.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        address: SocketAddr,
        /// The cause, in the peer's words if it gave any.
        reason: String,
    },
    #[error("no connection to {address} within {}", Plain(*.after))]
    ConnectTimeout { address: SocketAddr, after: Duration },
    #[error("{address} is {got}, expected {expected}")]
    IdentityMismatch { address: SocketAddr, expected: Box<PublicKey>, got: Box<PublicKey> },
    /// The local side's certificate or TLS configuration cannot be made, or the peer's carries no
    /// valid identity.
    #[error("transport identity: {0}")]
    Identity(#[from] tls::IdentityError),
    #[error("connection closed by the peer: {reason}")]
    ClosedByPeer {
        /// The peer's text, at most [`MAX_REASON`] bytes.
        reason: String,
    },
    #[error("connection closed")]
    Closed,
    /// The connection broke: a timeout, a reset, or a violation of the transport protocol.
    #[error("connection lost: {reason}")]
    Lost { reason: String },
    /// Refused in the handshake. `theirs` is what the peer says.
    #[error(
        "the peer speaks {theirs} and this side {own}: run versions of cowboyctl that have one in \
         common"
    )]
    NoCommonVersion { own: String, theirs: String },
    /// The peer abandoned this one stream; the connection continues.
    #[error("stream abandoned by the peer")]
    StreamAbandoned,
    #[error("stream written to after its end")]
    StreamFinished,
}

/// The maximum length of a close reason that reaches the peer, in bytes; the rest is cut off.
pub const MAX_REASON: usize = 256;

/// Streams that one side may have open at once on a connection. A runner has a control stream and
/// one stream per job and validator, of which sessions open at most 64; any further one waits in
/// [`Connection::open`]. quinn allocates a table of this size for each connection: from 113 on it
/// is twice as large, 10 KiB at either end.
pub const MAX_STREAMS: u32 = 96;

/// Bytes on a stream that are written but not yet read. The largest frame of 16 MiB (spec
/// connectivity §2) then takes 64 round trips, and a job's usual few hundred bytes take none.
pub const STREAM_WINDOW: u32 = 256 * 1024;

/// A connection on which nothing arrives for this long is lost.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit of [`Dial::dial`]. It is shorter than the limit on half-open handshakes, so that
/// a runner reconnects within moments of its validator's return.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(3);

/// Handshaken connections that wait in a listener's queue for [`Listen::accept`].
pub const BACKLOG: usize = 64;

/// Clips a close reason to its first [`MAX_REASON`] bytes, at a character boundary.
fn clipped(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(MAX_REASON)]
}

/// A connection to a peer that proved its on-chain identity. Clones share it.
///
/// It ends when either side calls [`close`](Self::close), when the network fails, or when the last
/// handle (this, its clones, its streams) is dropped.
pub trait Connection: Clone + Send + Sync + 'static {
    type Send: SendStream;
    type Recv: RecvStream;

    /// The peer's on-chain key, verified in the handshake.
    fn peer(&self) -> &PublicKey;

    /// The address that the peer's packets come from.
    fn remote(&self) -> IpAddr;

    /// How heartbeats are authenticated here: the same at both ends, agreed on in the handshake.
    fn heartbeats(&self) -> Heartbeats;

    /// Opens a bidirectional stream; waits while the peer allows no more of them. The peer learns
    /// of the stream with its first bytes or its end.
    fn open(&self)
    -> impl Future<Output = Result<(Self::Send, Self::Recv), TransportError>> + Send;

    /// The next stream the peer opened. Dropping the future loses no stream.
    fn accept(
        &self,
    ) -> impl Future<Output = Result<(Self::Send, Self::Recv), TransportError>> + Send;

    /// Ends the connection and all its streams at once, including data that is not yet delivered
    /// (see [`SendStream::delivered`]). The peer gets `reason`; later calls do nothing.
    fn close(&self, reason: &str);

    fn closed(&self) -> impl Future<Output = ()> + Send;
}

/// The writing half of a stream. Dropping it unfinished makes the reader fail with
/// [`TransportError::StreamAbandoned`].
pub trait SendStream: Send + 'static {
    /// Writes all of `bytes`, waiting while the peer's window is full. A dropped future may have
    /// written a part of them, which makes the stream unusable.
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// Marks the end of the stream; bytes already written still arrive.
    fn finish(&mut self);

    /// Finishes the stream, and waits until the peer's side of the connection has all written
    /// bytes. A later [`Connection::close`] no longer cuts them off.
    fn delivered(&mut self) -> impl Future<Output = Result<(), TransportError>> + Send;
}

/// The reading half of a stream. Dropping it makes the writer fail with
/// [`TransportError::StreamAbandoned`].
pub trait RecvStream: Send + 'static {
    /// The next bytes, at least one and at most `max` (which is above zero); `None` at the end.
    /// Dropping the future loses no bytes.
    fn read(
        &mut self,
        max: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, TransportError>> + Send;
}

/// The side that accepts connections: a validator.
pub trait Listen: Send + 'static {
    type Connection: Connection;

    /// The next handshaken connection; `None` once the listener is closed. Dropping the future
    /// loses no connection.
    fn accept(&mut self) -> impl Future<Output = Option<Self::Connection>> + Send;

    /// Stops listening and closes every connection that came from here with `reason`. Dropping the
    /// listener does the same without one.
    fn close(&mut self, reason: &str);
}

/// The side that makes connections: a runner, under one identity.
pub trait Dial: Clone + Send + Sync + 'static {
    type Connection: Connection;

    /// Connects to the validator `expected` at `address`, in bounded time. The simulated network
    /// finds it by its key alone.
    fn dial(
        &self,
        address: SocketAddr,
        expected: &PublicKey,
    ) -> impl Future<Output = Result<Self::Connection, TransportError>> + Send;
}
