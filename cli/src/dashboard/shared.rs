//! What the dashboard knows about the devnet, whichever pane is shown.

use super::news::Ask;
use cowboy_devnet::types::{
    Block, BlockNotice, Fault, HashText, Parameters, RunnerState, Status, TransactionStatus,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of blocks to remember; a chart of the widest terminal shows fewer.
pub const BLOCKS: usize = 240;

/// Requests at a time for what a pane still lacks.
pub const AT_A_TIME: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// No news yet.
    Connecting,
    Up,
    Lost {
        since: Timestamp,
        reason: String,
    },
}

#[derive(Debug, Clone)]
pub struct Shared {
    pub devnet: String,
    pub link: Link,
    pub genesis: Option<HashText>,
    pub height: u64,
    /// The newest blocks, ascending.
    pub blocks: VecDeque<SeenBlock>,
    /// Figures of the newest blocks, by height; `None` if the devnet refused to tell.
    figures: BTreeMap<u64, Option<BlockFigures>>,
    pub status: Option<Status>,
    pub parameters: Option<Parameters>,
}

/// Data about a block that only a request for it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFigures {
    /// Milliseconds from the proposer's timestamp until it was known to be final; absent if the
    /// validator no longer knows.
    pub latency: Option<u64>,
    /// The cycles used by its transactions and timers.
    pub cycles: u64,
    pub cells: u64,
    /// Transactions without effect.
    pub failed: u32,
}

impl BlockFigures {
    fn of(block: &Block) -> Self {
        let since = |at: Timestamp| at.duration_since(*block.timestamp).as_millis();
        let failed = block.transactions.iter();
        let failed = failed.filter(|one| one.status != TransactionStatus::Success).count();
        Self {
            latency: block.finalized_at.map(|at| u64::try_from(since(*at)).unwrap_or(0)),
            cycles: block.cycles_used,
            cells: block.cells_used,
            failed: failed as u32,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenBlock {
    pub height: u64,
    pub hash: HashText,
    /// The validator that proposed it.
    pub proposer: Option<String>,
    /// The time when it was learnt to be final.
    pub finalized_at: Timestamp,
    pub transactions: u32,
    pub fires: u32,
    pub events: usize,
    pub present: u32,
    pub registry_len: u32,
    /// The blocks whose certificates it embeds.
    pub certificate_for: Vec<u64>,
}

impl Shared {
    /// Questions that are always asked, because every pane names runners and validators, and shows
    /// prices.
    pub const WANTS: [Ask; 2] = [Ask::Status, Ask::Parameters];

    pub const fn new(devnet: String) -> Self {
        Self {
            devnet,
            link: Link::Connecting,
            genesis: None,
            height: 0,
            blocks: VecDeque::new(),
            figures: BTreeMap::new(),
            status: None,
            parameters: None,
        }
    }

    /// Takes in a block; returns whether it is new.
    pub fn block(&mut self, block: &BlockNotice, now: Timestamp) -> bool {
        if self.blocks.back().is_some_and(|last| last.height >= block.height) {
            return false;
        }
        if self.blocks.len() == BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back(SeenBlock {
            height: block.height,
            hash: block.hash,
            proposer: block.proposer.clone(),
            finalized_at: block.finalized_at.map_or(now, |at| *at),
            transactions: block.transactions,
            fires: block.fires,
            events: block.events.len(),
            present: block.present,
            registry_len: block.registry_len,
            certificate_for: block.certificate_for.clone(),
        });
        self.height = self.height.max(block.height);
        true
    }

    /// Takes in the figures of a block, or that the devnet refused to tell them.
    pub fn measure(&mut self, height: u64, block: Option<&Block>) {
        self.figures.insert(height, block.map(BlockFigures::of));
        if self.figures.len() > BLOCKS {
            self.figures.pop_first();
        }
    }

    pub fn figures(&self, height: u64) -> Option<BlockFigures> {
        self.figures.get(&height).copied().flatten()
    }

    /// The heights and latencies of the newest blocks in milliseconds, where known, ascending.
    pub fn latencies(&self) -> Vec<(u64, u64)> {
        let known = self.figures.iter();
        known.filter_map(|(height, known)| Some((*height, known.as_ref()?.latency?))).collect()
    }

    /// Questions for the figures of some of these blocks that are not known yet.
    pub fn unmeasured(&self, heights: impl Iterator<Item = u64>) -> impl Iterator<Item = Ask> {
        let missing = heights.filter(|height| !self.figures.contains_key(height));
        missing.take(AT_A_TIME).map(Ask::Block)
    }

    /// A runner's name, by position in the registry.
    pub fn runner(&self, index: usize) -> String {
        let known = self.status.as_ref().and_then(|status| status.runners.get(index));
        known.map_or_else(|| format!("#{index}"), |runner| runner.name.clone())
    }

    /// Whether a runner, by position in the registry, does not run.
    pub fn is_stopped(&self, index: usize) -> bool {
        let known = self.status.as_ref().and_then(|status| status.runners.get(index));
        known.is_some_and(|runner| runner.status == RunnerState::Stopped)
    }

    /// The faults in force.
    pub fn faults(&self) -> &[Fault] {
        self.status.as_ref().map_or(&[], |status| &status.faults)
    }

    pub fn runners(&self) -> usize {
        let last = self.blocks.back().map_or(0, |block| block.registry_len as usize);
        self.status.as_ref().map_or(0, |status| status.runners.len()).max(last)
    }
}
