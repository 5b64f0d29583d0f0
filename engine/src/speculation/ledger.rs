//! Commitments to tasks' outputs, before the chain knows the outputs (AgenC §4.2).
//!
//! A commitment is made when a task's output is known, and is kept until the task is pruned or
//! scheduled again. Several tasks may commit to the same output.

use super::{
    PROOF_BYTES, TaskId,
    table::{Table, TaskIndex, tree_bytes},
};
use crate::{names, primitives::Hash};
use std::{collections::BTreeSet, fmt};

names! {
    /// The status of a commitment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CommitmentStatus {
        /// The output is known, but its proof is not made.
        Created = "created",
        ProofGenerated = "proof_generated",
        /// The proof is on its way to the chain.
        Submitted = "submitted",
        Confirmed = "confirmed",
        Failed = "failed",
        /// Its lifetime ended before it was confirmed.
        Expired = "expired",
        RolledBack = "rolled_back",
    }
}

impl CommitmentStatus {
    /// Whether its proof may still be confirmed.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Created | Self::ProofGenerated | Self::Submitted)
    }
}

/// The hidden values of a commitment, and the commitment: hash_2(constraint hash, salt).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    pub output_commitment: Hash,
    /// The hash hash_4 of the output.
    pub constraint_hash: Hash,
    /// The value that makes the commitment hiding; secret until the output is proved.
    pub salt: [u8; 32],
}

/// Omits the salt, which must not appear in a log.
impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening")
            .field("output_commitment", &self.output_commitment)
            .field("constraint_hash", &self.constraint_hash)
            .finish_non_exhaustive()
    }
}

/// A task's commitment to its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputCommitment {
    pub opening: Opening,
    /// Time at which the output became known, in milliseconds.
    pub created_at: u64,
    /// End of its lifetime, in milliseconds.
    pub expires_at: u64,
    /// The task's depth when the commitment was made.
    pub depth: u16,
    pub status: CommitmentStatus,
    /// Whether the output is kept if a rollback undoes the task (policy `checkpoint`).
    pub checkpoint: bool,
    /// The proof, as long as it may be needed.
    pub proof: Option<Box<[u8; PROOF_BYTES]>>,
}

/// Commitments by task and by output.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    commitments: Table<Option<OutputCommitment>>,
    by_output: BTreeSet<(Hash, TaskIndex)>,
    open: usize,
    proofs: usize,
}

impl Ledger {
    pub fn len(&self) -> usize {
        self.by_output.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_output.is_empty()
    }

    /// Number of commitments whose proofs may still be confirmed.
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Number of commitments whose proofs are made but not confirmed.
    pub const fn proofs(&self) -> usize {
        self.proofs
    }

    /// Memory of the ledger in bytes, including proofs.
    pub fn bytes(&self) -> usize {
        self.commitments.bytes()
            + tree_bytes::<(Hash, TaskIndex)>(self.by_output.len())
            + self.proofs * PROOF_BYTES
    }

    pub(super) fn get(&self, task: TaskIndex) -> Option<&OutputCommitment> {
        self.commitments.get(task)?.as_ref()
    }

    pub(super) fn by_output(&self, output: Hash) -> impl Iterator<Item = TaskIndex> {
        let all = (output, TaskIndex::default())..=(output, TaskIndex::NONE);
        self.by_output.range(all).map(|&(_, task)| task)
    }

    /// Adds a task's commitment, which replaces that of an earlier attempt.
    pub(super) fn create(&mut self, task: TaskIndex, commitment: OutputCommitment) {
        self.remove(task);
        self.by_output.insert((commitment.opening.output_commitment, task));
        self.open += usize::from(commitment.status.is_open());
        self.proofs += usize::from(commitment.proof.is_some());
        self.commitments.cover(task);
        self.commitments[task] = Some(commitment);
    }

    pub(super) fn remove(&mut self, task: TaskIndex) {
        if self.get(task).is_none() {
            return;
        }
        if let Some(old) = self.commitments[task].take() {
            self.by_output.remove(&(old.opening.output_commitment, task));
            self.open -= usize::from(old.status.is_open());
            self.proofs -= usize::from(old.proof.is_some());
        }
    }

    pub(super) fn set_proof(&mut self, task: TaskIndex, proof: &[u8; PROOF_BYTES]) {
        if let Some(commitment) = self.get_mut(task) {
            commitment.status = CommitmentStatus::ProofGenerated;
            if commitment.proof.replace(Box::new(*proof)).is_none() {
                self.proofs += 1;
            }
        }
    }

    pub(super) fn set_checkpoint(&mut self, task: TaskIndex) {
        if let Some(commitment) = self.get_mut(task) {
            commitment.checkpoint = true;
        }
    }

    /// Advances an open commitment's status; when it is resolved, its proof is dropped.
    pub(super) fn set_status(&mut self, task: TaskIndex, status: CommitmentStatus) {
        let Some(commitment) = self.get_mut(task).filter(|one| one.status.is_open()) else {
            return;
        };
        commitment.status = status;
        if !status.is_open() {
            let proof = commitment.proof.take();
            self.open -= 1;
            self.proofs -= usize::from(proof.is_some());
        }
    }

    /// Extends the lifetime of an open commitment, in milliseconds.
    pub(super) fn prolong(&mut self, task: TaskIndex, by: u64) {
        if let Some(commitment) = self.get_mut(task).filter(|one| one.status.is_open()) {
            commitment.expires_at = commitment.expires_at.saturating_add(by);
        }
    }

    fn get_mut(&mut self, task: TaskIndex) -> Option<&mut OutputCommitment> {
        self.get(task)?;
        self.commitments[task].as_mut()
    }
}

/// An output that was kept when its task was rolled back, for use by the next attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub task: TaskId,
    /// The digest of the outputs that it was computed from: it is useless for an attempt that reads
    /// others.
    pub inputs: Hash,
    pub opening: Opening,
}
