//! Who is accepted, and why not (AgenC §4.5, §5.2 to §5.4).
//!
//! The first rule that a request breaks is the one it is refused by, in the order of [`Reason`].

use super::{GraphError, Link, Opening, TaskId};
use crate::{names, primitives::Wei};
use std::fmt;

/// A task that asks to run.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The task.
    pub task: TaskId,
    /// What it depends on; named twice, a parent counts once.
    pub parents: &'a [(TaskId, Link)],
    /// When the agent's claim on it expires, in milliseconds.
    pub claim_expires_at: u64,
}

/// A task that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Unconfirmed tasks above it on the longest path.
    pub depth: u32,
    /// What was locked for it: `minStake` and `stakePerDepth` for each level.
    pub bond: Wei,
    /// 1 for a new task, one more for each time it is scheduled again.
    pub attempt: u32,
    /// The output of its last attempt, where that was kept by a checkpoint.
    pub checkpoint: Option<Opening>,
}

/// Why a task is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A task of that id is on its way or confirmed.
    DuplicateTask,
    /// A parent that nobody knows.
    UnknownParent,
    /// It would wait for itself.
    Cycle,
    /// A parent that failed or was rolled back.
    ParentFailed,
    /// `enabled: false`, and an ancestor is not confirmed.
    Disabled,
    /// Not among the tasks of `features.rolloutPercentage`, and an ancestor is not confirmed.
    NotRolledOut,
    /// The circuit breaker is open, and an ancestor is not confirmed.
    BreakerOpen,
    /// `stake.cooldownPeriodMs` after a slash is not over, and an ancestor is not confirmed.
    Cooldown,
    /// Deeper than `maxDepth`.
    DepthExceeded,
    /// The bond is more than what is free of the stake and of `stake.maxStake`.
    InsufficientStake,
    /// The claim expires within `claimBufferMs`.
    ClaimTooSoon,
    /// More live tips than `maxParallelBranches`.
    TooManyBranches,
    /// `limits.maxPendingOperations` tasks are on their way.
    MaxPendingOperations,
    /// `proof.queueSize` proofs are to be made or confirmed.
    QueueSize,
    /// `limits.maxMemoryMb` is in use.
    MaxMemoryMb,
}

names!(Reason:
    DuplicateTask = "duplicate_task",
    UnknownParent = "unknown_parent",
    Cycle = "cycle",
    ParentFailed = "parent_failed",
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
    /// Whether the task may run once its ancestors are confirmed, without speculation.
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

impl From<GraphError> for Reason {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::DuplicateTask(_) => Self::DuplicateTask,
            GraphError::UnknownParent(_) => Self::UnknownParent,
            GraphError::Cycle(_) => Self::Cycle,
            GraphError::ParentFailed(_) => Self::ParentFailed,
        }
    }
}

/// A refusal. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The rule that was broken.
    pub reason: Reason,
    /// Where the graph refuses the task, what exactly is wrong.
    pub graph: Option<GraphError>,
    /// The depth it would have had, where that is known.
    pub depth: Option<u32>,
    /// The bond it would have needed, where that is known.
    pub bond: Option<Wei>,
}

impl Refused {
    pub(super) const fn new(reason: Reason) -> Self {
        Self { reason, graph: None, depth: None, bond: None }
    }
}

impl From<GraphError> for Refused {
    fn from(error: GraphError) -> Self {
        Self { graph: Some(error), ..Self::new(error.into()) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.graph {
            return error.fmt(f);
        }
        write!(f, "refused, {}", self.reason)?;
        if let Some(depth) = self.depth {
            write!(f, ", at depth {depth}")?;
        }
        if let Some(bond) = self.bond {
            write!(f, ", with a bond of {bond} wei")?;
        }
        f.write_str(match self.reason {
            reason if reason.is_about_speculation() => ": wait until its ancestors are confirmed",
            Reason::ClaimTooSoon => ": claim the task for longer than `claimBufferMs`",
            Reason::InsufficientStake => {
                ": wait until bonds come back, or raise the deposit or `stake.maxStake`"
            }
            _ => ": wait until tasks on their way are resolved, or raise the limit",
        })
    }
}

impl std::error::Error for Refused {}
