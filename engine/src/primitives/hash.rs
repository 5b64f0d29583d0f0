//! keccak256 and the 32-byte values it yields.

use super::codec::transparent;
use sha3::{Digest as _, Keccak256};

/// A keccak256 digest: block, transaction and job identifiers, roots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// 32 zero bytes: the parent of the genesis block, the root of an empty map.
    pub const ZERO: Self = Self([0; 32]);

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Writes a value, for people and for debugging, as the hexadecimal form of the bytes that its
/// method `$bytes` yields.
macro_rules! hex_text {
    ($ty:ident, $bytes:ident) => {
        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "0x{}", hex::encode(self.$bytes()))
            }
        }

        impl std::fmt::Debug for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use hex_text;

hex_text!(Hash, as_bytes);
transparent!(Hash);

/// keccak256 over the concatenation of `parts`.
pub fn keccak256(parts: &[&[u8]]) -> Hash {
    let mut hasher = Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    Hash(hasher.finalize().into())
}
