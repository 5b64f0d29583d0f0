//! Which validators a runner trusts while committees change.

use super::*;
use crate::{
    sample::{self, certificate, key, validator_keys},
    types::Text,
};
use commonware_cryptography::ed25519::PrivateKey;
use cowboy_engine::{
    chain::{
        Block, Executed, Genesis, Header, Params, Payload, ReceiptStatus, State, Transaction,
        block::{certificates_root, transactions_root},
        execute,
        transaction::RemoveValidator,
    },
    primitives::Hash,
};

const EPOCH: u64 = 8;
/// Number of validators that may serve.
const ALL: usize = 24;

/// A chain that `account-0` governs, in epochs of eight blocks.
struct Chain {
    state: State,
}

impl Chain {
    fn new(validators: std::ops::Range<usize>) -> Self {
        let params = Params {
            epoch_blocks: EPOCH,
            system_deployers: vec![key("account-0").address()],
            ..Params::default()
        };
        let validators = validators.map(|index| validator_keys(index).public()).collect();
        let genesis = Genesis { params, validators, ..sample::genesis(1, 1) };
        Self { state: genesis.state().unwrap() }
    }

    /// The header of a child block, which names this state.
    fn header(&self) -> Header {
        let head = self.state.head();
        let height = head.height.next();
        let mut round = head.round;
        round.epoch = self.state.epoch_at(height);
        (round.view, round.parent_view) = (height.get(), round.view);
        let executed = Executed { height: head.height, state_root: self.state.root() };
        let open = head.candidates(self.state.head_hash());
        Header {
            height,
            parent: self.state.head_hash(),
            round,
            transactions_root: transactions_root(&[]),
            certificates_root: certificates_root(&[]),
            executed,
            open: open.into_iter().rev().take(8).rev().collect(),
            ..head.clone()
        }
    }

    /// Makes a block with these payloads of `account-0`.
    fn push(&mut self, payloads: Vec<Payload>) {
        let signer = key("account-0");
        let nonce = self.state.account(&signer.address()).nonce;
        let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
        let sign = |(nonce, payload)| {
            Transaction::with_limits(self.state.chain_id(), nonce, cycle, cell, payload)
                .sign(&signer)
        };
        let transactions: Vec<_> = (nonce..).zip(payloads).map(sign).collect();
        let transactions_root = transactions_root(&transactions);
        let header = Header { transactions_root, ..self.header() };
        let block = Block { header, certificates: Vec::new(), transactions };
        let executed = execute(&self.state, &block).unwrap();
        for receipt in &executed.receipts {
            assert_eq!(receipt.status, ReceiptStatus::Success);
        }
        self.state = executed.state;
    }

    /// Makes a block in which some validators join and some leave with the next epoch.
    fn change(&mut self, join: &[usize], leave: &[usize]) {
        let join = join.iter().map(|index| Payload::AddValidator(validator_keys(*index).public()));
        let leave = leave.iter().map(|index| {
            let validator = validator_keys(*index).public().pubkey.address();
            Payload::RemoveValidator(RemoveValidator { validator })
        });
        self.push(join.chain(leave).collect());
    }

    fn until(&mut self, height: u64) {
        while self.state.height().get() < height {
            self.push(vec![]);
        }
    }

    /// The keys of the validators that sign the next block, with those in `first` leading.
    fn signers(&self, first: &[usize]) -> Vec<PrivateKey> {
        let mut rest: Vec<usize> = (0..ALL).filter(|index| !first.contains(index)).collect();
        let mut order = first.to_vec();
        order.append(&mut rest);
        let committee = self.state.validators();
        order.retain(|index| committee.contains(&validator_keys(*index).public()));
        assert_eq!(order.len(), committee.len());
        order.into_iter().map(|index| validator_keys(index).consensus).collect()
    }

    /// A proof of this state, signed by `signers` as a committee of the chain `chain_id`.
    fn signed(&self, subject: Subject, chain_id: u64, signers: &[PrivateKey]) -> Vec<u8> {
        let header = self.header();
        let certificate = certificate(chain_id, &header, signers);
        let proof = StateProof::new(&self.state, subject, header, certificate);
        proof.unwrap().to_bytes().unwrap()
    }

    /// A proof of this state, signed by the validators in `first` if they are enough.
    fn proof_by(&self, first: &[usize]) -> Vec<u8> {
        self.signed(Subject::Validators, self.state.chain_id(), &self.signers(first))
    }

    fn proof(&self) -> Vec<u8> {
        self.proof_by(&[])
    }

    /// Trust in this state's committee.
    fn trust(&self) -> Trust {
        let voters = keys(&self.state.roster().committee);
        Trust::new(self.state.chain_id(), voters, self.state.height())
    }
}

fn refused(trust: &Trust, proof: &[u8], expected: &str) {
    let mut after = trust.clone();
    let error = after.believe(proof).unwrap_err().to_string();
    assert!(error.starts_with(expected), "expected {expected}: {error}");
    assert_eq!((after.voters(), after.roster()), (trust.voters(), trust.roster()));
}

#[test]
fn a_committee_that_changes_by_a_quarter_each_epoch_is_followed() {
    let mut chain = Chain::new(0..4);
    let mut trust = chain.trust();
    for round in 0..6 {
        chain.change(&[round + 4], &[round]);
        let change = chain.state.height().get();
        // The end of an epoch, and the beginning of the next.
        for height in [change + 1, (round as u64 + 1) * EPOCH - 1, (round as u64 + 1) * EPOCH] {
            chain.until(height);
            trust.believe(&chain.proof()).unwrap();
            assert_eq!(trust.roster(), Some(&chain.state.roster()), "at {height}");
        }
    }
    let (voters, since) = trust.voters();
    assert_eq!((since, voters.len()), (chain.state.height(), 4));
    for index in 0..4 {
        let gone = validator_keys(index).public().consensus_key;
        assert!(!voters.contains(&gone), "no validator of genesis is left");
    }
}

#[test]
fn epochs_that_were_missed_need_enough_who_still_serve() {
    let mut chain = Chain::new(0..4);
    let genesis = chain.trust();
    chain.change(&[4], &[0]);
    chain.until(3 * EPOCH);
    let third = chain.proof_by(&[1, 2, 3]);
    // Three of the four genesis validators are left, and two have to sign.
    let mut trust = genesis.clone();
    trust.believe(&third).unwrap();
    chain.change(&[5], &[1]);
    chain.until(4 * EPOCH);
    // With committee 2, 3, 4, 5, one certificate has both genesis validators, the other only one.
    let (both, one) = (chain.proof_by(&[2, 3]), chain.proof_by(&[4, 5]));
    genesis.clone().believe(&both).unwrap();
    refused(&genesis, &one, "of the 4 validators known since block 0, 1 have signed the state of");
    trust.believe(&one).unwrap();
    assert_eq!(trust.roster(), Some(&chain.state.roster()));
    chain.change(&[6, 7], &[2, 3]);
    chain.until(5 * EPOCH);
    refused(&genesis, &chain.proof(), "of the 4 validators known since block 0, 0 have signed");
}

#[test]
fn another_committee_altogether_is_followed_by_those_who_saw_it_coming() {
    let mut chain = Chain::new(0..4);
    let mut trust = chain.trust();
    chain.change(&[4, 5, 6, 7], &[0, 1, 2, 3]);
    let late = trust.clone();
    trust.believe(&chain.proof()).unwrap();
    chain.until(EPOCH + 2);
    let proof = chain.proof();
    refused(&late, &proof, "of the 4 validators known since block 0, 0 have signed");
    trust.believe(&proof).unwrap();
    assert_eq!(trust.roster(), Some(&chain.state.roster()));
}

#[test]
fn a_committee_that_changed_once_more_in_the_last_block_is_followed() {
    let mut chain = Chain::new(0..7);
    let mut trust = chain.trust();
    chain.change(&[7], &[]);
    chain.until(EPOCH - 2);
    trust.believe(&chain.proof()).unwrap();
    chain.change(&[8], &[0]);
    chain.until(EPOCH);
    trust.believe(&chain.proof()).unwrap();
    assert_eq!(trust.roster(), Some(&chain.state.roster()));
}

#[test]
fn strangers_are_not_believed_whatever_they_sign() {
    let mut chain = Chain::new(0..4);
    chain.until(3);
    let trust = Chain::new(0..4).trust();
    let chain_id = chain.state.chain_id();
    // Another state with other validators, who claim that it is this chain.
    let mut strangers = Chain::new(10..14);
    strangers.until(3);
    let forged = strangers.signed(Subject::Validators, chain_id, &strangers.signers(&[]));
    refused(&trust, &forged, "of the 4 validators known since block 0, 0 have signed");
    // One validator of the chain joins them.
    let mut mixed = Chain::new(3..7);
    mixed.until(3);
    let forged = mixed.signed(Subject::Validators, chain_id, &mixed.signers(&[3]));
    refused(&trust, &forged, "of the 4 validators known since block 0, 1 have signed");
    // The chain's own state signed by others, by too few of its own, or for another chain.
    let by = |signers: &[PrivateKey]| chain.signed(Subject::Validators, chain_id, signers);
    refused(&trust, &by(&strangers.signers(&[])), "certificate: the vote of validator");
    refused(&trust, &by(&chain.signers(&[])[..2]), "certificate: ");
    let elsewhere = chain.signed(Subject::Validators, chain_id + 1, &chain.signers(&[]));
    refused(&trust, &elsewhere, "certificate: the vote of validator");
    let presence = chain.signed(Subject::Presence, chain_id, &chain.signers(&[]));
    refused(&trust, &presence, "it is about presence, not about validators");
    refused(&trust, b"no proof", "form: ");
    // A runner that knows the committee is not talked out of it either.
    let mut knows = trust.clone();
    knows.believe(&chain.proof()).unwrap();
    strangers.until(6);
    let forged = strangers.signed(Subject::Validators, chain_id, &strangers.signers(&[]));
    refused(&knows, &forged, "of the 4 validators known since block 3, 0 have signed");
}

#[test]
fn no_changed_byte_is_believed() {
    let mut chain = Chain::new(0..4);
    let trust = chain.trust();
    chain.change(&[4], &[0]);
    chain.until(EPOCH + 1);
    let proof = chain.proof_by(&[1, 2, 3]);
    trust.clone().believe(&proof).unwrap();
    for at in 0..proof.len() {
        let mut changed = proof.clone();
        changed[at] ^= 1 << (at % 8);
        let mut after = trust.clone();
        assert!(after.believe(&changed).is_err(), "byte {at}");
        assert_eq!(after.roster(), None);
    }
}

#[test]
fn an_older_state_changes_nothing() {
    let mut chain = Chain::new(0..4);
    let genesis = chain.trust();
    chain.until(2);
    let first = chain.proof();
    chain.change(&[4], &[0]);
    chain.until(EPOCH);
    let mut trust = genesis.clone();
    trust.believe(&first).unwrap();
    trust.believe(&chain.proof()).unwrap();
    refused(&trust, &first, "it is of the state after block 2; the runner knows other validators");
    let before = chain.proof();
    chain.until(EPOCH + 3);
    trust.believe(&chain.proof()).unwrap();
    let known = trust.roster().cloned();
    trust.believe(&before).unwrap();
    assert_eq!((trust.roster().cloned(), trust.voters().1), (known, chain.state.height()));
    // A runner that remembers only the validators learns the rest from it.
    let (voters, since) = trust.voters();
    let mut remembers = Trust::new(chain.state.chain_id(), voters.to_vec(), since);
    remembers.believe(&before).unwrap();
    assert_eq!((remembers.voters(), remembers.roster().is_some()), (trust.voters(), true));
    refused(&Trust { roster: None, ..trust }, &first, "it is of the state after block 2");
}

#[test]
fn the_first_validators_are_trusted_only_where_none_were_named() {
    let mut chain = Chain::new(0..4);
    chain.until(2);
    let chain_id = chain.state.chain_id();
    let mut trust = Trust::on_first_use(chain_id, &chain.proof()).unwrap();
    assert_eq!(trust.roster(), Some(&chain.state.roster()));
    let strangers = Chain::new(10..14);
    let unsigned = chain.signed(Subject::Validators, chain_id, &strangers.signers(&[]));
    assert!(Trust::on_first_use(chain_id, &unsigned).is_err());
    chain.until(EPOCH);
    trust.believe(&chain.proof()).unwrap();
}

#[test]
fn a_runner_s_committees_and_numbers_follow_from_what_is_proved() {
    let mut chain = Chain::new(0..7);
    let mut trust = chain.trust();
    let mut known = KnownValidators::default();
    trust.tell(&mut known);
    assert_eq!(known, KnownValidators::default(), "nothing is proved yet");
    chain.until(EPOCH);
    chain.change(&[], &[0, 1, 2, 3]);
    trust.believe(&chain.proof()).unwrap();
    trust.tell(&mut known);
    let sizes: Vec<_> = known.committees.iter().map(|(epoch, keys)| (*epoch, keys.len())).collect();
    assert_eq!((sizes, known.validators, known.agreeing()), (vec![(1, 7), (2, 3)], 7, 3));
    chain.until(2 * EPOCH);
    trust.believe(&chain.proof_by(&[4, 5, 6])).unwrap();
    trust.tell(&mut known);
    assert_eq!((known.validators, known.agreeing()), (3, 1));
    assert!(known.committee(chain.state.chain_id(), 2).is_some());
}

#[test]
fn what_was_believed_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("validators.json");
    assert!(Remembered::load(&path).unwrap().is_none());
    let mut chain = Chain::new(0..4);
    let (mut trust, root) = (chain.trust(), keys(&chain.state.roster().committee));
    chain.until(3);
    trust.believe(&chain.proof()).unwrap();
    let first_block = Text(Hash([3; 32]));
    let kept = Remembered::of(&trust, Some(&root), first_block);
    kept.save(&path).unwrap();
    let (loaded, again) = Remembered::load(&path).unwrap().unwrap();
    assert_eq!((&loaded, again.voters()), (&kept, trust.voters()));
    assert!(again.roster().is_none() && loaded.has_the_validators_of(&kept));
    let mut turned = root.clone();
    turned.reverse();
    assert!(loaded.rests_on(&turned) && !loaded.rests_on(&root[1..]));
    let first_use = Remembered::of(&trust, None, first_block);
    assert!(!first_use.rests_on(&root) && !first_use.has_the_validators_of(&kept));
    for bad in ["", "{}", &std::fs::read_to_string(&path).unwrap().replace("0x", "0xz")] {
        std::fs::write(&path, bad).unwrap();
        assert!(Remembered::load(&path).is_err(), "{bad}");
    }
}
