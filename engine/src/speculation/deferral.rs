//! Proofs, until the chain has them (AgenC §4.3).
//!
//! A proof may go out when every ancestor of its task is confirmed. Ready proofs go by the depth
//! that their tasks had when they were queued, then in the order of queueing; no more than
//! `maxConcurrent` are in flight. What the transport lost goes out again after `retryDelayMs`,
//! twice that, and so on, up to `maxRetries` attempts in all.
//!
//! A proof is queued when it is asked for, for `proof.queueTimeoutMs` at most, and made from when a
//! prover says that it begins, for `proof.timeoutMs` at most.

use super::table::{Table, Task, tree_bytes};
use crate::names;
use std::collections::BTreeSet;

/// Where a task's proof is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ProofStatus {
    /// The task has no output yet.
    #[default]
    None,
    /// The output is known, its proof is not asked for before every ancestor is confirmed
    /// (`features.enableOptimisticProofs: false`).
    Held,
    /// Asked for, and no prover has begun with it.
    Queued,
    /// A prover makes it.
    Proving,
    /// An ancestor is not confirmed.
    Waiting,
    /// It may go out.
    Ready,
    /// It was lost on its way and goes out again in a while.
    BackOff,
    /// In flight.
    Submitting,
    /// The chain has it.
    Confirmed,
    /// Its task was undone.
    Cancelled,
}

names!(ProofStatus:
    None = "none",
    Held = "held",
    Queued = "queued",
    Proving = "proving",
    Waiting = "waiting",
    Ready = "ready",
    BackOff = "back_off",
    Submitting = "submitting",
    Confirmed = "confirmed",
    Cancelled = "cancelled",
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Place in the queue among those of one depth.
    pub(super) order: u64,
    /// When the present status ends by itself, in milliseconds; `u64::MAX` for never.
    pub(super) until: u64,
    /// The number of the submission in flight.
    pub(super) submission: u64,
    pub(super) attempts: u32,
    pub(super) status: ProofStatus,
    /// The task's depth when it was queued.
    pub(super) depth: u8,
}

impl ProofStatus {
    /// Whether it ends by itself after a time.
    pub(super) const fn is_timed(self) -> bool {
        matches!(self, Self::Queued | Self::Proving | Self::BackOff | Self::Submitting)
    }

    /// Whether a proof is asked for or there, and the chain has not answered it.
    const fn is_pending(self) -> bool {
        self.is_timed() || matches!(self, Self::Waiting | Self::Ready)
    }
}

impl Default for Entry {
    fn default() -> Self {
        let status = ProofStatus::None;
        Self { order: 0, until: u64::MAX, submission: 0, attempts: 0, status, depth: 0 }
    }
}

/// The proofs of all tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Deferral {
    entries: Table<Entry>,
    ready: BTreeSet<(u8, u64, Task)>,
    /// Proofs by their status, those that are pending.
    counts: [usize; ProofStatus::ALL.len()],
    pub(super) next_order: u64,
    pub(super) next_submission: u64,
}

impl Deferral {
    pub(super) fn get(&self, task: Task) -> Entry {
        self.entries.get(task).copied().unwrap_or_default()
    }

    /// Proofs with this status, one of those that are pending.
    pub(super) const fn count(&self, status: ProofStatus) -> usize {
        self.counts[status as usize]
    }

    pub(super) const fn in_flight(&self) -> usize {
        self.count(ProofStatus::Submitting)
    }

    /// Proofs that are asked for or there, and that the chain has not answered.
    pub(super) fn pending(&self) -> usize {
        self.counts.iter().sum()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.bytes() + tree_bytes::<(u8, u64, Task)>(self.ready.len())
    }

    /// Puts a proof into another status, `until` some time if that ends by itself.
    pub(super) fn set(&mut self, task: Task, status: ProofStatus, until: u64) {
        let entry = self.get(task);
        self.put(task, Entry { until, status, ..entry });
    }

    /// Queues a task's proof, which is there now.
    pub(super) fn queue(&mut self, task: Task, depth: u8, clear: bool) {
        let status = if clear { ProofStatus::Ready } else { ProofStatus::Waiting };
        let order = self.next_order;
        self.next_order += 1;
        self.put(task, Entry { order, status, depth, ..Entry::default() });
    }

    /// The next proof to go out, if there is one and a slot for it: in flight `until` some time.
    pub(super) fn submit_next(&mut self, most: u64, until: u64) -> Option<(Task, Entry)> {
        if self.in_flight() as u64 >= most {
            return None;
        }
        let &(_, _, task) = self.ready.first()?;
        let entry = self.get(task);
        let submission = self.next_submission;
        self.next_submission += 1;
        let attempts = entry.attempts + 1;
        let status = ProofStatus::Submitting;
        self.put(task, Entry { until, submission, attempts, status, ..entry });
        Some((task, self.get(task)))
    }

    pub(super) fn forget(&mut self, task: Task) {
        self.put(task, Entry::default());
    }

    pub(super) fn put(&mut self, task: Task, entry: Entry) {
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
