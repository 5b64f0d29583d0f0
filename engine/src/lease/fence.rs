//! The fencing token: the key of a lease, and why a message with it is refused.

use crate::{
    names,
    primitives::{
        Hash,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
    },
};
use std::fmt;

/// Separates hashes of lease ids from all other hashes.
const DOMAIN: &[u8] = b"cowboy/lease/v1";

/// The hash of a lease's id: enough to recognize the id, useless for forging it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseKey(Hash);

impl LeaseKey {
    /// The key of the lease with this id.
    pub fn of(lease_id: &str) -> Self {
        Self(keccak256(&[DOMAIN, lease_id.as_bytes()]))
    }

    /// The bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0.0
    }

    /// Whether both are the key of one lease, in constant time.
    pub(super) fn is(&self, other: &Self) -> bool {
        let pairs = self.as_bytes().iter().zip(other.as_bytes());
        pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

/// Hides even the hash.
impl fmt::Debug for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseKey(..)")
    }
}

impl Encode for LeaseKey {
    fn encode(&self, w: &mut Writer) {
        w.bytes(self.as_bytes());
    }
}

impl Decode for LeaseKey {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(Hash(bytes)))
    }
}

/// Why a lease is dead (spec leases.md, Second round).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    /// No lease has this id.
    UnknownLease,
    /// Its time ran out.
    LeaseExpired,
    /// It was taken back.
    LeaseRevoked,
    /// Its holder has completed the job.
    LeaseCompleted,
    /// Its holder has stopped the job.
    LeaseCanceled,
}

names!(Stale:
    UnknownLease = "UNKNOWN_LEASE",
    LeaseExpired = "LEASE_EXPIRED",
    LeaseRevoked = "LEASE_REVOKED",
    LeaseCompleted = "LEASE_COMPLETED",
    LeaseCanceled = "LEASE_CANCELED",
);

/// Why a message is refused and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its lease is dead.
    #[error("stale lease: {0}")]
    Stale(Stale),
    /// The lease has not been acked yet. It stays live.
    #[error("the lease was not acked yet")]
    NotAcked,
    /// The job is to be stopped and can no longer be completed. The lease stays live.
    #[error("the job is to be stopped")]
    CancelRequested,
    /// The lease belongs to another runner.
    #[error("the lease is another runner's")]
    WrongRunner,
    /// The lease is for another job.
    #[error("the lease is for another job")]
    WrongJob,
    #[error("no cancel was requested")]
    NoCancelRequested,
    /// The job has ended.
    #[error("the job has ended")]
    Ended,
    /// No runner holds a lease of the job.
    #[error("the job has no live lease")]
    NotLeased,
    /// There is no such job or run.
    #[error("there is no such job or run")]
    NotFound,
}
