//! A runner's jobs, across its connections (spec connectivity.md §6).
//!
//! Every validator of a runner's subset dispatches the same job. The table says which assignment
//! is taken, keeps each result until its deadline so that it can be handed over again, and
//! remembers what is over so that a late assignment starts nothing twice.
//!
//! ```text
//!             offer: accept          finish, fail              delivered
//!   (unknown) ──────────────▶ running ──────────▶ undelivered ───────────▶ delivered
//!                                │ cancel              │ cancel               │
//!                                ▼                     ▼                      ▼
//!                              over ◀─────────────────────────────────── deadline passed
//! ```
//!
//! Of a committee's job the runner delivers a commitment, and keeps the result until it is asked to
//! reveal it (spec jobs.md §5). Nobody asks before the commitment is on the chain; where the
//! connection to the validator that took it ends before that, it is delivered once more.
//!
//! Of work that failed it delivers a report, which is kept like a result: the chain need not wait
//! for the runner any longer.
//!
//! The chain may try a job again, with the same runner in the new committee (jobs.md §6): an
//! assignment with a later deadline is of another attempt, and is work like the first. What an
//! earlier attempt came to is kept until this one has come to something, since a validator may lie.
//!
//! Everything is bounded: running jobs by the runner's capacity, results by [`MAX_RESULTS`] and
//! [`MAX_RESULT_BYTES`] (those that nobody will ask for are forgotten first), what is over by
//! [`MAX_OVER`].

use crate::{
    primitives::{Address, Hash, Height, PublicKey},
    wire::{
        AckStatus, BackpressureSignal, JobAggregate, JobAssignment, JobCommit, JobFailure,
        JobResult, RejectReason, Text,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Results kept at most.
pub const MAX_RESULTS: usize = 1_024;
/// Bytes of results kept at most: four of the largest.
pub const MAX_RESULT_BYTES: usize = 64 << 20;
/// Ended jobs remembered at most.
pub const MAX_OVER: usize = 4_096;

/// What a runner hands to a validator when it is through with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The result.
    Result(Arc<JobResult>),
    /// That there is one: the job is a committee's.
    Commit(JobCommit),
    /// That there will be none.
    Failure(JobFailure),
}

impl Delivery {
    /// The job.
    pub fn job_id(&self) -> Hash {
        match self {
            Self::Result(result) => result.job_id,
            Self::Commit(commit) => commit.job_id,
            Self::Failure(failure) => failure.job_id,
        }
    }
}

/// What to do with an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// Run the job.
    Accept,
    /// The job is known.
    Duplicate,
    /// The job is known and done, and this validator still wants it: it dispatched the job before,
    /// or nobody has taken the result yet. Hand it over.
    HandOver(Delivery),
    /// The job cannot be taken.
    Reject(RejectReason),
}

impl Offer {
    /// The answer to the validator.
    pub const fn status(&self) -> AckStatus {
        match self {
            Self::Accept => AckStatus::Accepted,
            Self::Duplicate | Self::HandOver(_) => AckStatus::Duplicate,
            Self::Reject(reason) => AckStatus::Reject(*reason),
        }
    }
}

/// The jobs of one runner.
#[derive(Debug)]
pub struct JobTable {
    /// What it was made for, and the chain knows of.
    capacity: u32,
    max_concurrent: u32,
    /// A job was rejected for capacity, and no slot has become free since.
    overloaded: bool,
    running: BTreeMap<Hash, Known>,
    finished: BTreeMap<Hash, Finished>,
    result_bytes: usize,
    /// Ended jobs and their deadlines.
    over: BTreeMap<Hash, Height>,
}

#[derive(Debug)]
struct Known {
    deadline: Height,
    /// The validators that dispatched it.
    dispatchers: BTreeSet<PublicKey>,
}

#[derive(Debug)]
struct Finished {
    known: Known,
    delivery: Delivery,
    /// A validator has taken it.
    delivered: bool,
    /// Where the delivery is a commitment.
    commitment: Option<Commitment>,
}

#[derive(Debug)]
struct Commitment {
    /// What was committed to.
    result: Arc<JobResult>,
    /// The validator that took it, until somebody asks for the result: then it is on the chain.
    taken_by: Option<PublicKey>,
    /// The height at which the runner last signed the committee's results.
    aggregated_at: Option<Height>,
}

impl Finished {
    /// Bytes of the result, or of what stands in its place.
    fn bytes(&self) -> usize {
        let committed = self.commitment.as_ref().map(|commitment| &commitment.result);
        match (&self.delivery, committed) {
            (Delivery::Result(result), _) | (_, Some(result)) => {
                result.result_data.as_bytes().len()
            }
            (Delivery::Failure(failure), None) => failure.reason.as_str().len(),
            (Delivery::Commit(_), None) => 0,
        }
    }

    /// Whether somebody may still ask for the result.
    const fn is_wanted(&self) -> bool {
        !self.delivered || self.commitment.is_some()
    }
}

impl JobTable {
    /// A runner without jobs that runs `max_concurrent` at a time.
    pub const fn new(max_concurrent: u32) -> Self {
        Self {
            capacity: max_concurrent,
            max_concurrent,
            overloaded: false,
            running: BTreeMap::new(),
            finished: BTreeMap::new(),
            result_bytes: 0,
            over: BTreeMap::new(),
        }
    }

    /// At most so many jobs are taken at a time from now on. Those that run go on.
    pub fn limit(&mut self, max_concurrent: u32) {
        self.max_concurrent = max_concurrent;
        self.overloaded = false;
    }

    /// A validator's assignment arrived. A job that is not known is checked in this order:
    /// deadline, `check` (kind, entitlement, specification: the caller's to know), capacity.
    pub fn offer(
        &mut self,
        from: &PublicKey,
        assignment: &JobAssignment,
        head: Height,
        check: impl FnOnce(&JobAssignment) -> Result<(), RejectReason>,
    ) -> Offer {
        let (job_id, deadline) = (assignment.job_id, assignment.deadline_block);
        if let Some(known) = self.running.get_mut(&job_id) {
            known.deadline = known.deadline.max(deadline);
            known.dispatchers.insert(from.clone());
            return Offer::Duplicate;
        }
        let finished = self.finished.get_mut(&job_id);
        if let Some(finished) = finished.filter(|finished| finished.known.deadline >= deadline) {
            let again = !finished.known.dispatchers.insert(from.clone());
            return match again || !finished.delivered {
                true => Offer::HandOver(finished.delivery.clone()),
                false => Offer::Duplicate,
            };
        }
        let offer = self.open(job_id, deadline, head, || check(assignment));
        if let (Offer::Accept, Some(known)) = (&offer, self.running.get_mut(&job_id)) {
            known.dispatchers.insert(from.clone());
        }
        offer
    }

    /// A job came by polling, dispatched by nobody: the same checks in the same order. Its result
    /// is not handed over, since a list asks for none.
    pub fn offer_polled(
        &mut self,
        job_id: Hash,
        deadline: Height,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Offer {
        let finished = self.finished.get(&job_id).map(|finished| finished.known.deadline);
        if self.running.contains_key(&job_id) || finished.is_some_and(|known| known >= deadline) {
            return Offer::Duplicate;
        }
        self.open(job_id, deadline, head, check)
    }

    /// Takes a job that neither runs nor has a result of this attempt.
    fn open(
        &mut self,
        job_id: Hash,
        deadline: Height,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Offer {
        if self.over.get(&job_id).is_some_and(|known| *known >= deadline) {
            return Offer::Duplicate;
        }
        if head > deadline {
            return Offer::Reject(RejectReason::DeadlinePassed);
        }
        if let Err(reason) = check() {
            return Offer::Reject(reason);
        }
        if self.active() >= self.max_concurrent {
            self.overloaded = true;
            return Offer::Reject(RejectReason::AtCapacity);
        }
        self.running.insert(job_id, Known { deadline, dispatchers: BTreeSet::new() });
        Offer::Accept
    }

    /// A running job is done: its result, to be delivered. `None`: nobody wants it any more.
    pub fn finish(&mut self, result: JobResult) -> Option<Arc<JobResult>> {
        let result = Arc::new(result);
        self.keep(Delivery::Result(result.clone()), None).then_some(result)
    }

    /// A running job of a committee is done: `commit`, to be delivered, commits to the result.
    /// `None`: nobody wants it any more.
    pub fn commit(&mut self, result: JobResult, commit: JobCommit) -> Option<JobCommit> {
        let result = Arc::new(result);
        let commitment = Commitment { result, taken_by: None, aggregated_at: None };
        self.keep(Delivery::Commit(commit.clone()), Some(commitment)).then_some(commit)
    }

    /// A running job came to no result: `failure`, to be delivered, says so. It is not tried again,
    /// the chain draws another runner. `None`: nobody wants to know any more.
    pub fn fail(&mut self, failure: JobFailure) -> Option<JobFailure> {
        self.keep(Delivery::Failure(failure.clone()), None).then_some(failure)
    }

    /// False: the job does not run.
    fn keep(&mut self, delivery: Delivery, commitment: Option<Commitment>) -> bool {
        let job_id = delivery.job_id();
        let Some(known) = self.release(&job_id) else { return false };
        let finished = Finished { known, delivery, delivered: false, commitment };
        self.result_bytes += finished.bytes();
        if let Some(earlier) = self.finished.insert(job_id, finished) {
            self.result_bytes -= earlier.bytes();
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
        true
    }

    /// The chain no longer wants the job. True: it is running and must be stopped.
    pub fn cancel(&mut self, job_id: &Hash) -> bool {
        self.forget(job_id);
        let known = self.release(job_id);
        if let Some(known) = &known {
            self.remember(*job_id, known.deadline);
        }
        known.is_some()
    }

    /// What was to be delivered was taken: over a connection by this validator.
    pub fn delivered(&mut self, job_id: &Hash, by: Option<&PublicKey>) {
        if let Some(finished) = self.finished.get_mut(job_id) {
            finished.delivered = true;
            if let Some(commitment) = &mut finished.commitment {
                commitment.taken_by = by.cloned();
            }
        }
    }

    /// What no validator has taken, by job.
    pub fn undelivered(&self) -> impl Iterator<Item = Delivery> {
        let waiting = self.finished.values().filter(|finished| !finished.delivered);
        waiting.map(|finished| finished.delivery.clone())
    }

    /// The connection to a validator has ended. The commitments that it took may have ended with
    /// it, where nobody has asked for the results yet: those are to be delivered again.
    pub fn lost(&mut self, validator: &PublicKey) {
        for finished in self.finished.values_mut() {
            let Some(commitment) = &mut finished.commitment else { continue };
            if commitment.taken_by.as_ref() == Some(validator) {
                commitment.taken_by = None;
                finished.delivered = false;
            }
        }
    }

    /// A validator asks for the result of a job that this runner has committed to: the chain has
    /// the commitment.
    pub fn reveal(&mut self, job_id: &Hash) -> Option<Arc<JobResult>> {
        let finished = self.finished.get_mut(job_id)?;
        let commitment = finished.commitment.as_mut()?;
        commitment.taken_by = None;
        finished.delivered = true;
        Some(commitment.result.clone())
    }

    /// A validator asks for the signature of this runner, whose address is `own`, over all results
    /// of its committee. It is given once per height, so that of all validators that ask one has
    /// something to submit; and only where the runner's own result is among them.
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

    /// The chain is at `head`: what is past its deadline is of no use. Returns the running jobs to
    /// be stopped.
    pub fn advance(&mut self, head: Height) -> Vec<Hash> {
        let late: Vec<_> = self
            .finished
            .iter()
            .filter(|(_, finished)| finished.known.deadline < head)
            .map(|(id, _)| *id)
            .collect();
        for job_id in &late {
            self.forget(job_id);
        }
        self.over.retain(|_, deadline| *deadline >= head);
        let due = self.running.iter().filter(|(_, known)| known.deadline < head);
        let due: Vec<_> = due.map(|(id, _)| *id).collect();
        for job_id in &due {
            self.release(job_id);
        }
        due
    }

    /// Jobs running now.
    pub fn active(&self) -> u32 {
        u32::try_from(self.running.len()).expect("no more run than a u32 once allowed")
    }

    /// Whether the job is running.
    pub fn is_running(&self, job_id: &Hash) -> bool {
        self.running.contains_key(job_id)
    }

    /// The runner's load, as its validators are told. It takes new work unless its operator has
    /// paused it, or it had to reject a job for capacity and no slot has become free since: the
    /// chain does not assign more than the registered capacity, and being absent while merely busy
    /// would cost a runner the next job. A lower limit than that the chain knows nothing of, so
    /// that reaching it is said.
    pub fn signal(&self, paused: bool) -> BackpressureSignal {
        let full = self.max_concurrent < self.capacity && self.active() >= self.max_concurrent;
        let reason = match (paused, self.overloaded || full) {
            (true, _) => Some(Text::truncated("paused")),
            (false, true) => Some(Text::truncated("at capacity")),
            (false, false) => None,
        };
        BackpressureSignal {
            active_jobs: self.active(),
            max_concurrent: self.max_concurrent,
            accepting_new: reason.is_none(),
            reason,
        }
    }

    /// Takes a job out of the running ones, which frees a slot.
    fn release(&mut self, job_id: &Hash) -> Option<Known> {
        let known = self.running.remove(job_id)?;
        self.overloaded = false;
        Some(known)
    }

    /// Drops a result; the job is over.
    fn forget(&mut self, job_id: &Hash) {
        if let Some(finished) = self.finished.remove(job_id) {
            self.result_bytes -= finished.bytes();
            self.remember(*job_id, finished.known.deadline);
        }
    }

    fn remember(&mut self, job_id: Hash, deadline: Height) {
        let known = self.over.entry(job_id).or_insert(deadline);
        *known = deadline.max(*known);
        if self.over.len() > MAX_OVER {
            let oldest = self.over.iter().min_by_key(|(id, deadline)| (**deadline, **id));
            let oldest = oldest.map(|(id, _)| *id).expect("there are more than none");
            self.over.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        primitives::{SecretKey, keccak256},
        wire::{Body, Reason, Reveal, Reveals},
    };

    const CHAIN: u64 = 1;

    fn validator(name: &str) -> SecretKey {
        SecretKey::derive(b"jobs", name)
    }

    fn job(i: u32) -> Hash {
        keccak256(&[&i.to_be_bytes()])
    }

    fn result(i: u32, bytes: usize) -> JobResult {
        let body = Body::new(vec![0; bytes]).unwrap();
        JobResult::signed(CHAIN, &validator("runner"), job(i), body)
    }

    fn failure(i: u32) -> JobFailure {
        let reason = Reason::truncated("exited with 3");
        JobFailure::signed(CHAIN, &validator("runner"), job(i), reason)
    }

    /// Validator `from` assigns job `i`, due by block 20, at head 10.
    fn offer(table: &mut JobTable, from: &str, i: u32) -> Offer {
        let key = validator(from);
        let (at, deadline) = (Height::new(9), Height::new(20));
        let assignment = JobAssignment::signed(CHAIN, &key, job(i), Body::default(), at, deadline);
        table.offer(&key.public_key(), &assignment, Height::new(10), |_| Ok(()))
    }

    #[test]
    fn the_first_assignment_is_taken_and_the_others_are_duplicates() {
        let mut table = JobTable::new(2);
        assert_eq!(offer(&mut table, "a", 0), Offer::Accept);
        assert_eq!(offer(&mut table, "b", 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "a", 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "b", 1), Offer::Accept);
        assert_eq!(table.active(), 2);
    }

    #[test]
    fn a_job_that_is_polled_and_pushed_runs_once() {
        let mut table = JobTable::new(1);
        let (head, deadline) = (Height::new(10), Height::new(20));
        let polled =
            |table: &mut JobTable, i| table.offer_polled(job(i), deadline, head, || Ok(()));
        assert_eq!(polled(&mut table, 0), Offer::Accept);
        assert_eq!(polled(&mut table, 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "a", 0), Offer::Duplicate);
        assert_eq!(polled(&mut table, 1), Offer::Reject(RejectReason::AtCapacity));
        let done = table.finish(result(0, 3)).unwrap();
        assert_eq!(polled(&mut table, 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "b", 0), Offer::HandOver(Delivery::Result(done)));
        assert!(!table.cancel(&job(0)));
        assert_eq!(polled(&mut table, 0), Offer::Duplicate);
        let late = table.offer_polled(job(2), Height::new(9), head, || Ok(()));
        assert_eq!(late, Offer::Reject(RejectReason::DeadlinePassed));
    }

    #[test]
    fn what_cannot_be_taken_is_rejected_in_the_order_of_the_checks() {
        let key = validator("a");
        let check = |head, verdict: Result<(), RejectReason>, expected| {
            let mut table = JobTable::new(0);
            let (at, deadline) = (Height::new(9), Height::new(20));
            let assignment =
                JobAssignment::signed(CHAIN, &key, job(0), Body::default(), at, deadline);
            let from = key.public_key();
            let offer = table.offer(&from, &assignment, Height::new(head), |_| verdict);
            assert_eq!(offer, Offer::Reject(expected));
        };
        let unsupported = Err(RejectReason::UnsupportedKind);
        check(21, unsupported, RejectReason::DeadlinePassed);
        check(20, unsupported, RejectReason::UnsupportedKind);
        check(20, Ok(()), RejectReason::AtCapacity);
    }

    #[test]
    fn load_is_shed_only_after_a_rejection_until_a_slot_is_free() {
        let mut table = JobTable::new(1);
        offer(&mut table, "a", 0);
        assert!(table.signal(false).accepting_new);
        assert_eq!(offer(&mut table, "a", 1), Offer::Reject(RejectReason::AtCapacity));
        assert!(!table.signal(false).accepting_new);
        table.cancel(&job(0));
        assert!(table.signal(false).accepting_new);
        assert!(!table.signal(true).accepting_new);
        assert_eq!(offer(&mut table, "a", 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "a", 1), Offer::Accept);
    }

    #[test]
    fn a_result_is_handed_over_until_taken_and_to_whoever_asks_again() {
        let mut table = JobTable::new(1);
        offer(&mut table, "a", 0);
        offer(&mut table, "b", 0);
        let done = table.finish(result(0, 3)).unwrap();
        let done = Delivery::Result(done);
        assert_eq!(table.undelivered().collect::<Vec<_>>(), std::slice::from_ref(&done));
        assert_eq!(offer(&mut table, "c", 0), Offer::HandOver(done.clone()));
        table.delivered(&job(0), None);
        assert_eq!(table.undelivered().count(), 0);
        assert_eq!(offer(&mut table, "d", 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "a", 0), Offer::HandOver(done));
        assert_eq!(table.finish(result(0, 3)), None);
    }

    #[test]
    fn a_failure_is_handed_over_like_a_result_and_frees_the_slot() {
        let mut table = JobTable::new(1);
        offer(&mut table, "a", 0);
        let failed = Delivery::Failure(table.fail(failure(0)).unwrap());
        assert_eq!(table.active(), 0);
        assert_eq!(table.undelivered().collect::<Vec<_>>(), std::slice::from_ref(&failed));
        assert_eq!(offer(&mut table, "b", 0), Offer::HandOver(failed.clone()));
        table.delivered(&job(0), Some(&validator("b").public_key()));
        assert_eq!(table.undelivered().count(), 0);
        assert_eq!(offer(&mut table, "c", 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "a", 0), Offer::HandOver(failed));
        assert_eq!(table.reveal(&job(0)), None, "there is nothing to show");
        assert_eq!((table.fail(failure(0)), table.finish(result(0, 3))), (None, None));

        offer(&mut table, "a", 1);
        table.cancel(&job(1));
        assert_eq!(table.fail(failure(1)), None, "nobody wants to know");
        table.advance(Height::new(21));
        assert_eq!((table.undelivered().count(), table.result_bytes), (0, 0));
    }

    #[test]
    fn a_cancelled_job_is_stopped_once_and_not_started_again() {
        let mut table = JobTable::new(1);
        offer(&mut table, "a", 0);
        assert!(table.cancel(&job(0)));
        assert!(!table.cancel(&job(0)));
        assert_eq!(table.finish(result(0, 1)), None);
        assert_eq!(offer(&mut table, "b", 0), Offer::Duplicate);

        offer(&mut table, "a", 1);
        table.finish(result(1, 1));
        assert!(!table.cancel(&job(1)));
        assert_eq!(table.undelivered().count(), 0);
    }

    #[test]
    fn deadlines_end_everything() {
        let mut table = JobTable::new(3);
        for i in 0..3 {
            offer(&mut table, "a", i);
        }
        table.finish(result(1, 1));
        table.fail(failure(2)).unwrap();
        assert_eq!(table.advance(Height::new(20)), []);
        assert_eq!(table.advance(Height::new(21)), [job(0)]);
        assert_eq!((table.active(), table.undelivered().count()), (0, 0));
    }

    #[test]
    fn results_are_bounded_and_delivered_ones_go_first() {
        let mut table = JobTable::new(8);
        let largest = MAX_RESULT_BYTES / 4;
        for i in 0..5 {
            assert_eq!(offer(&mut table, "a", i), Offer::Accept);
            table.finish(result(i, largest - 1024)).unwrap();
            if i == 3 {
                table.delivered(&job(3), None);
            }
        }
        assert_eq!(table.result_bytes, 4 * (largest - 1024));
        assert_eq!(table.undelivered().count(), 4);
        assert_eq!(offer(&mut table, "a", 3), Offer::Duplicate);

        for i in 5..5 + 2 * MAX_RESULTS as u32 {
            offer(&mut table, "a", i);
            table.finish(result(i, 0));
        }
        assert_eq!(table.finished.len(), MAX_RESULTS);
    }

    /// Does job `i`, which is a committee's.
    fn commit(table: &mut JobTable, i: u32) -> (JobResult, Delivery) {
        let done = result(i, 3);
        let commit = JobCommit::signed(CHAIN, &validator("runner"), job(i), done.commitment());
        let delivery = Delivery::Commit(table.commit(done.clone(), commit).unwrap());
        (done, delivery)
    }

    #[test]
    fn a_result_of_a_committee_is_committed_to_and_shown_when_asked_for() {
        let mut table = JobTable::new(2);
        offer(&mut table, "a", 0);
        assert_eq!(table.reveal(&job(0)), None, "it still runs");
        let (done, delivery) = commit(&mut table, 0);
        assert_eq!(table.undelivered().collect::<Vec<_>>(), std::slice::from_ref(&delivery));
        assert_eq!(offer(&mut table, "b", 0), Offer::HandOver(delivery));
        table.delivered(&job(0), Some(&validator("a").public_key()));
        assert_eq!(table.undelivered().count(), 0);
        assert_eq!(table.reveal(&job(0)).as_deref(), Some(&done));
        assert_eq!(table.reveal(&job(0)).as_deref(), Some(&done), "as often as it is asked for");
        table.advance(Height::new(21));
        assert_eq!(table.reveal(&job(0)), None, "the deadline has passed");

        offer(&mut table, "a", 1);
        table.finish(result(1, 3));
        assert_eq!(table.reveal(&job(1)), None, "nothing was committed to");
    }

    #[test]
    fn a_commitment_that_may_be_lost_is_delivered_again() {
        let [a, b] = ["a", "b"].map(|name| validator(name).public_key());
        let mut table = JobTable::new(2);
        for i in 0..2 {
            offer(&mut table, "a", i);
            commit(&mut table, i);
            table.delivered(&job(i), Some(&a));
        }
        table.reveal(&job(1));
        table.lost(&b);
        assert_eq!(table.undelivered().count(), 0, "b took none");
        table.lost(&a);
        let again: Vec<_> = table.undelivered().map(|delivery| delivery.job_id()).collect();
        assert_eq!(again, [job(0)], "job 1 is on the chain");
    }

    #[test]
    fn a_committees_results_are_signed_once_a_height_and_with_the_own_one_among_them() {
        let mut table = JobTable::new(2);
        offer(&mut table, "a", 0);
        let (done, _) = commit(&mut table, 0);
        let own = validator("runner").address();
        let asked = |runner: Address, bytes: usize| {
            let result_data = Body::new(vec![0; bytes]).unwrap();
            let reveal = Reveal { runner, result_data, runner_signed: done.runner_signed };
            let reveals = Reveals::new(vec![reveal]).unwrap();
            JobAggregate::signed(CHAIN, &validator("a"), job(0), reveals)
        };
        let at = Height::new;
        assert!(!table.aggregate(&own, &asked(validator("a").address(), 3), at(11)));
        assert!(!table.aggregate(&own, &asked(own, 4), at(11)));
        assert!(table.aggregate(&own, &asked(own, 3), at(11)));
        assert!(!table.aggregate(&own, &asked(own, 3), at(11)), "another validator has it");
        assert!(table.aggregate(&own, &asked(own, 3), at(12)));
        let unknown = JobAggregate { job_id: job(1), ..asked(own, 3) };
        assert!(!table.aggregate(&own, &unknown, at(12)));
    }

    /// Validator `from` assigns job 0, due by `deadline`, at head 10.
    fn offer_until(table: &mut JobTable, from: &str, deadline: u64) -> Offer {
        let (key, at, deadline) = (validator(from), Height::new(9), Height::new(deadline));
        let assignment = JobAssignment::signed(CHAIN, &key, job(0), Body::default(), at, deadline);
        table.offer(&key.public_key(), &assignment, Height::new(10), |_| Ok(()))
    }

    #[test]
    fn another_attempt_is_work_again_and_the_result_before_is_kept_until_it_is_done() {
        let mut table = JobTable::new(1);
        assert_eq!(offer_until(&mut table, "a", 20), Offer::Accept);
        let (first, _) = commit(&mut table, 0);
        table.delivered(&job(0), Some(&validator("a").public_key()));
        assert_eq!(offer_until(&mut table, "b", 20), Offer::Duplicate);
        assert_eq!(offer_until(&mut table, "b", 30), Offer::Accept);
        assert_eq!(offer_until(&mut table, "a", 30), Offer::Duplicate);
        assert_eq!(table.reveal(&job(0)).as_deref(), Some(&first));
        let second = result(0, 5);
        let signed = JobCommit::signed(CHAIN, &validator("runner"), job(0), second.commitment());
        let signed = table.commit(second.clone(), signed).unwrap();
        assert_eq!(table.undelivered().collect::<Vec<_>>(), [Delivery::Commit(signed)]);
        assert_eq!((table.result_bytes, table.finished.len()), (5, 1));
        assert_eq!(table.advance(Height::new(21)), []);
        assert_eq!(table.reveal(&job(0)).as_deref(), Some(&second));

        assert!(!table.cancel(&job(0)));
        assert_eq!(offer_until(&mut table, "a", 30), Offer::Duplicate, "that attempt is over");
        assert_eq!(offer_until(&mut table, "a", 40), Offer::Accept);
        assert_eq!(offer_until(&mut table, "b", 50), Offer::Duplicate);
        assert_eq!(table.advance(Height::new(50)), [], "it runs on");
        assert_eq!(table.advance(Height::new(51)), [job(0)]);
    }

    #[test]
    fn results_that_will_be_asked_for_are_forgotten_last() {
        let mut table = JobTable::new(2);
        offer(&mut table, "a", 0);
        commit(&mut table, 0);
        table.delivered(&job(0), None);
        for i in 1..=MAX_RESULTS as u32 {
            offer(&mut table, "a", i);
            table.finish(result(i, 0));
            table.delivered(&job(i), None);
        }
        assert!(table.reveal(&job(0)).is_some());
        assert_eq!(table.finished.len(), MAX_RESULTS);
    }

    #[test]
    fn a_lower_limit_drops_nothing_and_says_when_it_is_reached() {
        let mut table = JobTable::new(3);
        for i in 0..2 {
            assert_eq!(offer(&mut table, "a", i), Offer::Accept);
        }
        assert!(table.signal(false).accepting_new);
        table.limit(1);
        let told = table.signal(false);
        assert_eq!((told.active_jobs, told.max_concurrent, told.accepting_new), (2, 1, false));
        assert_eq!(offer(&mut table, "a", 2), Offer::Reject(RejectReason::AtCapacity));
        assert_eq!(offer(&mut table, "b", 1), Offer::Duplicate);
        table.finish(result(0, 1));
        assert!(!table.signal(false).accepting_new, "one still runs, and one may");
        table.finish(result(1, 1));
        assert!(table.signal(false).accepting_new);
        assert_eq!(offer(&mut table, "a", 3), Offer::Accept);
        assert!(!table.signal(false).accepting_new);
        table.limit(3);
        assert!(table.signal(false).accepting_new);
    }
}
