//! A validator's secret keys.

use commonware_codec::{Copying, DecodeExt as _};
use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
use cowboy_engine::{
    chain::GenesisValidator,
    primitives::{SecretKey, keccak256},
};

/// A validator's two secret keys.
#[derive(Clone)]
pub struct ValidatorKeys {
    /// secp256k1: its account and its signatures for runners.
    pub identity: SecretKey,
    /// ed25519: votes and p2p. The seed is keccak256(the identity key's 32 bytes ‖ "/consensus").
    pub consensus: PrivateKey,
}

impl From<SecretKey> for ValidatorKeys {
    fn from(identity: SecretKey) -> Self {
        let seed = keccak256(&[&identity.to_bytes(), b"/consensus"]);
        let consensus =
            PrivateKey::decode(Copying(&seed.0)).expect("any 32 bytes are an ed25519 seed");
        Self { identity, consensus }
    }
}

impl ValidatorKeys {
    pub fn public(&self) -> GenesisValidator {
        let key = self.consensus.public_key();
        let consensus_key = key.as_ref().try_into().expect("an ed25519 public key has 32 bytes");
        GenesisValidator { pubkey: self.identity.public_key(), consensus_key }
    }
}
