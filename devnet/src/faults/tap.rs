//! A node's way to the table.

use super::{Decision, End, Faults, Seat};
use cowboy_engine::{presence::Bitmap, registry::Order};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// What a node's connections ask about their messages. Each start of a node has a tap of its own;
/// clones share it.
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

    /// Nothing of this start of the node is sent any more, whatever its parts still say as they
    /// end.
    pub fn silence(&self) {
        self.silenced.store(true, Ordering::Relaxed);
    }

    /// Whether it has been silenced.
    pub fn is_silenced(&self) -> bool {
        self.silenced.load(Ordering::Relaxed)
    }

    /// Whether nothing is in force on any link of the devnet.
    pub fn is_quiet(&self) -> bool {
        self.faults.is_quiet()
    }

    /// What the node, a validator, votes about the runners of `order` where it sees `seen`.
    pub fn vote(&self, order: &Order, seen: Bitmap) -> Bitmap {
        self.faults.vote(&self.node, order, seen)
    }

    /// The node sits there.
    pub fn sit(&self, seat: Seat) {
        self.faults.seat(seat, self.node.clone());
    }

    /// The node has left that seat.
    pub fn leave(&self, seat: &Seat) {
        self.faults.vacate(seat, &self.node);
    }

    /// What becomes of a message from the node to whoever sits there.
    pub fn outgoing(&self, to: &Seat) -> Decision {
        self.faults.decide(End::Named(&self.node), End::At(to))
    }

    /// What becomes of a message to the node from whoever sits there.
    pub fn incoming(&self, from: &Seat) -> Decision {
        self.faults.decide(End::At(from), End::Named(&self.node))
    }
}
