//! Faults in the blocks that a node serves.

use crate::consensus::{certificate, scheme};
use cowboy_engine::{
    chain::{ExecutionError, block},
    primitives::{Hash, Height, codec::DecodeError},
};

/// A statement of a node about a block that does not follow from genesis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("block {height}: {kind}")]
pub struct Fault {
    pub height: Height,
    pub kind: FaultKind,
}

/// The fault of a block, or of a statement about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    #[error("its bytes are not a block: {0}")]
    Form(DecodeError),
    #[error("its bytes are those of block {0}")]
    Height(Height),
    #[error("its bytes have hash {got}, the node says {said}")]
    Hash { said: Hash, got: Hash },
    #[error("it extends {got}, the block before it is {expected}")]
    Parent { got: Hash, expected: Hash },
    #[error("it is of epoch {got}, its height is in epoch {expected}")]
    Epoch { got: u64, expected: u64 },
    #[error("its proposer is not a validator of its epoch")]
    Proposer,
    #[error("its timestamp is not above its parent's")]
    Timestamp,
    #[error("it is of subset epoch {got}, {expected} is due")]
    SubsetEpoch { got: u64, expected: u64 },
    #[error("embedded certificates: {0}")]
    Embedded(#[from] block::CertificateError),
    #[error("its open ancestors differ from those that its certificates leave")]
    Open,
    #[error("it names block {got} as executed, the newest certified ancestor is {expected}")]
    Executed { got: Height, expected: Height },
    #[error("it says that block {of} left state root {got}, executed again it leaves {expected}")]
    Committed { of: Height, got: Hash, expected: Hash },
    #[error("the node says that it left state root {said}, executed again it leaves {expected}")]
    StateRoot { said: Hash, expected: Hash },
    #[error("its certificate is malformed: {0}")]
    CertificateForm(DecodeError),
    #[error("its certificate is for {0}")]
    CertificateBlock(Hash),
    #[error("a certificate of {block} is of epoch {got}, the block is of epoch {expected}")]
    CertificateEpoch { block: Hash, got: u64, expected: u64 },
    #[error("certificate of {block}: {error}")]
    Certificate { block: Hash, error: certificate::CertificateError },
    #[error("the validators of its epoch: {0}")]
    Committee(#[from] scheme::CommitteeError),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    #[error("it cannot be executed here: {0}")]
    Machine(String),
    #[error("no certificate of it or of the {0} blocks after it proves it final")]
    Unproved(usize),
}
