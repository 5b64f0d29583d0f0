//! Canonical presence, and the votes it derives from.

use super::{BytesText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// P(H): the runners that the finalization certificate of H shows as present.
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
    /// The number of runners in the bitmap, in registry order as of the parent block.
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
    /// The number of votes with its bit set.
    pub present_count: u32,
}

/// The votes of a finalization certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Votes {
    /// The block that the votes are on.
    pub height: u64,
    /// The number of votes in a certificate.
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
    /// The validator's index in the set.
    pub index: u32,
    /// The length of its bitmap in bits: the registry's length as the voter knew it.
    pub bit_length: u32,
    /// The bitmap, least significant bit first, padding zero.
    pub bytes: BytesText,
    /// The runners whose bit is set.
    pub present: Vec<String>,
}

/// The draws that `GET /v1/presence/compare` compares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ComparisonQuery {
    /// The first block (default: 63 before the last).
    pub from: Option<u64>,
    /// The last block (default: the head).
    pub to: Option<u64>,
    /// Only the draw of this job, in whichever block.
    pub job: Option<String>,
}

/// The runners that draws chose, and those they would have chosen with the presence filter switched
/// the other way.
///
/// Only the last draw of each job is compared. Each draw is compared in isolation: the effect of a
/// different choice on later draws is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PresenceComparison {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// The draws, in order.
    pub draws: Vec<ComparedDraw>,
    /// The number of draws compared.
    pub compared: u32,
    /// The number of draws that would have had a different result: other runners, none, or some
    /// instead of none.
    pub changed: u32,
    /// The number of draws that chose runners and would have left the job waiting.
    pub would_have_waited: u32,
    /// Whether the range has more draws than the answer lists.
    pub more: bool,
}

/// The actual and the hypothetical result of one draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComparedDraw {
    /// The block that drew.
    pub height: u64,
    /// The job.
    pub job_id: HashText,
    /// The migration phase of the draw.
    pub phase: String,
    /// Whether the presence filter was in force.
    pub filtered: bool,
    /// The block with the presence that the filter reads; absent: none was recent enough.
    pub presence_of: Option<u64>,
    /// The runners that the presence filter drops when in force.
    pub dropped: Vec<String>,
    /// The runners chosen with the presence filter; empty: the job waits.
    #[serde(rename = "with")]
    pub with_filter: Vec<String>,
    /// The runners chosen without it; empty: the job waits.
    #[serde(rename = "without")]
    pub without_filter: Vec<String>,
    /// Whether both are the same.
    pub same: bool,
}
