//! Conditions that a claim about a job's result must meet.

use crate::{
    chain::{
        state::State,
        transaction::{CommitResult, Excuse, ReportFailure, Reveal, RevealResults, SubmitResult},
    },
    job::spec::{Assignment, Job, JobStatus},
    primitives::{Address, Hash, Height},
    registry::Runner,
    wire::{self, AckStatus, RejectReason},
};

/// Why a result, a commitment or a reveal is refused. The text begins with the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    #[error("UnknownJob: no job {0}")]
    UnknownJob(Hash),
    #[error("{}: the job is {got}; {} count while it is {expected}",
        .expected.error(), .expected.what())]
    WrongState { got: &'static str, expected: Awaited },
    #[error("CommitFirst: {runners} runners work on the job: each commits, then reveals")]
    CommitFirst { runners: u32 },
    #[error("NoCommittee: one runner works on the job; it submits its result without a commitment")]
    NoCommittee,
    #[error("NotInCommittee: {0} was not drawn for this job")]
    NotInCommittee(Address),
    /// A runner commits once per attempt.
    #[error("AlreadyCommitted: {0} cannot change its commitment")]
    AlreadyCommitted(Address),
    #[error("AlreadyReported: {0} has said that it cannot do the job")]
    AlreadyReported(Address),
    #[error("NotCommitted: {0} has no commitment")]
    NotCommitted(Address),
    #[error("AlreadyRevealed: the result of {0} was revealed before")]
    AlreadyRevealed(Address),
    #[error("CommitmentMismatch: the result of {runner} has commitment {got}, not {committed}")]
    CommitmentMismatch { runner: Address, got: Hash, committed: Hash },
    #[error(
        "IncompleteReveal: {got} results for {committed} commitments; \
         fewer count from block {from} on, in the committee's order"
    )]
    Incomplete {
        got: usize,
        committed: usize,
        /// The first block in which fewer results count.
        from: Height,
    },
    #[error("TooEarly: until block {from} only {aggregator} reveals")]
    TooEarly { from: Height, aggregator: Address },
    #[error("NothingRevealed: a reveal has at least one result")]
    Nothing,
    #[error("ResultTooLarge: {got} bytes, the job takes at most {limit}")]
    TooLarge { got: usize, limit: u32 },
    #[error("BadResultSignature: not {0}'s signature over this job and result")]
    BadSignature(Address),
    #[error("NoExcuse: a job is not given up because its runner says {0}")]
    NoExcuse(RejectReason),
    #[error("BadAggregatorSignature: not {0}'s signature over this job and these results")]
    BadAggregator(Address),
    #[error("NotSlashable: {0}")]
    NotSlashable(&'static str),
    #[error("NoEquivocation: two different commitments are needed, in ascending order")]
    NoEquivocation,
    #[error("AlreadyProved: {0} has paid for two commitments in this job")]
    AlreadyProved(Address),
    #[error("UnknownRunner: {0} is not a registered runner")]
    UnknownRunner(Address),
}

/// The input that a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// The result of its only runner.
    Result,
    Commitments,
    Reports,
    Reveals,
}

impl Awaited {
    pub(super) const fn error(self) -> &'static str {
        match self {
            Self::Result | Self::Commitments | Self::Reports => "JobNotAssigned",
            Self::Reveals => "JobNotCommitted",
        }
    }

    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Result => "results",
            Self::Commitments => "commitments",
            Self::Reports => "reports of failed work",
            Self::Reveals => "reveals",
        }
    }
}

impl std::fmt::Display for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Result => "Assigned",
            Self::Commitments | Self::Reports => "Assigned or Running",
            Self::Reveals => "Committed",
        })
    }
}

/// A valid result, with its job and its runner.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    pub job: &'a Job,
    pub assignment: &'a Assignment,
    pub runner: &'a Runner,
}

pub(in crate::chain::transition) fn job<'a>(
    state: &'a State,
    id: &Hash,
) -> Result<&'a Job, ResultError> {
    state.jobs.get(id).ok_or(ResultError::UnknownJob(*id))
}

fn member<'a>(
    state: &'a State,
    assignment: &Assignment,
    runner: &Address,
) -> Result<&'a Runner, ResultError> {
    state
        .registry
        .get(runner)
        .filter(|_| assignment.committee.contains(runner))
        .ok_or(ResultError::NotInCommittee(*runner))
}

fn check_size(job: &Job, result: &[u8]) -> Result<(), ResultError> {
    let limit = job.spec.bounds.max_return_bytes;
    match result.len() > limit as usize {
        true => Err(ResultError::TooLarge { got: result.len(), limit }),
        false => Ok(()),
    }
}

/// Checks a result against `state`. Past its deadline a job is no longer `Assigned`.
pub fn check_result<'a>(
    state: &'a State,
    submitted: &SubmitResult,
) -> Result<Claim<'a>, ResultError> {
    let SubmitResult { job_id, runner, result, runner_signature } = submitted;
    let job = job(state, job_id)?;
    let JobStatus::Assigned(assignment) = &job.status else {
        let got = job.status.name();
        return Err(ResultError::WrongState { got, expected: Awaited::Result });
    };
    if job.spec.is_committee() {
        return Err(ResultError::CommitFirst { runners: job.spec.verification.runners });
    }
    let record = member(state, assignment, runner)?;
    check_size(job, result)?;
    let digest = wire::JobResult::digest(state.chain_id, job_id, result);
    if !record.pubkey.verify_shared(&digest, runner_signature) {
        return Err(ResultError::BadSignature(*runner));
    }
    Ok(Claim { job, assignment, runner: record })
}

/// A job whose committee is at work, and the record of a member that has submitted nothing yet.
fn at_work<'a>(
    state: &'a State,
    job_id: &Hash,
    runner: &Address,
    expected: Awaited,
) -> Result<(&'a Job, &'a Runner), ResultError> {
    let job = job(state, job_id)?;
    let (assignment, round) = match &job.status {
        JobStatus::Assigned(assignment) => (assignment, None),
        JobStatus::Running(round) => (&round.assignment, Some(round)),
        other => return Err(ResultError::WrongState { got: other.name(), expected }),
    };
    let record = member(state, assignment, runner)?;
    if round.is_some_and(|round| round.commitment(runner).is_some()) {
        return Err(ResultError::AlreadyCommitted(*runner));
    }
    if job.attempt.is_reported_by(runner) {
        return Err(ResultError::AlreadyReported(*runner));
    }
    Ok((job, record))
}

/// Checks a report of failed or rejected work against `state`, and returns the job. A rejection
/// counts only in the attempt that it was signed for.
pub fn check_failure<'a>(state: &'a State, report: &ReportFailure) -> Result<&'a Job, ResultError> {
    let ReportFailure { job_id, runner, said, runner_signature } = report;
    let (job, record) = at_work(state, job_id, runner, Awaited::Reports)?;
    if let Excuse::Rejected(reason) = said
        && !reason.is_excuse()
    {
        return Err(ResultError::NoExcuse(*reason));
    }
    let digest = match said {
        Excuse::Failed(reason) => wire::JobFailure::digest(state.chain_id, job_id, reason),
        Excuse::Rejected(reason) => {
            let status = AckStatus::Reject(*reason);
            wire::JobAck::digest(state.chain_id, job_id, job.deadline(), status)
        }
    };
    if !record.pubkey.verify_shared(&digest, runner_signature) {
        return Err(ResultError::BadSignature(*runner));
    }
    Ok(job)
}

/// Checks a commitment against `state`, and returns the job.
pub fn check_commit<'a>(state: &'a State, commit: &CommitResult) -> Result<&'a Job, ResultError> {
    let CommitResult { job_id, runner, commitment, runner_signature } = commit;
    let (job, record) = at_work(state, job_id, runner, Awaited::Commitments)?;
    if !job.spec.is_committee() {
        return Err(ResultError::NoCommittee);
    }
    let digest = wire::JobCommit::digest(state.chain_id, job_id, job.deadline(), commitment);
    if !record.pubkey.verify_shared(&digest, runner_signature) {
        return Err(ResultError::BadSignature(*runner));
    }
    Ok(job)
}

/// Checks one revealed result against `state`, regardless of sender and time.
pub fn check_reveal(state: &State, job_id: &Hash, reveal: &Reveal) -> Result<(), ResultError> {
    let job = job(state, job_id)?;
    let Some(commitments) = state.commitments(job_id) else {
        let got = job.status.name();
        return Err(ResultError::WrongState { got, expected: Awaited::Reveals });
    };
    let runner = reveal.runner;
    let commitment = commitments.iter().find(|commitment| commitment.runner == runner);
    let commitment = commitment.ok_or(ResultError::NotCommitted(runner))?;
    if commitment.result.is_some() {
        return Err(ResultError::AlreadyRevealed(runner));
    }
    check_size(job, &reveal.result)?;
    let (got, committed) = (reveal.commitment(), commitment.hash);
    if got != committed {
        return Err(ResultError::CommitmentMismatch { runner, got, committed });
    }
    let record = state.registry.get(&runner).ok_or(ResultError::NotInCommittee(runner))?;
    let digest = wire::JobResult::digest(state.chain_id, job_id, &reveal.result);
    if !record.pubkey.verify_shared(&digest, &reveal.runner_signature) {
        return Err(ResultError::BadSignature(runner));
    }
    Ok(())
}

/// Checks reveals for the block at `height`, a child of this state's or its own, and returns the
/// job.
pub fn check_reveals<'a>(
    state: &'a State,
    height: Height,
    reveals: &RevealResults,
) -> Result<&'a Job, ResultError> {
    let RevealResults { job_id, reveals, aggregator_signature } = reveals;
    let job = job(state, job_id)?;
    let wrong = || {
        let got = job.status.name();
        Err(ResultError::WrongState { got, expected: Awaited::Reveals })
    };
    if reveals.is_empty() {
        return Err(ResultError::Nothing);
    }
    let turn = match &job.status {
        JobStatus::Committed(round) => round.closing.as_ref().map(|closing| (round, closing)),
        // Runners reveal the results that a verified job lacks.
        _ if state.withheld.contains_key(job_id) && aggregator_signature.is_none() => None,
        _ => return wrong(),
    };
    match (turn, aggregator_signature) {
        (None, _) => {}
        (Some((_, closing)), None) => {
            let from = job.own_reveals_from().unwrap_or_default();
            if height < from {
                return Err(ResultError::TooEarly { from, aggregator: closing.aggregator });
            }
        }
        (Some((round, closing)), Some(signature)) => {
            let aggregator = closing.aggregator;
            let (got, committed) = (reveals.len(), round.commitments.len());
            let from = job.partial_reveals_from().unwrap_or_default();
            let mut order = round.commitments.iter().map(|commitment| commitment.runner);
            let ordered = reveals.iter().all(|reveal| order.any(|runner| runner == reveal.runner));
            if !ordered || (got < committed && height < from) {
                return Err(ResultError::Incomplete { got, committed, from });
            }
            let results = reveals.iter().map(|r| (r.runner, r.result.as_slice()));
            let all = wire::reveals_digest(results);
            let digest = wire::JobAggregated::digest(state.chain_id, job_id, &all);
            let record = member(state, &round.assignment, &aggregator)?;
            if !record.pubkey.verify_shared(&digest, signature) {
                return Err(ResultError::BadAggregator(aggregator));
            }
        }
    }
    let mut seen: Vec<Address> = Vec::with_capacity(reveals.len());
    for reveal in reveals {
        if seen.contains(&reveal.runner) {
            return Err(ResultError::AlreadyRevealed(reveal.runner));
        }
        check_reveal(state, job_id, reveal)?;
        seen.push(reveal.runner);
    }
    Ok(job)
}
