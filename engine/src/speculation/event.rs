//! Events of each component, as they happen (AgenC §4). Those of §§4.3.2, 4.4.2 and 4.5.1 have
//! their names there. The source has no events for the graph, the ledger, the stake and the
//! breaker; these are named in the same style.
//!
//! A machine records events only if they are enabled ([`Speculation::tell_events`]); its caller
//! must then take them after each call ([`Speculation::poll_event`]). They influence nothing and
//! are not part of a snapshot: a machine with events otherwise behaves like one without.

use super::{
    BreakerState, CommitmentStatus, DependencyStatus, ProofStatus, Reason, RollbackReason,
    Speculation, TaskId, table::TaskIndex,
};
use crate::primitives::{Hash, Wei};

/// An event in a component of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time in milliseconds.
    pub at: u64,
    /// The task of the event; `None`: it is about the machine.
    pub task: Option<TaskId>,
    pub kind: SpeculationEventKind,
}

/// The contents of an event; AgenC §4 names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpeculationEventKind {
    TaskScheduled {
        /// Number of unconfirmed tasks above it on the longest path.
        depth: u32,
        bond: Wei,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// Scheduler: a task is refused, for a different reason than the last time.
    TaskRejected {
        reason: Reason,
        /// The depth that it would have had, if known.
        depth: Option<u32>,
        /// The bond that it would have needed, if known.
        bond: Option<Wei>,
    },
    /// Scheduler: a task's output is known.
    TaskCompleted {
        output_commitment: Hash,
    },
    TaskConfirmed,
    TaskFailed {
        reason: RollbackReason,
    },
    NodeAdded {
        parents: u32,
    },
    NodeChanged {
        status: DependencyStatus,
    },
    CommitmentCreated {
        output_commitment: Hash,
        /// End of its lifetime, in milliseconds.
        expires_at: u64,
    },
    CommitmentUpdated {
        status: CommitmentStatus,
    },
    /// Deferral: a proof's status has changed. A proof with status `submitting` has not reached the
    /// chain yet.
    ProofMoved {
        status: ProofStatus,
        /// The number of the submission attempt, from 1.
        attempt: u32,
    },
    ProofSubmitted {
        attempt: u32,
    },
    /// Deferral: the chain refused a proof, or all attempts to deliver it failed.
    ProofFailed,
    /// Deferral: this was the last unconfirmed ancestor of tasks whose proofs wait.
    AncestorConfirmed {
        /// Number of tasks that no longer wait.
        unblocked: u64,
    },
    /// Rollback: the tasks to be undone are determined.
    RollbackPlanned {
        reason: RollbackReason,
        /// Number of tasks, including the one that failed.
        tasks: u64,
        bonded: Wei,
    },
    RollbackExecuting,
    TaskRolledBack {
        trigger: TaskId,
    },
    RollbackCompleted {
        tasks: u64,
    },
    /// Stake: a bond is locked, or increased.
    StakeLocked {
        amount: Wei,
    },
    /// Stake: the rest of a bond is released.
    StakeReleased {
        amount: Wei,
    },
    StakeSlashed {
        amount: Wei,
    },
    BreakerChanged {
        state: BreakerState,
    },
    /// Breaker: half open, it lets a task through.
    BreakerProbe,
    ChainLost,
    ChainBack {
        away_ms: u64,
    },
}

macro_rules! kinds {
    ($($kind:pat => $name:literal,)*) => {
        /// The names of all events, in the order of components.
        pub const NAMES: &'static [&'static str] = &[$($name),*];

        /// The name of the event: that of the source if there is one.
        pub const fn name(&self) -> &'static str {
            match self {
                $($kind => $name,)*
            }
        }
    };
}

impl SpeculationEventKind {
    kinds! {
        Self::TaskScheduled { .. } => "task:scheduled",
        Self::TaskRejected { .. } => "task:rejected",
        Self::TaskCompleted { .. } => "task:completed",
        Self::TaskConfirmed => "task:confirmed",
        Self::TaskFailed { .. } => "task:failed",
        Self::NodeAdded { .. } => "graph:added",
        Self::NodeChanged { .. } => "graph:changed",
        Self::CommitmentCreated { .. } => "commitment:created",
        Self::CommitmentUpdated { .. } => "commitment:updated",
        Self::ProofMoved { status: ProofStatus::None | ProofStatus::Held, .. } => "proof:held",
        Self::ProofMoved { status: ProofStatus::Queued, .. } => "proof:queued",
        Self::ProofMoved { status: ProofStatus::Proving, .. } => "proof:proving",
        Self::ProofMoved { status: ProofStatus::Waiting, .. } => "proof:waiting",
        Self::ProofMoved { status: ProofStatus::Ready, .. } => "proof:ready",
        Self::ProofMoved { status: ProofStatus::BackOff, .. } => "proof:backOff",
        Self::ProofMoved { status: ProofStatus::Submitting, .. } => "proof:submitting",
        Self::ProofSubmitted { .. } => "proof:submitted",
        Self::ProofMoved { status: ProofStatus::Confirmed, .. } => "proof:confirmed",
        Self::ProofFailed => "proof:failed",
        Self::ProofMoved { status: ProofStatus::Cancelled, .. } => "proof:cancelled",
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

impl Speculation {
    /// Enables events: from now on they must be taken after each call.
    pub fn tell_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// The next event, oldest first; always `None` unless events are enabled.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop_front()
    }

    pub(super) fn tell(&mut self, at: TaskIndex, kind: SpeculationEventKind) {
        if self.events.is_some() {
            let task = self.graph.id(at);
            self.tell_of(Some(task), kind);
        }
    }

    /// Records an event of a task that may not be in the graph, or of the machine.
    pub(super) fn tell_of(&mut self, task: Option<TaskId>, kind: SpeculationEventKind) {
        if let Some(events) = &mut self.events {
            events.push_back(Event { at: self.now, task, kind });
        }
    }

    /// Sets a proof's status and records the event; `until` is its end if it is timed.
    pub(super) fn move_proof(&mut self, at: TaskIndex, status: ProofStatus, until: u64) {
        let moved = self.deferral.get(at).status != status;
        self.deferral.set(at, status, until);
        if moved {
            self.tell_proof(at);
        }
    }

    pub(super) fn tell_proof(&mut self, at: TaskIndex) {
        let entry = self.deferral.get(at);
        let (status, attempt) = (entry.status, entry.attempts);
        self.tell(at, SpeculationEventKind::ProofMoved { status, attempt });
    }

    pub(super) fn move_commitment(&mut self, at: TaskIndex, status: CommitmentStatus) {
        let moves = |one: CommitmentStatus| one.is_open() && one != status;
        let told =
            self.events.is_some() && self.ledger.get(at).is_some_and(|before| moves(before.status));
        self.ledger.set_status(at, status);
        if told {
            self.tell(at, SpeculationEventKind::CommitmentUpdated { status });
        }
    }

    pub(super) fn resolve_node(&mut self, at: TaskIndex, status: DependencyStatus) {
        self.graph.resolve(at, status);
        self.tell(at, SpeculationEventKind::NodeChanged { status });
    }
}
