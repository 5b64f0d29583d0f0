//! What a devnet's process may have open, and in memory.

use super::OrchestratorError;
use crate::{open_files, topology::Plan};

/// Files and sockets of a devnet's process: half as many again as were counted in `/proc/PID/fd` at
/// least, with 4, 10, 25 and 50 validators (docs/performance.md), and the most connections that the
/// API takes. Each of two linked validators has one socket, and another while they connect again.
const BASE: u64 = 64;
const PER_VALIDATOR: u64 = 112;
const PER_LINK: u64 = 2;
const PER_RUNNER: u64 = 2;
const API: u64 = 256;

/// Memory of a devnet's process in MiB: a tenth more than was resident at least, of an unoptimized
/// build with 4, 10, 25 and 50 validators and as many runners (docs/performance.md).
const MIB: u64 = 128;
const MIB_PER_VALIDATOR: u64 = 16;
const MIB_PER_LINK: u64 = 1;
const MIB_PER_RUNNER: u64 = 1;

/// How many files and sockets a devnet's process may come to have open. It does not grow with the
/// chain.
pub fn needed(plan: &Plan) -> u64 {
    let (validators, runners) = (plan.validators.len() as u64, plan.runners.len() as u64);
    BASE + API
        + validators * PER_VALIDATOR
        + validators * validators.saturating_sub(1) * PER_LINK
        + runners * PER_RUNNER
}

/// How much memory the process of an idle devnet may take, in MiB; jobs, actors and long queues
/// come on top.
pub fn memory_mib(plan: &Plan) -> u64 {
    let (validators, runners) = (plan.validators.len() as u64, plan.runners.len() as u64);
    MIB + validators * MIB_PER_VALIDATOR
        + validators * validators.saturating_sub(1) * MIB_PER_LINK
        + runners * MIB_PER_RUNNER
}

/// Lets this process open as many files as it may, and refuses a devnet that needs more.
pub(super) fn prepare(plan: &Plan) -> Result<(), OrchestratorError> {
    let needed = needed(plan);
    match open_files::raise_limit() {
        Some(limit) if limit < needed => Err(OrchestratorError::Files { needed, limit }),
        _ => Ok(()),
    }
}
