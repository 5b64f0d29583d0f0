//! One copy of each transaction.
//!
//! A transaction reaches a validator from its users, by gossip and in blocks, and is decoded each
//! time. Every copy would be hashed and recover the sender's key again, which costs more than the
//! rest of a transfer. Exchanging a copy for the known one shares both, and bytes that are those of
//! a known one are not decoded at all.

use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{SignedTransaction, transaction::KnownTransactions},
    fees::meter,
    primitives::Signature,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Maximum number of transactions kept; the oldest are forgotten.
const KEPT: usize = 65_536;
/// Maximum bytes of transactions kept: 64 full blocks.
const KEPT_BYTES: usize = 64 * meter::MAX_BLOCK_CELLS as usize;

/// Recent transactions by signature, which needs no hashing. A copy is exchanged only for one that
/// is equal, so validators in one process may share them. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<Mutex<KnownInner>>);

#[derive(Debug, Default)]
struct KnownInner {
    by_signature: HashMap<[u8; 65], SignedTransaction>,
    order: VecDeque<[u8; 65]>,
    bytes: usize,
}

impl KnownTransactions for Known {
    fn find(&self, signature: &Signature) -> Option<SignedTransaction> {
        self.0.lock().by_signature.get(signature.as_bytes()).cloned()
    }

    /// If different transactions have the same signature, only the first is kept.
    fn copy_of(&self, transaction: SignedTransaction) -> SignedTransaction {
        let Signature(signature) = transaction.signature;
        if let Some(known) = self.find(&transaction.signature) {
            return if known == transaction { known } else { transaction };
        }
        // Hashed here, outside the lock, and nowhere else.
        let bytes = transaction.size();
        let mut inner = self.0.lock();
        if inner.by_signature.contains_key(&signature) {
            return transaction;
        }
        inner.bytes += bytes;
        inner.by_signature.insert(signature, transaction.clone());
        inner.order.push_back(signature);
        while inner.order.len() > KEPT || inner.bytes > KEPT_BYTES {
            let oldest = inner.order.pop_front().expect("what is kept has an order");
            let forgotten = inner.by_signature.remove(&oldest).expect("what has an order is kept");
            inner.bytes -= forgotten.size();
        }
        transaction
    }
}
