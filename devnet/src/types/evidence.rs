//! Blocks and certificates as bytes and as fields, for clients that verify the chain themselves.

use super::{AddressText, BytesText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The blocks that `GET /v1/chain/evidence` returns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EvidenceQuery {
    /// The first block (default 1).
    pub from: Option<u64>,
    /// The maximum number of blocks (default 64, at most 256). A page ends after 4 MiB of blocks.
    pub limit: Option<usize>,
}

/// Consecutive final blocks in their canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EvidencePage {
    /// The blocks, ascending.
    pub blocks: Vec<RawBlock>,
    /// The newest block of the validator that answers.
    pub head: u64,
}

/// A block in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RawBlock {
    /// Its height.
    pub height: u64,
    /// Its hash.
    pub hash: HashText,
    /// The root of the state after it, as the answering validator computed it.
    pub state_root: HashText,
    /// Header, certificates and transactions: deterministic CBOR, docs/verification.md.
    pub block_bytes: BytesText,
    /// A certificate of this block: the one embedded in the chain, or else the one that the
    /// validator holds. Absent when there is neither.
    pub certificate_bytes: Option<BytesText>,
}

/// A block, its certificate and the presence derived from it, as bytes and as fields. The fields
/// follow from the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Evidence {
    /// The block's height.
    pub height: u64,
    /// Its hash.
    pub hash: HashText,
    /// The root of the state after it, as the answering validator computed it.
    pub state_root: HashText,
    /// Header, certificates and transactions: deterministic CBOR, docs/verification.md.
    pub block_bytes: BytesText,
    /// A certificate of this block, as it is stored: the one embedded in the chain, or else the one
    /// that the validator holds. Absent when there is neither.
    pub certificate_bytes: Option<BytesText>,
    /// The fields of the header.
    pub header: HeaderEvidence,
    /// The hashes of the transactions, in order.
    pub transactions: Vec<HashText>,
    /// The certificates of ancestors that the block embeds, ascending.
    pub embedded: Vec<CertificateEvidence>,
    /// The fields of `certificate_bytes`; absent when those are not a certificate.
    pub certificate: Option<CertificateEvidence>,
    /// P(height) as the answering validator stores it; absent when no block embeds a certificate.
    pub presence: Option<PresenceEvidence>,
}

/// The fields that a block's hash covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeaderEvidence {
    /// The block's height.
    pub height: u64,
    /// The parent's hash.
    pub parent: HashText,
    /// The consensus epoch.
    pub epoch: u64,
    /// The view that it was first proposed in.
    pub view: u64,
    /// The view of the parent.
    pub parent_view: u64,
    /// The proposer's Ed25519 key, 32 bytes.
    pub proposer: BytesText,
    /// Unix time in milliseconds by the proposer's clock.
    pub timestamp_ms: u64,
    /// The subset epoch.
    pub subset_epoch: u64,
    /// Commits to the transactions.
    pub transactions_root: HashText,
    /// Commits to the embedded certificates.
    pub certificates_root: HashText,
    /// Ancestors that still lack a certificate, oldest first.
    pub open: Vec<OpenBlock>,
    /// The newest certified ancestor.
    pub executed_height: u64,
    /// The root of the state after that ancestor.
    pub executed_state_root: HashText,
}

/// An ancestor without a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenBlock {
    /// Its height.
    pub height: u64,
    /// Its hash.
    pub hash: HashText,
}

/// A certificate: the votes of a quorum that finalize a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CertificateEvidence {
    /// The block's hash.
    pub block: HashText,
    /// The consensus epoch.
    pub epoch: u64,
    /// The view that the votes were cast in.
    pub view: u64,
    /// The view of the parent.
    pub parent_view: u64,
    /// The namespace of the votes' signatures: `cowboy/`, the chain's id (8 bytes), `_FINALIZE`.
    pub namespace: BytesText,
    /// The votes, ascending by index.
    pub votes: Vec<VoteEvidence>,
}

/// One validator's vote, with what it signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VoteEvidence {
    /// The validator's index among the epoch's validators, in ascending order of their keys.
    pub index: u32,
    /// The validator's Ed25519 key, 32 bytes; absent when the epoch has no such validator.
    pub key: Option<BytesText>,
    /// The length of its bitmap in bits.
    pub bit_length: u32,
    /// The runners that it saw, least significant bit first, padding zero.
    pub bitmap: BytesText,
    /// Its Ed25519 signature, 64 bytes.
    pub signature: BytesText,
}

/// P(H) as a validator stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceEvidence {
    /// The block that embeds the certificate.
    pub embedded_in: u64,
    /// The length of the bitmap in bits.
    pub bit_length: u32,
    /// P(H), least significant bit first, padding zero.
    pub bitmap: BytesText,
    /// The runners that the bits refer to, in registry order as of the parent block.
    pub registry: Vec<AddressText>,
}
