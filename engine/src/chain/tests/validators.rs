//! Committees that change with consensus epochs, and what becomes of subsets.

use super::*;
use crate::{
    chain::{params::MIN_EPOCH_BLOCKS, transaction::RemoveValidator},
    presence::{Connectivity, ThresholdRule},
};
use curve25519_dalek::edwards::CompressedEdwardsY;
use std::collections::BTreeSet;

/// A chain of `validators` validators and epochs of [`MIN_EPOCH_BLOCKS`] that alice governs.
fn governed(n: u8, rule: ThresholdRule) -> Chain {
    let params = Params {
        system_deployers: vec![key("alice").address()],
        epoch_blocks: MIN_EPOCH_BLOCKS,
        threshold_rule: rule,
        ..Params::default()
    };
    let mut chain = Chain::new(&Genesis { params, validators: validators(n), ..genesis(3) });
    chain.certify = false;
    chain
}

fn validator(name: &str) -> Validator {
    // The y coordinates of points of small order do for keys here.
    let mut consensus_key = [0; 32];
    consensus_key[0] = name.len() as u8 % 2;
    Validator { pubkey: key(name).public_key(), consensus_key }
}

fn remove(name: &str) -> Payload {
    Payload::RemoveValidator(RemoveValidator { validator: key(name).address() })
}

impl Chain {
    /// Empty blocks until the head is at `height`.
    fn reach(&mut self, height: u64) -> Vec<&'static str> {
        let mut told = Vec::new();
        while self.state.height().get() < height {
            told = kinds(&self.push(vec![]));
        }
        told
    }

    fn status(&mut self, name: &str, payload: Payload) -> Result<(), String> {
        match self.one(name, payload).receipts.remove(0).status {
            Status::Success => Ok(()),
            Status::Failed(error) | Status::Skipped(error) => {
                Err(error.split(':').next().unwrap().to_owned())
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.state.validators().iter().any(|v| v.pubkey == key(name).public_key())
    }
}

#[test]
fn a_committee_changes_with_the_epoch_after_the_transaction() {
    let mut chain = governed(4, ThresholdRule::Committee);
    chain.status("alice", Payload::AddValidator(validator("new"))).unwrap();
    chain.reach(MIN_EPOCH_BLOCKS - 2);
    assert!(!chain.has("new"));
    assert_eq!(chain.state.childs_subset_epoch(), 0);
    // The last transaction that counts is in the epoch's last block.
    chain.status("alice", remove("validator-0")).unwrap();
    assert_eq!(chain.state.height().get(), MIN_EPOCH_BLOCKS - 1);
    assert!(chain.has("new") && !chain.has("validator-0"), "they vote on the next block");
    assert_eq!(chain.state.validators_in(0).len(), 4);
    assert!(chain.state.validators_in(0).iter().all(|v| v.pubkey != key("new").public_key()));
    let addresses =
        |set: &[Validator]| -> Vec<_> { set.iter().map(|v| v.pubkey.address()).collect() };
    assert!(addresses(chain.state.validators()).is_sorted());
    assert!(chain.state.committee().is_sorted_by_key(|v| v.consensus_key));
    assert_eq!(chain.state.childs_subset_epoch(), 1);
    let told = chain.reach(MIN_EPOCH_BLOCKS);
    assert!(told.contains(&"SubsetEpochAdvanced"), "{told:?}");
    assert_eq!(chain.state.childs_subset_epoch(), 1);
    let sets: Vec<_> = chain.state.validator_sets().map(|(epoch, _)| epoch).collect();
    assert_eq!(sets, [1, 0]);
}

#[test]
fn only_system_deployers_change_it_and_only_to_something_that_works() {
    let mut chain = governed(2, ThresholdRule::Committee);
    let refused = |result: Result<(), String>| result.unwrap_err();
    assert_eq!(
        refused(chain.status("bob", Payload::AddValidator(validator("new")))),
        "Unauthorized"
    );
    assert_eq!(refused(chain.status("bob", remove("validator-0"))), "Unauthorized");
    assert_eq!(refused(chain.status("alice", remove("stranger"))), "UnknownValidator");
    let known = Validator { pubkey: key("validator-1").public_key(), ..validator("x") };
    assert_eq!(refused(chain.status("alice", Payload::AddValidator(known))), "ValidatorExists");
    let same_key = Validator { consensus_key: [1; 32], ..validator("new") };
    assert_eq!(
        refused(chain.status("alice", Payload::AddValidator(same_key))),
        match CompressedEdwardsY([1; 32]).decompress() {
            Some(_) => "ValidatorExists",
            None => "InvalidConsensusKey",
        }
    );
    let no_key = Validator { consensus_key: [2; 32], ..validator("new") };
    assert_eq!(CompressedEdwardsY([2; 32]).decompress(), None);
    assert_eq!(
        refused(chain.status("alice", Payload::AddValidator(no_key))),
        "InvalidConsensusKey"
    );
    chain.status("alice", remove("validator-0")).unwrap();
    assert_eq!(refused(chain.status("alice", remove("validator-0"))), "UnknownValidator");
    assert_eq!(refused(chain.status("alice", remove("validator-1"))), "LastValidator");
}

#[test]
fn small_changes_add_up_until_the_subset_epoch_advances() {
    let mut chain = governed(20, ThresholdRule::Committee);
    let before = chain.state.subset_of(&key("runner-0").public_key()).len();
    assert_eq!(before, 6);
    chain.status("alice", remove("validator-0")).unwrap();
    chain.reach(MIN_EPOCH_BLOCKS);
    chain.status("alice", remove("validator-1")).unwrap();
    chain.reach(2 * MIN_EPOCH_BLOCKS);
    // Two of twenty are a tenth, not more.
    assert_eq!(chain.state.head().subset_epoch, 0);
    assert_eq!(chain.state.subset_epochs().0.validators.len(), 20);
    assert_eq!(chain.state.validators().len(), 18);
    chain.status("alice", remove("validator-2")).unwrap();
    chain.reach(3 * MIN_EPOCH_BLOCKS);
    assert_eq!(chain.state.head().subset_epoch, 1);
    assert_eq!(chain.state.subset_epochs().0.validators.len(), 17);
}

#[test]
fn the_subsets_of_before_count_for_a_while() {
    let mut chain = governed(7, ThresholdRule::Committee);
    let runner = key("runner-0").public_key();
    let names = |validators: Vec<&Validator>| -> BTreeSet<_> {
        validators.iter().map(|v| v.pubkey.address()).collect()
    };
    let before = names(chain.state.subset_of(&runner));
    let leaves = chain.state.subset_of(&runner)[0].pubkey.clone();
    let leaving = Payload::RemoveValidator(RemoveValidator { validator: leaves.address() });
    chain.status("alice", leaving).unwrap();
    chain.reach(MIN_EPOCH_BLOCKS);
    let after = names(chain.state.subset_of(&runner));
    assert_ne!(before, after);
    let both: BTreeSet<_> = before.union(&after).copied().collect();
    let last = MIN_EPOCH_BLOCKS + Connectivity::DEFAULT.overlap_blocks - 1;
    chain.reach(last);
    assert_eq!(names(chain.state.subsets_of(&runner)), both);
    assert_eq!(chain.state.admit(&runner, &leaves), Ok(runner.address()));
    chain.reach(last + 1);
    assert_eq!(names(chain.state.subsets_of(&runner)), after);
    assert_eq!(chain.state.admit(&runner, &leaves), Err(GoodbyeReason::NotInSubset));
}

/// What each state says beforehand of a later block is what the chain then has there.
#[test]
fn the_subsets_that_a_vote_goes_by_are_those_of_its_block() {
    let mut chain = governed(7, ThresholdRule::Committee);
    let mut leaving = 0..3;
    let mut states = vec![chain.state.clone()];
    for height in 1..3 * MIN_EPOCH_BLOCKS {
        // In the last block of an epoch it is the last moment.
        if matches!(height % MIN_EPOCH_BLOCKS, 1 | 9) && height > MIN_EPOCH_BLOCKS {
            let leaves = format!("validator-{}", leaving.next().unwrap());
            chain.status("alice", remove(&leaves)).unwrap();
        } else {
            chain.reach(height);
        }
        states.push(chain.state.clone());
    }
    let numbers = |state: &State, at: u64| -> Vec<u64> {
        state.subset_epochs_at(Height::new(at)).iter().map(|epoch| epoch.number).collect()
    };
    let last = states.last().unwrap();
    assert!(last.subset_epochs().0.number >= 1);
    for (height, state) in (0..).zip(&states) {
        assert_eq!(state.height().get(), height);
        let (current, before) = state.subset_epochs();
        let known: Vec<_> = [Some(current), before].into_iter().flatten().cloned().collect();
        assert_eq!(state.subset_epochs_at(state.height()), known, "at {height}");
        assert_eq!(numbers(last, height), numbers(state, height), "of {height}, later");
        if let Some(parent) = height.checked_sub(1) {
            assert_eq!(numbers(&states[parent as usize], height), numbers(state, height));
        }
    }
}

#[test]
fn votes_are_numbered_by_the_committee_of_their_own_epoch() {
    let mut chain = governed(7, ThresholdRule::Subset);
    let runner = key("runner-0").public_key();
    let order = chain.state.registry().order().clone();
    let committee: Vec<_> = chain.state.committee().into_iter().cloned().collect();
    let subset: Vec<_> = chain.state.subset_of(&runner).into_iter().cloned().collect();
    // Five votes, those of the runner's subset among them, each of which sees this runner only.
    let seen = Bitmap::from_fn(3, |at| order.as_slice()[at as usize] == runner.address());
    let unseen = Bitmap::new(3);
    let votes_of = |committee: &[Validator]| -> Vec<(u32, &Bitmap)> {
        (0..)
            .zip(committee)
            .map(|(i, v)| (i, if subset.contains(v) { &seen } else { &unseen }))
            .collect()
    };
    let present = |state: &State, height: u64, committee: &[Validator]| {
        let bitmap = state.presence_from(Height::new(height), &votes_of(committee), &order);
        (0..3).filter(|at| bitmap.get(*at)).count()
    };
    assert_eq!(present(&chain.state, 1, &committee), 1);
    // Others join with keys that come first: every number moves.
    chain.status("alice", Payload::AddValidator(validator("new"))).unwrap();
    chain.status("alice", Payload::AddValidator(validator("newer"))).unwrap_err();
    chain.reach(MIN_EPOCH_BLOCKS);
    let later: Vec<_> = chain.state.committee().into_iter().cloned().collect();
    assert_eq!(later[0], validator("new"));
    assert_eq!(present(&chain.state, 1, &committee), 1, "an old block's votes");
    assert_eq!(present(&chain.state, MIN_EPOCH_BLOCKS, &later), 1, "by the subset of before");
    // Numbered by the wrong committee they are somebody else's.
    let first_of_subset = later.iter().position(|v| subset.contains(v)).unwrap();
    assert!(first_of_subset > 0);
}
