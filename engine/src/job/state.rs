//! What the chain keeps of a job.

use super::spec::JobSpec;
use crate::{
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};
use std::sync::Arc;

/// Where a job stands. Every change is an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// Recorded; fewer candidates than it asks for, drawn again each block.
    Pending,
    /// A committee was drawn.
    Assigned(Assignment),
    /// A verified result is final.
    Verified(Assignment, Outcome),
    /// No result in time; the escrow went back.
    Failed(Option<Assignment>),
}

/// A draw that found a committee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The block that drew.
    pub height: Height,
    /// Its timestamp, from which the runner's time counts.
    pub timestamp_ms: u64,
    /// The draw's seed.
    pub seed: Hash,
    /// Root of the map from each candidate's address to its stake.
    pub candidates_root: Hash,
    /// Who was drawn, in draw order.
    pub committee: Vec<Address>,
}
record!(Assignment { height, timestamp_ms, seed, candidates_root, committee });

/// A final result. Its bytes are those of the transaction that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The block that made it final.
    pub height: Height,
    /// Whose result it is.
    pub runner: Address,
    /// keccak256 of the result.
    pub result_hash: Hash,
    /// What the runner was paid, tip included.
    pub paid: Wei,
}
record!(Outcome { height, runner, result_hash, paid });

impl JobStatus {
    /// The state's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Assigned(_) => "Assigned",
            Self::Verified(..) => "Verified",
            Self::Failed(_) => "Failed",
        }
    }

    /// The draw that stands, where there was one.
    pub const fn assignment(&self) -> Option<&Assignment> {
        match self {
            Self::Pending => None,
            Self::Assigned(a) | Self::Verified(a, _) => Some(a),
            Self::Failed(a) => a.as_ref(),
        }
    }
}

impl Encode for JobStatus {
    fn encode(&self, w: &mut Writer) {
        match self {
            Self::Pending => {
                w.list(1);
                w.u64(0);
            }
            Self::Assigned(assignment) => {
                w.list(2);
                w.u64(1);
                assignment.encode(w);
            }
            Self::Verified(assignment, outcome) => {
                w.list(3);
                w.u64(2);
                assignment.encode(w);
                outcome.encode(w);
            }
            Self::Failed(None) => {
                w.list(1);
                w.u64(3);
            }
            Self::Failed(Some(assignment)) => {
                w.list(2);
                w.u64(3);
                assignment.encode(w);
            }
        }
    }
}

impl Decode for JobStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(3)?;
        match (r.u64()?, len) {
            (0, 1) => Ok(Self::Pending),
            (1, 2) => Decode::decode(r).map(Self::Assigned),
            (2, 3) => Ok(Self::Verified(Decode::decode(r)?, Decode::decode(r)?)),
            (3, 1) => Ok(Self::Failed(None)),
            (3, 2) => Ok(Self::Failed(Some(Decode::decode(r)?))),
            _ => Err(DecodeError::Invalid("unknown job status")),
        }
    }
}

/// A job as the dispatcher (0x02) keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What was asked for.
    pub spec: Arc<JobSpec>,
    /// By whom.
    pub submitter: Address,
    /// In which block.
    pub submitted_at: Height,
    /// Where it stands.
    pub status: JobStatus,
}
record!(Job { spec, submitter, submitted_at, status });

impl Job {
    /// The last block whose results count.
    pub fn deadline(&self) -> Height {
        self.submitted_at.after(self.spec.timeout_blocks)
    }
}
