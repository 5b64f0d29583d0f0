//! What the dashboard knows about the devnet, whichever pane is shown.

use super::news::Ask;
use cowboy_devnet::types::{BlockNotice, HashText, Parameters, Status};
use jiff::Timestamp;
use std::collections::VecDeque;

/// Maximum number of blocks to remember; a chart of the widest terminal shows fewer.
pub const BLOCKS: usize = 240;

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
    pub status: Option<Status>,
    pub parameters: Option<Parameters>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenBlock {
    pub height: u64,
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

    /// A runner's name, by position in the registry.
    pub fn runner(&self, index: usize) -> String {
        let known = self.status.as_ref().and_then(|status| status.runners.get(index));
        known.map_or_else(|| format!("#{index}"), |runner| runner.name.clone())
    }

    pub fn runners(&self) -> usize {
        let last = self.blocks.back().map_or(0, |block| block.registry_len as usize);
        self.status.as_ref().map_or(0, |status| status.runners.len()).max(last)
    }
}
