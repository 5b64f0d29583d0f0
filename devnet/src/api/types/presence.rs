//! Canonical presence, and the votes it derives from.

use super::{BytesText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// P(H): which runners the finalization certificate of H shows present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Presence {
    /// H: the block that the votes are on.
    pub height: u64,
    /// How votes become presence: `committee`, `quorum` or `subset`.
    pub rule: String,
    /// The votes in the certificate.
    pub votes: u32,
    /// The votes a runner needs; absent under `subset`, where each runner has its own.
    pub threshold: Option<u32>,
    /// The runners the bitmap is about, in registry order as of the parent block.
    pub registry_len: u32,
    /// Bit i is runner i, least significant bit first, padding zero.
    pub bitmap: BytesText,
    /// The runners whose bit is set.
    pub present: Vec<String>,
    /// The runners whose bit is not set.
    pub absent: Vec<AbsentRunner>,
    /// The block that embeds the certificate: the first on the chain that does.
    pub embedded_in: u64,
}

/// A runner whose bit is not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AbsentRunner {
    /// The runner.
    pub name: String,
    /// The votes that have its bit set.
    pub present_count: u32,
}

/// The votes of a finalization certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Votes {
    /// The block that the votes are on.
    pub height: u64,
    /// The votes that a certificate has.
    pub quorum: u32,
    /// The validators in the set.
    pub validators: u32,
    /// The votes, in the set's order.
    pub votes: Vec<Vote>,
    /// The block that embeds the certificate.
    pub embedded_in: u64,
}

/// One validator's finalization vote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Vote {
    /// The validator.
    pub validator: String,
    /// The validator's place in the set.
    pub index: u32,
    /// The length of its bitmap: the registry's as the voter knew it.
    pub bit_length: u32,
    /// The bitmap, least significant bit first, padding zero.
    pub bytes: BytesText,
    /// The runners whose bit is set.
    pub present: Vec<String>,
}

/// Which draws `GET /v1/presence/compare` compares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComparisonQuery {
    /// The first block (default: 63 before the last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The last block (default: the head).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Only the draw of this job, in whichever block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// What draws chose, and what they would have chosen with the presence filter the other way round.
///
/// A job has one draw here: its last. Each is looked at by itself: what another choice would have
/// meant for the draws after it is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceComparison {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// The draws, in order.
    pub draws: Vec<ComparedDraw>,
    /// How many there are.
    pub compared: u32,
    /// How many would have chosen others, or nobody, or somebody instead of nobody.
    pub changed: u32,
    /// How many chose somebody and would have waited.
    pub would_have_waited: u32,
    /// Whether the range has more draws than are told of.
    pub more: bool,
}

/// What one draw chose, and what it would have chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComparedDraw {
    /// The block that drew.
    pub height: u64,
    /// The job.
    pub job_id: HashText,
    /// The migration phase that it was drawn in.
    pub phase: String,
    /// Whether the presence filter counted.
    pub filtered: bool,
    /// The block whose presence the filter reads; absent: none was recent enough.
    pub presence_of: Option<u64>,
    /// The runners that the presence filter drops where it counts.
    pub dropped: Vec<String>,
    /// Who is chosen with the presence filter; empty: the job waits.
    #[serde(rename = "with")]
    pub with_filter: Vec<String>,
    /// Who is chosen without it; empty: the job waits.
    #[serde(rename = "without")]
    pub without_filter: Vec<String>,
    /// Whether both are the same.
    pub same: bool,
}
