//! What runners and validators say to each other: frames, their bounds, their signatures
//! (spec connectivity.md §2, §6; CIP-11 §12).
//!
//! ```text
//! length: u32 BE | type: u8 | payload          length counts type and payload
//! ```
//!
//! The payload is the frame's record in deterministic CBOR. [`frame`] finds frames in a stream of
//! bytes and refuses a length above the stream's bound before it stores anything; [`message`] is
//! the table of frames, [`value`] what stands in their fields; [`signing`] says what each signature
//! covers.
//!
//! A connection has one control stream and any number of job streams ([`Channel`]). Each frame
//! belongs to one of the two. On the control stream every other type is malformed; on a job stream
//! a type of 0x80 or above that is not a job frame is an extension and ignored, below that it is
//! malformed. The frames of committees (0x80 to 0x83) and of failed work (0x84) are such extensions
//! of the first table, so that who knows that alone is not disturbed by them.
//!
//! Formats are frozen: `tests.rs` holds a hash of a sample of every frame.

pub mod frame;
pub mod message;
pub mod signing;
#[cfg(test)]
mod tests;
pub mod value;

pub use frame::{Channel, FrameError, FrameReader, RawFrame};
pub use message::{
    BackpressureSignal, CapabilityChange, CapabilityDelta, Control, Errand, Goodbye, HeartbeatPing,
    HeartbeatPong, Hello, HelloAck, Job, JobAck, JobAggregate, JobAggregated, JobAssignment,
    JobCancel, JobCommit, JobFailure, JobProgress, JobProof, JobResult, JobReveal, Message,
    OpenJobs, VERSION,
};
pub use signing::{commitment, reveals_digest};
pub use value::{
    AckStatus, Body, BodyError, CancelReason, GoodbyeReason, JobIds, Labels, LabelsError, Percent,
    PercentError, Reason, RejectReason, Reveal, Reveals, RevealsError, Role, Text,
};
