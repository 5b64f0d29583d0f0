//! Starts, supervises and stops a devnet on this machine.
//!
//! [`run()`] is the whole life of a devnet in one process: it takes free ports, starts every
//! validator, every runner and the control API, reports when all are ready, and ends on request or
//! when a node dies before that. Its files are in the folder that [`home`] describes.
//!
//! | file | subject |
//! |---|---|
//! | `run` | a devnet's life, from its first file to its last |
//! | [`node`] | the life of one validator in a process of its own |
//! | `event_loop` | the task that owns the nodes: requests, clock, disk, nodes that end |
//! | `nodes` | starting and stopping validators and runners, and recovery of validators |
//! | `processes` | validators in processes of their own, which this one starts and follows |
//! | `members` | which validators this process has |
//! | `saving` | snapshots of a running devnet |
//! | `readiness`, `expiry`, `schedules` | tasks of their own: ready or not, healed faults, fires |
//! | [`genesis`], [`ports`], [`files`], [`space`], `clock` | what a devnet needs of its machine |

mod clock;
mod event_loop;
mod expiry;
pub mod files;
pub mod genesis;
mod members;
pub mod node;
mod nodes;
pub mod ports;
mod processes;
mod readiness;
mod run;
mod saving;
mod schedules;
pub mod space;

pub use crate::home;
pub use processes::end_left;
pub use run::{DevnetConfig, Notice, Ready, run};

use self::{home::HomeError, ports::PortError, space::Short};
use crate::{
    agent::StoreError, api::backend::BackendError, handout::PeersError, topology::TopologyError,
};
use cowboy_engine::primitives::Address;
use cowboy_host::files::FileError;
use cowboy_lease::server as lease;
use std::{net::SocketAddr, path::PathBuf};

/// Why a devnet does not run or has ended.
#[derive(Debug, thiserror::Error)]
pub enum OrchestratorError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Ports(#[from] PortError),
    #[error(transparent)]
    Agent(#[from] StoreError),
    #[error(transparent)]
    Api(#[from] BackendError),
    #[error("{what} cannot listen on {address}: {error}")]
    Listen { what: &'static str, address: SocketAddr, error: std::io::Error },
    #[error("the lease server: {0}")]
    Lease(#[from] lease::ServerError),
    /// Less space is free on its disk than the reserve.
    #[error(transparent)]
    Space(Short),
    #[error(
        "the devnet needs up to {needed} open files and sockets, this process is allowed {limit}"
    )]
    Files { needed: u64, limit: u64 },
    #[error("the lease server: {0}")]
    LeaseEnded(lease::PartEnded),
    #[error(transparent)]
    Document(#[from] TopologyError),
    #[error(transparent)]
    Peers(#[from] PeersError),
    #[error("{address}: a control API without TLS listens on the loopback only")]
    OpenApi { address: SocketAddr },
    #[error("the key is that of {address}, which is no validator of the genesis document")]
    NoValidator { address: Address },
    #[error("{folder}: the folder of a devnet, not of a node")]
    OfDevnet { folder: PathBuf },
    #[error("{folder}: the folder of a node of chain {got}, not of {expected}")]
    OtherChain { folder: PathBuf, got: String, expected: String },
    #[error("`hosts: process` needs a program that runs nodes")]
    NoProgram,
    #[error("{part} ended by itself: {reason}")]
    Ended { part: &'static str, reason: String },
    #[error("{node}: {error}")]
    Node { node: String, error: String },
}

impl From<FileError> for OrchestratorError {
    fn from(error: FileError) -> Self {
        Self::Home(error.into())
    }
}

#[cfg(test)]
mod tests;
