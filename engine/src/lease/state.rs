//! What jobs and leases are in, and why a job ended: the protocol's words.

use crate::names;

/// What a job's state is called outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobState {
    /// Waits for a runner, or for jobs it needs.
    Queued,
    /// Granted, not acked.
    Leased,
    /// Acked.
    Starting,
    /// Its runner has sent a heartbeat.
    Running,
    /// Its runner is to stop it.
    CancelRequested,
    /// Done.
    Succeeded,
    /// Given up.
    Failed,
    /// Stopped, or never begun.
    Canceled,
    /// Took too long.
    TimedOut,
    /// Never begun, for what became of the jobs that it needs.
    Skipped,
}

names!(JobState:
    Queued = "QUEUED",
    Leased = "LEASED",
    Starting = "STARTING",
    Running = "RUNNING",
    CancelRequested = "CANCEL_REQUESTED",
    Succeeded = "SUCCEEDED",
    Failed = "FAILED",
    Canceled = "CANCELED",
    TimedOut = "TIMED_OUT",
    Skipped = "SKIPPED",
);

impl JobState {
    /// Whether nothing follows.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled | Self::TimedOut | Self::Skipped => {
                true
            }
            Self::Queued
            | Self::Leased
            | Self::Starting
            | Self::Running
            | Self::CancelRequested => false,
        }
    }
}

/// What a lease's state is called outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseState {
    /// Not acked yet.
    Granted,
    /// Acked.
    Active,
    /// No heartbeat came in time.
    Expired,
    /// Taken back.
    Revoked,
    /// Its holder completed the job.
    Completed,
    /// Its holder stopped the job.
    Canceled,
}

names!(LeaseState:
    Granted = "GRANTED",
    Active = "ACTIVE",
    Expired = "EXPIRED",
    Revoked = "REVOKED",
    Completed = "COMPLETED",
    Canceled = "CANCELED",
);

/// Why a job ended as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Its runner said so.
    Reported,
    /// Its last attempt's lease was lost.
    LeaseLost,
    /// Its time was up.
    MaxRuntime,
    /// A user canceled it.
    Requested,
    /// A later member of its concurrency group took its place.
    Superseded,
    /// A job that it needs failed.
    NeedFailed,
    /// A job that it needs was canceled or skipped.
    NeedUnfinished,
    /// It was to run only where a job that it needs fails, and none did.
    NoNeedFailed,
}

names!(Why:
    Reported = "REPORTED",
    LeaseLost = "LEASE_LOST",
    MaxRuntime = "MAX_RUNTIME",
    Requested = "REQUESTED",
    Superseded = "SUPERSEDED",
    NeedFailed = "NEED_FAILED",
    NeedUnfinished = "NEED_UNFINISHED",
    NoNeedFailed = "NO_NEED_FAILED",
);

/// Upon what ends of the jobs that it needs a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunIf {
    /// Every one succeeded, or was allowed to fail.
    Success,
    /// All have ended, and one failed, directly or through a job that was skipped for it.
    Failure,
    /// All have ended.
    Always,
}

names!(RunIf: Success = "success", Failure = "failure", Always = "always");
