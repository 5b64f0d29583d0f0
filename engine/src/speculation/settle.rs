//! The consequences of a call: confirmations propagate down the graph, triggers become rollbacks,
//! ready proofs take free slots, deadlines pass.

use super::{
    CommitmentStatus, DependencyStatus, ProofStatus, RollbackPolicy, RollbackReason, Speculation,
    TaskId,
    breaker::{Breaker, BreakerLimits, TaskFailure},
    deferral::DeferredTask,
    engine::{Counters, EngineOutput, HISTORY, TaskTerms},
    event::SpeculationEventKind,
    ledger::Checkpoint,
    rollback::{Plan, Summary},
    table::TaskIndex,
};
use crate::primitives::Wei;

pub(super) const NEVER: u64 = u64::MAX;

impl Speculation {
    /// The time of the next deadline, in milliseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        if let Some(away) = &self.away {
            return away.next_try();
        }
        let prune = self.graph.oldest_retired(self.config.retained_tasks).is_some();
        let prune = prune.then(|| self.pruned_at.saturating_add(self.config.gc_interval_ms));
        let task = self.deadlines.first().map(|&(at, _)| at);
        task.into_iter().chain(prune).min()
    }

    /// Time until the first claim on a live task expires, in milliseconds. Claims on tasks with
    /// held confirmations do not count, because the chain has confirmed those.
    pub fn time_to_expiry(&self) -> Option<u64> {
        let counts = |at: &TaskIndex| self.graph.status_of(*at).is_live() && !self.terms[*at].held;
        let live = self.graph.places().filter(counts);
        let first = live.map(|at| self.terms[at].claim_expires_at).min();
        first.map(|at| at.saturating_sub(self.now))
    }

    /// Advances the clock and handles everything that is due.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        if self.away.is_some() {
            self.try_chain();
        } else if self.deadlines.first().is_some_and(|&(at, _)| at <= self.now) {
            self.expire();
        }
        if !self.triggers.is_empty() {
            self.settle();
        }
        if self.now - self.pruned_at >= self.config.gc_interval_ms {
            self.prune();
        }
    }

    /// Carries out the requested rollbacks, one at a time, then fills the slots.
    pub(super) fn settle(&mut self) {
        while let Some((task, reason)) = self.triggers.pop_front() {
            self.roll_back(task, reason);
        }
        if self.away.is_some() {
            return;
        }
        let until = self.now.saturating_add(self.config.confirmation_timeout_ms);
        while let Some((at, entry)) = self.deferral.submit_next(self.config.max_concurrent, until) {
            self.watch(at);
            self.tell_proof(at);
            self.counters.proofs_submitted += 1;
            self.outputs.push_back(EngineOutput::Submit {
                task: self.graph.id(at),
                submission: entry.submission,
                attempt: entry.attempts,
            });
        }
    }

    /// Confirms a task whose ancestors are all confirmed, and the tasks below with held
    /// confirmations.
    pub(super) fn confirm_from(&mut self, at: TaskIndex) {
        let mut confirmed = vec![at];
        let mut next = 0;
        while let Some(&at) = confirmed.get(next) {
            next += 1;
            self.apply_confirmation(at);
            let children: Vec<_> = self.graph.child_edges(at).map(|edge| edge.child).collect();
            let waited = self.deferral.count(ProofStatus::Waiting);
            for child in children {
                if !self.graph.status_of(child).is_live() || !self.graph.is_clear(child) {
                    continue;
                }
                if self.terms[child].held {
                    confirmed.push(child);
                } else {
                    self.clear(child);
                }
            }
            let unblocked = (waited - self.deferral.count(ProofStatus::Waiting)) as u64;
            if unblocked > 0 {
                self.tell(at, SpeculationEventKind::AncestorConfirmed { unblocked });
            }
        }
    }

    /// Requests the proof of a task whose output is known, now or when its ancestors are confirmed.
    pub(super) fn ask_for_proof(&mut self, at: TaskIndex) {
        if self.config.enable_optimistic_proofs || self.graph.is_clear(at) {
            let until = self.now.saturating_add(self.config.proof_queue_timeout_ms);
            self.move_proof(at, ProofStatus::Queued, until);
            self.outputs.push_back(EngineOutput::Prove { task: self.graph.id(at) });
        } else {
            self.move_proof(at, ProofStatus::Held, NEVER);
        }
        self.watch(at);
    }

    /// Delays a lost proof before it is submitted again; returns the delay in milliseconds.
    pub(super) fn back_off(&mut self, at: TaskIndex) -> u64 {
        let doublings = self.deferral.get(at).attempts.saturating_sub(1);
        let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let delay = self.config.retry_delay_ms.saturating_mul(factor);
        self.move_proof(at, ProofStatus::BackOff, self.now.saturating_add(delay));
        self.move_commitment(at, CommitmentStatus::ProofGenerated);
        self.watch(at);
        delay
    }

    /// Takes back a submission that did not reach the chain because the chain is lost.
    pub(super) fn hold_back(&mut self, at: TaskIndex) {
        let entry = self.deferral.get(at);
        let (attempts, status) = (entry.attempts.saturating_sub(1), ProofStatus::Ready);
        self.deferral.put(at, DeferredTask { attempts, status, until: NEVER, ..entry });
        self.tell_proof(at);
        self.move_commitment(at, CommitmentStatus::ProofGenerated);
        self.watch(at);
    }

    /// Restarts the current timeout of a task's proof.
    pub(super) fn begin_again(&mut self, at: TaskIndex) {
        let status = self.deferral.get(at).status;
        let lasts = match status {
            ProofStatus::Queued => self.config.proof_queue_timeout_ms,
            ProofStatus::Proving => self.config.proof_timeout_ms,
            ProofStatus::Submitting => self.config.confirmation_timeout_ms,
            _ => return,
        };
        self.deferral.set(at, status, self.now.saturating_add(lasts));
    }

    /// Updates a task's earliest deadline.
    pub(super) fn watch(&mut self, at: TaskIndex) {
        let terms = &self.terms[at];
        let deadline = if !self.graph.status_of(at).is_live() || terms.held {
            NEVER
        } else {
            let expiry = self.ledger.get(at).map_or(NEVER, |commitment| commitment.expires_at);
            terms.claim_expires_at.min(expiry).min(self.deferral.get(at).until)
        };
        if deadline == terms.deadline {
            return;
        }
        if terms.deadline != NEVER {
            self.deadlines.remove(&(terms.deadline, at));
        }
        if deadline != NEVER {
            self.deadlines.insert((deadline, at));
        }
        self.terms[at].deadline = deadline;
    }

    /// Calls the breaker and reports a change of its state.
    pub(super) fn with_breaker(&mut self, call: impl FnOnce(&mut Breaker, BreakerLimits, u64)) {
        let limits = self.config.breaker;
        let before = self.breaker.state(limits, self.now);
        call(&mut self.breaker, limits, self.now);
        let after = self.breaker.state(limits, self.now);
        if before != after {
            self.outputs.push_back(EngineOutput::Breaker(after));
            self.tell_of(None, SpeculationEventKind::BreakerChanged { state: after });
        }
    }

    /// Removes the tasks that were resolved first.
    fn prune(&mut self) {
        self.pruned_at = self.now;
        while let Some(at) = self.graph.oldest_retired(self.config.retained_tasks) {
            self.graph.remove(at);
            self.ledger.remove(at);
            self.deferral.forget(at);
            self.terms[at] = TaskTerms::default();
        }
    }

    fn apply_confirmation(&mut self, at: TaskIndex) {
        let (task, bond) = (self.graph.id(at), self.bond(at));
        self.resolve_node(at, DependencyStatus::Confirmed);
        self.move_commitment(at, CommitmentStatus::Confirmed);
        self.move_proof(at, ProofStatus::Confirmed, NEVER);
        self.terms[at].held = false;
        self.watch(at);
        self.stake.release(bond);
        self.tell(at, SpeculationEventKind::StakeReleased { amount: bond });
        self.tell(at, SpeculationEventKind::TaskConfirmed);
        self.counters.proofs_confirmed += 1;
        self.outputs.push_back(EngineOutput::Confirmed { task, released: bond });
        self.with_breaker(|breaker, _, now| {
            breaker.record_success(task);
            breaker.record_outcome(false, now);
        });
    }

    /// The last unconfirmed ancestor of a live task was confirmed.
    fn clear(&mut self, at: TaskIndex) {
        match self.deferral.get(at).status {
            ProofStatus::Held => self.ask_for_proof(at),
            ProofStatus::Waiting => self.move_proof(at, ProofStatus::Ready, NEVER),
            _ => {}
        }
    }

    /// Handles everything that is due: undoes overdue tasks, roots first, and readies proofs after
    /// their back-off.
    fn expire(&mut self) {
        let all = ..=(self.now, TaskIndex::NONE);
        let mut due: Vec<_> = self.deadlines.range(all).map(|&(_, at)| at).collect();
        due.sort_unstable_by_key(|&at| (self.graph.counted_depth(at), self.graph.nodes[at].seq));
        let mut ready = Vec::new();
        for at in due {
            match self.overdue(at) {
                Some(reason) => self.triggers.push_back((self.graph.id(at), reason)),
                None => ready.push(at),
            }
        }
        while let Some((task, reason)) = self.triggers.pop_front() {
            self.roll_back(task, reason);
        }
        for at in ready {
            if self.deferral.get(at).status == ProofStatus::BackOff {
                self.move_proof(at, ProofStatus::Ready, NEVER);
                self.watch(at);
            }
        }
        self.settle();
    }

    /// The reason to undo a task with a deadline that has passed; `None` if it is only a retry.
    fn overdue(&self, at: TaskIndex) -> Option<RollbackReason> {
        let expiry = self.ledger.get(at).map_or(NEVER, |commitment| commitment.expires_at);
        if self.terms[at].claim_expires_at <= self.now {
            Some(RollbackReason::ClaimExpired)
        } else if expiry <= self.now {
            Some(RollbackReason::CommitmentExpired)
        } else if self.deferral.get(at).status == ProofStatus::BackOff {
            None
        } else {
            Some(RollbackReason::ProofTimeout)
        }
    }

    /// Makes the plan for a trigger and carries it out.
    fn roll_back(&mut self, trigger: TaskId, reason: RollbackReason) {
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
