//! Results: kept until they are delivered, and shown again when a committee asks.

use super::{DELIVER_AGAIN, JobReport, JobTable, KnownJob, MAX_RESULT_BYTES, MAX_RESULTS};
use crate::{
    primitives::{Address, Hash, Height, PublicKey},
    wire::{JobAggregate, JobCommit, JobFailure, JobResult},
};
use std::{collections::BTreeSet, sync::Arc};

#[derive(Debug)]
pub(super) struct Finished {
    pub(super) known: KnownJob,
    pub(super) delivery: JobReport,
    pub(super) taken_by: BTreeSet<PublicKey>,
    /// Times the delivery was taken, over a connection or otherwise.
    pub(super) taken: u32,
    /// The height from which the delivery goes to another validator.
    pub(super) again_at: Height,
    /// Present when the delivery is a commitment.
    pub(super) commitment: Option<SessionCommitment>,
}

#[derive(Debug)]
pub(super) struct SessionCommitment {
    pub(super) result: Arc<JobResult>,
    /// The validators that have asked for the result: they say that the commitment is on the chain.
    pub(super) asked_by: BTreeSet<PublicKey>,
    /// The height at which the runner last signed the committee's results.
    pub(super) aggregated_at: Option<Height>,
}

impl Finished {
    pub(super) fn bytes(&self) -> usize {
        let committed = self.commitment.as_ref().map(|commitment| &commitment.result);
        match (&self.delivery, committed) {
            (JobReport::Result(result), _) | (_, Some(result)) => {
                result.result_data.as_bytes().len()
            }
            (JobReport::Failure(failure), None) => failure.reason.as_str().len(),
            (JobReport::Commit(_), None) => 0,
        }
    }

    /// Whether at least one validator that has taken the delivery, or says that the chain has it,
    /// is honest.
    pub(super) fn is_delivered(&self) -> bool {
        let asked = self.commitment.iter().flat_map(|commitment| &commitment.asked_by);
        let asked = asked.filter(|validator| !self.taken_by.contains(validator));
        self.taken_by.len() + asked.count() >= self.known.agreeing
    }

    pub(super) fn is_wanted(&self) -> bool {
        !self.is_delivered() || self.commitment.is_some()
    }
}

impl JobTable {
    /// Ends a running job with its result, which is then delivered. `None` if the job does not run.
    pub fn finish(&mut self, result: JobResult) -> Option<Arc<JobResult>> {
        let result = Arc::new(result);
        self.keep(JobReport::Result(result.clone()), None).then_some(result)
    }

    /// Ends a running job of a committee: `commit`, which is then delivered, commits to the result.
    /// `None` if the job does not run.
    pub fn commit(&mut self, result: JobResult, commit: JobCommit) -> Option<JobCommit> {
        let result = Arc::new(result);
        let commitment =
            SessionCommitment { result, asked_by: BTreeSet::new(), aggregated_at: None };
        self.keep(JobReport::Commit(commit.clone()), Some(commitment)).then_some(commit)
    }

    /// Ends a running job without a result: `failure`, which is then delivered, reports it. The
    /// runner does not retry the job; the chain draws another runner. `None` if the job does not
    /// run.
    pub fn fail(&mut self, failure: JobFailure) -> Option<JobFailure> {
        self.keep(JobReport::Failure(failure.clone()), None).then_some(failure)
    }

    /// Returns false if the job does not run.
    pub(super) fn keep(
        &mut self,
        delivery: JobReport,
        commitment: Option<SessionCommitment>,
    ) -> bool {
        let job_id = delivery.job_id();
        let Some(known) = self.release(&job_id) else { return false };
        self.store(known, delivery, commitment);
        true
    }

    pub(super) fn store(
        &mut self,
        known: KnownJob,
        delivery: JobReport,
        commitment: Option<SessionCommitment>,
    ) {
        let job_id = delivery.job_id();
        let commits = commitment.is_some();
        let (taken_by, taken, again_at) = (BTreeSet::new(), 0, self.head);
        let finished = Finished { known, delivery, taken_by, taken, again_at, commitment };
        self.result_bytes += finished.bytes();
        if let Some(earlier) = self.finished.insert(job_id, finished) {
            self.result_bytes -= earlier.bytes();
            if earlier.commitment.is_some() && !commits {
                self.forgotten.push(job_id);
            }
        }
        while self.finished.len() > MAX_RESULTS || self.result_bytes > MAX_RESULT_BYTES {
            let victim = self
                .finished
                .iter()
                .filter(|(id, _)| **id != job_id)
                .min_by_key(|(_, finished)| (finished.is_wanted(), finished.known.deadline))
                .map(|(id, _)| *id);
            let Some(victim) = victim else { break };
            self.forget(&victim);
        }
    }

    /// The job's delivery was taken: by this validator, if over a connection.
    pub fn delivered(&mut self, job_id: &Hash, by: Option<&PublicKey>) {
        if let Some(finished) = self.finished.get_mut(job_id) {
            finished.taken_by.extend(by.cloned());
            let pause = DELIVER_AGAIN.saturating_mul(1 << finished.taken.min(16));
            finished.taken = finished.taken.saturating_add(1);
            finished.again_at = self.head.after(pause);
        }
    }

    /// The deliveries that are due now: too few validators have taken them.
    pub fn undelivered(&self) -> impl Iterator<Item = JobReport> {
        let due = |finished: &&Finished| finished.again_at <= self.head && !finished.is_delivered();
        self.finished.values().filter(due).map(|finished| finished.delivery.clone())
    }

    pub fn has_taken(&self, job_id: &Hash, validator: &PublicKey) -> bool {
        self.finished.get(job_id).is_some_and(|finished| finished.taken_by.contains(validator))
    }

    /// The connection to a validator has ended. Commitments that it took may be lost with it: they
    /// are delivered again unless enough other validators have asked for the results.
    pub fn lost(&mut self, validator: &PublicKey) {
        self.proposals.lost(validator);
        for finished in self.finished.values_mut() {
            if finished.commitment.is_some() && finished.taken_by.remove(validator) {
                finished.again_at = self.head;
            }
        }
    }

    /// A validator asks for the result of a job that this runner has committed to. The question
    /// implies that the chain has the commitment. `by` is `None` when the validator is unknown, as
    /// with polling.
    pub fn reveal(&mut self, job_id: &Hash, by: Option<&PublicKey>) -> Option<Arc<JobResult>> {
        let commitment = self.finished.get_mut(job_id)?.commitment.as_mut()?;
        commitment.asked_by.extend(by.cloned());
        Some(commitment.result.clone())
    }

    /// A validator asks for the signature of this runner, whose address is `own`, over all results
    /// of its committee. The runner agrees once per height, so that only one of the validators that
    /// ask has something to submit, and only if its own result is among them.
    pub fn aggregate(&mut self, own: &Address, asked: &JobAggregate, head: Height) -> bool {
        let Some(finished) = self.finished.get_mut(&asked.job_id) else { return false };
        let Some(commitment) = &mut finished.commitment else { return false };
        let result = &commitment.result;
        let is_own = asked.reveals.as_slice().iter().any(|reveal| {
            reveal.runner == *own
                && reveal.result_data == result.result_data
                && reveal.runner_signed == result.runner_signed
        });
        if !is_own || commitment.aggregated_at.is_some_and(|at| at >= head) {
            return false;
        }
        commitment.aggregated_at = Some(head);
        true
    }
}
