//! The API's requests to the process that runs the devnet, and to its agent.

use crate::{
    api::{error::ApiError, steer::Steer},
    topology::Name,
    types::{
        ConfigureRequest, NodePeers, OfPipelineQuery, Pipeline, PipelineAccepted, PipelineQuery,
        PipelineRequest, PipelineSummary, RetryRequest, Rollback, RunnerLoad, Snapshot,
        SpeculationEventPage, SpeculationEventQuery, SpeculationOption, SpeculationStatus,
        SpeculativeCommitment, SpeculativeProof, TaskDetail, TasksCancelled, TasksRetried,
    },
};
use futures::future::BoxFuture;
use std::path::PathBuf;
use tokio::sync::watch;

/// A request's command to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    Start,
    /// Stop cleanly: the node announces it to the others.
    Stop,
    /// End a validator or a runner of the process at once, like a crash.
    Kill,
    /// Restart a validator without its stored chain, which it fetches from the others.
    Resync,
    /// Stop a validator's own process in its tracks. One in the devnet's process has a tap.
    Freeze,
    /// Let a frozen process go on.
    Thaw,
}

/// Starts, stops or kills the node of this name. Resolves once this is done and the backend shows
/// it, or with the reason of the failure.
pub type SwitchHook =
    Box<dyn Fn(&str, Switch) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A change of the devnet's validators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// A validator of this name joins and follows the chain; `None` picks any free name.
    Join(Option<Name>),
    Leave(String),
}

/// Why a change of validators failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Failed(String),
}

/// Makes a validator join or leave; resolves with its name once this is done.
pub type MembershipHook =
    Box<dyn Fn(Membership) -> BoxFuture<'static, Result<String, MembershipError>> + Send + Sync>;

/// Why a validator runs no other program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Failed(String),
}

/// Lets a validator's process run the program at a path.
pub type UpgradeHook =
    Box<dyn Fn(&str, PathBuf) -> BoxFuture<'static, Result<(), UpgradeError>> + Send + Sync>;

/// Takes new places of validators; fails if they make no sense.
pub type PeersHook = Box<dyn Fn(&NodePeers) -> Result<(), String> + Send + Sync>;

/// Why no snapshot was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Failed(String),
}

/// Saves the devnet as a snapshot of this name, or of a descriptive one; resolves once the snapshot
/// exists and the chain continues.
pub type SaveHook =
    Box<dyn Fn(Option<Name>) -> BoxFuture<'static, Result<Snapshot, SaveError>> + Send + Sync>;

/// Steers the runner of this name; resolves with its report to its validators after that, or `None`
/// if it does not run.
pub type SteerHook = Box<
    dyn Fn(&str, Steer) -> BoxFuture<'static, Option<Result<RunnerLoad, ApiError>>> + Send + Sync,
>;

/// The API's requests to the process that runs the devnet.
pub struct Hooks {
    /// Starts, stops and kills nodes. There is at most one call at a time per validator.
    pub switch: SwitchHook,
    pub steer: SteerHook,
    pub membership: MembershipHook,
    /// Takes new places of the chain's validators, in the process of a single node.
    pub peers: PeersHook,
    /// Lets the process of the validator of this name run another program. Resolves once it does.
    pub upgrade: UpgradeHook,
    /// Tells nodes in processes of their own which faults are in force. Resolves once they carry
    /// them out.
    pub carry_out: Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>,
    pub save: SaveHook,
    /// Begins to stop the devnet, and returns at once. May be called again.
    pub shutdown: Box<dyn Fn() + Send + Sync>,
}

/// The API's interface to the agent that runs pipelines of tasks.
pub trait Speculation: Send + Sync {
    fn submit(&self, pipeline: PipelineRequest) -> Result<PipelineAccepted, ApiError>;
    /// Pipelines, newest first.
    fn pipelines(&self, query: &PipelineQuery) -> Vec<PipelineSummary>;
    fn pipeline(&self, number: u64) -> Result<Pipeline, ApiError>;
    fn task(&self, number: u64, name: &str) -> Result<TaskDetail, ApiError>;
    /// Commitments, the newest pipelines' first.
    fn commitments(&self, query: &OfPipelineQuery) -> Result<Vec<SpeculativeCommitment>, ApiError>;
    /// Proofs, the newest pipelines' first.
    fn proofs(&self, query: &OfPipelineQuery) -> Result<Vec<SpeculativeProof>, ApiError>;
    /// Rollbacks, newest first.
    fn rollbacks(&self, query: &OfPipelineQuery) -> Result<Vec<Rollback>, ApiError>;
    /// The kept events of its components, oldest first.
    fn events(&self, query: &SpeculationEventQuery) -> SpeculationEventPage;
    /// The number of the next event, which changes with every new event.
    fn told(&self) -> watch::Receiver<u64>;
    fn cancel(&self, number: u64, task: Option<&str>) -> Result<TasksCancelled, ApiError>;
    fn retry(&self, number: u64, request: &RetryRequest) -> Result<TasksRetried, ApiError>;
    fn status(&self) -> SpeculationStatus;
    fn options(&self) -> Vec<SpeculationOption>;
    /// Changes options, all or none.
    fn configure(&self, request: &ConfigureRequest) -> Result<Vec<SpeculationOption>, ApiError>;
    /// Its metrics as a part of an OpenMetrics text.
    fn metrics(&self) -> String;
}
