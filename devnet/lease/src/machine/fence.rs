//! The fencing token: the key of a lease, and why a message with it is refused.

use cowboy_engine::primitives::{
    Hash,
    codec::{Decode, DecodeError, Encode, Reader, Writer},
    keccak256,
};
use std::fmt;

/// Separates hashes of lease ids from all other hashes.
const DOMAIN: &[u8] = b"cowboy/lease/v1";

/// The hash of a lease's id: enough to recognize the id, useless for forging it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseKey(Hash);

impl LeaseKey {
    pub fn of(lease_id: &str) -> Self {
        Self(keccak256(&[DOMAIN, lease_id.as_bytes()]))
    }

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
