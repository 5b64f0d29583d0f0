//! States of jobs and leases, and why a job ended, in the protocol's terms.

use cowboy_engine::names;

/// A job's state as the protocol names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobState {
    /// Waits for a runner, or for jobs it needs.
    Queued,
    Leased,
    Starting,
    Running,
    CancelRequested,
    Succeeded,
    Failed,
    /// Stopped, or never started.
    Canceled,
    TimedOut,
    /// Never started, because of how jobs that it needs ended.
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
    pub const fn is_terminal(self) -> bool {
        use JobState::{Canceled, Failed, Skipped, Succeeded, TimedOut};

        matches!(self, Succeeded | Failed | Canceled | TimedOut | Skipped)
    }
}

/// A lease's state as the protocol names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseState {
    Granted,
    Active,
    Expired,
    Revoked,
    Completed,
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

/// Why a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    Reported,
    LeaseLost,
    MaxRuntime,
    Requested,
    /// A later member of its concurrency group took its place.
    Superseded,
    NeedFailed,
    NeedUnfinished,
    /// It runs only if a job that it needs fails, and none did.
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

/// A job's condition on the ends of the jobs that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunIf {
    /// Every one succeeded, or was allowed to fail.
    Success,
    /// All have ended, and one failed, directly or through a job that was skipped because of it.
    Failure,
    Always,
}

names!(RunIf: Success = "success", Failure = "failure", Always = "always");
