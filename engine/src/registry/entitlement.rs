//! Memberships of runners in pools. The owner of a pool, which is the account that first granted a
//! membership, grants and revokes them (spec jobs.md §1).

use crate::{
    primitives::{
        Address, Hash, Height,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
        merkle::Map,
    },
    record,
};

/// Maximum length of a pool id, in bytes.
pub const MAX_POOL_ID: usize = 64;

/// Why a grant or a revocation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    #[error("InvalidPool: a pool id has 1 to {MAX_POOL_ID} bytes, not {0}")]
    Id(usize),
    #[error("NotPoolOwner: pool `{pool}` belongs to {owner}")]
    NotOwner { pool: String, owner: Address },
    #[error("NotMember: {runner} is not in pool `{pool}`")]
    NotMember { pool: String, runner: Address },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Membership {
    valid_until: Option<Height>,
}
record!(Membership { valid_until });

/// Pools and their members.
#[derive(Clone, Debug, Default)]
pub struct Entitlements {
    owners: Map<String, Address>,
    members: Map<(String, Address), Membership>,
}

impl Entitlements {
    /// The same, with memberships that end `blocks` later.
    pub fn later(mut self, blocks: u64) -> Self {
        self.members = self.members.map_values(|Membership { valid_until }| Membership {
            valid_until: valid_until.map(|until| until.after(blocks)),
        });
        self
    }

    /// Makes `runner` a member of `pool`; the first grant makes `sender` its owner.
    pub fn grant(
        &mut self,
        sender: Address,
        pool: &str,
        runner: Address,
        valid_until: Option<Height>,
    ) -> Result<(), PoolError> {
        if pool.is_empty() || pool.len() > MAX_POOL_ID {
            return Err(PoolError::Id(pool.len()));
        }
        match self.owners.get(&pool.to_owned()) {
            Some(owner) => owned(pool, *owner, sender)?,
            None => {
                self.owners.insert(pool.to_owned(), sender);
            }
        }
        self.members.insert((pool.to_owned(), runner), Membership { valid_until });
        Ok(())
    }

    pub fn revoke(
        &mut self,
        sender: Address,
        pool: &str,
        runner: Address,
    ) -> Result<(), PoolError> {
        if let Some(owner) = self.owners.get(&pool.to_owned()) {
            owned(pool, *owner, sender)?;
        }
        match self.members.remove(&(pool.to_owned(), runner)) {
            Some(_) => Ok(()),
            None => Err(PoolError::NotMember { pool: pool.to_owned(), runner }),
        }
    }

    pub fn is_member(&self, pool: &str, runner: Address, now: Height) -> bool {
        self.members
            .get(&(pool.to_owned(), runner))
            .is_some_and(|m| m.valid_until.is_none_or(|until| now <= until))
    }

    pub fn pools(&self) -> impl Iterator<Item = (&str, &Address)> {
        self.owners.iter().map(|(pool, owner)| (pool.as_str(), owner))
    }

    /// A pool's owner; `None` if there is no such pool.
    pub fn owner(&self, pool: &str) -> Option<&Address> {
        self.owners.get(&pool.to_owned())
    }

    /// The members of a pool by address, each with the last height of its membership. Includes
    /// expired ones.
    pub fn members(&self, pool: &str) -> impl Iterator<Item = (&Address, Option<Height>)> {
        let first = (pool.to_owned(), Address::default());
        let members = self.members.range_from(&first);
        members
            .take_while(move |((of, _), _)| *of == first.0)
            .map(|((_, runner), membership)| (runner, membership.valid_until))
    }

    /// Commits to owners and members.
    pub fn root(&self) -> Hash {
        keccak256(&[&self.owners.root().0, &self.members.root().0])
    }
}

fn owned(pool: &str, owner: Address, sender: Address) -> Result<(), PoolError> {
    if owner == sender {
        return Ok(());
    }
    Err(PoolError::NotOwner { pool: pool.to_owned(), owner })
}

impl Encode for Entitlements {
    fn encode(&self, w: &mut Writer) {
        w.list(2);
        self.owners.encode(w);
        self.members.encode(w);
    }
}

impl Decode for Entitlements {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (owners, members) = Decode::decode(r)?;
        Ok(Self { owners, members })
    }
}
