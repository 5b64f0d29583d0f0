//! What jobs, runs and runners' tokens are to whoever hands jobs in.

use super::{
    Artifact, ArtifactSpec, CacheSpec, EndReason, JobState, LeaseState, Progress, Timings,
};
use crate::lease::schema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Jobs that are handed in together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewRun {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128, pattern = "^[^\\x00]+$")]
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
