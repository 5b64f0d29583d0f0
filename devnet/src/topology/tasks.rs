//! `tasks`: bonds for commitments to tasks' outputs, and how much of them is slashed. These are the
//! initial values of governed parameters.
//!
//! The bounds are those of the `system:tasks:` keys of [`Governed::KEYS`], which also apply to all
//! later values.
//!
//! [`Governed::KEYS`]: cowboy_engine::timer::Governed::KEYS

use super::Within;
use cowboy_engine::speculation::{Bonds, Slashing};
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

impl Default for TasksSection {
    fn default() -> Self {
        Self::of(&Bonds::DEFAULT)
    }
}

impl TasksSection {
    /// The section for a genesis' parameters. Its values lie in the ranges of the file.
    pub fn of(bonds: &Bonds) -> Self {
        let Bonds { base, per_depth, slashing } = bonds;
        Self {
            bond_base: within(*base),
            bond_per_depth: within(*per_depth),
            slash_proof_failed: within(slashing.proof_failed),
            slash_proof_timeout: within(slashing.proof_timeout),
            slash_ancestor_failed: within(slashing.ancestor_failed),
            slash_claim_expired: within(slashing.claim_expired),
            slash_manual_cancel: within(slashing.manual_cancel),
            slash_commitment_expired: within(slashing.commitment_expired),
        }
    }

    /// The parameters for the genesis.
    pub const fn bonds(&self) -> Bonds {
        Bonds {
            base: self.bond_base.get(),
            per_depth: self.bond_per_depth.get(),
            slashing: Slashing {
                proof_failed: self.slash_proof_failed.get(),
                proof_timeout: self.slash_proof_timeout.get(),
                ancestor_failed: self.slash_ancestor_failed.get(),
                claim_expired: self.slash_claim_expired.get(),
                manual_cancel: self.slash_manual_cancel.get(),
                commitment_expired: self.slash_commitment_expired.get(),
            },
        }
    }
}

fn within<const MIN: u64, const MAX: u64>(number: u64) -> Within<MIN, MAX> {
    Within::new(number).expect("a plan's numbers lie in the ranges of the file")
}
