//! Committees that change with consensus epochs, and the effect on subsets.

use super::*;
use crate::{
    chain::{
        committee::{Newest, Rhythm},
        params::MIN_EPOCH_BLOCKS,
        state_proof::Evidence,
        transaction::RemoveValidator,
    },
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

fn validator(name: &str) -> GenesisValidator {
    // The y coordinates of points of small order serve as keys here.
    let mut consensus_key = [0; 32];
    consensus_key[0] = name.len() as u8 % 2;
    GenesisValidator { pubkey: key(name).public_key(), consensus_key }
}

fn remove(name: &str) -> Payload {
    Payload::RemoveValidator(RemoveValidator { validator: key(name).address() })
}

impl Chain {
    /// Pushes empty blocks until the head is at `height`.
    fn reach(&mut self, height: u64) -> Vec<&'static str> {
        let mut told = Vec::new();
        while self.state.height().get() < height {
            told = kinds(&self.push(vec![]));
        }
        told
    }

    fn status(&mut self, name: &str, payload: Payload) -> Result<(), String> {
        match self.one(name, payload).receipts.remove(0).status {
            ReceiptStatus::Success => Ok(()),
            ReceiptStatus::Failed(error) | ReceiptStatus::Skipped(error) => {
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
        |set: &[GenesisValidator]| -> Vec<_> { set.iter().map(|v| v.pubkey.address()).collect() };
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
    let known = GenesisValidator { pubkey: key("validator-1").public_key(), ..validator("x") };
    assert_eq!(refused(chain.status("alice", Payload::AddValidator(known))), "ValidatorExists");
    let same_key = GenesisValidator { consensus_key: [1; 32], ..validator("new") };
    assert_eq!(
        refused(chain.status("alice", Payload::AddValidator(same_key))),
        match CompressedEdwardsY([1; 32]).decompress() {
            Some(_) => "ValidatorExists",
            None => "InvalidConsensusKey",
        }
    );
    let no_key = GenesisValidator { consensus_key: [2; 32], ..validator("new") };
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
    let names = |validators: Vec<&GenesisValidator>| -> BTreeSet<_> {
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

/// Each state's prediction for a later block matches the chain at that block.
#[test]
fn the_subsets_that_a_vote_goes_by_are_those_of_its_block() {
    let mut chain = governed(7, ThresholdRule::Committee);
    let mut leaving = 0..3;
    let mut states = vec![chain.state.clone()];
    for height in 1..3 * MIN_EPOCH_BLOCKS {
        // The last block of an epoch is the last chance.
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
    // Five votes, among them those of the runner's subset, each of which sees only this runner.
    let seen = Bitmap::from_fn(3, |at| order.as_slice()[at as usize] == runner.address());
    let unseen = Bitmap::new(3);
    let votes_of = |committee: &[GenesisValidator]| -> Vec<(u32, &Bitmap)> {
        (0..)
            .zip(committee)
            .map(|(i, v)| (i, if subset.contains(v) { &seen } else { &unseen }))
            .collect()
    };
    let present = |state: &State, height: u64, committee: &[GenesisValidator]| {
        let bitmap = state.presence_from(Height::new(height), &votes_of(committee), &order);
        (0..3).filter(|at| bitmap.get(*at)).count()
    };
    assert_eq!(present(&chain.state, 1, &committee), 1);
    // Others join with keys that come first, so every number shifts.
    chain.status("alice", Payload::AddValidator(validator("new"))).unwrap();
    chain.status("alice", Payload::AddValidator(validator("newer"))).unwrap_err();
    chain.reach(MIN_EPOCH_BLOCKS);
    let later: Vec<_> = chain.state.committee().into_iter().cloned().collect();
    assert_eq!(later[0], validator("new"));
    assert_eq!(present(&chain.state, 1, &committee), 1, "an old block's votes");
    assert_eq!(present(&chain.state, MIN_EPOCH_BLOCKS, &later), 1, "by the subset of before");
    // Numbered by the wrong committee, the votes belong to other validators.
    let first_of_subset = later.iter().position(|v| subset.contains(v)).unwrap();
    assert!(first_of_subset > 0);
}

/// A chain on which validators leave in several epochs, and all its states.
fn rotated() -> (Chain, Vec<State>) {
    let mut chain = governed(7, ThresholdRule::Committee);
    let mut states = vec![chain.state.clone()];
    for height in 1..5 * MIN_EPOCH_BLOCKS {
        match (height / MIN_EPOCH_BLOCKS, height % MIN_EPOCH_BLOCKS) {
            (0, 3) => chain.status("alice", remove("validator-0")).unwrap(),
            // The last chance.
            (1, 7) => chain.status("alice", remove("validator-1")).unwrap(),
            (3, 1) => chain.status("alice", remove("validator-2")).unwrap(),
            (3, 2) => chain.status("alice", Payload::AddValidator(validator("new"))).unwrap(),
            _ => drop(chain.reach(height)),
        }
        states.push(chain.state.clone());
    }
    (chain, states)
}

/// The evidence of a proof about validators.
fn newest(proof: &mut StateProof) -> &mut [Newest; 2] {
    match &mut proof.evidence {
        Evidence::Newest(both) => both,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_proof_shows_the_committees_and_subset_epochs_that_hold() {
    let (mut chain, states) = rotated();
    let runner = key("runner-0").public_key();
    let mut overlaps = 0;
    for state in states {
        chain.state = state.clone();
        let proof = chain.prove(Subject::Validators);
        let read = StateProof::from_bytes(&proof.to_bytes().unwrap()).unwrap();
        assert_eq!(read, proof);
        let Found::Validators(roster) = read.check().unwrap().found else { panic!("validators") };
        assert_eq!(roster, state.roster());
        let epoch = state.epoch_at(state.height());
        assert_eq!(roster.epoch, epoch);
        for epoch in [epoch, epoch + 1] {
            assert_eq!(roster.committee_of(epoch).unwrap().as_slice(), state.validators_in(epoch));
        }
        assert_eq!(roster.committee_of(epoch + 2), None);
        let last = (state.height().get() + 1).is_multiple_of(MIN_EPOCH_BLOCKS);
        assert_eq!(roster.next_decided, last);
        assert_eq!(roster.subsets_of(&runner), state.subsets_of(&runner));
        overlaps += usize::from(roster.subsets.len() == 2);
    }
    assert!(overlaps > 0);
}

#[test]
fn a_proof_that_leaves_out_the_newest_committee_or_is_of_another_state_shows_nothing() {
    let (mut chain, states) = rotated();
    let proof = chain.prove(Subject::Validators);
    let refused = |change: &dyn Fn(&mut StateProof), expected: &str| {
        let mut changed = proof.clone();
        change(&mut changed);
        let error = changed.check().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    for map in 0..2 {
        let other = "validators: the evidence gives root 0x";
        let omitted = |proof: &mut StateProof| {
            let newest = &mut newest(proof)[map];
            newest.newest = newest.before.take().unwrap();
        };
        refused(&omitted, other);
        refused(&|proof| newest(proof)[map].before = None, other);
        refused(&|proof| newest(proof)[map].blocks += 1, other);
        let of_no_map = "validators: the evidence is not a path in a map";
        refused(&|proof| newest(proof)[map].newest.since += 1, of_no_map);
        let twice = |proof: &mut StateProof| {
            let newest = &mut newest(proof)[map];
            newest.before = Some(newest.newest.clone());
        };
        refused(&twice, of_no_map);
        let forged = |proof: &mut StateProof| newest(proof)[map].newest.value.push(0);
        refused(&forged, of_no_map);
    }
    refused(&|proof| newest(proof).swap(0, 1), "validators: the evidence gives root 0x");
    refused(
        &|proof| proof.subject = Subject::Presence,
        "presence: the evidence is not a path in a map",
    );

    // The evidence of an earlier state, and of another chain.
    chain.state = states[MIN_EPOCH_BLOCKS as usize].clone();
    let earlier = chain.prove(Subject::Validators).evidence;
    refused(&|proof| proof.evidence = earlier.clone(), "validators: the evidence gives root 0x");
    let other = governed(3, ThresholdRule::Committee).prove(Subject::Validators).evidence;
    refused(&|proof| proof.evidence = other.clone(), "validators: the evidence gives root 0x");

    let bytes = proof.to_bytes().unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let Ok(read) = StateProof::from_bytes(&changed) else { continue };
        assert_eq!(read.to_bytes().unwrap(), changed, "one form: byte {at}");
        let only_votes = read.certificate != proof.certificate;
        assert!(read.check().is_err() || only_votes, "byte {at}");
    }
    for end in 0..bytes.len() {
        assert!(StateProof::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
    }
}

/// A state that no execution reaches, because transactions of an epoch change the next one.
#[test]
fn entries_that_begin_after_the_state_are_refused() {
    let mut chain = governed(4, ThresholdRule::Committee);
    chain.reach(3);
    let check = |chain: &Chain, holds: bool| {
        let proof = chain.prove(Subject::Validators);
        let error = proof.check().err().map(|error| error.to_string());
        let expected = "validators: the entries shown do not hold after block 3";
        assert_eq!(error.as_deref(), (!holds).then_some(expected));
    };
    let first = chain.state.clone();
    let leave = |chain: &mut Chain, epoch| {
        chain.state.validators.remove(epoch, key("validator-0").address()).unwrap();
    };
    leave(&mut chain, 1);
    check(&chain, true);
    chain.state = first.clone();
    leave(&mut chain, 2);
    check(&chain, false);
    chain.state = first;
    let later = SubsetEpoch { number: 1, validators: Arc::new(validators(4)) };
    let rhythm = Rhythm { epoch_blocks: 256, subset_epoch_blocks: 8_192 };
    chain.state.validators.enter(Height::new(4), rhythm, Some(later));
    check(&chain, false);
}
