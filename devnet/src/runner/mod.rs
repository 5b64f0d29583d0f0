//! A runner: connected to its subset of the validators, executing the jobs that the chain assigns
//! to it.
//!
//! * [`node`]: starts it, and keeps its connections up.
//! * `core`: what its tasks share: the job table and the connections.
//! * `job`: one accepted job: its work, its progress, its outcome.
//! * [`Targets`]: the validators to connect to and to trust, according to the chain.
//! * [`polling`]: jobs and results over HTTP, for when connections fail.
//! * [`worker`]: execution of jobs.
//! * [`pledges`]: commitments, on disk before they are sent.
//! * [`control`]: pausing, limiting and ending it.
//! * [`heartbeat`]: its heartbeat transactions.
//!
//! In a process of its own:
//!
//! * [`key`]: its key file.
//! * [`folder`]: the folder by which others find the process.
//! * [`follow`]: its polling of the devnet's API.
//! * [`trust`]: the validators it trusts, whatever the API says.
//! * [`process`]: the process from start to end.

pub mod control;
mod core;
pub mod folder;
pub mod follow;
pub mod heartbeat;
mod job;
pub mod key;
pub mod node;
pub mod pledges;
pub mod polling;
pub mod process;
mod proof;
mod targets;
pub mod trust;
pub mod worker;

#[cfg(test)]
mod tests;

pub use node::{Runner, RunnerConfig, start};
pub use pledges::Pledges;
pub use polling::Polling;
pub use targets::{KnownValidators, Targets, ValidatorAddress, targets};
pub use worker::Worker;

use std::time::Duration;

/// The longest that one request to the devnet's API may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest pause between two looks at the chain, even on a chain without a block time.
const LOOK_AT_LEAST: Duration = Duration::from_millis(500);
