//! Saves a running devnet.
//!
//! Its validators are stopped as by `validator stop`, its folder is copied, and the validators that
//! ran are started again. Runners keep running and reconnect by themselves. So do the agent and the
//! lease server, whose files are each copied as of one moment. Waiting transactions are handed to
//! the restarted validators.

use super::{nodes::Nodes, readiness::next};
use crate::{
    api::backend::SaveError,
    chain::ledger::ExecutedBlock,
    home::HomeError,
    snapshot::{Draft, SnapshotError, Snapshots},
    topology::Name,
    types::Snapshot,
};
use ::tokio::{sync::broadcast::Receiver, task::spawn_blocking, time::timeout};
use cowboy_engine::{chain::SignedTransaction, primitives::Hash};
use futures::{FutureExt as _, future::select_all};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Time limit for the first block afterwards; a chain that had halted before stays halted.
const NEXT_BLOCK: Duration = Duration::from_secs(5);

pub(super) struct Saved {
    draft: Draft,
    stopped: Instant,
    /// The blocks of each restarted validator: one of them may be cut off.
    blocks: Vec<Receiver<Arc<ExecutedBlock>>>,
}

/// Stops the validators, copies the folder, and restarts them.
pub(super) async fn save(nodes: &mut Nodes, name: Option<Name>) -> Result<Saved, SaveError> {
    let home = nodes.config.home.clone();
    let snapshots = Snapshots::next_to(&home);
    if let Some(name) = name.as_ref().filter(|name| snapshots.path(name).exists()) {
        // Checked first, before anything is stopped in vain.
        return Err(SnapshotError::Exists(name.clone()).into());
    }
    let running = nodes.running();
    let waiting = waiting(nodes);
    tracing::info!(validators = running.len(), "stopping for a snapshot");
    let stopped = Instant::now();
    for validator in &running {
        nodes.stop(validator).await;
    }
    if let Some(processes) = &nodes.processes {
        processes.gather().await;
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
    let mut blocks = Vec::new();
    for validator in nodes.validators.values() {
        let services = validator.handle.services();
        blocks.push(services.ledger.subscribe());
        for transaction in waiting.values() {
            // A transaction that a block has included since is rightly refused.
            let _ = services.submit(transaction.clone());
        }
    }
    // Processes that start again get what waits from the mempool of this one.
    blocks.extend(nodes.processes.as_ref().map(|processes| processes.ledger().subscribe()));
    tracing::info!(after_ms = stopped.elapsed().as_millis(), "copied, and started again");
    let draft = copied?;
    match dead.is_empty() {
        true => Ok(Saved { draft, stopped, blocks }),
        false => Err(SaveError::Failed(dead.join("; "))),
    }
}

/// Waits for the next block, then gives the snapshot its name.
pub(super) async fn finish(saved: Result<Saved, SaveError>) -> Result<Snapshot, SaveError> {
    let Saved { draft, stopped, blocks } = saved?;
    let halted = match blocks.is_empty() {
        true => None,
        false => {
            let first = select_all(
                blocks.into_iter().map(|mut one| async move { next(&mut one).await }.boxed()),
            );
            timeout(NEXT_BLOCK, first).await.ok()
        }
    };
    let halted = halted.map(|_| stopped.elapsed());
    let finishing = spawn_blocking(move || draft.finish(halted));
    let snapshot = finishing.await.map_err(|error| SaveError::Failed(error.to_string()))??;
    tracing::info!(snapshot = snapshot.snapshot, height = snapshot.height, "saved");
    Ok(snapshot)
}

async fn restart(nodes: &mut Nodes, validator: &Name) -> Result<(), String> {
    let Some(member) = nodes.member(validator.as_str()) else { return Ok(()) };
    nodes.start_released(&member).await
}

/// The waiting transactions of all validators, each once.
fn waiting(nodes: &Nodes) -> BTreeMap<Hash, SignedTransaction> {
    let pools = nodes.validators.values().map(|one| one.handle.services().mempool.clone());
    let mut waiting = BTreeMap::new();
    for pool in pools {
        pool.with(|pool| waiting.extend(pool.iter().map(|one| (one.hash(), one.clone()))));
    }
    waiting
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
