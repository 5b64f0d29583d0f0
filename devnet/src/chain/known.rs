//! One copy of each transaction.
//!
//! A transaction reaches a validator from its users, by gossip and in blocks, and is decoded each
//! time. Every copy would recover the sender's key again, which costs more than the rest of a
//! transfer. Exchanging a copy for the known one shares the recovered key.

use commonware_utils::sync::Mutex;
use cowboy_engine::{chain::SignedTransaction, fees::meter, primitives::Hash};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Maximum number of transactions kept; the oldest are forgotten.
const KEPT: usize = 65_536;
/// Maximum bytes of transactions kept: 64 full blocks.
const KEPT_BYTES: usize = 64 * meter::MAX_BLOCK_CELLS as usize;

/// Recent transactions by hash. A hash covers the whole transaction and its signature, so
/// validators in one process may share the copies. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<Mutex<KnownInner>>);

#[derive(Debug, Default)]
struct KnownInner {
    by_hash: BTreeMap<Hash, SignedTransaction>,
    order: VecDeque<Hash>,
    bytes: usize,
}

impl Known {
    /// The known copy of `transaction`, or itself if it is new.
    pub fn copy_of(&self, transaction: SignedTransaction) -> SignedTransaction {
        let hash = transaction.hash();
        let mut inner = self.0.lock();
        if let Some(known) = inner.by_hash.get(&hash) {
            return known.clone();
        }
        inner.bytes += transaction.size();
        inner.by_hash.insert(hash, transaction.clone());
        inner.order.push_back(hash);
        while inner.order.len() > KEPT || inner.bytes > KEPT_BYTES {
            let oldest = inner.order.pop_front().expect("what is kept has an order");
            let forgotten = inner.by_hash.remove(&oldest).expect("what has an order is kept");
            inner.bytes -= forgotten.size();
        }
        transaction
    }
}
