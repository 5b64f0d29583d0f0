//! A runner: connected to its subset of the validators, executing what the chain assigns to it.
//!
//! * [`node`]: connections, jobs, results.
//! * [`worker`]: what does the work.
//! * [`heartbeat`]: its slow sign of life on the chain.

pub mod heartbeat;
pub mod node;
pub mod worker;

#[cfg(test)]
mod tests;

pub use node::{Config, Runner, ValidatorAddress, start, targets};
pub use worker::Worker;
