//! Account addresses.

use super::{Hash, codec::transparent, hash::hex_text, keccak256};
use std::str::FromStr;

/// The last 20 bytes of keccak256 of an uncompressed public key without its tag
/// (spec chain.md, "Units and identities").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub [u8; 20]);

impl Address {
    pub const DISPATCHER: Self = Self::system(0x02);
    /// Where all tokens of actors in Python are stored.
    pub const TOKENS: Self = Self::system(0x20);
    pub const GOVERNANCE: Self = Self::system(0x09);

    const fn system(number: u8) -> Self {
        let mut bytes = [0; 20];
        bytes[19] = number;
        Self(bytes)
    }

    /// The address of the actor that `deployer` deploys with its transaction `nonce`
    /// (spec chain.md, "Actors").
    pub fn of_actor(deployer: &Self, nonce: u64) -> Self {
        Self::of_digest(&keccak256(&[b"actor", &deployer.0, &nonce.to_be_bytes()]))
    }

    /// The address of the actor that `deployer` deploys with a salt, from the hash of its code.
    pub fn of_salted_actor(deployer: &Self, salt: &[u8], code: &Hash) -> Self {
        let length = [u8::try_from(salt.len()).unwrap_or(u8::MAX)];
        Self::of_digest(&keccak256(&[b"salted actor", &deployer.0, &length, salt, &code.0]))
    }

    /// The last 20 bytes of a digest.
    pub fn of_digest(digest: &Hash) -> Self {
        let (_, last) = digest.0.split_last_chunk().expect("a digest has 32 bytes");
        Self(*last)
    }

    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

/// The reason why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address: expected 0x and 40 hex digits")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let mut bytes = [0; 20];
        text.strip_prefix("0x")
            .and_then(|digits| hex::decode_to_slice(digits, &mut bytes).ok())
            .map(|()| Self(bytes))
            .ok_or_else(|| AddressError(text.to_owned()))
    }
}

hex_text!(Address, as_bytes);
transparent!(Address);
