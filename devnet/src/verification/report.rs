//! What a verification found, as documents.

use crate::api::types::{AddressText, BytesText, ChainIdText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a verification rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrustedGenesis {
    /// Who says so, as the topology of a devnet.
    pub source: String,
    /// The chain.
    pub chain_id: ChainIdText,
    /// The hash of the genesis block.
    pub genesis: HashText,
}

/// The outcome of verifying a certificate and deriving its presence anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceCheck {
    /// The block that the votes are on.
    pub height: u64,
    /// Whether nothing was found.
    pub valid: bool,
    /// Whether the certificate has a quorum of valid vote signatures.
    pub certificate_valid: bool,
    /// The bitmap that follows from the votes.
    pub recomputed: BytesText,
    /// The bitmap that the node says.
    pub stored: BytesText,
    /// What does not hold; empty where all does.
    pub mismatches: Vec<Mismatch>,
    /// The blocks executed from genesis for it.
    pub replayed: u64,
    /// What it rests on.
    pub trusted: TrustedGenesis,
}

/// One thing that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mismatch {
    /// Which rule is broken.
    pub kind: MismatchKind,
    /// The validator whose vote breaks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validator: Option<String>,
    /// The runner whose bit differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The bit's place in the bitmap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit: Option<u32>,
    /// The same in words.
    pub detail: String,
}

/// Which rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MismatchKind {
    /// A vote's signature does not cover the vote's content.
    Signature,
    /// Fewer votes than a quorum, or a voter twice or outside the set.
    Quorum,
    /// The certificate names another block.
    Block,
    /// The chain embeds another certificate of the block.
    Certificate,
    /// A bit of the stored bitmap does not follow from the votes.
    Bit,
    /// The stored bytes do not decode.
    Malformed,
    /// What the node answers beside that differs from what follows from the chain.
    Answer,
    /// The blocks that the node serves are no chain from genesis.
    Chain,
}

/// The outcome of filtering and drawing again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SelectionCheck {
    /// The job.
    pub job_id: HashText,
    /// Whether filters and draw were done again, and gave what the node says.
    pub valid: bool,
    /// Whether the filters were done again.
    pub filters: Filters,
    /// The block that drew.
    pub height: u64,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// The candidates' Merkle root as it follows from the parent's state.
    pub recomputed_root: HashText,
    /// The candidates' Merkle root as stored with the job.
    pub stored_root: HashText,
    /// The committee as it follows from the seed.
    pub recomputed: Vec<AddressText>,
    /// The committee as stored with the job.
    pub stored: Vec<AddressText>,
    /// What does not hold, in words; empty where all does.
    pub mismatches: Vec<String>,
    /// The blocks executed from genesis for it; 0 where they are no longer kept.
    pub replayed: u64,
    /// What it rests on.
    pub trusted: TrustedGenesis,
}

/// Whether a draw's filters were done again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Filters {
    /// From the registry and the presence that the chain leads to.
    #[serde(rename = "redone")]
    Redone,
    /// Blocks that they follow from are gone: the draw was repeated from what the node recorded.
    #[serde(rename = "recorded only")]
    RecordedOnly,
}

/// The outcome of verifying the proof that completed a task of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskCheck {
    /// The pipeline.
    pub pipeline: u64,
    /// The task's name in the file.
    pub task: String,
    /// Its identifier on the chain, as it follows from agent, pipeline and name.
    pub task_id: HashText,
    /// Whether all checks hold.
    pub valid: bool,
    /// The transaction that the node says completed it.
    pub transaction: HashText,
    /// The block that the node says has it.
    pub height: u64,
    /// The agent of the topology.
    pub agent: AddressText,
    /// The kind of the chain's proofs: `groth16`, or `mock`, which proves nothing.
    pub generator: String,
    /// The key of genesis that the proof was checked with: keccak256 of its bytes, or of `mock`'s.
    pub key: HashText,
    /// The digest of the outputs that the task read, as the chain has them.
    pub inputs: Option<HashText>,
    /// What the proof says the output hashes to.
    pub constraint_hash: Option<HashText>,
    /// The commitment that the proof says the output has.
    pub output_commitment: Option<HashText>,
    /// The proof, as the block has it.
    pub proof: Option<BytesText>,
    /// What was checked, in this order; what could not be is not there.
    pub checks: Vec<TaskVerdict>,
    /// The blocks executed from genesis for it.
    pub replayed: u64,
    /// What it rests on.
    pub trusted: TrustedGenesis,
}

/// One thing that was checked of a task's proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskVerdict {
    /// What: `block`, `transaction`, `sender`, `outcome`, `decoding`, `task`, `agent`,
    /// `constraint`, `commitment` or `proof`; `answer` where the node says something else than the
    /// chain.
    pub check: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was found, or what is wrong.
    pub detail: String,
}

/// The outcome of verifying a range of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlocksCheck {
    /// The first block asked for.
    pub from: u64,
    /// The last block asked for.
    pub to: u64,
    /// Whether all of it follows from genesis.
    pub valid: bool,
    /// The newest block that does; its hash and state root.
    pub verified: u64,
    /// That block's hash.
    pub hash: HashText,
    /// The root of the state after it, as it was computed here.
    pub state_root: HashText,
    /// The transactions in the range.
    pub transactions: u64,
    /// The certificates that blocks of the range embed.
    pub certificates: u64,
    /// The sets of validators that served in the range, oldest first.
    pub committees: Vec<ServingCommittee>,
    /// The blocks executed from genesis for it.
    pub replayed: u64,
    /// The signatures of votes that were verified in them.
    pub signatures: u64,
    /// What does not hold, in words; empty where all does.
    pub mismatches: Vec<String>,
    /// What it rests on.
    pub trusted: TrustedGenesis,
}

/// The validators of some epochs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServingCommittee {
    /// The first block of the range that they vote on.
    pub from: u64,
    /// Their Ed25519 keys, in the order in which votes number them.
    pub validators: Vec<BytesText>,
}
