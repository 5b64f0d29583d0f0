//! The machine as others see it: its tasks, its counts, its current values.

use super::{
    DependencyStatus, OutputCommitment, PROOF_BYTES, ProofStatus, Speculation, TaskId,
    breaker::{Breaker, BreakerState},
    config::Config,
    graph::Graph,
    ledger::Checkpoint,
    output::{EngineOutput, Summary},
    stake::Stake,
    table::{TaskIndex, tree_bytes},
};
use crate::{
    primitives::{Hash, Wei},
    record,
};

record! {
    /// Counts since the start, named like the metrics (AgenC §8.1).
    #[derive(Clone, Debug, PartialEq, Eq, Default)]
    pub struct Counters {
        pub tasks_scheduled: u64,
        /// Tasks refused, in the order of [`Reason::ALL`](super::Reason::ALL). A repeated request
        /// that is refused for the same reason counts once
        /// ([`RunRequest::refused`](super::RunRequest::refused)).
        pub tasks_rejected: Vec<u64>,
        /// Proofs handed out for submission, including repetitions.
        pub proofs_submitted: u64,
        pub proofs_confirmed: u64,
        /// Proofs that the chain refused or that were not delivered.
        pub proofs_failed: u64,
        /// Rollbacks, in the order of [`RollbackReason::ALL`](super::RollbackReason::ALL).
        pub rollbacks: Vec<u64>,
        pub tasks_rolled_back: u64,
    }
}

impl Counters {
    pub(super) fn count(row: &mut Vec<u64>, at: usize) {
        if row.len() <= at {
            row.resize(at + 1, 0);
        }
        row[at] += 1;
    }
}

/// Current values, named like the metrics (AgenC §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// Commitments whose proofs may still be confirmed.
    pub active_commitments: u64,
    /// Proofs that are queued, being made, waiting, ready or in flight.
    pub pending_proofs: u64,
    /// Pending proofs that no prover has begun with.
    pub queued_proofs: u64,
    pub proving: u64,
    /// Proofs that wait until every ancestor is confirmed.
    pub waiting_proofs: u64,
    /// Proofs that may be submitted, at once or after a back-off.
    pub ready_proofs: u64,
    pub submitting_proofs: u64,
    /// Sum of the bonds of live tasks.
    pub locked_stake: Wei,
    /// Depth of the deepest live task.
    pub max_depth_current: u32,
}

/// The current state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskView {
    pub id: TaskId,
    pub status: DependencyStatus,
    pub depth: u32,
    /// Its bond, locked while it is live.
    pub bond: Wei,
    /// When its claim expires, in milliseconds.
    pub claim_expires_at: u64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether its confirmation waits for its parents'.
    pub held: bool,
    pub proof: ProofStatus,
    pub submissions: u32,
}

impl Speculation {
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The latest time passed to a call, in milliseconds.
    pub const fn now(&self) -> u64 {
        self.now
    }

    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    pub const fn stake(&self) -> &Stake {
        &self.stake
    }

    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state(self.config.breaker, self.now)
    }

    pub fn can_proceed(&self) -> bool {
        self.breaker.can_proceed(self.config.breaker, self.now)
    }

    pub fn task(&self, id: &TaskId) -> Option<TaskView> {
        let at = self.graph.find(id)?;
        let (terms, entry) = (&self.terms[at], self.deferral.get(at));
        Some(TaskView {
            id: *id,
            status: self.graph.status_of(at),
            depth: self.graph.depth(id)?,
            bond: self.bond(at),
            claim_expires_at: terms.claim_expires_at,
            attempt: terms.attempt,
            held: terms.held,
            proof: entry.status,
            submissions: entry.attempts,
        })
    }

    pub fn commitment(&self, id: &TaskId) -> Option<&OutputCommitment> {
        self.ledger.get(self.graph.find(id)?)
    }

    /// The tasks that committed to an output, in order of their places in the table.
    pub fn committed_to(&self, output: Hash) -> Vec<TaskId> {
        self.ledger.by_output(output).map(|at| self.graph.id(at)).collect()
    }

    /// A task's proof, from when it is made until the task is resolved.
    pub fn proof(&self, id: &TaskId) -> Option<&[u8; PROOF_BYTES]> {
        self.commitment(id)?.proof.as_deref()
    }

    /// The outputs that checkpoints kept, oldest first.
    pub fn checkpoints(&self) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter()
    }

    /// The last rollbacks, oldest first, at most [`HISTORY`](super::rollback::HISTORY).
    pub fn history(&self) -> impl Iterator<Item = &Summary> {
        self.history.iter()
    }

    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn gauges(&self) -> Gauges {
        let proofs = |status| self.deferral.count(status) as u64;
        Gauges {
            active_commitments: self.ledger.open() as u64,
            pending_proofs: self.deferral.pending() as u64,
            queued_proofs: proofs(ProofStatus::Queued),
            proving: proofs(ProofStatus::Proving),
            waiting_proofs: proofs(ProofStatus::Waiting),
            ready_proofs: proofs(ProofStatus::Ready) + proofs(ProofStatus::BackOff),
            submitting_proofs: proofs(ProofStatus::Submitting),
            locked_stake: self.stake.locked,
            max_depth_current: self.graph.max_depth(),
        }
    }

    /// Number of proofs that wait for a slot, and of those in flight.
    pub fn proofs(&self) -> (usize, usize) {
        (self.deferral.ready(), self.deferral.in_flight())
    }

    /// Sets the memory used elsewhere for the machine's tasks, in bytes: it counts towards
    /// `limits.maxMemoryMb`, and is not part of a snapshot.
    pub const fn set_memory_elsewhere(&mut self, bytes: u64) {
        self.elsewhere = bytes;
    }

    /// Bytes of memory in use, by the machine and as set for elsewhere.
    pub fn memory(&self) -> u64 {
        let lists = self.checkpoints.capacity() * size_of::<Checkpoint>()
            + self.history.capacity() * size_of::<Summary>()
            + self.outputs.capacity() * size_of::<EngineOutput>();
        let bytes = self.graph.bytes()
            + self.ledger.bytes()
            + self.deferral.bytes()
            + self.terms.bytes()
            + tree_bytes::<(u64, TaskIndex)>(self.deadlines.len())
            + lists;
        (bytes as u64).saturating_add(self.elsewhere)
    }
}
