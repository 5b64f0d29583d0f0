//! Every request and response of the control API: the one place where protocol values become JSON.
//!
//! Amounts are decimal strings of wei, byte strings (addresses, hashes, keys, bitmaps, results)
//! 0x-hex, heights and counts numbers, times RFC 3339. Where a field names a node (`validator`,
//! `runner`, `proposer`) it is the node's name, or its address where the devnet does not know a
//! name for it; accounts (`submitter`, `sender`) are addresses, with the name in a second field.
//!
//! # Routes
//!
//! | method and path | query | response |
//! |---|---|---|
//! | `GET /v1/status` | | [`Status`] |
//! | `GET /v1/chain/head` | | [`Head`] |
//! | `GET /v1/chain/parameters` | | [`Parameters`] |
//! | `GET /v1/chain/governance` | | `[`[`GovernedParameter`]`]` |
//! | `GET /v1/chain/blocks/{height}` (a number or `latest`) | | [`Block`] |
//! | `GET /v1/chain/blocks/{height}/evidence` | | [`Evidence`] |
//! | `GET /v1/chain/evidence` | [`EvidenceQuery`] | [`EvidencePage`] |
//! | `GET /v1/chain/transactions/{hash}` | | [`Transaction`] |
//! | `POST /v1/chain/advance` * | body [`AdvanceRequest`] | 202 [`Advance`] |
//! | `GET /v1/chain/proofs/{subject}` | [`ProofQuery`] | [`StateProof`] |
//! | `GET /v1/chain/events` | [`EventQuery`] | [`EventPage`] |
//! | `GET /v1/chain/burned` | | [`Burned`] |
//! | `GET /v1/events` | [`StreamQuery`] | server-sent [`BlockNotice`]s |
//! | `GET /v1/accounts` | | `[`[`Account`]`]` |
//! | `POST /v1/accounts` * | body [`AccountRequest`] | 201 [`Account`] |
//! | `POST /v1/names` * | body [`NameRequest`] | 201 [`NameRequest`] |
//! | `GET /v1/accounts/{account}` (a name or an address) | | [`Account`] |
//! | `POST /v1/transactions` * | body [`TransactionRequest`] | 202 [`TransactionAccepted`] |
//! | `GET /v1/runners` | | `[`[`Runner`]`]` in registry order |
//! | `GET /v1/runners/{runner}` (a name or an address) | | [`Runner`] |
//! | `GET /v1/runners/{runner}/backpressure` | | [`RunnerLoad`] |
//! | `POST /v1/runners/{runner}/backpressure` * | body [`LimitRequest`] | [`RunnerLoad`] |
//! | `POST /v1/runners/{runner}/capabilities` * | body [`CapabilitiesRequest`] | [`RunnerLoad`] |
//! | `POST /v1/runners/{runner}/pause` * | | [`RunnerLoad`] |
//! | `POST /v1/runners/{runner}/resume` * | | [`RunnerLoad`] |
//! | `POST /v1/runners/{runner}/start` * | | [`RunnerLoad`] |
//! | `POST /v1/runners/{runner}/stop` * | | [`RunnerLoad`] |
//! | `GET /v1/validators` | | `[`[`Validator`]`]` in the set's order |
//! | `GET /v1/validators/{validator}` (a name or an address) | | [`Validator`] |
//! | `POST /v1/validators/{validator}/stop` * | | [`Validator`] |
//! | `POST /v1/validators/{validator}/start` * | | [`Validator`] |
//! | `POST /v1/validators/{validator}/resync` * | | [`Validator`] |
//! | `GET /v1/faults` | | `[`[`Fault`]`]` in force, the oldest first |
//! | `POST /v1/faults` * | body [`FaultRequest`] | [`Fault`] |
//! | `DELETE /v1/faults` * | | `[`[`Fault`]`]`: all, healed |
//! | `DELETE /v1/faults/{fault}` * (a number or a node) | | `[`[`Fault`]`]` healed |
//! | `GET /v1/actors` | [`ActorQuery`] | `[`[`ActorSummary`]`]`, newest first |
//! | `GET /v1/actors/{actor}` (an address or its beginning) | [`StoreQuery`] | [`Actor`] |
//! | `GET /v1/actors/{actor}/logs` | [`LogQuery`] | [`ActorLog`] |
//! | `POST /v1/actors/{actor}/dry-run` | body [`DryRunRequest`] | [`DryRun`] |
//! | `GET /v1/jobs` | [`JobQuery`] | `[`[`JobSummary`]`]`, newest first |
//! | `GET /v1/jobs/{id}` | | [`Job`] |
//! | `GET /v1/jobs/{id}/result` | | [`JobResult`] |
//! | `GET /v1/jobs/{id}/dispatches` | | `[`[`JobDispatch`]`]` |
//! | `GET /v1/jobs/{id}/explain` | | [`Explanation`] |
//! | `GET /v1/timers` | [`TimerQuery`] | `[`[`TimerSummary`]`]`, those that wait by height |
//! | `GET /v1/timers/queue` | | [`TimerQueue`] |
//! | `GET /v1/timers/due` | [`DueQuery`] | [`DueTimers`] |
//! | `GET /v1/timers/fees` | [`LaneQuery`] | `[`[`LaneBlock`]`]`, the oldest first |
//! | `GET /v1/timers/fairness` | | [`Fairness`] |
//! | `GET /v1/timers/{timer}` (an id or its beginning) | | [`Timer`] |
//! | `GET /v1/timers/{timer}/bid` | | [`TimerQuote`] |
//! | `GET /v1/presence/compare` | [`ComparisonQuery`] | [`PresenceComparison`] |
//! | `GET /v1/presence/{height}` (a number or `latest`) | | [`Presence`] |
//! | `GET /v1/presence/{height}/votes` | | [`Votes`] |
//! | `GET /v1/pools` | | `[`[`Pool`]`]` |
//! | `GET /v1/pools/{pool}` | | [`Pool`] |
//! | `GET /v1/mru` | | `[`[`MruRecord`]`]` |
//! | `GET /v1/mru/{submitter}/{kind}` (a name or an address) | | [`MruRecord`] |
//! | `GET /v1/tasks` | [`ChainTaskQuery`] | `[`[`ChainTask`]`]`, newest first |
//! | `GET /v1/tasks/{task}` (an id, or `latest`) | | [`ChainTask`] |
//! | `GET /v1/speculation` | | [`SpeculationStatus`] |
//! | `GET /v1/speculation/pipelines` | [`PipelineQuery`] | `[`[`PipelineSummary`]`]` |
//! | `POST /v1/speculation/pipelines` * | body [`PipelineRequest`] | 202 [`PipelineAccepted`] |
//! | `GET /v1/speculation/pipelines/{pipeline}` (a number) | | [`Pipeline`] |
//! | `POST /v1/speculation/pipelines/{pipeline}/cancel` * | | [`TasksCancelled`] |
//! | `POST /v1/speculation/pipelines/{pipeline}/retry` * | [`RetryRequest`] | [`TasksRetried`] |
//! | `GET /v1/speculation/tasks/{pipeline}/{task}` | | [`TaskDetail`] |
//! | `POST /v1/speculation/tasks/{pipeline}/{task}/cancel` * | | [`TasksCancelled`] |
//! | `GET /v1/speculation/commitments` | [`OfPipelineQuery`] | `[`[`SpeculativeCommitment`]`]` |
//! | `GET /v1/speculation/proofs` | [`OfPipelineQuery`] | `[`[`SpeculativeProof`]`]` |
//! | `GET /v1/speculation/rollbacks` | [`OfPipelineQuery`] | `[`[`Rollback`]`]`, newest first |
//! | `GET /v1/speculation/events` | [`SpeculationEventQuery`] | [`SpeculationEventPage`] |
//! | `GET /v1/speculation/events/stream` | the same | server-sent [`SpeculationEvent`]s |
//! | `GET /v1/speculation/config` | | `[`[`SpeculationOption`]`]` |
//! | `POST /v1/speculation/config` * | body [`ConfigureRequest`] | `[`[`SpeculationOption`]`]` |
//! | `GET /metrics` | | OpenMetrics text |
//! | `POST /v1/validators` * | [`JoinRequest`] | 201 [`Validator`] |
//! | `POST /v1/validators/{validator}/leave` * | | [`Left`] |
//! | `POST /v1/snapshots` * | body [`SaveRequest`] | 201 [`Snapshot`] |
//! | `POST /v1/shutdown` * | | 202 [`Stopping`] |
//! | `POST /runner/{runner}/heartbeat` | [`TransactionRequest`] | 202 [`TransactionAccepted`] |
//! | `GET /runner/{runner}/jobs` | | [`PolledJobs`]; 410 in phase `sunset` |
//! | `POST /runner/{runner}/job_commit` | [`CommitRequest`] | 202 [`ResultAccepted`], or 410 |
//! | `POST /runner/{runner}/job_failure` | [`FailureRequest`] | 202 [`ResultAccepted`], or 410 |
//! | `POST /runner/{runner}/job_result` | [`ResultRequest`] | 202 [`ResultAccepted`], or 410 |
//! | `GET /openapi.json` | | the OpenAPI document |
//!
//! Every `GET` takes `?node=NAME` ([`NodeQuery`]): that validator answers from its own state; by
//! default, the validator with the highest head answers. So does a dry run, which changes nothing
//! and is a `POST` only because it has a body. A transaction with `?node=NAME` goes only to the
//! mempool of that validator, otherwise to the mempools of all running validators.
//!
//! Routes marked * change state and need `Authorization: Bearer <token>`; the token is in the
//! devnet's `token` file. A runner's heartbeat, commitment and result need no token because the
//! runner signed them. Every failure is answered with an [`ErrorBody`].
//!
//! # Events
//!
//! `GET /v1/events` sends one message per finalized and executed block, with `event: block`, the
//! height as `id` and a [`BlockNotice`] as data, as soon as any validator, or the one of
//! `?node=NAME`, has the block. With the header `Last-Event-ID: H` it starts at H + 1, else at
//! `from`, else with the next block. A comment line is sent at least every [`KEEP_ALIVE_SECS`]
//! seconds, so that a reader can tell a quiet chain from a dead connection.
//!
//! When all places for streams are taken, a new stream replaces another one. The replaced stream
//! ends with `event: replaced`, a reason as data and `retry:` [`RETURN_MS`]; its reader returns
//! with the last id that it saw. A request may show the token. Streams with the token and streams
//! without it each have a quarter of the places that the other kind cannot take.

mod actor;
mod chain;
mod error;
mod evidence;
mod fault;
mod job;
mod node;
mod pool;
mod presence;
mod proof;
mod snapshot;
mod speculation;
mod task;
mod timer;
mod value;

/// The body of `POST /v1/speculation/pipelines`: a pipeline in the format of its file.
pub use crate::speculation::pipeline::Pipeline as PipelineRequest;
pub use actor::{
    Actor, ActorLimits, ActorLine, ActorLineKind, ActorLog, ActorParameters, ActorQuery,
    ActorReceipt, ActorSchedule, ActorSummary, CyclesByCause, DryRun, DryRunRequest, Handler,
    LogLine, LogQuery, StateChange, StateEntry, StoreQuery, Usage,
};
pub use chain::{
    Account, AccountRequest, Advance, AdvanceRequest, Block, BlockFire, BlockNotice,
    BlockTransaction, Burned, Event, EventPage, EventQuery, Fee, Head, Parameters, ProofParameters,
    StreamQuery, Transaction, TransactionAccepted, TransactionRequest, TransactionStatus,
};
pub use error::{ErrorBody, ErrorCode, ErrorDetail};
pub use evidence::{
    CertificateEvidence, Evidence, EvidencePage, EvidenceQuery, HeaderEvidence, OpenBlock,
    PresenceEvidence, RawBlock, VoteEvidence,
};
pub use fault::{Fault, FaultRequest, FaultSpec, LieKind};
pub use job::{
    Candidate, CommitRequest, Draw, Explanation, ExplanationQuery, FailureRequest, Job,
    JobDispatch, JobEvent, JobQuery, JobResult, JobStatus, JobSummary, MruRead, MruRecord,
    PolledJob, PolledJobs, PresenceRead, ResultAccepted, ResultRequest, RunnerProgress, SeedSource,
    UnderRule, Wanted, Withdrawal,
};
pub use node::{
    BEHIND, CapabilitiesRequest, ConnectionEnd, ConnectionLoad, JoinRequest, Left, LimitRequest,
    NameRequest, NamedKind, NodeQuery, PresenceCondition, PresenceStanding, ReputationStep, Runner,
    RunnerConnection, RunnerHealth, RunnerLoad, RunnerPresence, RunnerState, RunnerStatus, Status,
    Stopping, Supply, UnmetPresence, Validator, ValidatorState, ValidatorStatus,
};
pub use pool::{Pool, PoolMember};
pub use presence::{
    AbsentRunner, ComparedDraw, ComparisonQuery, Presence, PresenceComparison, Vote, Votes,
};
pub use proof::{ProofQuery, StateProof};
pub use snapshot::{SaveRequest, Snapshot};
pub use speculation::{
    BreakerFailure, BreakerOpened, BreakerProbe, ChainAway, ConfigureRequest, EVENTS_MISSED,
    OfPipelineQuery, Pipeline, PipelineAccepted, PipelineQuery, PipelineStatus, PipelineSummary,
    ProofCounts, RetryRequest, Rollback, SPECULATION_EVENT, SPECULATION_PAGE,
    SPECULATION_PAGE_LIMIT, SpeculationEvent, SpeculationEventPage, SpeculationEventQuery,
    SpeculationOption, SpeculationStatus, SpeculativeCommitment, SpeculativeProof, SpeculativeTask,
    TASK_EXECUTING, TaskDetail, TaskParent, TaskStatus, TaskTimes, TaskTransaction, TasksCancelled,
    TasksRetried, speculation_event_kinds,
};
pub use task::{
    ChainTask, ChainTaskClaim, ChainTaskCommitment, ChainTaskQuery, ChainTaskStatus, TASK_PAGE,
    TASK_PAGE_LIMIT,
};
pub use timer::{
    AgentState, Deferral, DeferralReason, DueFate, DueQuery, DueTimer, DueTimers, Fairness,
    FairnessMember, GbaContext, GovernedParameter, LaneBlock, LaneQuery, PendingSetting, Setting,
    Timer, TimerBid, TimerBucket, TimerCharge, TimerQuery, TimerQueue, TimerQuote, TimerStatus,
    TimerSummary, TimerTier,
};
pub use value::{
    AddressText, AmountText, Bytes, BytesText, ChainId, ChainIdText, HashText, KeyText, ParseError,
    Text, Textual, TimeText,
};

/// The longest silence of the event stream, in seconds.
pub const KEEP_ALIVE_SECS: u64 = 5;

/// The type of the event that ends a replaced stream.
pub const REPLACED: &str = "replaced";

/// The time that the reader of a replaced stream waits before it returns, in milliseconds. With
/// more readers than places, this bounds how often they replace each other.
pub const RETURN_MS: u64 = 1_000;

/// Default number of events in a page.
pub const EVENT_PAGE: usize = 1_000;

/// Maximum number of events in a page, unless a single block has more.
pub const EVENT_PAGE_LIMIT: usize = 10_000;

/// Default number of blocks in a page of evidence.
pub const EVIDENCE_PAGE: usize = 64;

/// Maximum number of blocks in a page of evidence.
pub const EVIDENCE_PAGE_LIMIT: usize = 256;

/// Maximum bytes of blocks in a page of evidence, unless a single block has more.
pub const EVIDENCE_PAGE_BYTES: usize = 4 << 20;

/// Default number of actors in a list.
pub const ACTOR_PAGE: usize = 100;

/// Maximum number of actors in a list.
pub const ACTOR_PAGE_LIMIT: usize = 10_000;

/// Default number of keys of an actor's store in a page.
pub const STORE_PAGE: usize = 100;

/// Maximum number of keys of an actor's store in a page.
pub const STORE_PAGE_LIMIT: usize = 10_000;

/// Default number of lines of an actor's log in a page.
pub const LOG_PAGE: usize = 100;

/// Maximum number of lines of an actor's log in a page, unless a single block has more.
pub const LOG_PAGE_LIMIT: usize = 10_000;

/// Default number of jobs in a list.
pub const JOB_PAGE: usize = 100;

/// Maximum number of jobs in a list.
pub const JOB_PAGE_LIMIT: usize = 10_000;

/// Default number of blocks in a comparison of draws.
pub const COMPARED_BLOCKS: u64 = 64;

/// Maximum number of draws in a comparison.
pub const COMPARED_DRAWS: u32 = 1_000;

/// Maximum number of jobs in the answer to a runner's poll.
pub const POLLED_JOBS: usize = 256;

/// Maximum bytes of job specifications in the answer to a runner's poll, unless a single one has
/// more.
pub const POLLED_BYTES: usize = 4 << 20;

/// Default number of timers in a list.
pub const TIMER_PAGE: usize = 100;

/// Maximum number of timers in a list.
pub const TIMER_PAGE_LIMIT: usize = 10_000;

/// Default number of due timers in a page.
pub const DUE_PAGE: usize = 20;

/// Maximum number of due timers in a page.
pub const DUE_PAGE_LIMIT: usize = 1_000;

/// Default number of blocks in a list of the timer lane's fees.
pub const LANE_PAGE: usize = 60;

/// Maximum number of blocks in a list of the timer lane's fees.
pub const LANE_PAGE_LIMIT: usize = 10_000;
