//! Consensus: Simplex with votes that carry presence, over a chain that keeps the votes.
//!
//! * [`scheme`], [`vote`]: what a validator signs, and what a certificate holds.
//! * [`certificate`]: certificates of the chain, converted and verified.
//! * [`block`]: the chain's blocks as the library wants them.
//! * [`application`]: what goes into a block, and which blocks get a vote.
//! * [`held`], [`presence`]: what a validator knows while it proposes and votes.
//! * [`delivery`]: final blocks on their way into the ledger.
//! * [`timing`], [`channels`], [`network`], [`gate`], [`epochs`], [`engine`]: starting it all, on
//!   any runtime and network.
//! * [`faulty`], [`lying`]: a network that loses and delays messages, and votes that lie, as a
//!   devnet's faults say.

pub mod application;
mod archive;
pub mod block;
pub mod certificate;
pub mod channels;
pub mod delivery;
pub mod engine;
mod epochs;
pub mod faulty;
pub mod gate;
pub mod held;
pub mod lying;
pub mod network;
pub mod presence;
pub mod scheme;
pub mod timing;
pub mod vote;

use commonware_cryptography::ed25519::PublicKey;

/// The consensus library's name for a block: the block's keccak256 hash, in the library's
/// 32-byte digest type. No SHA-256 is computed.
pub type Digest = commonware_cryptography::sha256::Digest;

/// A proposal with the votes that made it final.
pub type Finalization = commonware_consensus::simplex::types::Finalization<scheme::Scheme, Digest>;

/// Where in consensus a block is proposed: round, leader, parent.
pub type Context = commonware_consensus::simplex::types::Context<Digest, PublicKey>;
