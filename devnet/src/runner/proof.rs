//! Proofs from certified blocks that a job is assigned or has ended, for a runner that too few of
//! its validators reach.
//!
//! A proof needs a block after the one that assigned the job, so it comes one block time later than
//! agreeing assignments. It is the only way for a runner whose subset has too few validators: with
//! 16 validators or more, the subset has 5, but 6 would have to agree on an assignment or on its
//! end.

use super::KnownValidators;
use crate::consensus::certificate::{self, CertificateError};
use cowboy_engine::{
    chain::{Found, StateProof, StateProofError, Subject},
    job::spec::Job,
    primitives::{
        Address, Hash, Height,
        codec::{DecodeError, from_slice, to_vec},
    },
    session::jobs::ProposedAttempt,
};

#[derive(Debug, thiserror::Error)]
pub(super) enum ProofError {
    #[error(transparent)]
    State(#[from] StateProofError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("the validators of epoch {0} are not known")]
    UnknownEpoch(u64),
    #[error("it is about {0}, not about the job that was assigned")]
    Subject(Subject),
    #[error("the chain has no job {0}")]
    NoJob(Hash),
    #[error("the record of the job cannot be read: {0}")]
    Record(#[from] DecodeError),
    /// It shows the opposite of what it was sent for.
    #[error("job {job_id} is {status} at block {height}")]
    Other { job_id: Hash, status: &'static str, height: Height },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The block that left the state.
    pub height: Height,
    pub status: &'static str,
    /// The runner's attempt and its specification; `None`: the job belongs to another runner or has
    /// ended.
    pub assigned: Option<(ProposedAttempt, Vec<u8>)>,
}

impl Shown {
    /// The attempt and its specification; fails when the proof does not show an assignment.
    pub fn assignment(self, job_id: &Hash) -> Result<(ProposedAttempt, Vec<u8>), ProofError> {
        let Self { height, status, assigned } = self;
        assigned.ok_or(ProofError::Other { job_id: *job_id, status, height })
    }

    /// The height from which the runner no longer has the job; fails when the proof shows that it
    /// has it.
    pub fn end(self, job_id: &Hash) -> Result<Height, ProofError> {
        let Self { height, status, assigned } = self;
        match assigned {
            None => Ok(height),
            Some(_) => Err(ProofError::Other { job_id: *job_id, status, height }),
        }
    }
}

/// Reads a proof about a job on the chain `chain_id`, for a runner that knows these validators.
pub(super) fn read(
    known: &KnownValidators,
    (chain_id, runner): (u64, Address),
    job_id: &Hash,
    bytes: &[u8],
) -> Result<Shown, ProofError> {
    let (proof, job_id) = (StateProof::from_bytes(bytes)?, *job_id);
    if proof.subject != Subject::Job(job_id) {
        return Err(ProofError::Subject(proof.subject));
    }
    let statement = proof.check()?;
    let epoch = proof.header.round.epoch;
    let committee = known.committee(chain_id, epoch).ok_or(ProofError::UnknownEpoch(epoch))?;
    certificate::verify(&committee, &proof.certificate)?;
    let Found::Value(record) = statement.found else { return Err(ProofError::NoJob(job_id)) };
    let job: Job = from_slice(record)?;
    let assignment = job.status.assignment().filter(|_| job.status.at_work().contains(&runner));
    let assigned = assignment.map(|assignment| {
        let (assigned_at, deadline) = (assignment.height, job.deadline());
        (ProposedAttempt { job_id, assigned_at, deadline }, to_vec(&*job.spec))
    });
    Ok(Shown { height: statement.height, status: job.status.name(), assigned })
}

#[cfg(test)]
pub(super) mod tests;
