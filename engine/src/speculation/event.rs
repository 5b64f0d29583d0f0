//! What happens in each component, as it happens (AgenC §4: the events of §§4.3.2, 4.4.2 and 4.5.1
//! under their names there; the graph, the ledger, the stake and the breaker, which have none in
//! the source, in the same manner).
//!
//! A machine tells of these only if it is asked to ([`Speculation::tell_events`]); its caller then
//! takes them after each call ([`Speculation::poll_event`]). They decide nothing and
//! are no part of a snapshot: a machine that tells is otherwise the same as one that does not.

use super::{
    BreakerState, CommitmentStatus, ProofStatus, Reason, RollbackReason, Speculation, Status,
    TaskId, table::Task,
};
use crate::primitives::{Hash, Wei};

/// Something that happened in a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in milliseconds.
    pub at: u64,
    /// The task that it is about; `None`: it is about the machine.
    pub task: Option<TaskId>,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Scheduler: a task is accepted.
    TaskScheduled {
        /// Unconfirmed tasks above it.
        depth: u32,
        /// What is locked for it.
        bond: Wei,
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// Scheduler: a task is refused, for another reason than the last time.
    TaskRejected {
        /// The rule that it breaks.
        reason: Reason,
        /// The depth it would have had, where that is known.
        depth: Option<u32>,
        /// The bond it would have needed, where that is known.
        bond: Option<Wei>,
    },
    /// Scheduler: a task's output is there.
    TaskCompleted {
        /// The commitment to it.
        output_commitment: Hash,
    },
    /// Scheduler: a task is confirmed.
    TaskConfirmed,
    /// Scheduler: a task failed.
    TaskFailed {
        /// Why.
        reason: RollbackReason,
    },
    /// Graph: a task is in it.
    NodeAdded {
        /// How many tasks it depends on.
        parents: u32,
    },
    /// Graph: a task's status has changed.
    NodeChanged {
        /// The new one.
        status: Status,
    },
    /// Ledger: a commitment to an output is made.
    CommitmentCreated {
        /// The commitment.
        output_commitment: Hash,
        /// When its time is over, in milliseconds.
        expires_at: u64,
    },
    /// Ledger: a commitment is further in its life.
    CommitmentUpdated {
        /// Where.
        status: CommitmentStatus,
    },
    /// Deferral: a proof is elsewhere on its way. A proof that is submitting has not reached the
    /// chain yet.
    ProofMoved {
        /// Where.
        status: ProofStatus,
        /// Of a submission, which attempt that is, from 1.
        attempt: u32,
    },
    /// Deferral: a proof has reached the chain.
    ProofSubmitted {
        /// Which attempt that is, from 1.
        attempt: u32,
    },
    /// Deferral: the chain refused a proof, or no attempt delivered it.
    ProofFailed,
    /// Deferral: this was the last unconfirmed ancestor of tasks whose proofs wait.
    AncestorConfirmed {
        /// How many tasks wait no more.
        unblocked: u64,
    },
    /// Rollback: it is known what is to be undone.
    RollbackPlanned {
        /// Why.
        reason: RollbackReason,
        /// Tasks, the one that failed among them.
        tasks: u64,
        /// Their bonds.
        bonded: Wei,
    },
    /// Rollback: it begins.
    RollbackExecuting,
    /// Rollback: one task is undone.
    TaskRolledBack {
        /// The task that failed.
        trigger: TaskId,
    },
    /// Rollback: all is undone.
    RollbackCompleted {
        /// Tasks undone.
        tasks: u64,
    },
    /// Stake: a bond is locked, or more of it.
    StakeLocked {
        /// How much.
        amount: Wei,
    },
    /// Stake: what is left of a bond is free again.
    StakeReleased {
        /// How much.
        amount: Wei,
    },
    /// Stake: something of it is lost.
    StakeSlashed {
        /// How much.
        amount: Wei,
    },
    /// Breaker: it lets through something else than before.
    BreakerChanged {
        /// What.
        state: BreakerState,
    },
    /// Breaker: half open, it lets a task through.
    BreakerProbe,
    /// The chain cannot be reached.
    ChainLost,
    /// The chain can be reached again.
    ChainBack {
        /// How long it was away, in milliseconds.
        away_ms: u64,
    },
}

impl EventKind {
    /// Names of all, in the order of components.
    pub const NAMES: &'static [&'static str] = &[
        "task:scheduled",
        "task:rejected",
        "task:completed",
        "task:confirmed",
        "task:failed",
        "graph:added",
        "graph:changed",
        "commitment:created",
        "commitment:updated",
        "proof:held",
        "proof:queued",
        "proof:proving",
        "proof:waiting",
        "proof:ready",
        "proof:backOff",
        "proof:submitting",
        "proof:submitted",
        "proof:confirmed",
        "proof:failed",
        "proof:cancelled",
        "ancestor:confirmed",
        "rollback:planned",
        "rollback:executing",
        "rollback:taskRolledBack",
        "rollback:completed",
        "stake:locked",
        "stake:released",
        "stake:slashed",
        "breaker:changed",
        "breaker:probe",
        "chain:lost",
        "chain:back",
    ];

    /// Its name: that of the source where it has one.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TaskScheduled { .. } => "task:scheduled",
            Self::TaskRejected { .. } => "task:rejected",
            Self::TaskCompleted { .. } => "task:completed",
            Self::TaskConfirmed => "task:confirmed",
            Self::TaskFailed { .. } => "task:failed",
            Self::NodeAdded { .. } => "graph:added",
            Self::NodeChanged { .. } => "graph:changed",
            Self::CommitmentCreated { .. } => "commitment:created",
            Self::CommitmentUpdated { .. } => "commitment:updated",
            Self::ProofMoved { status, .. } => match status {
                ProofStatus::None | ProofStatus::Held => "proof:held",
                ProofStatus::Queued => "proof:queued",
                ProofStatus::Proving => "proof:proving",
                ProofStatus::Waiting => "proof:waiting",
                ProofStatus::Ready => "proof:ready",
                ProofStatus::BackOff => "proof:backOff",
                ProofStatus::Submitting => "proof:submitting",
                ProofStatus::Confirmed => "proof:confirmed",
                ProofStatus::Cancelled => "proof:cancelled",
            },
            Self::ProofSubmitted { .. } => "proof:submitted",
            Self::ProofFailed => "proof:failed",
            Self::AncestorConfirmed { .. } => "ancestor:confirmed",
            Self::RollbackPlanned { .. } => "rollback:planned",
            Self::RollbackExecuting => "rollback:executing",
            Self::TaskRolledBack { .. } => "rollback:taskRolledBack",
            Self::RollbackCompleted { .. } => "rollback:completed",
            Self::StakeLocked { .. } => "stake:locked",
            Self::StakeReleased { .. } => "stake:released",
            Self::StakeSlashed { .. } => "stake:slashed",
            Self::BreakerChanged { .. } => "breaker:changed",
            Self::BreakerProbe => "breaker:probe",
            Self::ChainLost => "chain:lost",
            Self::ChainBack { .. } => "chain:back",
        }
    }
}

impl Speculation {
    /// Tells of events from now on: they are to be taken after each call.
    pub fn tell_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// What happened, oldest first; nothing unless it was asked for.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop_front()
    }

    /// Tells of what happens to a task.
    pub(super) fn tell(&mut self, at: Task, kind: EventKind) {
        if self.events.is_some() {
            let task = self.graph.id(at);
            self.tell_of(Some(task), kind);
        }
    }

    /// Tells of what happens to a task that may not be in the graph, or to the machine.
    pub(super) fn tell_of(&mut self, task: Option<TaskId>, kind: EventKind) {
        if let Some(events) = &mut self.events {
            events.push_back(Event { at: self.now, task, kind });
        }
    }

    /// Puts a proof into another status, `until` some time if that ends by itself.
    pub(super) fn move_proof(&mut self, at: Task, status: ProofStatus, until: u64) {
        let moved = self.deferral.get(at).status != status;
        self.deferral.set(at, status, until);
        if moved {
            self.tell_proof(at);
        }
    }

    /// Tells where a proof is.
    pub(super) fn tell_proof(&mut self, at: Task) {
        let entry = self.deferral.get(at);
        let (status, attempt) = (entry.status, entry.attempts);
        self.tell(at, EventKind::ProofMoved { status, attempt });
    }

    /// Moves an open commitment on.
    pub(super) fn move_commitment(&mut self, at: Task, status: CommitmentStatus) {
        let moves = |one: CommitmentStatus| one.is_open() && one != status;
        let told =
            self.events.is_some() && self.ledger.get(at).is_some_and(|before| moves(before.status));
        self.ledger.set_status(at, status);
        if told {
            self.tell(at, EventKind::CommitmentUpdated { status });
        }
    }

    /// Resolves a task in the graph.
    pub(super) fn resolve_node(&mut self, at: Task, status: Status) {
        self.graph.resolve(at, status);
        self.tell(at, EventKind::NodeChanged { status });
    }
}
