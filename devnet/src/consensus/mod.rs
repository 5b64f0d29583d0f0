//! Consensus: Simplex with votes that carry presence, over a chain that keeps the votes.
//!
//! * [`scheme`], [`vote`]: the contents of signatures and certificates.
//! * [`certificate`]: certificates of the chain, converted and verified.
//! * [`block`]: the chain's blocks in the library's form.
//! * [`application`]: proposes blocks and decides which blocks get a vote.
//! * [`held`], [`presence`]: a validator's knowledge while it proposes and votes.
//! * [`delivery`]: moves final blocks into the ledger.
//! * [`hurry`]: files that are synced later, while a validator alone makes blocks in a hurry.
//! * `introduction`: what validators tell each other first, so that versions do not mix.
//! * [`timing`], [`channels`], [`network`], [`start_barrier`], [`epochs`], [`engine`]: start
//!   consensus on any runtime and network.
//! * [`faulty`], [`lying`]: a network that loses and delays messages, and votes that lie, as a
//!   devnet's faults require.

pub mod application;
mod archive;
pub mod block;
pub mod certificate;
pub mod channels;
pub mod delivery;
pub mod engine;
mod epochs;
pub mod faulty;
pub mod held;
pub mod hurry;
mod introduction;
pub mod lying;
pub mod network;
pub mod presence;
pub mod scheme;
pub mod start_barrier;
pub mod timing;
pub mod vote;

use self::{archive::ArchiveError, network::NetworkError, scheme::CommitteeError};
use crate::{chain::ledger::LedgerError, storage::StorageError};
use commonware_cryptography::ed25519::PublicKey;
use cowboy_engine::primitives::Height;

/// The version of what the nodes of a chain agree on: the messages between them and to runners,
/// blocks, and the rules that execute them. 2: validators tell each other this number first.
/// 3: actors in Python. 4: powers.
pub const PROTOCOL: u32 = 4;

/// The consensus library's name for a block: the block's keccak256 hash, in the library's
/// 32-byte digest type. No SHA-256 is computed.
pub type Digest = commonware_cryptography::sha256::Digest;

/// A proposal with the votes that made it final.
pub type Finalization = commonware_consensus::simplex::types::Finalization<scheme::Scheme, Digest>;

/// The place of a proposed block in consensus: round, leader, parent.
pub type Context = commonware_consensus::simplex::types::Context<Digest, PublicKey>;

/// Why a validator ended.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Store(#[from] StorageError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    #[error("storage partition {partition}: {error}")]
    Storage { partition: String, error: String },
    /// The archive lacks a block that it counts as delivered.
    #[error("block {0} is missing from the archive")]
    Archive(Height),
    #[error(
        "block {0} is lost: the store is damaged or gone, and no other validator has the block"
    )]
    Lost(Height),
    #[error("the archive: {0}")]
    Recent(#[from] ArchiveError),
    /// A part ended that should run as long as the validator.
    #[error("{part} ended: {error}")]
    Ended { part: &'static str, error: String },
}

impl EngineError {
    /// Whether damaged consensus files may be the cause, as opposed to the network, the chain, or a
    /// block that no other validator has.
    pub const fn may_be_damage(&self) -> bool {
        match self {
            Self::Storage { .. } | Self::Archive(_) | Self::Recent(_) | Self::Ended { .. } => true,
            Self::Network(_)
            | Self::Store(_)
            | Self::Ledger(_)
            | Self::Committee(_)
            | Self::Lost(_) => false,
        }
    }
}
