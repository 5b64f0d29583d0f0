//! What runners say, and what they are answered: Delta CI's messages.

use super::{
    AckLeaseAckTag, AckLeaseTag, ArtifactStoredTag, AwaitCancelTag, CacheStoredTag,
    CancelAckAckTag, CancelAckTag, CancelRequestedTag, CompleteAckTag, CompleteTag, EndReason,
    HeartbeatAckTag, HeartbeatTag, LeaseGrantedTag, LeaseTag, LogAckTag, StaleLeaseTag,
    StaleReason,
};
use crate::lease::schema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

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
    /// How long after that uploads and one completion are taken.
    #[serde(default)]
    pub grace_seconds: u64,
    /// What to do.
    pub job_spec: GrantedSpec,
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
    /// Jobs of the run by name, and of other runs by id, whose artifacts belong below `workdir`
    /// before the first step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Names of the values that its completion may have as `outputs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Files to keep.
    #[serde(default)]
    pub artifacts: Vec<ArtifactSpec>,
    /// Folders to bring along and to keep.
    #[serde(default)]
    pub caches: Vec<CacheSpec>,
}

/// An artifact of a job that the bearer of a lease needs: of its last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NeededArtifact {
    /// The job, as `needs` of the grant has it.
    pub job: String,
    /// The artifact's name: a path from the job's `workdir` on.
    pub name: String,
    /// Its length.
    pub bytes: u64,
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
    #[schema(maximum = 4_294_967_295_i64)]
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
    #[schema(maximum = 9_007_199_254_740_991_i64)]
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
    /// How long uploads and the completion are still taken, where the job's time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_left_seconds: Option<u64>,
}

/// A runner waits for a request to cancel its job.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AwaitCancel {
    /// `AwaitCancel`.
    #[serde(rename = "type", default)]
    pub tag: AwaitCancelTag,
    /// The lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Its holder.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// How long to wait, in seconds.
    #[serde(default)]
    #[schema(maximum = 30)]
    pub wait_seconds: u64,
}

/// The job is to be stopped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelRequested {
    /// `CancelRequested`.
    #[serde(rename = "type", default)]
    pub tag: CancelRequestedTag,
    /// The lease.
    pub lease_id: String,
    /// Its job.
    pub job_id: String,
    /// Why.
    pub reason: EndReason,
    /// How long there is to stop it.
    pub deadline_seconds: u64,
    /// When the server sent this.
    pub ts: String,
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
    /// Whether the runner stopped it because its time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The exit code of the step that ended it [default: 0 of a job that succeeded].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -2_147_483_648, maximum = 2_147_483_647)]
    pub exit_code: Option<i32>,
    /// When it began and ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// When it began, where `timings` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub started_at: Option<ClientTime>,
    /// When it ended, where `timings` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub finished_at: Option<ClientTime>,
    /// What it left behind.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub artifacts: Vec<Artifact>,
    /// What it hands to jobs that need it; other names than the job's own are left out. Names and
    /// values have 16 KiB at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::Outputs)]
    pub outputs: BTreeMap<String, String>,
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
    /// Whether the job is to be stopped.
    #[serde(default)]
    pub cancel_requested: bool,
    /// How long there is to stop it.
    #[serde(default)]
    pub cancel_deadline_seconds: u64,
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

/// The lease is dead.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaleLease {
    /// `StaleLease`.
    #[serde(rename = "type", default)]
    pub tag: StaleLeaseTag,
    /// The lease, as the request had it.
    pub lease_id: String,
    /// Why.
    pub reason: StaleReason,
    /// False, where a heartbeat is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extend_lease: Option<bool>,
    /// True, where a heartbeat is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
}
