//! A runner's jobs, across its connections (spec connectivity.md §6).
//!
//! Every validator of a runner's subset dispatches the same job. The table starts a job when enough
//! of them have assigned it alike, or when it is proved; it keeps each result until its deadline so
//! that it can be handed over again, and remembers what is over so that a late assignment starts
//! nothing twice.
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
//! Any validator may lie. So a single one can neither start a job, nor move the deadline of one
//! that runs, nor stop it or have its result forgotten, nor keep the result to itself: each of
//! these needs [`JobTable::require`] validators that say the same. One of them is honest. What one
//! has taken goes to another one [`DELIVER_AGAIN`] blocks later, and so on with growing pauses,
//! unless enough of them say that the chain has it, which is what mostly comes first.
//!
//! Of a committee's job the runner delivers a commitment, and keeps the result until it is asked to
//! reveal it (spec jobs.md §5). Who asks says that the commitment is on the chain; where the
//! connection to a validator that took it ends before that, it is delivered once more.
//!
//! Of work that failed it delivers a report, which is kept like a result: the chain need not wait
//! for the runner any longer.
//!
//! The chain may try a job again, with the same runner in the new committee (jobs.md §6): an
//! assignment with a later deadline is of another attempt, and is work like the first. What an
//! earlier attempt came to is kept until this one has come to something.
//!
//! A runner commits once per attempt, across restarts too: it keeps what it has committed to on
//! disk, and a job with a restored commitment ([`JobTable::restore`]) is as one that was just done.
//!
//! Everything is bounded: running jobs by the runner's capacity, results by [`MAX_RESULTS`] and
//! [`MAX_RESULT_BYTES`] (those that nobody will ask for are forgotten first), what is over by
//! [`MAX_OVER`].

pub use super::proposals::Attempt;

use super::proposals::Proposals;
use crate::{
    primitives::{Address, Hash, Height, PublicKey},
    wire::{
        AckStatus, BackpressureSignal, JobAggregate, JobCommit, JobFailure, JobResult,
        RejectReason, Text,
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
/// Blocks after which what a validator has taken is delivered to another one, where the chain is
/// not known to have it. The pause doubles with each that takes it.
pub const DELIVER_AGAIN: u64 = 4;

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
    /// Too few validators have assigned the attempt: the answer follows with [`Decided`].
    Wait,
    /// Run the job.
    Accept,
    /// The job is known.
    Duplicate,
    /// The job is known and done, and this validator still wants it: it dispatched the job before,
    /// or no validator has taken the result yet. Hand it over.
    HandOver(Delivery),
    /// The job cannot be taken.
    Reject(RejectReason),
}

impl Offer {
    /// The answer to the validator; `None`: not yet.
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
    /// What to do.
    pub offer: Offer,
    /// Validators whose earlier assignments are answered now, with [`Self::others_status`].
    pub others: Vec<PublicKey>,
}

impl Decided {
    const fn alone(offer: Offer) -> Self {
        Self { offer, others: Vec::new() }
    }

    /// The answer to [`Self::others`]: the job is accepted on one stream.
    pub const fn others_status(&self) -> AckStatus {
        match &self.offer {
            Offer::Reject(reason) => AckStatus::Reject(*reason),
            _ => AckStatus::Duplicate,
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
    /// Validators that have to say the same.
    agreeing: usize,
    /// The height that [`JobTable::advance`] was last called with.
    head: Height,
    proposals: Proposals,
    running: BTreeMap<Hash, Known>,
    finished: BTreeMap<Hash, Finished>,
    result_bytes: usize,
    /// Ended jobs and their deadlines.
    over: BTreeMap<Hash, Over>,
    /// Jobs whose commitment was forgotten, for [`JobTable::take_forgotten`].
    forgotten: Vec<Hash>,
}

/// A commitment and what it commits to, as a runner keeps them across restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pledge {
    /// The result.
    pub result: JobResult,
    /// The signed commitment to it.
    pub commit: JobCommit,
    /// The last block of the attempt that it was made for.
    pub deadline: Height,
}

#[derive(Debug)]
struct Known {
    /// The block that assigned the attempt; genesis for an errand, which no block assigns, and for
    /// what was restored.
    assigned_at: Height,
    deadline: Height,
    /// Validators that have to cancel it, or to take what it comes to.
    agreeing: usize,
    /// The validators that dispatched it.
    dispatchers: BTreeSet<PublicKey>,
    /// The validators that say that it is over.
    cancelled: BTreeSet<PublicKey>,
}

impl Known {
    const fn new(assigned_at: Height, deadline: Height, agreeing: usize) -> Self {
        Self {
            assigned_at,
            deadline,
            agreeing,
            dispatchers: BTreeSet::new(),
            cancelled: BTreeSet::new(),
        }
    }

    /// A validator says that the attempt with this deadline is over; whether enough say so. Where
    /// one is enough, it is one that dispatched it.
    fn cancel(&mut self, from: &PublicKey, deadline: Height) -> bool {
        let alone = self.agreeing == 1 && !self.dispatchers.is_empty();
        if deadline >= self.deadline && (!alone || self.dispatchers.contains(from)) {
            self.cancelled.insert(from.clone());
        }
        self.cancelled.len() >= self.agreeing
    }
}

/// A job that has ended here.
#[derive(Debug, Clone, Copy)]
struct Over {
    deadline: Height,
    /// Where it was not taken: why.
    rejected: Option<RejectReason>,
}

#[derive(Debug)]
struct Finished {
    known: Known,
    delivery: Delivery,
    /// The validators that have taken it.
    taken_by: BTreeSet<PublicKey>,
    /// How often it was taken, over a connection or otherwise.
    taken: u32,
    /// The height from which on another validator is to take it.
    again_at: Height,
    /// Where the delivery is a commitment.
    commitment: Option<Commitment>,
}

#[derive(Debug)]
struct Commitment {
    /// What was committed to.
    result: Arc<JobResult>,
    /// The validators that have asked for the result, and so say that it is on the chain.
    asked_by: BTreeSet<PublicKey>,
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

    /// Whether one of those that have taken it, or say that the chain has it, is honest.
    fn is_delivered(&self) -> bool {
        let asked = self.commitment.iter().flat_map(|commitment| &commitment.asked_by);
        let asked = asked.filter(|validator| !self.taken_by.contains(validator));
        self.taken_by.len() + asked.count() >= self.known.agreeing
    }

    /// Whether a validator may still ask for the result.
    fn is_wanted(&self) -> bool {
        !self.is_delivered() || self.commitment.is_some()
    }
}

impl JobTable {
    /// A runner without jobs that runs `max_concurrent` at a time.
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

    /// Takes up a commitment that the runner made before it was restarted: the job does not run,
    /// and the commitment is delivered again, since the chain may lack it.
    pub fn restore(&mut self, pledge: Pledge) {
        let Pledge { result, commit, deadline } = pledge;
        let commitment =
            Commitment { result: Arc::new(result), asked_by: BTreeSet::new(), aggregated_at: None };
        let known = Known::new(Height::GENESIS, deadline, self.agreeing);
        self.store(known, Delivery::Commit(commit), Some(commitment));
    }

    /// Jobs whose commitments nobody will ask for any more, since the last call.
    pub fn take_forgotten(&mut self) -> Vec<Hash> {
        std::mem::take(&mut self.forgotten)
    }

    /// The deadline of a running job.
    pub fn deadline(&self, job_id: &Hash) -> Option<Height> {
        self.running.get(job_id).map(|known| known.deadline)
    }

    /// How many validators have to say the same from now on, at least 1: one more than may be
    /// dishonest. Before the first call it is 1.
    pub fn require(&mut self, validators: usize) {
        self.agreeing = validators.max(1);
    }

    /// At most so many jobs are taken at a time from now on. Those that run go on.
    pub fn limit(&mut self, max_concurrent: u32) {
        self.max_concurrent = max_concurrent;
        self.overloaded = false;
    }

    /// A validator's assignment arrived. A job that is not known is checked in this order:
    /// deadline, `check` (kind, specification: the caller's to know), agreement, capacity.
    pub fn offer(
        &mut self,
        from: &PublicKey,
        attempt: Attempt,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Decided {
        let Attempt { job_id, deadline, .. } = attempt;
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

    /// The chain was proved to assign an attempt: the same checks but for agreement. Its result is
    /// not handed over.
    pub fn offer_proved(
        &mut self,
        attempt: Attempt,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Decided {
        self.offer_sure(attempt, self.agreeing, head, check)
    }

    /// An agent that the operator trusts sends the runner on an errand through one validator, which
    /// alone may cancel it: the same checks but for agreement.
    pub fn offer_errand(
        &mut self,
        from: &PublicKey,
        attempt: Attempt,
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
        attempt: Attempt,
        agreeing: usize,
        head: Height,
        check: impl FnOnce() -> Result<(), RejectReason>,
    ) -> Decided {
        let Attempt { job_id, deadline, .. } = attempt;
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

    /// Why an attempt that neither runs nor has a result cannot be taken; `None`: it can, where
    /// there is room.
    fn refusal(
        &self,
        Attempt { job_id, deadline, .. }: &Attempt,
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

    /// Takes an attempt that is believed, where there is room for it. One that follows another of
    /// a job which still runs only moves its deadline.
    fn open(&mut self, attempt: Attempt, agreeing: usize) -> Decided {
        let Attempt { job_id, assigned_at, deadline } = attempt;
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
            self.running.insert(job_id, Known::new(assigned_at, deadline, agreeing));
            Offer::Accept
        };
        if let Some(known) = self.running.get_mut(&job_id) {
            known.dispatchers.extend(others.iter().cloned());
        }
        Decided { offer, others }
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
        let commitment = Commitment { result, asked_by: BTreeSet::new(), aggregated_at: None };
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
        self.store(known, delivery, commitment);
        true
    }

    fn store(&mut self, known: Known, delivery: Delivery, commitment: Option<Commitment>) {
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

    /// A validator says that the chain no longer wants the job, up to the attempt with this
    /// deadline. True: enough of them say so, it is running and must be stopped.
    pub fn cancel(&mut self, job_id: &Hash, deadline: Height, from: &PublicKey) -> bool {
        self.proposals.withdraw(from, job_id, deadline);
        let finished = self.finished.get_mut(job_id);
        if finished.is_some_and(|finished| finished.known.cancel(from, deadline)) {
            self.forget(job_id);
        }
        let running = self.running.get_mut(job_id);
        running.is_some_and(|known| known.cancel(from, deadline)) && self.end(job_id)
    }

    /// The state after the block at `height` was proved not to assign the job to the runner. True:
    /// it is running and must be stopped; false also where it was assigned later than that. A
    /// result stays until its deadline: the chain may still ask for it.
    pub fn end_proved(&mut self, job_id: &Hash, height: Height) -> bool {
        let running = self.running.get(job_id);
        running.is_some_and(|known| known.assigned_at <= height) && self.end(job_id)
    }

    /// The chain no longer wants the job, as the runner knows for sure. True: it is running and
    /// must be stopped.
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

    /// The jobs that run or have a result, those with the latest deadlines first.
    pub fn open_jobs(&self) -> Vec<Hash> {
        let running = self.running.iter().map(|(id, known)| (known.deadline, *id));
        let finished = self.finished.iter().map(|(id, finished)| (finished.known.deadline, *id));
        let mut open: Vec<_> = running.chain(finished).collect();
        open.sort_unstable_by(|a, b| b.cmp(a));
        open.dedup();
        open.into_iter().map(|(_, id)| id).collect()
    }

    /// What was to be delivered was taken: over a connection by this validator.
    pub fn delivered(&mut self, job_id: &Hash, by: Option<&PublicKey>) {
        if let Some(finished) = self.finished.get_mut(job_id) {
            finished.taken_by.extend(by.cloned());
            let pause = DELIVER_AGAIN.saturating_mul(1 << finished.taken.min(16));
            finished.taken = finished.taken.saturating_add(1);
            finished.again_at = self.head.after(pause);
        }
    }

    /// What is to be delivered now: too few validators have taken it.
    pub fn undelivered(&self) -> impl Iterator<Item = Delivery> {
        let due = |finished: &&Finished| finished.again_at <= self.head && !finished.is_delivered();
        self.finished.values().filter(due).map(|finished| finished.delivery.clone())
    }

    /// Whether a validator has taken what the job came to.
    pub fn has_taken(&self, job_id: &Hash, validator: &PublicKey) -> bool {
        self.finished.get(job_id).is_some_and(|finished| finished.taken_by.contains(validator))
    }

    /// The connection to a validator has ended. The commitments that it took may have ended with
    /// it: those are to be delivered again, unless enough others have asked for the results.
    pub fn lost(&mut self, validator: &PublicKey) {
        self.proposals.lost(validator);
        for finished in self.finished.values_mut() {
            if finished.commitment.is_some() && finished.taken_by.remove(validator) {
                finished.again_at = self.head;
            }
        }
    }

    /// A validator asks for the result of a job that this runner has committed to, and so says that
    /// the chain has the commitment. `None`: it is not known which, as by polling.
    pub fn reveal(&mut self, job_id: &Hash, by: Option<&PublicKey>) -> Option<Arc<JobResult>> {
        let commitment = self.finished.get_mut(job_id)?.commitment.as_mut()?;
        commitment.asked_by.extend(by.cloned());
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
            let oldest = oldest.map(|(id, _)| *id).expect("there are more than none");
            self.over.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
