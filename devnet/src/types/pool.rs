//! Pools of runners.

use super::AddressText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool of runners: a job may require that its runners are members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// Its name.
    pub pool: String,
    /// The account that granted the first membership, and grants and revokes memberships.
    pub owner: AddressText,
    /// That account's name, where the devnet knows one.
    pub owner_name: Option<String>,
    /// Its members by address, including those whose membership has expired.
    pub members: Vec<PoolMember>,
}

/// A member of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolMember {
    /// The runner's name, or its address when the devnet knows no name.
    pub runner: String,
    /// Its address.
    pub address: AddressText,
    /// The last height at which it is a member; absent: a member until revoked.
    pub valid_until: Option<u64>,
    /// Whether it is a member at the newest block.
    pub live: bool,
}
