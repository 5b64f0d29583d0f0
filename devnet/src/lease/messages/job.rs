//! What jobs, runs and runners' tokens are to whoever hands jobs in.

use super::{
    Artifact, ArtifactSpec, BySchedule, CacheSpec, EndReason, JobState, LeaseState, LogCursor,
    Progress, Timings,
};
use crate::lease::schema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::{IntoParams, ToSchema};

/// Jobs that are handed in together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewRun {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[^\\x00]+$")]
    pub name: Option<String>,
    /// The group of runs of which one at a time is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Its jobs.
    #[schema(min_items = 1, max_items = 1000)]
    pub jobs: Vec<JobSpec>,
}

/// A group of runs, or of jobs, of which one at a time is worked on: the others wait in the queue,
/// in the order in which they came to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Concurrency {
    /// Its name. Groups of runs and groups of jobs are apart.
    #[schema(min_length = 1, max_length = 128, pattern = "^[^\\x00]+$")]
    pub group: String,
    /// Cancels those of the group that came before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_in_progress: bool,
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
    /// Jobs of the run, by name, that must end before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::JobName>, max_items = 1000)]
    pub needs: Vec<String>,
    /// Jobs of other runs, by id, whose artifacts belong below `workdir` before the first step, as
    /// those of `needs` do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::Id>, max_items = 1000)]
    pub artifacts_of: Vec<String>,
    /// Upon what ends of `needs` it runs; otherwise it is SKIPPED [default: `success`].
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub run_if: Option<RunIf>,
    /// Jobs that need it run although it fails or times out, and its run counts it as succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
    /// The group of jobs, of any run, of which one at a time is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// Names of the values that it hands to jobs that need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<schema::OutputName>, max_items = 64)]
    pub outputs: Vec<String>,
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
    /// A text with results of needed jobs in it, which the server replaces in the grant:
    /// `${{ needs.JOB.outputs.NAME }}` and `${{ needs.JOB.result }}`.
    FromNeeds {
        /// The text.
        from_needs: String,
    },
}

/// Shows no secret.
impl fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(value) => f.debug_tuple("Plain").field(value).finish(),
            Self::Secret { .. } => f.write_str("Secret(..)"),
            Self::FromNeeds { from_needs } => f.debug_tuple("FromNeeds").field(from_needs).finish(),
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
    /// The pause before the second attempt; it doubles before each further one, up to an hour
    /// [default: none].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3600)]
    pub backoff_seconds: Option<u64>,
}

/// Upon what ends of the jobs that it needs a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunIf {
    /// Every one succeeded, or was allowed to fail.
    Success,
    /// All have ended, and one failed, directly or through a job that was skipped for it.
    Failure,
    /// All have ended.
    Always,
}

/// As run files have it.
impl fmt::Display for RunIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success()",
            Self::Failure => "failure()",
            Self::Always => "always()",
        })
    }
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
    /// The group of runs of which one at a time is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The schedule that handed it in, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_schedule: Option<BySchedule>,
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
    /// The schedule that handed it in, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_schedule: Option<BySchedule>,
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
    /// Its run counts it as succeeded where it fails or times out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_failure: bool,
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
    /// Why it is not granted yet, where it waits for no other job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_queued: Option<String>,
    /// When it joins the queue for its next attempt, where it pauses before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<String>,
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

/// A state that a job or its lease has entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobEvent {
    /// When.
    pub at: String,
    /// In which attempt; 0 before the first.
    pub attempt: u32,
    /// What the job is in since.
    pub state: JobState,
    /// What the attempt's lease is in since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_state: Option<LeaseState>,
}

/// A runner that has asked for work since the server started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerSummary {
    /// Its id.
    pub runner_id: String,
    /// What it is capable of, as it said when it asked last.
    pub capabilities: Vec<String>,
    /// When it asked for work last.
    pub asked_at: String,
    /// When it made its last request.
    pub seen_at: String,
    /// Whether it waits for work.
    pub waits: bool,
    /// The job that it holds the lease of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobSummary>,
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
    /// When its holder acked it, by the holder's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_accepted_at: Option<String>,
    /// When its holder sent the last heartbeat that says so, by the holder's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_heartbeat_at: Option<String>,
    /// How much of the log its holder had sent, by the last heartbeat that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cursor: Option<LogCursor>,
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
    /// What it handed to jobs that need it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
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
    /// Whether a runner of this name that is at work loses its token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// A token that was made. It is told this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Whose it is. What it had before is good no more.
    pub runner_id: String,
    /// Which of the runner's tokens it is: no secret.
    pub token_id: String,
    /// The token: a secret.
    pub token: String,
}

/// Which of a runner's tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct TokenQuery {
    /// Only this one, by its `token_id` [default: the one that is good].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    pub token_id: Option<String>,
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
    /// How long after a job's time uploads and one completion are taken.
    #[serde(default)]
    pub grace_seconds: u64,
    /// How often a job is granted where it does not say.
    pub max_attempts: u32,
}

/// Whether the server accepts changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Whether it does.
    pub ok: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unhealthy>,
}

/// Why a server accepts no changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Unhealthy {
    /// Its disk is full: it goes on once there is space.
    NoSpace,
    /// They cannot be written; its log says why.
    WritesFail,
    /// It ends.
    Stopped,
}
