//! The panes: what each knows, what it wants to know, and its keys.

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
pub use jobs::{Jobs, Opened as OpenedJob};
pub use leases::{Entry as LeaseEntry, Leases, OpenedLease};
pub use logs::{Entry, Level, Logs};
pub use mru::{Mru, Opened as MruOpened};
pub use overview::Overview;
pub use presence::{Cell, Detail, Presence, Shape, bit};
pub use speculation::{Drawn, Level as GraphLevel, OpenedTask, Speculation};
pub use timers::{Listed, Opened as OpenedTimer, Place, Standing, Timers};

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

/// What a pane is told of its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Cx<'a> {
    /// What is known of the devnet.
    pub shared: &'a Shared,
    /// What narrows the pane.
    pub filter: &'a Filter,
    /// The styles to draw with.
    pub look: Look,
    /// The pane's part of the terminal.
    pub area: Rect,
    /// The time.
    pub now: Timestamp,
}

/// One subject of the dashboard.
///
/// A pane is told of every block, whether it is shown or not, and of answers to whatever it wants
/// while it is shown. It neither asks nor waits by itself: [`Self::wants`] says what is asked at
/// once and again with each block, until it no longer says so. An answer that never changes is
/// wanted until it is there.
pub trait Pane: fmt::Debug + Send {
    /// The name on its tab.
    fn name(&self) -> &'static str;

    /// That name in a few letters, for where there is little room.
    fn short(&self) -> &'static str {
        self.name()
    }

    /// What it wants to know, the most important first.
    fn wants(&self, cx: &Cx<'_>) -> Vec<Ask>;

    /// A block has become final.
    fn block(&mut self, _block: &BlockNotice, _cx: &Cx<'_>) {}

    /// An answer, to an ask of whichever pane.
    fn answer(&mut self, _ask: &Ask, _answer: &Answer, _cx: &Cx<'_>) {}

    /// The devnet refused to answer, for this reason.
    fn refused(&mut self, _ask: &Ask, _reason: &str) {}

    /// A key. Whether it means something here.
    fn key(&mut self, key: KeyEvent, cx: &Cx<'_>) -> bool;

    /// A click into its area. Whether it hit something.
    fn click(&mut self, _at: Position, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Goes into what is under the cursor. Whether there is something.
    fn enter(&mut self, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Comes back out of it. Whether there was something.
    fn back(&mut self) -> bool {
        false
    }

    /// The command that shows what is under the cursor, with the program's name.
    fn equivalent(&self, cx: &Cx<'_>) -> Option<String>;

    /// Its own keys, and what they do.
    fn keys(&self) -> &'static [(&'static str, &'static str)];

    /// Draws itself into its area.
    fn draw(&self, cx: &Cx<'_>, buffer: &mut Buffer);
}
