//! What a pane is, and what it is given.

use super::{
    arrangement::{Arrangement, Column},
    filter::Filter,
    look::Look,
    news::{Answer, Ask},
    shared::Shared,
};
use cowboy_devnet::types::BlockNotice;
use crossterm::event::KeyEvent;
use jiff::Timestamp;
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};
use std::fmt;

#[derive(Debug, Clone, Copy)]
pub struct Cx<'a> {
    pub shared: &'a Shared,
    pub filter: &'a Filter,
    /// The order and the columns of the pane's list.
    pub arrangement: &'a Arrangement,
    pub look: Look,
    /// The pane's part of the terminal.
    pub area: Rect,
    pub now: Timestamp,
}

/// The answer to a key that changes the devnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proposal {
    /// To run this command, once the user agrees.
    Run {
        /// What will happen, as a sentence.
        about: String,
        /// Its words, without the program's name.
        words: Vec<String>,
    },
    /// There is nothing to do, for this reason.
    Nothing(String),
}

/// One subject of the dashboard.
///
/// A pane gets every block, whether it is shown or not, and while it is shown also the answers to
/// its questions. It never asks or waits itself: the questions in [`Self::wants`] are asked at once
/// and again with each block, until they are no longer wanted. A question whose answer never
/// changes is wanted only until it is answered.
pub trait Pane: fmt::Debug + Send {
    fn name(&self) -> &'static str;

    /// That name in a few letters, for narrow terminals.
    fn short(&self) -> &'static str {
        self.name()
    }

    /// Its questions, the most important first.
    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask>;

    fn block(&mut self, _block: &BlockNotice, _cx: &Cx<'_>) {}

    fn answer(&mut self, _ask: &Ask, _answer: &Answer, _cx: &Cx<'_>) {}

    /// Takes in the devnet's refusal to answer, with the reason.
    fn refused(&mut self, _ask: &Ask, _reason: &str) {}

    /// Handles a key. Returns whether the key was used.
    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool;

    /// The change of the devnet that a key asks for.
    fn propose(&self, _key: KeyEvent, _cx: &Cx<'_>) -> Option<Proposal> {
        None
    }

    /// Handles a click in its area. Returns whether it hit something.
    fn click(&mut self, _at: Position, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Opens the row under the cursor. Returns whether there was one.
    fn enter(&mut self, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Closes what is opened. Returns whether there was something.
    fn back(&mut self) -> bool {
        false
    }

    /// The columns of the shown list, if it can be sorted.
    fn columns(&self) -> &'static [Column] {
        &[]
    }

    /// The command that shows what is under the cursor, including the program's name.
    fn equivalent(&self, cx: &Cx<'_>) -> Option<String>;

    fn keys(&self) -> &'static [(&'static str, &'static str)];

    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer);
}
