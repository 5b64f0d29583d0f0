//! Transactions between validators.
//!
//! When a transaction that is new to its mempool arrives, from any source, a validator sends it
//! once to every other validator. A message carries several, as a CBOR list. A received
//! transaction is checked like a user's, and a refused one goes no further. A validator that is
//! unreachable at that moment learns the transaction from a block.

use super::{ledger::Ledger, mempool::Mempool};
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::{Clock, reschedule};
use cowboy_engine::{
    chain::transaction::{list_from_bytes, list_to_bytes},
    fees::meter,
};
use std::time::Duration;

/// Maximum bytes of transactions in a message: the longest transaction that any block holds.
const MAX_BATCH: usize = meter::MAX_BLOCK_CELLS as usize;
/// The longest message: the list's head takes at most nine bytes.
pub const MAX_MESSAGE: usize = MAX_BATCH + LIST_HEAD;
/// The longest head of an encoded list, in bytes.
pub(super) const LIST_HEAD: usize = 9;
/// Time for transactions to gather before the next message: the channel admits 128 a second.
pub(super) const GATHER: Duration = Duration::from_millis(10);

/// Transactions that are taken before others run: each may cost a signature check, so this may take
/// a millisecond.
const AT_ONCE: usize = 16;

/// Sends what is new in `mempool` and accepts what others send, until the network ends.
pub async fn run<E, S, R>(context: E, (sender, receiver): (S, R), ledger: Ledger, mempool: Mempool)
where
    E: Clock,
    S: Sender,
    R: Receiver,
{
    select! {
        () = send(&context, sender, &mempool) => {},
        () = receive(receiver, &ledger, &mempool) => {},
    }
}

async fn send<E: Clock, S: Sender>(context: &E, mut sender: S, mempool: &Mempool) {
    loop {
        let batch = mempool.outgoing(MAX_BATCH).await;
        sender.send(Recipients::All, list_to_bytes(&batch), false);
        context.sleep(GATHER).await;
    }
}

async fn receive<R: Receiver>(mut receiver: R, ledger: &Ledger, mempool: &Mempool) {
    while let Ok((peer, message)) = receiver.recv().await {
        let batch = match list_from_bytes(message.as_ref(), mempool.known()) {
            Ok(batch) => batch,
            Err(error) => {
                tracing::warn!(%peer, %error, "gossip is not a list of transactions");
                continue;
            }
        };
        for some in batch.chunks(AT_ONCE) {
            let newest = ledger.newest();
            for transaction in some {
                // Users' and validators' views of fees and nonces differ by a few blocks: a refusal
                // here is nothing unusual.
                if let Err(error) = mempool.take(transaction.clone(), &newest.state) {
                    tracing::trace!(%peer, %error, "gossiped transaction refused");
                }
            }
            reschedule().await;
        }
    }
}
