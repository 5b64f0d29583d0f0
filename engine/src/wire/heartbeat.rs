//! The MAC of heartbeats in version 2 of the protocol.
//!
//! Both ends get the [`HeartbeatKey`] from the TLS handshake that proved their identities. No other
//! party knows it, so a MAC proves to either end that the other made a heartbeat, for this
//! connection, at a hundredth of a signature's cost. It proves nothing to a third party, but no
//! heartbeat is shown to one.

use super::{KeyedPing, KeyedPong, Message};
use crate::primitives::{Hash, Height, PublicKey, keccak256};
use std::fmt;

/// The label under which TLS exports a [`HeartbeatKey`] (RFC 8446 §7.5).
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-cowboy-cip11-heartbeat";

/// The context of that export: the runner's key, then the validator's.
pub fn exporter_context(runner: &PublicKey, validator: &PublicKey) -> [u8; 66] {
    let mut context = [0; 66];
    context[..33].copy_from_slice(runner.as_bytes());
    context[33..].copy_from_slice(validator.as_bytes());
    context
}

/// A secret of one connection.
#[derive(Clone, PartialEq, Eq)]
pub struct HeartbeatKey(pub [u8; 32]);

impl fmt::Debug for HeartbeatKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeartbeatKey(..)")
    }
}

impl HeartbeatKey {
    /// keccak256(domain ‖ key ‖ fields in order), where domain = `cowboy-cip11/` ‖ frame name ‖
    /// `/v2` ‖ chain id. Keccak needs no HMAC around it: its output does not reveal its state.
    fn mac<M: Message>(&self, chain_id: u64, fields: &[&[u8]]) -> Hash {
        let chain_id = chain_id.to_be_bytes();
        let domain: [&[u8]; 5] = [b"cowboy-cip11/", M::NAME.as_bytes(), b"/v2", &chain_id, &self.0];
        keccak256(&[&domain, fields].concat())
    }
}

impl KeyedPing {
    fn mac_of(chain_id: u64, key: &HeartbeatKey, block_height: Height, nonce: u64) -> Hash {
        key.mac::<Self>(chain_id, &[&block_height.to_be_bytes(), &nonce.to_be_bytes()])
    }

    pub fn with_mac(chain_id: u64, key: &HeartbeatKey, block_height: Height, nonce: u64) -> Self {
        Self { block_height, nonce, mac: Self::mac_of(chain_id, key, block_height, nonce) }
    }

    /// The comparison may take any time: a peer that can send a frame on the connection knows the
    /// key.
    pub fn verify(&self, chain_id: u64, key: &HeartbeatKey) -> bool {
        self.mac == Self::mac_of(chain_id, key, self.block_height, self.nonce)
    }
}

impl KeyedPong {
    fn mac_of(chain_id: u64, key: &HeartbeatKey, block_height: Height) -> Hash {
        key.mac::<Self>(chain_id, &[&block_height.to_be_bytes()])
    }

    pub fn with_mac(chain_id: u64, key: &HeartbeatKey, block_height: Height) -> Self {
        Self { block_height, mac: Self::mac_of(chain_id, key, block_height) }
    }

    pub fn verify(&self, chain_id: u64, key: &HeartbeatKey) -> bool {
        self.mac == Self::mac_of(chain_id, key, self.block_height)
    }
}
