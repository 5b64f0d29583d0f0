//! The devnet at a glance: blocks, fees, runners, and the validators one by one.

mod view;

use crate::dashboard::{
    drawing::{list_row_at, list_rows},
    news::{Answer, Ask},
    pane::{Cx, Pane},
    panes::AT_A_TIME,
    rows::Cursor,
    shared::BLOCKS,
};
use cowboy_devnet::types::{Validator, ValidatorStatus};
use crossterm::event::KeyEvent;
use jiff::Timestamp;
use ratatui::{buffer::Buffer, layout::Position};
use std::collections::BTreeMap;

/// Number of blocks before the head whose latency is requested.
const LATENCIES: usize = 60;

/// Data about a block that only a request for it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Milliseconds from the proposer's timestamp until it was known to be final; absent if the
    /// validator no longer knows.
    pub latency: Option<u64>,
    /// The cycles used by its transactions and timers.
    pub cycles: u64,
    pub cells: u64,
}

#[derive(Debug, Default)]
pub struct Overview {
    measured: BTreeMap<u64, Measured>,
    validators: Vec<Validator>,
    cursor: Cursor,
    pub opened: Option<String>,
}

impl Overview {
    pub fn measured(&self, height: u64) -> Option<Measured> {
        self.measured.get(&height).copied()
    }

    /// The known latencies of the newest blocks in milliseconds, ascending by height.
    pub fn latencies(&self) -> Vec<u64> {
        self.measured.values().filter_map(|block| block.latency).collect()
    }

    /// Validators that the filter accepts, by name.
    pub fn accepted<'a>(cx: &Cx<'a>) -> Vec<&'a ValidatorStatus> {
        let all = cx.shared.status.iter().flat_map(|status| &status.validators);
        let accepts = |validator: &&ValidatorStatus| {
            let state = view::state(validator.status);
            cx.filter.accepts(&format!("{} {} {state}", validator.name, validator.address))
        };
        let mut accepted: Vec<_> = all.filter(accepts).collect();
        // Between names with numbers, the shorter one has the smaller number.
        accepted.sort_by_key(|validator| (validator.name.len(), &validator.name));
        accepted
    }

    pub const fn cursor(&self) -> Cursor {
        self.cursor
    }

    pub fn validator(&self) -> Option<&Validator> {
        let opened = self.opened.as_ref()?;
        self.validators.iter().find(|validator| validator.name == *opened)
    }

    fn chosen(&self, cx: &Cx<'_>) -> Option<String> {
        let accepted = Self::accepted(cx);
        accepted.get(self.cursor.of(accepted.len())).map(|validator| validator.name.clone())
    }
}

impl Pane for Overview {
    fn name(&self) -> &'static str {
        "overview"
    }

    fn short(&self) -> &'static str {
        "over"
    }

    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask> {
        let mut wants = Vec::new();
        if self.opened.is_some() {
            wants.push(Ask::Validators);
        }
        let newest = cx.shared.blocks.iter().rev().take(LATENCIES);
        let missing = newest.filter(|block| !self.measured.contains_key(&block.height));
        wants.extend(missing.take(AT_A_TIME).map(|block| Ask::Block(block.height)));
        wants
    }

    fn answer(&mut self, _ask: &Ask, answer: &Answer, _cx: &Cx<'_>) {
        match answer {
            Answer::Block(block) => {
                let since = |at: Timestamp| at.duration_since(*block.timestamp).as_millis();
                let latency = block.finalized_at.map(|at| u64::try_from(since(*at)).unwrap_or(0));
                let measured =
                    Measured { latency, cycles: block.cycles_used, cells: block.cells_used };
                self.measured.insert(block.height, measured);
                if self.measured.len() > BLOCKS {
                    self.measured.pop_first();
                }
            }
            Answer::Validators(validators) => self.validators = validators.clone(),
            _ => {}
        }
    }

    fn refused(&mut self, ask: &Ask, _reason: &str) {
        // The chain may have dropped the block, so that there are no figures.
        if let Ask::Block(height) = ask {
            self.measured.insert(*height, Measured { latency: None, cycles: 0, cells: 0 });
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        if self.opened.is_some() {
            return false;
        }
        let count = Self::accepted(cx).len();
        self.cursor.key(key, count, list_rows(view::shape(cx).validators))
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let (area, count) = (view::shape(cx).validators, Self::accepted(cx).len());
        let line = list_row_at(area, at).filter(|_| self.opened.is_none());
        line.is_some_and(|line| self.cursor.click(line, count, list_rows(area)))
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        if self.opened.is_none() {
            self.opened = self.chosen(cx);
            return self.opened.is_some();
        }
        false
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        let name = self.opened.clone().or_else(|| self.chosen(cx));
        Some(name.map_or_else(
            || "cowboyctl devnet status".to_owned(),
            |name| format!("cowboyctl validator show {name}"),
        ))
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓", "move among the validators"),
            ("enter", "a validator's keys, addresses and runners"),
            ("esc", "back"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
