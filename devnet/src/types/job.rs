//! Jobs, the draws of their runners, and the most recently used runners.

use super::{AddressText, AmountText, BytesText, HashText, TimeText};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use utoipa::{IntoParams, ToSchema};

/// The status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum JobStatus {
    /// Recorded, and waits for enough candidates.
    Pending,
    /// Its runners have been drawn.
    Assigned,
    /// Some of the committee have committed to their results.
    Running,
    /// No more commitments are accepted; results are being revealed.
    Committed,
    /// Its verified result is final.
    Verified,
    /// Ended without a result; the escrow was returned.
    Failed,
    /// Cancelled by its submitter; the escrow was returned.
    Cancelled,
}

impl JobStatus {
    /// Every status, in the order jobs go through them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Assigned,
        Self::Running,
        Self::Committed,
        Self::Verified,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Whether no other status can follow.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Verified | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "Pending",
            Self::Assigned => "Assigned",
            Self::Running => "Running",
            Self::Committed => "Committed",
            Self::Verified => "Verified",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        })
    }
}

impl FromStr for JobStatus {
    type Err = super::ParseError;

    /// Ignores case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| super::ParseError {
                got: text.to_owned(),
                expected: "a job status: Pending, Assigned, Running, Committed, Verified, Failed or \
                           Cancelled",
            })
    }
}

/// Which jobs `GET /v1/jobs` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// Only jobs with this status.
    #[param(inline)]
    pub status: Option<JobStatus>,
    /// Only jobs of this kind: `custom`, `http`, `llm`, `mcp` or `eth_send`.
    pub kind: Option<String>,
    /// Only jobs of this account: a name or an address.
    pub submitter: Option<String>,
    /// Only jobs whose last committee has this runner: a name or an address.
    pub runner: Option<String>,
    /// The maximum number of jobs (default 100, at most 10,000).
    pub limit: Option<usize>,
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    /// Its identifier.
    pub job_id: HashText,
    /// Its name, where it was given one.
    pub name: Option<String>,
    /// Its kind: `llm`, `http`, `mcp`, `eth_send` or `custom`.
    pub kind: String,
    /// The account that submitted it.
    pub submitter: AddressText,
    /// That account's name, where the devnet knows one.
    pub submitter_name: Option<String>,
    /// Its status.
    pub status: JobStatus,
    /// The runners drawn last, in draw order.
    pub committee: Vec<String>,
    /// The height that recorded it.
    pub submitted_at: u64,
    /// The height that made it final; absent before.
    pub final_at: Option<u64>,
}

/// A job with its parameters and events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its identifier.
    pub job_id: HashText,
    /// Its name, where it was given one.
    pub name: Option<String>,
    /// Its kind: `llm`, `http`, `mcp`, `eth_send` or `custom`.
    pub kind: String,
    /// The account that submitted it.
    pub submitter: AddressText,
    /// That account's name, where the devnet knows one.
    pub submitter_name: Option<String>,
    /// Its status.
    pub status: JobStatus,
    /// The runners drawn last, in draw order; empty before the first draw.
    pub committee: Vec<String>,
    /// The addresses of the committee, in the same order.
    pub committee_addresses: Vec<AddressText>,
    /// The number of draws so far.
    pub attempts: u32,
    /// The verified result; absent before.
    pub result: Option<BytesText>,
    /// The result as text, if it is UTF-8.
    pub result_text: Option<String>,
    /// The runner that produced the result.
    pub runner: Option<String>,
    /// The maximum that the submitter pays, in wei.
    pub max_price: AmountText,
    /// The amount paid to runners, in wei; absent before it is final.
    pub paid: Option<AmountText>,
    /// The height that recorded it.
    pub submitted_at: u64,
    /// The height of the last draw; absent before the first.
    pub assigned_at: Option<u64>,
    /// The height at which the current attempt ends.
    pub deadline: u64,
    /// The height that made it final; absent before.
    pub final_at: Option<u64>,
    /// From the recording block's timestamp to the final block's, in milliseconds; absent before.
    pub latency_ms: Option<u64>,
    /// Why it failed; absent unless it did.
    pub error: Option<String>,
    /// The job's parameters, byte strings as text.
    #[schema(value_type = Object)]
    pub spec: serde_json::Value,
    /// The events about it, in order.
    pub events: Vec<JobEvent>,
    /// The progress of its runners while it is open, as each last reported it over a connection to
    /// a validator of this devnet. These reports are live, not part of the chain and not verified;
    /// a runner that polls sends none.
    #[serde(default)]
    pub progress: Vec<RunnerProgress>,
}

/// A runner's report of its progress with a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerProgress {
    /// The runner.
    pub runner: String,
    /// The percentage done, from 0 to 100; 0 when the runner cannot tell.
    pub percent: u16,
    /// The current activity, in the runner's words; absent when it reports none.
    pub detail: Option<String>,
    /// The height at that time of the validator that received the report.
    pub height: u64,
}

/// The dispatch of a job by one validator to one runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDispatch {
    /// The validator.
    pub validator: String,
    /// The runner.
    pub runner: String,
    /// The block that assigned the job.
    pub assigned_at: u64,
    /// The outcome: `waiting` until the runner answers; `accepted`, and then `done` once it has
    /// delivered the result, a commitment or a failure report; `duplicate` when the runner has the
    /// job from another validator; the reason of a rejection; `no_ack` for a frame that is not an
    /// answer; `silent` when no answer came in time.
    pub outcome: String,
    /// From the dispatch to the runner's answer, in milliseconds; absent without an answer.
    pub answered_ms: Option<u64>,
    /// From the dispatch to the runner's first report that it works on the job, in milliseconds;
    /// absent when it reported nothing to this validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// From the dispatch to the end of an accepted job, in milliseconds.
    pub done_ms: Option<u64>,
}

/// An event about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobEvent {
    /// The block's height.
    pub height: u64,
    /// The event's name, as `JobAssigned`.
    pub event: String,
    /// When the block was proposed.
    pub timestamp: TimeText,
    /// The event's own fields.
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

/// A job's verified result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobResult {
    /// The job.
    pub job_id: HashText,
    /// The runner that produced the result.
    pub runner: String,
    /// The runner's address.
    pub runner_address: AddressText,
    /// The bytes.
    pub result: BytesText,
    /// The bytes as text, if they are UTF-8.
    pub result_text: Option<String>,
    /// The height that made it final.
    pub final_at: u64,
}

/// An explanation of how a job's runners were drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The job.
    pub job_id: HashText,
    /// The block that drew; before the first draw, the last one that tried.
    pub height: u64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The number of runners that the job wants.
    pub wanted: u32,
    /// The number of registered runners that passed the filters.
    pub passed: u32,
    /// The current status of the job.
    pub status: JobStatus,
    /// The last block of the attempt that the job is in, or ended in.
    pub deadline: u64,
    /// Every runner of the registry, in its order.
    pub candidates: Vec<Candidate>,
    /// The parent block's hash.
    pub block_hash: HashText,
    /// The source of the seed; a later attempt derives its seed from the first attempt's. Absent in
    /// recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_source: Option<SeedSource>,
    /// The seed of the draw.
    pub seed: HashText,
    /// The migration phase of the draw: `shadow`, `hot-path` or `sunset`. Absent in recordings of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The P(h) that the draw read; absent: none was recent enough, and no runner counted as
    /// present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<PresenceRead>,
    /// The submitter's live MRU runner, which draw 0 favours with a multiplied weight.
    pub mru: Option<String>,
    /// The MRU record that the draw read, even if it had expired; absent if there was no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mru_record: Option<MruRead>,
    /// The single draws; empty while there are too few candidates.
    pub draws: Vec<Draw>,
    /// The Merkle root of the surviving candidates, as stored with the job.
    pub candidates_root: Option<HashText>,
    /// Runners that have told a validator of this devnet that for now they cannot do work that the
    /// job needs. This is live and not part of the chain.
    #[serde(default)]
    pub withdrawn: Vec<Withdrawal>,
    /// The results of the same votes, seed and MRU record under each threshold rule, and without
    /// the presence filter. Empty when the votes are no longer kept.
    #[serde(default)]
    pub under_other_rules: Vec<UnderRule>,
}

/// The abilities that a runner has withdrawn for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Withdrawal {
    /// The runner.
    pub runner: String,
    /// The labels of these abilities, as `llm:small`.
    pub labels: Vec<String>,
}

/// The source of a draw's seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeedSource {
    /// `parent`: the parent block's hash. `certificate`: the newest certificate embedded in the
    /// parent or in a block before it, or the parent's hash while there was no certificate.
    pub rule: String,
    /// The block that the certificate certifies; absent: the seed is made from the parent's hash.
    pub certificate_of: Option<u64>,
    /// The certificate's input to the seed: a hash over its votes' signatures.
    pub digest: Option<HashText>,
}

/// The P(h) that a draw read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceRead {
    /// h: the block that the votes are on.
    pub height: u64,
    /// Blocks from h to the parent of the block that drew.
    pub age: u64,
    /// The hash of block h, the certified block; absent, as are `votes` and `embedded_in`, when the
    /// certificate is no longer kept.
    pub block_hash: Option<HashText>,
    /// The number of votes in the certificate.
    pub votes: Option<u32>,
    /// The block that embeds the certificate.
    pub embedded_in: Option<u64>,
    /// How votes become presence: `committee`, `quorum` or `subset`.
    pub rule: String,
}

/// The MRU record that a draw read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MruRead {
    /// The runner.
    pub runner: String,
    /// The runner's address.
    pub runner_address: AddressText,
    /// The height that set it.
    pub set_at: u64,
    /// Blocks from then to the block that drew.
    pub age: u64,
    /// The number of blocks for which it counts.
    pub ttl_blocks: u64,
    /// The factor of the runner's weight in draw 0.
    pub multiplier: u64,
    /// Whether the factor was applied: the record was live, and its runner a candidate.
    pub applied: bool,
}

/// The result that a draw would have had under another rule of presence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnderRule {
    /// `committee`, `quorum` or `subset`: the threshold rule. `shadow`: no runner is dropped for
    /// being absent, as in that phase; the other filters are those of the draw's phase.
    pub rule: String,
    /// Whether the draw was made under this rule.
    pub in_force: bool,
    /// The registered runners that would have been present, in registry order.
    pub present: Vec<String>,
    /// The runners that would have been drawn, in draw order; empty: the job would have waited.
    pub committee: Vec<String>,
    /// Whether these are the runners that were drawn.
    pub same: bool,
}

/// The draw that `GET /v1/jobs/{id}/explain` explains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExplanationQuery {
    /// The attempt, from 1 (default: the last).
    pub attempt: Option<u32>,
}

/// A registered runner and the result of its filters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Candidate {
    /// The runner.
    pub runner: String,
    /// The runner's address.
    pub address: AddressText,
    /// The first filter that dropped it, as `presence`; absent for a survivor.
    pub filter: Option<String>,
    /// The reason in words; absent for a survivor.
    pub reason: Option<String>,
    /// Its weight by stake; absent when it was dropped.
    pub weight: Option<u64>,
    /// Its weight in draw 0, multiplied for the MRU runner. Absent when it was dropped, and in
    /// recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_weight: Option<u64>,
    /// Its stake as of the parent block, in wei, which determines its weight. Absent in recordings
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stake: Option<AmountText>,
}

/// The draw of one runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Draw {
    /// Its number, from 0.
    pub draw: u64,
    /// The drawn point, below `total`.
    pub r: u64,
    /// The sum of the weights still in the draw.
    pub total: u64,
    /// The runner whose weight covers the point.
    pub picked: String,
    /// That runner's address.
    pub picked_address: AddressText,
}

/// The open jobs assigned to a runner, as it polls them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolledJobs {
    /// The newest block of the validator that answers.
    pub height: u64,
    /// The migration phase of the next block: `shadow` or `hot-path`.
    pub phase: String,
    /// The jobs, in the order of their assignment.
    pub jobs: Vec<PolledJob>,
    /// Whether there are more, which are listed once these are done.
    pub more: bool,
}

/// A job as a runner polls it, with the contents of its `JobAssignment` frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolledJob {
    /// Its identifier.
    pub job_id: HashText,
    /// The frame's `job_spec`, deterministic CBOR.
    pub spec: BytesText,
    /// The height that assigned it.
    pub assigned_at: u64,
    /// The last block whose results count.
    pub deadline_block: u64,
    /// The next step that the chain expects from this runner.
    pub wants: Wanted,
    /// The proof that the chain assigns it to this runner, in the format of docs/proofs.md. Absent
    /// when one more block is needed to prove it, or when the runner need not do the work.
    pub proof: Option<BytesText>,
}

/// The next step that the chain expects from a runner with an assigned job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// The result: the runner does the job alone.
    Result,
    /// A commitment to the result, because the job has a committee.
    Commitment,
    /// The result to which the runner has committed.
    Reveal,
    /// Nothing for now: other members of the committee have yet to commit, or everything has
    /// arrived, or the runner has reported that it cannot do the job.
    Nothing,
}

/// A runner's commitment to its result of a job with a committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitRequest {
    /// The job.
    pub job_id: HashText,
    /// keccak256(result ‖ the runner's signature over it).
    pub commitment: HashText,
    /// The runner's signature, as in its `JobCommit` frame: 65 bytes.
    pub runner_signature: BytesText,
}

/// A runner's report that it cannot do a job assigned to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureRequest {
    /// The job.
    pub job_id: HashText,
    /// The reason, for people: at most 256 bytes.
    pub reason: String,
    /// The runner's signature, as in its `JobFailure` frame: 65 bytes.
    pub runner_signature: BytesText,
}

/// A runner's result of a job assigned to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRequest {
    /// The job.
    pub job_id: HashText,
    /// The result.
    pub result: BytesText,
    /// The runner's signature, as in its `JobResult` frame: 65 bytes.
    pub runner_signature: BytesText,
}

/// A validator accepted the result, the commitment or the report and submits it to the chain,
/// unless it has done so before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResultAccepted {
    /// The job.
    pub job_id: HashText,
}

/// The most recently used runner of a submitter for a kind of job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MruRecord {
    /// The account that submits.
    pub submitter: AddressText,
    /// That account's name, where the devnet knows one.
    pub submitter_name: Option<String>,
    /// The kind of job: `llm`, `http`, `mcp`, `eth_send` or `custom`.
    pub kind: String,
    /// The runner.
    pub runner: String,
    /// The runner's address.
    pub runner_address: AddressText,
    /// The height that set it.
    pub set_at: u64,
    /// The last height at which it counts.
    pub expires_at: u64,
    /// Whether it counts now.
    pub live: bool,
}
