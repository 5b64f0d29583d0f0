//! Snapshots of devnets.

use super::{ChainIdText, HashText, TimeText};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request to save a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveRequest {
    /// The snapshot's name (default: the devnet's name and height).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// A snapshot: the whole state of a devnet, as it was between two blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// The version of its layout.
    pub format: u32,
    /// Its name.
    pub snapshot: String,
    /// The devnet's name.
    pub devnet: String,
    /// The devnet's chain id.
    pub chain_id: ChainIdText,
    /// The newest block in it.
    pub height: u64,
    /// That block's hash.
    pub hash: HashText,
    /// When it was made.
    pub created_at: TimeText,
    /// The version of the program that made it.
    pub version: String,
    /// The number of its files.
    pub files: u64,
    /// The total size of its files, in bytes.
    pub bytes: u64,
    /// How long the running chain paused for the snapshot, in milliseconds from the last block
    /// before it to the first block after it; absent when the devnet was stopped, and when no block
    /// followed for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted_ms: Option<u64>,
}
