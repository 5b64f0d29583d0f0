//! The output of a palette command: bounded, and scrollable.

use crossterm::event::{KeyCode, KeyEvent};
use std::{collections::VecDeque, ops::Range};

/// Maximum number of lines to keep; older ones are only counted.
const LINES: usize = 5_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndedCommand {
    /// By itself, with this code.
    Code(i32),
    /// It was stopped or never started, for this reason.
    Not(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Line(String),
    Ended(EndedCommand),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub run: u64,
    pub title: String,
    pub lines: VecDeque<String>,
    /// Number of lines that were dropped.
    pub forgotten: u64,
    /// Its end; `None` while it runs.
    pub ended: Option<EndedCommand>,
    /// Number of lines that the view is scrolled up from the last one.
    scrolled: usize,
}

impl Output {
    pub fn new(run: u64, title: String) -> Self {
        Self { run, title, lines: VecDeque::new(), forgotten: 0, ended: None, scrolled: 0 }
    }

    pub fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Line(line) => {
                if self.lines.len() == LINES {
                    self.lines.pop_front();
                    self.forgotten += 1;
                }
                self.lines.push_back(line);
                // The lines in view stay in place.
                if self.scrolled > 0 {
                    self.scrolled = (self.scrolled + 1).min(self.lines.len());
                }
            }
            Heard::Ended(ended) => {
                self.ended = Some(ended);
                // Start reading at the beginning of the output.
                if self.scrolled == 0 {
                    self.scrolled = self.lines.len();
                }
            }
        }
    }

    /// The visible lines, if `fit` lines fit.
    pub fn window(&self, fit: usize) -> Range<usize> {
        let start = self.lines.len().saturating_sub(fit + self.scrolled);
        let start = if self.scrolled >= self.lines.len() { 0 } else { start };
        start..(start + fit).min(self.lines.len())
    }

    /// Scrolls by a key, if `fit` lines fit. Returns whether the key was used.
    pub fn key(&mut self, key: KeyEvent, fit: usize) -> bool {
        let most = self.lines.len().saturating_sub(fit);
        let at = self.scrolled.min(most);
        let page = fit.max(2) - 1;
        self.scrolled = match key.code {
            KeyCode::Up | KeyCode::Char('k') => (at + 1).min(most),
            KeyCode::Down | KeyCode::Char('j') => at.saturating_sub(1),
            KeyCode::PageUp => (at + page).min(most),
            KeyCode::PageDown => at.saturating_sub(page),
            KeyCode::Home | KeyCode::Char('g') => most,
            KeyCode::End | KeyCode::Char('G') => 0,
            _ => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: usize) -> Output {
        let mut output = Output::new(1, "x".to_owned());
        (0..lines).for_each(|line| output.hear(Heard::Line(line.to_string())));
        output
    }

    #[test]
    fn it_follows_until_it_ends_and_then_starts_at_the_top() {
        let mut output = printed(100);
        assert_eq!(output.window(10), 90..100);
        output.hear(Heard::Ended(EndedCommand::Code(0)));
        assert_eq!(output.window(10), 0..10);
        assert!(output.key(KeyEvent::from(KeyCode::PageDown), 10));
        assert_eq!(output.window(10), 9..19);
        assert!(output.key(KeyEvent::from(KeyCode::End), 10));
        assert_eq!(output.window(10), 90..100);
    }

    #[test]
    fn what_is_read_stays_while_more_comes() {
        let mut output = printed(100);
        assert!(output.key(KeyEvent::from(KeyCode::Up), 10));
        assert_eq!(output.window(10), 89..99);
        output.hear(Heard::Line("more".to_owned()));
        assert_eq!(output.window(10), 89..99);
    }

    #[test]
    fn lines_are_bounded() {
        let output = printed(LINES + 7);
        assert_eq!((output.lines.len(), output.forgotten), (LINES, 7));
        assert_eq!(output.lines[0], "7");
    }
}
