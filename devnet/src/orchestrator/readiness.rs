//! When a devnet is ready, and the blocks after that.

use crate::{
    api::{
        backend::{Backend, ValidatorSlot},
        executed::Executed,
    },
    chain::ledger::{ExecutedBlock, Ledger},
    topology::{Plan, Visibility},
};
use futures::future::join_all;
use std::sync::Arc;
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// If its runners are certain to be present, a devnet sees them within a few blocks. After this
/// many blocks it is ready without them, and `runner ls` shows which are missing.
const PATIENCE_BLOCKS: u64 = 12;

/// Resolves once every running validator has executed a block and, if the threshold rule makes it
/// certain, sees every runner as present.
pub(super) async fn wait(backend: &Backend, plan: &Plan) {
    let certain = plan.feasibility().visibility == Visibility::Always;
    let wanted = if certain { plan.runners.len() } else { 0 };
    join_all(backend.slots().iter().map(|slot| wait_for(slot, wanted))).await;
    if backend.running().is_empty() {
        // The event loop reports the cause.
        std::future::pending::<()>().await;
    }
}

/// Resolves when the validator is ready, or has ended and is not restarted.
async fn wait_for(slot: &ValidatorSlot, runners: usize) {
    loop {
        let changed = slot.changes();
        let Some(running) = slot.running() else { return };
        tokio::select! {
            () = follow(running.ledger, runners) => return,
            () = changed => {}
        }
    }
}

async fn follow(ledger: Ledger, runners: usize) {
    let mut blocks = ledger.subscribe();
    let from = ledger.head().height();
    loop {
        let state = ledger.head();
        let present = state.present_at(state.height()).map_or(0, <[_]>::len);
        let blocks_here = state.height().since(from);
        if blocks_here >= 1 && (present >= runners || blocks_here >= PATIENCE_BLOCKS) {
            return;
        }
        next(&mut blocks).await;
    }
}

/// Resolves at a validator's next block.
pub(super) async fn next(blocks: &mut Receiver<Arc<ExecutedBlock>>) {
    match blocks.recv().await {
        Ok(_) | Err(RecvError::Lagged(_)) => {}
        // The validator has ended; the event loop reports it.
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

/// Calls `tell` with every block as soon as any validator has executed it. Never resolves.
pub(super) async fn watch(backend: Arc<Backend>, tell: impl Fn(&ExecutedBlock)) {
    let (mut executed, mut last) = (Executed::new(backend, None), None);
    loop {
        let Some(block) = executed.next().await else { continue };
        let height = block.block.header.height;
        // Other validators report the same block.
        if last.is_none_or(|last| height > last) {
            last = Some(height);
            tell(&block);
        }
    }
}
