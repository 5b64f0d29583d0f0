//! Log lines that a peer can cause, at most one per peer and minute.

use std::collections::BTreeMap;

/// The time between two lines about the same peer, in ms.
const PAUSE_MS: u64 = 60_000;

/// Peers that are remembered. When this many have had their line within the last minute, others get
/// none.
const PEERS: usize = 64;

/// When each peer had its last line.
#[derive(Debug)]
pub struct Rarely<K>(BTreeMap<K, u64>);

impl<K> Default for Rarely<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Rarely<K> {
    /// Whether a line about `peer` may be written at `now`, in ms of any clock. If so, it counts as
    /// written.
    pub fn may(&mut self, peer: K, now: u64) -> bool {
        self.0.retain(|_, written| now.saturating_sub(*written) < PAUSE_MS);
        if self.0.len() >= PEERS || self.0.contains_key(&peer) {
            return false;
        }
        self.0.insert(peer, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_line_a_minute_and_many_peers_have_few() {
        let mut rarely = Rarely::default();
        assert!(rarely.may(0, 5));
        assert!(!rarely.may(0, 5 + PAUSE_MS - 1));
        assert!(rarely.may(0, 5 + PAUSE_MS));
        let lines = (1..1_000).filter(|peer| rarely.may(*peer, 5 + PAUSE_MS)).count();
        assert_eq!(lines, PEERS - 1);
        assert!(rarely.may(1_000, 5 + 2 * PAUSE_MS));
    }
}
