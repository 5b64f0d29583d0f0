//! A validator: starting and stopping it, and its side of its runners' connections.

pub mod check;
pub mod committees;
pub mod errands;
mod evidence;
pub mod gateway;
mod handed;
pub mod journal;
pub mod keys;
pub mod limiter;
pub mod node;
mod place;
pub mod rebuild;
pub mod service;
mod stage;
pub mod submitter;

pub use crate::chain::{ledger, mempool};
pub use node::{Services, ValidatorConfig, ValidatorHandle, start_validator};
