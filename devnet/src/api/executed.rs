//! Blocks as the validators of a devnet execute them.

use super::backend::Backend;
use crate::chain::ledger::ExecutedBlock;
use futures::{
    FutureExt as _,
    future::{BoxFuture, select_all},
};
use std::{future::pending, sync::Arc};
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// Listens to all validators that run, so that one which is paused, cut off or stopped holds up no
/// reader; or to one of them.
pub struct Executed {
    backend: Arc<Backend>,
    /// The validator, by name or address; `None`: all that run.
    node: Option<String>,
    /// Resolves when a validator has started, stopped, joined or left since `blocks` was made.
    changed: BoxFuture<'static, ()>,
    /// The ledgers themselves are not kept: a validator that stops closes its files.
    blocks: Vec<Receiver<Arc<ExecutedBlock>>>,
}

impl Executed {
    /// Hears every block that is executed from now on.
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

    /// The next block that one of them has executed. Each of them tells of the same blocks, and one
    /// that lags may leave some out. `None`: blocks were missed, or the validators have changed.
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
        // Before the validators are looked at: they may change again meanwhile.
        self.changed = self.backend.changed().boxed();
        self.subscribe();
        None
    }
}
