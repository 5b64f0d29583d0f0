//! A runner's jobs, across its connections (spec connectivity.md §6).
//!
//! Every validator of a runner's subset dispatches the same job. The table says which assignment
//! is taken, keeps each result until its deadline so that it can be handed over again, and
//! remembers what is over so that a late assignment starts nothing twice.
//!
//! ```text
//!             offer: accept            finish                  delivered
//!   (unknown) ──────────────▶ running ──────────▶ undelivered ───────────▶ delivered
//!                                │ fail, cancel        │ cancel               │
//!                                ▼                     ▼                      ▼
//!                              over ◀─────────────────────────────────── deadline passed
//! ```
//!
//! Everything is bounded: running jobs by the runner's capacity, results by [`MAX_RESULTS`] and
//! [`MAX_RESULT_BYTES`] (delivered ones are forgotten first), what is over by [`MAX_OVER`].

use crate::{
    primitives::{Hash, Height, PublicKey},
    wire::{AckStatus, BackpressureSignal, JobAssignment, JobResult, RejectReason, Text},
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

/// What to do with an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// Run the job.
    Accept,
    /// The job is known.
    Duplicate,
    /// The job is known and done, and this validator still wants it: it dispatched the job before,
    /// or nobody has taken the result yet. Hand it the result.
    HandOver(Arc<JobResult>),
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
    result: Arc<JobResult>,
    delivered: bool,
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
        let job_id = assignment.job_id;
        if let Some(known) = self.running.get_mut(&job_id) {
            known.dispatchers.insert(from.clone());
            return Offer::Duplicate;
        }
        if let Some(Finished { known, result, delivered }) = self.finished.get_mut(&job_id) {
            let again = !known.dispatchers.insert(from.clone());
            return match again || !*delivered {
                true => Offer::HandOver(result.clone()),
                false => Offer::Duplicate,
            };
        }
        let offer = self.open(job_id, assignment.deadline_block, head, || check(assignment));
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
        if self.running.contains_key(&job_id) || self.finished.contains_key(&job_id) {
            return Offer::Duplicate;
        }
        self.open(job_id, deadline, head, check)
    }

    /// Takes a job that neither runs nor has a result.
    fn open(
        &mut self,
        job_id: Hash,
        deadline: Height,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Offer {
        if self.over.contains_key(&job_id) {
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
        let known = self.release(&result.job_id)?;
        let result = Arc::new(result);
        self.result_bytes += result.result_data.as_bytes().len();
        let finished = Finished { known, result: result.clone(), delivered: false };
        self.finished.insert(result.job_id, finished);
        while self.finished.len() > MAX_RESULTS || self.result_bytes > MAX_RESULT_BYTES {
            let victim = self
                .finished
                .iter()
                .filter(|(id, _)| **id != result.job_id)
                .min_by_key(|(_, finished)| (!finished.delivered, finished.known.deadline))
                .map(|(id, _)| *id);
            let Some(victim) = victim else { break };
            self.forget(&victim);
        }
        Some(result)
    }

    /// A running job came to no result. It is not tried again: the chain draws another runner.
    pub fn fail(&mut self, job_id: &Hash) {
        if let Some(known) = self.release(job_id) {
            self.remember(*job_id, known.deadline);
        }
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

    /// A validator has taken the result.
    pub fn delivered(&mut self, job_id: &Hash) {
        if let Some(finished) = self.finished.get_mut(job_id) {
            finished.delivered = true;
        }
    }

    /// Results that no validator has taken, by job.
    pub fn undelivered(&self) -> impl Iterator<Item = &Arc<JobResult>> {
        self.finished.values().filter(|finished| !finished.delivered).map(|f| &f.result)
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
            self.result_bytes -= finished.result.result_data.as_bytes().len();
            self.remember(*job_id, finished.known.deadline);
        }
    }

    fn remember(&mut self, job_id: Hash, deadline: Height) {
        self.over.insert(job_id, deadline);
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
        wire::Body,
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
        assert_eq!(offer(&mut table, "b", 0), Offer::HandOver(done));
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
        table.fail(&job(0));
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
        assert_eq!(table.undelivered().collect::<Vec<_>>(), [&done]);
        assert_eq!(offer(&mut table, "c", 0), Offer::HandOver(done.clone()));
        table.delivered(&job(0));
        assert_eq!(table.undelivered().count(), 0);
        assert_eq!(offer(&mut table, "d", 0), Offer::Duplicate);
        assert_eq!(offer(&mut table, "a", 0), Offer::HandOver(done));
        assert_eq!(table.finish(result(0, 3)), None);
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
        table.fail(&job(2));
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
                table.delivered(&job(3));
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
