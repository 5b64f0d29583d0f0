//! Rollbacks: the tasks that are undone when a task fails (AgenC §4.4).
//!
//! A trigger is a task and a reason. Triggers are queued. One plan at a time is made and carried
//! out, on the current graph: a trigger whose task has been rolled back or confirmed by then is
//! skipped. A plan undoes leaves first, its trigger last.

use super::TaskId;
use crate::{names, primitives::Wei, record};

/// Why a task is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RollbackReason {
    /// The chain refused the proof, or all attempts to deliver it failed.
    ProofFailed,
    /// The proof was not made, or not confirmed, in time.
    ProofTimeout,
    /// An ancestor failed.
    AncestorFailed,
    /// The claim on the task expired.
    ClaimExpired,
    ManualCancel,
    /// The commitment's lifetime ended.
    CommitmentExpired,
}

names!(RollbackReason:
    ProofFailed = "proof_failed",
    ProofTimeout = "proof_timeout",
    AncestorFailed = "ancestor_failed",
    ClaimExpired = "claim_expired",
    ManualCancel = "manual_cancel",
    CommitmentExpired = "commitment_expired",
);

impl RollbackReason {
    /// Whether the reason counts as a failure of speculation for the circuit breaker. A
    /// cancellation does not, and an ancestor's failure is counted for the ancestor.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::AncestorFailed | Self::ManualCancel)
    }
}

/// Why a rollback cannot be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailError {
    /// The task is unknown.
    #[error("task {0} is not known: it was never scheduled, or was pruned")]
    UnknownTask(TaskId),
    /// The task is confirmed, which is final.
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
    /// The task that failed.
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
