//! Why tasks are refused, and why they are undone.

use crate::names;

/// Why a task is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    DuplicateTask,
    UnknownParent,
    Cycle,
    ParentFailed,
    /// The chain cannot be reached, and all tries were made.
    Paused,
    /// `enabled: false`, and an ancestor is not confirmed.
    Disabled,
    /// Not among the tasks of `features.rolloutPercentage`, and an ancestor is not confirmed.
    NotRolledOut,
    /// The circuit breaker is open, and an ancestor is not confirmed.
    BreakerOpen,
    /// `stake.cooldownPeriodMs` after a slash has not passed, and an ancestor is not confirmed.
    Cooldown,
    /// Deeper than `maxDepth`.
    DepthExceeded,
    /// The bond exceeds the free part of the stake and of `stake.maxStake`.
    InsufficientStake,
    /// The claim expires within `claimBufferMs`.
    ClaimTooSoon,
    /// More live tips than `maxParallelBranches`.
    TooManyBranches,
    /// `limits.maxPendingOperations` tasks are live.
    MaxPendingOperations,
    /// `proof.queueSize` proofs are not confirmed yet.
    QueueSize,
    /// `limits.maxMemoryMb` is in use.
    MaxMemoryMb,
}

names!(Reason:
    DuplicateTask = "duplicate_task",
    UnknownParent = "unknown_parent",
    Cycle = "cycle",
    ParentFailed = "parent_failed",
    Paused = "paused",
    Disabled = "disabled",
    NotRolledOut = "not_rolled_out",
    BreakerOpen = "breaker_open",
    Cooldown = "cooldown",
    DepthExceeded = "depth_exceeded",
    InsufficientStake = "insufficient_stake",
    ClaimTooSoon = "claim_too_soon",
    TooManyBranches = "too_many_branches",
    MaxPendingOperations = "maxPendingOperations",
    QueueSize = "queueSize",
    MaxMemoryMb = "maxMemoryMb",
);

impl Reason {
    /// Whether the task may run without speculation, once its ancestors are confirmed.
    pub const fn is_about_speculation(self) -> bool {
        matches!(
            self,
            Self::Disabled
                | Self::NotRolledOut
                | Self::BreakerOpen
                | Self::Cooldown
                | Self::DepthExceeded
        )
    }
}

/// Why a task is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RollbackReason {
    /// The chain refused the proof, or all attempts to deliver it failed.
    ProofFailed,
    /// The proof was not made, or not confirmed, in time.
    ProofTimeout,
    AncestorFailed,
    ClaimExpired,
    ManualCancel,
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
