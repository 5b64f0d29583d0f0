//! The control API of a running devnet: HTTP on the loopback, JSON, server-sent events.
//!
//! [`types`](crate::types) defines the requests and responses, and each file of `routes` has the
//! table of its subject's routes. The process that runs a devnet creates a [`Backend`], keeps it up
//! to date as validators start and stop, and hands it to [`start`]:
//!
//! ```text
//! request -> server (limits, Host) -> extract (token, parameters) -> routes -> view -> answer
//!                                                                             |
//!                                              ledger, store, mempool of one validator
//! ```

pub mod backend;
mod connection_metrics;
pub(crate) mod convert;
pub mod error;
pub mod executed;
pub(crate) mod extract;
pub(crate) mod faults;
mod ids;
pub mod labels;
mod lane_metrics;
mod nodes;
mod openapi;
mod route;
mod routes;
pub mod server;
mod state;
pub mod steer;
mod streams;
mod view;

pub use backend::{Backend, BackendConfig, BackendError, Hooks, Running, Switch, ValidatorSlot};
pub use cowboy_host::http::{Serving, bind};
pub use error::funding;
pub use lane_metrics::LaneMetrics;
pub use server::start;

#[cfg(test)]
mod tests;
