//! System actors 0x01 and 0x07: the runners, their order, and their pools (spec jobs.md §1,
//! connectivity.md §4).
//!
//! Registration order is the index space of every presence bitmap; a deregistration closes the gap.
//! The order is shared between states and kept while votes may refer to it.

pub mod ability;
pub mod entitlement;
pub mod runner;

pub use ability::{Ability, AbilityError, MAX_LABEL_BYTES};
pub use entitlement::{Entitlements, PoolError};
pub use runner::{
    Capabilities, Health, JobKind, MAX_NAME_BYTES, MAX_NAMES, Order, Registry, RegistryError,
    Runner,
};

use crate::primitives::Wei;

/// Minimum stake to register a runner (jobs.md §1).
pub const MIN_STAKE: Wei = Wei::cby(10_000);
/// Maximum reputation, which a new runner starts with (jobs.md §1).
pub const MAX_REPUTATION: u32 = 100;
