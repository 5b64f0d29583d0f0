//! Changes of governed parameters from a height on (CIP-1 §12, opcode 49).
//!
//! A proposal sets parameters from the first block at its height on. Pending ones are kept in order
//! of height, one entry per height. When a proposal names a height that has an entry, the
//! parameters that it names take its values and the others keep theirs. The same parameter may have
//! values at several heights, each of which holds until the next.
//!
//! A proposal is accepted only if, with everything that is pending, the values of every such height
//! pass [`Governed::check`]. So every activation has been checked.

use super::{
    Policy,
    governed::{Governed, Key, ParameterError},
};
use crate::{
    primitives::{Address, Height},
    record,
};

/// Maximum number of heights after the next block that may have pending proposals. Every proposal
/// checks each of them, and every state contains them.
pub const MAX_PROPOSALS: usize = 16;
/// Maximum distance of a proposal's height, in blocks: 30 days at one block per second, like a
/// timer's lifetime.
pub const MAX_PROPOSAL_BLOCKS: u64 = 2_592_000;

/// A parameter's new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedValue {
    /// One of [`Governed::KEYS`].
    pub key: String,
    pub value: u64,
}
record!(ProposedValue { key, value });

impl ProposedValue {
    pub fn policy(policy: Policy) -> Self {
        Self { key: Key::POLICY.to_owned(), value: policy.number() }
    }
}

/// Values of parameters from a height on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The first block with these values.
    pub height: Height,
    /// The last proposer for this height; `None`: the genesis document.
    pub by: Option<Address>,
    /// The values, ascending by key, each key once.
    pub settings: Vec<ProposedValue>,
}
record!(Proposal { height, by, settings });

impl Governed {
    /// Applies these values; fails at the first that is invalid by itself.
    pub fn with(mut self, settings: &[ProposedValue]) -> Result<Self, ParameterError> {
        settings.iter().try_for_each(|ProposedValue { key, value }| self.set(key, *value))?;
        Ok(self)
    }
}

/// The pending proposals after `proposal` is accepted in the block before `next`, which would have
/// the values `now`.
pub fn propose(
    now: Governed,
    pending: &[Proposal],
    next: Height,
    proposal: &Proposal,
) -> Result<Vec<Proposal>, ParameterError> {
    let Proposal { height, by, settings } = proposal;
    let got = height.get();
    if *height < next {
        return Err(ParameterError::ActivationInPast { got, next: next.get() });
    }
    let last = next.after(MAX_PROPOSAL_BLOCKS);
    if *height > last {
        return Err(ParameterError::ActivationTooFar { got, last: last.get() });
    }
    if settings.is_empty() {
        return Err(ParameterError::EmptyProposal);
    }
    // Values that are invalid by themselves are reported first.
    now.with(settings)?;
    let mut pending = pending.to_vec();
    let at = pending.partition_point(|entry| entry.height < *height);
    if pending.get(at).is_none_or(|entry| entry.height != *height) {
        let later = pending.iter().filter(|entry| entry.height > next).count();
        if *height > next && later >= MAX_PROPOSALS {
            return Err(ParameterError::TooManyProposals(MAX_PROPOSALS));
        }
        pending.insert(at, Proposal { height: *height, by: *by, settings: Vec::new() });
    }
    let entry = &mut pending[at];
    entry.by = *by;
    for (index, setting) in settings.iter().enumerate() {
        if settings[..index].iter().any(|before| before.key == setting.key) {
            return Err(ParameterError::ParameterRepeated(Key::named(&setting.key)?.name));
        }
        match entry.settings.binary_search_by(|kept| kept.key.cmp(&setting.key)) {
            Ok(kept) => entry.settings[kept] = setting.clone(),
            Err(free) => entry.settings.insert(free, setting.clone()),
        }
    }
    let mut values = now;
    for Proposal { height, settings, .. } in &pending {
        values = values.with(settings)?;
        values.check().map_err(|error| match pending.len() {
            1 => error,
            _ => ParameterError::Pending { height: height.get(), error: Box::new(error) },
        })?;
    }
    Ok(pending)
}

#[cfg(test)]
mod tests;
