//! Proofs over a chain's state: what is under a key, or that nothing is, from one header alone.
//!
//! A header names the state root that an ancestor left ([`Executed`](super::Executed)), and a
//! certificate shows that the header's block is final. The root is a hash over [`PARTS`] hashes,
//! one of them for each map of the state, and a map is hashed so that few hashes show one entry:
//!
//! ```text
//! certificate → header → state root → parts → map → entry
//! ```
//!
//! [`StateProof::check`] follows the arrows but for the first: who may sign a certificate is for
//! the caller to know, and `cowboy_devnet::consensus::certificate` verifies its votes. The bytes
//! are in `format`, and in docs/proofs.md.

mod format;
mod validators;

use super::{
    block::{Certificate, Header},
    state::{PARTS, Part, State},
    validators::{Newest, Roster},
};
use crate::{
    primitives::{
        Address, Hash, Height,
        codec::{DecodeError, Encode, Writer, to_vec},
        keccak256, merkle,
    },
    timer::{
        Commitment, book, heights,
        pages::proof::{Oversize, TreeError},
    },
};
use std::fmt;

/// The longest proof, in bytes: the largest record of a timer with all that shows it, twice.
pub const MAX_PROOF_BYTES: usize = 2 << 20;

/// What a proof is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An account: nonce and balance.
    Account(Address),
    /// An actor: its deployer, the hash of its code.
    Actor(Address),
    /// What an actor has stored under a key.
    Stored(Address, String),
    /// A job and its status.
    Job(Hash),
    /// A runner's record.
    Runner(Address),
    /// A task.
    Task(Hash),
    /// The newest P(h) that the chain knew.
    Presence,
    /// A timer that waits.
    Timer(Hash),
    /// The timers that wait from one height to another, both included.
    Timers {
        /// The first height.
        from: Height,
        /// The last.
        to: Height,
    },
    /// The committees of the state's consensus epoch and of the next, and the subset epochs that
    /// count.
    Validators,
}

impl Subject {
    /// The name of its kind.
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

/// A proof, read. Nothing of it is checked but its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateProof {
    /// What it is about.
    pub subject: Subject,
    /// A header that names the state root.
    pub header: Header,
    /// Shows that the header's block is final.
    pub certificate: Certificate,
    /// What the state root is made of.
    pub parts: [Hash; PARTS],
    /// What is under the key, and the way to one of the parts.
    pub evidence: Evidence,
}

/// What is under a key, and the way from there to a part of the state root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// In a map; `order`: keccak256 of the registry's order, where the map is its.
    Entry {
        /// The entry.
        entry: Entry,
        /// See above.
        order: Option<Hash>,
    },
    /// Presence in its one form: all that the part is the hash of. `None`: none is known.
    Whole(Option<Vec<u8>>),
    /// In one of the queue's two trees.
    Queue {
        /// The root of the other one.
        other_root: Hash,
        /// As in [`Commitment`].
        next_seq: u64,
        /// As in [`Commitment`].
        epoch: u64,
        /// See [`crate::timer::pages::proof`].
        tree: Vec<u8>,
    },
    /// The newest committees and the newest subset epochs, which are two parts of the state root.
    Newest(Box<[Newest; 2]>),
}

/// What a map has under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A value, in its one form.
    Present(Vec<u8>, merkle::Proof),
    /// Nothing.
    Absent(merkle::Absence),
}

/// What a proof shows, if its certificate does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The block that left the state.
    pub height: Height,
    /// The state's root.
    pub state_root: Hash,
    /// What is there.
    pub found: Found<'a>,
}

/// What a state has for a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// Nothing.
    Nothing,
    /// A value in its one form: a CBOR record; of a timer its body, as [`book::read`] reads it.
    Value(&'a [u8]),
    /// These timers and no others, in order of height and id.
    Timers(Vec<(Height, Hash)>),
    /// Who validates, and whom runners connect to.
    Validators(Roster),
}

/// Why bytes prove nothing. Each variant is one check, and its text names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateProofError {
    /// Longer than any proof.
    #[error("length: {got} bytes, a proof has {limit} at most")]
    Length {
        /// Bytes there are.
        got: usize,
        /// The bound.
        limit: usize,
    },
    /// Another file.
    #[error("form: the file does not begin as a proof does")]
    NoProof,
    /// Of another version of this program.
    #[error("form: the proof has version {got}, this program reads {expected}")]
    Version {
        /// Its version.
        got: u8,
        /// The one that is read.
        expected: u8,
    },
    /// A byte that is not what it can be.
    #[error("form: byte {at}: {what}")]
    Form {
        /// Where, from the first byte.
        at: usize,
        /// What was expected.
        what: &'static str,
    },
    /// The header, the certificate or a list of validators does not decode.
    #[error("form: the {record} does not decode: {error}")]
    Record {
        /// Which.
        record: &'static str,
        /// How.
        error: DecodeError,
    },
    /// The certificate is of another block.
    #[error("certificate: it is for block {got}, the header's block is {expected}")]
    Block {
        /// The block that it certifies.
        got: Hash,
        /// The header's.
        expected: Hash,
    },
    /// The certificate is of another committee's epoch.
    #[error("certificate: its votes are of epoch {got}, the header's block is of epoch {expected}")]
    Epoch {
        /// The certificate's.
        got: u64,
        /// The header's.
        expected: u64,
    },
    /// The parts are those of another state.
    #[error("state root: the parts give {got}, the header names {expected}")]
    StateRoot {
        /// The hash over the parts.
        got: Hash,
        /// What the header says.
        expected: Hash,
    },
    /// The evidence is of another map, or changed.
    #[error("{kind}: the evidence gives root {got}, the state has {expected}")]
    Part {
        /// What it is about.
        kind: &'static str,
        /// What follows from the evidence.
        got: Hash,
        /// The part of the state.
        expected: Hash,
    },
    /// The steps are not a way up in a map.
    #[error("{kind}: the evidence is of no map")]
    Steps {
        /// What it is about.
        kind: &'static str,
    },
    /// The newest entries do not say what holds after the block.
    #[error("{kind}: the entries shown do not hold after block {height}")]
    NotThen {
        /// What it is about.
        kind: &'static str,
        /// The block.
        height: Height,
    },
    /// The tree of timers does not show the whole range.
    #[error("{kind}: {error}")]
    Tree {
        /// What it is about.
        kind: &'static str,
        /// What is wrong.
        error: TreeError,
    },
}

impl StateProof {
    /// Checks that the certificate is for the header, that the header names the state root, and
    /// that what is shown is in that state. Whose signatures the certificate needs, and whether it
    /// has them, is not checked here.
    pub fn check(&self) -> Result<Statement<'_>, StateProofError> {
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
        Ok(Statement { height: header.executed.height, state_root: Part::root(&self.parts), found })
    }

    /// What the evidence shows, and the part of the state in which it does.
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
                let root = Commitment { book, heights, next_seq, epoch }.root();
                Ok((root, body.map_or(Found::Nothing, Found::Value)))
            }
            (
                Subject::Timers { from, to },
                Evidence::Queue { other_root, next_seq, epoch, tree },
            ) => {
                let (heights, timers) = heights::check(tree, *from, *to).map_err(tree_error)?;
                let (book, next_seq, epoch) = (*other_root, *next_seq, *epoch);
                let root = Commitment { book, heights, next_seq, epoch }.root();
                Ok((root, Found::Timers(timers)))
            }
            (Subject::Validators, Evidence::Newest(newest)) => validators::found(self, newest),
            (subject, Evidence::Entry { entry, order }) => {
                let key = subject.map_key().ok_or(StateProofError::Steps { kind })?;
                let (root, found) = match entry {
                    Entry::Present(value, proof) => (proof.root(&key, value), Found::Value(value)),
                    Entry::Absent(absence) => (absence.root(&key), Found::Nothing),
                };
                let root = root.ok_or(StateProofError::Steps { kind })?;
                Ok((order.map_or(root, |order| keccak256(&[&root.0, &order.0])), found))
            }
            // What was read from bytes has the evidence of its kind.
            _ => Err(StateProofError::Steps { kind }),
        }
    }

    /// Shows what `state`, which the header's `executed` is about, has for a subject.
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

/// A key as its map has it.
enum MapKey<'a> {
    Address(&'a Address),
    Hash(&'a Hash),
    Stored(&'a Address, &'a String),
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
                (Some(record), Some(proof)) => Entry::Present(to_vec(record), proof),
                _ => Entry::Absent(registry.prove_absent(runner).expect("it is not there")),
            };
            return Ok(Evidence::Entry { entry, order: Some(order) });
        }
        Subject::Presence => {
            return Ok(Evidence::Whole(state.known_presence().map(to_vec)));
        }
        Subject::Timer(id) => {
            let Commitment { heights, next_seq, epoch, .. } = state.timers().commitment();
            let tree = state.timers().prove(id, limit)?;
            return Ok(Evidence::Queue { other_root: heights, next_seq, epoch, tree });
        }
        Subject::Timers { from, to } => {
            let Commitment { book, next_seq, epoch, .. } = state.timers().commitment();
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

fn entry<K, V>(map: &merkle::Map<K, V>, key: &K) -> Entry
where
    K: Encode + Ord,
    V: Encode + Clone,
{
    match (map.get(key), map.prove(key)) {
        (Some(value), Some(proof)) => Entry::Present(to_vec(value), proof),
        _ => Entry::Absent(map.prove_absent(key).expect("it is not there")),
    }
}
