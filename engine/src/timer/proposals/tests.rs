//! Proposals: their order, and what refuses them.

use super::*;
use proptest::prelude::*;

const LANE: &str = "system:cip5:lane_timer_cycles";
const WEIGHT_MIN: &str = "system:cip1:weight_min";
const FLOOR: &str = "system:cip1:weight_starvation_floor";

fn proposal(height: u64, settings: &[(&str, u64)]) -> Proposal {
    let setting = |(key, value): &(&str, u64)| ProposedValue { key: (*key).into(), value: *value };
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
