//! The devnet at a glance: blocks, fees, runners, and the validators one by one.

mod view;

use crate::dashboard::{
    drawing::{list_row_at, list_rows},
    news::{Answer, Ask},
    pane::{Cx, Pane},
    rows::Cursor,
};
use cowboy_devnet::types::{Validator, ValidatorStatus};
use crossterm::event::KeyEvent;
use ratatui::{buffer::Buffer, layout::Position};

/// Number of blocks before the head whose latency is requested.
const LATENCIES: usize = 60;

#[derive(Debug, Default)]
pub struct Overview {
    validators: Vec<Validator>,
    cursor: Cursor,
    pub opened: Option<String>,
}

impl Overview {
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
        wants.extend(cx.shared.unmeasured(newest.map(|block| block.height)));
        wants
    }

    fn answer(&mut self, _ask: &Ask, answer: &Answer, _cx: &Cx<'_>) {
        if let Answer::Validators(validators) = answer {
            self.validators = validators.clone();
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
