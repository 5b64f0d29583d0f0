//! The progress of a runner with a job, as the chain knows it.

use cowboy_engine::{
    job::spec::{FailureReason, Job, JobStatus},
    primitives::Address,
    wire::CancelReason,
};

/// The progress of a committee member, as the chain knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberProgress {
    /// The chain still awaits its result or commitment.
    AtWork,
    /// It has committed, and keeps its result until the end; or it has reported a failure.
    Done,
    /// It has not committed in time.
    Late,
}

/// Determines the progress of a committee member.
pub fn progress_of(job: &Job, runner: &Address) -> MemberProgress {
    match &job.status {
        JobStatus::Running(round) | JobStatus::Committed(round)
            if round.commitment(runner).is_some() =>
        {
            MemberProgress::Done
        }
        _ if job.attempt.is_reported_by(runner) => MemberProgress::Done,
        JobStatus::Committed(_) => MemberProgress::Late,
        // It keeps the result that the chain still lacks.
        JobStatus::Verified(..) => MemberProgress::Done,
        _ => MemberProgress::AtWork,
    }
}

/// The reason for telling a runner that a job is no longer its own. `job` is `None` for an unknown
/// job.
pub fn reason_of_cancellation(job: Option<&Job>, runner: &Address) -> CancelReason {
    let Some(job) = job else { return CancelReason::Reassigned };
    match &job.status {
        JobStatus::Verified(_, outcome) if outcome.agreeing.contains(runner) => CancelReason::Done,
        JobStatus::Failed(failure) => match failure.reason {
            FailureReason::NoCandidates | FailureReason::NoResult => CancelReason::Expired,
            FailureReason::NoAgreement | FailureReason::WorkFailed => CancelReason::Failed,
        },
        JobStatus::Committed(_) => CancelReason::Expired,
        // The next attempt excludes runners that missed the deadline.
        _ if job.attempt.excluded.contains(runner) => CancelReason::Expired,
        _ => CancelReason::Reassigned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_engine::{job::spec::Failure, primitives::Height};
    use std::sync::Arc;

    #[test]
    fn a_job_that_failed_is_cancelled_as_failed_or_expired() {
        let runner = Address([7; 20]);
        let check = |reason, expected| {
            let spec = Arc::new(crate::sample::spec(4));
            let mut job = Job::new(spec, (Address([8; 20]), 0), Height::new(3));
            let height = Height::new(5);
            job.status = JobStatus::Failed(Failure { height, reason, assignment: None });
            assert_eq!(reason_of_cancellation(Some(&job), &runner), expected, "{reason:?}");
        };
        check(FailureReason::NoResult, CancelReason::Expired);
        check(FailureReason::NoAgreement, CancelReason::Failed);
        check(FailureReason::WorkFailed, CancelReason::Failed);
    }
}
