//! Events as they happen, newest first.

mod view;

pub use view::happened;

use crate::{
    dashboard::{
        drawing::{beneath, list_row_at, list_rows},
        news::Ask,
        palette::quoted,
        pane::{Cx, Pane},
        rows::Cursor,
    },
    output::{cut, has_id},
};
use cowboy_devnet::types::{BlockNotice, Event};
use crossterm::event::KeyEvent;
use ratatui::{buffer::Buffer, layout::Position};
use serde_json::Value;
use std::collections::VecDeque;

const LIMIT: usize = 5_000;

/// Columns of an id in an event's line.
const ID: usize = 17;

/// Columns of any other value.
const VALUE: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventEntry {
    pub event: Event,
    pub line: String,
    /// The text that the filter searches, in lower case.
    searched: String,
}

#[derive(Debug, Default)]
pub struct Events {
    /// Newest first.
    entries: VecDeque<EventEntry>,
    cursor: Cursor,
    /// The opened event, and the first visible line of its text.
    pub opened: Option<(Event, Cursor)>,
}

impl Events {
    /// The events that the filter accepts, newest first.
    pub fn accepted<'a>(&'a self, cx: &'a Cx<'_>) -> impl Iterator<Item = &'a EventEntry> {
        self.entries.iter().filter(|entry| cx.filter.accepts_lowercase(&entry.searched))
    }

    pub fn count(&self, cx: &Cx<'_>) -> usize {
        if cx.filter.is_empty() { self.entries.len() } else { self.accepted(cx).count() }
    }

    pub fn all(&self) -> usize {
        self.entries.len()
    }

    pub const fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The opened event, or the one under the cursor.
    pub fn chosen(&self, cx: &Cx<'_>) -> Option<&Event> {
        match &self.opened {
            Some((event, _)) => Some(event),
            None => {
                let at = self.cursor.of(self.count(cx));
                let accepts = |entry: &&EventEntry| cx.filter.accepts_lowercase(&entry.searched);
                self.entries.iter().filter(accepts).nth(at).map(|entry| &entry.event)
            }
        }
    }
}

pub fn line(data: &Value) -> String {
    fn plain(value: &Value) -> String {
        match value {
            Value::String(id) if has_id(id) => cut(id, ID),
            Value::String(text) => cut(text, VALUE),
            Value::Array(values) if values.len() > 4 => format!("[{} values]", values.len()),
            Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
            Value::Object(_) => cut(&value.to_string(), VALUE),
            other => other.to_string(),
        }
    }
    let fields = data.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{name}={}", plain(value))).collect::<Vec<_>>().join(" ")
}

impl Pane for Events {
    fn name(&self) -> &'static str {
        "events"
    }

    fn short(&self) -> &'static str {
        "event"
    }

    fn wants(&self, _cx: &Cx<'_>) -> Vec<Ask> {
        Vec::new()
    }

    fn block(&mut self, block: &BlockNotice, cx: &Cx<'_>) {
        for event in &block.events {
            let line = line(&event.data);
            let searched = format!("{} {} {}", event.height, event.kind, event.data).to_lowercase();
            let entry = EventEntry { event: event.clone(), line, searched };
            // The cursor stays on its event, unless it follows the newest.
            let at = self.cursor.of(usize::MAX);
            if at > 0 && cx.filter.accepts_lowercase(&entry.searched) {
                self.cursor.go((at + 1).min(LIMIT - 1));
            }
            if self.entries.len() == LIMIT {
                self.entries.pop_back();
            }
            self.entries.push_front(entry);
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let (list, _) = beneath(cx.area, self.count(cx));
        match &mut self.opened {
            Some((event, first)) => {
                let page = list_rows(cx.area);
                let last = view::lines(event).len().saturating_sub(page);
                first.key(key, last + 1, page)
            }
            None => {
                let count = self.count(cx);
                self.cursor.key(key, count, list_rows(list))
            }
        }
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let count = self.count(cx);
        let (list, _) = beneath(cx.area, count);
        let line = list_row_at(list, at).filter(|_| self.opened.is_none());
        line.is_some_and(|line| self.cursor.click(line, count, list_rows(list)))
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        let event = self.chosen(cx).cloned();
        let fresh = self.opened.is_none() && event.is_some();
        if fresh {
            self.opened = event.map(|event| (event, Cursor::default()));
        }
        fresh
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn equivalent(&self, cx: &Cx<'_>) -> Option<String> {
        let Some(event) = self.chosen(cx) else {
            return Some("cowboyctl chain events".to_owned());
        };
        if self.opened.is_some() {
            return Some(match (&event.job_id, &event.timer_id) {
                (Some(job), _) => format!("cowboyctl job show {job}"),
                (None, Some(timer)) => format!("cowboyctl timer show {timer}"),
                (None, None) => format!("cowboyctl chain block {}", event.height),
            });
        }
        Some(format!(
            "cowboyctl chain events --from {} --kind {}",
            event.height,
            quoted(&event.kind)
        ))
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "move; at the top it follows the newest"),
            ("enter", "all fields of the event"),
            ("esc", "back to the list"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
