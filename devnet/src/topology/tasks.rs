//! `tasks`: what the chain asks of bonds under commitments to tasks' outputs, and what of them is
//! slashed: first values of what is governed.
//!
//! Bounds are those of the `system:tasks:` keys of [`Governed::KEYS`], which also hold for every
//! later value.
//!
//! [`Governed::KEYS`]: cowboy_engine::timer::Governed::KEYS

use super::Within;
use cowboy_engine::speculation::{Bonds, Slashing};
use serde::{Deserialize, Serialize};

/// A share of a bond, in basis points.
type Share = Within<0, { Slashing::MAX }>;

/// `tasks`: first values of the parameters of bonds. Amounts are wei, shares basis points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `tasks`")]
pub struct TasksSection {
    /// The least bond of a commitment to a task without uncompleted ancestors.
    pub bond_base: Within<1, { Bonds::MAX }>,
    /// What each uncompleted task on the longest path above it adds.
    pub bond_per_depth: Within<0, { Bonds::MAX }>,
    /// What is lost where the proof is refused.
    pub slash_proof_failed: Share,
    /// What is lost where the proof is late.
    pub slash_proof_timeout: Share,
    /// What is lost where an ancestor failed.
    pub slash_ancestor_failed: Share,
    /// What is lost where the claim or the deadline has passed.
    pub slash_claim_expired: Share,
    /// What is lost where the agent gives the task up.
    pub slash_manual_cancel: Share,
    /// What is lost where the commitment has expired.
    pub slash_commitment_expired: Share,
}

impl Default for TasksSection {
    fn default() -> Self {
        Self::of(&Bonds::DEFAULT)
    }
}

impl TasksSection {
    /// What a genesis says, as written. Its values lie in the ranges of the file.
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

    /// What a genesis says.
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
