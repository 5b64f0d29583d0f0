//! A runner: connected to its subset of the validators, executing what the chain assigns to it.
//!
//! * [`node`]: connections, jobs, results.
//! * [`Targets`]: whom to connect to and to believe, as the chain has it.
//! * [`polling`]: jobs and results over HTTP, where connections do not do.
//! * [`worker`]: what does the work.
//! * [`pledges`]: commitments, on disk before they are sent.
//! * [`control`]: pausing it, limiting it, ending it.
//! * [`heartbeat`]: its slow sign of life on the chain.
//!
//! In a process of its own:
//!
//! * [`key`]: its key file.
//! * [`folder`]: the folder by which others find the process.
//! * [`follow`]: what it asks the devnet's API.
//! * [`trust`]: whom it believes, whatever the API says.
//! * [`process`]: its life.

pub mod control;
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

pub use node::{Config, Runner, ValidatorAddress, start};
pub use pledges::Pledges;
pub use polling::Polling;
pub use targets::{Known, Targets, targets};
pub use worker::Worker;
