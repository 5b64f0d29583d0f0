//! Saving a devnet that runs.
//!
//! Its validators are stopped as for `validator stop`, its folder is copied, and those that ran are
//! started again. Runners go on: they find the validators again by themselves. So do the agent and
//! the lease server, whose files are copied as of one moment each. Transactions that waited are
//! handed to the validators that come back.

use super::supervise::Nodes;
use crate::{
    api::{backend::SaveError, types::Snapshot},
    chain::ledger::ExecutedBlock,
    home::HomeError,
    snapshot::{Draft, SnapshotError, Snapshots},
    topology::Name,
};
use ::tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    task::spawn_blocking,
    time::timeout,
};
use cowboy_engine::{chain::SignedTransaction, primitives::Hash};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long the first block afterwards is waited for; a chain that stood still before stays so.
const NEXT_BLOCK: Duration = Duration::from_secs(5);

/// A copy, and the chain that goes on.
pub(super) struct Saved {
    draft: Draft,
    stopped: Instant,
    /// The blocks of a validator that was started again.
    blocks: Option<Receiver<Arc<ExecutedBlock>>>,
}

/// Stops the validators, copies, and starts them again.
pub(super) async fn save(nodes: &mut Nodes, name: Option<Name>) -> Result<Saved, SaveError> {
    let home = nodes.config.home.clone();
    let snapshots = Snapshots::beside(&home);
    if let Some(name) = name.as_ref().filter(|name| snapshots.path(name).exists()) {
        // Before anything is stopped for nothing.
        return Err(SnapshotError::Exists(name.clone()).into());
    }
    let running: Vec<Name> = nodes.validators.keys().cloned().collect();
    let waiting = waiting(nodes);
    tracing::info!(validators = running.len(), "stopping to be saved");
    let stopped = Instant::now();
    for validator in &running {
        nodes.stop(validator).await;
    }
    let copying = spawn_blocking(move || snapshots.copy(&home, name.as_ref(), Timestamp::now()));
    let copied = match copying.await {
        Ok(copied) => copied.map_err(SaveError::from),
        Err(error) => Err(SaveError::Failed(error.to_string())),
    };
    let mut dead = Vec::new();
    for validator in &running {
        if let Err(reason) = restart(nodes, validator).await {
            nodes.died(validator, reason.clone());
            dead.push(format!(
                "validator `{validator}` does not start again: {reason}; try: cowboyctl validator \
                 start {validator}"
            ));
        }
    }
    let mut blocks = None;
    for validator in nodes.validators.values() {
        let services = validator.handle.services();
        blocks.get_or_insert_with(|| services.ledger.subscribe());
        for transaction in waiting.values() {
            // One that a block has taken meanwhile is refused, rightly.
            let _ = services.submit(transaction.clone());
        }
    }
    tracing::info!(after_ms = stopped.elapsed().as_millis(), "copied, and started again");
    let draft = copied?;
    match dead.is_empty() {
        true => Ok(Saved { draft, stopped, blocks }),
        false => Err(SaveError::Failed(dead.join("; "))),
    }
}

/// Waits for the next block, and gives the snapshot its name.
pub(super) async fn finish(saved: Result<Saved, SaveError>) -> Result<Snapshot, SaveError> {
    let Saved { draft, stopped, blocks } = saved?;
    let halted = match blocks {
        None => None,
        Some(blocks) => timeout(NEXT_BLOCK, next(blocks)).await.ok(),
    };
    let halted = halted.map(|()| stopped.elapsed());
    let finishing = spawn_blocking(move || draft.finish(halted));
    let snapshot = finishing.await.map_err(|error| SaveError::Failed(error.to_string()))??;
    tracing::info!(snapshot = snapshot.snapshot, height = snapshot.height, "saved");
    Ok(snapshot)
}

async fn restart(nodes: &mut Nodes, validator: &Name) -> Result<(), String> {
    let Some(member) = nodes.member(validator.as_str()) else { return Ok(()) };
    let member = nodes.released(&member).await?;
    nodes.start(&member)
}

/// The transactions that wait, each once.
fn waiting(nodes: &Nodes) -> BTreeMap<Hash, SignedTransaction> {
    let pools = nodes.validators.values().map(|one| one.handle.services().mempool.clone());
    let mut waiting = BTreeMap::new();
    for pool in pools {
        pool.with(|pool| waiting.extend(pool.iter().map(|one| (one.hash(), one.clone()))));
    }
    waiting
}

async fn next(mut blocks: Receiver<Arc<ExecutedBlock>>) {
    match blocks.recv().await {
        Ok(_) | Err(RecvError::Lagged(_)) => {}
        // The validator has ended; who supervises it says so.
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

impl From<SnapshotError> for SaveError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Exists(_) | SnapshotError::NoChain(_) | SnapshotError::Unnamed(_) => {
                Self::Conflict(error.to_string())
            }
            SnapshotError::Home(HomeError::InUse { .. }) => Self::Conflict(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
