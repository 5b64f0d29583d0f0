//! Deadlines: when the next one passes, and what happens then.

use super::{ProofStatus, Speculation, reason::RollbackReason, table::TaskIndex};
use crate::primitives::Hash;

pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskTerms {
    /// In the smallest unit; bonds fit this range.
    pub(super) bond: u64,
    /// The digest of the outputs that it reads.
    pub(super) inputs: Hash,
    /// Time of acceptance, in milliseconds.
    pub(super) accepted_at: u64,
    pub(super) claim_expires_at: u64,
    /// The earliest of the task's deadlines; [`NEVER`] without one.
    pub(super) deadline: u64,
    pub(super) attempt: u32,
    /// Whether its confirmation arrived before its parents'.
    pub(super) held: bool,
}

impl Default for TaskTerms {
    fn default() -> Self {
        Self {
            bond: 0,
            inputs: Hash::ZERO,
            accepted_at: 0,
            claim_expires_at: NEVER,
            deadline: NEVER,
            attempt: 0,
            held: false,
        }
    }
}

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

    /// Removes the tasks that were resolved first.
    pub(super) fn prune(&mut self) {
        self.pruned_at = self.now;
        while let Some(at) = self.graph.oldest_retired(self.config.retained_tasks) {
            self.graph.remove(at);
            self.ledger.remove(at);
            self.deferral.forget(at);
            self.terms[at] = TaskTerms::default();
        }
    }

    /// Handles everything that is due: undoes overdue tasks, roots first, and readies proofs after
    /// their back-off.
    pub(super) fn expire(&mut self) {
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
}
