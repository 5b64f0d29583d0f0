//! The agent's messages to the chain about tasks, each sent as a transaction.

use cowboy_engine::speculation::{RollbackReason, TaskId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainMessage {
    pub(super) task: TaskId,
    pub(super) attempt: u32,
    pub(super) kind: MessageKind,
    /// Whether it may have been sent before, by this process or an earlier one: the chain is
    /// checked first.
    pub(super) doubtful: bool,
}

/// The instruction of a message. A claim ends at `until`, Unix ms; `Resolve(None)` releases a bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Create,
    Claim { until: u64 },
    Commit,
    Complete { submission: u64, wrong: bool },
    Resolve(Option<RollbackReason>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ChainPace {
    pub(super) now: u64,
    pub(super) block_ms: u64,
}

impl MessageKind {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Create => "create_task",
            Self::Claim { .. } => "claim_task",
            Self::Commit => "create_commitment",
            Self::Complete { .. } => "complete_task_private",
            Self::Resolve(_) => "resolve_commitment",
        }
    }
}
