//! Faults laid on purpose.

use super::TimeText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A fault to lay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultRequest {
    /// What goes wrong, and where.
    #[serde(flatten)]
    pub fault: FaultSpec,
    /// What losses and jitter are drawn from; the devnet's seed where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Heals by itself after so many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Heals by itself after so many blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_blocks: Option<u64>,
}

/// What goes wrong, and where. Nodes are named by name or address; `at` is a node (all its links)
/// or two nodes with two dots between them (the link between them).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FaultSpec {
    /// A node ends as in a crash.
    Kill {
        /// The node.
        at: String,
    },
    /// Nothing reaches a node, and nothing it says reaches others.
    Pause {
        /// The node.
        at: String,
    },
    /// Nothing passes between groups of nodes.
    Partition {
        /// The groups; nodes that are in none of them form a last one.
        groups: Vec<Vec<String>>,
    },
    /// Messages take longer, in both directions.
    Latency {
        /// The node or link.
        at: String,
        /// What each takes longer, in microseconds.
        delay_us: u64,
        /// What it takes longer on top of that, drawn evenly from 0 to this, in microseconds.
        #[serde(default)]
        jitter_us: u64,
    },
    /// Messages are lost, in both directions.
    Loss {
        /// The node or link.
        at: String,
        /// How many of a thousand.
        per_mille: u16,
    },
    /// A validator's votes do not say which runners it sees.
    Lie {
        /// The validator.
        at: String,
        /// What they say instead.
        votes: LieKind,
        /// The runner that they say it of, by name or address; of all where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<String>,
    },
}

/// What votes say that lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LieKind {
    /// Present.
    Ones,
    /// Absent.
    Zeros,
    /// The opposite of what the validator sees.
    Flip,
}

/// A fault in force, or one that was just healed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// Its number.
    pub id: u64,
    /// What goes wrong, and where, by name.
    #[serde(flatten)]
    pub fault: FaultSpec,
    /// What losses and jitter are drawn from.
    pub seed: u64,
    /// The newest height when it was laid.
    pub since: u64,
    /// The height at which it heals by itself.
    pub until_height: Option<u64>,
    /// The time at which it heals by itself.
    pub until: Option<TimeText>,
    /// Messages between validators and datagrams to and from runners that it has lost so far.
    pub dropped: u64,
    /// Those that it has delayed.
    pub delayed: u64,
    /// Votes that it has changed.
    pub lies: u64,
    /// The nodes outside all groups of a partition. They form one more group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}
