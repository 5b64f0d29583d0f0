//! Limits of a devnet's process: open files and memory.

use super::OrchestratorError;
use crate::topology::Plan;
use cowboy_host::open_files;

/// Files and sockets of a devnet's process: at least 1.5 times the count in `/proc/PID/fd` with 4,
/// 10, 25 and 50 validators (docs/performance.md), plus the maximum number of API connections. Two
/// linked validators have one socket each, and a second one while they reconnect.
const BASE: u64 = 64;
const PER_VALIDATOR: u64 = 112;
const PER_LINK: u64 = 2;
const PER_RUNNER: u64 = 2;
const API: u64 = 256;

/// Memory of a devnet's process in MiB: at least 1.1 times the resident memory of an unoptimized
/// build with 4, 10, 25 and 50 validators and as many runners (docs/performance.md).
const MIB: u64 = 128;
const MIB_PER_VALIDATOR: u64 = 16;
const MIB_PER_LINK: u64 = 1;
const MIB_PER_RUNNER: u64 = 1;

/// The maximum number of files and sockets that a devnet's process may have open. It does not grow
/// with the chain.
pub fn needed(plan: &Plan) -> u64 {
    let (validators, runners) = (plan.validators.len() as u64, plan.runners.len() as u64);
    BASE + API
        + validators * PER_VALIDATOR
        + validators * validators.saturating_sub(1) * PER_LINK
        + runners * PER_RUNNER
}

/// As [`needed`], for the process of one validator of several.
pub(super) const fn needed_for_one(validators: u64, runners: u64) -> u64 {
    BASE + API + PER_VALIDATOR + validators.saturating_sub(1) * PER_LINK + runners * PER_RUNNER
}

/// Memory of an idle devnet's process, in MiB; jobs, actors and long queues need more.
pub fn memory_mib(plan: &Plan) -> u64 {
    let (validators, runners) = (plan.validators.len() as u64, plan.runners.len() as u64);
    MIB + validators * MIB_PER_VALIDATOR
        + validators * validators.saturating_sub(1) * MIB_PER_LINK
        + runners * MIB_PER_RUNNER
}

/// Raises this process's limit of open files; fails if it may not have as many as `needed`.
pub(super) fn prepare(needed: u64) -> Result<(), OrchestratorError> {
    match open_files::raise_limit() {
        Some(limit) if limit < needed => Err(OrchestratorError::Files { needed, limit }),
        _ => Ok(()),
    }
}
