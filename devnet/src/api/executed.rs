//! Blocks as the validators of a devnet execute them.

use super::backend::Backend;
use crate::chain::ledger::ExecutedBlock;
use futures::{
    FutureExt as _,
    future::{BoxFuture, select_all},
};
use std::{future::pending, sync::Arc};
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// Listens to one validator, or to all that run, so that a paused, isolated or stopped validator
/// does not hold up readers.
pub struct Executed {
    backend: Arc<Backend>,
    /// The validator, by name or address; `None` means all that run.
    node: Option<String>,
    /// Resolves when a validator has started, stopped, joined or left since `blocks` was created.
    changed: BoxFuture<'static, ()>,
    /// One receiver per ledger. The ledgers themselves are not kept, so that a stopping validator
    /// can close its files.
    blocks: Vec<Receiver<Arc<ExecutedBlock>>>,
}

impl Executed {
    pub fn new(backend: Arc<Backend>, node: Option<String>) -> Self {
        let (changed, blocks) = (backend.changed().boxed(), Vec::new());
        let mut executed = Self { backend, node, changed, blocks };
        executed.subscribe();
        executed
    }

    fn subscribe(&mut self) {
        let backend = &self.backend;
        let running = match &self.node {
            Some(node) => {
                let slot = backend.names.resolve(node).and_then(|at| backend.slot_at(&at));
                slot.and_then(|slot| slot.running()).into_iter().collect()
            }
            None => backend.running(),
        };
        self.blocks = running.iter().map(|running| running.ledger.subscribe()).collect();
    }

    /// The next block that one of the validators has executed. Every validator reports the same
    /// blocks, but a lagging one may skip some. `None` means that blocks were missed, or that the
    /// validators have changed.
    pub async fn next(&mut self) -> Option<Arc<ExecutedBlock>> {
        let blocks = &mut self.blocks;
        let any = async {
            if blocks.is_empty() {
                return pending().await;
            }
            let (block, at, _) = select_all(blocks.iter_mut().map(|one| one.recv().boxed())).await;
            if matches!(block, Err(RecvError::Closed)) {
                blocks.swap_remove(at);
            }
            block.ok()
        };
        tokio::select! {
            biased;
            () = &mut self.changed => {}
            block = any => return block,
        }
        // Before the subscription, because the validators may change during it.
        self.changed = self.backend.changed().boxed();
        self.subscribe();
        None
    }
}
