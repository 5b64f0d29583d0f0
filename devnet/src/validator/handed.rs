//! What runners hand in.

use cowboy_engine::{
    chain::transaction::{CommitResult, ReportFailure, Reveal, SubmitResult},
    primitives::{Hash, Height, Signature},
};

/// What a runner hands in. Whether the chain takes it has been checked but for reveals and
/// commitments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handed {
    /// The result of a job that it works on alone.
    Result(SubmitResult),
    /// A committee member's commitment, which it has signed.
    Commit {
        /// The commitment.
        commit: CommitResult,
        /// The deadline of its attempt.
        deadline_block: Height,
    },
    /// The word of one that cannot do its work.
    Failure(ReportFailure),
    /// A committee member's result, which it was asked for.
    Reveal {
        /// The job.
        job_id: Hash,
        /// The result; whether it is what was committed to has not been checked.
        reveal: Reveal,
    },
    /// An aggregator's answer.
    Aggregated {
        /// The job.
        job_id: Hash,
        /// [`reveals_digest`](cowboy_engine::wire::reveals_digest) of what it was asked to sign.
        digest: Hash,
        /// Its signature.
        signature: Signature,
    },
}
