//! The canonical byte format of proofs. Integers are big-endian.
//!
//! ```text
//! proof       = "cbyproof" ‖ 0x01 ‖ kind (1) ‖ bytes of the key (2) ‖ key
//!               ‖ bytes of the header (4) ‖ header ‖ bytes of the certificate (4) ‖ certificate
//!               ‖ 19 parts (32 each) ‖ evidence
//! evidence    = of a runner: keccak256 of the order (32) ‖ entry
//!               of presence: 0x00, or 0x01 ‖ bytes (4) ‖ value
//!               of timers: root of the other tree (32) ‖ next_seq (8) ‖ epoch (8) ‖ tree
//!               of validators: newest committees ‖ newest subset epochs
//!               else: entry
//! entry       = 0x00, the map is empty
//!               0x01 ‖ bytes of the value (4) ‖ value ‖ steps
//!               0x02 ‖ path of the neighbour (32) ‖ hash of its value (32) ‖ steps
//! newest      = blocks (8) ‖ entries (1): 1 or 2 ‖ for each, the newest first:
//!               since (8) ‖ bytes of the value (4) ‖ value ‖ steps
//! steps       = number (2), 256 at most ‖ for each: bit (1) ‖ sibling (32)
//! ```
//!
//! Header and certificate are deterministic CBOR, as blocks have them; the tree is that of
//! [`pages::proof`](crate::timer::pages::proof).

use super::{
    Address, Evidence, Hash, Height, MAX_PROOF_BYTES, Newest, Oversize, PARTS, ProvedEntry,
    StateProof, StateProofError, Subject, merkle,
};
use crate::{
    chain::committee::Held,
    primitives::codec::{Decode, Encode, from_slice, to_vec},
};

const MAGIC: &[u8; 8] = b"cbyproof";
const VERSION: u8 = 1;
/// Maximum number of steps: one for each bit of a path.
const MAX_PATH_STEPS: usize = 256;

impl Subject {
    const fn code(&self) -> u8 {
        match self {
            Self::Account(_) => 1,
            Self::Actor(_) => 2,
            Self::Stored(..) => 3,
            Self::Job(_) => 4,
            Self::Runner(_) => 5,
            Self::Task(_) => 6,
            Self::Presence => 7,
            Self::Timer(_) => 8,
            Self::Timers { .. } => 9,
            Self::Validators => 10,
        }
    }

    fn key(&self) -> Vec<u8> {
        match self {
            Self::Account(key) | Self::Actor(key) | Self::Runner(key) => key.0.to_vec(),
            Self::Stored(actor, key) => [&actor.0, key.as_bytes()].concat(),
            Self::Job(id) | Self::Task(id) | Self::Timer(id) => id.0.to_vec(),
            Self::Presence | Self::Validators => Vec::new(),
            Self::Timers { from, to } => [from.to_be_bytes(), to.to_be_bytes()].concat(),
        }
    }

    fn read(code: u8, key: &[u8]) -> Result<Self, &'static str> {
        let address = || key.try_into().map(Address).map_err(|_| "expected a key of 20 bytes");
        let hash = || key.try_into().map(Hash).map_err(|_| "expected a key of 32 bytes");
        Ok(match code {
            1 => Self::Account(address()?),
            2 => Self::Actor(address()?),
            3 => {
                let (actor, key) = key.split_first_chunk().ok_or("expected an actor and a key")?;
                Self::Stored(Address(*actor), key.into())
            }
            4 => Self::Job(hash()?),
            5 => Self::Runner(address()?),
            6 => Self::Task(hash()?),
            7 if key.is_empty() => Self::Presence,
            10 if key.is_empty() => Self::Validators,
            7 | 10 => return Err("expected an empty key"),
            8 => Self::Timer(hash()?),
            9 => {
                let key: &[u8; 16] = key.try_into().map_err(|_| "expected a key of 16 bytes")?;
                let both = u128::from_be_bytes(*key);
                let (from, to) = (Height::new((both >> 64) as u64), Height::new(both as u64));
                if from > to {
                    return Err("expected heights in order");
                }
                Self::Timers { from, to }
            }
            _ => return Err("expected a kind from 1 to 10 before the key"),
        })
    }
}

impl StateProof {
    pub fn to_bytes(&self) -> Result<Vec<u8>, Oversize> {
        let oversize = Oversize { limit: MAX_PROOF_BYTES };
        let mut w = Vec::new();
        w.extend_from_slice(MAGIC);
        w.extend_from_slice(&[VERSION, self.subject.code()]);
        let key = self.subject.key();
        w.extend_from_slice(&u16::try_from(key.len()).map_err(|_| oversize)?.to_be_bytes());
        w.extend_from_slice(&key);
        long(&mut w, &to_vec(&self.header))?;
        long(&mut w, &to_vec(&self.certificate))?;
        w.extend(self.parts.iter().flat_map(|part| part.0));
        match &self.evidence {
            Evidence::Entry { entry, order } => {
                w.extend(order.iter().flat_map(|order| order.0));
                match entry {
                    ProvedEntry::Absent(merkle::Absence::Empty) => w.push(0),
                    ProvedEntry::Present(value, proof) => {
                        w.push(1);
                        long(&mut w, value)?;
                        write_steps(&mut w, proof);
                    }
                    ProvedEntry::Absent(merkle::Absence::Occupied(neighbour, proof)) => {
                        w.push(2);
                        w.extend_from_slice(&neighbour.path.0);
                        w.extend_from_slice(&neighbour.value.0);
                        write_steps(&mut w, proof);
                    }
                }
            }
            Evidence::Whole(None) => w.push(0),
            Evidence::Whole(Some(value)) => {
                w.push(1);
                long(&mut w, value)?;
            }
            Evidence::Queue { other_root, next_seq, epoch, tree } => {
                w.extend_from_slice(&other_root.0);
                w.extend_from_slice(&next_seq.to_be_bytes());
                w.extend_from_slice(&epoch.to_be_bytes());
                w.extend_from_slice(tree);
            }
            Evidence::Newest(both) => {
                for Newest { blocks, newest, before } in both.iter() {
                    w.extend_from_slice(&blocks.to_be_bytes());
                    w.push(1 + u8::from(before.is_some()));
                    for Held { since, value, proof } in [newest].into_iter().chain(before) {
                        w.extend_from_slice(&since.to_be_bytes());
                        long(&mut w, value)?;
                        write_steps(&mut w, proof);
                    }
                }
            }
        }
        if w.len() > MAX_PROOF_BYTES { Err(oversize) } else { Ok(w) }
    }

    /// Decodes a canonical proof. Uses memory in proportion to the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StateProofError> {
        let (got, limit) = (bytes.len(), MAX_PROOF_BYTES);
        if got > limit {
            return Err(StateProofError::Length { got, limit });
        }
        let mut r = ProofInput { bytes, at: 0 };
        if r.array().ok() != Some(*MAGIC) {
            return Err(StateProofError::NoProof);
        }
        let [version] = r.array()?;
        if version != VERSION {
            return Err(StateProofError::Version { got: version, expected: VERSION });
        }
        let [code] = r.array()?;
        let length = u16::from_be_bytes(r.array()?);
        let at = r.at;
        let subject = Subject::read(code, r.take(length.into())?)
            .map_err(|what| StateProofError::Form { at, what })?;
        let header = r.record("header")?;
        let certificate = r.record("certificate")?;
        let mut parts = [Hash::ZERO; PARTS];
        for part in &mut parts {
            *part = Hash(r.array()?);
        }
        let evidence = match subject {
            Subject::Presence => Evidence::Whole(match r.array()? {
                [0] => None,
                [1] => Some(r.long()?.to_vec()),
                _ => return Err(r.before("expected 0 or 1")),
            }),
            Subject::Timer(_) | Subject::Timers { .. } => Evidence::Queue {
                other_root: Hash(r.array()?),
                next_seq: u64::from_be_bytes(r.array()?),
                epoch: u64::from_be_bytes(r.array()?),
                tree: r.rest().to_vec(),
            },
            Subject::Validators => Evidence::Newest(Box::new([r.newest()?, r.newest()?])),
            Subject::Runner(_) => {
                let order = Some(Hash(r.array()?));
                Evidence::Entry { order, entry: r.entry()? }
            }
            _ => Evidence::Entry { entry: r.entry()?, order: None },
        };
        if r.at != bytes.len() {
            return Err(StateProofError::Form { at: r.at, what: "expected the end" });
        }
        Ok(Self { subject, header, certificate, parts, evidence })
    }
}

fn long(w: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Oversize> {
    if bytes.len() > MAX_PROOF_BYTES {
        return Err(Oversize { limit: MAX_PROOF_BYTES });
    }
    w.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    w.extend_from_slice(bytes);
    Ok(())
}

fn write_steps(w: &mut Vec<u8>, proof: &merkle::InclusionProof) {
    w.extend_from_slice(&(proof.steps.len() as u16).to_be_bytes());
    for step in &proof.steps {
        w.push(step.bit);
        w.extend_from_slice(&step.sibling.0);
    }
}

struct ProofInput<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ProofInput<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], StateProofError> {
        let what = "expected more bytes";
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..length).ok_or(StateProofError::Form { at: self.at, what })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StateProofError> {
        Ok(*self.take(N)?.first_chunk().expect("`take` returns N bytes"))
    }

    fn long(&mut self) -> Result<&'a [u8], StateProofError> {
        let length = u32::from_be_bytes(self.array()?);
        self.take(length as usize)
    }

    fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    fn record<T: Encode + Decode>(&mut self, record: &'static str) -> Result<T, StateProofError> {
        from_slice(self.long()?).map_err(|error| StateProofError::Record { record, error })
    }

    fn entry(&mut self) -> Result<ProvedEntry, StateProofError> {
        match self.array()? {
            [0] => Ok(ProvedEntry::Absent(merkle::Absence::Empty)),
            [1] => Ok(ProvedEntry::Present(self.long()?.to_vec(), self.steps()?)),
            [2] => {
                let (path, value) = (Hash(self.array()?), Hash(self.array()?));
                let neighbour = merkle::Neighbour { path, value };
                Ok(ProvedEntry::Absent(merkle::Absence::Occupied(neighbour, self.steps()?)))
            }
            _ => Err(self.before("expected 0, 1 or 2")),
        }
    }

    fn newest(&mut self) -> Result<Newest, StateProofError> {
        let blocks = u64::from_be_bytes(self.array()?);
        let [entries] = self.array()?;
        if !(1..=2).contains(&entries) {
            return Err(self.before("expected 1 or 2"));
        }
        let newest = self.held()?;
        let before = if entries == 2 { Some(self.held()?) } else { None };
        Ok(Newest { blocks, newest, before })
    }

    fn held(&mut self) -> Result<Held, StateProofError> {
        let since = u64::from_be_bytes(self.array()?);
        Ok(Held { since, value: self.long()?.to_vec(), proof: self.steps()? })
    }

    fn steps(&mut self) -> Result<merkle::InclusionProof, StateProofError> {
        let number = usize::from(u16::from_be_bytes(self.array()?));
        if number > MAX_PATH_STEPS {
            return Err(self.before("expected at most 256 steps"));
        }
        let mut steps = Vec::new();
        for _ in 0..number {
            let [bit] = self.array()?;
            steps.push(merkle::Step { bit, sibling: Hash(self.array()?) });
        }
        Ok(merkle::InclusionProof { steps })
    }

    /// An error at the previous byte.
    const fn before(&self, what: &'static str) -> StateProofError {
        StateProofError::Form { at: self.at.saturating_sub(1), what }
    }
}
