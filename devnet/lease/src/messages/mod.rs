//! Every request and response of the lease server: the only place where leases become JSON.
//!
//! Names and shapes of a runner's messages are those of Delta CI's runner protocol. Unknown fields
//! are ignored. Times are RFC 3339; those that a client sends are stored but decide nothing.
//!
//! # Routes
//!
//! For runners, with their own token:
//!
//! | method and path | request | response |
//! |---|---|---|
//! | `POST /api/v1/internal/lease` | [`LeaseRequest`] | 200 [`LeaseGranted`], or 204 |
//! | `POST /api/v1/internal/ack-lease` | [`AckLease`] | [`AckLeaseAck`] |
//! | `POST /api/v1/internal/heartbeat` | [`Heartbeat`] | [`HeartbeatAck`] |
//! | `POST /api/v1/internal/complete` | [`Complete`] | [`CompleteAck`] |
//! | `POST /api/v1/internal/cancel-ack` | [`CancelAck`] | [`CancelAckAck`] |
//! | `POST /api/v1/internal/await-cancel` | [`AwaitCancel`] | 200 [`CancelRequested`], or 204 |
//! | `PUT /api/v1/internal/log?offset=N` † | bytes, 1 MiB at most | [`LogAck`] |
//! | `PUT /api/v1/internal/artifacts/{name}` † | bytes | [`ArtifactStored`] |
//! | `GET /api/v1/internal/needs` † | | `[`[`NeededArtifact`]`]` |
//! | `GET /api/v1/internal/needs/{job}/{name}` † | | bytes |
//! | `GET /api/v1/internal/caches/{key}` † | | bytes, or 404 |
//! | `PUT /api/v1/internal/caches/{key}` † | bytes | [`CacheStored`] |
//!
//! † requires an active lease in the header [`LEASE_HEADER`].
//!
//! For operators, with the operator's token:
//!
//! | method and path | request | response |
//! |---|---|---|
//! | `POST /api/v1/runs` | [`NewRun`] | 201 [`Run`] |
//! | `GET /api/v1/runs` | [`PageQuery`] | `[`[`RunSummary`]`]`, newest first |
//! | `GET /api/v1/runs/{run}` | | [`Run`] |
//! | `POST /api/v1/runs/{run}/cancel` | | [`Run`] |
//! | `GET /api/v1/jobs` | [`JobQuery`] | `[`[`JobSummary`]`]`, newest first |
//! | `GET /api/v1/jobs/{job}` | | [`Job`] |
//! | `GET /api/v1/jobs/{job}/events` | | `[`[`JobEvent`]`]` |
//! | `POST /api/v1/jobs/{job}/cancel` | | [`JobChanged`] |
//! | `POST /api/v1/jobs/{job}/revoke` | | [`JobChanged`] |
//! | `GET /api/v1/jobs/{job}/log` | [`LogQuery`] | bytes, [`LOG_BYTES_HEADER`] with them |
//! | `GET /api/v1/jobs/{job}/artifacts` | | `[`[`StoredArtifact`]`]` |
//! | `GET /api/v1/jobs/{job}/attempts/{attempt}/artifacts/{name}` | | bytes |
//! | `GET /api/v1/runners` | | `[`[`RunnerSummary`]`]` |
//! | `GET /api/v1/tokens` | | `[`[`Token`]`]` |
//! | `POST /api/v1/tokens` | [`TokenRequest`] | 201 [`NewToken`] |
//! | `DELETE /api/v1/tokens/{runner}` | [`TokenQuery`] | [`Token`] |
//! | `POST /api/v1/schedules` | [`NewSchedule`] | 201 [`Schedule`] |
//! | `GET /api/v1/schedules` | | `[`[`Schedule`]`]`, newest first |
//! | `DELETE /api/v1/schedules/{schedule}` | | [`Schedule`] |
//! | `GET /api/v1/status` | | [`Status`] |
//! | `GET /metrics` | | OpenMetrics text |
//!
//! Without a token: `GET /api/v1/health`, which answers [`Health`] (status 503 if `ok` is false),
//! and `GET /openapi.json`.
//!
//! # Refusals
//!
//! | status | body | when |
//! |---|---|---|
//! | 400 | [`ErrorBody`] with `field` | not what the route accepts |
//! | 401 | [`ErrorBody`] | no token, or one that is not valid here |
//! | 403 | [`ErrorBody`] `WRONG_RUNNER` | the lease, or the token, is not this runner's |
//! | 404 | [`ErrorBody`] | no such route, run, job, artifact, cache |
//! | 409 | [`StaleLease`] | the lease is dead |
//! | 409 | [`ErrorBody`] with `field` | a run with contradictory jobs |
//! | 409 | [`ErrorBody`] | `NOT_ACKED`, `CANCEL_REQUESTED`: the lease lives |
//! | 409 | [`ErrorBody`] | `NO_CANCEL_REQUESTED`, `JOB_ENDED`, `NOT_LEASED`, `LOG_GAP` |
//! | 409 | [`ErrorBody`] | `NAME_IN_USE`: a runner of this name is at work |
//! | 409 | [`ErrorBody`] | `NO_CHAIN`, `SCHEDULES_FULL` |
//! | 408 | [`ErrorBody`] | a message that does not arrive in time |
//! | 413 | [`ErrorBody`] | a body, a log or a store that is full |
//! | 500 | [`ErrorBody`] | an internal error, such as a change that cannot be written |
//! | 503 | [`ErrorBody`] | too many requests are waiting, or the server is stopping |

mod job;
mod runner;
mod schedule;
pub mod schema;

pub use job::{
    Attempt, Concurrency, Config, EnvValue, Health, Job, JobChanged, JobEvent, JobQuery, JobSpec,
    JobSummary, LogQuery, NewRun, NewToken, PageQuery, Retry, RetryOn, Run, RunIf, RunSummary,
    RunnerSummary, Status, StoredArtifact, Token, TokenQuery, TokenRequest, Unhealthy,
};
pub use runner::{
    AckLease, AckLeaseAck, Artifact, ArtifactSpec, ArtifactStored, AwaitCancel, CacheSpec,
    CacheStored, CancelAck, CancelAckAck, CancelRequested, ClientTime, Complete, CompleteAck,
    CompleteStatus, FinalStatus, GrantedSpec, Heartbeat, HeartbeatAck, LeaseGranted, LeaseRequest,
    LogAck, LogCursor, LogOffset, NeededArtifact, Progress, StaleLease, Timings,
};
pub use schedule::{
    BySchedule, MAX_SCHEDULES, NewSchedule, Schedule, ScheduleFailure, ScheduledRun,
};

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// Header with the lease id of an upload or of a cache request. Its value is a secret.
pub const LEASE_HEADER: &str = "cowboy-lease";
/// Header with the length of the whole log in bytes, whichever part was requested.
pub const LOG_BYTES_HEADER: &str = "cowboy-log-bytes";
/// Header that is `true` when the log is complete.
pub const LOG_ENDED_HEADER: &str = "cowboy-log-ended";

/// Maximum length of a message's body, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Longest id or name of a run, job, runner, step output or capability, in characters.
pub const MAX_NAME: usize = 128;
/// Longest path, glob, key or image, in characters.
pub const MAX_PATH: usize = 512;
/// Longest type of an artifact or a cache, in characters.
pub const MAX_KIND: usize = 64;
/// Maximum number of steps of a job.
pub const MAX_STEPS: usize = 256;
/// Longest wait of a runner for work or a cancel, or of a reader for more of a log, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 30;
/// Maximum number of capabilities of a runner, or required by a job.
pub const MAX_CAPABILITIES: usize = 32;
/// Maximum number of artifacts in a completion.
pub const MAX_ARTIFACTS: usize = 1_000;
/// Maximum number of artifacts of all jobs that a job needs.
pub const MAX_NEEDED: usize = 10_000;
/// Maximum number of outputs of a job.
pub const MAX_OUTPUTS: usize = 64;
/// Maximum size of the names and values of a job's outputs together, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 16 << 10;
/// Maximum number of references to needed jobs in a job's environment.
pub const MAX_REFERENCES: usize = 64;
/// Longest summary, progress message or step, in characters.
pub const MAX_TEXT: usize = 64 << 10;
/// Number of runs or jobs in a list if the request does not set it.
pub const PAGE: usize = 100;
/// Maximum number of runs or jobs in a list.
pub const PAGE_LIMIT: usize = 10_000;

/// Capability that a runner needs to be granted a job with an image.
pub const CONTAINER: &str = "container";

/// A message's `type`: always written; when read, it may be missing but not different.
macro_rules! tag {
    ($($(#[$doc:meta])* $tag:ident = $name:tt),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
        pub enum $tag {
            #[doc = concat!("`", $name, "`.")]
            #[default]
            #[serde(rename = $name)]
            Tag,
        }
    )*};
}

tag!(
    /// The type of a [`LeaseRequest`].
    LeaseTag = "Lease",
    /// The type of a [`LeaseGranted`].
    LeaseGrantedTag = "LeaseGranted",
    /// The type of an [`AckLease`].
    AckLeaseTag = "AckLease",
    /// The type of an [`AckLeaseAck`].
    AckLeaseAckTag = "AckLeaseAck",
    /// The type of a [`Heartbeat`].
    HeartbeatTag = "Heartbeat",
    /// The type of a [`HeartbeatAck`].
    HeartbeatAckTag = "HeartbeatAck",
    /// The type of a [`Complete`].
    CompleteTag = "Complete",
    /// The type of a [`CompleteAck`].
    CompleteAckTag = "CompleteAck",
    /// The type of a [`CancelAck`].
    CancelAckTag = "CancelAck",
    /// The type of a [`CancelAckAck`].
    CancelAckAckTag = "CancelAckAck",
    /// The type of an [`AwaitCancel`].
    AwaitCancelTag = "AwaitCancel",
    /// The type of a [`CancelRequested`].
    CancelRequestedTag = "CancelRequested",
    /// The type of a [`LogAck`].
    LogAckTag = "LogAck",
    /// The type of an [`ArtifactStored`].
    ArtifactStoredTag = "ArtifactStored",
    /// The type of a [`CacheStored`].
    CacheStoredTag = "CacheStored",
    /// The type of a [`StaleLease`].
    StaleLeaseTag = "StaleLease",
);
macro_rules! same_names {
    ($(#[$doc:meta])* $name:ident of $engine:ty { $($variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[derive(Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        pub enum $name { $($variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }

        impl From<$engine> for $name {
            fn from(value: $engine) -> Self {
                match value { $(<$engine>::$variant => Self::$variant),* }
            }
        }

        impl From<$name> for $engine {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    };
}

same_names!(
    /// The reason why a lease is dead.
    StaleReason of crate::machine::Stale {
        UnknownLease, LeaseExpired, LeaseRevoked, LeaseCompleted, LeaseCanceled,
    }
);
same_names!(
    /// State of a job.
    JobState of crate::machine::JobState {
        Queued, Leased, Starting, Running, CancelRequested, Succeeded, Failed, Canceled, TimedOut,
        Skipped,
    }
);
same_names!(
    /// State of a lease.
    LeaseState of crate::machine::LeaseState {
        Granted, Active, Expired, Revoked, Completed, Canceled,
    }
);
same_names!(
    /// The reason why a job ended.
    EndReason of crate::machine::Why {
        Reported, LeaseLost, MaxRuntime, Requested, NeedFailed, NeedUnfinished, NoNeedFailed,
        Superseded,
    }
);

impl JobState {
    /// Whether the state is final.
    pub fn is_terminal(self) -> bool {
        crate::machine::JobState::from(self).is_terminal()
    }
}

/// The body of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The reason of the refusal.
    pub error: ErrorDetail,
}

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// Kind of the refusal.
    pub code: ErrorCode,
    /// Path of the wrong field, such as `jobs[0].steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// A message for people, on one line.
    pub message: String,
}

/// The kinds of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The body is not a single JSON document.
    MalformedJson,
    /// A required field is missing.
    MissingField,
    /// A field, parameter or header is not valid.
    InvalidField,
    /// No token, or a wrong one.
    Unauthorized,
    /// The lease belongs to another runner, or the token does.
    WrongRunner,
    /// The route, run, job, file, runner or schedule does not exist.
    NotFound,
    /// The route has other methods.
    MethodNotAllowed,
    /// The lease was not acked yet.
    NotAcked,
    /// A cancel was requested, so the job cannot be completed.
    CancelRequested,
    /// No cancel was requested for the job.
    NoCancelRequested,
    /// A runner of this name is at work.
    NameInUse,
    /// The job has ended.
    JobEnded,
    /// No runner holds a lease of the job.
    NotLeased,
    /// The server has no chain, whose timers a schedule needs.
    NoChain,
    /// The server has the maximum number of schedules.
    SchedulesFull,
    /// Bytes of the log before these are missing.
    LogGap,
    /// The body is too long.
    BodyTooLarge,
    /// The log has reached its limit.
    LogFull,
    /// The job's artifacts, or all caches, take as much room as they may; or the jobs that it needs
    /// have too many artifacts.
    StoreFull,
    /// Not done in time.
    Timeout,
    /// Too many requests are waiting, or the server is stopping.
    Unavailable,
    /// An internal error of the server.
    Internal,
}

/// As in JSON.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
