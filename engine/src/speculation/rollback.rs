//! Rollbacks: the tasks that are undone when a task fails (AgenC §4.4).
//!
//! A trigger is a task and a reason. Triggers are queued. One plan at a time is made and carried
//! out, on the current graph: a trigger whose task has been rolled back or confirmed by then is
//! skipped. A plan undoes leaves first, its trigger last.

use super::{
    CommitmentStatus, DependencyStatus, ProofStatus, RollbackPolicy, Speculation, TaskId,
    breaker::TaskFailure,
    deadlines::NEVER,
    event::SpeculationEventKind,
    ledger::Checkpoint,
    output::{EngineOutput, Plan, Summary},
    reason::RollbackReason,
    table::TaskIndex,
    view::Counters,
};
use crate::primitives::Wei;

/// Maximum number of rollbacks that are remembered.
pub const HISTORY: usize = 64;

impl Speculation {
    /// Makes the plan for a trigger and carries it out.
    pub(super) fn roll_back(&mut self, trigger: TaskId, reason: RollbackReason) {
        let Some(at) = self.graph.find(&trigger) else { return };
        if !self.graph.status_of(at).is_live() {
            return;
        }
        let selective = self.config.rollback_policy == RollbackPolicy::Selective;
        let affected = self.graph.affected(at, selective);
        let tasks = self.graph.ids_of(&affected);
        let count = tasks.len() as u64;
        if self.events.is_some() {
            let bonds = affected.iter().map(|one| self.bond(*one));
            let bonded = bonds.fold(Wei::ZERO, Wei::saturating_add);
            self.tell(at, SpeculationEventKind::RollbackPlanned { reason, tasks: count, bonded });
            self.tell(at, SpeculationEventKind::RollbackExecuting);
        }
        let (mut slashed, mut released) = (Wei::ZERO, Wei::ZERO);
        for &one in &affected {
            let bond = self.bond(one);
            let lost = if one == at {
                self.stake.slash(bond, self.bonds.slashing.points(reason))
            } else {
                self.keep_checkpoint(one);
                self.stake.release(bond);
                Wei::ZERO
            };
            slashed = slashed.saturating_add(lost);
            released = released.saturating_add(bond.saturating_sub(lost));
            self.undo(one, (one == at).then_some(reason));
            let rest = bond.saturating_sub(lost);
            for (amount, kind) in [
                (lost, SpeculationEventKind::StakeSlashed { amount: lost }),
                (rest, SpeculationEventKind::StakeReleased { amount: rest }),
            ] {
                if !amount.is_zero() {
                    self.tell(one, kind);
                }
            }
            self.tell(one, SpeculationEventKind::TaskRolledBack { trigger });
        }
        self.tell(at, SpeculationEventKind::TaskFailed { reason });
        if reason.is_failure() {
            self.with_breaker(|breaker, limits, now| {
                breaker.record_failure(
                    limits,
                    TaskFailure { task: trigger, reason, at: now },
                    &tasks,
                );
                for _ in &tasks {
                    breaker.record_outcome(true, now);
                }
            });
        } else {
            self.breaker.release(&tasks);
        }
        if !slashed.is_zero() {
            self.cooldown_until = self.now.saturating_add(self.config.cooldown_period_ms);
            self.with_breaker(|breaker, limits, now| breaker.record_slash(limits, slashed, now));
        }
        self.tell(at, SpeculationEventKind::RollbackCompleted { tasks: count });
        let at = self.now;
        let summary = Summary { trigger, reason, tasks: count, slashed, released, at };
        Counters::count(&mut self.counters.rollbacks, reason as usize);
        self.counters.tasks_rolled_back += count;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(summary.clone());
        self.outputs.push_back(EngineOutput::RolledBack(Plan { summary, tasks }));
    }

    /// Undoes one task: the trigger for its reason, others because it failed.
    fn undo(&mut self, at: TaskIndex, reason: Option<RollbackReason>) {
        let (status, commitment) = match reason {
            None => (DependencyStatus::RolledBack, CommitmentStatus::RolledBack),
            Some(RollbackReason::CommitmentExpired) => {
                (DependencyStatus::Failed, CommitmentStatus::Expired)
            }
            Some(_) => (DependencyStatus::Failed, CommitmentStatus::Failed),
        };
        self.resolve_node(at, status);
        self.move_commitment(at, commitment);
        self.move_proof(at, ProofStatus::Cancelled, NEVER);
        self.terms[at].held = false;
        self.watch(at);
    }

    fn keep_checkpoint(&mut self, at: TaskIndex) {
        let task = self.graph.id(at);
        let most = usize::try_from(self.config.max_state_snapshots).unwrap_or(usize::MAX);
        let kept = self.ledger.get(at).filter(|one| one.checkpoint).map(|one| one.opening);
        let checkpoint = self.config.rollback_policy == RollbackPolicy::Checkpoint;
        let Some(opening) = kept.filter(|_| checkpoint && most > 0) else { return };
        while self.checkpoints.len() >= most {
            self.checkpoints.pop_front();
        }
        let inputs = self.terms[at].inputs;
        self.checkpoints.push_back(Checkpoint { task, inputs, opening });
    }
}
