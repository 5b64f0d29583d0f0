//! A runner's signed statement that it does not do a job.

use crate::{
    primitives::codec::{Decode, DecodeError, Encode, Reader, Writer},
    wire::{Reason, RejectReason},
};
use std::fmt;

/// A runner's statement in place of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excuse {
    /// It could not do the work, with the reason: a `JobFailure` frame.
    Failed(Reason),
    /// It rejects the assignment: a `JobAck` frame.
    Rejected(RejectReason),
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) => reason.fmt(f),
            Self::Rejected(reason) => write!(f, "the runner rejected the job: {reason}"),
        }
    }
}

impl Encode for Excuse {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        match self {
            Self::Failed(reason) => {
                w.u64(0);
                reason.encode(w);
            }
            Self::Rejected(reason) => {
                w.u64(1);
                reason.encode(w);
            }
        }
    }
}

impl Decode for Excuse {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match (r.list(2)?, r.u64()?) {
            (2, 0) => Decode::decode(r).map(Self::Failed),
            (2, 1) => Decode::decode(r).map(Self::Rejected),
            _ => Err(DecodeError::Invalid("unknown statement of a runner")),
        }
    }
}
