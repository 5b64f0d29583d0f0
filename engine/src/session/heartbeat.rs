//! Heartbeats: all that the protocol's versions differ in. TLS agrees on the version.

use crate::{
    primitives::{Height, PublicKey, SecretKey},
    wire::{HeartbeatKey, HeartbeatPing, HeartbeatPong, KeyedPing, KeyedPong, Message as _},
};

/// The authentication of heartbeats on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heartbeats {
    /// Version 1: the sender signs each.
    Signed,
    /// Version 2: each has a MAC.
    Keyed(HeartbeatKey),
}

impl Heartbeats {
    /// The version in `Hello` and `HelloAck` (CIP-11 §12.4).
    pub const fn version(&self) -> u16 {
        match self {
            Self::Signed => 1,
            Self::Keyed(_) => 2,
        }
    }

    /// The frame of a ping from the runner with this key.
    pub fn ping(&self, chain_id: u64, key: &SecretKey, height: Height, nonce: u64) -> Vec<u8> {
        match self {
            Self::Signed => HeartbeatPing::signed(chain_id, key, height, nonce).to_frame(),
            Self::Keyed(key) => KeyedPing::with_mac(chain_id, key, height, nonce).to_frame(),
        }
    }

    /// The frame of a pong from the validator with this key to `runner`.
    pub fn pong(
        &self,
        chain_id: u64,
        key: &SecretKey,
        height: Height,
        runner: &PublicKey,
    ) -> Vec<u8> {
        match self {
            Self::Signed => HeartbeatPong::signed(chain_id, key, height, runner).to_frame(),
            Self::Keyed(key) => KeyedPong::with_mac(chain_id, key, height).to_frame(),
        }
    }
}
