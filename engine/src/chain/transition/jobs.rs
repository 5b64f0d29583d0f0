//! Jobs: recorded, drawn, ended (spec jobs.md).

use super::{DrawRecord, Refusal, Run};
use crate::{
    chain::{
        event::{JobAssigned, JobFailed, JobSubmitted, JobVerified, JobWaiting, MruUpdated},
        state::State,
        transaction::SubmitResult,
    },
    job::{
        filter::Scene,
        mru::MruRecord,
        selection,
        spec::{Assignment, Job, JobSpec, JobStatus, Outcome},
    },
    primitives::{Address, Hash, Height, Wei, keccak256, merkle::Map},
    registry::Runner,
    wire,
};
use std::sync::Arc;

/// Why a result does not count. The variant's name opens the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// The chain has no such job.
    #[error("UnknownJob: no job {0}")]
    UnknownJob(Hash),
    /// The job has no committee, or has ended.
    #[error("JobNotAssigned: the job is {0}; results count while it is Assigned")]
    NotAssigned(&'static str),
    /// Somebody else was drawn.
    #[error("NotInCommittee: {0} was not drawn for this job")]
    NotInCommittee(Address),
    /// More than the job takes.
    #[error("ResultTooLarge: {got} bytes, the job takes {limit}")]
    TooLarge {
        /// Bytes of the result.
        got: usize,
        /// Bytes that the job takes.
        limit: u32,
    },
    /// The runner did not sign it.
    #[error("BadResultSignature: not {0}'s signature over this job and result")]
    BadSignature(Address),
}

/// A result that counts: what it is for and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The job.
    pub job: &'a Job,
    /// How it was assigned.
    pub assignment: &'a Assignment,
    /// The runner's record.
    pub runner: &'a Runner,
}

/// Whether `state` takes this result. Past its deadline a job is no longer `Assigned`.
pub fn check_result<'a>(
    state: &'a State,
    submitted: &SubmitResult,
) -> Result<Claim<'a>, ResultError> {
    let SubmitResult { job_id, runner, result, runner_signature } = submitted;
    let job = state.jobs.get(job_id).ok_or(ResultError::UnknownJob(*job_id))?;
    let JobStatus::Assigned(assignment) = &job.status else {
        return Err(ResultError::NotAssigned(job.status.name()));
    };
    let record = state
        .registry
        .get(runner)
        .filter(|_| assignment.committee.contains(runner))
        .ok_or(ResultError::NotInCommittee(*runner))?;
    let limit = job.spec.bounds.max_return_bytes;
    if result.len() > limit as usize {
        return Err(ResultError::TooLarge { got: result.len(), limit });
    }
    let digest = wire::JobResult::digest(state.chain_id, job_id, result);
    if !record.pubkey.verify(&digest, runner_signature) {
        return Err(ResultError::BadSignature(*runner));
    }
    Ok(Claim { job, assignment, runner: record })
}

impl Run<'_> {
    pub(super) fn submit_job(
        &mut self,
        submitter: Address,
        spec: &Arc<JobSpec>,
        nonce: u64,
    ) -> Result<(), Refusal> {
        spec.check()?;
        let id = spec.job_id(&submitter, nonce);
        if self.state.jobs.contains_key(&id) {
            return Err(Refusal::JobExists(id));
        }
        self.state.debit(submitter, spec.escrow())?;
        let job = Job {
            spec: spec.clone(),
            submitter,
            submitted_at: self.height(),
            status: JobStatus::Pending,
        };
        let (deadline, kind) = (job.deadline(), spec.work.kind());
        self.state.jobs.insert(id, job);
        self.state.open_jobs.insert(id, deadline);
        self.emit(JobSubmitted { job_id: id, submitter, kind });
        Ok(())
    }

    /// M = 1: the result is final when included (jobs.md §5).
    pub(super) fn submit_result(&mut self, submitted: &SubmitResult) -> Result<(), Refusal> {
        let SubmitResult { job_id, runner, result, .. } = submitted;
        let claim = check_result(&self.state, submitted)?;
        let (job, assignment) = (claim.job.clone(), claim.assignment.clone());
        let result_hash = keccak256(&[result]);
        let price = price_of_time(
            claim.runner.price_per_second,
            self.block.header.timestamp_ms.saturating_sub(assignment.timestamp_ms),
            job.spec.max_price,
        );
        let paid = price.saturating_add(job.spec.tip);
        let refunded = job.spec.escrow().saturating_sub(paid);
        self.state.credit(*runner, paid)?;
        self.state.credit(job.submitter, refunded)?;
        self.state.registry.release(runner, true)?;
        let height = self.height();
        let outcome = Outcome { height, runner: *runner, result_hash, paid };
        let (submitter, kind) = (job.submitter, job.spec.work.kind());
        self.end(job_id, &job, JobStatus::Verified(assignment, outcome));
        let (job_id, runner) = (*job_id, *runner);
        self.state.mru.insert((submitter, kind), MruRecord { runner, set_at: height });
        self.emit(JobVerified { job_id, runner, result_hash, paid, refunded });
        self.emit(MruUpdated { submitter, kind, runner });
        Ok(())
    }

    fn end(&mut self, job_id: &Hash, job: &Job, status: JobStatus) {
        self.state.jobs.insert(*job_id, Job { status, ..job.clone() });
        self.state.open_jobs.remove(job_id);
    }

    /// Jobs whose last block this was end without result.
    pub(super) fn pass_deadlines(&mut self) {
        let height = self.height();
        let due: Vec<Hash> = self
            .state
            .open_jobs
            .iter()
            .filter(|(_, deadline)| **deadline <= height)
            .map(|(id, _)| *id)
            .collect();
        for job_id in due {
            let job = self.state.jobs.get(&job_id).expect("an open job is a job").clone();
            let assignment = job.status.assignment().cloned();
            for runner in assignment.iter().flat_map(|a| &a.committee) {
                self.state
                    .registry
                    .release(runner, false)
                    .expect("a runner with a job in hand cannot deregister");
            }
            let refunded = job.spec.escrow();
            self.state.credit(job.submitter, refunded).expect("what was debited fits again");
            self.end(&job_id, &job, JobStatus::Failed(assignment));
            self.emit(JobFailed { job_id, refunded });
        }
    }

    /// Draws a committee for every job that has none.
    pub(super) fn draw_jobs(&mut self) -> Vec<DrawRecord> {
        let mut pending: Vec<(Height, Hash)> = self
            .state
            .open_jobs()
            .filter(|(_, job)| job.status == JobStatus::Pending)
            .map(|(id, job)| (job.submitted_at, *id))
            .collect();
        pending.sort_unstable();
        pending.into_iter().map(|(_, job_id)| self.draw(job_id)).collect()
    }

    fn draw(&mut self, job_id: Hash) -> DrawRecord {
        let height = self.height();
        let job = self.state.jobs.get(&job_id).expect("an open job is a job").clone();
        let registry = &self.state.registry;
        let phase = self.parent.phase();
        let verdicts = Scene {
            height,
            phase,
            registry: &self.parent.registry,
            active_jobs: &|runner| registry.get(runner).map_or(u32::MAX, |r| r.active_jobs),
            entitlements: &self.parent.entitlements,
            present: self.state.present_at(height),
        }
        .judge(&job.spec);
        // One that deregistered in this very block is in the parent's registry, not in this one.
        let gone = |runner: &Address| registry.get(runner).is_none_or(|r| r.deregistered);
        let candidates: Vec<(Address, Wei)> = verdicts
            .iter()
            .filter(|v| v.dropped_by.is_none() && !gone(&v.runner))
            .map(|v| (v.runner, v.stake))
            .collect();
        let seed = selection::seed(self.block.header.parent, job_id, job.submitted_at);
        let mru = self.read_mru(job.submitter, &job.spec);
        let wanted = job.spec.verification.runners as usize;
        let selection = selection::committee(&candidates, seed, wanted, mru);
        if selection.committee.is_empty() {
            let registered = u32::try_from(verdicts.len()).unwrap_or(u32::MAX);
            self.emit(JobWaiting { job_id, registered });
        } else {
            let deadline = job.deadline();
            for runner in &selection.committee {
                self.state.registry.assign(runner).expect("a candidate is registered");
            }
            let assignment = Assignment {
                height,
                timestamp_ms: self.block.header.timestamp_ms,
                seed,
                candidates_root: candidates_root(&candidates),
                committee: selection.committee.clone(),
            };
            self.state.jobs.insert(job_id, Job { status: JobStatus::Assigned(assignment), ..job });
            let committee = selection.committee.clone();
            self.emit(JobAssigned { job_id, committee, deadline });
        }
        let parent = self.block.header.parent;
        let known = self.state.present_at(height).and(self.state.known_presence());
        let presence = known.map(|known| known.height);
        DrawRecord { job_id, parent, seed, mru, phase, presence, verdicts, selection }
    }

    /// The live MRU runner; a record past its time is removed by being read.
    fn read_mru(&mut self, submitter: Address, spec: &JobSpec) -> Option<Address> {
        let key = (submitter, spec.work.kind());
        let record = self.state.mru.get(&key)?;
        if record.is_live(self.height()) {
            return Some(record.runner);
        }
        self.state.mru.remove(&key);
        None
    }
}

/// Root of the map from each candidate's address to its stake: what a job keeps of its draw.
pub fn candidates_root(candidates: &[(Address, Wei)]) -> Hash {
    candidates.iter().copied().collect::<Map<Address, Wei>>().root()
}

/// Price of `ms` of computing, rounded up, at most `most`.
fn price_of_time(per_second: Wei, ms: u64, most: Wei) -> Wei {
    match per_second.checked_mul(u128::from(ms)) {
        Some(thousandfold) => Wei::new(thousandfold.get().div_ceil(1_000)).min(most),
        None => most,
    }
}
