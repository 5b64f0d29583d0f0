//! Messages between runners and validators: frames, their limits, their signatures
//! (spec connectivity.md §2, §6; CIP-11 §12).
//!
//! ```text
//! length: u32 BE | type: u8 | payload          length counts type and payload
//! ```
//!
//! The payload is the frame's record in deterministic CBOR. [`frame`] splits a byte stream into
//! frames and refuses a length above the stream's limit before it stores anything; [`message`] is
//! the table of frames, [`value`] has the types of their fields; [`signing`] defines what each
//! signature covers, [`heartbeat`] what replaces it in heartbeats of version 2.
//!
//! A connection has one control stream and any number of job streams ([`Channel`]). Each frame
//! belongs to one of the two. On the control stream all other types are malformed. On a job stream
//! an unknown type is an ignored extension if it is 0x80 or above, and malformed otherwise. The
//! frames of committees (0x80 to 0x83) and of failed work (0x84) are such extensions of the first
//! table, so implementations that know only that table ignore them.
//!
//! Formats are frozen: `tests.rs` holds a hash of a sample of every frame.

pub mod frame;
pub mod heartbeat;
pub mod message;
pub mod signing;
#[cfg(test)]
mod tests;
pub mod value;

pub use frame::{FrameError, FrameReader, RawFrame};
pub use heartbeat::HeartbeatKey;
pub use message::{
    BackpressureSignal, CapabilityChange, CapabilityDelta, Control, Errand, Goodbye, HeartbeatPing,
    HeartbeatPong, Hello, HelloAck, JobAck, JobAggregate, JobAggregated, JobAssignment, JobCancel,
    JobCommit, JobFailure, JobFrame, JobProgress, JobProof, JobResult, JobReveal, KeyedPing,
    KeyedPong, Message, OpenJobs,
};
pub use signing::{commitment, reveals_digest};
pub use value::{
    AckStatus, Body, BodyError, CancelReason, GoodbyeReason, JobIds, Labels, LabelsError, Percent,
    PercentError, Reason, RejectReason, RevealedResult, Reveals, RevealsError, Role, Text,
};

/// The two kinds of streams in a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The first stream, open as long as the connection: handshake, heartbeats, load, goodbye.
    Control,
    /// A stream about one job: its assignment, acknowledgement, progress, result, cancellation.
    Job,
}

impl Channel {
    /// Maximum length of a frame in bytes (spec §2): 64 KiB on the control stream, 16 MiB on a job
    /// stream.
    pub const fn limit(self) -> usize {
        match self {
            Self::Control => 64 << 10,
            Self::Job => 16 << 20,
        }
    }
}
