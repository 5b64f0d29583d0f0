//! `tasks`: bonds for commitments to tasks' outputs, and how much of them is slashed. These are the
//! initial values of governed parameters.
//!
//! The bounds are those of the `system:tasks:` keys of [`Governed::KEYS`], which also apply to all
//! later values.
//!
//! [`Governed::KEYS`]: cowboy_engine::timer::Governed::KEYS

use super::value::numbers;
use cowboy_engine::speculation::{Bonds, Slashing};
use cowboy_host::within::Within;
use serde::{Deserialize, Serialize};

/// A share of a bond, in basis points.
type Share = Within<0, { Slashing::MAX }>;

/// `tasks`: initial values of the parameters of bonds. Amounts are in wei, shares in basis points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `tasks`")]
pub struct TasksSection {
    /// The minimum bond of a commitment to a task without uncompleted ancestors.
    pub bond_base: Within<1, { Bonds::MAX }>,
    /// The increase per uncompleted task on the longest path above it.
    pub bond_per_depth: Within<0, { Bonds::MAX }>,
    /// The share lost when the proof is refused.
    pub slash_proof_failed: Share,
    /// The share lost when the proof is late.
    pub slash_proof_timeout: Share,
    /// The share lost when an ancestor failed.
    pub slash_ancestor_failed: Share,
    /// The share lost when the claim or the deadline has passed.
    pub slash_claim_expired: Share,
    /// The share lost when the agent abandons the task.
    pub slash_manual_cancel: Share,
    /// The share lost when the commitment has expired.
    pub slash_commitment_expired: Share,
}

numbers! { TasksSection, bonds: Bonds =
    bond_base: base,
    bond_per_depth: per_depth,
    slash_proof_failed: slashing.proof_failed,
    slash_proof_timeout: slashing.proof_timeout,
    slash_ancestor_failed: slashing.ancestor_failed,
    slash_claim_expired: slashing.claim_expired,
    slash_manual_cancel: slashing.manual_cancel,
    slash_commitment_expired: slashing.commitment_expired
}
