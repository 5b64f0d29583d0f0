//! The bitmap of a finalize vote: the validator's view of the runners, in the order in which the
//! vote is read.

use super::{Digest, block::Block, certificate, scheme::BitmapSource};
use crate::chain::ledger::Ledger;
use commonware_cryptography::Digestible as _;
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::State,
    presence::{Bitmap, CAPACITY},
    primitives::{Hash, Height},
    registry::Order,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Maximum number of blocks whose height is kept; votes are about blocks seen a moment ago.
const KEPT: usize = 256;

/// A validator's local view of the runners (spec connectivity.md §3).
pub trait RunnerView: Send + Sync + 'static {
    /// The runners of `order` that are present, for a vote on the block at `height`: bit i is the
    /// i-th runner. `state` is the state of that block's parent, or the nearest one that the
    /// validator has. The view decides which runners the chain allows to be connected. Must neither
    /// block nor take long.
    fn presence(&self, height: Height, state: &State, order: &Order) -> Bitmap;
}

/// Heights of blocks that this validator proposed or was asked to verify. Clones share them.
#[derive(Clone, Default)]
pub struct Sightings(Arc<Mutex<SeenRunners>>);

#[derive(Default)]
struct SeenRunners {
    heights: BTreeMap<Digest, Height>,
    order: VecDeque<Digest>,
}

impl Sightings {
    pub fn saw(&self, block: &Block) {
        let mut seen = self.0.lock();
        if seen.heights.insert(block.digest(), block.header().height).is_none() {
            seen.order.push_back(block.digest());
        }
        while seen.order.len() > KEPT {
            let oldest = seen.order.pop_front().expect("longer than KEPT");
            seen.heights.remove(&oldest);
        }
    }

    fn height(&self, block: &Digest) -> Option<Height> {
        self.0.lock().heights.get(block).copied()
    }
}

/// The view in registry order. A vote on the block at H is indexed by the registry as of H − 1. A
/// validator that has not executed that far votes with its newest registry: the chain reads missing
/// bits as 0 and ignores surplus ones.
pub struct LocalPresence {
    ledger: Ledger,
    sightings: Sightings,
    view: Arc<dyn RunnerView>,
}

impl LocalPresence {
    pub const fn new(ledger: Ledger, sightings: Sightings, view: Arc<dyn RunnerView>) -> Self {
        Self { ledger, sightings, view }
    }
}

impl BitmapSource for LocalPresence {
    fn presence(&self, block: &[u8]) -> Bitmap {
        let rooted = self.ledger.newest();
        let newest = &rooted.state;
        let seen = <[u8; 32]>::try_from(block)
            .ok()
            .and_then(|hash| self.sightings.height(&certificate::digest(Hash(hash))));
        // A block that others notarized before this validator saw it is usually the next one.
        let height = seen.unwrap_or_else(|| newest.height().next());
        let order = newest.order_for_votes_on(height).unwrap_or_else(|| newest.registry().order());
        let parent = height.previous().and_then(|parent| self.ledger.at(parent));
        let state = parent.as_ref().map_or(newest, |parent| &parent.state);
        let bitmap = self.view.presence(height, state, order);
        if bitmap.len() <= CAPACITY {
            return bitmap;
        }
        Bitmap::from_fn(CAPACITY, |runner| bitmap.get(runner))
    }
}
