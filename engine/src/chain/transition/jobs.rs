//! Jobs: how they are recorded, drawn, retried and ended (spec jobs.md §2–4, §6).

use super::{DrawRecord, Run, TransactionFailure, results::SILENCE};
use crate::{
    chain::{
        event::{
            EventKind, JobAssigned, JobCancelled, JobFailed, JobRetried, JobSubmitted, JobWaiting,
        },
        state::{MoneyError, State},
    },
    job::{
        MruRead, MruRecord,
        filter::Scene,
        selection,
        spec::{Assignment, Cancellation, Failure, FailureReason, Job, JobSpec, JobStatus},
        state::MAX_RETRIES,
    },
    presence::Connectivity,
    primitives::{Address, Hash, Height, Wei, keccak256, merkle::Map},
};
use std::sync::Arc;

/// Reputation that a silent runner loses in addition if the job fails.
const PERSISTENT_SILENCE: i32 = 10;

/// Why a job is not recorded or not cancelled. The text begins with the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    #[error("JobExists: {0} was submitted before")]
    Exists(Hash),
    #[error("UnknownJob: no job {0}")]
    Unknown(Hash),
    #[error("Unauthorized: only {submitter} may cancel job {job_id}")]
    NotYours { job_id: Hash, submitter: Address },
    #[error("TooLate: job {job_id} is {status}; it can be cancelled while Pending or Assigned")]
    TooLate { job_id: Hash, status: &'static str },
    #[error(transparent)]
    Money(#[from] MoneyError),
}

/// The nonce of the job that a call with this seed asks for at this place.
pub(super) fn nonce(seed: &Hash, index: u64) -> u64 {
    let nonce = keccak256(&[b"cowboy-job-nonce/v1", &seed.0, &index.to_be_bytes()]);
    u64::from_be_bytes(*nonce.0.first_chunk().expect("8 of 32 bytes"))
}

/// Records a job of `submitter` under `id`, which covers `nonce`, and takes its escrow.
pub(super) fn record(
    state: &mut State,
    height: Height,
    (id, submitter, nonce): (Hash, Address, u64),
    spec: Arc<JobSpec>,
    events: &mut Vec<EventKind>,
) -> Result<(), JobError> {
    if state.jobs.contains_key(&id) {
        return Err(JobError::Exists(id));
    }
    state.debit(submitter, spec.escrow())?;
    let kind = spec.work.kind();
    put(state, id, Job::new(spec, (submitter, nonce), height));
    events.push(JobSubmitted { job_id: id, submitter, kind }.into());
    Ok(())
}

/// Stores an open job, and the height at which time alone changes it.
fn put(state: &mut State, job_id: Hash, job: Job) {
    state.open_jobs.insert(job_id, job.due());
    state.jobs.insert(job_id, job);
}

impl Run<'_> {
    pub(super) fn submit_job(
        &mut self,
        submitter: Address,
        spec: &Arc<JobSpec>,
        nonce: u64,
    ) -> Result<(), TransactionFailure> {
        spec.check()?;
        let id = spec.job_id(&submitter, nonce);
        let (height, mut events) = (self.height(), Vec::new());
        record(&mut self.state, height, (id, submitter, nonce), spec.clone(), &mut events)?;
        self.emit_all(events);
        Ok(())
    }

    /// Cancels a job to which no runner has committed yet.
    pub(super) fn cancel_job(
        &mut self,
        sender: Address,
        job_id: Hash,
    ) -> Result<(), TransactionFailure> {
        let job = self.state.jobs.get(&job_id).ok_or(JobError::Unknown(job_id))?.clone();
        let deployed =
            || self.state.actor(&job.submitter).is_some_and(|actor| actor.deployer == sender);
        if job.submitter != sender && !deployed() {
            return Err(JobError::NotYours { job_id, submitter: job.submitter }.into());
        }
        let (JobStatus::Pending | JobStatus::Assigned(_)) = &job.status else {
            return Err(JobError::TooLate { job_id, status: job.status.name() }.into());
        };
        for runner in job.status.at_work() {
            self.state.registry.release(runner).expect("a runner with a job cannot deregister");
        }
        let refunded = job.spec.escrow();
        self.state.credit(job.submitter, refunded)?;
        let assignment = job.status.assignment().cloned();
        let cancellation = Cancellation { height: self.height(), assignment };
        self.emit(JobCancelled { job_id, by: sender, refunded });
        self.end(job_id, &job, JobStatus::Cancelled(cancellation));
        Ok(())
    }

    pub(super) fn put(&mut self, job_id: Hash, job: Job) {
        put(&mut self.state, job_id, job);
    }

    /// Stores a job that has ended, and queues its callback.
    pub(super) fn end(&mut self, job_id: Hash, job: &Job, status: JobStatus) {
        if job.spec.callback.is_some() {
            let result = self.results.iter().find(|(id, ..)| *id == job_id);
            self.queue_callback(job_id, result.map(|(_, _, bytes)| bytes.clone()));
        }
        self.state.jobs.insert(job_id, Job { status, ..job.clone() });
        self.state.open_jobs.remove(&job_id);
    }

    /// Handles what is due in this block: reveals are compared, commitments close, attempts end.
    pub(super) fn pass_deadlines(&mut self) {
        self.compare_revealed();
        self.fine_withheld();
        let height = self.height();
        let due: Vec<Hash> = self
            .state
            .open_jobs
            .iter()
            .filter(|(_, due)| **due <= height)
            .map(|(id, _)| *id)
            .collect();
        for job_id in due {
            let job = self.state.jobs.get(&job_id).expect("an open job is a job").clone();
            match job.status.clone() {
                JobStatus::Pending => {
                    self.fail(job_id, &job, FailureReason::NoCandidates, &[]);
                }
                JobStatus::Assigned(assignment) => {
                    let silent = assignment.committee;
                    self.try_again(job_id, job, FailureReason::NoResult, silent);
                }
                JobStatus::Running(round) => {
                    if round.commitments.len() >= job.spec.verification.needed() as usize {
                        self.close(job_id, job, round);
                    } else {
                        let silent = round.silent();
                        self.try_again(job_id, job, FailureReason::NoResult, silent);
                    }
                }
                JobStatus::Committed(round) => self.compare(job_id, job, &round, false),
                JobStatus::Verified(..) | JobStatus::Failed(_) | JobStatus::Cancelled(_) => {
                    unreachable!("a job that has ended is not open")
                }
            }
        }
    }

    /// Handles a failed attempt. Runners that were `silent` and did not report that they cannot do
    /// the work lose reputation. Silent and reporting runners are excluded, and the job is drawn
    /// again, at most [`MAX_RETRIES`] times.
    pub(super) fn try_again(
        &mut self,
        job_id: Hash,
        mut job: Job,
        reason: FailureReason,
        mut silent: Vec<Address>,
    ) {
        silent.retain(|runner| !job.attempt.is_reported_by(runner));
        for runner in job.status.at_work() {
            self.state.registry.release(runner).expect("a runner with a job cannot deregister");
        }
        for runner in &silent {
            self.repute(job_id, runner, -SILENCE);
        }
        if job.attempt.number >= MAX_RETRIES {
            return self.fail(job_id, &job, reason, &silent);
        }
        job.attempt.number += 1;
        job.attempt.since = self.height();
        job.attempt.excluded.extend(&silent);
        job.status = JobStatus::Pending;
        let (retry, deadline) = (job.attempt.number, job.deadline());
        self.emit(JobRetried { job_id, retry, reason, silent, deadline });
        self.put(job_id, job);
    }

    /// Ends a job without a result. Runners that were silent in any attempt lose more reputation.
    fn fail(&mut self, job_id: Hash, job: &Job, reason: FailureReason, silent: &[Address]) {
        let refunded = job.spec.escrow();
        self.state.credit(job.submitter, refunded).expect("what was debited fits again");
        self.emit(JobFailed { job_id, reason, refunded });
        for runner in job.attempt.excluded.iter().chain(silent) {
            self.repute(job_id, runner, -PERSISTENT_SILENCE);
        }
        let assignment = job.status.assignment().cloned();
        let failure = Failure { height: self.height(), reason, assignment };
        self.end(job_id, job, JobStatus::Failed(failure));
    }

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
            stale: self.state.connectivity.stale_heartbeat_blocks,
            excluded: &job.attempt.excluded,
            reported: &job.attempt.reported,
        }
        .judge(&job.spec);
        // A runner that deregistered in this very block is still in the parent's registry.
        let gone = |runner: &Address| registry.get(runner).is_none_or(|r| r.deregistered);
        let candidates: Vec<(Address, Wei)> = verdicts
            .iter()
            .filter(|v| v.dropped_by.is_none() && !gone(&v.runner))
            .map(|v| (v.runner, v.stake))
            .collect();
        let parent = self.block.header.parent;
        // The parent's certificate: the proposer of this block may leave the job out of it, but has
        // no influence on that seed.
        let certificate = self.parent.seed_certificate();
        let made_of = certificate.map_or(parent, |certificate| certificate.digest);
        let seed = job.attempt.seed.map_or_else(
            || selection::seed(made_of, job_id, job.submitted_at),
            |first| selection::retry_seed(first, job.attempt.number),
        );
        let mru = self.read_mru(job.submitter, &job.spec);
        let wanted = job.spec.verification.runners as usize;
        let favoured = mru.and_then(|read| read.live_at(height));
        let selection = selection::committee(&candidates, seed, wanted, favoured);
        if selection.committee.is_empty() {
            let registered = u32::try_from(verdicts.len()).unwrap_or(u32::MAX);
            self.emit(JobWaiting { job_id, registered });
        } else {
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
            let committee = selection.committee.clone();
            let mut job = job;
            job.attempt.seed.get_or_insert(seed);
            job.status = JobStatus::Assigned(assignment);
            self.emit(JobAssigned { job_id, committee, deadline: job.deadline() });
            self.put(job_id, job);
        }
        let known = self.state.present_at(height).and(self.state.known_presence());
        let presence = known.map(|known| known.height);
        DrawRecord { job_id, parent, certificate, seed, mru, phase, presence, verdicts, selection }
    }

    /// The MRU record. An expired record is removed when it is read.
    fn read_mru(&mut self, submitter: Address, spec: &JobSpec) -> Option<MruRead> {
        let key = (submitter, spec.work.kind());
        let MruRecord { runner, set_at } = *self.state.mru.get(&key)?;
        let Connectivity { mru_ttl_blocks: ttl_blocks, mru_multiplier: multiplier, .. } =
            self.state.connectivity;
        let read = MruRead { runner, set_at, ttl_blocks, multiplier };
        if read.live_at(self.height()).is_none() {
            self.state.mru.remove(&key);
        }
        Some(read)
    }
}

/// Root of the map from each candidate's address to its stake, which a job keeps of its draw.
pub fn candidates_root(candidates: &[(Address, Wei)]) -> Hash {
    candidates.iter().copied().collect::<Map<Address, Wei>>().root()
}
