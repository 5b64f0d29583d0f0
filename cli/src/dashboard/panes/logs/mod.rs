//! The log of the devnet's process, line by line, with the newest at the bottom.

mod view;

use crate::dashboard::{
    drawing::{list_row_at, list_rows},
    log::{LogPiece, LogPosition, names},
    news::{Answer, Ask},
    pane::{Cx, Pane},
    rows::Cursor,
};
use cowboy_devnet::types::BlockNotice;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::{buffer::Buffer, layout::Position};
use std::collections::VecDeque;

const LIMIT: usize = 5_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    #[default]
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// All levels, ascending.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub text: String,
    /// The time of day; empty if the line has none.
    pub time: String,
    /// Its level; a line without one, such as a panic's, belongs to every level.
    pub level: Option<LogLevel>,
    /// The text after time and level.
    pub message: String,
    /// The text that the filter searches, in lower case.
    searched: String,
}

impl LogEntry {
    /// Parses a line: `2026-01-01T00:00:00.123456Z  INFO message`.
    pub fn of(text: String) -> Self {
        let searched = text.to_lowercase();
        let whole = |text: String| {
            let message = text.clone();
            Self { text, time: String::new(), level: None, message, searched: searched.clone() }
        };
        let Some((at, rest)) = text.split_once(' ') else { return whole(text) };
        let (word, message) = rest.trim_start().split_once(' ').unwrap_or((rest, ""));
        let level = LogLevel::ALL.into_iter().find(|level| level.name() == word);
        match (at.get(11..23), level) {
            (Some(time), Some(level)) if at.parse::<jiff::Timestamp>().is_ok() => {
                let (time, message) = (time.to_owned(), message.to_owned());
                Self { time, level: Some(level), message, searched, text }
            }
            _ => whole(text),
        }
    }
}

#[derive(Debug, Default)]
pub struct Logs {
    /// Oldest first.
    entries: VecDeque<LogEntry>,
    /// The position after the newest line.
    next: LogPosition,
    /// The position that the devnet is asked for. It follows `next` only with each block, so that a
    /// frozen picture requests nothing new.
    asked: LogPosition,
    /// The selected row, among those accepted; `None` follows the newest.
    reading: Option<usize>,
    pub level: LogLevel,
    pub node: Option<String>,
    /// The opened line, and the first visible part of it.
    pub opened: Option<(LogEntry, Cursor)>,
    pub refused: Option<String>,
}

impl Logs {
    /// Lines that level, node and filter accept, oldest first.
    pub fn accepted<'a>(&'a self, cx: &'a Cx<'_>) -> impl Iterator<Item = &'a LogEntry> {
        let words = self.words(cx);
        self.entries.iter().filter(move |entry| self.accepts(entry, &words, cx))
    }

    fn accepts(&self, entry: &LogEntry, words: &[String], cx: &Cx<'_>) -> bool {
        entry.level.is_none_or(|level| level >= self.level)
            && (self.node.is_none() || words.iter().any(|word| names(&entry.text, word)))
            && cx.filter.accepts_lowercase(&entry.searched)
    }

    /// The name and the address of the node whose lines are shown.
    fn words(&self, cx: &Cx<'_>) -> Vec<String> {
        let address = |node: &String| {
            let known = nodes(cx).find(|(name, _)| name == node);
            known.map(|(_, address)| address)
        };
        let node = self.node.iter();
        node.flat_map(|node| [Some(node.clone()), address(node)]).flatten().collect()
    }

    pub fn count(&self, cx: &Cx<'_>) -> usize {
        self.accepted(cx).count()
    }

    pub fn all(&self) -> usize {
        self.entries.len()
    }

    pub const fn follows(&self) -> bool {
        self.reading.is_none()
    }

    pub fn cursor(&self, count: usize) -> Cursor {
        let mut cursor = Cursor::default();
        cursor.go(self.reading.unwrap_or(count.saturating_sub(1)));
        cursor
    }

    /// Selects another row; the last one follows the newest line.
    fn read(&mut self, cursor: Cursor, count: usize) {
        let at = cursor.of(count);
        self.reading = (at + 1 < count).then_some(at);
    }

    fn push(&mut self, entry: LogEntry, cx: &Cx<'_>) {
        if self.entries.len() == LIMIT
            && let Some(gone) = self.entries.pop_front()
            && self.accepts(&gone, &self.words(cx), cx)
        {
            // The cursor stays on its line.
            self.reading = self.reading.map(|at| at.saturating_sub(1));
        }
        self.entries.push_back(entry);
    }

    fn hear(&mut self, piece: &LogPiece, cx: &Cx<'_>) {
        let from = piece.from;
        let known = self.next.file == from.file;
        let note = match (self.next.file, from.at.checked_sub(self.next.at)) {
            (0, _) => None,
            _ if !known => Some("the devnet was started again: a new log".to_owned()),
            (_, Some(skipped @ 1..)) => Some(format!(
                "{skipped} bytes of the log are left out here; all of it: \
                 cowboyctl devnet logs -n 1000000"
            )),
            _ => None,
        };
        if let Some(note) = note {
            self.push(LogEntry::of(note), cx);
        }
        for line in &piece.lines {
            if !known || line.end > self.next.at {
                self.push(LogEntry::of(line.text.clone()), cx);
            }
        }
        let end = piece.lines.last().map_or(from.at, |line| line.end);
        let before = if known { self.next.at } else { 0 };
        self.next = LogPosition { file: from.file, at: end.max(before) };
        if self.asked == LogPosition::default() {
            self.asked = self.next;
        }
        self.refused = None;
    }

    /// Selects the next or previous node: all, then validators, then runners.
    fn step(&mut self, cx: &Cx<'_>, back: bool) {
        let names: Vec<_> = nodes(cx).map(|(name, _)| name).collect();
        let places = names.len() + 1;
        let at = self.node.as_ref().and_then(|node| names.iter().position(|name| name == node));
        let at = at.map_or(0, |at| at + 1);
        let next = if back { at + places - 1 } else { at + 1 } % places;
        self.node = next.checked_sub(1).map(|next| names[next].clone());
        self.reading = None;
    }
}

pub fn nodes<'a>(cx: &'a Cx<'_>) -> impl Iterator<Item = (String, String)> + 'a {
    let status = cx.shared.status.iter();
    status.flat_map(|status| {
        let validators = status.validators.iter().map(|v| (v.name.clone(), v.address.to_string()));
        validators.chain(status.runners.iter().map(|r| (r.name.clone(), r.address.to_string())))
    })
}

impl Pane for Logs {
    fn name(&self) -> &'static str {
        "logs"
    }

    fn wants(&self, _cx: &Cx<'_>) -> Vec<Ask> {
        vec![Ask::Log(self.asked)]
    }

    fn block(&mut self, _block: &BlockNotice, _cx: &Cx<'_>) {
        self.asked = self.next;
    }

    fn answer(&mut self, _ask: &Ask, answer: &Answer, cx: &Cx<'_>) {
        if let Answer::Log(piece) = answer {
            self.hear(piece, cx);
        }
    }

    fn refused(&mut self, ask: &Ask, reason: &str) {
        if matches!(ask, Ask::Log(_)) {
            self.refused = Some(reason.to_owned());
        }
    }

    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool {
        let page = list_rows(cx.area);
        if let Some((entry, first)) = &mut self.opened {
            let last = view::lines(entry, cx).len().saturating_sub(page);
            return first.key(key, last + 1, page);
        }
        match key.code {
            KeyCode::Char('l') => {
                let next = (self.level as usize + 1) % LogLevel::ALL.len();
                self.level = LogLevel::ALL[next];
                self.reading = None;
            }
            KeyCode::Char('n') => self.step(cx, false),
            KeyCode::Char('N') => self.step(cx, true),
            KeyCode::Char('f') => self.reading = None,
            _ => {
                let count = self.count(cx);
                let mut cursor = self.cursor(count);
                if !cursor.key(key, count, page) {
                    return false;
                }
                self.read(cursor, count);
            }
        }
        true
    }

    fn click(&mut self, at: Position, cx: &Cx<'_>) -> bool {
        let count = self.count(cx);
        let mut cursor = self.cursor(count);
        let line = list_row_at(cx.area, at).filter(|_| self.opened.is_none());
        let hit = line.is_some_and(|line| cursor.click(line, count, list_rows(cx.area)));
        if hit {
            self.read(cursor, count);
        }
        hit
    }

    fn enter(&mut self, cx: &Cx<'_>) -> bool {
        if self.opened.is_some() {
            return false;
        }
        let count = self.count(cx);
        let chosen = self.accepted(cx).nth(self.cursor(count).of(count)).cloned();
        self.opened = chosen.map(|entry| (entry, Cursor::default()));
        self.opened.is_some()
    }

    fn back(&mut self) -> bool {
        self.opened.take().is_some()
    }

    fn equivalent(&self, _cx: &Cx<'_>) -> Option<String> {
        let node = self.node.as_ref().map(|node| format!(" --node {node}")).unwrap_or_default();
        Some(format!("cowboyctl devnet logs{node} --follow"))
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("↑ ↓ PgUp PgDn Home End", "read; at the bottom it follows the newest, so does f"),
            ("l", "the lowest level that is shown: trace, debug, info, warn, error"),
            ("n N", "only the lines of one validator or runner: the next, the one before"),
            ("enter", "all of a line"),
            ("esc", "back to the list"),
        ]
    }

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer) {
        view::draw(self, cx, buffer);
    }
}
