//! Replays of valid and invalid chains.

use super::{Fault, FaultKind, Replay, ReplayedBlock};
use crate::{
    sample,
    types::{Bytes, RawBlock},
};
use commonware_cryptography::Signer as _;
use cowboy_engine::{
    chain::{
        self, Block, Certificate, Executed, Genesis, Header, OpenAncestor, Payload,
        SignedTransaction, State, Transaction, Vote,
        block::{certificates_root, certify, transactions_root},
        execute,
        transaction::RemoveValidator,
    },
    presence::Bitmap,
    primitives::{Hash, Height, codec::to_vec},
};
use std::collections::BTreeMap;

const EPOCH: u64 = 8;
/// Number of validators with known keys.
const KEYS: usize = 6;

fn genesis() -> Genesis {
    let mut genesis = sample::genesis(4, 3);
    genesis.params.epoch_blocks = EPOCH;
    genesis.params.system_deployers = vec![sample::key("account-0").address()];
    genesis
}

/// A chain as its validators make it.
struct Chain {
    state: State,
    roots: BTreeMap<Height, Hash>,
    served: Vec<RawBlock>,
}

fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 128 {
        to.push(number as u8 & 127 | 128);
        number >>= 7;
    }
    to.push(number as u8);
}

/// A certificate of a block, signed by a quorum of these validators.
fn certificate(chain_id: u64, block: &Block, keys: &[[u8; 32]]) -> Certificate {
    let (hash, round) = (block.hash(), block.header.round);
    let namespace = [b"cowboy/".as_slice(), &chain_id.to_be_bytes(), b"_FINALIZE"].concat();
    let vote = |(number, key): (usize, &[u8; 32])| {
        let presence = Bitmap::from_fn(3, |runner| runner as usize != number);
        let mut message = Vec::new();
        for part in [round.epoch, round.view, round.parent_view] {
            varint(part, &mut message);
        }
        message.extend_from_slice(&hash.0);
        message.extend_from_slice(&presence.len().to_be_bytes());
        message.extend_from_slice(presence.as_bytes());
        let signer = (0..KEYS).map(sample::validator_keys);
        let mut signer = signer.filter(|keys| keys.public().consensus_key == *key);
        let signer = signer.next().expect("a validator of the sample");
        let signature = signer.consensus.sign(&namespace, &message);
        let signature = signature.as_ref().try_into().expect("64 bytes");
        Vote { validator: number as u32, presence, signature }
    };
    let quorum = keys.len() - (keys.len() - 1) / 3;
    Certificate {
        block: hash,
        round,
        votes: keys.iter().enumerate().take(quorum).map(vote).collect(),
    }
}

impl Chain {
    fn new() -> Self {
        let state = genesis().state().unwrap();
        let roots = BTreeMap::from([(Height::GENESIS, state.root())]);
        Self { state, roots, served: Vec::new() }
    }

    fn committee(&self) -> Vec<[u8; 32]> {
        self.state.committee().iter().map(|v| v.consensus_key).collect()
    }

    /// A child of the newest block.
    fn child(&self, certificates: Vec<Certificate>, transactions: Vec<SignedTransaction>) -> Block {
        let head = self.state.head();
        let height = head.height.next();
        let candidates = head.candidates(self.state.head_hash());
        let (certified, open) = certify(&candidates, certificates.iter().map(|c| c.block)).unwrap();
        let newest = certified.last().filter(|height| **height > head.executed.height);
        let header = Header {
            height,
            parent: self.state.head_hash(),
            round: chain::Round {
                epoch: self.state.epoch_at(height),
                view: 300 + height.get(),
                parent_view: head.round.view,
            },
            proposer: self.committee()[0],
            timestamp_ms: head.timestamp_ms + 500,
            subset_epoch: self.state.childs_subset_epoch(),
            transactions_root: transactions_root(&transactions),
            certificates_root: certificates_root(&certificates),
            open,
            executed: newest.map_or(head.executed, |height| Executed {
                height: *height,
                state_root: self.roots[height],
            }),
        };
        Block { header, certificates, transactions }
    }

    /// Adds a final block. It is served with its certificate if `shown`, and embeds its parent's if
    /// `embeds`.
    fn push(&mut self, shown: bool, embeds: bool, payload: Option<Payload>) {
        let parent = self.served.last().filter(|_| embeds).map(|parent| {
            let block = Block::from_bytes(&parent.block_bytes.0.0).unwrap();
            let committee = self.state.committee_in(block.header.round.epoch);
            let keys: Vec<_> = committee.iter().map(|v| v.consensus_key).collect();
            certificate(self.state.chain_id(), &block, &keys)
        });
        let signed = payload.map(|payload| {
            let signer = sample::key("account-0");
            let nonce = self.state.account(&signer.address()).nonce;
            let (cycle, cell) = (self.state.basefee_cycle(), self.state.basefee_cell());
            let id = self.state.chain_id();
            Transaction::with_limits(id, nonce, cycle, cell, payload).sign(&signer)
        });
        let block = self.child(Vec::from_iter(parent), Vec::from_iter(signed));
        let own = certificate(self.state.chain_id(), &block, &self.committee());
        let executed = execute(&self.state, &block).unwrap();
        let fine = |receipt: &chain::Receipt| receipt.status == chain::ReceiptStatus::Success;
        assert!(executed.receipts.iter().all(fine), "{:?}", executed.receipts);
        self.state = executed.state;
        self.roots.insert(self.state.height(), self.state.root());
        self.served.push(RawBlock {
            height: self.state.height().get(),
            hash: block.hash().into(),
            state_root: self.state.root().into(),
            block_bytes: Bytes(block.to_bytes()).into(),
            certificate_bytes: shown.then(|| Bytes(to_vec(&own)).into()),
        });
    }

    /// Three epochs in which one validator joins and another leaves.
    fn rotating() -> Self {
        let mut chain = Self::new();
        let fifth = sample::validator_keys(4).public();
        let first = sample::validator_keys(0).public().pubkey.address();
        for height in 1..=3 * EPOCH {
            let payload = match height {
                3 => Some(Payload::AddValidator(fifth.clone())),
                10 => Some(Payload::RemoveValidator(RemoveValidator { validator: first })),
                _ => None,
            };
            chain.push(true, true, payload);
        }
        chain
    }
}

/// Replays the served blocks; returns the executed blocks, the noted faults, and the fatal one.
fn replay(served: &[RawBlock]) -> (Vec<ReplayedBlock>, Vec<Fault>, Option<Fault>) {
    let mut replay = Replay::new(&genesis()).unwrap();
    let mut steps = Vec::new();
    for raw in served {
        match replay.push(raw) {
            Ok(more) => steps.extend(more),
            Err(fault) => return (steps, replay.faults().to_vec(), Some(fault)),
        }
    }
    let fault = replay.unproved();
    (steps, replay.faults().to_vec(), fault)
}

/// The first fault of an invalid chain.
fn fault(served: &[RawBlock]) -> FaultKind {
    let (_, noted, fatal) = replay(served);
    noted.into_iter().chain(fatal).next().expect("it is not sound").kind
}

#[test]
fn a_chain_is_followed_through_changes_of_its_validators() {
    let chain = Chain::rotating();
    let (steps, noted, fatal) = replay(&chain.served);
    assert_eq!((noted, fatal), (vec![], None));
    assert_eq!(steps.len() as u64, 3 * EPOCH);
    for (step, raw) in steps.iter().zip(&chain.served) {
        assert_eq!((step.hash, step.root), (*raw.hash, *raw.state_root));
    }
    let members = |epoch| chain.state.validators_in(epoch).len();
    assert_eq!([0, 1, 2].map(members), [4, 5, 4]);
    // P(h) of each block except the last is known from the next one.
    let derived =
        steps.iter().flat_map(|step| &step.execution.derived).map(|derived| derived.height.get());
    assert!(derived.eq(1..3 * EPOCH));
}

#[test]
fn a_block_is_final_through_its_descendants() {
    for (shown, embeds) in [(true, true), (false, true), (true, false)] {
        let mut chain = Chain::new();
        for height in 1..=2 * EPOCH + 2 {
            let last = height == 2 * EPOCH + 2;
            chain.push(shown || last, embeds, None);
        }
        let (steps, noted, fatal) = replay(&chain.served);
        assert_eq!((noted, fatal), (vec![], None), "{shown} {embeds}");
        assert_eq!(steps.len(), chain.served.len());
    }
    // One certificate at the end of each epoch is enough, but one fewer is not.
    let mut chain = Chain::new();
    for height in 1..=2 * EPOCH {
        chain.push(height % EPOCH == EPOCH - 1 || height == 2 * EPOCH, false, None);
    }
    assert_eq!(replay(&chain.served).0.len(), chain.served.len());
    chain.served[EPOCH as usize - 2].certificate_bytes = None;
    let (steps, noted, fatal) = replay(&chain.served);
    assert_eq!((steps.len(), noted), (0, vec![]));
    let unproved =
        Fault { height: Height::new(1), kind: FaultKind::Unproved(2 * EPOCH as usize - 1) };
    assert_eq!(fatal, Some(unproved));
}

#[test]
fn nothing_is_executed_that_no_quorum_signed() {
    // The node makes a block of its own in which a validator joins, and certifies it alone.
    let mut chain = Chain::new();
    chain.push(true, true, None);
    let mut lie = Chain { served: chain.served.clone(), ..chain };
    lie.push(true, true, Some(Payload::AddValidator(sample::validator_keys(5).public())));
    let block = Block::from_bytes(&lie.served[1].block_bytes.0.0).unwrap();
    let one = certificate(
        lie.state.chain_id(),
        &block,
        &[sample::validator_keys(5).public().consensus_key],
    );
    lie.served[1].certificate_bytes = Some(Bytes(to_vec(&one)).into());
    let (steps, noted, fatal) = replay(&lie.served);
    assert_eq!(steps.len(), 1);
    assert!(matches!(noted[0].kind, FaultKind::Certificate { .. }), "{noted:?}");
    assert!(matches!(fatal.unwrap().kind, FaultKind::Unproved(0)));
}

#[test]
fn a_chain_of_another_genesis_is_refused_at_its_first_block() {
    let mut served = Chain::rotating().served;
    let header = Header { parent: Hash([7; 32]), ..genesis().block().unwrap().header };
    let first = Block::from_bytes(&served[0].block_bytes.0.0).unwrap();
    let other = Block { header: Header { parent: header.hash(), ..first.header }, ..first };
    served[0].block_bytes = Bytes(other.to_bytes()).into();
    assert!(matches!(fault(&served), FaultKind::Parent { .. }));
    served.remove(0);
    assert_eq!(fault(&served), FaultKind::Height(Height::new(2)));
}

/// An ancestor that is already certified.
fn block_one() -> OpenAncestor {
    OpenAncestor { height: Height::new(1), hash: Hash([1; 32]) }
}

#[test]
fn blocks_that_consensus_refuses_are_refused() {
    let check = |change: &dyn Fn(&mut Block), expected: &str| {
        let mut chain = Chain::new();
        chain.push(true, true, None);
        chain.push(true, true, None);
        let mut block = Block::from_bytes(&chain.served[1].block_bytes.0.0).unwrap();
        change(&mut block);
        block.header.certificates_root = certificates_root(&block.certificates);
        let first = genesis().state().unwrap();
        let keys: Vec<_> = first.committee().iter().map(|v| v.consensus_key).collect();
        let own = certificate(first.chain_id(), &block, &keys);
        chain.served[1].hash = block.hash().into();
        chain.served[1].block_bytes = Bytes(block.to_bytes()).into();
        chain.served[1].certificate_bytes = Some(Bytes(to_vec(&own)).into());
        let found = fault(&chain.served).to_string();
        assert!(found.contains(expected), "{found}: expected {expected}");
    };
    check(&|block| block.header.proposer = [7; 32], "proposer is not a validator");
    check(&|block| block.header.timestamp_ms = 0, "timestamp");
    check(&|block| block.header.subset_epoch = 1, "subset epoch 1, 0 is due");
    check(&|block| block.header.round.epoch = 1, "of epoch 1");
    let open = block_one();
    check(&|block| block.header.open.push(open), "open ancestors differ");
    check(&|block| block.certificates.clear(), "open ancestors differ");
    check(&|block| block.header.executed.height = Height::GENESIS, "names block 0 as executed");
    check(&|block| block.header.executed.state_root = Hash::ZERO, "left state root 0x0000");
    check(&|block| block.certificates[0].votes[1].signature[3] ^= 1, "is not signed by it");
    check(&|block| block.certificates[0].block = Hash([7; 32]), "neither the parent nor an open");
    check(&|block| drop(block.certificates[0].votes.pop()), "votes where 3 make a quorum");
}

#[test]
fn no_bit_can_be_changed() {
    let served = Chain::rotating().served;
    // One ordinary block with a transaction, and one that begins an epoch.
    for place in [2, EPOCH as usize - 1] {
        let check = |change: &dyn Fn(&mut RawBlock)| {
            let mut forged = served[..place + 3].to_vec();
            change(&mut forged[place]);
            let (_, noted, fatal) = replay(&forged);
            assert!(!noted.is_empty() || fatal.is_some(), "block {}", place + 1);
        };
        let sizes = (
            served[place].block_bytes.0.0.len(),
            served[place].certificate_bytes.as_ref().unwrap().0.0.len(),
        );
        for at in (0..sizes.0).step_by(11) {
            check(&|raw| raw.block_bytes.0.0[at] ^= 1 << (at % 8));
        }
        for at in (0..sizes.1).step_by(11) {
            check(&|raw| {
                raw.certificate_bytes.as_mut().unwrap().0.0[at] ^= 1 << (at % 8);
            });
        }
        check(&|raw| raw.hash.0.0[31] ^= 1);
        check(&|raw| raw.state_root.0.0[0] ^= 0x80);
    }
}
