//! Presence over time: a heat map of runners by block, and the votes behind a cell.

mod view;

use crate::{
    dashboard::{
        news::{Answer, Ask},
        pane::{Cx, Pane},
        panes::AT_A_TIME,
        rows::Cursor,
        shared::BLOCKS,
    },
    output::width,
};
use cowboy_devnet::types::{self, Runner, Votes};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};
use std::collections::{BTreeMap, BTreeSet};

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

/// A bit of a bitmap; the least significant bit of each byte comes first.
pub fn bit(bytes: &[u8], index: usize) -> bool {
    bytes.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PresenceDetail {
    pub votes: Option<Votes>,
    /// The runner's entry in the registry, with its subset.
    pub runner: Option<Runner>,
    pub refused: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatMapArea {
    pub names: Rect,
    pub cells: Rect,
    /// The heights of the columns, from the left.
    pub heights: Vec<u64>,
    /// The runners of the rows, from the top.
    pub runners: Vec<usize>,
    pub about: Rect,
}

#[derive(Debug, Default)]
pub struct Presence {
    columns: BTreeMap<u64, PresenceColumn>,
    /// Blocks whose presence the devnet refused to send.
    refused: BTreeSet<u64>,
    runner: Cursor,
    /// The block under the cursor; `None` follows the newest.
    height: Option<u64>,
    /// Whether only runners that were absent in some known block are shown.
    pub absent_only: bool,
    pub opened: Option<PresenceDetail>,
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

    pub fn runner(&self, accepted: &[usize]) -> Option<usize> {
        accepted.get(self.runner.of(accepted.len())).copied()
    }

    pub fn shape(&self, cx: &Cx<'_>, accepted: &[usize]) -> HeatMapArea {
        let [_, rows, about] = view::parts(cx.area);
        let longest = accepted.iter().map(|runner| width(&cx.shared.runner(*runner)));
        let wide = longest.max().unwrap_or(0).clamp(6, 24) as u16 + 7;
        let names = Rect { width: wide.min(rows.width), ..rows };
        let cells = Rect { x: rows.x + names.width, width: rows.width - names.width, ..rows };
        let fit = usize::from(cells.width);
        let at = self.height().unwrap_or(0);
        let newer = self.columns.range(at + 1..).count();
        // The cursor's block is at the left edge at worst.
        let skipped = (newer + 1).saturating_sub(fit);
        let heights = self.columns.keys().rev().skip(skipped).take(fit);
        let mut heights: Vec<_> = heights.copied().collect();
        heights.reverse();
        let window = self.runner.window(accepted.len(), rows.height.into());
        HeatMapArea { names, cells, heights, runners: accepted[window].to_vec(), about }
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

    /// Forgets the data of the last cell, because another one is under the cursor.
    fn moved(&mut self) {
        if let Some(detail) = &mut self.opened {
            *detail = PresenceDetail::default();
        }
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
        if let Some(detail) = &self.opened {
            let height = self.height();
            if let Some(height) = height.filter(|_| detail.votes.is_none()) {
                wants.push(Ask::Votes(height));
            }
            let runner = self.runner(&self.accepted(cx)).map(|runner| cx.shared.runner(runner));
            wants.extend(runner.filter(|_| detail.runner.is_none()).map(Ask::Runner));
        }
        let certified = cx.shared.blocks.iter().rev().flat_map(|block| &block.certificate_for);
        let missing = certified
            .filter(|height| !self.columns.contains_key(height) && !self.refused.contains(height));
        wants.extend(missing.take(AT_A_TIME).map(|height| Ask::Presence(*height)));
        wants
    }

    fn answer(&mut self, ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        match (ask, answer) {
            (Ask::Presence(height), Answer::Presence(presence)) => {
                // The picture does not move while a cell is open.
                if self.opened.is_some() && self.height.is_none() {
                    self.height = self.height();
                }
                self.columns.insert(*height, PresenceColumn::of(presence));
                if self.columns.len() > BLOCKS {
                    self.columns.pop_first();
                }
            }
            (Ask::Votes(height), Answer::Votes(votes)) if Some(*height) == self.height() => {
                if let Some(detail) = &mut self.opened {
                    detail.votes = Some(votes.clone());
                }
            }
            (Ask::Runner(name), Answer::Runner(runner)) => {
                let shown = self.runner(&self.accepted(cx));
                let is_shown = shown.is_some_and(|shown| cx.shared.runner(shown) == *name);
                if let Some(detail) = self.opened.as_mut().filter(|_| is_shown) {
                    detail.runner = Some(runner.clone());
                }
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
            Ask::Votes(height) if Some(*height) == self.height() => {
                if let Some(detail) = &mut self.opened {
                    detail.refused = Some(reason.to_owned());
                }
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let accepted = self.accepted(cx);
        let shape = self.shape(cx, &accepted);
        let page = usize::from(shape.cells.height);
        let before = (self.runner(&accepted), self.height());
        match key.code {
            KeyCode::Left | KeyCode::Char('h') => self.step(-1),
            KeyCode::Right | KeyCode::Char('l') => self.step(1),
            KeyCode::Char('<') => self.step(-10),
            KeyCode::Char('>') => self.step(10),
            KeyCode::Char('n') => self.height = None,
            KeyCode::Char('a') if self.opened.is_none() => self.absent_only = !self.absent_only,
            _ if !self.runner.key(key, accepted.len(), page) => return false,
            _ => {}
        }
        if before != (self.runner(&accepted), self.height()) {
            self.moved();
        }
        true
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let accepted = self.accepted(cx);
        let shape = self.shape(cx, &accepted);
        let rows = Rect { width: shape.names.width + shape.cells.width, ..shape.names };
        if self.opened.is_some() || !rows.contains(at) {
            return false;
        }
        let line = usize::from(at.y - rows.y);
        let hit = self.runner.click(line, accepted.len(), rows.height.into());
        // The newest block is at the right edge.
        let from_right = usize::from(shape.cells.right().saturating_sub(at.x + 1));
        if at.x >= shape.cells.x && from_right < shape.heights.len() {
            let height = shape.heights[shape.heights.len() - 1 - from_right];
            let newest = self.columns.last_key_value().map(|(height, _)| *height);
            self.height = Some(height).filter(|height| Some(*height) != newest);
        }
        hit
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        let exists = self.height().is_some() && self.runner(&self.accepted(cx)).is_some();
        if self.opened.is_some() || !exists {
            return false;
        }
        // Stay on this block when newer ones come.
        self.height = self.height();
        self.opened = Some(PresenceDetail::default());
        true
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn equivalent(&self, _cx: &Cx<'_>) -> Option<String> {
        let verb = if self.opened.is_some() { "votes" } else { "show" };
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
