//! Results and reports that runners hand in.

use cowboy_engine::{
    chain::transaction::{CommitResult, ReportFailure, Reveal, SubmitResult},
    primitives::{Hash, Height, Signature},
};

/// A result or report from a runner. It has been checked against the chain's rules, except for
/// reveals and commitments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submission {
    /// The result of a job that the runner works on alone.
    Result(SubmitResult),
    /// A committee member's commitment, with its signature.
    Commit {
        commit: CommitResult,
        deadline_block: Height,
    },
    Failure(ReportFailure),
    /// A committee member's result, sent on request.
    Reveal {
        job_id: Hash,
        /// The result, not yet compared with the commitment.
        reveal: Reveal,
    },
    Aggregated {
        job_id: Hash,
        /// [`reveals_digest`](cowboy_engine::wire::reveals_digest) of the signed results.
        digest: Hash,
        signature: Signature,
    },
}
