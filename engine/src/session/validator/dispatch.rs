//! Jobs that are dispatched to the runner, and questions about them.

use super::{Validator, ValidatorPhase};
use crate::{
    primitives::{Hash, Height},
    session::{MAX_JOB_STREAMS, StreamId, streams::JobStream},
    wire::{
        Body, CancelReason, Errand, JobAggregate, JobAssignment, JobCancel, JobProof, JobReveal,
        Message as _, Reveals,
    },
};

/// Why a job cannot be dispatched or asked about on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    #[error("the connection is not established")]
    NotEstablished,
    #[error("the job is under way on this connection")]
    AlreadyDispatched,
    #[error("{MAX_JOB_STREAMS} streams about jobs are open on this connection")]
    TooManyStreams,
}

impl Validator {
    /// Dispatches a job that a block assigned to the runner; the assignment needs no signature yet.
    pub fn assign(&mut self, unsigned: JobAssignment) -> Result<(), AssignError> {
        let JobAssignment { job_id, block_height, deadline_block, .. } = unsigned;
        let since = self.head.max(block_height);
        let phase = ValidatorPhase::dispatched(job_id, deadline_block, since);
        self.may_open(&phase)?;
        let (chain_id, key) = (self.config.chain_id, &self.config.key);
        let frame = JobAssignment::signed(chain_id, key, &self.config.certified, unsigned);
        self.streams.open(phase, frame.to_frame());
        Ok(())
    }

    /// Sends the runner an errand that its agent has signed.
    pub fn send_errand(&mut self, errand: &Errand) -> Result<(), AssignError> {
        let Errand { errand_id, deadline_block, .. } = *errand;
        let phase = ValidatorPhase::dispatched(errand_id, deadline_block, self.head);
        self.may_open(&phase)?;
        self.streams.open(phase, errand.to_frame());
        Ok(())
    }

    /// Sends a proof that the chain assigns a job which the runner has not answered. Nothing is
    /// sent without an unanswered dispatch, or a second time.
    pub fn prove(&mut self, job_id: &Hash, proof: Body) {
        let Some(id) = self.stream_of(job_id) else { return };
        let Some(JobStream {
            phase: ValidatorPhase::Unanswered { proved, .. },
            finished: false,
            ..
        }) = self.streams.jobs.get_mut(&id)
        else {
            return;
        };
        if !std::mem::replace(proved, true) {
            let bytes = JobProof { job_id: *job_id, proof }.to_frame();
            self.streams.send(id, bytes);
        }
    }

    /// Sends a proof, on a new stream, that the chain no longer assigns a cancelled job to the
    /// runner.
    pub fn prove_end(&mut self, job_id: Hash, proof: Body) -> Result<(), AssignError> {
        if !self.is_established() {
            return Err(AssignError::NotEstablished);
        }
        self.has_room()?;
        let stream = self.streams.open(ValidatorPhase::Over, JobProof { job_id, proof }.to_frame());
        self.streams.finish(stream);
        Ok(())
    }

    /// Asks for the result of a job that the runner has committed to. The outcome is
    /// [`Revealed`](super::ValidatorEvent::Revealed) or nothing: a runner without an answer ends
    /// the stream, and after
    /// [`ack_timeout_blocks`](crate::presence::Connectivity::ack_timeout_blocks) the validator
    /// does.
    pub fn ask_reveal(&mut self, job_id: Hash) -> Result<(), AssignError> {
        let phase = ValidatorPhase::Revealing { job_id, since: self.head };
        self.may_open(&phase)?;
        let frame = JobReveal::signed(self.config.chain_id, &self.config.key, job_id);
        self.streams.open(phase, frame.to_frame());
        Ok(())
    }

    /// Asks for the runner's signature over the results of a committee whose aggregator it is. The
    /// outcome is [`Aggregated`](super::ValidatorEvent::Aggregated) or nothing, as with
    /// [`Self::ask_reveal`].
    pub fn ask_aggregate(&mut self, job_id: Hash, reveals: Reveals) -> Result<(), AssignError> {
        let phase =
            ValidatorPhase::Aggregating { job_id, digest: reveals.digest(), since: self.head };
        self.may_open(&phase)?;
        let (chain_id, key) = (self.config.chain_id, &self.config.key);
        let frame = JobAggregate::signed(chain_id, key, job_id, reveals);
        self.streams.open(phase, frame.to_frame());
        Ok(())
    }

    fn may_open(&self, phase: &ValidatorPhase) -> Result<(), AssignError> {
        if !self.is_established() {
            return Err(AssignError::NotEstablished);
        }
        if self.streams.jobs.values().any(|stream| stream.phase.is_about_the_same(phase)) {
            return Err(AssignError::AlreadyDispatched);
        }
        self.has_room()
    }

    fn has_room(&self) -> Result<(), AssignError> {
        if self.streams.has_room() { Ok(()) } else { Err(AssignError::TooManyStreams) }
    }

    /// The chain no longer assigns the attempt with this deadline to the runner: sends `JobCancel`,
    /// on the assignment's stream if it is open. A later result on that stream is dropped.
    pub fn cancel(
        &mut self,
        job_id: &Hash,
        deadline: Height,
        reason: CancelReason,
    ) -> Result<(), AssignError> {
        if !self.is_established() {
            return Err(AssignError::NotEstablished);
        }
        let (chain_id, key) = (self.config.chain_id, &self.config.key);
        let bytes = JobCancel::signed(chain_id, key, (*job_id, deadline), reason).to_frame();
        let dispatched = self.stream_of(job_id);
        let writable = dispatched.filter(|stream| !self.streams.jobs[stream].finished);
        if let Some(stream) = writable {
            self.streams.send(stream, bytes);
        } else {
            self.has_room()?;
            let stream = self.streams.open(ValidatorPhase::Over, bytes);
            self.streams.finish(stream);
        }
        if let Some(stream) = dispatched {
            self.streams.finish(stream);
        }
        Ok(())
    }

    fn stream_of(&self, job_id: &Hash) -> Option<StreamId> {
        let dispatched = |(_, stream): &(&StreamId, &JobStream<ValidatorPhase>)| {
            stream.phase.is_dispatch() && stream.phase.job_id() == Some(*job_id)
        };
        self.streams.jobs.iter().find(dispatched).map(|(id, _)| *id)
    }
}
