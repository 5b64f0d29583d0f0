//! The control API of a running devnet: HTTP on the loopback, JSON, server-sent events.
//!
//! [`types`] defines the requests and responses, and lists the routes. The process that runs a
//! devnet creates a [`Backend`], keeps it up to date as validators start and stop, and hands it to
//! [`start`]:
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
mod events;
pub mod executed;
pub(crate) mod extract;
pub(crate) mod faults;
mod feed;
pub mod labels;
mod lane_metrics;
mod nodes;
pub(crate) mod openapi;
mod routes;
pub mod server;
pub mod steer;
mod streams;
pub mod types;
mod view;

pub use crate::http::{Serving, bind};
pub use backend::{
    Backend, BackendConfig, BackendError, Hooks, ObservedLink, Running, Switch, ValidatorSlot,
};
pub use error::funding;
pub use lane_metrics::LaneMetrics;
pub use server::start;

#[cfg(test)]
mod tests;
