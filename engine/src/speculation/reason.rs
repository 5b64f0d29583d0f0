//! Why tasks are refused, and why they are undone.

use crate::names;

names! {
    /// Why a task is refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Reason {
        DuplicateTask = "duplicate_task",
        UnknownParent = "unknown_parent",
        Cycle = "cycle",
        ParentFailed = "parent_failed",
        /// The chain cannot be reached, and all tries were made.
        Paused = "paused",
        /// `enabled: false`, and an ancestor is not confirmed.
        Disabled = "disabled",
        /// Not among the tasks of `features.rolloutPercentage`, and an ancestor is not confirmed.
        NotRolledOut = "not_rolled_out",
        /// The circuit breaker is open, and an ancestor is not confirmed.
        BreakerOpen = "breaker_open",
        /// `stake.cooldownPeriodMs` after a slash has not passed, and an ancestor is not confirmed.
        Cooldown = "cooldown",
        /// Deeper than `maxDepth`.
        DepthExceeded = "depth_exceeded",
        /// The bond exceeds the free part of the stake and of `stake.maxStake`.
        InsufficientStake = "insufficient_stake",
        /// The claim expires within `claimBufferMs`.
        ClaimTooSoon = "claim_too_soon",
        /// More live tips than `maxParallelBranches`.
        TooManyBranches = "too_many_branches",
        /// `limits.maxPendingOperations` tasks are live.
        MaxPendingOperations = "maxPendingOperations",
        /// `proof.queueSize` proofs are not confirmed yet.
        QueueSize = "queueSize",
        /// `limits.maxMemoryMb` is in use.
        MaxMemoryMb = "maxMemoryMb",
    }
}

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

names! {
    /// Why a task is undone.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum RollbackReason {
        /// The chain refused the proof, or all attempts to deliver it failed.
        ProofFailed = "proof_failed",
        /// The proof was not made, or not confirmed, in time.
        ProofTimeout = "proof_timeout",
        AncestorFailed = "ancestor_failed",
        ClaimExpired = "claim_expired",
        ManualCancel = "manual_cancel",
        CommitmentExpired = "commitment_expired",
    }
}

impl RollbackReason {
    /// Whether the reason counts as a failure of speculation for the circuit breaker. A
    /// cancellation does not, and an ancestor's failure is counted for the ancestor.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::AncestorFailed | Self::ManualCancel)
    }
}
