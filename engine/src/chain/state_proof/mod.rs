//! Proofs over a chain's state: the value under a key, or its absence, from a single header.
//!
//! A header names the state root after an ancestor ([`Executed`](super::Executed)), and a
//! certificate shows that the header's block is final. The root is a hash over [`PARTS`] hashes,
//! among them one for each map of the state, and maps are hashed so that few hashes prove one
//! entry:
//!
//! ```text
//! certificate → header → state root → parts → map → entry
//! ```
//!
//! [`StateProof::check`] follows every arrow except the first: the caller must know who may sign a
//! certificate, and `cowboy_devnet::consensus::certificate` verifies the votes. The byte format is
//! described in `format` and in docs/proofs.md.

mod format;
mod validators;

use super::{
    actors::StoreKey,
    block::{Certificate, Header},
    committee::{Newest, Roster},
    state::{PARTS, Part, State},
};
use crate::{
    primitives::{
        Address, Hash, Height,
        codec::{DecodeError, Encode, Writer, to_vec},
        keccak256, merkle,
    },
    timer::{
        QueueCommitment, book, heights,
        pages::proof::{Oversize, TreeError},
    },
};
use std::fmt;

/// Maximum length of a proof, in bytes: twice the largest timer record with its evidence.
pub const MAX_PROOF_BYTES: usize = 2 << 20;

/// The subject of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An account: nonce and balance.
    Account(Address),
    /// An actor: its deployer, the hash of its code.
    Actor(Address),
    /// The value in an actor's store under a key.
    Stored(Address, StoreKey),
    Job(Hash),
    Runner(Address),
    Task(Hash),
    /// The newest known P(h).
    Presence,
    Timer(Hash),
    /// The timers due from one height to another (inclusive).
    Timers {
        from: Height,
        to: Height,
    },
    /// The committees of the state's consensus epoch and the next, and the subset epochs that
    /// count.
    Validators,
}

impl Subject {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Account(_) => "account",
            Self::Actor(_) => "actor",
            Self::Stored(..) => "stored",
            Self::Job(_) => "job",
            Self::Runner(_) => "runner",
            Self::Task(_) => "task",
            Self::Presence => "presence",
            Self::Timer(_) => "timer",
            Self::Timers { .. } => "timers",
            Self::Validators => "validators",
        }
    }

    const fn part(&self) -> Part {
        match self {
            Self::Account(_) => Part::Accounts,
            Self::Actor(_) => Part::Actors,
            Self::Stored(..) => Part::Storage,
            Self::Job(_) => Part::Jobs,
            Self::Runner(_) => Part::Registry,
            Self::Task(_) => Part::Tasks,
            Self::Presence => Part::Presence,
            Self::Timer(_) | Self::Timers { .. } => Part::Timers,
            Self::Validators => Part::Committees,
        }
    }
}

/// Kind and key.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Account(key) | Self::Actor(key) | Self::Runner(key) => write!(f, "{kind} {key}"),
            Self::Stored(actor, key) => write!(f, "{kind} {actor}/{key}"),
            Self::Job(id) | Self::Task(id) | Self::Timer(id) => write!(f, "{kind} {id}"),
            Self::Presence | Self::Validators => f.write_str(kind),
            Self::Timers { from, to } => write!(f, "{kind} {from}..{to}"),
        }
    }
}

/// A decoded proof. Only its format has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateProof {
    pub subject: Subject,
    pub header: Header,
    /// Shows that the header's block is final.
    pub certificate: Certificate,
    /// The hashes that the state root is computed from.
    pub parts: [Hash; PARTS],
    pub evidence: Evidence,
}

/// The value under a key, and the path from there to a part of the state root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// An entry of a map. `order` is keccak256 of the registry's order, if the map is the
    /// registry's.
    Entry { entry: ProvedEntry, order: Option<Hash> },
    /// The encoded presence, whose hash is the part. `None`: no P(h) is known.
    Whole(Option<Vec<u8>>),
    /// An entry of one of the queue's two trees.
    Queue {
        other_root: Hash,
        /// As in [`QueueCommitment`].
        next_seq: u64,
        /// As in [`QueueCommitment`].
        epoch: u64,
        /// See [`crate::timer::pages::proof`].
        tree: Vec<u8>,
    },
    /// The newest committees and the newest subset epochs, which are two parts of the state root.
    Newest(Box<[Newest; 2]>),
}

/// The entry of a map under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvedEntry {
    /// The encoded value.
    Present(Vec<u8>, merkle::InclusionProof),
    Absent(merkle::Absence),
}

/// The statement of a proof, valid if its certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedStatement<'a> {
    /// The block that produced the state.
    pub height: Height,
    pub state_root: Hash,
    pub found: Found<'a>,
}

/// The value of a subject in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    Nothing,
    /// An encoded value: a CBOR record; for a timer its body, as read by [`book::read`].
    Value(&'a [u8]),
    /// Exactly these timers, ordered by height and id.
    Timers(Vec<(Height, Hash)>),
    Validators(Roster),
}

/// Why bytes are not a valid proof. Each variant is one check, and its text names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateProofError {
    #[error("length: {got} bytes, a proof has at most {limit}")]
    Length { got: usize, limit: usize },
    #[error("form: the file does not begin with the magic bytes of a proof")]
    NoProof,
    #[error("form: the proof has version {got}, this program reads {expected}")]
    Version { got: u8, expected: u8 },
    #[error("form: byte {at}: {what}")]
    Form { at: usize, what: &'static str },
    #[error("form: the {record} does not decode: {error}")]
    Record { record: &'static str, error: DecodeError },
    #[error("certificate: it is for block {got}, the header's block is {expected}")]
    Block { got: Hash, expected: Hash },
    #[error("certificate: its votes are of epoch {got}, the header's block is of epoch {expected}")]
    Epoch { got: u64, expected: u64 },
    #[error("state root: the parts give {got}, the header names {expected}")]
    StateRoot { got: Hash, expected: Hash },
    #[error("{kind}: the evidence gives root {got}, the state has {expected}")]
    Part { kind: &'static str, got: Hash, expected: Hash },
    #[error("{kind}: the evidence is not a path in a map")]
    Steps { kind: &'static str },
    #[error("{kind}: the entries shown do not hold after block {height}")]
    NotThen { kind: &'static str, height: Height },
    /// The tree of timers does not cover the whole range.
    #[error("{kind}: {error}")]
    Tree { kind: &'static str, error: TreeError },
}

impl StateProof {
    /// Checks that the certificate is for the header, that the header names the state root, and
    /// that the evidence belongs to that state. Does not check the certificate's signatures, or who
    /// signed it.
    pub fn check(&self) -> Result<ProvedStatement<'_>, StateProofError> {
        let (header, certificate) = (&self.header, &self.certificate);
        let hash = header.hash();
        if certificate.block != hash {
            return Err(StateProofError::Block { got: certificate.block, expected: hash });
        }
        if certificate.round.epoch != header.round.epoch {
            let (got, expected) = (certificate.round.epoch, header.round.epoch);
            return Err(StateProofError::Epoch { got, expected });
        }
        let (got, expected) = (Part::root(&self.parts), header.executed.state_root);
        if got != expected {
            return Err(StateProofError::StateRoot { got, expected });
        }
        let (got, found) = self.found()?;
        let expected = self.parts[self.subject.part() as usize];
        if got != expected {
            let kind = self.subject.kind();
            return Err(StateProofError::Part { kind, got, expected });
        }
        Ok(ProvedStatement {
            height: header.executed.height,
            state_root: Part::root(&self.parts),
            found,
        })
    }

    /// The value that the evidence shows, and the part of the state root that it belongs to.
    fn found(&self) -> Result<(Hash, Found<'_>), StateProofError> {
        let kind = self.subject.kind();
        let tree_error = |error| StateProofError::Tree { kind, error };
        match (&self.subject, &self.evidence) {
            (Subject::Presence, Evidence::Whole(value)) => Ok(match value {
                Some(value) => (keccak256(&[value]), Found::Value(value)),
                None => (Hash::ZERO, Found::Nothing),
            }),
            (Subject::Timer(id), Evidence::Queue { other_root, next_seq, epoch, tree }) => {
                let (book, body) = book::check(tree, id).map_err(tree_error)?;
                let (heights, next_seq, epoch) = (*other_root, *next_seq, *epoch);
                let root = QueueCommitment { book, heights, next_seq, epoch }.root();
                Ok((root, body.map_or(Found::Nothing, Found::Value)))
            }
            (
                Subject::Timers { from, to },
                Evidence::Queue { other_root, next_seq, epoch, tree },
            ) => {
                let (heights, timers) = heights::check(tree, *from, *to).map_err(tree_error)?;
                let (book, next_seq, epoch) = (*other_root, *next_seq, *epoch);
                let root = QueueCommitment { book, heights, next_seq, epoch }.root();
                Ok((root, Found::Timers(timers)))
            }
            (Subject::Validators, Evidence::Newest(newest)) => validators::found(self, newest),
            (subject, Evidence::Entry { entry, order }) => {
                let key = subject.map_key().ok_or(StateProofError::Steps { kind })?;
                let (root, found) = match entry {
                    ProvedEntry::Present(value, proof) => {
                        (proof.root(&key, value), Found::Value(value))
                    }
                    ProvedEntry::Absent(absence) => (absence.root(&key), Found::Nothing),
                };
                let root = root.ok_or(StateProofError::Steps { kind })?;
                Ok((order.map_or(root, |order| keccak256(&[&root.0, &order.0])), found))
            }
            // A decoded proof has the evidence of its kind.
            _ => Err(StateProofError::Steps { kind }),
        }
    }

    /// Proves what `state`, the one named by the header's `executed`, has for a subject.
    pub fn new(
        state: &State,
        subject: Subject,
        header: Header,
        certificate: Certificate,
    ) -> Result<Self, Oversize> {
        let evidence = evidence(state, &subject)?;
        Ok(Self { subject, header, certificate, parts: state.parts(), evidence })
    }
}

enum MapKey<'a> {
    Address(&'a Address),
    Hash(&'a Hash),
    Stored(&'a Address, &'a StoreKey),
}

impl Subject {
    fn map_key(&self) -> Option<MapKey<'_>> {
        match self {
            Self::Account(key) | Self::Actor(key) | Self::Runner(key) => Some(MapKey::Address(key)),
            Self::Job(key) | Self::Task(key) => Some(MapKey::Hash(key)),
            Self::Stored(actor, key) => Some(MapKey::Stored(actor, key)),
            Self::Presence | Self::Timer(_) | Self::Timers { .. } | Self::Validators => None,
        }
    }
}

impl Encode for MapKey<'_> {
    fn encode(&self, w: &mut Writer) {
        match self {
            Self::Address(address) => address.encode(w),
            Self::Hash(hash) => hash.encode(w),
            Self::Stored(actor, key) => {
                w.list(2);
                actor.encode(w);
                key.encode(w);
            }
        }
    }
}

fn evidence(state: &State, subject: &Subject) -> Result<Evidence, Oversize> {
    let limit = MAX_PROOF_BYTES;
    let entry = match subject {
        Subject::Account(key) => entry(&state.accounts, key),
        Subject::Actor(key) => entry(&state.actors, key),
        Subject::Stored(actor, key) => entry(&state.storage, &(*actor, key.clone())),
        Subject::Job(id) => entry(&state.jobs, id),
        Subject::Task(id) => entry(&state.tasks.by_id, id),
        Subject::Runner(runner) => {
            let registry = &state.registry;
            let [_, order] = registry.roots();
            let entry = match (registry.get(runner), registry.prove(runner)) {
                (Some(record), Some(proof)) => ProvedEntry::Present(to_vec(record), proof),
                _ => ProvedEntry::Absent(registry.prove_absent(runner).expect("it is not there")),
            };
            return Ok(Evidence::Entry { entry, order: Some(order) });
        }
        Subject::Presence => {
            return Ok(Evidence::Whole(state.known_presence().map(to_vec)));
        }
        Subject::Timer(id) => {
            let QueueCommitment { heights, next_seq, epoch, .. } = state.timers().commitment();
            let tree = state.timers().prove(id, limit)?;
            return Ok(Evidence::Queue { other_root: heights, next_seq, epoch, tree });
        }
        Subject::Timers { from, to } => {
            let QueueCommitment { book, next_seq, epoch, .. } = state.timers().commitment();
            let tree = state.timers().prove_range(*from, *to, limit)?;
            return Ok(Evidence::Queue { other_root: book, next_seq, epoch, tree });
        }
        Subject::Validators => {
            let newest = state
                .validators
                .newest(state.params.epoch_blocks, state.connectivity.overlap_blocks);
            return Ok(Evidence::Newest(Box::new(newest)));
        }
    };
    Ok(Evidence::Entry { entry, order: None })
}

fn entry<K, V>(map: &merkle::Map<K, V>, key: &K) -> ProvedEntry
where
    K: Encode + Ord,
    V: Encode + Clone,
{
    match (map.get(key), map.prove(key)) {
        (Some(value), Some(proof)) => ProvedEntry::Present(to_vec(value), proof),
        _ => ProvedEntry::Absent(map.prove_absent(key).expect("it is not there")),
    }
}
