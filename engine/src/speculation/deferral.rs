//! The way of proofs to the chain (AgenC §4.3).
//!
//! A proof may go out when every ancestor of its task is confirmed. Ready proofs go out by the
//! depth that their tasks had when they were queued, then in order of queueing; at most
//! `maxConcurrent` are in flight. A proof that the transport lost goes out again after
//! `retryDelayMs`, then after twice that, and so on, up to `maxRetries` attempts in total.
//!
//! A proof is queued when it is requested, for at most `proof.queueTimeoutMs`. Its making starts
//! when a prover reports so, and may take at most `proof.timeoutMs`.

use super::table::{Table, TaskIndex, tree_bytes};
use crate::names;
use std::collections::BTreeSet;

names! {
    /// The status of a task's proof.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
    pub enum ProofStatus {
        #[default]
        None = "none",
        /// The output is known, but the proof is not requested until every ancestor is confirmed
        /// (`features.enableOptimisticProofs: false`).
        Held = "held",
        /// Requested, but no prover has begun with it.
        Queued = "queued",
        Proving = "proving",
        /// An ancestor is not confirmed yet.
        Waiting = "waiting",
        Ready = "ready",
        /// It was lost in transit and will be submitted again after a delay.
        BackOff = "back_off",
        Submitting = "submitting",
        Confirmed = "confirmed",
        Cancelled = "cancelled",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeferredTask {
    /// Place in the queue among proofs of one depth.
    pub(super) order: u64,
    /// End of the current status, in milliseconds; `u64::MAX` for never.
    pub(super) until: u64,
    pub(super) submission: u64,
    pub(super) attempts: u32,
    pub(super) status: ProofStatus,
    /// The task's depth when it was queued.
    pub(super) depth: u16,
}

impl ProofStatus {
    pub(super) const fn is_timed(self) -> bool {
        matches!(self, Self::Queued | Self::Proving | Self::BackOff | Self::Submitting)
    }

    /// Whether the proof is requested or made, and the chain has not answered it.
    const fn is_pending(self) -> bool {
        self.is_timed() || matches!(self, Self::Waiting | Self::Ready)
    }
}

impl Default for DeferredTask {
    fn default() -> Self {
        let status = ProofStatus::None;
        Self { order: 0, until: u64::MAX, submission: 0, attempts: 0, status, depth: 0 }
    }
}

/// The proofs of all tasks, and the queue for submission.
#[derive(Clone, Debug, Default)]
pub(super) struct Deferral {
    entries: Table<DeferredTask>,
    ready: BTreeSet<(u16, u64, TaskIndex)>,
    /// Number of pending proofs, by status.
    counts: [usize; ProofStatus::ALL.len()],
    pub(super) next_order: u64,
    pub(super) next_submission: u64,
}

impl Deferral {
    pub(super) fn get(&self, task: TaskIndex) -> DeferredTask {
        self.entries.get(task).copied().unwrap_or_default()
    }

    /// Number of proofs with this status, which must be a pending one.
    pub(super) const fn count(&self, status: ProofStatus) -> usize {
        self.counts[status as usize]
    }

    pub(super) const fn in_flight(&self) -> usize {
        self.count(ProofStatus::Submitting)
    }

    /// Number of proofs that are requested or made and that the chain has not answered.
    pub(super) fn pending(&self) -> usize {
        self.counts.iter().sum()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes() + tree_bytes::<(u16, u64, TaskIndex)>(self.ready.len())
    }

    /// Sets a proof's status; `until` is its end if it is timed.
    pub(super) fn set(&mut self, task: TaskIndex, status: ProofStatus, until: u64) {
        let entry = self.get(task);
        self.put(task, DeferredTask { until, status, ..entry });
    }

    /// Queues a task's proof, which has been made.
    pub(super) fn queue(&mut self, task: TaskIndex, depth: u16, clear: bool) {
        let status = if clear { ProofStatus::Ready } else { ProofStatus::Waiting };
        let order = self.next_order;
        self.next_order += 1;
        self.put(task, DeferredTask { order, status, depth, ..DeferredTask::default() });
    }

    /// Submits the next proof, if there is one and a free slot; it is in flight until `until`.
    pub(super) fn submit_next(
        &mut self,
        most: u64,
        until: u64,
    ) -> Option<(TaskIndex, DeferredTask)> {
        if self.in_flight() as u64 >= most {
            return None;
        }
        let &(_, _, task) = self.ready.first()?;
        let entry = self.get(task);
        let submission = self.next_submission;
        self.next_submission += 1;
        let attempts = entry.attempts + 1;
        let status = ProofStatus::Submitting;
        self.put(task, DeferredTask { until, submission, attempts, status, ..entry });
        Some((task, self.get(task)))
    }

    pub(super) fn forget(&mut self, task: TaskIndex) {
        self.put(task, DeferredTask::default());
    }

    pub(super) fn put(&mut self, task: TaskIndex, entry: DeferredTask) {
        let before = self.get(task);
        if before.status == ProofStatus::Ready {
            self.ready.remove(&(before.depth, before.order, task));
        }
        if entry.status == ProofStatus::Ready {
            self.ready.insert((entry.depth, entry.order, task));
        }
        self.counts[before.status as usize] -= usize::from(before.status.is_pending());
        self.counts[entry.status as usize] += usize::from(entry.status.is_pending());
        self.entries.cover(task);
        self.entries[task] = entry;
    }
}
