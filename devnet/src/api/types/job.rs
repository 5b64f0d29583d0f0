//! Jobs, how their runners were drawn, and the most recently used runners.

use super::{AddressText, AmountText, BytesText, HashText, TimeText};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use utoipa::{IntoParams, ToSchema};

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum JobStatus {
    /// Recorded; waits for enough candidates.
    Pending,
    /// Drawn.
    Assigned,
    /// Of a committee, some have committed to their results.
    Running,
    /// No more commitments count; results are being revealed.
    Committed,
    /// Its verified result is final.
    Verified,
    /// Ended without a result; the escrow went back.
    Failed,
    /// Taken back by its submitter; the escrow went back.
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

    /// Whether nothing follows it.
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

    /// Any case.
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
    /// Only jobs that stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub status: Option<JobStatus>,
    /// Only jobs of this kind: `custom`, `http`, `llm`, `mcp` or `eth_send`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only jobs of this account: a name or an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter: Option<String>,
    /// Only jobs whose last committee has this runner: a name or an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// How many at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    /// Its identifier.
    pub job_id: HashText,
    /// Its name, where it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its kind: `llm`, `http`, `mcp`, `eth_send` or `custom`.
    pub kind: String,
    /// The account that submitted it.
    pub submitter: AddressText,
    /// That account's name, where the devnet knows one.
    pub submitter_name: Option<String>,
    /// Where it stands.
    pub status: JobStatus,
    /// The runners drawn last, in draw order.
    pub committee: Vec<String>,
    /// The height that recorded it.
    pub submitted_at: u64,
    /// The height that made it final; absent before.
    pub final_at: Option<u64>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its identifier.
    pub job_id: HashText,
    /// Its name, where it was given one.
    #[serde(default)]
    pub name: Option<String>,
    /// Its kind: `llm`, `http`, `mcp`, `eth_send` or `custom`.
    pub kind: String,
    /// The account that submitted it.
    pub submitter: AddressText,
    /// That account's name, where the devnet knows one.
    pub submitter_name: Option<String>,
    /// Where it stands.
    pub status: JobStatus,
    /// The runners drawn last, in draw order; empty before the first draw.
    pub committee: Vec<String>,
    /// Their addresses, in the same order.
    pub committee_addresses: Vec<AddressText>,
    /// How many draws there were.
    pub attempts: u32,
    /// The verified result; absent before.
    pub result: Option<BytesText>,
    /// The result as text, where it is UTF-8.
    pub result_text: Option<String>,
    /// The runner whose result it is.
    pub runner: Option<String>,
    /// What the submitter pays at most.
    pub max_price: AmountText,
    /// What was paid to runners; absent before it is final.
    pub paid: Option<AmountText>,
    /// The height that recorded it.
    pub submitted_at: u64,
    /// The height of the last draw; absent before the first.
    pub assigned_at: Option<u64>,
    /// The height at which the current attempt ends.
    pub deadline: u64,
    /// The height that made it final; absent before.
    pub final_at: Option<u64>,
    /// From the recording block's timestamp to the final block's; absent before.
    pub latency_ms: Option<u64>,
    /// Why it failed; absent unless it did.
    pub error: Option<String>,
    /// The job's parameters, byte strings as text.
    #[schema(value_type = Object)]
    pub spec: serde_json::Value,
    /// What happened to it, in order.
    pub events: Vec<JobEvent>,
    /// How far its runners are while it is open, as each said last over a connection to a validator
    /// of this devnet. It is live, no part of the chain, and nobody checks it; a runner that polls
    /// says nothing.
    #[serde(default)]
    pub progress: Vec<RunnerProgress>,
}

/// How far a runner says that it is with a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerProgress {
    /// The runner.
    pub runner: String,
    /// Done, from 0 to 100; 0 where it cannot tell.
    pub percent: u16,
    /// What is being done, in the runner's words; absent where it says nothing.
    pub detail: Option<String>,
    /// The height of the validator that was told, at that time.
    pub height: u64,
}

/// A job, as one validator dispatched it to one runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDispatch {
    /// The validator.
    pub validator: String,
    /// The runner.
    pub runner: String,
    /// The block that assigned the job.
    pub assigned_at: u64,
    /// How it went: `waiting` until the runner answers; `accepted`, and then `done` once the
    /// result, a commitment or word that there will be none was delivered; `duplicate` where the
    /// runner has the job from another validator; the reason of a rejection; `no_ack` for a frame
    /// that answers nothing; `silent` for none in time.
    pub outcome: String,
    /// From the dispatch to the runner's answer, in milliseconds; absent where there was none.
    pub answered_ms: Option<u64>,
    /// From the dispatch to the runner's first word that it works on the job, in milliseconds;
    /// absent where it said nothing to this validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// From the dispatch to the end of an accepted one, in milliseconds.
    pub done_ms: Option<u64>,
}

/// Something that happened to a job.
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
    /// The runner whose result it is.
    pub runner: String,
    /// The runner's address.
    pub runner_address: AddressText,
    /// The bytes.
    pub result: BytesText,
    /// The bytes as text, where they are UTF-8.
    pub result_text: Option<String>,
    /// The height that made it final.
    pub final_at: u64,
}

/// How a job's runners were drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The job.
    pub job_id: HashText,
    /// The block that drew; where there was no draw yet, the last one that tried.
    pub height: u64,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How many runners the job wants.
    pub wanted: u32,
    /// How many of the registry's passed the filters.
    pub passed: u32,
    /// Where the job stands now.
    pub status: JobStatus,
    /// The last block of the attempt that the job is in, or ended in.
    pub deadline: u64,
    /// Every runner of the registry, in its order.
    pub candidates: Vec<Candidate>,
    /// The parent block's hash.
    pub block_hash: HashText,
    /// What the seed is made of: of a first attempt directly, of a later one by way of the first
    /// attempt's seed. Absent in recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_source: Option<SeedSource>,
    /// The seed of the draw.
    pub seed: HashText,
    /// The migration phase that it was drawn in: `shadow`, `hot-path` or `sunset`. Absent in
    /// recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The P(h) that said who is present; absent: none was recent enough, and no runner was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<PresenceRead>,
    /// The submitter's live MRU runner, whose weight is multiplied in draw 0.
    pub mru: Option<String>,
    /// The MRU record that the draw read, also one past its time; absent: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mru_record: Option<MruRead>,
    /// The draws; empty while there are too few candidates.
    pub draws: Vec<Draw>,
    /// The Merkle root of the surviving candidates, as stored with the job.
    pub candidates_root: Option<HashText>,
    /// Runners that have told a validator of this devnet that they cannot do for now what the job
    /// needs. It is live and no part of the chain.
    #[serde(default)]
    pub withdrawn: Vec<Withdrawal>,
    /// What would have come of the same votes, seed and MRU record under each threshold rule, and
    /// without the presence filter. Empty where the votes are no longer kept.
    #[serde(default)]
    pub under_other_rules: Vec<UnderRule>,
}

/// What a runner cannot do for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Withdrawal {
    /// The runner.
    pub runner: String,
    /// Its labels, as `llm:small`.
    pub labels: Vec<String>,
}

/// What the seed of a draw is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeedSource {
    /// `parent`: the parent block's hash. `certificate`: the newest certificate that the parent or
    /// a block before it embeds, or the parent's hash while there was none.
    pub rule: String,
    /// The block that the certificate is of; absent: the seed is made of the parent's hash.
    pub certificate_of: Option<u64>,
    /// What the certificate gives to seeds: a hash over its votes' signatures.
    pub digest: Option<HashText>,
}

/// The P(h) that a draw read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceRead {
    /// h: the block that the votes are on.
    pub height: u64,
    /// Blocks from h to the parent of the block that drew.
    pub age: u64,
    /// The hash of block h, which the certificate is of; absent with what follows where the
    /// certificate is no longer kept.
    pub block_hash: Option<HashText>,
    /// The votes in it.
    pub votes: Option<u32>,
    /// The block that embeds it.
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
    /// Blocks through which it counts.
    pub ttl_blocks: u64,
    /// By how much the runner's weight is multiplied in draw 0.
    pub multiplier: u64,
    /// Whether it was: the record was live, and its runner a candidate.
    pub applied: bool,
}

/// What would have come of a draw under a rule of presence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnderRule {
    /// `committee`, `quorum` or `subset`: the threshold rule. `shadow`: no runner is dropped for
    /// being absent, as in that phase; the other filters are those of the phase that drew.
    pub rule: String,
    /// Whether it is the one that the draw was made under.
    pub in_force: bool,
    /// The registered runners that would have been present, in the registry's order.
    pub present: Vec<String>,
    /// Who would have been drawn, in draw order; empty: the job would have waited.
    pub committee: Vec<String>,
    /// Whether that is who was.
    pub same: bool,
}

/// Which draw `GET /v1/jobs/{id}/explain` explains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExplanationQuery {
    /// The attempt, from 1 (default: the last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// A runner before the filters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Candidate {
    /// The runner.
    pub runner: String,
    /// The runner's address.
    pub address: AddressText,
    /// The first filter that dropped it, as `presence`; absent for a survivor.
    pub filter: Option<String>,
    /// Why, in words; absent for a survivor.
    pub reason: Option<String>,
    /// Its weight by stake; absent where it was dropped.
    pub weight: Option<u64>,
    /// Its weight in draw 0: multiplied where it is the MRU runner. Absent where it was dropped,
    /// and in recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_weight: Option<u64>,
    /// What it had locked as of the parent block: the weight follows from it. Absent in recordings
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stake: Option<AmountText>,
}

/// One draw.
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

/// The open jobs that the chain assigns to a runner, as it fetches them by polling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolledJobs {
    /// The newest block of the validator that answers.
    pub height: u64,
    /// The migration phase of the next block: `shadow` or `hot-path`.
    pub phase: String,
    /// The jobs, those assigned first in front.
    pub jobs: Vec<PolledJob>,
    /// Whether there are more of them, which come once these are done.
    pub more: bool,
}

/// A job as a runner fetches it: what its `JobAssignment` frame would say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolledJob {
    /// Its identifier.
    pub job_id: HashText,
    /// What is to be done: the frame's `job_spec`, deterministic CBOR.
    pub spec: BytesText,
    /// The height that assigned it.
    pub assigned_at: u64,
    /// The last block whose results count.
    pub deadline_block: u64,
    /// What the chain waits for from this runner.
    pub wants: Wanted,
    /// That the chain assigns it to this runner, in the form of docs/proofs.md. Absent: one more
    /// block is needed to prove it, or what is wanted is not work.
    pub proof: Option<BytesText>,
}

/// What the chain waits for from a runner that a job is assigned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// The result: the runner does the job alone.
    Result,
    /// A commitment to the result: it is a committee's job.
    Commitment,
    /// The result that the runner has committed to.
    Reveal,
    /// Nothing now: others of the committee have not committed, or it is all there, or the runner
    /// has said that it cannot do the job.
    Nothing,
}

/// A runner's commitment to its result of a committee's job.
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

/// A runner's word that it cannot do a job that the chain assigns to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureRequest {
    /// The job.
    pub job_id: HashText,
    /// Why, for people: at most 256 bytes.
    pub reason: String,
    /// The runner's signature, as in its `JobFailure` frame: 65 bytes.
    pub runner_signature: BytesText,
}

/// A runner's result of a job that the chain assigns to it.
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

/// A validator brings the result, the commitment or the report onto the chain, or has done so
/// before.
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
    /// Its kind: `llm`, `http`, `mcp`, `eth_send` or `custom`.
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
