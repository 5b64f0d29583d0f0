//! One connection between a runner and a validator, as two machines that know neither sockets nor
//! clocks (spec connectivity.md §2, §3, §6; CIP-11 §6, §10).
//!
//! [`runner::Runner`] and [`validator::Validator`] are the two ends, one object per connection.
//! What outlives a connection stands beside them: the runner's jobs in [`jobs::JobTable`], the
//! challenges a validator has seen in [`nonces::SeenNonces`], the wait before the next connection
//! in [`backoff`].
//!
//! # Driving a machine
//!
//! Both implement [`Session`]: `handle_*` and commands in, [`Output`] out. Time is a `now` in
//! milliseconds of any clock; randomness and heads are arguments. After each input the driver
//! drains the outputs and arms one timer; nothing else bounds what is queued.
//!
//! # The protocol
//!
//! Upon opening the connection (§2):
//! * the runner opens the control stream and sends `Hello`.
//!
//! Upon receiving `Hello`:
//! * the validator checks version, role, admission (registered, not deregistered, stake, subset:
//!   its driver's answer to
//!   [`validator::Event::Admit`]) and identity with the certificate, in this order, and that the
//!   challenge is not its own; it sends its own `Hello` and a `HelloAck` over the runner's nonce;
//! * the runner checks version, role, identity (the validator it meant to reach, with its
//!   certificate) and that the challenge is not its own.
//!
//! Upon receiving `HelloAck`:
//! * either side checks that it repeats the peer's `Hello` and that the peer signed the challenge;
//! * the runner sends `HelloAck` over the validator's nonce and counts the connection as
//!   established: it sends its first ping;
//! * the validator counts the connection as established and sends a `HeartbeatPong`, which is how
//!   the runner learns it. Before that pong the runner opens no stream.
//!
//! Five seconds without establishing end the connection.
//!
//! Upon a new head (§3):
//! * the validator sends `HeartbeatPong` with it, where it is or passes a multiple of
//!   `heartbeat_blocks` ([`Connectivity`](crate::presence::Connectivity)). It sends no other pong:
//!   a ping could only be answered with a height that was told before.
//!
//! Upon receiving `HeartbeatPong`:
//! * the runner, where the height is new to it, checks the signature and sends `HeartbeatPing`
//!   with it and a nonce one higher. So there is one ping per connection and height told, each is a
//!   reply to a block, and no pair of frames answers one another for ever. How often it pings a
//!   runner learns from its validators alone: nothing else can have it be silent.
//!
//! Upon receiving `HeartbeatPing`:
//! * the validator checks that the nonce increased and the signature; the runner is alive.
//!
//! When the connection is established:
//! * the runner sends `OpenJobs`: the jobs that it works on or has results of.
//!
//! Upon receiving `OpenJobs`:
//! * the validator sends `JobCancel` for each of them that the chain knows and no longer assigns to
//!   the runner.
//!
//! Upon an assignment in a block (§6):
//! * the validator opens a stream and sends `JobAssignment`.
//!
//! Upon receiving `JobAssignment`:
//! * the runner checks the signature and answers `JobAck` as its job table says: when enough
//!   validators have assigned the same attempt.
//!
//! When a block later than the assignment's proves it, and there is no `JobAck` yet:
//! * the validator sends `JobProof` on the stream.
//!
//! Upon receiving `JobProof`:
//! * the runner checks it against the validators of its epoch and answers `JobAck`.
//!
//! When a block later than the one that ended a job proves it, and `JobCancel` was sent:
//! * the validator opens a stream and sends `JobProof`: a runner need not wait for more validators
//!   that cancel.
//!
//! When an agent sends the runner on an errand:
//! * the validator opens a stream and passes on the agent's `Errand`.
//!
//! Upon receiving `Errand`:
//! * the runner checks the agent's signature and that its operator has named the agent, and answers
//!   `JobAck`. From here on an errand is as a job.
//!
//! Upon receiving `JobAck`:
//! * accepted: the stream stays open for progress, result or cancellation;
//! * duplicate ([`Outcome::Duplicate`]) and reject ([`Outcome::SoftFailure`]) end the stream.
//!   Another job frame instead of an ack is a soft failure too.
//!
//! Upon the head passing the assignment by more than `ack_timeout_blocks` without a frame on the
//! stream:
//! * the validator reports [`Outcome::HardFailure`] and finishes its half of the stream. It still
//!   takes a result there, so that one in flight is not lost.
//!
//! Upon a job's completion:
//! * the runner sends `JobResult` on the stream it accepted on, or, where that one is gone, on a
//!   new stream of its own to any validator of its subset, and finishes its half.
//!
//! Upon receiving `JobResult`:
//! * the validator checks the signature, reports the result and finishes its half. To the runner
//!   that finish, after it has sent a result, says that the result arrived.
//!
//! Upon the chain no longer assigning a job that the validator has dispatched:
//! * the validator sends `JobCancel`, on the stream of the assignment where it is open and else on
//!   a new one, and drops what comes later on that of the assignment.
//!
//! Upon receiving `JobCancel`:
//! * the runner checks the signature, and stops the job when enough validators have cancelled it.
//!
//! Upon a committee member's completion of its job (spec jobs.md §5):
//! * the runner sends `JobCommit`, exactly where and how it would send a `JobResult`;
//! * the validator takes it exactly as a `JobResult`.
//!
//! Upon work that fails (spec jobs.md §7):
//! * the runner sends `JobFailure`, exactly where and how it would send the result or commitment;
//! * the validator takes it likewise.
//!
//! Upon the chain having a committee's commitments:
//! * the validator opens a stream with `JobReveal` to each runner whose result it lacks, and once
//!   it has all of them one with `JobAggregate` to the aggregator.
//!
//! Upon receiving `JobReveal`:
//! * the runner checks the signature and answers with the `JobResult` that it has committed to, or
//!   ends the stream.
//!
//! Upon receiving `JobAggregate`:
//! * the runner checks the validator's signature and that of each result, and answers with
//!   `JobAggregated`, or ends the stream.
//!
//! Upon the head passing either question by more than that without an answer:
//! * the validator finishes its half of the stream. Nothing else follows: it will ask again.
//!
//! Upon a frame that is malformed, too large, out of place or signed by another key:
//! * the receiver sends `Goodbye` with the reason and closes the connection.
//!
//! Upon the end of the control stream or `Goodbye`:
//! * the connection is over.

pub mod backoff;
pub mod jobs;
pub mod nonces;
mod proposals;
pub mod runner;
pub mod validator;

#[cfg(test)]
mod tests;

use crate::{
    primitives::{Height, PublicKey},
    wire::{GoodbyeReason, HelloAck, RejectReason, Role, VERSION},
};
use std::fmt;

/// How long a handshake may take, in ms (spec §2).
pub const HANDSHAKE_TIMEOUT_MS: u64 = 5_000;

/// Job streams that each side has open at most. A runner runs far fewer jobs at a time.
pub const MAX_JOB_STREAMS: usize = 64;

/// Job streams of the peer's that each side admits: more than [`MAX_JOB_STREAMS`], because the
/// two learn at different times that one has ended. A transport admits one more, for the control
/// stream; more than this ends the connection.
pub const MAX_PEER_STREAMS: usize = 2 * MAX_JOB_STREAMS;

/// A stream of one connection, as one end calls it. The two ends' names for a stream differ: each
/// numbers the streams in the order in which it opened or heard of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// The control stream.
    pub const CONTROL: Self = Self(0);
    const FIRST_OF_VALIDATOR: Self = Self(1);
    const FIRST_OF_RUNNER: Self = Self(2);

    /// The stream's number: odd where the validator opened it, even where the runner did.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether the runner opened the stream; the control stream is one of those.
    const fn is_runners(self) -> bool {
        self.0 & 1 == 0
    }

    /// Yields this id and moves on to the opener's next one.
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

/// What a driver does next, in the order in which it is told; `E` is for the driver's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<E> {
    /// Open a bidirectional stream and write these bytes.
    Open {
        /// The new stream's id.
        stream: StreamId,
        /// Its first bytes.
        bytes: Vec<u8>,
    },
    /// Write these bytes.
    Send {
        /// Where.
        stream: StreamId,
        /// What.
        bytes: Vec<u8>,
    },
    /// Nothing more will be written on the stream; it may still be read.
    Finish {
        /// Which.
        stream: StreamId,
    },
    /// Something that matters beyond the connection.
    Event(E),
    /// The connection is over: the last output. What was sent before it still reaches the peer:
    /// after a goodbye the driver waits a moment for that before it closes the connection.
    Closed(End),
}

/// One end of a connection, as its driver sees it.
///
/// Each `handle_*` and each command of the type itself may queue outputs; drain them with
/// `poll_output` before the next one. After [`Output::Closed`] nothing has any effect.
pub trait Session {
    /// What the driver's user is told.
    type Event;

    /// What to do next; `None`: nothing before the next input.
    fn poll_output(&mut self) -> Option<Output<Self::Event>>;

    /// When to call [`Self::handle_timeout`], in ms of the driver's clock; it may change with every
    /// input.
    fn next_timeout(&self) -> Option<u64>;

    /// The peer opened a stream, which has this id from now on. `None`: the connection is over.
    fn handle_opened(&mut self) -> Option<StreamId>;

    /// The peer wrote these bytes, of any number.
    fn handle_data(&mut self, stream: StreamId, bytes: &[u8]);

    /// The peer has written all it will on the stream.
    fn handle_finished(&mut self, stream: StreamId);

    /// The stream broke, for reading or for writing.
    fn handle_reset(&mut self, stream: StreamId);

    /// The connection broke, or the peer closed it.
    fn handle_connection_lost(&mut self);

    /// The chain's head, as far as this side knows; one not above the last is ignored.
    fn handle_head(&mut self, head: Height);

    /// The time of [`Self::next_timeout`] has come; `now` in ms.
    fn handle_timeout(&mut self, now: u64);

    /// Says goodbye and ends the connection.
    fn close(&mut self, reason: GoodbyeReason);
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// This side said goodbye.
    Local(GoodbyeReason),
    /// The peer said goodbye.
    Peer(GoodbyeReason),
    /// The handshake was not complete in time.
    HandshakeTimeout,
    /// The control stream or the whole connection broke, or the peer ended it without a word.
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

/// How the dispatch of an assignment went (spec §6). Only a hard failure costs presence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted, and later a result, a commitment, or word that there will be none.
    Success,
    /// The runner has the job from another validator.
    Duplicate,
    /// Not taken, for this reason; `None`: a frame that was no ack.
    SoftFailure(Option<RejectReason>),
    /// No frame within [`ack_timeout_blocks`](crate::presence::Connectivity::ack_timeout_blocks).
    HardFailure,
}

/// A signature that does not hold ends the connection.
const fn signed(holds: bool) -> Result<(), GoodbyeReason> {
    if holds { Ok(()) } else { Err(GoodbyeReason::BadSignature) }
}

/// Whether `ack` is the one of the peer whose `Hello` was accepted, over this side's `challenge`.
fn check_ack(
    ack: &HelloAck,
    chain_id: u64,
    role: Role,
    peer: &PublicKey,
    challenge: &[u8; 32],
) -> Result<(), GoodbyeReason> {
    if ack.version != VERSION {
        return Err(GoodbyeReason::UnsupportedVersion);
    }
    if ack.party_role != role {
        return Err(GoodbyeReason::WrongRole);
    }
    if ack.party_pubkey != *peer {
        return Err(GoodbyeReason::IdentityMismatch);
    }
    signed(ack.verify(chain_id, challenge))
}
