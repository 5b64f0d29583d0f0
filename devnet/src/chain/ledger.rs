//! One validator's executed chain: its recent states and how they advance.
//!
//! A block enters once it is known to be final, in order, in one of two ways:
//!
//! * [`Ledger::execute`], when a certificate that a block embeds proves an ancestor final before
//!   this validator's own archive has it. Consensus needs its state root to go on.
//! * [`Ledger::commit`], when the archive delivers it. It executes the block unless
//!   [`Ledger::execute`] did, stores it with all its results in one transaction, and informs the
//!   subscribers. Only then does the caller acknowledge the delivery: after a kill at any moment,
//!   every block is either stored or delivered again.
//!
//! On start the ledger reads the newest snapshot and executes the stored blocks after it again. It
//! ignores a block that is delivered again.

use crate::{
    machines::{self, MachineError, borrowed},
    storage::{BlockRecord, StorageError, ValidatorStore},
};
use commonware_utils::{channel::oneshot, sync::Mutex};
use cowboy_engine::{
    chain::{
        Block, Certificate, Execution, ExecutionError, Genesis, GenesisError, State, execute_on,
    },
    primitives::{Hash, Height},
};
use cowboy_pvm::machine::Machine;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tokio::sync::broadcast::{self, Receiver, error::RecvError};

/// Number of recent states that can be read and forked.
pub const STATES_KEPT: usize = 256;
/// Number of blocks by which a subscriber may lag before it is told that it missed some.
pub const SUBSCRIBER_LAG: usize = 256;
/// Number of final blocks that may be executed before the archive delivers them.
pub const MAX_AHEAD: u64 = 64;
const _: () = assert!((MAX_AHEAD as usize) < STATES_KEPT, "the stored head's state stays known");

/// Why a ledger cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The machine of the chain's actors in Python is missing or cannot be opened.
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("block {height} is {got}, but {expected} was executed as final at that height")]
    Conflict { height: Height, got: Hash, expected: Hash },
    #[error("block {height} is missing from the store, whose last is {head}")]
    Missing { height: Height, head: Height },
    /// The storage or the program has changed.
    #[error("block {height} executed again gives root {got}, the store says {expected}")]
    Diverged { height: Height, got: Hash, expected: Hash },
    #[error("block {got} would be executed while {stored} is the last stored")]
    TooFarAhead { got: Height, stored: Height },
}

impl LedgerError {
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Storage(error) => error.is_damage(),
            Self::Missing { .. } | Self::Diverged { .. } | Self::Execution(_) => true,
            Self::Genesis(_)
            | Self::Machine(_)
            | Self::Conflict { .. }
            | Self::TooFarAhead { .. } => false,
        }
    }
}

/// A block names another state root for an ancestor than this validator computed: the proposer or
/// this validator is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("block {block} says that {height} left root {theirs}; here it left {ours}")]
pub struct Alarm {
    /// The block that names the other root.
    pub block: Hash,
    pub height: Height,
    pub theirs: Hash,
    pub ours: Hash,
}

/// A final block and its results.
#[derive(Debug)]
pub struct ExecutedBlock {
    pub block: Arc<Block>,
    pub hash: Hash,
    /// [`State::root`] after it.
    pub root: Hash,
    pub execution: Execution,
    /// When this validator executed it, Unix ms.
    pub executed_ms: u64,
}

/// A state and its root.
#[derive(Clone, Debug)]
pub struct Rooted {
    /// The state after a block, which is the state's head.
    pub state: State,
    pub root: Hash,
}

/// A validator's executed chain. Clones share it.
#[derive(Clone)]
pub struct Ledger(Arc<LedgerInner>);

struct LedgerInner {
    /// Runs actors in Python.
    machine: Option<Arc<Machine>>,
    store: Arc<ValidatorStore>,
    chain: Mutex<Chain>,
    /// Held while executing: blocks are executed one after the other.
    executing: Mutex<()>,
    subscribers: broadcast::Sender<Arc<ExecutedBlock>>,
}

struct Chain {
    /// Consecutive; the newest is last. Never empty.
    recent: VecDeque<Arc<Rooted>>,
    ahead: BTreeMap<Height, Arc<ExecutedBlock>>,
    stored: Height,
    waiters: BTreeMap<Height, Vec<oneshot::Sender<()>>>,
    alarm: Option<Alarm>,
}

impl Chain {
    fn newest(&self) -> &Arc<Rooted> {
        self.recent.back().expect("a chain has a state")
    }

    fn at(&self, height: Height) -> Option<&Arc<Rooted>> {
        let oldest = self.recent.front()?.state.height();
        let index = height.get().checked_sub(oldest.get())?;
        self.recent.get(usize::try_from(index).ok()?)
    }

    fn push(&mut self, rooted: Rooted) {
        let height = rooted.state.height();
        self.recent.push_back(Arc::new(rooted));
        while self.recent.len() > STATES_KEPT {
            self.recent.pop_front();
        }
        let later = self.waiters.split_off(&height.next());
        for waiter in std::mem::replace(&mut self.waiters, later).into_values().flatten() {
            let _ = waiter.send(());
        }
    }
}

impl Ledger {
    /// Loads the chain of `genesis` from `store` and executes the blocks that no snapshot covers.
    pub fn open(genesis: &Genesis, store: Arc<ValidatorStore>) -> Result<Self, LedgerError> {
        let machine = machines::of(&genesis.params)?;
        let state = match store.load_snapshot()? {
            Some(state) => state,
            None => genesis.state()?,
        };
        let stored = store.head()?.map_or(Height::GENESIS, |(height, _)| height);
        let root = state.root();
        let mut chain = Chain {
            recent: VecDeque::from([Arc::new(Rooted { state, root })]),
            ahead: BTreeMap::new(),
            stored,
            waiters: BTreeMap::new(),
            alarm: None,
        };
        while chain.newest().state.height() < stored {
            let parent = &chain.newest().state;
            let height = parent.height().next();
            let missing = || LedgerError::Missing { height, head: stored };
            let block = store.block(height)?.ok_or_else(missing)?;
            let state = execute_on(borrowed(&machine), parent, &block)?.state;
            let got = state.root();
            let (expected, _) = store.executed(height)?.ok_or_else(missing)?;
            if got != expected {
                return Err(LedgerError::Diverged { height, got, expected });
            }
            chain.push(Rooted { state, root: got });
        }
        let (subscribers, _) = broadcast::channel(SUBSCRIBER_LAG);
        let (chain, executing) = (Mutex::new(chain), Mutex::new(()));
        Ok(Self(Arc::new(LedgerInner { machine, store, chain, executing, subscribers })))
    }

    pub fn store(&self) -> &Arc<ValidatorStore> {
        &self.0.store
    }

    /// The state after the newest stored block, which readers see.
    pub fn head(&self) -> State {
        let chain = self.0.chain.lock();
        let stored = chain.at(chain.stored).unwrap_or_else(|| chain.newest());
        stored.state.clone()
    }

    /// The height of the newest stored block.
    pub fn stored(&self) -> Height {
        self.0.chain.lock().stored
    }

    /// The state after the newest executed block, stored or not.
    pub fn newest(&self) -> Arc<Rooted> {
        self.0.chain.lock().newest().clone()
    }

    /// The state after the block at `height`, one of the last [`STATES_KEPT`].
    pub fn at(&self, height: Height) -> Option<Arc<Rooted>> {
        self.0.chain.lock().at(height).cloned()
    }

    /// Resolves once the block at `height` has been executed; with an error if the ledger is
    /// dropped first.
    pub fn wait_executed(&self, height: Height) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut chain = self.0.chain.lock();
        if chain.newest().state.height() >= height {
            let _ = sender.send(());
        } else {
            for waiters in chain.waiters.values_mut() {
                waiters.retain(|waiter| !waiter.is_closed());
            }
            chain.waiters.entry(height).or_default().push(sender);
        }
        receiver
    }

    /// Every block from now on, once it is stored. A subscriber that falls [`SUBSCRIBER_LAG`]
    /// behind is told so and continues with the blocks that are left.
    pub fn subscribe(&self) -> Receiver<Arc<ExecutedBlock>> {
        self.0.subscribers.subscribe()
    }

    pub fn alarm(&self) -> Option<Alarm> {
        self.0.chain.lock().alarm
    }

    /// Compares the root that `block` names for an ancestor with the root computed here.
    /// `Some(false)` is a contradiction and raises the alarm; `None` means that the ancestor is not
    /// executed yet, or too old.
    pub fn agrees(&self, block: &Block) -> Option<bool> {
        let executed = block.header.executed;
        let mut chain = self.0.chain.lock();
        let ours = chain.at(executed.height)?.root;
        if ours == executed.state_root {
            return Some(true);
        }
        let alarm = Alarm {
            block: block.hash(),
            height: executed.height,
            theirs: executed.state_root,
            ours,
        };
        tracing::error!(%alarm, "state roots differ");
        chain.alarm.get_or_insert(alarm);
        Some(false)
    }

    /// Executes a block known to be final, the child of the newest executed one. A block that was
    /// executed before is ignored. `now_ms` is the validator's clock, Unix ms.
    pub fn execute(&self, block: &Arc<Block>, now_ms: u64) -> Result<(), LedgerError> {
        let _one = self.0.executing.lock();
        let (height, hash) = (block.header.height, block.hash());
        let parent = {
            let chain = self.0.chain.lock();
            let newest = chain.newest();
            if height <= newest.state.height() {
                return match chain.at(height).map(|known| known.state.head_hash()) {
                    Some(expected) if expected != hash => {
                        Err(LedgerError::Conflict { height, got: hash, expected })
                    }
                    _ => Ok(()),
                };
            }
            if height.since(chain.stored) > MAX_AHEAD {
                return Err(LedgerError::TooFarAhead { got: height, stored: chain.stored });
            }
            newest.state.clone()
        };
        let execution = execute_on(borrowed(&self.0.machine), &parent, block)?;
        let state = execution.state.clone();
        let root = state.root();
        // A final block's named root is what the chain agreed on, so this comparison counts.
        self.agrees(block);
        let executed = Arc::new(ExecutedBlock {
            block: block.clone(),
            hash,
            root,
            execution,
            executed_ms: now_ms,
        });
        let mut chain = self.0.chain.lock();
        chain.ahead.insert(height, executed);
        chain.push(Rooted { state, root });
        Ok(())
    }

    /// As [`Ledger::commit_proved`], for a block that was executed as the child of the newest one.
    pub fn adopt(
        &self,
        executed: ExecutedBlock,
        proof: Option<&Certificate>,
    ) -> Result<(), LedgerError> {
        let _one = self.0.executing.lock();
        let (height, root) = (executed.block.header.height, executed.root);
        let state = executed.execution.state.clone();
        let mut chain = self.0.chain.lock();
        let (got, newest) = (executed.block.header.parent, &chain.newest().state);
        if got != newest.head_hash() {
            let (height, expected) = (newest.height(), newest.head_hash());
            return Err(LedgerError::Conflict { height, got, expected });
        }
        chain.ahead.insert(height, Arc::new(executed));
        chain.push(Rooted { state, root });
        drop(chain);
        self.keep(height, proof).map(drop)
    }

    /// Executes the next final block unless that is done, stores it and informs the subscribers.
    /// `None` for a block that was stored before.
    pub fn commit(
        &self,
        block: &Arc<Block>,
        now_ms: u64,
    ) -> Result<Option<Arc<ExecutedBlock>>, LedgerError> {
        self.commit_proved(block, now_ms, None)
    }

    /// As [`Ledger::commit`], with proof that the block is final.
    pub fn commit_proved(
        &self,
        block: &Arc<Block>,
        now_ms: u64,
        proof: Option<&Certificate>,
    ) -> Result<Option<Arc<ExecutedBlock>>, LedgerError> {
        self.execute(block, now_ms)?;
        self.keep(block.header.height, proof)
    }

    /// Stores blocks that [`Ledger::adopt`] has executed and failed to store.
    pub fn store_executed(&self) -> Result<(), LedgerError> {
        let heights: Vec<_> = self.0.chain.lock().ahead.keys().copied().collect();
        heights.into_iter().try_for_each(|height| self.keep(height, None).map(drop))
    }

    /// Stores an executed block and informs the subscribers.
    fn keep(
        &self,
        height: Height,
        proof: Option<&Certificate>,
    ) -> Result<Option<Arc<ExecutedBlock>>, LedgerError> {
        let (executed, parent) = {
            let chain = self.0.chain.lock();
            let Some(executed) = chain.ahead.get(&height).cloned() else { return Ok(None) };
            let parent = height.previous().and_then(|parent| chain.at(parent));
            (executed, parent.expect("the stored head's state is known").state.clone())
        };
        self.0.store.commit(&BlockRecord {
            block: &executed.block,
            parent: &parent,
            execution: &executed.execution,
            root: executed.root,
            executed_ms: executed.executed_ms,
            proof,
        })?;
        let mut chain = self.0.chain.lock();
        chain.ahead.remove(&height);
        chain.stored = chain.stored.max(height);
        drop(chain);
        // Having no subscribers is not an error.
        let _ = self.0.subscribers.send(executed.clone());
        Ok(Some(executed))
    }

    /// Stores a snapshot of the stored head, so that the next start executes no block again.
    pub fn snapshot(&self) -> Result<(), LedgerError> {
        Ok(self.0.store.snapshot(&self.head())?)
    }
}

/// Calls `look` with the blocks that a ledger executes until its validator has ended. Blocks that
/// come too fast for `look` are skipped.
pub async fn follow(
    mut blocks: Receiver<Arc<ExecutedBlock>>,
    mut look: impl FnMut(&ExecutedBlock),
) {
    loop {
        match blocks.recv().await {
            Ok(block) => look(&block),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests;
