//! Pipelines of tasks that run speculatively, and what the devnet's agent knows of them.

use super::{AddressText, AmountText, BytesText, HashText, TimeText};
use cowboy_engine::{names, speculation::EventKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Pipelines, commitments, proofs or rollbacks in a list where the request does not say.
pub const SPECULATION_PAGE: usize = 100;

/// Pipelines, commitments, proofs or rollbacks in a list at most.
pub const SPECULATION_PAGE_LIMIT: usize = 10_000;

/// The type of the server-sent events that tell of components.
pub const SPECULATION_EVENT: &str = "speculation";

/// The kind of the event when a runner begins to work on a task.
pub const TASK_EXECUTING: &str = "task:executing";

/// The kind of what is told in the place of events that are kept no more.
pub const EVENTS_MISSED: &str = "stream:missed";

/// Components, which are the first part of the kinds of their events.
const COMPONENTS: [&str; 9] =
    ["task", "graph", "commitment", "proof", "ancestor", "rollback", "stake", "breaker", "chain"];

/// What events can be asked for by: their kinds, and components.
pub fn speculation_event_kinds() -> impl Iterator<Item = &'static str> + Clone {
    COMPONENTS.into_iter().chain([TASK_EXECUTING]).chain(EventKind::NAMES.iter().copied())
}

/// Where a task of a pipeline stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not accepted yet: it waits for its ancestors, or for a limit; `reason` says which.
    Waiting,
    /// A runner works on it, or is about to.
    Running,
    /// Its output is there, its proof is being made.
    Proving,
    /// Its proof is there and waits until every ancestor is confirmed.
    Proved,
    /// Its proof is on its way to the chain, or waits for the chain's confirmation.
    Submitted,
    /// The chain has taken its proof: final.
    Confirmed,
    /// It failed, and what was built on it was undone.
    Failed,
    /// It was undone since an ancestor failed, or never ran for that.
    RolledBack,
    /// Somebody cancelled it.
    Cancelled,
}

names!(TaskStatus:
    Waiting = "waiting",
    Running = "running",
    Proving = "proving",
    Proved = "proved",
    Submitted = "submitted",
    Confirmed = "confirmed",
    Failed = "failed",
    RolledBack = "rolled_back",
    Cancelled = "cancelled",
);

impl TaskStatus {
    /// Whether nothing follows it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Confirmed | Self::Failed | Self::RolledBack | Self::Cancelled)
    }
}

/// Where a pipeline stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PipelineStatus {
    /// Some task is not final.
    Running,
    /// Every task is confirmed.
    Completed,
    /// Every task is final, and one is not confirmed.
    Failed,
    /// Every task is final, and one was cancelled.
    Cancelled,
}

names!(PipelineStatus:
    Running = "running",
    Completed = "completed",
    Failed = "failed",
    Cancelled = "cancelled",
);

/// Which pipelines `GET /v1/speculation/pipelines` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PipelineQuery {
    /// Only pipelines that stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub status: Option<PipelineStatus>,
    /// Only pipelines of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Of which pipeline a list of commitments, proofs or rollbacks is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct OfPipelineQuery {
    /// Only what is of this pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<u64>,
    /// How many at most (default 100, at most 10,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A pipeline that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PipelineAccepted {
    /// Its number, from 1.
    pub pipeline: u64,
    /// Its name.
    pub name: String,
    /// How many tasks it has.
    pub tasks: u64,
}

/// A pipeline in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PipelineSummary {
    /// Its number, from 1.
    pub pipeline: u64,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub status: PipelineStatus,
    /// How many tasks it has.
    pub tasks: u64,
    /// How many of them are confirmed.
    pub confirmed: u64,
    /// How many of them failed, were rolled back or cancelled.
    pub undone: u64,
    /// When it was taken.
    pub submitted_at: TimeText,
    /// From then until its last task was final, or until now, in ms.
    pub elapsed_ms: u64,
    /// From then until the last output that counts was there, in ms; absent while one is missing.
    pub outputs_ms: Option<u64>,
    /// What the same devnet takes for it with speculation off, branches, provers and submissions
    /// included, in ms: what it took where nothing of it speculated, worked out from what its tasks
    /// took otherwise. Absent before all are confirmed.
    pub synchronous_ms: Option<u64>,
    /// Where the proofs of its tasks are, while it runs; zeros once it has ended.
    #[serde(default)]
    pub proofs: ProofCounts,
}

/// How many proofs are where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProofCounts {
    /// No prover has begun with them.
    pub queued: u64,
    /// They are being made.
    pub proving: u64,
    /// They wait until every ancestor is confirmed.
    pub waiting: u64,
    /// They may go out as soon as there is a slot, or have been lost and go out again.
    pub ready: u64,
    /// They are on their way to the chain.
    pub in_flight: u64,
}

/// A pipeline with its graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pipeline {
    /// What a list says of it.
    #[serde(flatten)]
    pub summary: PipelineSummary,
    /// Its tasks, as in its file; none stands before one that it depends on is not required.
    pub graph: Vec<SpeculativeTask>,
}

/// What a task depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskParent {
    /// The task's name in the file.
    pub task: String,
    /// Whether it only comes after it, and does not read its output.
    pub order_only: bool,
}

/// A task of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculativeTask {
    /// The pipeline's number.
    pub pipeline: u64,
    /// Its name in the file.
    pub task: String,
    /// Its identifier on the chain.
    pub task_id: HashText,
    /// What kind of work it is: `custom`, `http`, `llm`, `mcp` or `eth_send`.
    pub kind: String,
    /// What it depends on.
    pub depends_on: Vec<TaskParent>,
    /// Where it stands.
    pub status: TaskStatus,
    /// What it waits for, or why it failed.
    pub reason: Option<String>,
    /// Unconfirmed tasks above it on the longest path, now; absent before it is accepted.
    pub depth: Option<u32>,
    /// What was locked for it at scheduling; absent before.
    pub bond: Option<AmountText>,
    /// Which attempt this is, from 1; 0 before the first.
    pub attempt: u32,
    /// The runner that works on it, or whose output it is.
    pub runner: Option<String>,
    /// What the file wants to go wrong at its first attempt.
    pub fault: Option<String>,
    /// Bytes of its output.
    pub output_bytes: Option<u64>,
    /// The commitment to its output; absent before there is one.
    pub output_commitment: Option<HashText>,
    /// When its claim expires; absent before it is accepted.
    pub claim_expires_at: Option<TimeText>,
    /// When it came how far.
    pub times: TaskTimes,
}

/// When a task came how far in its last attempt, in ms since its pipeline was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTimes {
    /// It was accepted, its bond locked.
    pub scheduled_ms: Option<u64>,
    /// Its output was there.
    pub executed_ms: Option<u64>,
    /// Its proof was there.
    pub proved_ms: Option<u64>,
    /// Its proof went to the chain.
    pub submitted_ms: Option<u64>,
    /// The chain's confirmation was there.
    pub confirmed_ms: Option<u64>,
    /// It failed, was rolled back or cancelled.
    pub ended_ms: Option<u64>,
}

/// A task with its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail {
    /// What a graph says of it.
    #[serde(flatten)]
    pub task: SpeculativeTask,
    /// Its output; absent before there is one, and where it was undone.
    pub output: Option<BytesText>,
    /// The output as text, where it is UTF-8.
    pub output_text: Option<String>,
    /// Its proof, 388 bytes; absent before it is there, and once the task is confirmed or undone.
    pub proof: Option<BytesText>,
    /// The transactions that were sent for it and are known, the oldest first.
    pub transactions: Vec<TaskTransaction>,
}

/// A transaction that the agent sent for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTransaction {
    /// What it does: `create_task`, `claim_task`, `create_commitment`, `complete_task_private` or
    /// `resolve_commitment`.
    pub kind: String,
    /// Its hash.
    pub transaction: HashText,
}

/// A commitment to a task's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculativeCommitment {
    /// The pipeline's number.
    pub pipeline: u64,
    /// The task's name in the file.
    pub task: String,
    /// The task's identifier on the chain.
    pub task_id: HashText,
    /// The commitment.
    pub output_commitment: HashText,
    /// What the output hashes to.
    pub constraint_hash: HashText,
    /// Where it stands: `created`, `proof_generated`, `submitted`, `confirmed`, `failed`, `expired`
    /// or `rolled_back`.
    pub status: String,
    /// The depth at which it was made.
    pub depth: u32,
    /// The task's bond.
    pub bond: AmountText,
    /// When it was made.
    pub created_at: TimeText,
    /// When it expires, unless it is confirmed by then.
    pub expires_at: TimeText,
}

/// A proof, from when it is being made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculativeProof {
    /// The pipeline's number.
    pub pipeline: u64,
    /// The task's name in the file.
    pub task: String,
    /// The task's identifier on the chain.
    pub task_id: HashText,
    /// Where it is: `held`, `queued`, `proving`, `waiting`, `ready`, `back_off`, `submitting` or
    /// `confirmed`.
    pub status: String,
    /// What makes it: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// How long it took to make, with `proof.latency`, in ms; absent before it is there.
    pub took_ms: Option<u64>,
    /// How often it went to the chain in this attempt.
    pub submissions: u32,
    /// The unconfirmed ancestors that it waits for, by name; the first few.
    pub waits_for: Vec<String>,
}

/// A rollback that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rollback {
    /// When.
    pub at: TimeText,
    /// The pipeline's number.
    pub pipeline: u64,
    /// The name of the task that failed.
    pub task: String,
    /// That task's identifier on the chain.
    pub task_id: HashText,
    /// Why: `proof_failed`, `proof_timeout`, `ancestor_failed`, `claim_expired`, `manual_cancel` or
    /// `commitment_expired`.
    pub reason: String,
    /// Tasks undone, the one that failed among them.
    pub tasks: u64,
    /// Their names in the order of undoing, leaves first; the first hundred.
    pub undone: Vec<String>,
    /// What the chain has slashed of their bonds so far, in wei.
    pub slashed: AmountText,
    /// What it has given back of them so far, in wei.
    pub released: AmountText,
}

/// Something that a component of speculation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculationEvent {
    /// Its number: they grow in the order of happening, also across a restart of the devnet.
    pub seq: u64,
    /// When.
    pub at: TimeText,
    /// What, as `proof:ready`: the component, and what it did. `stream:missed`
    /// replaces earlier events that are no longer kept, and has their number.
    pub kind: String,
    /// The number of the pipeline that it is about; absent where it is about none, or that is
    /// forgotten.
    pub pipeline: Option<u64>,
    /// The task's name in the file; absent likewise.
    pub task: Option<String>,
    /// The task's identifier on the chain; absent where it is about no task.
    pub task_id: Option<HashText>,
    /// The event's own fields, amounts in wei as text.
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

/// Which events of components are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SpeculationEventQuery {
    /// The first number (default: the oldest that is kept; of a stream, the next one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Only events of this pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<u64>,
    /// Only events of this kind, or of this component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How many on a page at most (default 1,000, at most 10,000); a stream has no pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

impl SpeculationEventQuery {
    /// Whether an event is one that is asked for.
    pub fn wants(&self, event: &SpeculationEvent) -> bool {
        let of = self.pipeline.is_none_or(|wanted| event.pipeline == Some(wanted));
        of && self.kind.as_ref().is_none_or(|wanted| {
            let rest = event.kind.strip_prefix(wanted.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    }
}

/// A run of events of components, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculationEventPage {
    /// The events.
    pub events: Vec<SpeculationEvent>,
    /// The number to go on from.
    pub next: u64,
    /// Whether there are more by now.
    pub more: bool,
}

/// A circuit breaker that is not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerOpened {
    /// What opened it: `failures` within a minute, the `rate` of rollbacks, the `probe` that it had
    /// let through, or `slashes` within an hour.
    pub cause: String,
    /// When, or when a task failed last while it was open.
    pub since: TimeText,
    /// The failures that opened it and those while it was open, oldest first, the last 16.
    pub failures: Vec<BreakerFailure>,
    /// Of `resolved` tasks, how many were rolled back when it opened.
    pub rolled_back: u64,
    /// The last resolved tasks when it opened, 20 at most.
    pub resolved: u64,
    /// When it lets a task through; absent while it waits for what becomes of one.
    pub lets_one_through_at: Option<TimeText>,
    /// The task that it has let through, which alone closes it or opens it again.
    pub probe: Option<BreakerProbe>,
}

/// A failure that the circuit breaker counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerFailure {
    /// When.
    pub at: TimeText,
    /// The pipeline's number; absent where it is forgotten.
    pub pipeline: Option<u64>,
    /// The task's name in the file; absent where it is forgotten.
    pub task: Option<String>,
    /// The task's identifier on the chain.
    pub task_id: HashText,
    /// Why, as in a rollback.
    pub reason: String,
}

/// A task that the circuit breaker has let through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerProbe {
    /// The pipeline's number.
    pub pipeline: Option<u64>,
    /// The task's name in the file.
    pub task: Option<String>,
    /// The task's identifier on the chain.
    pub task_id: HashText,
}

/// A chain that cannot be reached: no validator runs, or no block comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainAway {
    /// Since when.
    pub since: TimeText,
    /// Tries to reach it so far, ten at most.
    pub tries: u32,
    /// Whether all of them were made, so that no task is accepted until it is back.
    pub paused: bool,
}

/// What speculation is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculationStatus {
    /// The account that runs the pipelines.
    pub agent: AddressText,
    /// Whether tasks may run before their ancestors are confirmed.
    pub enabled: bool,
    /// The preset: `conservative`, `balanced`, `aggressive` or `custom`.
    pub mode: String,
    /// What a rollback takes: `cascade`, `selective` or `checkpoint`.
    pub policy: String,
    /// What makes the proofs: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// The circuit breaker: `closed`, `open` or `half_open`.
    pub breaker: String,
    /// What opened it, and when it lets a task through; absent while it is closed.
    pub breaker_opened: Option<BreakerOpened>,
    /// The chain, while it cannot be reached; absent while it can.
    pub chain_away: Option<ChainAway>,
    /// Of the last resolved tasks, how many were rolled back.
    pub recent_rollbacks: u64,
    /// How many those last resolved tasks are.
    pub recent_tasks: u64,
    /// What is deposited, without what was slashed.
    pub stake_available: AmountText,
    /// Bonds of the live tasks.
    pub stake_locked: AmountText,
    /// What the chain ever slashed, in wei.
    pub stake_slashed: AmountText,
    /// Tasks on their way.
    pub tasks_live: u64,
    /// Tasks that wait to be accepted.
    pub tasks_waiting: u64,
    /// Live tips.
    pub branches: u64,
    /// Depth of the deepest live task.
    pub max_depth_current: u32,
    /// Proofs that no prover has begun with.
    pub proofs_queued: u64,
    /// Proofs that are being made.
    pub proofs_proving: u64,
    /// Proofs that wait until every ancestor is confirmed.
    pub proofs_waiting: u64,
    /// Proofs that may go out as soon as there is a slot, or have been lost and go out again.
    pub proofs_ready: u64,
    /// Proofs in flight.
    pub proofs_in_flight: u64,
    /// Memory in use, in bytes, by the agent's books.
    pub memory_bytes: u64,
    /// Since the chain's first block: tasks accepted.
    pub tasks_scheduled: u64,
    /// Tasks confirmed.
    pub tasks_confirmed: u64,
    /// Tasks undone.
    pub tasks_rolled_back: u64,
    /// Refusals by reason; a task that waits counts again when the reason is another one.
    pub tasks_rejected: BTreeMap<String, u64>,
    /// Rollbacks by reason.
    pub rollbacks: BTreeMap<String, u64>,
    /// Pipelines that run.
    pub pipelines_running: u64,
    /// Pipelines that are done, in whatever way, and are still known.
    pub pipelines_done: u64,
    /// Pipelines that run, newest first, ten at most: where their proofs are.
    #[serde(default)]
    pub running: Vec<PipelineSummary>,
    /// The last completed pipelines, newest first, ten at most: their wall time beside the
    /// synchronous pipeline's.
    pub completed: Vec<PipelineSummary>,
}

/// An option of speculation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculationOption {
    /// Its name, as `stake.minStake`.
    pub option: String,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub range: String,
    /// Whether it was set by itself, which no preset changes.
    pub explicit: bool,
}

/// Options to change: all of them, or none where one is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureRequest {
    /// Names and values.
    pub options: BTreeMap<String, String>,
}

/// Tasks that were cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TasksCancelled {
    /// How many, with those that depend on them.
    pub tasks: u64,
}

/// Tasks to try again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// Their names, and what was rolled back below them; empty: all that failed or were rolled
    /// back.
    #[serde(default)]
    pub tasks: Vec<String>,
}

/// Tasks that are tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TasksRetried {
    /// The pipeline's number.
    pub pipeline: u64,
    /// Their names, parents first.
    pub tasks: Vec<String>,
}
