//! Consensus: Simplex with votes that carry presence, over a chain that keeps the votes.
//!
//! * [`scheme`], [`vote`]: the contents of signatures and certificates.
//! * [`certificate`]: certificates of the chain, converted and verified.
//! * [`block`]: the chain's blocks in the library's form.
//! * [`application`]: proposes blocks and decides which blocks get a vote.
//! * [`held`], [`presence`]: a validator's knowledge while it proposes and votes.
//! * [`delivery`]: moves final blocks into the ledger.
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
pub mod lying;
pub mod network;
pub mod presence;
pub mod scheme;
pub mod start_barrier;
pub mod timing;
pub mod vote;

use commonware_cryptography::ed25519::PublicKey;

/// The consensus library's name for a block: the block's keccak256 hash, in the library's
/// 32-byte digest type. No SHA-256 is computed.
pub type Digest = commonware_cryptography::sha256::Digest;

/// A proposal with the votes that made it final.
pub type Finalization = commonware_consensus::simplex::types::Finalization<scheme::Scheme, Digest>;

/// The place of a proposed block in consensus: round, leader, parent.
pub type Context = commonware_consensus::simplex::types::Context<Digest, PublicKey>;
