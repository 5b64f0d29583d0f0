//! Account addresses.

use super::{
    codec::{Decode, DecodeError, Encode, Reader, Writer},
    keccak256,
};
use std::{fmt, str::FromStr};

/// The last 20 bytes of keccak256 of an uncompressed public key without its tag
/// (spec chain.md, "Units and identities").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub [u8; 20]);

impl Address {
    pub const REGISTRY: Self = Self::system(0x01);
    pub const DISPATCHER: Self = Self::system(0x02);
    pub const VERIFIER: Self = Self::system(0x03);
    pub const ENTITLEMENTS: Self = Self::system(0x07);
    pub const GOVERNANCE: Self = Self::system(0x09);

    const fn system(number: u8) -> Self {
        let mut bytes = [0; 20];
        bytes[19] = number;
        Self(bytes)
    }

    /// The address of the actor that `deployer` deploys with its transaction `nonce`
    /// (spec chain.md, "Actors").
    pub fn of_actor(deployer: &Self, nonce: u64) -> Self {
        let digest = keccak256(&[b"actor", &deployer.0, &nonce.to_be_bytes()]);
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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Encode for Address {
    fn encode(&self, w: &mut Writer) {
        w.bytes(&self.0);
    }
}

impl Decode for Address {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(Self)
    }
}
