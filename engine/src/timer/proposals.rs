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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LANE: &str = "system:cip5:lane_timer_cycles";
    const WEIGHT_MIN: &str = "system:cip1:weight_min";
    const FLOOR: &str = "system:cip1:weight_starvation_floor";

    fn proposal(height: u64, settings: &[(&str, u64)]) -> Proposal {
        let setting =
            |(key, value): &(&str, u64)| ProposedValue { key: (*key).into(), value: *value };
        let settings = settings.iter().map(setting).collect();
        Proposal { height: Height::new(height), by: Some(Address([1; 20])), settings }
    }

    fn first() -> Governed {
        Governed::default()
    }

    /// Makes all proposals in order, where the next block is 10.
    fn all(proposals: &[Proposal]) -> Result<Vec<Proposal>, ParameterError> {
        let mut pending = Vec::new();
        for one in proposals {
            pending = propose(first(), &pending, Height::new(10), one)?;
        }
        Ok(pending)
    }

    #[test]
    fn a_later_proposal_for_a_height_takes_what_it_names() {
        let got = all(&[
            proposal(20, &[(LANE, 5), (Key::POLICY, 1)]),
            proposal(15, &[(LANE, 4)]),
            proposal(20, &[(LANE, 6), (WEIGHT_MIN, 7)]),
        ]);
        let merged = proposal(20, &[(Key::POLICY, 1), (WEIGHT_MIN, 7), (LANE, 6)]);
        assert_eq!(got, Ok(vec![proposal(15, &[(LANE, 4)]), merged]));
        let at_20 = got.unwrap().iter().fold(first(), |at, one| at.with(&one.settings).unwrap());
        assert_eq!((at_20.policy, at_20.config.lane_timer_cycles), (Policy::Fifo, 6));
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        let check = |proposals: &[Proposal], expected: &str| {
            let error = all(proposals).unwrap_err().to_string();
            assert_eq!(error, expected);
        };
        check(
            &[proposal(9, &[(LANE, 1)])],
            "ActivationInPast: block 9 has begun; 10 is the first that may change",
        );
        check(
            &[proposal(11 + MAX_PROPOSAL_BLOCKS, &[(LANE, 1)])],
            "ActivationTooFar: block 2592011 is too far away, 2592010 is the last",
        );
        check(&[proposal(10, &[])], "EmptyProposal: it gives no parameter a value");
        check(
            &[proposal(10, &[(LANE, 1), (LANE, 2)])],
            "ParameterRepeated: system:cip5:lane_timer_cycles is given two values",
        );
        check(&[proposal(10, &[("lane", 1)])], "UnknownParameter: no parameter lane");
        check(
            &[proposal(10, &[(Key::POLICY, 3)])],
            "ParameterOutOfRange: system:cip1:policy is from 0 to 2, not 3",
        );
        check(
            &[proposal(10, &[(FLOOR, 400_000)])],
            "ParameterConflict: system:cip1:weight_min would be 500000, above \
             system:cip1:weight_starvation_floor, which would be 400000",
        );
        // Each is valid by itself, but together the later one is not.
        check(
            &[proposal(30, &[(WEIGHT_MIN, 900_000)]), proposal(20, &[(FLOOR, 800_000)])],
            "ParameterConflict: system:cip1:weight_min would be 900000, above \
             system:cip1:weight_starvation_floor, which would be 800000, from block 30 on, with \
             what is pending",
        );
        let full: Vec<_> = (0..17).map(|n| proposal(11 + n, &[(LANE, 5)])).collect();
        check(&full, "TooManyProposals: proposals are pending for 16 heights, the maximum");
        // The next block and heights that have an entry do not count towards the limit.
        let mut taken = full[..16].to_vec();
        taken.extend([proposal(10, &[(LANE, 6)]), proposal(11, &[(LANE, 7)])]);
        assert_eq!(all(&taken).unwrap().len(), 17);
    }

    proptest! {
        /// Whatever is accepted, the values of every height pass the check, and come from the last
        /// proposal for that height or an earlier one.
        #[test]
        fn whatever_activates_was_checked(
            proposals in prop::collection::vec(
                (8u64..40, prop::collection::vec((0..Governed::KEYS.len(), 0u64..4), 0..4)), 1..40,
            ),
        ) {
            let mut pending = Vec::new();
            for (height, settings) in proposals {
                let settings: Vec<_> = settings.into_iter().map(|(key, pick)| {
                    let key = &Governed::KEYS[key];
                    let values = [key.min, key.max, key.max.saturating_add(1), 900_000];
                    (key.name, values[pick as usize])
                }).collect();
                let one = proposal(height, &settings);
                let Ok(taken) = propose(first(), &pending, Height::new(10), &one) else { continue };
                prop_assert!(taken.is_sorted_by(|a, b| a.height < b.height));
                prop_assert!(taken.len() <= MAX_PROPOSALS + 1);
                let mut values = first();
                for entry in &taken {
                    prop_assert!(entry.settings.is_sorted_by(|a, b| a.key < b.key));
                    values = values.with(&entry.settings).unwrap();
                    prop_assert!(values.check().is_ok());
                    if entry.height == one.height {
                        let set = |s: &(&str, u64)| values.get(s.0) == Some(s.1);
                        prop_assert!(settings.iter().all(set));
                    }
                }
                pending = taken;
            }
        }
    }
}
