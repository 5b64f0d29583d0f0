//! The operator's view of jobs, runs and runners' tokens.

use super::{
    Artifact, ArtifactSpec, BySchedule, CacheSpec, EndReason, JobState, LeaseState, LogCursor,
    Progress, Timings, schema,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::{IntoParams, ToSchema};

/// Jobs that are submitted together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewRun {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[^\\x00]+$")]
    pub name: Option<String>,
    /// A group in which one run at a time is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The jobs of the run.
    #[schema(min_items = 1, max_items = 1000)]
    pub jobs: Vec<JobSpec>,
}

/// A group of runs, or of jobs, in which one at a time is in progress. The others wait in the
/// queue, in the order in which they joined it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Concurrency {
    /// Name of the group. Groups of runs and groups of jobs are separate.
    #[schema(min_length = 1, max_length = 128, pattern = "^[^\\x00]+$")]
    pub group: String,
    /// Cancels earlier members of the group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_in_progress: bool,
}

/// A job as it is submitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSpec {
    /// Name of the job, unique in its run.
    #[schema(value_type = schema::JobName)]
    pub name: String,
    /// Commands for `sh -c`, one after the other, until one fails.
    #[schema(value_type = Vec<schema::Step>, min_items = 1, max_items = 256)]
    pub steps: Vec<String>,
    /// Environment of the steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::Environment)]
    pub env: BTreeMap<String, EnvValue>,
    /// Working directory of the steps, relative to the job's directory [default: `.`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::RelativePath>)]
    pub workdir: Option<String>,
    /// Image in which the steps run. The job then needs a runner with the capability `container`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 512, pattern = "^[^\\x00]+$")]
    pub image: Option<String>,
    /// Names of jobs of the same run that must end before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::JobName>, max_items = 1000)]
    pub needs: Vec<String>,
    /// Ids of jobs of other runs. Their artifacts are placed below `workdir` before the first step,
    /// like those of `needs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Id>, max_items = 1000)]
    pub artifacts_of: Vec<String>,
    /// How the jobs in `needs` must have ended for this job to run; otherwise it is SKIPPED
    /// [default: `success`].
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub run_if: Option<RunIf>,
    /// If the job fails or times out, jobs that need it still run and its run counts it as
    /// succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
    /// A group of jobs, of any run, in which one at a time is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Names of the values that the job passes to jobs that need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::OutputName>, max_items = 64)]
    pub outputs: Vec<String>,
    /// Capabilities that the job's runner must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Capability>, max_items = 32)]
    pub requires: Vec<String>,
    /// Files to store as artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub artifacts: Vec<ArtifactSpec>,
    /// Folders to restore before the job and to store after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub caches: Vec<CacheSpec>,
    /// Time limit of an attempt, in seconds [default: the server's].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub max_runtime_seconds: Option<u64>,
    /// How often, and after which failures, the job is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// A value of a job's environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EnvValue {
    /// A value that is not secret.
    Plain(String),
    /// A secret: masked in logs, and in no listing.
    Secret { secret: String },
    /// A text with results of needed jobs, which the server replaces when it grants the job: `${{
    /// needs.JOB.outputs.NAME }}` and `${{ needs.JOB.result }}`.
    FromNeeds { from_needs: String },
}

/// Hides the secret.
impl fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(value) => f.debug_tuple("Plain").field(value).finish(),
            Self::Secret { .. } => f.write_str("Secret(..)"),
            Self::FromNeeds { from_needs } => f.debug_tuple("FromNeeds").field(from_needs).finish(),
        }
    }
}

/// How often, and after which failures, a job is tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Retry {
    /// Failures after which the job is tried again [default: `lease_lost`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<RetryOn>>,
    /// Maximum number of attempts [default: the server's].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub max_attempts: Option<u32>,
    /// Pause before the second attempt, in seconds. It doubles before each further one, up to an
    /// hour [default: none].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3600)]
    pub backoff_seconds: Option<u64>,
}

/// How the needed jobs must have ended for a job to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunIf {
    /// Each job succeeded or was allowed to fail.
    Success,
    /// All jobs have ended, and one failed, directly or through a job that was skipped because of
    /// it.
    Failure,
    /// All jobs have ended.
    Always,
}

/// The spelling of run files.
impl fmt::Display for RunIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success()",
            Self::Failure => "failure()",
            Self::Always => "always()",
        })
    }
}

/// A failure after which a job is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryOn {
    /// The lease was lost, because its runner is gone.
    LeaseLost,
    /// The runner reports that the job failed.
    Failure,
    /// The job exceeded its time limit.
    Timeout,
}

/// A run and its jobs' states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Its id.
    pub run_id: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When the run was submitted.
    pub created_at: String,
    /// The group in which one run at a time is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The schedule that submitted the run, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_schedule: Option<BySchedule>,
    /// State of the run, derived from its jobs: in progress before waiting before failed before
    /// succeeded.
    pub state: JobState,
    /// Its jobs, in the order in which they were submitted.
    pub jobs: Vec<JobSummary>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// Its id.
    pub run_id: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When the run was submitted.
    pub created_at: String,
    /// The schedule that submitted the run, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_schedule: Option<BySchedule>,
    /// State of the run, derived from its jobs: in progress before waiting before failed before
    /// succeeded.
    pub state: JobState,
    /// Number of its jobs.
    pub jobs: u64,
    /// Number of its jobs that have ended.
    pub ended: u64,
}

/// A job in a list. It never contains a lease's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    /// Its id.
    pub job: String,
    /// Its run.
    pub run: String,
    /// Its name in its run.
    pub name: String,
    /// State of the job.
    pub state: JobState,
    /// Whether its run counts it as succeeded when it fails or times out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
    /// Number of its last attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The runner that holds, or held, the last lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// State of that lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_state: Option<LeaseState>,
    /// When that lease expires, if it is still in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A job and its whole history. It never contains a lease's id or a secret's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// The same fields as in a list.
    #[serde(flatten)]
    pub summary: JobSummary,
    /// The job as it was submitted; secrets are `***`.
    pub spec: JobSpec,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Time limit of an attempt, in seconds.
    pub max_runtime_seconds: u64,
    /// Position in the queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    /// Why the job is not granted yet, if it does not wait for another job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_queued: Option<String>,
    /// When the job joins the queue for its next attempt, if it pauses before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<String>,
    /// Names of the jobs that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// When the job was submitted.
    pub created_at: String,
    /// When the job ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The reason why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndReason>,
    /// How often the job has become terminal: at most once.
    pub finalized: u32,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// A state that a job or its lease has entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobEvent {
    /// When it entered the state.
    pub at: String,
    /// Number of the attempt; 0 before the first.
    pub attempt: u32,
    /// The job's state from then on.
    pub state: JobState,
    /// The state of the attempt's lease from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_state: Option<LeaseState>,
}

/// A runner that has asked for work since the server started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerSummary {
    /// Its id.
    pub runner_id: String,
    /// Its capabilities, as of its last request for work.
    pub capabilities: Vec<String>,
    /// When it last asked for work.
    pub asked_at: String,
    /// When it made its last request of any kind.
    pub seen_at: String,
    /// Whether it is waiting for work.
    pub waits: bool,
    /// The job whose lease it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobSummary>,
}

/// A grant and its history. Times are the server's unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// The runner that got the lease.
    pub runner: String,
    /// State of the lease.
    pub lease_state: LeaseState,
    /// When the lease was granted.
    pub granted_at: String,
    /// When the runner acked the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_at: Option<String>,
    /// When the runner's last heartbeat arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<String>,
    /// When the runner acked the lease, by the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_accepted_at: Option<String>,
    /// When the runner sent its last heartbeat with a time, by the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_heartbeat_at: Option<String>,
    /// How much of the log the runner had sent, as of its last heartbeat with a log cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cursor: Option<LogCursor>,
    /// When the lease ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Progress as of the last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The exit code of the step that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// When it ran, by the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// Artifacts that the runner reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Values that it passed to jobs that need it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// The runner's summary for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Length of its log, in bytes.
    pub log_bytes: u64,
}

/// A job after it was canceled or its lease was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobChanged {
    /// Id of the job.
    pub job: String,
    /// State of the job.
    pub state: JobState,
}

/// Length of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Maximum number of entries (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 10_000)]
    pub limit: Option<usize>,
}

/// Selection of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// Only jobs of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Only jobs in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub state: Option<JobState>,
    /// Maximum number of entries (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 10_000)]
    pub limit: Option<usize>,
}

/// Selection of a part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// Number of the attempt, from 1 [default: the last].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1)]
    pub attempt: Option<u32>,
    /// Offset of the first byte.
    #[serde(default)]
    pub offset: u64,
    /// How long to wait for more bytes, in seconds.
    #[serde(default)]
    #[param(maximum = 30)]
    pub wait_seconds: u64,
}

/// A stored artifact of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredArtifact {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its path, relative to the server's address.
    pub uri: String,
}

/// A request to issue a runner's token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRequest {
    /// Id of the runner.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// Whether to issue the token even if a runner of this name is at work, which then loses its
    /// own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// A new token. The server shows it only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Id of the runner. Its previous token is no longer valid.
    pub runner_id: String,
    /// Id of the token: not a secret.
    pub token_id: String,
    /// The token: a secret.
    pub token: String,
}

/// Selection of a runner's token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TokenQuery {
    /// Only the token with this `token_id` [default: the valid one].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    pub token_id: Option<String>,
}

/// A runner that has a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Id of the runner.
    pub runner_id: String,
    /// When the token was issued.
    pub created_at: String,
}

/// The server's load and configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Number of jobs by state.
    pub jobs: BTreeMap<String, u64>,
    /// Number of jobs that can be granted.
    pub queued: u64,
    /// Number of runners that wait for a job.
    pub waiting_runners: u64,
    /// The configuration of leases.
    pub config: Config,
}

/// The configuration of leases; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Config {
    /// How long a lease lasts without a heartbeat.
    pub lease_ttl_seconds: u64,
    /// Interval at which runners should send heartbeats.
    pub heartbeat_interval_seconds: u64,
    /// How long a lease may go without an ack.
    pub ack_timeout_seconds: u64,
    /// How long a runner has to stop a job after a cancel request.
    pub cancel_deadline_seconds: u64,
    /// Time limit of a job that sets none.
    pub max_runtime_seconds: u64,
    /// How long after a job's time limit uploads and one completion are still accepted.
    #[serde(default)]
    pub grace_seconds: u64,
    /// Maximum number of attempts of a job that sets none.
    pub max_attempts: u32,
}

/// Whether the server accepts changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Whether the server accepts changes.
    pub ok: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unhealthy>,
}

/// The reason why a server accepts no changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Unhealthy {
    /// The disk is full; the server continues once there is space.
    NoSpace,
    /// Writing fails; the server's log has the reason.
    WritesFail,
    /// The server is stopping.
    Stopped,
}
