//! System actors 0x01 and 0x07: which runners there are, in which order, and which pools they
//! belong to (spec jobs.md §1, connectivity.md §4).
//!
//! Order of registration is the index space of every presence bitmap; a deregistration closes
//! the gap. The order is shared between states and kept for as long as votes may refer to it.

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

/// What a runner must lock to register (jobs.md §1).
pub const MIN_STAKE: Wei = Wei::cby(10_000);
/// The reputation of a new runner and the most there is (jobs.md §1).
pub const MAX_REPUTATION: u32 = 100;
