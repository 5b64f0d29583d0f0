//! The challenge nonces that a validator has already seen.

use std::collections::{BTreeSet, VecDeque};

/// Number of challenges remembered. Only admitted runners' challenges are, so that filling the
/// memory takes this many handshakes of registered runners.
const CAPACITY: usize = 8_192;

/// The newest challenge nonces of runners that connected to one validator (spec §2,
/// `replayed_nonce`).
#[derive(Debug, Default)]
pub struct SeenNonces {
    known: BTreeSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl SeenNonces {
    /// Whether the nonce is new. It is remembered from then on, until 8,192 newer ones are.
    pub fn insert(&mut self, nonce: [u8; 32]) -> bool {
        if !self.known.insert(nonce) {
            return false;
        }
        self.order.push_back(nonce);
        if self.order.len() > CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_new_once_and_forgotten_after_many() {
        let nonce = |i: u64| {
            let mut nonce = [0; 32];
            nonce[..8].copy_from_slice(&i.to_be_bytes());
            nonce
        };
        let mut seen = SeenNonces::default();
        assert!(seen.insert(nonce(0)));
        assert!(!seen.insert(nonce(0)));
        for i in 1..CAPACITY as u64 {
            assert!(seen.insert(nonce(i)));
        }
        assert!(!seen.insert(nonce(0)));
        assert!(seen.insert(nonce(CAPACITY as u64)));
        assert!(seen.insert(nonce(0)));
    }
}
