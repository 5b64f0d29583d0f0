//! Pools of runners.

use super::AddressText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool: jobs may be kept to its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub pool: String,
    /// The account that made its first member, and grants and revokes.
    pub owner: AddressText,
    /// That account's name, where the devnet knows one.
    pub owner_name: Option<String>,
    /// Its members by address, those whose time is over included.
    pub members: Vec<PoolMember>,
}

/// A member of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolMember {
    /// The runner's name, or its address where the devnet knows none.
    pub runner: String,
    /// Its address.
    pub address: AddressText,
    /// The last height at which it is a member; absent: until it is revoked.
    pub valid_until: Option<u64>,
    /// Whether it is one at the newest block.
    pub live: bool,
}
