//! The chain of validators in processes of their own, which this process follows and verifies.
//!
//! Each node tells of its blocks as they become final. The first node that has a new block is asked
//! for it, with the certificate that proves it final. Nothing is believed without: what a node
//! serves is executed here by the rules of [`Replay`], and a node that serves something else is not
//! asked for blocks again until its next start.
//!
//! Transactions that this process accepts go to all nodes. A node that was away gets those that
//! still wait.

use crate::{
    chain::{
        ledger::{ExecutedBlock, Ledger, LedgerError},
        mempool::Mempool,
    },
    client::{Client, ClientError},
    storage::StorageError,
    topology::Name,
    types::{Bytes, ErrorCode, EvidenceQuery, RawBlock, TransactionRequest},
    verification::{Fault, ROOTS, Replay, ReplayedBlock},
};
use commonware_runtime::{Handle, Spawner as _, Supervisor as _, tokio as runtime};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::SignedTransaction,
    primitives::{Hash, Height},
};
use futures::future::join_all;
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::spawn_blocking,
    time::sleep,
};

/// The pause before a node is asked again after a failure, and before a full disk is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a node may take for a page of blocks before another one is asked.
const PAGE_WITHIN: Duration = Duration::from_secs(2);
/// Transactions that wait to be passed on to one node. Beyond this it gets them from the others.
const QUEUE: usize = 4_096;
/// Transactions that are submitted to a node at a time.
const TOGETHER: usize = 16;
/// Bytes of transactions that are passed on at a time.
const BATCH_BYTES: usize = 1 << 20;

/// The chain that this process follows. Clones share it.
#[derive(Clone)]
pub(super) struct Mirror(Arc<MirrorInner>);

struct MirrorInner {
    ledger: Ledger,
    mempool: Mempool,
    nodes: Mutex<BTreeMap<Name, FollowedNode>>,
    /// Wakes the follower: a node has a new block, or there is a new node.
    told: Notify,
}

struct FollowedNode {
    client: Client,
    reached: watch::Sender<Height>,
    transactions: mpsc::Sender<SignedTransaction>,
    /// It has served something that is not the chain.
    lied: bool,
    /// It is stopped in its tracks and answers nothing.
    frozen: bool,
    /// Listen to its blocks, and pass transactions on to it.
    tasks: [Handle<()>; 2],
}

impl Drop for FollowedNode {
    fn drop(&mut self) {
        self.tasks.iter().for_each(Handle::abort);
    }
}

/// Why blocks of a node were not taken.
#[derive(Debug, thiserror::Error)]
enum MirrorError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Lie(#[from] Fault),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("{0}")]
    Broken(String),
}

impl Mirror {
    pub(super) fn new(ledger: Ledger, mempool: Mempool) -> Self {
        let (nodes, told) = (Mutex::default(), Notify::new());
        Self(Arc::new(MirrorInner { ledger, mempool, nodes, told }))
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    pub(super) fn mempool(&self) -> &Mempool {
        &self.0.mempool
    }

    /// Follows a node that is at `height`, and returns the heights that it reaches.
    pub(super) fn add(
        &self,
        context: &runtime::Context,
        name: &Name,
        client: Client,
        height: Height,
    ) -> watch::Receiver<Height> {
        let (reached, heights) = watch::channel(height);
        let (transactions, queue) = mpsc::channel(QUEUE);
        self.0.mempool.with(|pool| {
            for waiting in pool.iter() {
                // Full: the other nodes have the rest.
                let _ = transactions.try_send(waiting.clone());
            }
        });
        let listening = {
            let (mirror, client, reached) = (self.clone(), client.clone(), reached.clone());
            context.child("listen").spawn(move |_| listen(mirror, client, reached))
        };
        let passing = {
            let client = client.clone();
            let mempool = self.0.mempool.clone();
            context.child("pass").spawn(move |_| pass_on(client, mempool, queue))
        };
        let tasks = [listening, passing];
        let (lied, frozen) = (false, false);
        let node = FollowedNode { client, reached, transactions, lied, frozen, tasks };
        self.0.nodes.lock().insert(name.clone(), node);
        self.0.told.notify_one();
        heights
    }

    pub(super) fn remove(&self, name: &Name) {
        self.0.nodes.lock().remove(name);
    }

    /// A node that says that it has a block above ours: one that was not tried in vain, if there is
    /// one, since a node may say anything.
    fn ahead(&self, tried: &BTreeSet<Name>) -> Option<(Name, Client)> {
        let ours = self.0.ledger.head().height();
        let nodes = self.0.nodes.lock();
        let asked = nodes.iter().filter(|(_, node)| !node.lied && !node.frozen);
        let above = asked.filter(|(_, node)| *node.reached.borrow() > ours);
        let (name, node) = above.max_by_key(|(name, node)| {
            let untried = !tried.contains(*name);
            (untried, *node.reached.borrow())
        })?;
        Some((name.clone(), node.client.clone()))
    }

    fn distrust(&self, name: &Name) {
        if let Some(node) = self.0.nodes.lock().get_mut(name) {
            node.lied = true;
        }
    }

    /// A frozen node is not asked.
    pub(super) fn freeze(&self, name: &Name, frozen: bool) {
        if let Some(node) = self.0.nodes.lock().get_mut(name) {
            node.frozen = frozen;
        }
        self.0.told.notify_one();
    }

    /// A replay that goes on after the newest stored block.
    fn replay(&self) -> Result<Replay, StorageError> {
        let ledger = &self.0.ledger;
        let (state, store) = (ledger.head(), ledger.store());
        let head = state.height();
        let first = head.get().saturating_sub(ROOTS as u64 - 1);
        let mut roots = Vec::new();
        for height in (first..=head.get()).map(Height::new) {
            let root = match ledger.at(height) {
                Some(rooted) => Some(rooted.root),
                None => store.executed(height)?.map(|(root, _)| root),
            };
            roots.extend(root.map(|root: Hash| (height, root)));
        }
        Ok(Replay::after(state, roots))
    }

    /// Takes blocks from nodes as they come. Never resolves.
    pub(super) async fn follow(self) {
        let (mut replay, mut tried) = (None, BTreeSet::new());
        loop {
            let Some((name, client)) = self.ahead(&tried) else {
                self.0.told.notified().await;
                continue;
            };
            let before = match replay.take() {
                Some(replay) => Ok(replay),
                None => self.replay().map_err(|error| MirrorError::Ledger(error.into())),
            };
            let taken = match before {
                Ok(replay) => self.take(&client, replay).await,
                Err(error) => Err(error),
            };
            match taken {
                Ok(after) => {
                    replay = Some(after);
                    tried.clear();
                }
                Err(MirrorError::Lie(fault)) => {
                    tracing::error!(validator = %name, %fault, "serves another chain: not believed");
                    self.distrust(&name);
                }
                // It may have ended, or not have what it says. Or the disk is full.
                Err(error) => {
                    tracing::warn!(validator = %name, %error, "no blocks from it; asked again");
                    let again = !tried.insert(name);
                    if again || matches!(error, MirrorError::Ledger(_)) {
                        tried.clear();
                        sleep(AGAIN).await;
                    }
                }
            }
        }
    }

    /// Takes a page of blocks from a node.
    async fn take(&self, client: &Client, replay: Replay) -> Result<Replay, MirrorError> {
        let query = EvidenceQuery { from: Some(replay.wants().get()), limit: None };
        let client = client.clone().with_timeout(PAGE_WITHIN);
        let blocks = client.evidence_page(&query).await?.blocks;
        if blocks.is_empty() {
            return Err(MirrorError::Broken("it has told of a block that it does not have".into()));
        }
        let mirror = self.clone();
        let executing = spawn_blocking(move || mirror.execute(replay, &blocks));
        executing.await.map_err(|error| MirrorError::Broken(error.to_string()))?
    }

    fn execute(&self, mut replay: Replay, blocks: &[RawBlock]) -> Result<Replay, MirrorError> {
        let ledger = &self.0.ledger;
        // Blocks that a full disk has not taken.
        ledger.store_executed()?;
        for raw in blocks {
            for ReplayedBlock { block, hash, root, execution, certificate } in replay.push(raw)? {
                let executed_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
                let block = Arc::new(block);
                let executed = ExecutedBlock { block, hash, root, execution, executed_ms };
                ledger.adopt(executed, certificate.as_ref())?;
                self.0.mempool.settle(&ledger.head());
            }
        }
        Ok(replay)
    }

    /// Passes accepted transactions on to all nodes. Never resolves.
    pub(super) async fn pass_on(self) {
        loop {
            let batch = self.0.mempool.outgoing(BATCH_BYTES).await;
            let nodes = self.0.nodes.lock();
            for transaction in &batch {
                for node in nodes.values() {
                    // Full: it gets it from the other nodes.
                    let _ = node.transactions.try_send(transaction.clone());
                }
            }
        }
    }
}

/// Notes a node's blocks as it tells of them. Never resolves.
async fn listen(mirror: Mirror, client: Client, reached: watch::Sender<Height>) {
    loop {
        if let Ok(head) = client.head().await {
            reached.send_replace(Height::new(head.height));
            mirror.0.told.notify_one();
        }
        let mut blocks = client.follow(None);
        while let Ok(block) = blocks.next().await {
            reached.send_replace(Height::new(block.height));
            mirror.0.told.notify_one();
        }
        sleep(AGAIN).await;
    }
}

/// Submits the transactions of a queue to a node. One that the node cannot take now is submitted
/// again as long as it waits. Never resolves while the mirror has the node.
async fn pass_on(client: Client, mempool: Mempool, mut queue: mpsc::Receiver<SignedTransaction>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, TOGETHER).await > 0 {
        let submit = async |transaction: SignedTransaction| {
            let hash = transaction.hash();
            let request = TransactionRequest { transaction: Bytes(transaction.to_bytes()).into() };
            while let Err(error) = client.submit(&request).await {
                tracing::debug!(%error, "a node does not take a transaction");
                let refused = error.code().is_some_and(|code| code != ErrorCode::Unavailable);
                // Refused: a block has it already.
                if refused || mempool.with(|pool| pool.get(&hash).is_none()) {
                    break;
                }
                sleep(AGAIN).await;
            }
        };
        join_all(batch.drain(..).map(submit)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chain::known::Known, sample, storage::ValidatorStore};
    use commonware_runtime::Runner as _;

    #[test]
    fn a_node_that_says_much_and_serves_nothing_holds_up_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let genesis = sample::genesis(4, 0);
        let store = ValidatorStore::open(&folder.path().join("index.db"), genesis.chain_id());
        let ledger = Ledger::open(&genesis, Arc::new(store.unwrap())).unwrap();
        let config = runtime::Config::new().with_storage_directory(folder.path().join("runtime"));
        runtime::Runner::new(config).start(async |context| {
            let mirror = Mirror::new(ledger, Mempool::new(Known::default()));
            let name = |name: &str| name.parse::<Name>().unwrap();
            for (node, height) in [("boaster", u64::MAX), ("honest", 3), ("behind", 0)] {
                // Nothing answers there.
                let client = Client::new("http://127.0.0.1:1").unwrap();
                mirror.add(&context, &name(node), client, Height::new(height));
            }
            let asked = |tried: &[&str]| {
                let tried = tried.iter().map(|node| name(node)).collect();
                mirror.ahead(&tried).map(|(node, _)| node.to_string())
            };
            assert_eq!(asked(&[]).as_deref(), Some("boaster"));
            assert_eq!(asked(&["boaster"]).as_deref(), Some("honest"));
            assert_eq!(asked(&["boaster", "honest"]).as_deref(), Some("boaster"));
            mirror.freeze(&name("honest"), true);
            assert_eq!(asked(&["boaster"]).as_deref(), Some("boaster"));
            mirror.freeze(&name("honest"), false);
            mirror.distrust(&name("boaster"));
            assert_eq!(asked(&[]).as_deref(), Some("honest"));
            mirror.remove(&name("honest"));
            assert_eq!(asked(&[]), None);
        });
    }
}
