//! What a devnet's process may have open.

use super::OrchestratorError;
use crate::{open_files, topology::Plan};

/// Files and sockets of a devnet's process: a quarter more than were counted in `/proc/PID/fd` at
/// block 600, with a block time of 0, with 1 validator and 4 runners, with 4 and 4, 4 and 60,
/// 7 and 10; and the most connections that the API takes.
const BASE: u64 = 64;
const PER_VALIDATOR: u64 = 112;
const PER_LINK: u64 = 4;
const PER_RUNNER: u64 = 2;
const API: u64 = 256;

/// How many files and sockets a devnet's process may come to have open. It does not grow with the
/// chain.
pub fn needed(plan: &Plan) -> u64 {
    let (validators, runners) = (plan.validators.len() as u64, plan.runners.len() as u64);
    BASE + API
        + validators * PER_VALIDATOR
        + validators * validators.saturating_sub(1) * PER_LINK
        + runners * PER_RUNNER
}

/// Lets this process open as many files as it may, and refuses a devnet that needs more.
pub(super) fn prepare(plan: &Plan) -> Result<(), OrchestratorError> {
    let needed = needed(plan);
    match open_files::raise_limit() {
        Some(limit) if limit < needed => Err(OrchestratorError::Files { needed, limit }),
        _ => Ok(()),
    }
}
