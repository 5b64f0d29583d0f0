//! The results of verifications as documents.

use crate::types::{AddressText, BytesText, ChainIdText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The trusted starting point of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrustedGenesis {
    /// The source of the genesis, such as the topology of a devnet.
    pub source: String,
    /// The chain's id.
    pub chain_id: ChainIdText,
    /// The hash of the genesis block.
    pub genesis: HashText,
}

/// The outcome of verifying a certificate and deriving its presence again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceCheck {
    /// The block that was voted on.
    pub height: u64,
    /// Whether no mismatch was found.
    pub valid: bool,
    /// Whether the certificate has a quorum of valid vote signatures.
    pub certificate_valid: bool,
    /// The bitmap that follows from the votes.
    pub recomputed: BytesText,
    /// The bitmap in the node's answer.
    pub stored: BytesText,
    /// The mismatches; empty if everything is valid.
    pub mismatches: Vec<Mismatch>,
    /// Number of blocks executed from genesis.
    pub replayed: u64,
    /// The trusted genesis.
    pub trusted: TrustedGenesis,
}

/// A mismatch between the node and the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mismatch {
    /// The broken rule.
    pub kind: MismatchKind,
    /// The validator whose vote breaks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validator: Option<String>,
    /// The runner whose bit differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The index of the bit in the bitmap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit: Option<u32>,
    /// A description of the mismatch.
    pub detail: String,
}

/// The rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MismatchKind {
    /// A vote's signature does not cover the vote's content.
    Signature,
    /// Fewer votes than a quorum, or a voter that occurs twice or is not in the set.
    Quorum,
    /// The certificate names another block.
    Block,
    /// The chain embeds another certificate of the block.
    Certificate,
    /// A bit of the stored bitmap does not follow from the votes.
    Bit,
    /// The stored bytes do not decode.
    Malformed,
    /// Another part of the node's answer differs from the chain.
    Answer,
    /// The blocks that the node serves are not a chain from genesis.
    Chain,
}

/// The outcome of filtering and drawing again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SelectionCheck {
    /// The job's id.
    pub job_id: HashText,
    /// Whether filters and draw could be repeated and agreed with the node.
    pub valid: bool,
    /// Whether the filters were repeated.
    pub filters: Filters,
    /// The block that drew.
    pub height: u64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The candidates' Merkle root, computed from the parent's state.
    pub recomputed_root: HashText,
    /// The candidates' Merkle root as stored with the job.
    pub stored_root: HashText,
    /// The committee, computed from the seed.
    pub recomputed: Vec<AddressText>,
    /// The committee as stored with the job.
    pub stored: Vec<AddressText>,
    /// Descriptions of the mismatches; empty if everything is valid.
    pub mismatches: Vec<String>,
    /// Number of blocks executed from genesis; 0 if the node no longer keeps them.
    pub replayed: u64,
    /// The trusted genesis.
    pub trusted: TrustedGenesis,
}

/// Whether a draw's filters were repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Filters {
    /// From the registry and the presence of the replayed chain.
    #[serde(rename = "redone")]
    Redone,
    /// The necessary blocks are gone: the draw was repeated from the node's records.
    #[serde(rename = "recorded only")]
    RecordedOnly,
}

/// The outcome of verifying the proof that completed a task of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskCheck {
    /// The pipeline's number.
    pub pipeline: u64,
    /// The task's name in the file.
    pub task: String,
    /// Its identifier on the chain, computed from agent, pipeline and name.
    pub task_id: HashText,
    /// Whether all checks passed.
    pub valid: bool,
    /// The transaction that completed it, according to the node.
    pub transaction: HashText,
    /// The block of that transaction, according to the node.
    pub height: u64,
    /// The agent in the topology.
    pub agent: AddressText,
    /// The kind of the chain's proofs: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// Hash of the proof's verification key in the genesis: keccak256 of its bytes, or of `mock`'s.
    pub key: HashText,
    /// The digest of the outputs that the task read, according to the chain.
    pub inputs: Option<HashText>,
    /// The hash of the output in the proof's public inputs.
    pub constraint_hash: Option<HashText>,
    /// The commitment to the output in the proof's public inputs.
    pub output_commitment: Option<HashText>,
    /// The proof in the block.
    pub proof: Option<BytesText>,
    /// The checks in the order in which they were made; impossible ones are left out.
    pub checks: Vec<TaskVerdict>,
    /// Number of blocks executed from genesis.
    pub replayed: u64,
    /// The trusted genesis.
    pub trusted: TrustedGenesis,
}

/// One check of a task's proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskVerdict {
    /// The check: `block`, `transaction`, `sender`, `outcome`, `decoding`, `task`, `agent`,
    /// `constraint`, `commitment` or `proof`; `answer` for a difference between node and chain.
    pub check: String,
    /// Whether it passed.
    pub holds: bool,
    /// A description of the result.
    pub detail: String,
}

/// The outcome of verifying a range of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlocksCheck {
    /// The first block of the requested range.
    pub from: u64,
    /// The last block of the requested range.
    pub to: u64,
    /// Whether the whole range follows from genesis.
    pub valid: bool,
    /// The height of the newest valid block.
    pub verified: u64,
    /// The hash of that block.
    pub hash: HashText,
    /// The state root after that block, as computed here.
    pub state_root: HashText,
    /// Number of transactions in the range.
    pub transactions: u64,
    /// Number of certificates embedded by blocks of the range.
    pub certificates: u64,
    /// The committees that served in the range, oldest first.
    pub committees: Vec<ServingCommittee>,
    /// Number of blocks executed from genesis.
    pub replayed: u64,
    /// Number of vote signatures verified in those blocks.
    pub signatures: u64,
    /// Descriptions of the faults; empty if everything is valid.
    pub mismatches: Vec<String>,
    /// The trusted genesis.
    pub trusted: TrustedGenesis,
}

/// The validators of one or more epochs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServingCommittee {
    /// The first block of the range that they vote on.
    pub from: u64,
    /// Their Ed25519 keys, in the order of their vote indexes.
    pub validators: Vec<BytesText>,
}
