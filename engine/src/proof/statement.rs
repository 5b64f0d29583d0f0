//! Statements of proofs, and their witnesses.

use super::{
    constants::WIDTH,
    poseidon2::{self, Plain},
};
use crate::primitives::{
    codec::{Decode, DecodeError, Encode, Reader, Writer},
    hash::hex_text,
};
use ark_bn254::Fr;
use ark_ff::{BigInt, PrimeField as _};
use std::fmt;

/// Number of public inputs of a statement.
pub const INPUTS: usize = 4;

/// An element of BN254's scalar field: 32 bytes, big-endian, below the modulus.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Element(pub(super) Fr);

impl Element {
    /// The element with this canonical form; `None` at or above the modulus.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        Fr::from_bigint(integer(bytes)).map(Self)
    }

    /// The number in `bytes`, reduced: how a key or an identifier becomes an element.
    pub fn reduce(bytes: &[u8; 32]) -> Self {
        Self(Fr::from_be_bytes_mod_order(bytes))
    }

    pub fn to_bytes(self) -> [u8; 32] {
        bytes(self.0.into_bigint())
    }
}

impl From<u64> for Element {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

hex_text!(Element, to_bytes);

impl Encode for Element {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.to_bytes());
    }
}

impl Decode for Element {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let invalid = DecodeError::Invalid("not below the modulus of BN254's scalar field");
        Self::from_bytes(&r.array()?).ok_or(invalid)
    }
}

pub(super) fn integer(bytes: &[u8; 32]) -> BigInt<4> {
    let (limbs, _) = bytes.as_chunks();
    let mut integer = BigInt::default();
    for (limb, bytes) in integer.0.iter_mut().rev().zip(limbs) {
        *limb = u64::from_be_bytes(*bytes);
    }
    integer
}

pub(super) fn bytes(integer: BigInt<4>) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, limb) in bytes.as_chunks_mut().0.iter_mut().zip(integer.0.into_iter().rev()) {
        *chunk = limb.to_be_bytes();
    }
    bytes
}

/// The hash of four elements: the first of their Poseidon2 permutation.
pub fn hash_4(elements: [Element; WIDTH]) -> Element {
    let Ok(hash) = poseidon2::hash_4(&mut Plain, elements.map(|element| element.0));
    Element(hash)
}

/// The hash of two elements: the hash of these and two zeros.
pub fn hash_2(a: Element, b: Element) -> Element {
    let Ok(hash) = poseidon2::hash_2(&mut Plain, a.0, b.0);
    Element(hash)
}

/// The Poseidon2 permutation of four elements.
pub fn permute(elements: [Element; WIDTH]) -> [Element; WIDTH] {
    let Ok(state) = poseidon2::permute(&mut Plain, elements.map(|element| element.0));
    state.map(Element)
}

/// The secrets of the prover. The debug form reveals nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// The task's output, as four elements.
    pub output: [Element; WIDTH],
    /// Hides the output behind its commitment.
    pub salt: Element,
}

impl Witness {
    /// hash_4 of the output, without the salt: equal outputs have equal hashes.
    pub fn constraint_hash(&self) -> Element {
        hash_4(self.output)
    }

    /// hash_2 of the constraint hash and the salt.
    pub fn output_commitment(&self) -> Element {
        hash_2(self.constraint_hash(), self.salt)
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness(..)")
    }
}

/// The statement of a proof: for this task, this agent has an output with this hash and this
/// commitment.
///
/// On the chain, its first element identifies a task and the inputs of its output
/// (`chain::statement_task`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// The task: on a chain, a hash of its id and of the digest of its inputs.
    pub task_id: Element,
    pub agent: Element,
    /// hash_4 of the output, unsalted: a guess at the output can be tested.
    pub constraint_hash: Element,
    /// hash_2 of the constraint hash and the salt.
    pub output_commitment: Element,
}
crate::record!(Statement { task_id, agent, constraint_hash, output_commitment });

impl Statement {
    /// The statement that a witness proves for a task and an agent, whose 32 bytes are read
    /// big-endian and reduced.
    pub fn of(task_id: &[u8; 32], agent: &[u8; 32], witness: &Witness) -> Self {
        let constraint_hash = hash_4(witness.output);
        Self {
            task_id: Element::reduce(task_id),
            agent: Element::reduce(agent),
            constraint_hash,
            output_commitment: hash_2(constraint_hash, witness.salt),
        }
    }

    /// hash_2(hash_2(task_id, agent), output_commitment), which the circuit computes too.
    pub fn binding(&self) -> Element {
        hash_2(hash_2(self.task_id, self.agent), self.output_commitment)
    }

    pub fn inputs(&self) -> [Element; INPUTS] {
        [self.task_id, self.agent, self.constraint_hash, self.output_commitment]
    }
}
