//! Transactions that wait for a block (spec chain.md, "Transactions").
//!
//! Each sender has its own queue, ordered by nonce; gaps may fill later. When a transaction enters,
//! its signature is checked once and it is offered to gossip once. A proposer takes from all
//! senders in turn, the highest price per unit first, so that no queue holds up another. Prices per
//! unit are compared in whole wei. At equal prices the transaction with fewer cycles goes first:
//! the cells of a small transaction weigh more, and would otherwise put it behind one that fills
//! the block.
//!
//! A queue holds [`PER_SENDER`] transactions, and the pool holds [`CAPACITY`] transactions and
//! [`CAPACITY_BYTES`]. When the pool is full, the longest queue gives up its last transaction to a
//! shorter one. A transaction leaves when its nonce is used up, when another with the same nonce
//! pays at least [`REPLACEMENT_PERCENT`] % more, or after [`MAX_AGE_BLOCKS`].

use super::known::Known;
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{
        Fees, SignedTransaction, State,
        admission::{self, AdmissionError},
        transaction::KnownTransactions as _,
    },
    fees::meter,
    primitives::{Address, Cells, Cycles, Hash, Height, Shortfall, Wei},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};
use tokio::sync::{Notify, watch};

/// Maximum number of transactions of one sender (spec chain.md).
pub const PER_SENDER: usize = 4_096;
/// Minimum increase of each price by a replacement, in percent (spec chain.md).
pub const REPLACEMENT_PERCENT: u128 = 10;
/// Maximum number of blocks that a transaction waits (spec chain.md).
pub const MAX_AGE_BLOCKS: u64 = 600;
/// Maximum number of transactions of all senders: sixteen full queues.
pub const CAPACITY: usize = 16 * PER_SENDER;
/// Maximum bytes of all transactions: 64 full blocks.
pub const CAPACITY_BYTES: usize = 64 * meter::MAX_BLOCK_CELLS as usize;
/// Accepted transactions that wait for gossip. Beyond this the oldest are dropped from gossip and
/// depend on this validator's own proposals.
const OUTBOX: usize = PER_SENDER;
/// Maximum bytes of these transactions: 16 full blocks.
const OUTBOX_BYTES: usize = 16 * meter::MAX_BLOCK_CELLS as usize;

/// Why a transaction is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MempoolError {
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    #[error("NonceTooLow: {got} where {expected} is next")]
    NonceTooLow { expected: u64, got: u64 },
    #[error("NonceTooHigh: {got} where {expected} is next and at most {limit} can wait")]
    NonceTooHigh { expected: u64, got: u64, limit: usize },
    #[error(
        "TooLarge: {cycles} cycles and {cells} cells are used or bought, a block holds {} and {}",
        meter::MAX_BLOCK_CYCLES,
        meter::MAX_BLOCK_CELLS
    )]
    TooLarge {
        /// Cycles used, or bought if the use is metered.
        cycles: Cycles,
        cells: Cells,
    },
    #[error(
        "Underpriced: {waiting} waits with nonce {nonce}; every price must exceed its by \
         {REPLACEMENT_PERCENT} %"
    )]
    Underpriced { nonce: u64, waiting: Hash },
    #[error("Full: {waiting} transactions wait {scope}")]
    Full {
        waiting: usize,
        /// The full queue: `of this sender` or `in the pool`.
        scope: &'static str,
    },
}

#[derive(Clone, Debug)]
struct Entry {
    transaction: SignedTransaction,
    hash: Hash,
    /// Its share of a block: its use, or the bought maximum if the use is metered.
    cycles: Cycles,
    cells: Cells,
    since: Height,
}

impl Entry {
    fn new(transaction: SignedTransaction, since: Height) -> Self {
        let (cycles, cells) = transaction.reserve();
        Self { hash: transaction.hash(), transaction, cycles, cells, since }
    }

    fn fees(&self) -> &Fees {
        &self.transaction.transaction.fees
    }

    /// The maximum fee plus the value; saturating, so that no balance covers an absurd one.
    fn cost(&self) -> Wei {
        let fees = self.fees();
        let cycles = fees.max_fee_per_cycle.saturating_mul(self.cycles.get().into());
        let cells = fees.max_fee_per_cell.saturating_mul(self.cells.get().into());
        let value = self.transaction.transaction.payload.value();
        cycles.saturating_add(cells).saturating_add(value)
    }

    /// The proposer's share at these basefees; `None` if the fee caps do not cover them.
    fn tip(&self, basefee_cycle: Wei, basefee_cell: Wei) -> Option<Wei> {
        let fees = self.fees();
        let cycle = fees.max_fee_per_cycle.checked_sub(basefee_cycle)?;
        let cell = fees.max_fee_per_cell.checked_sub(basefee_cell)?;
        let cycles =
            cycle.min(fees.max_priority_per_cycle).saturating_mul(self.cycles.get().into());
        let cells = cell.min(fees.max_priority_per_cell).saturating_mul(self.cells.get().into());
        Some(cycles.saturating_add(cells))
    }

    /// Tip per unit of gas, in whole wei, rounded up: the order within a round.
    fn rate(&self, tip: Wei) -> u128 {
        let units = self.cycles.get().saturating_add(self.cells.get()).max(1);
        tip.get().div_ceil(units.into())
    }
}

/// The pool, without a lock, clock or channel.
#[derive(Debug, Default)]
pub struct PendingPool {
    queues: BTreeMap<Address, BTreeMap<u64, Entry>>,
    by_hash: HashMap<Hash, (Address, u64)>,
    by_age: BTreeSet<(Height, Hash)>,
    bytes: usize,
}

impl PendingPool {
    pub fn len(&self) -> usize {
        self.by_hash.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    pub fn get(&self, hash: &Hash) -> Option<&SignedTransaction> {
        let (sender, nonce) = self.by_hash.get(hash)?;
        Some(&self.queues.get(sender)?.get(nonce)?.transaction)
    }

    /// Every waiting transaction, by sender and nonce.
    pub fn iter(&self) -> impl Iterator<Item = &SignedTransaction> {
        self.queues.values().flat_map(|queue| queue.values()).map(|entry| &entry.transaction)
    }

    pub fn waits(&self, sender: &Address, nonce: u64) -> bool {
        self.queues.get(sender).is_some_and(|queue| queue.contains_key(&nonce))
    }

    /// The first nonce, from `next` on, that no waiting transaction of `sender` uses.
    pub fn next_nonce(&self, sender: &Address, next: u64) -> u64 {
        let queue = self.queues.get(sender);
        let waiting = queue.into_iter().flat_map(|queue| queue.range(next..));
        waiting.zip(next..).take_while(|((nonce, _), at)| *nonce == at).count() as u64 + next
    }

    /// Adds a transaction, checked against the state that the next block is built on. Returns
    /// whether it is new; one that waits already is accepted again silently.
    pub fn insert(
        &mut self,
        transaction: SignedTransaction,
        state: &State,
    ) -> Result<bool, MempoolError> {
        let hash = transaction.hash();
        if self.by_hash.contains_key(&hash) {
            return Ok(false);
        }
        admission::chain(&transaction, state.chain_id())?;
        let sender = transaction.sender().map_err(AdmissionError::from)?;
        let entry = Entry::new(transaction, state.height());
        let nonce = entry.transaction.transaction.nonce;
        check(&entry, sender, state)?;
        let queue = self.queues.get(&sender);
        let waiting = queue.map_or(0, BTreeMap::len);
        match queue.and_then(|queue| queue.get(&nonce)) {
            Some(waits) if !outbids(entry.fees(), waits.fees()) => {
                return Err(MempoolError::Underpriced { nonce, waiting: waits.hash });
            }
            Some(waits) => {
                let hash = waits.hash;
                self.remove(&hash);
            }
            None if waiting >= PER_SENDER => {
                return Err(MempoolError::Full { waiting, scope: "of this sender" });
            }
            None => self.make_room(entry.transaction.size(), waiting)?,
        }
        self.bytes += entry.transaction.size();
        self.by_hash.insert(hash, (sender, nonce));
        self.by_age.insert((entry.since, hash));
        self.queues.entry(sender).or_default().insert(nonce, entry);
        Ok(true)
    }

    /// Makes room for one more transaction of a sender with `waiting`, by shortening longer queues.
    fn make_room(&mut self, size: usize, waiting: usize) -> Result<(), MempoolError> {
        while self.len() >= CAPACITY || self.bytes + size > CAPACITY_BYTES {
            let longest = self.queues.values().max_by_key(|queue| queue.len());
            let last = longest
                .filter(|queue| queue.len() > waiting + 1)
                .and_then(|queue| queue.values().next_back())
                .map(|entry| entry.hash)
                .ok_or(MempoolError::Full { waiting: self.len(), scope: "in the pool" })?;
            self.remove(&last);
        }
        Ok(())
    }

    fn remove(&mut self, hash: &Hash) -> Option<Entry> {
        let (sender, nonce) = self.by_hash.remove(hash)?;
        let queue = self.queues.get_mut(&sender)?;
        let entry = queue.remove(&nonce)?;
        if queue.is_empty() {
            self.queues.remove(&sender);
        }
        self.by_age.remove(&(entry.since, *hash));
        self.bytes -= entry.transaction.size();
        Some(entry)
    }

    /// Drops transactions that cannot be in a block after `state`, and those that waited too long.
    pub fn settle(&mut self, state: &State) {
        let horizon = state.height().get().saturating_sub(MAX_AGE_BLOCKS);
        let old = self.by_age.range(..(Height::new(horizon), Hash::ZERO));
        let mut gone: Vec<Hash> = old.map(|(_, hash)| *hash).collect();
        for (sender, queue) in &self.queues {
            let next = state.account(sender).nonce;
            gone.extend(queue.range(..next).map(|(_, entry)| entry.hash));
        }
        for hash in gone {
            self.remove(&hash);
        }
    }

    /// Transactions for a block, in order, that can be executed on `state` after the transactions
    /// in `in_flight` (senders and nonces of blocks between the state and the new block), within
    /// the limits of a block. Senders take turns. Within a turn the one that pays the proposer the
    /// most per unit comes first, then the one with fewer cycles.
    pub fn pick(
        &self,
        state: &State,
        in_flight: &BTreeMap<Address, u64>,
    ) -> Vec<SignedTransaction> {
        let mut cursors: Vec<Cursor<'_>> = self
            .queues
            .iter()
            .map(|(sender, queue)| {
                let account = state.account(sender);
                let next = in_flight
                    .get(sender)
                    .map_or(account.nonce, |nonce| account.nonce.max(nonce.saturating_add(1)));
                Cursor { sender, queue, next, balance: account.balance }
            })
            .collect();
        let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
        let mut room = Room { cycles: meter::MAX_BLOCK_CYCLES, cells: meter::MAX_BLOCK_CELLS };
        let mut picked = Vec::new();
        while !cursors.is_empty() {
            let mut round = Vec::with_capacity(cursors.len());
            for mut cursor in std::mem::take(&mut cursors) {
                if let Some((entry, tip)) = cursor.take(cycle, cell) {
                    let order = (Reverse(entry.rate(tip)), entry.cycles, *cursor.sender);
                    round.push((order, entry, cursor));
                }
            }
            round.sort_by_key(|(order, ..)| *order);
            for (_, entry, cursor) in round {
                // A sender whose transaction does not fit is done, because a later nonce cannot go
                // first.
                if room.take(entry) {
                    picked.push(entry.transaction.clone());
                    cursors.push(cursor);
                }
            }
        }
        picked
    }
}

struct Cursor<'a> {
    sender: &'a Address,
    queue: &'a BTreeMap<u64, Entry>,
    next: u64,
    balance: Wei,
}

impl<'a> Cursor<'a> {
    /// The sender's next transaction if it can be executed, with its tip.
    fn take(&mut self, basefee_cycle: Wei, basefee_cell: Wei) -> Option<(&'a Entry, Wei)> {
        let entry = self.queue.get(&self.next)?;
        let tip = entry.tip(basefee_cycle, basefee_cell)?;
        self.balance = self.balance.checked_sub(entry.cost())?;
        self.next = self.next.saturating_add(1);
        Some((entry, tip))
    }
}

struct Room {
    cycles: u64,
    cells: u64,
}

impl Room {
    fn take(&mut self, entry: &Entry) -> bool {
        let left = self
            .cycles
            .checked_sub(entry.cycles.get())
            .zip(self.cells.checked_sub(entry.cells.get()));
        let Some((cycles, cells)) = left else { return false };
        (self.cycles, self.cells) = (cycles, cells);
        true
    }
}

/// Whether every price of `new` exceeds that of `old` by [`REPLACEMENT_PERCENT`].
fn outbids(new: &Fees, old: &Fees) -> bool {
    let enough = |new: Wei, old: Wei| {
        let least = old.saturating_mul(100 + REPLACEMENT_PERCENT).get().div_ceil(100);
        new.get() >= least
    };
    enough(new.max_fee_per_cycle, old.max_fee_per_cycle)
        && enough(new.max_priority_per_cycle, old.max_priority_per_cycle)
        && enough(new.max_fee_per_cell, old.max_fee_per_cell)
        && enough(new.max_priority_per_cell, old.max_priority_per_cell)
}

fn check(entry: &Entry, payer: Address, state: &State) -> Result<(), MempoolError> {
    let account = state.account(&payer);
    let (got, expected) = (entry.transaction.transaction.nonce, account.nonce);
    if got < expected {
        return Err(MempoolError::NonceTooLow { expected, got });
    }
    if got - expected >= PER_SENDER as u64 {
        return Err(MempoolError::NonceTooHigh { expected, got, limit: PER_SENDER });
    }
    admission::limits(&entry.transaction)?;
    let (cycles, cells) = (entry.cycles, entry.cells);
    if cycles.get() > meter::MAX_BLOCK_CYCLES || cells.get() > meter::MAX_BLOCK_CELLS {
        return Err(MempoolError::TooLarge { cycles, cells });
    }
    admission::tips(&entry.transaction, state)?;
    let (need, have) = (entry.cost(), account.balance);
    if need > have {
        return Err(AdmissionError::InsufficientBalance(Shortfall { payer, need, have }).into());
    }
    Ok(())
}

/// Transactions that are not gossiped yet, the oldest first.
#[derive(Debug, Default)]
struct Outbox {
    queue: VecDeque<SignedTransaction>,
    bytes: usize,
}

impl Outbox {
    /// Adds a transaction, dropping the oldest if there is no room.
    fn push(&mut self, transaction: SignedTransaction) {
        self.bytes += transaction.size();
        self.queue.push_back(transaction);
        while self.queue.len() > OUTBOX || self.bytes > OUTBOX_BYTES {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<SignedTransaction> {
        let oldest = self.queue.pop_front()?;
        self.bytes -= oldest.size();
        Some(oldest)
    }

    /// Removes up to `bytes` of transactions, but at least one if there is one.
    fn take(&mut self, bytes: usize) -> Vec<SignedTransaction> {
        let (mut batch, mut size) = (Vec::new(), 0);
        while let Some(next) = self.queue.front() {
            size += next.size();
            if size > bytes && !batch.is_empty() {
                break;
            }
            batch.extend(self.pop());
        }
        batch
    }
}

/// A validator's pool. Clones share it.
#[derive(Clone)]
pub struct Mempool(Arc<MempoolInner>);

struct MempoolInner {
    pool: Mutex<PendingPool>,
    outbox: Mutex<Outbox>,
    /// Woken when a transaction enters the outbox.
    filled: Notify,
    /// Number of transactions that were accepted.
    accepted: watch::Sender<u64>,
    known: Known,
}

impl Mempool {
    pub fn new(known: Known) -> Self {
        Self(Arc::new(MempoolInner {
            pool: Mutex::default(),
            outbox: Mutex::default(),
            filled: Notify::new(),
            accepted: watch::Sender::default(),
            known,
        }))
    }

    /// Like [`PendingPool::insert`], and offers the transaction to gossip.
    pub fn submit(
        &self,
        transaction: SignedTransaction,
        state: &State,
    ) -> Result<bool, MempoolError> {
        self.take(self.0.known.copy_of(transaction), state)
    }

    /// [`submit`](Self::submit) for a transaction that is the known copy.
    pub(super) fn take(
        &self,
        transaction: SignedTransaction,
        state: &State,
    ) -> Result<bool, MempoolError> {
        // Recovered outside the lock, and shared by all copies.
        transaction.sender().map_err(AdmissionError::from)?;
        let is_new = self.0.pool.lock().insert(transaction.clone(), state)?;
        if is_new {
            self.0.outbox.lock().push(transaction);
            self.0.filled.notify_one();
            self.0.accepted.send_modify(|accepted| *accepted += 1);
        }
        Ok(is_new)
    }

    /// Changes with every transaction that is accepted.
    pub fn accepted(&self) -> watch::Receiver<u64> {
        self.0.accepted.subscribe()
    }

    pub fn with<T>(&self, read: impl FnOnce(&PendingPool) -> T) -> T {
        read(&self.0.pool.lock())
    }

    pub fn settle(&self, state: &State) {
        self.0.pool.lock().settle(state);
    }

    pub fn known(&self) -> &Known {
        &self.0.known
    }

    /// Waits for transactions to gossip and removes up to `bytes` of them, but at least one.
    pub(crate) async fn outgoing(&self, bytes: usize) -> Vec<SignedTransaction> {
        loop {
            let batch = self.0.outbox.lock().take(bytes);
            if !batch.is_empty() {
                return batch;
            }
            self.0.filled.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
