//! One connection between a runner and a validator, as two machines that know neither sockets nor
//! clocks (spec connectivity.md §2, §3, §6; CIP-11 §6, §10).
//!
//! [`runner::Runner`] and [`validator::Validator`] are the two ends, one object per connection.
//! State that outlives a connection is kept elsewhere: the runner's jobs in [`jobs::JobTable`], the
//! challenges that a validator has seen in [`nonces::SeenNonces`], the delay before the next
//! connection in [`backoff`]. [`heartbeat`] has the difference between the protocol's versions; a
//! `HeartbeatPing` or `HeartbeatPong` below is a `KeyedPing` or `KeyedPong` in version 2.
//!
//! # Driving a machine
//!
//! Both implement [`Session`]: `handle_*` and commands in, [`Output`] out. Time is a `now` in
//! milliseconds of any clock; randomness and heads are arguments. After each input the driver
//! drains the outputs and arms one timer; nothing else bounds the queue of outputs.
//!
//! # The protocol
//!
//! When the connection opens (§2):
//! * the runner opens the control stream and sends `Hello`.
//!
//! On receiving `Hello`:
//! * the validator checks version, role, admission (registered, not deregistered, stake, subset:
//!   its driver's answer to [`validator::ValidatorEvent::Admit`]) and that the key is the
//!   certificate's, in this order, and that the challenge is not its own; it sends its own `Hello`
//!   and a `HelloAck` over the runner's nonce;
//! * the runner checks version, role, identity (the validator it meant to reach, with its
//!   certificate) and that the challenge is not its own.
//!
//! On receiving `HelloAck`:
//! * either side checks that it repeats the peer's `Hello` and that the peer signed the challenge;
//! * the runner sends `HelloAck` over the validator's nonce and counts the connection as
//!   established: it sends its first ping;
//! * the validator counts the connection as established and sends a `HeartbeatPong`, which tells
//!   the runner so. Before that pong the runner opens no stream.
//!
//! A connection that is not established within five seconds ends.
//!
//! When the head advances (§3):
//! * the validator sends `HeartbeatPong` with the new head if it reaches or passes a multiple of
//!   `heartbeat_blocks` ([`Connectivity`](crate::presence::Connectivity)). It sends no other pong,
//!   because the answer to a ping could only repeat a height that the runner knows.
//!
//! On receiving `HeartbeatPong`:
//! * if the height is new to it, the runner checks signature or MAC and sends `HeartbeatPing` with
//!   the height and the next nonce. So there is one ping per connection and announced height, each
//!   in reply to a block, and no pair of frames answers each other forever. Only its validators
//!   determine how often a runner pings: nothing else can silence it.
//!
//! On receiving `HeartbeatPing`:
//! * the validator checks signature or MAC and that the nonce increased; the runner is alive.
//!
//! When the connection is established:
//! * the runner sends `OpenJobs`: the jobs that it works on or has results of.
//!
//! On receiving `OpenJobs`:
//! * the validator sends `JobCancel` for each of them that the chain knows and no longer assigns to
//!   the runner.
//!
//! When a block assigns a job (§6):
//! * the validator opens a stream and sends `JobAssignment`.
//!
//! On receiving `JobAssignment`:
//! * the runner checks the signature and answers `JobAck` as its job table says: when enough
//!   validators have assigned the same attempt.
//!
//! When a later block than the assigning one proves the assignment, and there is no `JobAck` yet:
//! * the validator sends `JobProof` on the stream.
//!
//! On receiving `JobProof`:
//! * the runner checks it against the validators of its epoch and answers `JobAck`.
//!
//! When a later block than the one that ended a job proves the end, and `JobCancel` was sent:
//! * the validator opens a stream and sends `JobProof`, so that the runner need not wait for more
//!   validators to cancel.
//!
//! When an agent sends the runner on an errand:
//! * the validator opens a stream and passes on the agent's `Errand`.
//!
//! On receiving `Errand`:
//! * the runner checks the agent's signature and that its operator has named the agent, and answers
//!   `JobAck`. From here on an errand is handled like a job.
//!
//! On receiving `JobAck`:
//! * accepted: the stream stays open for progress, result or cancellation;
//! * duplicate ([`DispatchOutcome::Duplicate`]) and reject ([`DispatchOutcome::SoftFailure`]) end
//!   the stream. Another job frame instead of an ack is a soft failure too.
//!
//! When the head passes the assignment by more than `ack_timeout_blocks` without a frame on the
//! stream:
//! * the validator reports [`DispatchOutcome::HardFailure`] and finishes its half of the stream. It
//!   still accepts a result there, so that one in flight is not lost.
//!
//! When a job completes:
//! * the runner sends `JobResult` on the stream it accepted on, or, if that is gone, on a new
//!   stream of its own to any validator of its subset, and finishes its half.
//!
//! On receiving `JobResult`:
//! * the validator checks the signature, reports the result and finishes its half. That finish,
//!   after a result, tells the runner that the result arrived.
//!
//! When the chain no longer assigns a job that the validator has dispatched:
//! * the validator sends `JobCancel`, on the assignment's stream if it is open and otherwise on a
//!   new one, and drops later frames on the assignment's stream.
//!
//! On receiving `JobCancel`:
//! * the runner checks the signature, and stops the job when enough validators have cancelled it.
//!
//! When a committee member completes its job (spec jobs.md §5):
//! * the runner sends `JobCommit`, exactly where and how it would send a `JobResult`;
//! * the validator handles it exactly like a `JobResult`.
//!
//! When work fails (spec jobs.md §7):
//! * the runner sends `JobFailure`, exactly where and how it would send the result or commitment;
//! * the validator handles it likewise.
//!
//! When the chain has a committee's commitments:
//! * the validator opens a stream with `JobReveal` to each runner whose result it lacks, and when
//!   it has all results one with `JobAggregate` to the aggregator.
//!
//! On receiving `JobReveal`:
//! * the runner checks the signature and answers with the `JobResult` that it has committed to, or
//!   ends the stream.
//!
//! On receiving `JobAggregate`:
//! * the runner checks the validator's signature and that of each result, and answers with
//!   `JobAggregated`, or ends the stream.
//!
//! When the head passes either question by more than `ack_timeout_blocks` without an answer:
//! * the validator finishes its half of the stream. Nothing else follows: it will ask again.
//!
//! When a frame is malformed, too large, out of place or signed by another key:
//! * the receiver sends `Goodbye` with the reason and closes the connection.
//!
//! When the control stream ends or `Goodbye` arrives:
//! * the connection is over.

pub mod backoff;
pub mod heartbeat;
pub mod jobs;
pub mod nonces;
mod proposals;
pub mod runner;
mod streams;
pub mod validator;

#[cfg(test)]
mod tests;

use crate::{
    primitives::{Height, PublicKey},
    wire::{GoodbyeReason, HelloAck, RejectReason, Role},
};
use std::fmt;

/// Maximum duration of a handshake, in ms (spec §2).
pub const HANDSHAKE_TIMEOUT_MS: u64 = 5_000;

/// Maximum number of job streams that each side has open. A runner runs far fewer jobs at a time.
pub const MAX_JOB_STREAMS: usize = 64;

/// Maximum number of job streams that each side accepts from the peer: more than
/// [`MAX_JOB_STREAMS`], because the two learn at different times that a stream has ended. A
/// transport admits one more, for the control stream; more than this ends the connection.
pub const MAX_PEER_STREAMS: usize = 2 * MAX_JOB_STREAMS;

/// A stream of one connection, as one end names it. The two ends' ids for a stream differ: each end
/// numbers the streams in the order in which it opened them or learned of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// The control stream.
    pub const CONTROL: Self = Self(0);
    const FIRST_OF_VALIDATOR: Self = Self(1);
    const FIRST_OF_RUNNER: Self = Self(2);

    /// The stream's number: odd if the validator opened it, even if the runner did.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the runner opened the stream; the control stream is one of those.
    const fn is_runners(self) -> bool {
        self.0 & 1 == 0
    }

    /// Returns this id and advances to the opener's next one.
    fn advance(&mut self) -> Self {
        let id = *self;
        self.0 += 2;
        id
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}

/// An instruction to the driver, to be followed in order; `E` is the event type for the driver's
/// user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<E> {
    /// Open a bidirectional stream and write these bytes.
    Open {
        stream: StreamId,
        bytes: Vec<u8>,
    },
    Send {
        stream: StreamId,
        bytes: Vec<u8>,
    },
    /// Nothing more will be written on the stream; it may still be read.
    Finish {
        stream: StreamId,
    },
    Event(E),
    /// The connection is over; no output follows. Earlier outputs still have to reach the peer:
    /// after a goodbye the driver waits a moment for that before it closes the connection.
    Closed(End),
}

/// One end of a connection, as its driver sees it.
///
/// Each `handle_*` and each command of the type itself may queue outputs; drain them with
/// `poll_output` before the next one. After [`Output::Closed`] nothing has any effect.
pub trait Session {
    type Event;

    /// The next output; `None` until there is new input.
    fn poll_output(&mut self) -> Option<Output<Self::Event>>;

    /// When to call [`Self::handle_timeout`], in ms of the driver's clock. Every input may change
    /// it.
    fn next_timeout(&self) -> Option<u64>;

    /// The peer opened a stream; returns its id from now on, or `None` if the connection is over.
    fn handle_opened(&mut self) -> Option<StreamId>;

    /// The peer wrote these bytes; chunks may have any length.
    fn handle_data(&mut self, stream: StreamId, bytes: &[u8]);

    /// The peer finished its half of the stream.
    fn handle_finished(&mut self, stream: StreamId);

    /// The stream broke, for reading or writing.
    fn handle_reset(&mut self, stream: StreamId);

    /// The connection broke, or the peer closed it.
    fn handle_connection_lost(&mut self);

    /// The chain's head as far as this side knows; ignored unless higher than the last.
    fn handle_head(&mut self, head: Height);

    /// The time of [`Self::next_timeout`] has come; `now` in ms.
    fn handle_timeout(&mut self, now: u64);

    fn close(&mut self, reason: GoodbyeReason);
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Local(GoodbyeReason),
    Peer(GoodbyeReason),
    HandshakeTimeout,
    /// The control stream or the whole connection broke, or the peer ended it without a goodbye.
    Lost,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(reason) => write!(f, "closed: {reason}"),
            Self::Peer(reason) => write!(f, "closed by the peer: {reason}"),
            Self::HandshakeTimeout => f.write_str("handshake not complete in time"),
            Self::Lost => f.write_str("connection lost"),
        }
    }
}

/// The outcome of dispatching an assignment (spec §6). Only a hard failure costs presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchOutcome {
    /// Accepted, and later a result, a commitment or a failure report.
    Success,
    /// The runner has the job from another validator.
    Duplicate,
    /// Rejected for this reason; `None`: another frame arrived instead of an ack.
    SoftFailure(Option<RejectReason>),
    /// No frame within [`ack_timeout_blocks`](crate::presence::Connectivity::ack_timeout_blocks).
    HardFailure,
}

/// Ends the connection if a signature does not verify.
const fn signed(holds: bool) -> Result<(), GoodbyeReason> {
    if holds { Ok(()) } else { Err(GoodbyeReason::BadSignature) }
}

/// Checks that the peer names the connection's version and the role of this side's peers.
fn check_party(party: (u16, Role), expected: (u16, Role)) -> Result<(), GoodbyeReason> {
    if party.0 != expected.0 {
        return Err(GoodbyeReason::UnsupportedVersion);
    }
    if party.1 == expected.1 { Ok(()) } else { Err(GoodbyeReason::WrongRole) }
}

/// Checks that `ack` is by the peer whose `Hello` was accepted, over this side's `challenge`.
fn check_ack(
    ack: &HelloAck,
    chain_id: u64,
    party: (u16, Role),
    peer: &PublicKey,
    challenge: &[u8; 32],
) -> Result<(), GoodbyeReason> {
    check_party((ack.version, ack.party_role), party)?;
    if ack.party_pubkey != *peer {
        return Err(GoodbyeReason::IdentityMismatch);
    }
    signed(ack.verify(chain_id, challenge))
}
