//! Tasks on the chain: requirements, reward, claim and commitment.

use super::{AddressText, AmountText, HashText, same};
use cowboy_engine::{chain::tasks, names};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Default number of tasks in a list.
pub const TASK_PAGE: usize = 100;

/// Maximum number of tasks in a list.
pub const TASK_PAGE_LIMIT: usize = 10_000;

/// The status of a task on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChainTaskStatus {
    /// No agent has claimed it.
    Open,
    /// An agent has claimed it. The claim may have expired without a new one.
    Claimed,
    /// Proved and paid.
    Completed,
    /// Its deadline passed before it was completed.
    Expired,
}

names!(ChainTaskStatus:
    Open = "open",
    Claimed = "claimed",
    Completed = "completed",
    Expired = "expired",
);

same!(ChainTaskStatus = tasks::TaskStatus: Open, Claimed, Completed, Expired);

/// Which tasks `GET /v1/tasks` lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ChainTaskQuery {
    /// Only tasks with this status.
    #[param(inline)]
    pub status: Option<ChainTaskStatus>,
    /// Only tasks of this account: a name or an address.
    pub creator: Option<String>,
    /// Only tasks that this account has claimed or completed: a name or an address.
    pub agent: Option<String>,
    /// Only tasks of this depth: uncompleted tasks on the longest path above, at creation.
    pub depth: Option<u32>,
    /// Only tasks with an open commitment, or without one.
    pub committed: Option<bool>,
    /// Only tasks whose agent has made this output commitment, whether or not it has been proved.
    pub commitment: Option<String>,
    /// Only tasks with this requirement.
    pub requires: Option<String>,
    /// Only tasks with a deadline at or before this height.
    pub deadline_by: Option<u64>,
    /// The maximum number of tasks (default 100, at most 10,000).
    pub limit: Option<usize>,
}

/// A task on the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainTask {
    /// Its identifier.
    pub task_id: HashText,
    /// The account that created it.
    pub creator: AddressText,
    /// That account's name, where the devnet knows one.
    pub creator_name: Option<String>,
    /// Its status.
    pub status: ChainTaskStatus,
    /// The reward for completing it, in wei.
    pub reward: AmountText,
    /// The last block that may complete it.
    pub deadline: u64,
    /// The requirements on an agent, in the creator's words; no chain rule reads them.
    pub requirements: Vec<String>,
    /// Tasks that must be completed before it.
    pub depends_on: Vec<HashText>,
    /// The tasks of `depends_on` whose outputs it does not read.
    pub order_only: Vec<HashText>,
    /// Tasks on the longest path above it that were not completed when it was created.
    pub depth: u32,
    /// hash_4 of the required output, big-endian; absent: any output is accepted.
    pub constraint_hash: Option<HashText>,
    /// The claim of the agent that works on it or has completed it.
    pub claim: Option<ChainTaskClaim>,
    /// That agent's commitment, until it is resolved.
    pub commitment: Option<ChainTaskCommitment>,
    /// The commitment to the proved output, big-endian; absent before it is proved.
    pub output_commitment: Option<HashText>,
    /// The minimum bond of a commitment in the next block, in wei; absent when the task has ended.
    pub least_bond: Option<AmountText>,
    /// The last block in which a commitment to it failed.
    pub failed_at: Option<u64>,
    /// The block it was created in.
    pub created_at: u64,
    /// The block it was completed in.
    pub completed_at: Option<u64>,
}

/// The claim of the agent that may complete a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainTaskClaim {
    /// The agent's account.
    pub agent: AddressText,
    /// That account's name, where the devnet knows one.
    pub agent_name: Option<String>,
    /// The last block in which the claim counts.
    pub expires_at: u64,
    /// Whether it counts in the next block, or the task is completed.
    pub counts: bool,
}

/// An agent's commitment to a task's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainTaskCommitment {
    /// The agent's account.
    pub agent: AddressText,
    /// hash_2 of the output's hash and a salt, big-endian.
    pub output_commitment: HashText,
    /// The digest of the inputs of the output.
    pub inputs: HashText,
    /// The amount locked, in wei.
    pub bond: AmountText,
    /// Tasks on the longest path above it that were not completed when the commitment was made.
    pub depth: u32,
    /// The block it was made in.
    pub created_at: u64,
    /// The last block that may complete the task with it; absent: the claim's last block.
    pub expires_at: Option<u64>,
}
