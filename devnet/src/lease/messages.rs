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
//! | `PUT /api/v1/internal/log?offset=N` † | bytes, 1 MiB at most | [`LogAck`] |
//! | `PUT /api/v1/internal/artifacts/{name}` † | bytes | [`ArtifactStored`] |
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
//! | `POST /api/v1/jobs/{job}/cancel` | | [`JobChanged`] |
//! | `POST /api/v1/jobs/{job}/revoke` | | [`JobChanged`] |
//! | `GET /api/v1/jobs/{job}/log` | [`LogQuery`] | bytes; [`LOG_BYTES_HEADER`], [`LOG_ENDED_HEADER`] |
//! | `GET /api/v1/jobs/{job}/artifacts` | | `[`[`StoredArtifact`]`]` |
//! | `GET /api/v1/jobs/{job}/attempts/{attempt}/artifacts/{name}` | | bytes |
//! | `GET /api/v1/tokens` | | `[`[`Token`]`]` |
//! | `POST /api/v1/tokens` | [`TokenRequest`] | 201 [`NewToken`] |
//! | `DELETE /api/v1/tokens/{runner}` | | [`Token`] |
//! | `GET /api/v1/status` | | [`Status`] |
//!
//! Of anybody: `GET /api/v1/health`, [`Health`], and `GET /openapi.json`.
//!
//! # Refusals
//!
//! | status | body | when |
//! |---|---|---|
//! | 400 | [`ErrorBody`] with `field` | not what the route takes |
//! | 401 | [`ErrorBody`] | no token, or one that is not good here |
//! | 403 | [`ErrorBody`] `WRONG_RUNNER` | the lease is not this runner's, or `runner_id` not the token's |
//! | 404 | [`ErrorBody`] | no such route, run, job, artifact, cache |
//! | 409 | [`StaleLease`] | the lease is no good for this |
//! | 409 | [`ErrorBody`] with `field` | a run whose jobs contradict one another |
//! | 409 | [`ErrorBody`] | `NO_CANCEL_REQUESTED`, `JOB_ENDED`, `NOT_LEASED`, `LOG_GAP` |
//! | 408 | [`ErrorBody`] | a message that does not come in time |
//! | 413 | [`ErrorBody`] | a body, a log or a store that is full |
//! | 503 | [`ErrorBody`] | too much is waiting |

use super::schema;
use cowboy_engine::names;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// The header that names the lease of an upload or of a cache. Its value is a secret.
pub const LEASE_HEADER: &str = "cowboy-lease";
/// How long the log is, whatever part of it was asked for.
pub const LOG_BYTES_HEADER: &str = "cowboy-log-bytes";
/// `true` where nothing more will come.
pub const LOG_ENDED_HEADER: &str = "cowboy-log-ended";

/// The longest body of a message, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// The longest that a runner waits for work, or a reader for more of a log, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 30;
/// What a runner can be capable of, or a job ask for.
pub const MAX_CAPABILITIES: usize = 32;
/// Artifacts in a completion.
pub const MAX_ARTIFACTS: usize = 1_000;
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
    /// The type of a [`LogAck`].
    LogAckTag = "LogAck",
    /// The type of an [`ArtifactStored`].
    ArtifactStoredTag = "ArtifactStored",
    /// The type of a [`CacheStored`].
    CacheStoredTag = "CacheStored",
    /// The type of a [`StaleLease`].
    StaleLeaseTag = "StaleLease",
);

/// A time that a client gives, which is kept and decides nothing.
pub type ClientTime = String;

/// A runner asks for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseRequest {
    /// `Lease`.
    #[serde(rename = "type", default)]
    pub tag: LeaseTag,
    /// Who asks.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// What it is capable of, as `linux` or `x86_64`.
    #[serde(default)]
    #[schema(value_type = Vec<schema::Capability>, max_items = 32)]
    pub capabilities: Vec<String>,
    /// How long to wait for work, in seconds.
    #[serde(default)]
    #[schema(maximum = 30)]
    pub wait_seconds: u64,
}

/// A lease, and the job it is for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseGranted {
    /// `LeaseGranted`.
    #[serde(rename = "type", default)]
    pub tag: LeaseGrantedTag,
    /// The job.
    pub job_id: String,
    /// Its run.
    pub run_id: String,
    /// The fencing token: a secret.
    pub lease_id: String,
    /// Which attempt of the job it is, from 1.
    pub attempt: u32,
    /// How long the lease holds without a heartbeat.
    pub lease_ttl_seconds: u64,
    /// How often to send one.
    pub heartbeat_interval_seconds: u64,
    /// How long the job may take from the ack on.
    pub max_runtime_seconds: u64,
    /// What to do.
    pub job_spec: GrantedSpec,
    /// Shows that a request to cancel is the server's: a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_token: Option<String>,
}

/// Shows no secret.
impl std::fmt::Debug for LeaseGranted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseGranted")
            .field("job_id", &self.job_id)
            .field("run_id", &self.run_id)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// A job as its runner gets it: with every value of its environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantedSpec {
    /// Its name in its run.
    pub name: String,
    /// Where steps run, from the job's directory on.
    pub workdir: String,
    /// The image to run steps in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Commands for `sh -c`, one after the other.
    pub steps: Vec<String>,
    /// Their environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Which of its values must not be seen in logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<String>,
    /// Files to keep.
    #[serde(default)]
    pub artifacts: Vec<ArtifactSpec>,
    /// Folders to bring along and to keep.
    #[serde(default)]
    pub caches: Vec<CacheSpec>,
}

/// Files that a job leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactSpec {
    /// What they are, as `junit`.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 64, pattern = "^[^\\x00]+$")]
    pub kind: String,
    /// Which, from the working directory on, as `**/*.xml`.
    #[schema(value_type = schema::RelativePath)]
    pub path_glob: String,
}

/// Folders that jobs with the same key share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheSpec {
    /// What they are, as `deps`.
    #[serde(rename = "type", default)]
    #[schema(max_length = 64, pattern = "^[^\\x00]*$")]
    pub kind: String,
    /// The key.
    #[schema(min_length = 1, max_length = 512, pattern = "^[^\\x00]+$")]
    pub key: String,
    /// Which: from the working directory on, or below `~/`, the job's own home.
    #[schema(value_type = Vec<schema::CachePath>, min_items = 1, max_items = 32)]
    pub paths: Vec<String>,
}

/// A runner has accepted a lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AckLease {
    /// `AckLease`.
    #[serde(rename = "type", default)]
    pub tag: AckLeaseTag,
    /// The lease's job.
    #[schema(value_type = schema::Id)]
    pub job_id: String,
    /// The lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Its holder.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// By the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub accepted_at: Option<ClientTime>,
}

/// The answer to an [`AckLease`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AckLeaseAck {
    /// `AckLeaseAck`.
    #[serde(rename = "type", default)]
    pub tag: AckLeaseAckTag,
    /// The lease.
    pub lease_id: String,
    /// True.
    pub accepted: bool,
}

/// A runner lives.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Heartbeat {
    /// `Heartbeat`.
    #[serde(rename = "type", default)]
    pub tag: HeartbeatTag,
    /// The lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Its holder.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// How much of the log was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cursor: Option<LogCursor>,
    /// By the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub ts: Option<ClientTime>,
}

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// From 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub percent: Option<u8>,
    /// The step, as the job has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub current_step: Option<String>,
    /// Its number, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_index: Option<u32>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub message: Option<String>,
}

/// How much of a log was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogCursor {
    /// In bytes.
    pub bytes_sent: u64,
}

/// The answer to a [`Heartbeat`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAck {
    /// `HeartbeatAck`.
    #[serde(rename = "type", default)]
    pub tag: HeartbeatAckTag,
    /// The lease.
    pub lease_id: String,
    /// True.
    pub extend_lease: bool,
    /// How long it holds from now on.
    pub new_lease_ttl_seconds: u64,
    /// Whether the job is to be stopped.
    pub cancel_requested: bool,
    /// How long there is to stop it.
    pub cancel_deadline_seconds: u64,
}

/// How a job ended, by its runner's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CompleteStatus {
    /// It did what it should.
    Succeeded,
    /// It did not.
    Failed,
}

/// A runner is done.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Complete {
    /// `Complete`.
    #[serde(rename = "type", default)]
    pub tag: CompleteTag,
    /// The lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Its holder.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// How it ended.
    pub status: CompleteStatus,
    /// The exit code of the step that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -2_147_483_648, maximum = 2_147_483_647)]
    pub exit_code: Option<i32>,
    /// When it began and ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// What it left behind.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub artifacts: Vec<Artifact>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub summary: Option<String>,
}

/// When a job ran, by its runner's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Timings {
    /// When its first step began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub started_at: Option<ClientTime>,
    /// When its last step ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub finished_at: Option<ClientTime>,
}

/// What a job left behind: where it is to be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// What it is, as `log`.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 64, pattern = "^[^\\x00]+$")]
    pub kind: String,
    /// Where it is; from the server's own address on, where it begins with `/`.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[^\\x00]+$")]
    pub uri: String,
}

/// The answer to a [`Complete`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompleteAck {
    /// `CompleteAck`.
    #[serde(rename = "type", default)]
    pub tag: CompleteAckTag,
    /// The lease.
    pub lease_id: String,
    /// True.
    pub accepted: bool,
}

/// The one way in which a job that was to be stopped ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum FinalStatus {
    /// It was stopped.
    #[serde(rename = "CANCELED")]
    Canceled,
}

/// A runner has stopped what was to be canceled.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelAck {
    /// `CancelAck`.
    #[serde(rename = "type", default)]
    pub tag: CancelAckTag,
    /// The lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Its holder.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// `CANCELED`.
    pub final_status: FinalStatus,
    /// By the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub ts: Option<ClientTime>,
    /// What it left behind.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub artifacts: Vec<Artifact>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub summary: Option<String>,
}

/// The answer to a [`CancelAck`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelAckAck {
    /// `CancelAckAck`.
    #[serde(rename = "type", default)]
    pub tag: CancelAckAckTag,
    /// The lease.
    pub lease_id: String,
    /// True.
    pub accepted: bool,
}

/// Where bytes of a log go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogOffset {
    /// How long the log is before them. What stands there already is skipped.
    pub offset: u64,
}

/// A piece of a log was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogAck {
    /// `LogAck`.
    #[serde(rename = "type", default)]
    pub tag: LogAckTag,
    /// How long the log is.
    pub bytes: u64,
}

/// An artifact was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactStored {
    /// `ArtifactStored`.
    #[serde(rename = "type", default)]
    pub tag: ArtifactStoredTag,
    /// What to name in the completion.
    pub uri: String,
    /// Its length.
    pub bytes: u64,
}

/// A cache was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheStored {
    /// `CacheStored`.
    #[serde(rename = "type", default)]
    pub tag: CacheStoredTag,
    /// Its length.
    pub bytes: u64,
}

/// The lease is no good for what was asked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaleLease {
    /// `StaleLease`.
    #[serde(rename = "type", default)]
    pub tag: StaleLeaseTag,
    /// The lease, as the request had it.
    pub lease_id: String,
    /// Why.
    pub reason: StaleReason,
}

macro_rules! same_names {
    ($(#[$doc:meta])* $name:ident of $engine:ty { $($variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        #[expect(missing_docs, reason = "the engine's variants of the same names say it")]
        pub enum $name { $($variant),* }

        impl From<$engine> for $name {
            fn from(value: $engine) -> Self {
                match value { $(<$engine>::$variant => Self::$variant),* }
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
    /// Why a lease is no good for a message ([`cowboy_engine::lease::Stale`]).
    StaleReason of cowboy_engine::lease::Stale {
        UnknownLease, LeaseExpired, LeaseRevoked, LeaseCompleted, LeaseCanceled, CancelRequested,
        NotAcked,
    }
);
same_names!(
    /// What a job is in ([`cowboy_engine::lease::JobState`]).
    JobState of cowboy_engine::lease::JobState {
        Queued, Leased, Starting, Running, CancelRequested, Succeeded, Failed, Canceled, TimedOut,
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
        Reported, LeaseLost, MaxRuntime, Requested, NeedFailed,
    }
);

impl JobState {
    /// Whether nothing follows.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled | Self::TimedOut)
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
    /// Nobody asked for the job to be canceled.
    NoCancelRequested,
    /// The job has ended.
    JobEnded,
    /// Nobody holds a lease of the job.
    NotLeased,
    /// Bytes of the log before these are missing.
    LogGap,
    /// The body is too long.
    BodyTooLarge,
    /// The log is as long as it may be.
    LogFull,
    /// The job's artifacts, or all caches, take as much room as they may.
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
    NoCancelRequested = "NO_CANCEL_REQUESTED",
    JobEnded = "JOB_ENDED",
    NotLeased = "NOT_LEASED",
    LogGap = "LOG_GAP",
    BodyTooLarge = "BODY_TOO_LARGE",
    LogFull = "LOG_FULL",
    StoreFull = "STORE_FULL",
    Timeout = "TIMEOUT",
    Unavailable = "UNAVAILABLE",
    Internal = "INTERNAL",
);

/// Jobs that are handed in together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewRun {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^[^\\x00]*$")]
    pub name: Option<String>,
    /// Its jobs.
    #[schema(min_items = 1, max_items = 1000)]
    pub jobs: Vec<JobSpec>,
}

/// A job as it is handed in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSpec {
    /// Its name, which no other job of the run has.
    #[schema(value_type = schema::JobName)]
    pub name: String,
    /// Commands for `sh -c`, one after the other, until one fails.
    #[schema(value_type = Vec<schema::Step>, min_items = 1, max_items = 256)]
    pub steps: Vec<String>,
    /// Their environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::Environment)]
    pub env: BTreeMap<String, EnvValue>,
    /// Where they run, from the job's directory on [default: `.`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::RelativePath>)]
    pub workdir: Option<String>,
    /// The image they run in: asks for a runner with the capability `container`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 512, pattern = "^[^\\x00]+$")]
    pub image: Option<String>,
    /// Jobs of the run, by name, that must succeed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::JobName>, max_items = 1000)]
    pub needs: Vec<String>,
    /// What its runner must be capable of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Capability>, max_items = 32)]
    pub requires: Vec<String>,
    /// Files to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub artifacts: Vec<ArtifactSpec>,
    /// Folders to bring along and to keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub caches: Vec<CacheSpec>,
    /// How long an attempt may take [default: the server's].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub max_runtime_seconds: Option<u64>,
    /// How often and upon what it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// A value of a job's environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EnvValue {
    /// Anybody may see it.
    Plain(String),
    /// Nobody may: it is masked in logs and in no listing.
    Secret {
        /// The value.
        secret: String,
    },
}

/// Shows no secret.
impl std::fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(value) => f.debug_tuple("Plain").field(value).finish(),
            Self::Secret { .. } => f.write_str("Secret(..)"),
        }
    }
}

/// How often and upon what a job is tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Retry {
    /// Upon what it is tried again [default: `lease_lost`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<RetryOn>>,
    /// How often it is granted at most [default: the server's].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub max_attempts: Option<u32>,
}

/// Upon what a job is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// Its runner is gone.
    LeaseLost,
    /// Its runner says that it failed.
    Failure,
    /// It took too long.
    Timeout,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Its id.
    pub run_id: String,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was handed in.
    pub created_at: String,
    /// What it is in: of its jobs' states the one that tells most.
    pub state: JobState,
    /// Its jobs, as they were handed in.
    pub jobs: Vec<JobSummary>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// Its id.
    pub run_id: String,
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was handed in.
    pub created_at: String,
    /// What it is in: of its jobs' states the one that tells most.
    pub state: JobState,
    /// How many jobs it has.
    pub jobs: u64,
    /// How many of them have ended.
    pub ended: u64,
}

/// A job in a list. Never a lease's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    /// Its id.
    pub job: String,
    /// Its run.
    pub run: String,
    /// Its name in its run.
    pub name: String,
    /// What it is in.
    pub state: JobState,
    /// The number of its last attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// Who has, or had, the last lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// What that lease is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_state: Option<LeaseState>,
    /// When it runs out, if it can still be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A job, and all that became of it. Never a lease's id, never a secret's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// As in a list.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// As it was handed in; secrets are `***`.
    pub spec: JobSpec,
    /// How often it is granted at most.
    pub max_attempts: u32,
    /// How long an attempt may take.
    pub max_runtime_seconds: u64,
    /// Its place in the queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    /// Jobs, by name, that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// When it was handed in.
    pub created_at: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Why it ended as it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndReason>,
    /// How often it has become terminal: once at most.
    pub finalized: u32,
    /// Its attempts, from the first.
    pub attempts: Vec<Attempt>,
}

/// A grant, and what became of it. Times are the server's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// Who got the lease.
    pub runner: String,
    /// What the lease is in.
    pub lease_state: LeaseState,
    /// When it was granted.
    pub granted_at: String,
    /// When its holder acked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_at: Option<String>,
    /// When its holder's last heartbeat came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<String>,
    /// When it was of no use any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How far it was at the last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// When it ran, by its runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// What it left behind, by its runner's word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// In its runner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// How long its log is, in bytes.
    pub log_bytes: u64,
}

/// A job after it was canceled or its lease taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobChanged {
    /// The job.
    pub job: String,
    /// What it is in.
    pub state: JobState,
}

/// How much of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// How many at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 10_000)]
    pub limit: Option<usize>,
}

/// Which jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// Only those of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Only those in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub state: Option<JobState>,
    /// How many at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 10_000)]
    pub limit: Option<usize>,
}

/// Which part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// Of which attempt [default: the last].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1)]
    pub attempt: Option<u32>,
    /// From which byte on.
    #[serde(default)]
    pub offset: u64,
    /// How long to wait for more, in seconds.
    #[serde(default)]
    #[param(maximum = 30)]
    pub wait_seconds: u64,
}

/// An artifact in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredArtifact {
    /// Of which attempt.
    pub attempt: u32,
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Where it is, from the server's address on.
    pub uri: String,
}

/// Whose token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRequest {
    /// The runner.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
}

/// A token that was made. It is told this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Whose it is. What it had before is good no more.
    pub runner_id: String,
    /// The token: a secret.
    pub token: String,
}

/// A runner that has a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// The runner.
    pub runner_id: String,
    /// When the token was made.
    pub created_at: String,
}

/// What the server does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// How many jobs are in each state.
    pub jobs: BTreeMap<String, u64>,
    /// Jobs that can be granted.
    pub queued: u64,
    /// Runners that wait for one.
    pub waiting_runners: u64,
    /// What leases are granted with.
    pub config: Config,
}

/// What leases are granted with; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Config {
    /// How long a lease holds without a heartbeat.
    pub lease_ttl_seconds: u64,
    /// How often a heartbeat is asked for.
    pub heartbeat_interval_seconds: u64,
    /// How long a lease may go without an ack.
    pub ack_timeout_seconds: u64,
    /// How long a runner has to stop what is canceled.
    pub cancel_deadline_seconds: u64,
    /// How long a job may run where it does not say.
    pub max_runtime_seconds: u64,
    /// How often a job is granted where it does not say.
    pub max_attempts: u32,
}

/// The server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// True.
    pub ok: bool,
}
