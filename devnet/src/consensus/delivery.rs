//! Final blocks on their way from the archive into the ledger.

use super::{
    Digest, EngineError,
    application::{Marshal, now_ms},
    archive,
    block::Block,
    certificate,
    held::Held,
    scheme::Schemes,
};
use crate::chain::{ledger::Ledger, mempool::Mempool};
use commonware_actor::Feedback;
use commonware_consensus::{
    Reporter,
    marshal::{Update, core::Processed},
    types::Height,
};
use commonware_cryptography::{Digested, Digestible as _};
use commonware_runtime::Clock;
use commonware_utils::{Acknowledgement as _, NZUsize, acknowledgement::Exact, channel::mpsc};
use cowboy_engine::primitives;
use std::num::NonZeroUsize;
use tokio::sync::watch;

/// Maximum number of final blocks delivered before the first is acknowledged.
pub(super) const MAX_UNACKNOWLEDGED: NonZeroUsize = NZUsize!(16);

/// The queue of final blocks for the ledger. Marshal delivers at most [`MAX_UNACKNOWLEDGED`] before
/// the first is acknowledged.
#[derive(Clone)]
pub(super) struct Deliveries(mpsc::Sender<(Digested<Block>, Exact)>);

/// The ledger's end of [`Deliveries`].
pub(super) type Incoming = mpsc::Receiver<(Digested<Block>, Exact)>;

impl Deliveries {
    pub(super) fn new() -> (Self, Incoming) {
        // One more than marshal delivers, so that the queue is never full.
        let (blocks, incoming) = mpsc::channel(MAX_UNACKNOWLEDGED.get() + 1);
        (Self(blocks), incoming)
    }
}

impl Reporter for Deliveries {
    type Activity = Update<Block>;

    fn report(&mut self, update: Self::Activity) -> Feedback {
        match update {
            Update::Tip(..) => Feedback::Ok,
            // A ledger that has ended accepts nothing; the validator ends with it.
            Update::Block(block, acknowledgement) => {
                match self.0.try_send((block, acknowledgement)) {
                    Ok(()) => Feedback::Ok,
                    Err(_) => Feedback::Closed,
                }
            }
        }
    }
}

pub(super) struct Delivering {
    pub(super) ledger: Ledger,
    pub(super) mempool: Mempool,
    pub(super) marshal: Marshal,
    /// The archive's acknowledged height of earlier runs.
    pub(super) processed: Option<Processed>,
    pub(super) incoming: Incoming,
    /// Learns the committee of each epoch from the last block of the one before.
    pub(super) schemes: Schemes,
    pub(super) held: Held,
    /// Publishes the stored height and that block's digest.
    pub(super) stored: watch::Sender<(u64, Digest)>,
}

impl Delivering {
    /// Stores delivered blocks until the archive ends or the ledger fails.
    pub(super) async fn run<E: Clock>(mut self, context: E) -> Result<(), EngineError> {
        // Acknowledged blocks that are not in the store: it lost them in a power failure.
        let acknowledged = self.processed.map_or(0, |processed| processed.height().get());
        let stored = self.ledger.head().height().get();
        for height in stored + 1..=acknowledged {
            let block = self.marshal.get_block(Height::new(height)).await;
            let block = block.ok_or(EngineError::Archive(primitives::Height::new(height)))?;
            self.commit(&context, block.inner())?;
        }
        while let Some((block, acknowledgement)) = self.incoming.recv().await {
            self.commit(&context, block.inner())?;
            acknowledgement.acknowledge();
        }
        Ok(())
    }

    fn commit<E: Clock>(&self, context: &E, block: &Block) -> Result<(), EngineError> {
        let proof =
            self.held.get(&block.digest()).map(|held| certificate::from_finalization(&held));
        let now = now_ms(context);
        let committed = self.ledger.commit_proved(block.chain(), now, proof.as_ref())?;
        if let Some(executed) = committed {
            self.mempool.settle(&executed.execution.state);
            self.schemes.learn(&executed.execution.state)?;
        }
        let height = block.chain().header.height;
        self.stored.send_replace((height.get(), block.digest()));
        archive::trim(&self.marshal, self.ledger.store(), height)?;
        Ok(())
    }
}
