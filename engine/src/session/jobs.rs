//! A runner's jobs, across its connections (spec connectivity.md §6).
//!
//! Every validator of a runner's subset dispatches the same job. The table starts a job when enough
//! of them have assigned the same attempt, or when the assignment is proved. It keeps each result
//! until its deadline so that it can be handed over again, and remembers ended jobs so that a late
//! assignment does not start one twice.
//!
//! ```text
//!          offer: enough agree,                             delivered to, or asked
//!          or offer_proved            finish, fail         for by, enough validators
//!   (unknown) ──────────────▶ running ──────────▶ undelivered ───────────▶ delivered
//!                                │ cancel              │ cancel               │
//!                                ▼                     ▼                      ▼
//!                              over ◀─────────────────────────────────── deadline passed
//! ```
//!
//! Any validator may lie. So one validator alone can neither start a job, nor move a running job's
//! deadline, nor stop it, nor have its result forgotten, nor keep the result to itself: each of
//! these needs [`JobTable::require`] validators that agree, at least one of which is then honest. A
//! result that one validator has taken goes to another [`DELIVER_AGAIN`] blocks later, and so on
//! with growing pauses, until enough validators say that the chain has it. Usually they say so
//! first.
//!
//! For a committee's job the runner delivers a commitment, and keeps the result until it is asked
//! to reveal it (spec jobs.md §5). A validator that asks confirms that the commitment is on the
//! chain. When the connection to a validator that took the commitment ends before that, the
//! commitment is delivered again.
//!
//! When the work fails, the runner delivers a report, which is kept like a result, so that the
//! chain need not wait for the runner.
//!
//! The chain may retry a job with the same runner in the new committee (jobs.md §6): an assignment
//! with a later deadline is another attempt and is run like the first. The outcome of an earlier
//! attempt is kept until the new one has an outcome.
//!
//! A runner commits once per attempt, even across restarts: it stores its commitments on disk, and
//! a job with a restored commitment ([`JobTable::restore`]) counts as just finished.
//!
//! Everything is bounded: running jobs by the runner's capacity, results by [`MAX_RESULTS`] and
//! [`MAX_RESULT_BYTES`] (results that can no longer be asked for are forgotten first), ended jobs
//! by [`MAX_OVER`].

mod delivery;

pub use super::proposals::ProposedAttempt;

use super::proposals::Proposals;
use crate::{
    primitives::{Hash, Height, PublicKey},
    wire::{AckStatus, BackpressureSignal, JobCommit, JobFailure, JobResult, RejectReason, Text},
};
use delivery::{Finished, SessionCommitment};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Maximum number of results kept.
pub const MAX_RESULTS: usize = 1_024;
/// Maximum bytes of results kept: four of the largest.
pub const MAX_RESULT_BYTES: usize = 64 << 20;
/// Maximum number of ended jobs remembered.
pub const MAX_OVER: usize = 4_096;
/// Blocks after which a delivery that a validator has taken goes to another one, unless the chain
/// is known to have it. The pause doubles each time a validator takes it.
pub const DELIVER_AGAIN: u64 = 4;

/// What a runner hands to a validator when a job has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobReport {
    Result(Arc<JobResult>),
    /// The job is a committee's: the result exists, and is revealed later.
    Commit(JobCommit),
    /// There will be no result.
    Failure(JobFailure),
}

impl JobReport {
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
    /// Too few validators have assigned the attempt: the answer follows with [`Decided`].
    Wait,
    Accept,
    /// The job is known and has no delivery for this validator.
    Duplicate,
    /// The job is known and done. Hand the delivery over: this validator dispatched the job before,
    /// or no validator has taken the delivery yet.
    HandOver(JobReport),
    Reject(RejectReason),
}

impl Offer {
    /// The answer to the validator; `None` while it is undecided.
    pub const fn status(&self) -> Option<AckStatus> {
        Some(match self {
            Self::Wait => return None,
            Self::Accept => AckStatus::Accepted,
            Self::Duplicate | Self::HandOver(_) => AckStatus::Duplicate,
            Self::Reject(reason) => AckStatus::Reject(*reason),
        })
    }
}

/// An offer, and the other validators that have waited for the decision about the same attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub offer: Offer,
    /// Validators whose earlier assignments are answered now, with [`Self::others_status`].
    pub others: Vec<PublicKey>,
}

impl Decided {
    const fn alone(offer: Offer) -> Self {
        Self { offer, others: Vec::new() }
    }

    /// The answer to [`Self::others`]: a duplicate when the job was accepted, because it is
    /// accepted on one stream only.
    pub const fn others_status(&self) -> AckStatus {
        match &self.offer {
            Offer::Reject(reason) => AckStatus::Reject(*reason),
            _ => AckStatus::Duplicate,
        }
    }
}

/// The jobs of one runner, shared by all its connections.
#[derive(Debug)]
pub struct JobTable {
    /// The registered capacity, which the chain knows.
    capacity: u32,
    max_concurrent: u32,
    /// A job was rejected for capacity, and no slot has become free since.
    overloaded: bool,
    /// Number of validators that have to agree.
    agreeing: usize,
    /// The height that [`JobTable::advance`] was last called with.
    head: Height,
    proposals: Proposals,
    running: BTreeMap<Hash, KnownJob>,
    finished: BTreeMap<Hash, Finished>,
    result_bytes: usize,
    over: BTreeMap<Hash, Over>,
    forgotten: Vec<Hash>,
}

/// A commitment and its result, as a runner keeps them across restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pledge {
    pub result: JobResult,
    pub commit: JobCommit,
    /// The last block of the attempt that the commitment was made for.
    pub deadline: Height,
}

#[derive(Debug)]
struct KnownJob {
    /// The block that assigned the attempt; genesis for errands and restored commitments, which no
    /// block assigned.
    assigned_at: Height,
    deadline: Height,
    /// Number of validators that have to cancel the job, or take its delivery.
    agreeing: usize,
    dispatchers: BTreeSet<PublicKey>,
    /// The validators that say that the job is over.
    cancelled: BTreeSet<PublicKey>,
}

impl KnownJob {
    const fn new(assigned_at: Height, deadline: Height, agreeing: usize) -> Self {
        Self {
            assigned_at,
            deadline,
            agreeing,
            dispatchers: BTreeSet::new(),
            cancelled: BTreeSet::new(),
        }
    }

    /// Counts a validator's statement that the attempt with this deadline is over; returns whether
    /// enough agree. When one validator is enough, only one that dispatched the job counts.
    fn cancel(&mut self, from: &PublicKey, deadline: Height) -> bool {
        let alone = self.agreeing == 1 && !self.dispatchers.is_empty();
        if deadline >= self.deadline && (!alone || self.dispatchers.contains(from)) {
            self.cancelled.insert(from.clone());
        }
        self.cancelled.len() >= self.agreeing
    }
}

#[derive(Debug, Clone, Copy)]
struct Over {
    deadline: Height,
    rejected: Option<RejectReason>,
}

impl JobTable {
    pub const fn new(max_concurrent: u32) -> Self {
        Self {
            capacity: max_concurrent,
            max_concurrent,
            overloaded: false,
            agreeing: 1,
            head: Height::GENESIS,
            proposals: Proposals::new(),
            running: BTreeMap::new(),
            finished: BTreeMap::new(),
            result_bytes: 0,
            over: BTreeMap::new(),
            forgotten: Vec::new(),
        }
    }

    /// Restores a commitment that the runner made before a restart: the job does not run again, and
    /// the commitment is delivered again, because the chain may lack it.
    pub fn restore(&mut self, pledge: Pledge) {
        let Pledge { result, commit, deadline } = pledge;
        let commitment = SessionCommitment {
            result: Arc::new(result),
            asked_by: BTreeSet::new(),
            aggregated_at: None,
        };
        let known = KnownJob::new(Height::GENESIS, deadline, self.agreeing);
        self.store(known, JobReport::Commit(commit), Some(commitment));
    }

    /// Jobs whose commitments were forgotten since the last call.
    pub fn take_forgotten(&mut self) -> Vec<Hash> {
        std::mem::take(&mut self.forgotten)
    }

    /// The last block in which a running job's result counts; `None` if it does not run.
    pub fn deadline(&self, job_id: &Hash) -> Option<Height> {
        self.running.get(job_id).map(|known| known.deadline)
    }

    /// Sets the number of validators that have to agree from now on (at least 1): one more than may
    /// be dishonest. Initially 1.
    pub fn require(&mut self, validators: usize) {
        self.agreeing = validators.max(1);
    }

    /// From now on; running jobs continue.
    pub fn limit(&mut self, max_concurrent: u32) {
        self.max_concurrent = max_concurrent;
        self.overloaded = false;
    }

    /// Handles a validator's assignment. An unknown job is checked in this order: deadline, `check`
    /// (kind and specification, which the caller knows), agreement, capacity.
    pub fn offer(
        &mut self,
        from: &PublicKey,
        attempt: ProposedAttempt,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Decided {
        let ProposedAttempt { job_id, deadline, .. } = attempt;
        if let Some(known) = self.running.get_mut(&job_id)
            && known.deadline >= deadline
        {
            known.dispatchers.insert(from.clone());
            return Decided::alone(Offer::Duplicate);
        }
        let finished = self.finished.get_mut(&job_id);
        if let Some(finished) = finished.filter(|finished| finished.known.deadline >= deadline) {
            let again = !finished.known.dispatchers.insert(from.clone());
            return Decided::alone(match again || finished.taken == 0 {
                true => Offer::HandOver(finished.delivery.clone()),
                false => Offer::Duplicate,
            });
        }
        if let Some(offer) = self.refusal(&attempt, head, check) {
            return Decided::alone(offer);
        }
        if self.proposals.add(from, attempt) < self.agreeing {
            return Decided::alone(Offer::Wait);
        }
        let mut decided = self.open(attempt, self.agreeing);
        decided.others.retain(|validator| validator != from);
        if let Some(known) = self.running.get_mut(&job_id) {
            known.dispatchers.insert(from.clone());
        }
        decided
    }

    /// Handles a proof that the chain assigns an attempt: the same checks as in [`Self::offer`]
    /// except agreement. The result is not handed over.
    pub fn offer_proved(
        &mut self,
        attempt: ProposedAttempt,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Decided {
        self.offer_sure(attempt, self.agreeing, head, check)
    }

    /// Handles an errand of an agent that the operator trusts, sent through one validator, which
    /// alone may cancel it: the same checks as in [`Self::offer`] except agreement.
    pub fn offer_errand(
        &mut self,
        from: &PublicKey,
        attempt: ProposedAttempt,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Decided {
        let decided = self.offer_sure(attempt, 1, head, check);
        if decided.offer == Offer::Accept
            && let Some(known) = self.running.get_mut(&attempt.job_id)
        {
            known.dispatchers.insert(from.clone());
        }
        decided
    }

    fn offer_sure(
        &mut self,
        attempt: ProposedAttempt,
        agreeing: usize,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Decided {
        let ProposedAttempt { job_id, deadline, .. } = attempt;
        let running = self.running.get(&job_id);
        let finished = self.finished.get(&job_id).map(|finished| &finished.known);
        let known = running.into_iter().chain(finished);
        if known.into_iter().any(|known| known.deadline >= deadline) {
            return Decided::alone(Offer::Duplicate);
        }
        match self.refusal(&attempt, head, check) {
            None => self.open(attempt, agreeing),
            Some(offer) => Decided::alone(offer),
        }
    }

    /// The answer to an attempt that is over, late or unfit; `None` if it can be taken, capacity
    /// permitting.
    fn refusal(
        &self,
        ProposedAttempt { job_id, deadline, .. }: &ProposedAttempt,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Option<Offer> {
        if let Some(over) = self.over.get(job_id).filter(|over| over.deadline >= *deadline) {
            let rejected = over.rejected.filter(|_| over.deadline == *deadline);
            return Some(rejected.map_or(Offer::Duplicate, Offer::Reject));
        }
        if head > *deadline {
            return Some(Offer::Reject(RejectReason::DeadlinePassed));
        }
        check().err().map(Offer::Reject)
    }

    /// Takes an attempt that is believed if there is capacity for it. A later attempt at a running
    /// job only moves its deadline.
    fn open(&mut self, attempt: ProposedAttempt, agreeing: usize) -> Decided {
        let ProposedAttempt { job_id, assigned_at, deadline } = attempt;
        let others = self.proposals.take(&attempt);
        let offer = if let Some(known) = self.running.get_mut(&job_id) {
            (known.assigned_at, known.deadline) = (assigned_at, deadline);
            known.cancelled.clear();
            Offer::Duplicate
        } else if self.active() >= self.max_concurrent {
            self.overloaded = true;
            self.remember(job_id, Over { deadline, rejected: Some(RejectReason::AtCapacity) });
            Offer::Reject(RejectReason::AtCapacity)
        } else {
            self.running.insert(job_id, KnownJob::new(assigned_at, deadline, agreeing));
            Offer::Accept
        };
        if let Some(known) = self.running.get_mut(&job_id) {
            known.dispatchers.extend(others.iter().cloned());
        }
        Decided { offer, others }
    }

    /// A validator says that the chain no longer wants the job, up to the attempt with this
    /// deadline. Returns true if enough validators agree and the job is running: it must be
    /// stopped.
    pub fn cancel(&mut self, job_id: &Hash, deadline: Height, from: &PublicKey) -> bool {
        self.proposals.withdraw(from, job_id, deadline);
        let finished = self.finished.get_mut(job_id);
        if finished.is_some_and(|finished| finished.known.cancel(from, deadline)) {
            self.forget(job_id);
        }
        let running = self.running.get_mut(job_id);
        running.is_some_and(|known| known.cancel(from, deadline)) && self.end(job_id)
    }

    /// The state after the block at `height` was proved not to assign the job to the runner.
    /// Returns true if the job is running and must be stopped; false also if it was assigned after
    /// `height`. A result stays until its deadline because the chain may still ask for it.
    pub fn end_proved(&mut self, job_id: &Hash, height: Height) -> bool {
        let running = self.running.get(job_id);
        running.is_some_and(|known| known.assigned_at <= height) && self.end(job_id)
    }

    /// The runner knows for certain that the chain no longer wants the job. Returns true if the job
    /// is running and must be stopped.
    pub fn give_up(&mut self, job_id: &Hash) -> bool {
        self.forget(job_id);
        self.end(job_id)
    }

    fn end(&mut self, job_id: &Hash) -> bool {
        let known = self.release(job_id);
        if let Some(known) = &known {
            self.remember(*job_id, Over { deadline: known.deadline, rejected: None });
        }
        known.is_some()
    }

    /// The jobs that run or have a result, latest deadline first.
    pub fn open_jobs(&self) -> Vec<Hash> {
        let running = self.running.iter().map(|(id, known)| (known.deadline, *id));
        let finished = self.finished.iter().map(|(id, finished)| (finished.known.deadline, *id));
        let mut open: Vec<_> = running.chain(finished).collect();
        open.sort_unstable_by(|a, b| b.cmp(a));
        open.dedup();
        open.into_iter().map(|(_, id)| id).collect()
    }

    /// Advances to `head`: drops jobs past their deadlines. Returns the running jobs that must be
    /// stopped.
    pub fn advance(&mut self, head: Height) -> Vec<Hash> {
        self.head = head;
        let late: Vec<_> = self
            .finished
            .iter()
            .filter(|(_, finished)| finished.known.deadline < head)
            .map(|(id, _)| *id)
            .collect();
        for job_id in &late {
            self.forget(job_id);
        }
        self.over.retain(|_, over| over.deadline >= head);
        self.proposals.advance(head);
        let due = self.running.iter().filter(|(_, known)| known.deadline < head);
        let due: Vec<_> = due.map(|(id, _)| *id).collect();
        for job_id in &due {
            self.release(job_id);
        }
        due
    }

    pub fn active(&self) -> u32 {
        u32::try_from(self.running.len()).expect("the limit of running jobs is a u32")
    }

    pub fn is_running(&self, job_id: &Hash) -> bool {
        self.running.contains_key(job_id)
    }

    /// The runner's load, as reported to its validators. The runner takes new work unless its
    /// operator has paused it, or it had to reject a job for capacity and no slot has become free
    /// since. Being merely full does not count: the chain does not assign more than the registered
    /// capacity, and being absent while busy would cost a runner the next job. But the chain does
    /// not know of a lower limit, so reaching that is reported.
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

    /// Removes a job from the running ones, which frees a slot.
    fn release(&mut self, job_id: &Hash) -> Option<KnownJob> {
        let known = self.running.remove(job_id)?;
        self.overloaded = false;
        Some(known)
    }

    /// Drops a result; the job is over.
    fn forget(&mut self, job_id: &Hash) {
        if let Some(finished) = self.finished.remove(job_id) {
            self.result_bytes -= finished.bytes();
            if finished.commitment.is_some() {
                self.forgotten.push(*job_id);
            }
            let deadline = finished.known.deadline;
            self.remember(*job_id, Over { deadline, rejected: None });
        }
    }

    fn remember(&mut self, job_id: Hash, over: Over) {
        let known = self.over.entry(job_id).or_insert(over);
        if over.deadline > known.deadline {
            *known = over;
        }
        if self.over.len() > MAX_OVER {
            let oldest = self.over.iter().min_by_key(|(id, over)| (over.deadline, **id));
            let oldest = oldest.map(|(id, _)| *id).expect("the table is not empty");
            self.over.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
