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
//! A stream delivers its bytes in order and whole, or fails: nothing is lost, doubled or altered
//! in between. Between streams there is no order. Whoever writes waits while the reader is behind:
//! the bytes in flight are bounded on every stream and every connection.

pub mod driver;
pub mod half_open;
pub mod quic;
pub mod simulated;
#[cfg(test)]
mod suite;

pub mod tls;

use crate::duration::Plain;
use bytes::Bytes;
use cowboy_engine::primitives::PublicKey;
use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Why a connection could not be made, or a stream cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The local UDP port cannot be had.
    #[error("cannot bind UDP {address}: {reason}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        reason: String,
    },
    /// No handshaken connection came about, and the peer's identity is not the reason.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// The address dialled.
        address: SocketAddr,
        /// What went wrong, with the peer's words where it gave any.
        reason: String,
    },
    /// The handshake was not through in time.
    #[error("no connection to {address} within {}", Plain(*.after))]
    ConnectTimeout {
        /// The address dialled.
        address: SocketAddr,
        /// The time it was given.
        after: Duration,
    },
    /// The peer proved to hold another key than the one it was dialled for.
    #[error("{address} is {got}, expected {expected}")]
    IdentityMismatch {
        /// The address dialled.
        address: SocketAddr,
        /// The key asked for.
        expected: Box<PublicKey>,
        /// The key its certificate is bound to.
        got: Box<PublicKey>,
    },
    /// The local side's certificate or TLS configuration cannot be made, or the peer's carries no
    /// valid identity.
    #[error("transport identity: {0}")]
    Identity(#[from] tls::IdentityError),
    /// The peer closed the connection, with the reason it gave.
    #[error("connection closed by the peer: {reason}")]
    ClosedByPeer {
        /// The peer's words, at most [`MAX_REASON`] bytes.
        reason: String,
    },
    /// This side closed the connection.
    #[error("connection closed")]
    Closed,
    /// The connection broke off: silence, a reset, a violation of the protocol below.
    #[error("connection lost: {reason}")]
    Lost {
        /// What the transport said.
        reason: String,
    },
    /// The peer gave up this one stream; the connection goes on.
    #[error("stream abandoned by the peer")]
    StreamAbandoned,
    /// The stream was written to after [`SendStream::finish`].
    #[error("stream written to after its end")]
    StreamFinished,
}

/// The most bytes of a close reason that reach the peer; the rest is cut off.
pub const MAX_REASON: usize = 256;

/// Streams that one side may have open at a time on a connection. A runner has a control stream
/// and one stream per job and validator, of which sessions open at most 64; what exceeds this waits
/// in [`Connection::open`]. quinn makes a table of this size for each connection: from 113 on it is
/// twice as large, 10 KiB at either end.
pub const MAX_STREAMS: u32 = 96;

/// Bytes on a stream that were written and not read yet. A frame of 16 MiB, the largest (spec
/// connectivity §2), then takes 64 round trips, and a job's usual few hundred bytes none.
pub const STREAM_WINDOW: u32 = 256 * 1024;

/// A connection on which nothing arrives for this long is lost.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long [`Dial::dial`] tries. Shorter than the limit on half-open handshakes, so that a runner
/// whose validator was down is back within moments of its return.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(3);

/// Handshaken connections that wait in a listener's queue for [`Listen::accept`].
pub const BACKLOG: usize = 64;

/// What of a close reason is sent: its first [`MAX_REASON`] bytes, in whole characters.
fn clipped(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(MAX_REASON)]
}

/// A connection to a peer that proved its on-chain identity. Clones share it.
///
/// It ends when either side calls [`close`](Self::close), when the network fails, or when the last
/// handle (this, its clones, its streams) is dropped.
pub trait Connection: Clone + Send + Sync + 'static {
    /// The writing half of a stream.
    type Send: SendStream;
    /// The reading half of a stream.
    type Recv: RecvStream;

    /// The peer's on-chain key, verified in the handshake.
    fn peer(&self) -> &PublicKey;

    /// Where the peer's packets come from.
    fn remote(&self) -> IpAddr;

    /// Opens a bidirectional stream; waits while the peer allows no more of them. The peer learns
    /// of the stream with its first bytes or its end.
    fn open(&self)
    -> impl Future<Output = Result<(Self::Send, Self::Recv), TransportError>> + Send;

    /// The next stream the peer opened. Dropping the future loses no stream.
    fn accept(
        &self,
    ) -> impl Future<Output = Result<(Self::Send, Self::Recv), TransportError>> + Send;

    /// Ends the connection and every stream at once, what is not yet delivered included
    /// (see [`SendStream::delivered`]). The peer gets `reason`; later calls do nothing.
    fn close(&self, reason: &str);

    /// Waits until the connection is over, for whatever reason.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

/// The writing half of a stream. Dropping it unfinished makes the reader fail with
/// [`TransportError::StreamAbandoned`].
pub trait SendStream: Send + 'static {
    /// Writes all of `bytes`, waiting while the peer's window is full. A dropped future may have
    /// written a part of them: the stream is then of no more use.
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = Result<(), TransportError>> + Send;

    /// Marks the end of the stream; what was written still arrives.
    fn finish(&mut self);

    /// Finishes the stream, and waits until the peer's side of the connection has everything that
    /// was written: what a [`Connection::close`] after it no longer cuts off.
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

/// The side that waits for connections: a validator.
pub trait Listen: Send + 'static {
    /// What it yields.
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
    /// What it yields.
    type Connection: Connection;

    /// Connects to the validator `expected` at `address`, in bounded time. The simulated network
    /// finds it by its key alone.
    fn dial(
        &self,
        address: SocketAddr,
        expected: &PublicKey,
    ) -> impl Future<Output = Result<Self::Connection, TransportError>> + Send;
}
