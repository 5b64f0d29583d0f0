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
    pub fn new(faults: Faults, node: &str) -> Self {
        Self { faults, node: node.into(), silenced: Arc::default() }
    }

    /// Stops everything that this start of the node sends, including messages of parts that are
    /// still ending.
    pub fn silence(&self) {
        self.silenced.store(true, Ordering::Relaxed);
    }

    pub fn is_silenced(&self) -> bool {
        self.silenced.load(Ordering::Relaxed)
    }

    pub fn is_quiet(&self) -> bool {
        self.faults.is_quiet()
    }

    pub fn vote(&self, order: &Order, seen: Bitmap) -> Bitmap {
        self.faults.vote(&self.node, order, seen)
    }

    pub fn sit(&self, seat: PeerSeat) {
        self.faults.seat(seat, self.node.clone());
    }

    pub fn leave(&self, seat: &PeerSeat) {
        self.faults.vacate(seat, &self.node);
    }

    pub fn outgoing(&self, to: &PeerSeat) -> Decision {
        self.faults.decide(LinkEnd::Named(&self.node), LinkEnd::At(to))
    }

    pub fn incoming(&self, from: &PeerSeat) -> Decision {
        self.faults.decide(LinkEnd::At(from), LinkEnd::Named(&self.node))
    }

    /// As [`Self::incoming`] for a node that another process runs. Nodes of this process apply the
    /// faults of what they send themselves.
    pub fn incoming_from_apart(&self, from: &PeerSeat) -> Decision {
        if self.faults.is_apart(from) { self.incoming(from) } else { Decision::Pass }
    }
}
