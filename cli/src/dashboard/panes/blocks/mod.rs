//! The newest blocks, a block with its transactions, and a transaction with its receipt.

mod receipt;
mod view;

use crate::dashboard::{
    arrangement::Column,
    drawing::{list_row_at, list_rows, page},
    news::{Answer, Ask},
    pane::{Cx, Pane},
    rows::{Cursor, Detail, Pick},
    shared::{AT_A_TIME, SeenBlock},
};
use cowboy_devnet::types::{Block, HashText, Transaction};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};
use std::collections::BTreeMap;

/// Maximum number of receipts to keep: more than any terminal shows.
const RECEIPTS: usize = 1_000;

pub type OpenedTransaction = Detail<HashText, Transaction>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BlockLevel {
    #[default]
    Blocks,
    Block {
        height: u64,
        /// The cursor among its transactions; the first line of its page if it has none.
        cursor: Cursor,
        transaction: Option<OpenedTransaction>,
    },
}

#[derive(Debug, Default)]
pub struct NewestBlocks {
    pick: Pick<u64>,
    pub level: BlockLevel,
    /// The block that was last shown in full.
    block: Option<Block>,
    /// The block that the devnet last refused to send, and why.
    pub withheld: Option<(u64, String)>,
    /// Receipts of that block's transactions; `None` if the devnet refused to send one.
    receipts: BTreeMap<HashText, Option<Transaction>>,
}

impl NewestBlocks {
    /// The blocks that the filter accepts, the newest first, unless the user has sorted them.
    pub fn accepted<'a>(cx: &Cx<'a>) -> Vec<&'a SeenBlock> {
        let accepts = |block: &&SeenBlock| {
            let proposer = block.proposer.as_deref().unwrap_or_default();
            cx.filter.is_empty()
                || cx.filter.accepts(&format!("{} {proposer} {}", block.height, block.hash))
        };
        let mut accepted: Vec<_> = cx.shared.blocks.iter().rev().filter(accepts).collect();
        cx.arrangement.sort(&mut accepted, |block, column| view::key(block, column, cx));
        accepted
    }

    pub fn cursor(&self, accepted: &[&SeenBlock]) -> Cursor {
        self.pick.cursor(&heights(accepted))
    }

    /// The opened block, or the one under the cursor.
    pub fn chosen(&self, cx: &Cx<'_>) -> Option<u64> {
        match self.level {
            BlockLevel::Block { height, .. } => Some(height),
            BlockLevel::Blocks => self.pick.chosen(&heights(&Self::accepted(cx))),
        }
    }

    /// The chosen block, if it is known in full.
    pub fn full(&self, cx: &Cx<'_>) -> Option<&Block> {
        let chosen = self.chosen(cx);
        self.block.as_ref().filter(|block| Some(block.height) == chosen)
    }

    pub fn receipt(&self, transaction: HashText) -> Option<&Transaction> {
        self.receipts.get(&transaction)?.as_ref()
    }

    /// The transaction under the cursor in the opened block.
    fn transaction(&self, cx: &Cx<'_>) -> Option<HashText> {
        let BlockLevel::Block { cursor, .. } = self.level else { return None };
        let transactions = &self.full(cx)?.transactions;
        transactions.get(cursor.of(transactions.len())).map(|transaction| transaction.hash)
    }

    /// Opens the next block, or the one before.
    fn step(&mut self, cx: &Cx<'_>, newer: bool) {
        let BlockLevel::Block { height, .. } = self.level else { return };
        let blocks = &cx.shared.blocks;
        let next = match newer {
            true => blocks.iter().find(|block| block.height > height),
            false => blocks.iter().rev().find(|block| block.height < height),
        };
        if let Some(next) = next {
            self.open(next.height);
        }
    }

    fn open(&mut self, height: u64) {
        self.pick.go(height);
        self.level = BlockLevel::Block { height, cursor: Cursor::default(), transaction: None };
    }
}

fn heights(blocks: &[&SeenBlock]) -> Vec<u64> {
    blocks.iter().map(|block| block.height).collect()
}

impl Pane for NewestBlocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn short(&self) -> &'static str {
        "block"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = Vec::new();
        if let BlockLevel::Block { transaction: Some(opened), .. } = &self.level
            && opened.known.is_none()
        {
            wants.push(Ask::Transaction(opened.key));
        }
        let shape = view::shape(self, cx);
        match self.full(cx) {
            Some(block) => {
                let seen = view::seen(self, &shape, block);
                let missing = block.transactions[seen].iter().map(|transaction| transaction.hash);
                let missing = missing.filter(|hash| !self.receipts.contains_key(hash));
                wants.extend(missing.take(AT_A_TIME).map(Ask::Transaction));
            }
            None if shape.block.height > 0 => wants.extend(self.chosen(cx).map(Ask::Block)),
            None => {}
        }
        if self.level == BlockLevel::Blocks {
            let accepted = Self::accepted(cx);
            let (seen, _) = self.cursor(&accepted).seen(&accepted, list_rows(shape.list));
            let figures = cx.shared.unmeasured(seen.iter().map(|block| block.height));
            let figures: Vec<_> = figures.filter(|ask| !wants.contains(ask)).collect();
            wants.extend(figures);
        }
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (Ask::Block(height), Answer::Block(block)) if Some(*height) == self.chosen(cx) => {
                if self.block.as_ref().is_none_or(|known| known.hash != block.hash) {
                    self.receipts.clear();
                }
                self.block = Some(block.clone());
                self.withheld = None;
            }
            (Ask::Transaction(hash), Answer::Transaction(transaction)) => {
                if let BlockLevel::Block { transaction: Some(opened), .. } = &mut self.level
                    && opened.key == *hash
                {
                    opened.hear(transaction.clone());
                }
                let known = self.block.iter().flat_map(|block| &block.transactions);
                if known.into_iter().any(|known| known.hash == *hash) {
                    if self.receipts.len() == RECEIPTS {
                        self.receipts.clear();
                    }
                    self.receipts.insert(*hash, Some(transaction.clone()));
                }
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match ask {
            Ask::Block(height) => self.withheld = Some((*height, reason.to_owned())),
            Ask::Transaction(hash) => {
                self.receipts.insert(*hash, None);
                if let BlockLevel::Block { transaction: Some(opened), .. } = &mut self.level
                    && opened.key == *hash
                {
                    opened.refuse(reason);
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let shape = view::shape(self, cx);
        let rows = heights(&Self::accepted(cx));
        let (places, fit) = view::places(self, &shape, cx);
        match &mut self.level {
            BlockLevel::Blocks => self.pick.key(key, &rows, list_rows(shape.list)),
            BlockLevel::Block { transaction: Some(opened), .. } => {
                let fit = page::rows(cx.area);
                let places = receipt::page(opened, cx).places(fit);
                opened.first.key(key, places, fit)
            }
            BlockLevel::Block { cursor, .. } => match key.code {
                KeyCode::Left | KeyCode::Right => {
                    self.step(cx, key.code == KeyCode::Right);
                    true
                }
                _ => cursor.key(key, places, fit),
            },
        }
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let shape = view::shape(self, cx);
        let rows = heights(&Self::accepted(cx));
        let transactions = self.full(cx).map_or(0, |block| block.transactions.len());
        match &mut self.level {
            BlockLevel::Blocks => list_row_at(shape.list, at)
                .is_some_and(|line| self.pick.click(line, &rows, list_rows(shape.list))),
            BlockLevel::Block { cursor, transaction: None, .. } => {
                let fit = list_rows(shape.transactions);
                list_row_at(shape.transactions, at)
                    .is_some_and(|line| cursor.click(line, transactions, fit))
            }
            BlockLevel::Block { .. } => false,
        }
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        let (chosen, hash) = (self.chosen(cx), self.transaction(cx));
        match (&mut self.level, chosen, hash) {
            (BlockLevel::Blocks, Some(height), _) => {
                self.open(height);
                true
            }
            (BlockLevel::Block { transaction: transaction @ None, .. }, _, Some(hash)) => {
                let mut opened = Detail::new(hash);
                if let Some(Some(known)) = self.receipts.get(&hash) {
                    opened.hear(known.clone());
                }
                *transaction = Some(opened);
                true
            }
            _ => false,
        }
    }

    fn back(&mut self) -> bool {
        match &mut self.level {
            BlockLevel::Blocks => return false,
            BlockLevel::Block { transaction: transaction @ Some(_), .. } => *transaction = None,
            BlockLevel::Block { .. } => self.level = BlockLevel::Blocks,
        }
        true
    }

    fn columns(&self) -> &'static [Column] {
        match self.level {
            BlockLevel::Blocks => &view::COLUMNS,
            BlockLevel::Block { .. } => &[],
        }
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        Some(match (self.transaction(cx), self.chosen(cx)) {
            (Some(hash), _) => format!("cowboyctl chain tx {hash}"),
            (None, Some(height)) => format!("cowboyctl chain block {height}"),
            (None, None) => "cowboyctl chain head".to_owned(),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move; at the top it follows the newest"),
            ("enter", "the block's transactions; then a transaction with its receipt"),
            ("← →", "in a block: the block before, the next one"),
            ("esc", "back"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
