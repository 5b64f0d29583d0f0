//! The panes: the data, the questions and the keys of each.

mod events;
mod jobs;
mod leases;
mod logs;
mod mru;
mod overview;
mod presence;
mod speculation;
mod timers;

pub use events::{Events, line as fields};
pub use jobs::{Jobs, OpenedJob};
pub use leases::{LeaseEntry, Leases, OpenedLease};
pub use logs::{LogEntry, LogLevel, Logs};
pub use mru::{Mru, OpenedRecord};
pub use overview::Overview;
pub use presence::{HeatMapArea, Presence, PresenceCell, PresenceDetail, bit};
pub use speculation::{DrawnTask, GraphLevel, OpenedTask, Speculation};
pub use timers::{LaneOrder, Listed, OpenedTimer, Standing, Timers};

use super::{
    filter::Filter,
    look::Look,
    news::{Answer, Ask},
    state::Shared,
};
use cowboy_devnet::api::types::BlockNotice;
use crossterm::event::KeyEvent;
use jiff::Timestamp;
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};
use std::fmt;

/// Requests at a time for what a pane still lacks.
const AT_A_TIME: usize = 8;

/// All panes, in the order of their tabs.
pub const ALL: &[fn() -> Box<dyn Pane>] = &[
    || Box::<Overview>::default(),
    || Box::<Presence>::default(),
    || Box::<Timers>::default(),
    || Box::<Jobs>::default(),
    || Box::<Mru>::default(),
    || Box::<Speculation>::default(),
    || Box::<Leases>::default(),
    || Box::<Events>::default(),
    || Box::<Logs>::default(),
];

/// The context of a pane.
#[derive(Debug, Clone, Copy)]
pub struct Cx<'a> {
    /// The shared knowledge about the devnet.
    pub shared: &'a Shared,
    /// The filter of the pane.
    pub filter: &'a Filter,
    /// The styles to draw with.
    pub look: Look,
    /// The pane's part of the terminal.
    pub area: Rect,
    pub now: Timestamp,
}

/// One subject of the dashboard.
///
/// A pane gets every block, whether it is shown or not, and while it is shown also the answers to
/// its questions. It never asks or waits itself: the questions in [`Self::wants`] are asked at once
/// and again with each block, until they are no longer wanted. A question whose answer never
/// changes is wanted only until it is answered.
pub trait Pane: fmt::Debug + Send {
    /// The name on its tab.
    fn name(&self) -> &'static str;

    /// That name in a few letters, for narrow terminals.
    fn short(&self) -> &'static str {
        self.name()
    }

    /// Its questions, the most important first.
    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask>;

    /// Takes in a block that has become final.
    fn block(&mut self, _block: &BlockNotice, _cx: &Cx<'_>) {}

    /// Takes in an answer, to a question of any pane.
    fn answer(&mut self, _ask: &Ask, _answer: &Answer, _cx: &Cx<'_>) {}

    /// Takes in the devnet's refusal to answer, with the reason.
    fn refused(&mut self, _ask: &Ask, _reason: &str) {}

    /// Handles a key. Returns whether the key was used.
    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool;

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

    /// The command that shows what is under the cursor, including the program's name.
    fn equivalent(&self, cx: &Cx<'_>) -> Option<String>;

    /// The pane's own keys, with descriptions.
    fn keys(&self) -> &'static [(&'static str, &'static str)];

    /// Draws the pane into its area.
    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer);
}
