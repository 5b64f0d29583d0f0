//! Starts, supervises and stops a devnet on this machine.
//!
//! [`run`] is the whole life of a devnet in one process: it takes free ports, starts every
//! validator, every runner and the control API, reports when all are ready, and ends on request or
//! when a node dies before that. Its files are in the folder that [`home`] describes.

mod clock;
mod expiry;
pub mod files;
pub mod genesis;
mod members;
pub mod ports;
mod readiness;
mod run;
mod runners;
mod saving;
mod schedules;
pub mod space;
mod supervise;

pub use crate::home;
pub use run::{DevnetConfig, Notice, OrchestratorError, Ready, run};

#[cfg(test)]
mod tests;
