//! What is undone when a task fails (AgenC §4.4).
//!
//! A trigger is a task and a reason. Triggers stand in a queue; one plan at a time is made and
//! carried out, on the graph as it then is: a trigger whose task was rolled back meanwhile, or
//! confirmed, is skipped. A plan undoes leaves first, its trigger last.

use super::TaskId;
use crate::{names, primitives::Wei, record};

/// Why a task is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RollbackReason {
    /// The chain refused the proof, or it could not be delivered.
    ProofFailed,
    /// The proof was not there, or not confirmed, in time.
    ProofTimeout,
    /// An ancestor failed.
    AncestorFailed,
    /// The claim on the task expired.
    ClaimExpired,
    /// A cancellation.
    ManualCancel,
    /// The commitment's time was over.
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
    /// Whether speculation went wrong, for the circuit breaker: a cancellation says nothing about
    /// that, and an ancestor's failure is its own.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::AncestorFailed | Self::ManualCancel)
    }
}

/// Why a rollback cannot be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailError {
    /// A task that nobody knows.
    #[error("task {0} is not known: it was never scheduled, or was pruned")]
    UnknownTask(TaskId),
    /// A confirmed task is final.
    #[error("task {0} is confirmed: nothing undoes that")]
    AlreadyConfirmed(TaskId),
}

impl FailError {
    /// Its name.
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
    /// What it was about.
    pub summary: Summary,
    /// The tasks in the order of undoing: leaves first, the trigger last.
    pub tasks: Vec<TaskId>,
}

/// What a rollback was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The task that failed.
    pub trigger: TaskId,
    /// Why.
    pub reason: RollbackReason,
    /// Tasks undone, the trigger among them.
    pub tasks: u64,
    /// What the trigger lost of its bond.
    pub slashed: Wei,
    /// What went back of all bonds.
    pub released: Wei,
    /// When, in milliseconds.
    pub at: u64,
}
record!(Summary { trigger, reason, tasks, slashed, released, at });
