//! Presence over time: a heat map of runners by block, and the votes behind a cell.

mod view;
mod votes;

pub use votes::{SeenVotes, VoteShade};

use self::votes::bit;
use crate::{
    dashboard::{
        news::{Answer, Ask},
        pane::{Cx, Pane},
        rows::Cursor,
        shared::{AT_A_TIME, BLOCKS},
    },
    output::width,
};
use cowboy_devnet::types::{self, BlockNotice};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect, Size},
};
use std::collections::{BTreeMap, BTreeSet};

/// The event after which each runner has another subset.
const SUBSETS: &str = "SubsetEpochAdvanced";

/// The presence of a runner in a block's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresenceCell {
    Present,
    Absent,
    /// The block is not known, or the runner was not registered.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresenceColumn {
    bits: Vec<u8>,
    /// Number of runners that the bits cover.
    pub registry_len: u32,
    pub present: u32,
    pub votes: u32,
    /// The votes that a runner needs; absent under `subset`, where each runner has its own
    /// threshold.
    pub threshold: Option<u32>,
    pub rule: String,
    pub embedded_in: u64,
    /// The votes in the certificate, if they are known.
    pub certificate: Option<SeenVotes>,
}

impl PresenceColumn {
    fn of(presence: &types::Presence) -> Self {
        Self {
            bits: presence.bitmap.0.0.clone(),
            registry_len: presence.registry_len,
            present: presence.present.len() as u32,
            votes: presence.votes,
            threshold: presence.threshold,
            rule: presence.rule.clone(),
            embedded_in: presence.embedded_in,
            certificate: None,
        }
    }

    pub fn cell(&self, runner: usize) -> PresenceCell {
        match runner < self.registry_len as usize {
            true if bit(&self.bits, runner) => PresenceCell::Present,
            true => PresenceCell::Absent,
            false => PresenceCell::Unknown,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatMapArea {
    pub names: Rect,
    pub cells: Rect,
    /// The columns and rows of a cell.
    pub cell: Size,
    /// The heights of the columns, from the left.
    pub heights: Vec<u64>,
    /// The runners of the rows, from the top.
    pub runners: Vec<usize>,
    /// The first and the last height.
    pub axis: Rect,
    pub about: Rect,
    /// The votes on the cell under the cursor, if there is room for them.
    pub votes: Rect,
}

#[derive(Debug, Default)]
pub struct Presence {
    columns: BTreeMap<u64, PresenceColumn>,
    /// Blocks whose presence the devnet refused to send.
    refused: BTreeSet<u64>,
    /// Blocks whose votes the devnet refused to send, with the reason.
    secret: BTreeMap<u64, String>,
    /// The validators that each runner has to be connected to, in the registry's order.
    subsets: Vec<Vec<String>>,
    runner: Cursor,
    /// The block under the cursor; `None` follows the newest.
    height: Option<u64>,
    /// Whether only runners that were absent in some known block are shown.
    pub absent_only: bool,
    /// Whether the votes on the cell under the cursor are shown alone.
    pub opened: bool,
}

impl Presence {
    pub fn height(&self) -> Option<u64> {
        let pinned = self.height.filter(|height| self.columns.contains_key(height));
        pinned.or_else(|| self.columns.last_key_value().map(|(height, _)| *height))
    }

    pub fn column(&self, height: u64) -> Option<&PresenceColumn> {
        self.columns.get(&height)
    }

    pub fn cell(&self, height: u64, runner: usize) -> PresenceCell {
        self.column(height).map_or(PresenceCell::Unknown, |column| column.cell(runner))
    }

    /// Number of known blocks in which a runner was present, and number of known blocks.
    pub fn share(&self, runner: usize) -> (usize, usize) {
        let cells = self.columns.values().map(|column| column.cell(runner));
        cells.fold((0, 0), |(present, known), cell| match cell {
            PresenceCell::Present => (present + 1, known + 1),
            PresenceCell::Absent => (present, known + 1),
            PresenceCell::Unknown => (present, known),
        })
    }

    /// Runners that the filter accepts, by position in the registry.
    pub fn accepted(&self, cx: &Cx<'_>) -> Vec<usize> {
        let all = 0..cx.shared.runners();
        all.filter(|runner| cx.filter.accepts(&cx.shared.runner(*runner)))
            .filter(|runner| {
                !self.absent_only || {
                    let (present, known) = self.share(*runner);
                    present < known
                }
            })
            .collect()
    }

    pub fn subset(&self, runner: usize) -> Option<&[String]> {
        self.subsets.get(runner).map(Vec::as_slice)
    }

    /// The share of the votes that report a runner in a block, if they are known.
    pub fn shade(&self, height: u64, runner: usize) -> Option<VoteShade> {
        let votes = self.column(height)?.certificate.as_ref()?;
        let (set, could) = votes.reported(runner, self.subset(runner));
        Some(VoteShade::of(set, could))
    }

    /// Why the votes on a block are not known.
    pub fn secret(&self, height: u64) -> Option<&String> {
        self.secret.get(&height)
    }

    pub fn runner(&self, accepted: &[usize]) -> Option<usize> {
        accepted.get(self.runner.of(accepted.len())).copied()
    }

    pub fn shape(&self, cx: &Cx<'_>, accepted: &[usize]) -> HeatMapArea {
        let [_, rows, axis, about, votes] = view::parts(cx.area, accepted.len());
        let longest = accepted.iter().map(|runner| width(&cx.shared.runner(*runner)));
        let wide = longest.max().unwrap_or(0).clamp(6, 24) as u16 + 8;
        let names = Rect { width: wide.min(rows.width), ..rows };
        let cells = Rect { x: rows.x + names.width, width: rows.width - names.width, ..rows };
        let columns = u16::try_from(self.columns.len()).unwrap_or(u16::MAX);
        let cell = Size {
            width: (cells.width / columns.max(1)).clamp(1, view::WIDEST),
            height: view::cell_height(cx.area, accepted.len()),
        };
        let fit = usize::from(cells.width / cell.width);
        let at = self.height().unwrap_or(0);
        let newer = self.columns.range(at + 1..).count();
        // The cursor's block is at the left edge at worst.
        let skipped = (newer + 1).saturating_sub(fit);
        let heights = self.columns.keys().rev().skip(skipped).take(fit);
        let mut heights: Vec<_> = heights.copied().collect();
        heights.reverse();
        let window = self.runner.window(accepted.len(), (rows.height / cell.height).into());
        let runners = accepted[window].to_vec();
        HeatMapArea { names, cells, cell, heights, runners, axis, about, votes }
    }

    /// Moves by this many blocks, to the left if negative.
    fn step(&mut self, by: isize) {
        let Some(at) = self.height() else { return };
        let other = match by {
            0.. => self.columns.range(at..).nth(by.unsigned_abs()),
            _ => self.columns.range(..=at).rev().nth(by.unsigned_abs()),
        };
        let newest = self.columns.last_key_value().map(|(height, _)| *height);
        self.height = match other {
            Some((height, _)) => Some(*height),
            None if by > 0 => newest,
            None => self.columns.first_key_value().map(|(height, _)| *height),
        }
        .filter(|height| Some(*height) != newest);
    }

    /// The newest blocks whose votes are not known, those that are shown.
    fn missing_votes(&self, cx: &Cx<'_>) -> Vec<u64> {
        let shape = self.shape(cx, &self.accepted(cx));
        let cursor = self.height().into_iter();
        let shown = cursor.chain(shape.heights.into_iter().rev());
        let is_missing = |height: &u64| {
            let known = self.column(*height).is_some_and(|column| column.certificate.is_some());
            !known && !self.secret.contains_key(height)
        };
        let mut missing: Vec<_> = shown.filter(is_missing).collect();
        missing.dedup();
        missing.truncate(AT_A_TIME);
        missing
    }
}

impl Pane for Presence {
    fn name(&self) -> &'static str {
        "presence"
    }

    fn short(&self) -> &'static str {
        "pres"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = Vec::new();
        let certified = cx.shared.blocks.iter().rev().flat_map(|block| &block.certificate_for);
        let missing = certified
            .filter(|height| !self.columns.contains_key(height) && !self.refused.contains(height));
        wants.extend(missing.take(AT_A_TIME).map(|height| Ask::Presence(*height)));
        wants.extend(self.missing_votes(cx).into_iter().map(Ask::Votes));
        if self.subsets.len() < cx.shared.runners() {
            wants.push(Ask::Runners);
        }
        wants
    }

    fn block(&mut self, block: &BlockNotice, _cx: &Cx<'_>) {
        // Subsets are drawn again.
        if block.events.iter().any(|event| event.kind == SUBSETS) {
            self.subsets.clear();
        }
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, _cx: &Cx<'_>) {
        match (ask, answer) {
            (Ask::Presence(height), Answer::Presence(presence)) => {
                // The picture does not move while a cell is open.
                if self.opened && self.height.is_none() {
                    self.height = self.height();
                }
                self.columns.insert(*height, PresenceColumn::of(presence));
                if self.columns.len() > BLOCKS {
                    self.columns.pop_first();
                }
            }
            (Ask::Votes(height), Answer::Votes(votes)) => {
                if let Some(column) = self.columns.get_mut(height) {
                    column.certificate = Some(SeenVotes::of(votes));
                }
            }
            (_, Answer::Runners(runners)) => {
                self.subsets = runners.iter().map(|runner| runner.subset.clone()).collect();
            }
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        match ask {
            Ask::Presence(height) => {
                self.refused.insert(*height);
                if self.refused.len() > BLOCKS {
                    self.refused.pop_first();
                }
            }
            Ask::Votes(height) => {
                self.secret.insert(*height, reason.to_owned());
                if self.secret.len() > BLOCKS {
                    self.secret.pop_first();
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let accepted = self.accepted(cx);
        let shape = self.shape(cx, &accepted);
        let page = usize::from(shape.cells.height / shape.cell.height);
        match key.code {
            KeyCode::Left | KeyCode::Char('h') => self.step(-1),
            KeyCode::Right | KeyCode::Char('l') => self.step(1),
            KeyCode::Char('<') => self.step(-10),
            KeyCode::Char('>') => self.step(10),
            KeyCode::Char('n') => self.height = None,
            KeyCode::Char('a') if !self.opened => self.absent_only = !self.absent_only,
            _ if !self.runner.key(key, accepted.len(), page) => return false,
            _ => {}
        }
        true
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let accepted = self.accepted(cx);
        let shape = self.shape(cx, &accepted);
        let rows = Rect { width: shape.names.width + shape.cells.width, ..shape.names };
        if self.opened || !rows.contains(at) {
            return false;
        }
        let line = usize::from((at.y - rows.y) / shape.cell.height);
        let fit = usize::from(rows.height / shape.cell.height);
        let hit = self.runner.click(line, accepted.len(), fit);
        // The newest block is at the right edge.
        let from_right = shape.cells.right().saturating_sub(at.x + 1) / shape.cell.width;
        let from_right = usize::from(from_right);
        if at.x >= shape.cells.x && from_right < shape.heights.len() {
            let height = shape.heights[shape.heights.len() - 1 - from_right];
            let newest = self.columns.last_key_value().map(|(height, _)| *height);
            self.height = Some(height).filter(|height| Some(*height) != newest);
        }
        hit
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        let exists = self.height().is_some() && self.runner(&self.accepted(cx)).is_some();
        if self.opened || !exists {
            return false;
        }
        // Stay on this block when newer ones come.
        self.height = self.height();
        self.opened = true;
        true
    }

    fn back(&mut self) -> bool {
        std::mem::take(&mut self.opened)
    }

    fn equivalent(&self, _cx: &Cx<'_>) -> Option<String> {
        let verb = if self.opened { "votes" } else { "show" };
        Some(match self.height() {
            Some(height) => format!("cowboyctl presence {verb} {height}"),
            None => format!("cowboyctl presence {verb}"),
        })
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "another runner"),
            ("← →", "another block; < and > by ten, n to the newest"),
            ("a", "only runners that were absent, or all"),
            ("enter", "every validator's vote on this runner in this block"),
            ("esc", "back to the map"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
