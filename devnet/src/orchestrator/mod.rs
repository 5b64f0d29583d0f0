//! Starting, supervising and stopping a devnet on this machine.
//!
//! [`run`] is a devnet's whole life in one process: it takes free ports, starts every validator,
//! every runner and the control API, says when all of it is ready, and ends when it is told to or
//! when a node dies before that. Everything it keeps lies in the folder that [`home`] describes.

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
