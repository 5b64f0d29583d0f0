//! The chain's record of a job (spec jobs.md §5, §6).
//!
//! ```text
//!            draw             M = 1: the result
//!   Pending ──────▶ Assigned ───────────────────────────────▶ Verified
//!      ▲               │ M > 1: first commitment                 ▲
//!      │               ▼                                         │ reveals agree
//!      │            Running ─────────────▶ Committed ────────────┘
//!      │               │  all committed,      │
//!      │ retry, of     │  or half the time    │
//!      └───────────────┴──────────────────────┴─ after 3 retries, or without candidates ─▶ Failed
//! ```
//!
//! The submitter may cancel a job that is Pending or Assigned: it becomes Cancelled.

use super::specification::JobSpec;
use crate::{
    names,
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};
use std::sync::Arc;

/// Number of draws after the first (jobs.md §6).
pub const MAX_RETRIES: u32 = 3;

/// Blocks after the commitments close in which the aggregator must submit all results or none: one
/// to ask for them, one for the transaction.
pub const WHOLE_BLOCKS: u64 = 2;
/// Blocks after the commitments close in which only the aggregator may submit results:
/// [`WHOLE_BLOCKS`], and as many again for an incomplete set.
pub const AGGREGATOR_BLOCKS: u64 = 4;

/// The state of a job. Every change is an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// Recorded; there are fewer candidates than it asks for, so it is drawn again each block.
    Pending,
    Assigned(Assignment),
    /// Some members of a committee of several have committed to their results.
    Running(CommitteeRound),
    /// Commitments are closed; results are being revealed.
    Committed(CommitteeRound),
    Verified(Assignment, Outcome),
    /// No verified result; the escrow was returned.
    Failed(Failure),
    /// Cancelled by its submitter; the escrow was returned.
    Cancelled(Cancellation),
}

/// A draw that found a committee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub height: Height,
    /// The block's timestamp, from which the runner's time counts.
    pub timestamp_ms: u64,
    pub seed: Hash,
    /// Root of the map from each candidate's address to its stake.
    pub candidates_root: Hash,
    /// In draw order.
    pub committee: Vec<Address>,
}
record!(Assignment { height, timestamp_ms, seed, candidates_root, committee });

/// Commitments and reveals of a committee of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitteeRound {
    pub assignment: Assignment,
    /// In draw order.
    pub commitments: Vec<Commitment>,
    /// Set once commitments are closed.
    pub closing: Option<Closing>,
}
record!(CommitteeRound { assignment, commitments, closing });

/// A runner's irrevocable statement that it has a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    pub runner: Address,
    /// keccak256(result ‖ signature\[65\] over job and result).
    pub hash: Hash,
    /// Timestamp of the block that included it: the runner's time counts until then.
    pub timestamp_ms: u64,
    /// The result, once revealed.
    pub result: Option<Arc<Vec<u8>>>,
}
record!(Commitment { runner, hash, timestamp_ms, result });

/// Commitments whose results are missing although the job was verified without them: each runner
/// stays assigned until it shows its result or pays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    pub closed: Height,
    /// The last block in which the results may be shown: the attempt's deadline.
    pub due: Height,
    /// The maximum fine in wei of each runner that has not shown its result by then.
    pub fine: Wei,
    /// In draw order.
    pub commitments: Vec<Commitment>,
}
record!(Withheld { closed, due, fine, commitments });

impl Withheld {
    /// The same, `blocks` later.
    pub fn later(self, blocks: u64) -> Self {
        Self { closed: self.closed.after(blocks), due: self.due.after(blocks), ..self }
    }
}

/// The close of the time for commitments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    pub height: Height,
    /// The runner that reveals all results: of those that committed, the one with the highest
    /// reputation, ties broken by address.
    pub aggregator: Address,
}
record!(Closing { height, aggregator });

/// A final result. Its bytes are in the transaction that submitted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The block that made it final.
    pub height: Height,
    /// The first runner in draw order whose result agrees.
    pub runner: Address,
    /// keccak256 of the result.
    pub result_hash: Hash,
    /// The runners that agree with it, in draw order, including `runner`.
    pub agreeing: Vec<Address>,
    /// Total pay of the runners in wei, including tip and aggregation.
    pub paid: Wei,
    /// The amount in wei that a system deployer took from the runner's stake for a wrong result.
    pub slashed: Option<Wei>,
}
record!(Outcome { height, runner, result_hash, agreeing, paid, slashed });

/// The end of a job without a verified result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub height: Height,
    pub reason: FailureReason,
    /// The last committee, if one was drawn.
    pub assignment: Option<Assignment>,
}
record!(Failure { height, reason, assignment });

names! {
    /// Why a job, or one attempt at it, failed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FailureReason {
        /// Fewer candidates than asked for until the deadline.
        NoCandidates = "no_candidates",
        /// Too few results in time.
        NoResult = "no_result",
        NoAgreement = "no_agreement",
        /// Too few members are left that have not reported that they cannot do the work.
        WorkFailed = "work_failed",
    }
}

names! {
    /// Why part of a runner's stake was burned.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SlashReason {
        /// A system deployer declared its bonded result wrong.
        WrongResult = "wrong_result",
        /// It committed to a result and did not show a valid one.
        Withheld = "withheld",
        /// It signed two commitments in one attempt.
        Equivocation = "equivocation",
    }
}

/// The end of a job that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancellation {
    pub height: Height,
    pub assignment: Option<Assignment>,
}
record!(Cancellation { height, assignment });

impl JobStatus {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Assigned(_) => "Assigned",
            Self::Running(_) => "Running",
            Self::Committed(_) => "Committed",
            Self::Verified(..) => "Verified",
            Self::Failed(_) => "Failed",
            Self::Cancelled(_) => "Cancelled",
        }
    }

    /// The current or last draw, if there was one.
    pub const fn assignment(&self) -> Option<&Assignment> {
        match self {
            Self::Pending => None,
            Self::Assigned(assignment) | Self::Verified(assignment, _) => Some(assignment),
            Self::Running(round) | Self::Committed(round) => Some(&round.assignment),
            Self::Failed(failure) => failure.assignment.as_ref(),
            Self::Cancelled(cancellation) => cancellation.assignment.as_ref(),
        }
    }

    /// The committee that works on the job now; empty if the job waits or has ended.
    pub fn at_work(&self) -> &[Address] {
        match self {
            Self::Assigned(assignment) => &assignment.committee,
            Self::Running(round) | Self::Committed(round) => &round.assignment.committee,
            Self::Pending | Self::Verified(..) | Self::Failed(_) | Self::Cancelled(_) => &[],
        }
    }

    /// The block that ended the job; `None` while it is open.
    pub const fn ended_at(&self) -> Option<Height> {
        match self {
            Self::Verified(_, outcome) => Some(outcome.height),
            Self::Failed(failure) => Some(failure.height),
            Self::Cancelled(cancellation) => Some(cancellation.height),
            Self::Pending | Self::Assigned(_) | Self::Running(_) | Self::Committed(_) => None,
        }
    }
}

impl CommitteeRound {
    pub fn commitment(&self, runner: &Address) -> Option<&Commitment> {
        self.commitments.iter().find(|commitment| commitment.runner == *runner)
    }

    /// Members of the committee that have not committed.
    pub fn silent(&self) -> Vec<Address> {
        let committed = |runner: &&Address| self.commitment(runner).is_some();
        self.assignment.committee.iter().filter(|r| !committed(r)).copied().collect()
    }
}

impl Encode for JobStatus {
    fn encode(&self, w: &mut Writer) {
        let (tag, parts): (u64, [Option<&dyn Encode>; 2]) = match self {
            Self::Pending => (0, [None, None]),
            Self::Assigned(assignment) => (1, [Some(assignment), None]),
            Self::Verified(assignment, outcome) => (2, [Some(assignment), Some(outcome)]),
            Self::Failed(failure) => (3, [Some(failure), None]),
            Self::Running(round) => (4, [Some(round), None]),
            Self::Committed(round) => (5, [Some(round), None]),
            Self::Cancelled(cancellation) => (6, [Some(cancellation), None]),
        };
        w.list(1 + parts.iter().flatten().count());
        w.u64(tag);
        for part in parts.into_iter().flatten() {
            part.encode(w);
        }
    }
}

impl Decode for JobStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(3)?;
        match (r.u64()?, len) {
            (0, 1) => Ok(Self::Pending),
            (1, 2) => Decode::decode(r).map(Self::Assigned),
            (2, 3) => Ok(Self::Verified(Decode::decode(r)?, Decode::decode(r)?)),
            (3, 2) => Decode::decode(r).map(Self::Failed),
            (4, 2) => Decode::decode(r).map(Self::Running),
            (5, 2) => Decode::decode(r).map(Self::Committed),
            (6, 2) => Decode::decode(r).map(Self::Cancelled),
            _ => Err(DecodeError::Invalid("unknown job status")),
        }
    }
}

/// The current attempt at a job: its first, or a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobAttempt {
    /// 0 for the first attempt, then the number of the retry.
    pub number: u32,
    /// The block from which the attempt's time counts.
    pub since: Height,
    /// Seed of the job's first draw that found a committee; retries derive theirs from it.
    pub seed: Option<Hash>,
    /// Runners that were silent in earlier attempts and are no longer candidates.
    pub excluded: Vec<Address>,
    /// Runners that reported, in this attempt or an earlier one, that they cannot do the work. They
    /// are no longer candidates either, but were not silent. Each committee adds each of its
    /// members at most once.
    pub reported: Vec<Reported>,
}
record!(JobAttempt { number, since, seed, excluded, reported });

/// A runner that reported that it cannot do a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub runner: Address,
    pub reason: String,
}
record!(Reported { runner, reason });

impl JobAttempt {
    pub fn is_reported_by(&self, runner: &Address) -> bool {
        self.reported.iter().any(|reported| reported.runner == *runner)
    }
}

/// A job as the dispatcher (0x02) keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub spec: Arc<JobSpec>,
    pub submitter: Address,
    /// With specification and submitter it determines the job's id.
    pub nonce: u64,
    pub submitted_at: Height,
    pub status: JobStatus,
    pub attempt: JobAttempt,
    /// Runners proved to have signed two commitments for one attempt; each is fined once.
    pub equivocated: Vec<Address>,
}
record!(Job { spec, submitter, nonce, submitted_at, status, attempt, equivocated });

impl Job {
    pub const fn new(
        spec: Arc<JobSpec>,
        (submitter, nonce): (Address, u64),
        submitted_at: Height,
    ) -> Self {
        let attempt = JobAttempt {
            number: 0,
            since: submitted_at,
            seed: None,
            excluded: Vec::new(),
            reported: Vec::new(),
        };
        Self {
            spec,
            submitter,
            nonce,
            submitted_at,
            status: JobStatus::Pending,
            attempt,
            equivocated: Vec::new(),
        }
    }

    /// The same job, with the times that count while it is open `blocks` and `ms` later. Facts
    /// stay: the blocks that submitted it, drew its runners and ended it.
    pub fn later(mut self, blocks: u64, ms: u64) -> Self {
        let delay = |timestamp_ms: &mut u64| *timestamp_ms = timestamp_ms.saturating_add(ms);
        match &mut self.status {
            JobStatus::Running(round) | JobStatus::Committed(round) => {
                delay(&mut round.assignment.timestamp_ms);
                for commitment in &mut round.commitments {
                    delay(&mut commitment.timestamp_ms);
                }
                if let Some(closing) = &mut round.closing {
                    closing.height = closing.height.after(blocks);
                }
            }
            JobStatus::Assigned(assignment) => delay(&mut assignment.timestamp_ms),
            JobStatus::Pending => {}
            JobStatus::Verified(..) | JobStatus::Failed(_) | JobStatus::Cancelled(_) => {
                return self;
            }
        }
        self.attempt.since = self.attempt.since.after(blocks);
        self
    }

    /// The last block of the attempt in which results count.
    pub fn deadline(&self) -> Height {
        self.attempt.since.after(self.spec.timeout_blocks)
    }

    /// The last block in which commitments count: half of the attempt's time.
    pub fn commit_deadline(&self) -> Height {
        self.attempt.since.after(self.spec.timeout_blocks / 2)
    }

    /// The first block in which the aggregator may submit fewer results than there are commitments;
    /// `None` unless results are being revealed.
    pub fn partial_reveals_from(&self) -> Option<Height> {
        let JobStatus::Committed(CommitteeRound { closing: Some(closing), .. }) = &self.status
        else {
            return None;
        };
        Some(closing.height.after(WHOLE_BLOCKS.min(self.spec.timeout_blocks / 4) + 1))
    }

    /// The first block in which a runner's own reveal counts if the aggregator has not submitted
    /// any; `None` unless results are being revealed.
    pub fn own_reveals_from(&self) -> Option<Height> {
        let JobStatus::Committed(CommitteeRound { closing: Some(closing), .. }) = &self.status
        else {
            return None;
        };
        Some(closing.height.after(AGGREGATOR_BLOCKS.min(self.spec.timeout_blocks / 4) + 1))
    }

    /// Number of members of the working committee that have not reported that they cannot do the
    /// work.
    pub fn still_at_work(&self) -> usize {
        let committee = self.status.at_work().iter();
        committee.filter(|runner| !self.attempt.is_reported_by(runner)).count()
    }

    /// The next block at which the mere passage of time changes something.
    pub fn due(&self) -> Height {
        match &self.status {
            JobStatus::Assigned(_) | JobStatus::Running(_) if self.spec.is_committee() => {
                self.commit_deadline()
            }
            _ => self.deadline(),
        }
    }
}
