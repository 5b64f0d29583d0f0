//! Messages of runners and the answers to them, as in Delta CI.

use super::{
    AckLeaseAckTag, AckLeaseTag, ArtifactStoredTag, AwaitCancelTag, CacheStoredTag,
    CancelAckAckTag, CancelAckTag, CancelRequestedTag, CompleteAckTag, CompleteTag, EndReason,
    HeartbeatAckTag, HeartbeatTag, LeaseGrantedTag, LeaseTag, LogAckTag, StaleLeaseTag,
    StaleReason, schema,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// An RFC 3339 time by the client's clock: stored, but it decides nothing.
pub type ClientTime = String;

/// A runner asks for work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseRequest {
    /// `Lease`.
    #[serde(rename = "type", default)]
    pub tag: LeaseTag,
    /// Id of the runner.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// Its capabilities, such as `linux` or `x86_64`.
    #[serde(default)]
    #[schema(value_type = Vec<schema::Capability>, max_items = 32)]
    pub capabilities: Vec<String>,
    /// How long to wait for work, in seconds.
    #[serde(default)]
    #[schema(maximum = 30)]
    pub wait_seconds: u64,
}

/// A lease and its job.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseGranted {
    /// `LeaseGranted`.
    #[serde(rename = "type", default)]
    pub tag: LeaseGrantedTag,
    /// Id of the job.
    pub job_id: String,
    /// Id of the job's run.
    pub run_id: String,
    /// The fencing token: a secret.
    pub lease_id: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// How long the lease lasts without a heartbeat, in seconds.
    pub lease_ttl_seconds: u64,
    /// Interval at which to send heartbeats, in seconds.
    pub heartbeat_interval_seconds: u64,
    /// Time limit of the job from the ack on, in seconds.
    pub max_runtime_seconds: u64,
    /// How long after that limit uploads and one completion are still accepted, in seconds.
    #[serde(default)]
    pub grace_seconds: u64,
    /// The job to run.
    pub job_spec: GrantedSpec,
}

/// Hides the lease and the job's environment.
impl std::fmt::Debug for LeaseGranted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseGranted")
            .field("job_id", &self.job_id)
            .field("run_id", &self.run_id)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// A job as its runner gets it, with all values of its environment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantedSpec {
    /// Its name in its run.
    pub name: String,
    /// Working directory of the steps, relative to the job's directory.
    pub workdir: String,
    /// Image to run the steps in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Commands for `sh -c`, one after the other.
    pub steps: Vec<String>,
    /// Environment of the steps.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of the values to mask in logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<String>,
    /// Names of jobs of the same run and ids of jobs of other runs. Their artifacts are to be
    /// placed below `workdir` before the first step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Names that the completion's `outputs` may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Files to store as artifacts.
    #[serde(default)]
    pub artifacts: Vec<ArtifactSpec>,
    /// Folders to restore before the job and to store after it.
    #[serde(default)]
    pub caches: Vec<CacheSpec>,
}

/// An artifact of a job that the lease's job needs, from that job's last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NeededArtifact {
    /// Name or id of the job, as in `needs` of the grant.
    pub job: String,
    /// Name of the artifact: a path relative to the job's `workdir`.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Files to store as artifacts of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactSpec {
    /// Type of the files, such as `junit`.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 64, pattern = "^[^\\x00]+$")]
    pub kind: String,
    /// Pattern of the files, relative to the working directory, such as `**/*.xml`.
    #[schema(value_type = schema::RelativePath)]
    pub path_glob: String,
}

/// Folders that jobs with the same key share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheSpec {
    /// Type of the folders, such as `deps`.
    #[serde(rename = "type", default)]
    #[schema(max_length = 64, pattern = "^[^\\x00]*$")]
    pub kind: String,
    /// Key of the cache.
    #[schema(min_length = 1, max_length = 512, pattern = "^[^\\x00]+$")]
    pub key: String,
    /// Folders, relative to the working directory or below `~/`, the job's own home.
    #[schema(value_type = Vec<schema::CachePath>, min_items = 1, max_items = 32)]
    pub paths: Vec<String>,
}

/// A runner accepts a lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AckLease {
    /// `AckLease`.
    #[serde(rename = "type", default)]
    pub tag: AckLeaseTag,
    /// Id of the lease's job.
    #[schema(value_type = schema::Id)]
    pub job_id: String,
    /// Id of the lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Id of the runner that holds it.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// When the runner accepted it, by the runner's clock.
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
    /// Id of the lease.
    pub lease_id: String,
    /// Always true.
    pub accepted: bool,
}

/// A runner renews its lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Heartbeat {
    /// `Heartbeat`.
    #[serde(rename = "type", default)]
    pub tag: HeartbeatTag,
    /// Id of the lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Id of the runner that holds it.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// Progress of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// How much of the log has been sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cursor: Option<LogCursor>,
    /// When the heartbeat was sent, by the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub ts: Option<ClientTime>,
}

/// The progress of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Percentage, from 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub percent: Option<u8>,
    /// The current step, as in the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub current_step: Option<String>,
    /// Index of the step, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 4_294_967_295_i64)]
    pub step_index: Option<u32>,
    /// A message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 65536)]
    pub message: Option<String>,
}

/// How much of a log has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogCursor {
    /// Length in bytes.
    #[schema(maximum = 9_007_199_254_740_991_i64)]
    pub bytes_sent: u64,
}

/// The answer to a [`Heartbeat`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAck {
    /// `HeartbeatAck`.
    #[serde(rename = "type", default)]
    pub tag: HeartbeatAckTag,
    /// Id of the lease.
    pub lease_id: String,
    /// Always true.
    pub extend_lease: bool,
    /// How long the lease lasts from now on, in seconds.
    pub new_lease_ttl_seconds: u64,
    /// Whether the runner must stop the job.
    pub cancel_requested: bool,
    /// How long the runner has to stop it, in seconds.
    pub cancel_deadline_seconds: u64,
    /// How long uploads and the completion are still accepted, in seconds, if the job's time is
    /// over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_left_seconds: Option<u64>,
}

/// A runner waits for a request to cancel its job.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AwaitCancel {
    /// `AwaitCancel`.
    #[serde(rename = "type", default)]
    pub tag: AwaitCancelTag,
    /// Id of the lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Id of the runner that holds it.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// How long to wait, in seconds.
    #[serde(default)]
    #[schema(maximum = 30)]
    pub wait_seconds: u64,
}

/// The runner must stop the job.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelRequested {
    /// `CancelRequested`.
    #[serde(rename = "type", default)]
    pub tag: CancelRequestedTag,
    /// Id of the lease.
    pub lease_id: String,
    /// Id of the lease's job.
    pub job_id: String,
    /// The reason for the request.
    pub reason: EndReason,
    /// How long the runner has to stop it, in seconds.
    pub deadline_seconds: u64,
    /// When the server sent this.
    pub ts: String,
}

/// How a job ended, as its runner reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CompleteStatus {
    /// All steps succeeded.
    Succeeded,
    /// A step failed, or the job could not run.
    Failed,
}

/// A runner reports how the job ended.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Complete {
    /// `Complete`.
    #[serde(rename = "type", default)]
    pub tag: CompleteTag,
    /// Id of the lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Id of the runner that holds it.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// How the job ended.
    pub status: CompleteStatus,
    /// Whether the runner stopped the job because its time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Exit code of the step that ended the job [default: 0 if the job succeeded].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -2_147_483_648, maximum = 2_147_483_647)]
    pub exit_code: Option<i32>,
    /// When the job began and ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// When the job began, if `timings` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub started_at: Option<ClientTime>,
    /// When the job ended, if `timings` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub finished_at: Option<ClientTime>,
    /// Artifacts of the attempt.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub artifacts: Vec<Artifact>,
    /// Values for the jobs that need this one. Names that the job does not declare are ignored.
    /// Names and values have at most 16 KiB together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = schema::Outputs)]
    pub outputs: BTreeMap<String, String>,
    /// A summary for people.
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

/// An artifact of a job and its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// Type of the artifact, such as `log`.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 64, pattern = "^[^\\x00]+$")]
    pub kind: String,
    /// Its address; relative to the server's address if it begins with `/`.
    #[schema(min_length = 1, max_length = 2048, pattern = "^[^\\x00]+$")]
    pub uri: String,
}

/// The answer to a [`Complete`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompleteAck {
    /// `CompleteAck`.
    #[serde(rename = "type", default)]
    pub tag: CompleteAckTag,
    /// Id of the lease.
    pub lease_id: String,
    /// Always true.
    pub accepted: bool,
}

/// The only way in which a job with a cancel request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum FinalStatus {
    /// The job was stopped.
    #[serde(rename = "CANCELED")]
    Canceled,
}

/// A runner has stopped a job with a cancel request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelAck {
    /// `CancelAck`.
    #[serde(rename = "type", default)]
    pub tag: CancelAckTag,
    /// Id of the lease.
    #[schema(value_type = schema::Id)]
    pub lease_id: String,
    /// Id of the runner that holds it.
    #[schema(value_type = schema::RunnerId)]
    pub runner_id: String,
    /// `CANCELED`.
    pub final_status: FinalStatus,
    /// When the job was stopped, by the runner's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Time>)]
    pub ts: Option<ClientTime>,
    /// Artifacts of the attempt.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub artifacts: Vec<Artifact>,
    /// A summary for people.
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
    /// Id of the lease.
    pub lease_id: String,
    /// Always true.
    pub accepted: bool,
}

/// Position of bytes in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogOffset {
    /// Offset of the first byte. Bytes that the log already has are skipped.
    pub offset: u64,
}

/// A piece of a log was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogAck {
    /// `LogAck`.
    #[serde(rename = "type", default)]
    pub tag: LogAckTag,
    /// Length of the log, in bytes.
    pub bytes: u64,
    /// Whether the runner must stop the job.
    #[serde(default)]
    pub cancel_requested: bool,
    /// How long the runner has to stop it, in seconds.
    #[serde(default)]
    pub cancel_deadline_seconds: u64,
}

/// An artifact was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactStored {
    /// `ArtifactStored`.
    #[serde(rename = "type", default)]
    pub tag: ArtifactStoredTag,
    /// The address to name in the completion.
    pub uri: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A cache was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheStored {
    /// `CacheStored`.
    #[serde(rename = "type", default)]
    pub tag: CacheStoredTag,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The lease is dead.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaleLease {
    /// `StaleLease`.
    #[serde(rename = "type", default)]
    pub tag: StaleLeaseTag,
    /// The lease id of the request.
    pub lease_id: String,
    /// The reason why it is dead.
    pub reason: StaleReason,
    /// False in the answer to a heartbeat; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extend_lease: Option<bool>,
    /// True in the answer to a heartbeat; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
}
