//! A validator: starting and stopping it, and its side of its runners' connections.

pub mod check;
pub mod committees;
mod evidence;
pub mod gateway;
mod job_progress;
pub mod journal;
pub mod keys;
pub mod limiter;
pub mod node;
pub mod offchain_jobs;
mod place;
pub mod rebuild;
pub mod service;
mod submission;
pub mod submitter;

pub use crate::chain::{ledger, mempool};
pub use node::{Services, ValidatorConfig, ValidatorHandle, start_validator};
