//! What the machine tells its driver: outputs, and answers to calls.

use super::{TaskId, breaker::BreakerState, reason::RollbackReason};
use crate::{primitives::Wei, proof::PROOF_BYTES, record};

/// An instruction or a notice to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOutput {
    /// Make the proof of a task whose output is known: call
    /// [`proving`](super::Speculation::proving) when a prover begins with it, then
    /// [`proved`](super::Speculation::proved).
    Prove {
        task: TaskId,
    },
    /// Submit [`proof`](super::Speculation::proof) of a task to the chain, then call
    /// [`answer`](super::Speculation::answer). After a restore the same proof may be requested
    /// twice.
    Submit {
        task: TaskId,
        /// The number to be passed with the answer.
        submission: u64,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    Confirmed {
        task: TaskId,
        released: Wei,
    },
    RolledBack(Plan),
    /// The chain accepted a task that had been rolled back here; it stays rolled back.
    LateSuccess {
        task: TaskId,
    },
    Breaker(BreakerState),
    /// Try to reach the lost chain, then call [`chain_back`](super::Speculation::chain_back) if
    /// that succeeds. After the last attempt no task is accepted until it does.
    TryChain {
        /// The number of the try, from 1 to [`TRIES`](super::away::TRIES).
        attempt: u32,
    },
    ChainBack {
        away_ms: u64,
    },
}

/// The outcome of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionResult {
    Confirmed,
    /// The chain refused the proof, for good.
    Rejected,
    /// The proof may not have reached the chain.
    Lost,
}

/// The consequence of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Time until the proof is submitted again, in milliseconds from now.
    pub retry_in_ms: Option<u64>,
}

/// An answer to a submission that is no longer in flight, because its task was undone or confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("submission {submission} of task {task} is not in flight: its answer changes nothing")]
pub struct StaleResult {
    pub task: TaskId,
    pub submission: u64,
}

/// The effect of a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    Applied,
    /// An ancestor is not confirmed yet: the confirmation is held until it is.
    Held,
    Duplicate,
}

/// Why a confirmation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    #[error("task {0} is not known: it was never scheduled, or was pruned")]
    UnknownTask(TaskId),
    #[error("task {0} was rolled back: a confirmation does not revive it, schedule it again")]
    TaskNotActive(TaskId),
}

impl ConfirmError {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownTask(_) => "unknown_task",
            Self::TaskNotActive(_) => "task_not_active",
        }
    }
}

/// Why an output or a proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    #[error("task {0} is not known: schedule it first")]
    UnknownTask(TaskId),
    #[error("task {0} is complete already")]
    AlreadyCompleted(TaskId),
    #[error("task {0} was rolled back: schedule it again")]
    TaskNotActive(TaskId),
    #[error("task {0} has no output yet: give its output before its proof")]
    NoOutput(TaskId),
    #[error("a proof of {got} bytes for task {task}: expected {PROOF_BYTES}")]
    BadProofSize { task: TaskId, got: usize },
}

impl CompletionError {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownTask(_) => "unknown_task",
            Self::AlreadyCompleted(_) => "already_completed",
            Self::TaskNotActive(_) => "task_not_active",
            Self::NoOutput(_) => "no_output",
            Self::BadProofSize { .. } => "bad_proof_size",
        }
    }
}

/// Why a rollback cannot be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailError {
    #[error("task {0} is not known: it was never scheduled, or was pruned")]
    UnknownTask(TaskId),
    #[error("task {0} is confirmed: nothing undoes that")]
    AlreadyConfirmed(TaskId),
}

impl FailError {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownTask(_) => "unknown_task",
            Self::AlreadyConfirmed(_) => "already_confirmed",
        }
    }
}

/// A rollback that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub summary: Summary,
    /// The tasks in the order in which they are undone: leaves first, the trigger last.
    pub tasks: Vec<TaskId>,
}

/// The summary of a rollback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub trigger: TaskId,
    pub reason: RollbackReason,
    /// Number of tasks undone, including the trigger.
    pub tasks: u64,
    /// The slashed part of the trigger's bond, in wei.
    pub slashed: Wei,
    /// The sum of the released parts of all bonds, in wei.
    pub released: Wei,
    /// Time in milliseconds.
    pub at: u64,
}
record!(Summary { trigger, reason, tasks, slashed, released, at });
