//! A runner: connected to its subset of the validators, executing what the chain assigns to it.
//!
//! * [`node`]: connections, jobs, results.
//! * [`polling`]: jobs and results over HTTP, where connections do not do.
//! * [`worker`]: what does the work.
//! * [`heartbeat`]: its slow sign of life on the chain.

pub mod heartbeat;
pub mod node;
pub mod polling;
pub mod worker;

#[cfg(test)]
mod tests;

pub use node::{Config, Runner, ValidatorAddress, start, targets};
pub use polling::Polling;
pub use worker::Worker;
