//! Snapshots of devnets.

use super::{ChainIdText, HashText, TimeText};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to call a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveRequest {
    /// Its name; the devnet's name and height where absent.
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
    /// What the devnet's transactions name.
    pub chain_id: ChainIdText,
    /// The newest block in it.
    pub height: u64,
    /// That block's hash.
    pub hash: HashText,
    /// When it was made.
    pub created_at: TimeText,
    /// The version of the program that made it.
    pub version: String,
    /// Its files.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// How long a running chain stood still for it, from the last block before to the first one
    /// after; absent where the devnet was stopped, and where no block followed in a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted_ms: Option<u64>,
}
