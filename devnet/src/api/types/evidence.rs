//! What the chain holds, as bytes and as fields: what a client verifies itself.

use super::{AddressText, BytesText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which blocks `GET /v1/chain/evidence` answers with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EvidenceQuery {
    /// The first block (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How many blocks at most (default 64, at most 256). A page ends after 4 MiB of blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// A certificate of this block: the one that the chain embeds; before it embeds one, the one
    /// that the validator holds. Absent where there is neither.
    pub certificate_bytes: Option<BytesText>,
}

/// A block, a certificate of it and what was derived from that, as bytes and as fields. The fields
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
    /// A certificate of this block, as it is stored: the one that the chain embeds; before it
    /// embeds one, the one that the validator holds. Absent where there is neither.
    pub certificate_bytes: Option<BytesText>,
    /// The fields of the header.
    pub header: HeaderEvidence,
    /// The hashes of the transactions, in order.
    pub transactions: Vec<HashText>,
    /// The certificates of ancestors that the block embeds, ascending.
    pub embedded: Vec<CertificateEvidence>,
    /// The fields of `certificate_bytes`; absent where those are no certificate.
    pub certificate: Option<CertificateEvidence>,
    /// P(height) as the answering validator stores it; absent where no block embeds a certificate.
    pub presence: Option<PresenceEvidence>,
}

/// What a block's hash covers.
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
    /// The root of the state after that one.
    pub executed_state_root: HashText,
}

/// An ancestor without certificate.
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
    /// What the votes are signed under: `cowboy/`, the chain's id (8 bytes), `_FINALIZE`.
    pub namespace: BytesText,
    /// The votes, ascending by index.
    pub votes: Vec<VoteEvidence>,
}

/// One validator's vote, with what it signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VoteEvidence {
    /// The validator's place among those of the epoch in ascending order of their keys.
    pub index: u32,
    /// The validator's Ed25519 key, 32 bytes; absent where the epoch has no such validator.
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
    /// What the bits stand for: the registry's order as of the parent block.
    pub registry: Vec<AddressText>,
}
