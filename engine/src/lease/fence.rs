//! The fencing token: what stands for a lease, and why a message that bears one is refused.

use crate::{
    names,
    primitives::{
        Hash,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
    },
};
use std::fmt;

/// Keeps hashes of lease ids apart from whatever else is hashed.
const DOMAIN: &[u8] = b"cowboy/lease/v1";

/// The hash of a lease's id: enough to know the id again, useless to whoever reads it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseKey(Hash);

impl LeaseKey {
    /// The key of the lease with this id.
    pub fn of(lease_id: &str) -> Self {
        Self(keccak256(&[DOMAIN, lease_id.as_bytes()]))
    }

    /// The hash's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0.0
    }

    /// Whether both are of one lease; takes as long for any two.
    pub(super) fn is(&self, other: &Self) -> bool {
        let pairs = self.as_bytes().iter().zip(other.as_bytes());
        pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

/// Not even the hash is worth showing.
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

/// Why a message changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its lease is dead.
    #[error("stale lease: {0}")]
    Stale(Stale),
    /// Its lease was not acked yet. The lease lives.
    #[error("the lease was not acked yet")]
    NotAcked,
    /// The job is to be stopped, and cannot be completed any more. The lease lives.
    #[error("the job is to be stopped")]
    CancelRequested,
    /// Its lease is another runner's.
    #[error("the lease is another runner's")]
    WrongRunner,
    /// Its lease is of another job.
    #[error("the lease is of another job")]
    WrongJob,
    /// Nobody asked for the job to be canceled.
    #[error("no cancel was requested")]
    NoCancelRequested,
    /// The job has ended.
    #[error("the job has ended")]
    Ended,
    /// Nobody holds a lease of the job.
    #[error("the job has no live lease")]
    NotLeased,
    /// There is no such job or run.
    #[error("there is no such job or run")]
    NotFound,
}
