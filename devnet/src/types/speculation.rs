//! Pipelines of tasks that run speculatively, as the devnet's agent sees them.

use super::{AddressText, AmountText, BytesText, HashText, TimeText};
use cowboy_engine::{names, speculation::SpeculationEventKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Default number of pipelines, commitments, proofs or rollbacks in a list.
pub const SPECULATION_PAGE: usize = 100;

/// Maximum number of pipelines, commitments, proofs or rollbacks in a list.
pub const SPECULATION_PAGE_LIMIT: usize = 10_000;

/// The type of the server-sent events from components.
pub const SPECULATION_EVENT: &str = "speculation";

/// The kind of the event when a runner begins to work on a task.
pub const TASK_EXECUTING: &str = "task:executing";

/// The kind of the event that replaces events that are no longer kept.
pub const EVENTS_MISSED: &str = "stream:missed";

/// The components; their names begin the kinds of their events.
const COMPONENTS: [&str; 9] =
    ["task", "graph", "commitment", "proof", "ancestor", "rollback", "stake", "breaker", "chain"];

/// The values of the filter for events: components and kinds.
pub fn speculation_event_kinds() -> impl Iterator<Item = &'static str> + Clone {
    COMPONENTS
        .into_iter()
        .chain([TASK_EXECUTING])
        .chain(SpeculationEventKind::NAMES.iter().copied())
}

/// The status of a task of a pipeline.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not accepted yet: it waits for its ancestors, or for a limit; `reason` tells which.
    #[default]
    Waiting,
    /// A runner works on it, or is about to.
    Running,
    /// Its output is ready, and its proof is being made.
    Proving,
    /// Its proof is ready and waits until every ancestor is confirmed.
    Proved,
    /// Its proof is on its way to the chain, or waits for the chain's confirmation.
    Submitted,
    /// The chain has taken its proof: final.
    Confirmed,
    /// It failed, and the tasks that depend on it were undone.
    Failed,
    /// An ancestor failed, so it was undone or never ran.
    RolledBack,
    /// It was cancelled on request.
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
    /// Whether no other status can follow, except after a retry.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Confirmed | Self::Failed | Self::RolledBack | Self::Cancelled)
    }
}

/// The status of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PipelineStatus {
    /// Some task is not final.
    Running,
    /// Every task is confirmed.
    Completed,
    /// Every task is final, and at least one is not confirmed.
    Failed,
    /// Every task is final, and at least one was cancelled.
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
    /// Only pipelines with this status.
    #[param(inline)]
    pub status: Option<PipelineStatus>,
    /// Only pipelines of this name.
    pub name: Option<String>,
    /// The maximum number of entries (default 100, at most 10,000).
    pub limit: Option<usize>,
}

/// The query of a list of commitments, proofs or rollbacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct OfPipelineQuery {
    /// Only entries of this pipeline.
    pub pipeline: Option<u64>,
    /// The maximum number of entries (default 100, at most 10,000).
    pub limit: Option<usize>,
}

/// The answer for an accepted pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PipelineAccepted {
    /// Its number, from 1.
    pub pipeline: u64,
    /// Its name.
    pub name: String,
    /// The number of its tasks.
    pub tasks: u64,
}

/// A pipeline in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PipelineSummary {
    /// Its number, from 1.
    pub pipeline: u64,
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: PipelineStatus,
    /// The number of its tasks.
    pub tasks: u64,
    /// The number of confirmed tasks.
    pub confirmed: u64,
    /// The number of tasks that failed, were rolled back or cancelled.
    pub undone: u64,
    /// When it was accepted.
    pub submitted_at: TimeText,
    /// From then until its last task was final, or until now, in milliseconds.
    pub elapsed_ms: u64,
    /// From then until the last output that counts was ready, in milliseconds; absent while one is
    /// missing.
    pub outputs_ms: Option<u64>,
    /// The time in milliseconds that the same devnet takes for it with speculation off, with its
    /// parallel branches, provers and submissions: measured if no task of it speculated, otherwise
    /// computed from the times of its tasks. Absent until all tasks are confirmed.
    pub synchronous_ms: Option<u64>,
    /// The proofs of its tasks by stage, while it runs; zeros once it has ended.
    #[serde(default)]
    pub proofs: ProofCounts,
}

/// The number of proofs in each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProofCounts {
    /// No prover has started on them.
    pub queued: u64,
    /// They are being made.
    pub proving: u64,
    /// They wait until every ancestor is confirmed.
    pub waiting: u64,
    /// They are sent as soon as there is a slot, or were lost and are sent again.
    pub ready: u64,
    /// They are on their way to the chain.
    pub in_flight: u64,
}

/// A pipeline with its graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pipeline {
    /// Its entry in a list.
    #[serde(flatten)]
    pub summary: PipelineSummary,
    /// Its tasks, in the order of its file: a task may come before the tasks that it depends on.
    pub graph: Vec<SpeculativeTask>,
}

/// A dependency of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskParent {
    /// The task's name in the file.
    pub task: String,
    /// Whether the dependency is only an order: the task does not read its output.
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
    /// The kind of its work: `custom`, `http`, `llm`, `mcp` or `eth_send`.
    pub kind: String,
    /// The tasks that it depends on.
    pub depends_on: Vec<TaskParent>,
    /// Its status.
    pub status: TaskStatus,
    /// The reason why it waits or why it failed.
    pub reason: Option<String>,
    /// The current number of unconfirmed tasks above it on the longest path; absent before it is
    /// accepted.
    pub depth: Option<u32>,
    /// The amount locked for it at scheduling, in wei; absent before.
    pub bond: Option<AmountText>,
    /// The number of the attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The runner that works on it or produced its output.
    pub runner: Option<String>,
    /// The fault that the file injects into its first attempt.
    pub fault: Option<String>,
    /// The size of its output in bytes.
    pub output_bytes: Option<u64>,
    /// The commitment to its output; absent before there is one.
    pub output_commitment: Option<HashText>,
    /// When its claim expires; absent before it is accepted.
    pub claim_expires_at: Option<TimeText>,
    /// The times of its stages.
    pub times: TaskTimes,
}

/// The times of a task's stages in its last attempt, in milliseconds since its pipeline was
/// accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTimes {
    /// It was accepted and its bond locked.
    pub scheduled_ms: Option<u64>,
    /// Its output was ready.
    pub executed_ms: Option<u64>,
    /// Its proof was ready.
    pub proved_ms: Option<u64>,
    /// Its proof was sent to the chain.
    pub submitted_ms: Option<u64>,
    /// The chain confirmed it.
    pub confirmed_ms: Option<u64>,
    /// It failed, was rolled back or cancelled.
    pub ended_ms: Option<u64>,
}

/// A task with its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail {
    /// Its entry in the graph.
    #[serde(flatten)]
    pub task: SpeculativeTask,
    /// Its output; absent before there is one, and when it was undone.
    pub output: Option<BytesText>,
    /// The output as text, if it is UTF-8.
    pub output_text: Option<String>,
    /// Its proof, 388 bytes; absent before it is made, and once the task is confirmed or undone.
    pub proof: Option<BytesText>,
    /// The known transactions sent for it, oldest first.
    pub transactions: Vec<TaskTransaction>,
}

/// A transaction that the agent sent for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTransaction {
    /// Its kind: `create_task`, `claim_task`, `create_commitment`, `complete_task_private` or
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
    /// The hash of the output.
    pub constraint_hash: HashText,
    /// Its status: `created`, `proof_generated`, `submitted`, `confirmed`, `failed`, `expired` or
    /// `rolled_back`.
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

/// A proof that is being made or has been made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculativeProof {
    /// The pipeline's number.
    pub pipeline: u64,
    /// The task's name in the file.
    pub task: String,
    /// The task's identifier on the chain.
    pub task_id: HashText,
    /// Its stage: `held`, `queued`, `proving`, `waiting`, `ready`, `back_off`, `submitting` or
    /// `confirmed`.
    pub status: String,
    /// Its generator: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// The time to make it, including `proof.latency`, in milliseconds; absent before it is made.
    pub took_ms: Option<u64>,
    /// The number of times that it was sent to the chain in this attempt.
    pub submissions: u32,
    /// The names of unconfirmed ancestors that it waits for; only the first few.
    pub waits_for: Vec<String>,
}

/// A rollback that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rollback {
    /// When it happened.
    pub at: TimeText,
    /// The pipeline's number.
    pub pipeline: u64,
    /// The name of the task that failed.
    pub task: String,
    /// That task's identifier on the chain.
    pub task_id: HashText,
    /// The reason: `proof_failed`, `proof_timeout`, `ancestor_failed`, `claim_expired`,
    /// `manual_cancel` or `commitment_expired`.
    pub reason: String,
    /// The number of tasks undone, including the one that failed.
    pub tasks: u64,
    /// The names of the undone tasks in the order of undoing, leaves first; only the first hundred.
    pub undone: Vec<String>,
    /// The part of their bonds that the chain has slashed so far, in wei.
    pub slashed: AmountText,
    /// The part of their bonds that the chain has released so far, in wei.
    pub released: AmountText,
}

/// An action of a component of speculation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculationEvent {
    /// Its number: numbers grow in the order of events, also across restarts of the devnet.
    pub seq: u64,
    /// When it happened.
    pub at: TimeText,
    /// The component and its action, as `proof:ready`. `stream:missed` replaces earlier events that
    /// are no longer kept, and carries the number of the last of them.
    pub kind: String,
    /// The number of the pipeline that it is about; absent when it is about no pipeline, or about a
    /// forgotten one.
    pub pipeline: Option<u64>,
    /// The task's name in the file; absent when it is about no task, or about a forgotten one.
    pub task: Option<String>,
    /// The task's identifier on the chain; absent when it is about no task.
    pub task_id: Option<HashText>,
    /// The event's own fields, amounts in wei as text.
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
}

/// The query of lists and streams of components' events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SpeculationEventQuery {
    /// The first number (default: the oldest that is kept; for a stream, the next one).
    pub from: Option<u64>,
    /// Only events of this pipeline.
    pub pipeline: Option<u64>,
    /// Only events of this kind, or of this component.
    pub kind: Option<String>,
    /// The maximum number on a page (default 1,000, at most 10,000); a stream has no pages.
    pub limit: Option<usize>,
}

impl SpeculationEventQuery {
    /// Whether an event matches the query.
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
    /// The number to continue from.
    pub next: u64,
    /// Whether more events are available already.
    pub more: bool,
}

/// A circuit breaker that is not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerOpened {
    /// The cause of its opening: `failures` within a minute, the `rate` of rollbacks, the failed
    /// `probe` that it had let through, or `slashes` within an hour.
    pub cause: String,
    /// When it opened, or when a task last failed while it was open.
    pub since: TimeText,
    /// The failures that opened it and those while it was open, oldest first; only the last 16.
    pub failures: Vec<BreakerFailure>,
    /// The number of the `resolved` tasks that had been rolled back when it opened.
    pub rolled_back: u64,
    /// The number of the last resolved tasks that were considered when it opened, at most 20.
    pub resolved: u64,
    /// When it lets a task through as a probe; absent while it waits for the outcome of one.
    pub lets_one_through_at: Option<TimeText>,
    /// The task that it has let through as a probe. Only the outcome of the probe closes the
    /// breaker or opens it again.
    pub probe: Option<BreakerProbe>,
}

/// A failure that the circuit breaker counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerFailure {
    /// When it happened.
    pub at: TimeText,
    /// The pipeline's number; absent when it is forgotten.
    pub pipeline: Option<u64>,
    /// The task's name in the file; absent when it is forgotten.
    pub task: Option<String>,
    /// The task's identifier on the chain.
    pub task_id: HashText,
    /// The reason, as in a rollback.
    pub reason: String,
}

/// A task that the circuit breaker has let through as a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerProbe {
    /// The pipeline's number.
    pub pipeline: Option<u64>,
    /// The task's name in the file.
    pub task: Option<String>,
    /// The task's identifier on the chain.
    pub task_id: HashText,
}

/// An unreachable chain: no validator runs, or no block is produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainAway {
    /// When it became unreachable.
    pub since: TimeText,
    /// The number of attempts to reach it so far, at most ten.
    pub tries: u32,
    /// Whether all attempts failed, so that no task is accepted until it is back.
    pub paused: bool,
}

/// The state of speculation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpeculationStatus {
    /// The account that runs the pipelines.
    pub agent: AddressText,
    /// Whether tasks may run before their ancestors are confirmed.
    pub enabled: bool,
    /// The preset: `conservative`, `balanced`, `aggressive` or `custom`.
    pub mode: String,
    /// The policy of rollbacks: `cascade`, `selective` or `checkpoint`.
    pub policy: String,
    /// The generator of proofs: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// The circuit breaker: `closed`, `open` or `half_open`.
    pub breaker: String,
    /// The cause of its opening, and when it lets a task through; absent while it is closed.
    pub breaker_opened: Option<BreakerOpened>,
    /// The state of the chain while it cannot be reached; absent while it can.
    pub chain_away: Option<ChainAway>,
    /// The number of the last resolved tasks that were rolled back.
    pub recent_rollbacks: u64,
    /// The number of the last resolved tasks that are counted.
    pub recent_tasks: u64,
    /// The deposited stake without slashed amounts, in wei.
    pub stake_available: AmountText,
    /// The bonds of the live tasks, in wei.
    pub stake_locked: AmountText,
    /// The total that the chain has slashed, in wei.
    pub stake_slashed: AmountText,
    /// The number of live tasks.
    pub tasks_live: u64,
    /// Tasks that wait to be accepted.
    pub tasks_waiting: u64,
    /// The number of live tips.
    pub branches: u64,
    /// Depth of the deepest live task.
    pub max_depth_current: u32,
    /// Proofs that no prover has started on.
    pub proofs_queued: u64,
    /// Proofs that are being made.
    pub proofs_proving: u64,
    /// Proofs that wait until every ancestor is confirmed.
    pub proofs_waiting: u64,
    /// Proofs that are sent as soon as there is a slot, or were lost and are sent again.
    pub proofs_ready: u64,
    /// Proofs in flight.
    pub proofs_in_flight: u64,
    /// Memory in use, in bytes, by the agent's books.
    pub memory_bytes: u64,
    /// Tasks accepted since the chain's first block.
    pub tasks_scheduled: u64,
    /// Tasks confirmed.
    pub tasks_confirmed: u64,
    /// Tasks undone.
    pub tasks_rolled_back: u64,
    /// Refusals by reason; a waiting task counts again when its reason changes.
    pub tasks_rejected: BTreeMap<String, u64>,
    /// Rollbacks by reason.
    pub rollbacks: BTreeMap<String, u64>,
    /// Pipelines that run.
    pub pipelines_running: u64,
    /// Pipelines that have ended, whatever their status, and are still known.
    pub pipelines_done: u64,
    /// The running pipelines with their proofs by stage, newest first, at most ten.
    #[serde(default)]
    pub running: Vec<PipelineSummary>,
    /// The last completed pipelines, newest first, at most ten, with their wall time next to the
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
    /// The allowed values.
    pub range: String,
    /// Whether it was set individually, so that no preset changes it.
    pub explicit: bool,
}

/// Options to change: all of them, or none if one is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureRequest {
    /// Names and values.
    pub options: BTreeMap<String, String>,
}

/// Tasks that were cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TasksCancelled {
    /// The number of tasks cancelled, including those that depend on them.
    pub tasks: u64,
}

/// Tasks to try again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// The names of tasks to retry, with the tasks rolled back below them; empty: all that failed
    /// or were rolled back.
    #[serde(default)]
    pub tasks: Vec<String>,
}

/// Tasks that are being retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TasksRetried {
    /// The pipeline's number.
    pub pipeline: u64,
    /// Their names, parents first.
    pub tasks: Vec<String>,
}
