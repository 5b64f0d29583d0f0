//! The consequences of a call: confirmations propagate down the graph, triggers become rollbacks,
//! ready proofs take free slots.

use super::{
    CommitmentStatus, DependencyStatus, ProofStatus, Speculation,
    breaker::{Breaker, BreakerLimits},
    deadlines::NEVER,
    deferral::DeferredTask,
    event::SpeculationEventKind,
    output::EngineOutput,
    table::TaskIndex,
};

impl Speculation {
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
}
