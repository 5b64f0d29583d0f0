//! A node's access to the table of faults.

use super::{Decision, Faults, LinkEnd, PeerSeat};
use cowboy_engine::{presence::Bitmap, registry::Order};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Decides the fate of a node's messages. Each start of a node has its own tap; clones share it.
#[derive(Debug, Clone)]
pub struct Tap {
    faults: Faults,
    node: Arc<str>,
    silenced: Arc<AtomicBool>,
}

impl Tap {
    /// The tap of a node that is about to start.
    pub fn new(faults: Faults, node: &str) -> Self {
        Self { faults, node: node.into(), silenced: Arc::default() }
    }

    /// Stops everything that this start of the node sends, including messages of parts that are
    /// still ending.
    pub fn silence(&self) {
        self.silenced.store(true, Ordering::Relaxed);
    }

    /// Whether the tap has been silenced.
    pub fn is_silenced(&self) -> bool {
        self.silenced.load(Ordering::Relaxed)
    }

    /// Whether no link of the devnet has a fault.
    pub fn is_quiet(&self) -> bool {
        self.faults.is_quiet()
    }

    /// The vote of the node, a validator, about the runners of `order` when it sees `seen`.
    pub fn vote(&self, order: &Order, seen: Bitmap) -> Bitmap {
        self.faults.vote(&self.node, order, seen)
    }

    /// Records that the node is at this seat.
    pub fn sit(&self, seat: PeerSeat) {
        self.faults.seat(seat, self.node.clone());
    }

    /// Removes the node from that seat.
    pub fn leave(&self, seat: &PeerSeat) {
        self.faults.vacate(seat, &self.node);
    }

    /// The fate of a message from the node to the node at that seat.
    pub fn outgoing(&self, to: &PeerSeat) -> Decision {
        self.faults.decide(LinkEnd::Named(&self.node), LinkEnd::At(to))
    }

    /// The fate of a message to the node from the node at that seat.
    pub fn incoming(&self, from: &PeerSeat) -> Decision {
        self.faults.decide(LinkEnd::At(from), LinkEnd::Named(&self.node))
    }
}
