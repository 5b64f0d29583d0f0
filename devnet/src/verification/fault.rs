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
    /// The bytes are not a block.
    #[error("its bytes are not a block: {0}")]
    Form(DecodeError),
    /// The bytes are those of another block.
    #[error("its bytes are those of block {0}")]
    Height(Height),
    /// The stated hash is not the hash of the bytes.
    #[error("its bytes have hash {got}, the node says {said}")]
    Hash {
        /// The node's hash.
        said: Hash,
        /// The hash of the bytes.
        got: Hash,
    },
    /// Its parent is not the previous block.
    #[error("it extends {got}, the block before it is {expected}")]
    Parent {
        /// The parent in its header.
        got: Hash,
        /// The previous block.
        expected: Hash,
    },
    /// Its header names the wrong epoch.
    #[error("it is of epoch {got}, its height is in epoch {expected}")]
    Epoch {
        /// The epoch in its header.
        got: u64,
        /// The epoch of its height.
        expected: u64,
    },
    /// Its proposer is not a validator of the epoch.
    #[error("its proposer is not a validator of its epoch")]
    Proposer,
    /// Its timestamp is not after its parent's.
    #[error("its timestamp is not above its parent's")]
    Timestamp,
    /// Its header names the wrong subset epoch.
    #[error("it is of subset epoch {got}, {expected} is due")]
    SubsetEpoch {
        /// The number in its header.
        got: u64,
        /// The expected number.
        expected: u64,
    },
    /// It embeds certificates that a child of its parent cannot embed.
    #[error("embedded certificates: {0}")]
    Embedded(#[from] block::CertificateError),
    /// Its list of open ancestors is wrong.
    #[error("its open ancestors differ from those that its certificates leave")]
    Open,
    /// It names a block as executed that is not the newest certified ancestor.
    #[error("it names block {got} as executed, the newest certified ancestor is {expected}")]
    Executed {
        /// The height in its header.
        got: Height,
        /// The height of the newest certified ancestor.
        expected: Height,
    },
    /// Its header commits to the wrong state.
    #[error("it says that block {of} left state root {got}, executed again it leaves {expected}")]
    Committed {
        /// The ancestor that the state belongs to.
        of: Height,
        /// The root in the header.
        got: Hash,
        /// The root computed.
        expected: Hash,
    },
    /// The node states the wrong state root.
    #[error("the node says that it left state root {said}, executed again it leaves {expected}")]
    StateRoot {
        /// The node's root.
        said: Hash,
        /// The root computed.
        expected: Hash,
    },
    /// The bytes of its certificate do not decode.
    #[error("its certificate is malformed: {0}")]
    CertificateForm(DecodeError),
    /// The certificate is of another block.
    #[error("its certificate is for {0}")]
    CertificateBlock(Hash),
    /// The certificate is of another epoch.
    #[error("a certificate of {block} is of epoch {got}, the block is of epoch {expected}")]
    CertificateEpoch {
        /// The certified block.
        block: Hash,
        /// The epoch in the certificate.
        got: u64,
        /// The block's epoch.
        expected: u64,
    },
    /// The certificate does not prove its block final.
    #[error("certificate of {block}: {error}")]
    Certificate {
        /// The certified block.
        block: Hash,
        error: certificate::CertificateError,
    },
    /// An epoch's validators are not a valid committee.
    #[error("the validators of its epoch: {0}")]
    Committee(#[from] scheme::CommitteeError),
    /// It cannot be executed.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// No certificate proves it final.
    #[error("no certificate of it or of the {0} blocks after it proves it final")]
    Unproved(usize),
}
