//! Every request and response of the lease server: the one place where leases become JSON.
//!
//! Names and shapes of a runner's messages are those of Delta CI's runner protocol; fields that are
//! not known are left alone. Times are RFC 3339; those that a client sends are kept and decide
//! nothing.
//!
//! # Routes
//!
//! Of runners, which show their own token:
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
//! † names the lease in the header [`LEASE_HEADER`], which must be active.
//!
//! Of whoever hands jobs in, who shows the operator's token:
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
//! Without a token: `GET /api/v1/health`, [`Health`], with 503 where `ok` is false, and
//! `GET /openapi.json`.
//!
//! # Refusals
//!
//! | status | body | when |
//! |---|---|---|
//! | 400 | [`ErrorBody`] with `field` | not what the route takes |
//! | 401 | [`ErrorBody`] | no token, or one that is not good here |
//! | 403 | [`ErrorBody`] `WRONG_RUNNER` | the lease, or the token, is not this runner's |
//! | 404 | [`ErrorBody`] | no such route, run, job, artifact, cache |
//! | 409 | [`StaleLease`] | the lease is dead |
//! | 409 | [`ErrorBody`] with `field` | a run whose jobs contradict one another |
//! | 409 | [`ErrorBody`] | `NOT_ACKED`, `CANCEL_REQUESTED`: the lease lives |
//! | 409 | [`ErrorBody`] | `NO_CANCEL_REQUESTED`, `JOB_ENDED`, `NOT_LEASED`, `LOG_GAP` |
//! | 409 | [`ErrorBody`] | `NAME_IN_USE`: a runner of this name is at work |
//! | 409 | [`ErrorBody`] | `NO_CHAIN`, `SCHEDULES_FULL` |
//! | 408 | [`ErrorBody`] | a message that does not come in time |
//! | 413 | [`ErrorBody`] | a body, a log or a store that is full |
//! | 500 | [`ErrorBody`] | a fault of the server, as a change that cannot be written |
//! | 503 | [`ErrorBody`] | too much is waiting, or the server stops |

mod job;
mod runner;
mod schedule;

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

use cowboy_engine::names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The header that names the lease of an upload or of a cache. Its value is a secret.
pub const LEASE_HEADER: &str = "cowboy-lease";
/// How long the log is, whatever part of it was asked for.
pub const LOG_BYTES_HEADER: &str = "cowboy-log-bytes";
/// `true` where nothing more will come.
pub const LOG_ENDED_HEADER: &str = "cowboy-log-ended";

/// The longest body of a message, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// The longest that a runner waits for work or a cancel, or a reader for more of a log, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 30;
/// What a runner can be capable of, or a job ask for.
pub const MAX_CAPABILITIES: usize = 32;
/// Artifacts in a completion.
pub const MAX_ARTIFACTS: usize = 1_000;
/// Artifacts of all jobs that a job needs.
pub const MAX_NEEDED: usize = 10_000;
/// Outputs of a job.
pub const MAX_OUTPUTS: usize = 64;
/// The bytes that names and values of a job's outputs have together.
pub const MAX_OUTPUT_BYTES: usize = 16 << 10;
/// References to needed jobs in the environment of a job.
pub const MAX_REFERENCES: usize = 64;
/// The longest summary, progress message or step that is taken, in characters.
pub const MAX_TEXT: usize = 64 << 10;
/// Runs or jobs in a list where the request does not say, and at most.
pub const PAGE: usize = 100;
/// Runs or jobs in a list at most.
pub const PAGE_LIMIT: usize = 10_000;

/// What a runner must be capable of to be granted a job with an image.
pub const CONTAINER: &str = "container";

/// A message's `type`: there in what this program writes; where it is read it may be missing, and
/// may not be another.
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
        #[expect(missing_docs, reason = "the engine's variants of the same names say it")]
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

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => <$engine>::$variant.name()),* })
            }
        }
    };
}

same_names!(
    /// Why a lease is dead ([`cowboy_engine::lease::Stale`]).
    StaleReason of cowboy_engine::lease::Stale {
        UnknownLease, LeaseExpired, LeaseRevoked, LeaseCompleted, LeaseCanceled,
    }
);
same_names!(
    /// What a job is in ([`cowboy_engine::lease::JobState`]).
    JobState of cowboy_engine::lease::JobState {
        Queued, Leased, Starting, Running, CancelRequested, Succeeded, Failed, Canceled, TimedOut,
        Skipped,
    }
);
same_names!(
    /// What a lease is in ([`cowboy_engine::lease::LeaseState`]).
    LeaseState of cowboy_engine::lease::LeaseState {
        Granted, Active, Expired, Revoked, Completed, Canceled,
    }
);
same_names!(
    /// Why a job ended as it did ([`cowboy_engine::lease::Why`]).
    EndReason of cowboy_engine::lease::Why {
        Reported, LeaseLost, MaxRuntime, Requested, NeedFailed, NeedUnfinished, NoNeedFailed,
        Superseded,
    }
);

impl JobState {
    /// Whether nothing follows.
    pub fn is_terminal(self) -> bool {
        cowboy_engine::lease::JobState::from(self).is_terminal()
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: ErrorDetail,
}

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The kind.
    pub code: ErrorCode,
    /// Where: the path of the field, as `jobs[0].steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// For people; one line.
    pub message: String,
}

/// The kinds of refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// Not JSON, or something after it.
    MalformedJson,
    /// A field that must be there.
    MissingField,
    /// A field, parameter or header that is not what it should be.
    InvalidField,
    /// No token, or a wrong one.
    Unauthorized,
    /// The lease is not this runner's, or the runner not the token's.
    WrongRunner,
    /// There is no such thing.
    NotFound,
    /// The route takes other methods.
    MethodNotAllowed,
    /// The lease was not acked yet.
    NotAcked,
    /// The job is to be stopped: it cannot be completed.
    CancelRequested,
    /// Nobody asked for the job to be canceled.
    NoCancelRequested,
    /// A runner of this name is at work.
    NameInUse,
    /// The job has ended.
    JobEnded,
    /// Nobody holds a lease of the job.
    NotLeased,
    /// The server has no chain, whose timers a schedule goes by.
    NoChain,
    /// There are as many schedules as there may be.
    SchedulesFull,
    /// Bytes of the log before these are missing.
    LogGap,
    /// The body is too long.
    BodyTooLarge,
    /// The log is as long as it may be.
    LogFull,
    /// The job's artifacts, or all caches, take as much room as they may; or the jobs that it needs
    /// have too many artifacts.
    StoreFull,
    /// Not done in time.
    Timeout,
    /// Too much is waiting.
    Unavailable,
    /// A fault of the server.
    Internal,
}

names!(ErrorCode:
    MalformedJson = "MALFORMED_JSON",
    MissingField = "MISSING_FIELD",
    InvalidField = "INVALID_FIELD",
    Unauthorized = "UNAUTHORIZED",
    WrongRunner = "WRONG_RUNNER",
    NotFound = "NOT_FOUND",
    MethodNotAllowed = "METHOD_NOT_ALLOWED",
    NotAcked = "NOT_ACKED",
    CancelRequested = "CANCEL_REQUESTED",
    NoCancelRequested = "NO_CANCEL_REQUESTED",
    NameInUse = "NAME_IN_USE",
    JobEnded = "JOB_ENDED",
    NotLeased = "NOT_LEASED",
    NoChain = "NO_CHAIN",
    SchedulesFull = "SCHEDULES_FULL",
    LogGap = "LOG_GAP",
    BodyTooLarge = "BODY_TOO_LARGE",
    LogFull = "LOG_FULL",
    StoreFull = "STORE_FULL",
    Timeout = "TIMEOUT",
    Unavailable = "UNAVAILABLE",
    Internal = "INTERNAL",
);
