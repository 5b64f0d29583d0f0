//! Injected faults.

use super::TimeText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A fault to inject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultRequest {
    /// What goes wrong, and where.
    #[serde(flatten)]
    pub fault: FaultSpec,
    /// The seed of losses and jitter (default: the devnet's seed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The fault heals by itself after this many milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// The fault heals by itself after this many blocks.
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
    /// No message reaches a node or leaves it.
    Pause {
        /// The node.
        at: String,
    },
    /// Nothing passes between groups of nodes.
    Partition {
        /// The groups; the remaining nodes form one more group.
        groups: Vec<Vec<String>>,
    },
    /// Messages take longer, in both directions.
    Latency {
        /// The node or link.
        at: String,
        /// The extra delay of each message, in microseconds.
        delay_us: u64,
        /// The maximum additional delay, in microseconds, drawn uniformly from 0 to this.
        #[serde(default)]
        jitter_us: u64,
    },
    /// Messages are lost, in both directions.
    Loss {
        /// The node or link.
        at: String,
        /// The number of messages lost per thousand.
        per_mille: u16,
    },
    /// A validator's votes misreport which runners it sees.
    Lie {
        /// The validator.
        at: String,
        /// The content of the false votes.
        votes: LieKind,
        /// The runner that they misreport, by name or address (default: all runners).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<String>,
    },
}

/// The content of a lying vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LieKind {
    /// Runners are present.
    Ones,
    /// Runners are absent.
    Zeros,
    /// The opposite of what the validator sees.
    Flip,
}

/// A fault that a node in a process of its own carries out, as its devnet tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultOrder {
    /// Its number.
    pub id: u64,
    /// What goes wrong, and where, by name.
    #[serde(flatten)]
    pub fault: FaultSpec,
    /// The seed of losses and jitter.
    pub seed: u64,
}

/// The faults that a node carries out, in place of those that it had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultOrders {
    /// The faults, oldest first. One that the node has by its number goes on.
    pub faults: Vec<FaultOrder>,
}

/// A fault in force, or one that was just healed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// Its number.
    pub id: u64,
    /// What goes wrong, and where, by name.
    #[serde(flatten)]
    pub fault: FaultSpec,
    /// The seed of losses and jitter.
    pub seed: u64,
    /// The newest height when it was injected.
    pub since: u64,
    /// The height at which it heals by itself.
    pub until_height: Option<u64>,
    /// The time at which it heals by itself.
    pub until: Option<TimeText>,
    /// Messages between validators and datagrams to and from runners that it has dropped so far.
    pub dropped: u64,
    /// Messages and datagrams that it has delayed so far.
    pub delayed: u64,
    /// Votes that it has falsified so far.
    pub lies: u64,
    /// The nodes outside all groups of a partition. They form one more group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}
