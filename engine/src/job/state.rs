//! What the chain keeps of a job (spec jobs.md §5, §6).
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
//! Its submitter may cancel a job that is Pending or Assigned: it is Cancelled then.

use super::spec::JobSpec;
use crate::{
    names,
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};
use std::sync::Arc;

/// Draws after the first (jobs.md §6).
pub const MAX_RETRIES: u32 = 3;

/// Blocks after the commitments are closed in which the aggregator brings all results or none: one
/// to ask for them, one for the transaction.
pub const WHOLE_BLOCKS: u64 = 2;
/// Blocks after the commitments are closed in which only the aggregator brings results: as many
/// again for those of which some are missing.
pub const AGGREGATOR_BLOCKS: u64 = 4;

/// Where a job stands. Every change is an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStatus {
    /// Recorded; fewer candidates than it asks for, drawn again each block.
    Pending,
    /// A committee was drawn.
    Assigned(Assignment),
    /// Of a committee of several, some have committed to their results.
    Running(Round),
    /// No more commitments count; results are being revealed.
    Committed(Round),
    /// A verified result is final.
    Verified(Assignment, Outcome),
    /// No verified result; the escrow went back.
    Failed(Failure),
    /// Its submitter took it back; the escrow went back.
    Cancelled(Cancellation),
}

/// A draw that found a committee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The block that drew.
    pub height: Height,
    /// Its timestamp, from which the runner's time counts.
    pub timestamp_ms: u64,
    /// The draw's seed.
    pub seed: Hash,
    /// Root of the map from each candidate's address to its stake.
    pub candidates_root: Hash,
    /// Who was drawn, in draw order.
    pub committee: Vec<Address>,
}
record!(Assignment { height, timestamp_ms, seed, candidates_root, committee });

/// What a committee of several has committed to and revealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Who is in it.
    pub assignment: Assignment,
    /// In the order of the committee.
    pub commitments: Vec<Commitment>,
    /// Since when no more commitments count; `None`: they still do.
    pub closing: Option<Closing>,
}
record!(Round { assignment, commitments, closing });

/// A runner's word that it has a result, which it cannot change any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// Whose.
    pub runner: Address,
    /// keccak256(result ‖ signature\[65\] over job and result).
    pub hash: Hash,
    /// Timestamp of the block that took it: the runner's time counts until then.
    pub timestamp_ms: u64,
    /// The result, once revealed.
    pub result: Option<Arc<Vec<u8>>>,
}
record!(Commitment { runner, hash, timestamp_ms, result });

/// Runners that have committed to results of a job that was verified without these: each stays
/// assigned until it shows its result or pays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// When the committee's commitments were closed.
    pub closed: Height,
    /// The last block in which the results may be shown: the attempt's deadline.
    pub due: Height,
    /// What each of them pays at most that has not shown its result by then.
    pub fine: Wei,
    /// What they have committed to, in the order of the committee.
    pub commitments: Vec<Commitment>,
}
record!(Withheld { closed, due, fine, commitments });

/// The end of the time for commitments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The block.
    pub height: Height,
    /// Who is to reveal all results: of those that committed the one of the highest reputation,
    /// ties by address.
    pub aggregator: Address,
}
record!(Closing { height, aggregator });

/// A final result. Its bytes stand in the transaction that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The block that made it final.
    pub height: Height,
    /// Whose result it is: the first in draw order that agrees.
    pub runner: Address,
    /// keccak256 of the result.
    pub result_hash: Hash,
    /// Who agrees with it, in draw order, the runner itself included.
    pub agreeing: Vec<Address>,
    /// What runners were paid in all, tip and aggregation included.
    pub paid: Wei,
    /// What a system deployer took from the runner's stake for a wrong result.
    pub slashed: Option<Wei>,
}
record!(Outcome { height, runner, result_hash, agreeing, paid, slashed });

/// The end of a job without a verified result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The block.
    pub height: Height,
    /// Why.
    pub reason: FailureReason,
    /// The last committee, where there was one.
    pub assignment: Option<Assignment>,
}
record!(Failure { height, reason, assignment });

/// Why a job, or one attempt at it, came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// Fewer candidates than asked for, up to the deadline.
    NoCandidates,
    /// Too few results in time.
    NoResult,
    /// The results do not agree, as far as the mode wants.
    NoAgreement,
    /// So many of the committee said that they cannot do the work that the others are too few.
    WorkFailed,
}

names!(FailureReason:
    NoCandidates = "no_candidates",
    NoResult = "no_result",
    NoAgreement = "no_agreement",
    WorkFailed = "work_failed",
);

/// Why something of a runner's was burned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashReason {
    /// A system deployer found its bonded result wrong.
    WrongResult,
    /// It committed to a result and showed no valid one.
    Withheld,
    /// It signed two commitments in one attempt.
    Equivocation,
}

names!(SlashReason:
    WrongResult = "wrong_result",
    Withheld = "withheld",
    Equivocation = "equivocation",
);

/// The end of a job that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancellation {
    /// The block.
    pub height: Height,
    /// The committee, where there was one.
    pub assignment: Option<Assignment>,
}
record!(Cancellation { height, assignment });

impl JobStatus {
    /// The state's name.
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

    /// The draw that stands, where there was one.
    pub const fn assignment(&self) -> Option<&Assignment> {
        match self {
            Self::Pending => None,
            Self::Assigned(assignment) | Self::Verified(assignment, _) => Some(assignment),
            Self::Running(round) | Self::Committed(round) => Some(&round.assignment),
            Self::Failed(failure) => failure.assignment.as_ref(),
            Self::Cancelled(cancellation) => cancellation.assignment.as_ref(),
        }
    }

    /// The committee that works on the job now; nobody where it waits or has ended.
    pub fn at_work(&self) -> &[Address] {
        match self {
            Self::Assigned(assignment) => &assignment.committee,
            Self::Running(round) | Self::Committed(round) => &round.assignment.committee,
            Self::Pending | Self::Verified(..) | Self::Failed(_) | Self::Cancelled(_) => &[],
        }
    }

    /// The block that ended the job.
    pub const fn ended_at(&self) -> Option<Height> {
        match self {
            Self::Verified(_, outcome) => Some(outcome.height),
            Self::Failed(failure) => Some(failure.height),
            Self::Cancelled(cancellation) => Some(cancellation.height),
            Self::Pending | Self::Assigned(_) | Self::Running(_) | Self::Committed(_) => None,
        }
    }
}

impl Round {
    /// A runner's commitment.
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

/// The attempt that a job is in: its first, or a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// 0 for the first, then the number of the retry.
    pub number: u32,
    /// The block from which its time counts.
    pub since: Height,
    /// Seed of the job's first draw that found a committee; retries are drawn from it.
    pub seed: Option<Hash>,
    /// Runners that were silent in earlier attempts: no candidates any more.
    pub excluded: Vec<Address>,
    /// Runners that said, in this attempt or an earlier one, that they cannot do the work: no
    /// candidates any more either, but not silent. Each committee adds each of its members once at
    /// most.
    pub reported: Vec<Reported>,
}
record!(Attempt { number, since, seed, excluded, reported });

/// A runner that cannot do a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Who.
    pub runner: Address,
    /// Why, in the runner's words.
    pub reason: String,
}
record!(Reported { runner, reason });

impl Attempt {
    /// Whether a runner said that it cannot do the work.
    pub fn is_reported_by(&self, runner: &Address) -> bool {
        self.reported.iter().any(|reported| reported.runner == *runner)
    }
}

/// A job as the dispatcher (0x02) keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What was asked for.
    pub spec: Arc<JobSpec>,
    /// By whom.
    pub submitter: Address,
    /// The nonce of its submission: with specification and submitter it gives the job's id.
    pub nonce: u64,
    /// In which block.
    pub submitted_at: Height,
    /// Where it stands.
    pub status: JobStatus,
    /// How often it was tried.
    pub attempt: Attempt,
    /// Runners proved to have signed two commitments for one attempt; each pays once.
    pub equivocated: Vec<Address>,
}
record!(Job { spec, submitter, nonce, submitted_at, status, attempt, equivocated });

impl Job {
    /// A job that a block records.
    pub const fn new(
        spec: Arc<JobSpec>,
        (submitter, nonce): (Address, u64),
        submitted_at: Height,
    ) -> Self {
        let attempt = Attempt {
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

    /// The last block of the attempt: results count up to it.
    pub fn deadline(&self) -> Height {
        self.attempt.since.after(self.spec.timeout_blocks)
    }

    /// The last block whose commitments count: half of the attempt's time.
    pub fn commit_deadline(&self) -> Height {
        self.attempt.since.after(self.spec.timeout_blocks / 2)
    }

    /// The first block in which the aggregator may bring fewer results than were committed to;
    /// `None`: commitments still count, or the job has ended.
    pub fn partial_reveals_from(&self) -> Option<Height> {
        let JobStatus::Committed(Round { closing: Some(closing), .. }) = &self.status else {
            return None;
        };
        Some(closing.height.after(WHOLE_BLOCKS.min(self.spec.timeout_blocks / 4) + 1))
    }

    /// The first block in which a runner's own reveal counts, where the aggregator has brought
    /// none; `None`: commitments still count, or the job has ended.
    pub fn own_reveals_from(&self) -> Option<Height> {
        let JobStatus::Committed(Round { closing: Some(closing), .. }) = &self.status else {
            return None;
        };
        Some(closing.height.after(AGGREGATOR_BLOCKS.min(self.spec.timeout_blocks / 4) + 1))
    }

    /// Members of the committee at work that have not said that they cannot do the work.
    pub fn still_at_work(&self) -> usize {
        let committee = self.status.at_work().iter();
        committee.filter(|runner| !self.attempt.is_reported_by(runner)).count()
    }

    /// The next block in which time alone changes something.
    pub fn due(&self) -> Height {
        match &self.status {
            JobStatus::Assigned(_) | JobStatus::Running(_) if self.spec.is_committee() => {
                self.commit_deadline()
            }
            _ => self.deadline(),
        }
    }
}
