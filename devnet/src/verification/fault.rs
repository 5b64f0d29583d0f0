//! What does not hold about the blocks that a node serves.

use crate::consensus::{certificate, scheme};
use cowboy_engine::{
    chain::{ExecutionError, block},
    primitives::{Hash, Height, codec::DecodeError},
};

/// Something that a node said about a block, and that does not follow from genesis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("block {height}: {kind}")]
pub struct Fault {
    /// The block.
    pub height: Height,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong with a block, or with what was said about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// Bytes that are no block.
    #[error("its bytes are no block: {0}")]
    Form(DecodeError),
    /// Bytes of another block.
    #[error("its bytes are those of block {0}")]
    Height(Height),
    /// The hash that was said is not that of the bytes.
    #[error("its bytes have hash {got}, the node says {said}")]
    Hash {
        /// What the node says.
        said: Hash,
        /// What follows from the bytes.
        got: Hash,
    },
    /// It extends another block than the one before.
    #[error("it extends {got}, the block before it is {expected}")]
    Parent {
        /// The parent that its header names.
        got: Hash,
        /// The block before.
        expected: Hash,
    },
    /// Its header names another epoch.
    #[error("it is of epoch {got}, its height is in epoch {expected}")]
    Epoch {
        /// The epoch named.
        got: u64,
        /// The epoch of its height.
        expected: u64,
    },
    /// Proposed by somebody else.
    #[error("its proposer is no validator of its epoch")]
    Proposer,
    /// Not after its parent.
    #[error("its timestamp is not above its parent's")]
    Timestamp,
    /// Its header names another subset epoch.
    #[error("it is of subset epoch {got}, {expected} is due")]
    SubsetEpoch {
        /// The number named.
        got: u64,
        /// The number that follows.
        expected: u64,
    },
    /// It embeds certificates that a child of its parent cannot embed.
    #[error("embedded certificates: {0}")]
    Embedded(#[from] block::CertificateError),
    /// Its list of open ancestors is another one.
    #[error("its open ancestors differ from those that its certificates leave")]
    Open,
    /// It names another block as executed than the newest certified ancestor.
    #[error("it names block {got} as executed, the newest certified ancestor is {expected}")]
    Executed {
        /// The height named.
        got: Height,
        /// The height that follows.
        expected: Height,
    },
    /// Its header commits to another state.
    #[error("it says that block {of} left state root {got}, executed again it leaves {expected}")]
    Committed {
        /// The ancestor whose state it is.
        of: Height,
        /// The root in the header.
        got: Hash,
        /// The root computed.
        expected: Hash,
    },
    /// The node says another state root.
    #[error("the node says that it left state root {said}, executed again it leaves {expected}")]
    StateRoot {
        /// What the node says.
        said: Hash,
        /// The root computed.
        expected: Hash,
    },
    /// Bytes that are no certificate.
    #[error("the bytes of its certificate are none: {0}")]
    CertificateForm(DecodeError),
    /// A certificate of another block.
    #[error("its certificate is for {0}")]
    CertificateBlock(Hash),
    /// A certificate of another epoch.
    #[error("a certificate of {block} is of epoch {got}, the block is of epoch {expected}")]
    CertificateEpoch {
        /// The block certified.
        block: Hash,
        /// The epoch named.
        got: u64,
        /// The block's epoch.
        expected: u64,
    },
    /// A certificate that does not prove its block final.
    #[error("certificate of {block}: {error}")]
    Certificate {
        /// The block certified.
        block: Hash,
        /// Why.
        error: certificate::CertificateError,
    },
    /// An epoch's validators are no committee.
    #[error("the validators of its epoch: {0}")]
    Committee(#[from] scheme::CommitteeError),
    /// It cannot be executed.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// Nothing shows that it is final.
    #[error("no certificate of it or of the {0} blocks after it proves it final")]
    Unproved(usize),
}
