//! Whether a runner may be connected to a validator. This is checked once per block and for each
//! bit of a vote.

use cowboy_engine::{
    chain::{State, SubsetEpoch},
    primitives::{Address, PublicKey},
    wire::GoodbyeReason,
};
use std::collections::BTreeMap;

/// A runner's relation to a validator, with its memberships cached: each costs a hash per validator
/// to compute.
#[derive(Debug)]
pub struct Place {
    address: Address,
    runner: PublicKey,
    validator: PublicKey,
    /// Whether the validator is in the runner's subset, by number of the subset epoch.
    member: BTreeMap<u64, bool>,
}

impl Place {
    pub fn new(runner: PublicKey, validator: PublicKey) -> Self {
        Self { address: runner.address(), runner, validator, member: BTreeMap::new() }
    }

    /// The outcome of [`State::admit`] when the subsets of `epochs` count.
    pub fn check(&mut self, state: &State, epochs: &[SubsetEpoch]) -> Result<(), GoodbyeReason> {
        state.in_service(&self.address)?;
        let oldest = epochs.iter().map(|epoch| epoch.number).min();
        self.member.retain(|number, _| Some(*number) >= oldest);
        let Self { runner, validator, member, .. } = self;
        let is_member = |epoch: &SubsetEpoch| {
            let work_out = || epoch.subset_of(runner).iter().any(|v| v.pubkey == *validator);
            *member.entry(epoch.number).or_insert_with(work_out)
        };
        if epochs.iter().any(is_member) { Ok(()) } else { Err(GoodbyeReason::NotInSubset) }
    }
}
