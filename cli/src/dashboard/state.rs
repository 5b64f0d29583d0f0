//! The whole state of the dashboard: knowledge about the devnet, the panes, and the overlays.

use super::{
    arrangement::Arrangement,
    filter::Filter,
    look::Look,
    news::{Ask, News},
    output::{Heard, Output},
    palette::{Completion, Offer, Palette},
    pane::{Cx, Pane, Proposal},
    panes,
    rows::Cursor,
    shared::Shared,
};
use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use ratatui::layout::{Rect, Size};
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of news items that a frozen picture holds back; older ones are counted as
/// dropped.
pub const HELD: usize = 4_096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Resize(Size),
    Tick,
    News(News),
    /// A message from a command, with the number of its run.
    Child(u64, Heard),
    Offered(Offer),
    /// The total number of dropped news items.
    Dropped(u64),
    RecordingFull,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Release the terminal until the process is continued.
    Suspend,
    Run {
        run: u64,
        args: Vec<String>,
    },
    /// Request the words that can follow these words of a command.
    Complete {
        /// The typed text, with the space after it.
        head: String,
        words: Vec<String>,
    },
    Kill,
    Copy(String),
}

/// The smallest terminal that shows anything of use.
pub const SMALLEST: Size = Size::new(40, 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    /// The tabs, and the devnet's health.
    pub tabs: Rect,
    pub pane: Rect,
    /// Keys and notices.
    pub footer: Rect,
}

pub const fn areas(size: Size) -> Areas {
    let (width, height) = (size.width, size.height);
    Areas {
        tabs: Rect::new(0, 0, width, if height > 0 { 1 } else { 0 }),
        pane: Rect::new(0, 1, width, height.saturating_sub(2)),
        footer: Rect::new(0, height.saturating_sub(1), width, if height > 1 { 1 } else { 0 }),
    }
}

/// An overlay, or another mode that takes the keys from the panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Panes,
    Filtering,
    /// A command is being typed; with the reason if the last line was not a command.
    Palette(Palette, Option<String>),
    Output(Output),
    /// The columns of the pane's list are being chosen.
    Columns(Cursor),
    /// The user is asked about a change.
    Question(Proposal),
    /// The keys of the pane, scrolled by this many lines.
    Help(usize),
    Equivalent(String),
}

#[derive(Debug)]
pub struct Slot {
    pub pane: Box<dyn Pane>,
    pub filter: Filter,
    pub arrangement: Arrangement,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frozen {
    /// Blocks and links since the freeze, in order.
    pub held: VecDeque<News>,
    /// Number of events in the held blocks.
    pub behind: u64,
    /// Questions whose answers are in the picture; later answers are not applied.
    pub settled: BTreeSet<Ask>,
}

#[derive(Debug)]
pub struct State {
    pub size: Size,
    pub look: Look,
    pub now: Timestamp,
    pub shared: Shared,
    /// The panes, in the order of their tabs.
    pub panes: Vec<Slot>,
    pub shown: usize,
    /// Present while the picture is frozen.
    pub frozen: Option<Frozen>,
    /// Answered questions; those that are no longer wanted may be missing.
    pub answered: BTreeSet<Ask>,
    pub mode: Mode,
    pub commands: Vec<Completion>,
    pub runs: u64,
    /// Number of news items that were dropped on the way here.
    pub dropped: u64,
    /// Number of news items that a frozen picture could not hold.
    pub overheld: u64,
    pub recording_full: bool,
    /// Whether the news come from a recording.
    pub replay: bool,
}

impl State {
    pub fn new(devnet: String, size: Size, look: Look, now: Timestamp) -> Self {
        Self {
            size,
            look,
            now,
            shared: Shared::new(devnet),
            panes: fresh(),
            shown: 0,
            frozen: None,
            answered: BTreeSet::new(),
            mode: Mode::Panes,
            commands: Vec::new(),
            runs: 0,
            dropped: 0,
            overheld: 0,
            recording_full: false,
            replay: false,
        }
    }

    /// The questions of the shown pane, the most important first; with `all`, those of all panes.
    pub fn wants(&self, all: bool) -> Vec<Ask> {
        let mut wants = Shared::WANTS.to_vec();
        for (index, slot) in self.panes.iter().enumerate() {
            if all || index == self.shown {
                let asks = slot.pane.wants(&self.cx(index));
                wants.extend(asks.into_iter().filter(|ask| !Shared::WANTS.contains(ask)));
            }
        }
        wants
    }

    pub fn cx(&self, index: usize) -> Cx<'_> {
        let Slot { filter, arrangement, .. } = &self.panes[index];
        let (shared, area) = (&self.shared, self.pane_area());
        Cx { shared, filter, arrangement, look: self.look, area, now: self.now }
    }

    fn pane_area(&self) -> Rect {
        areas(self.size).pane
    }

    pub fn shown(&mut self) -> (&mut dyn Pane, Cx<'_>) {
        let area = self.pane_area();
        let Slot { pane, filter, arrangement } = &mut self.panes[self.shown];
        let (shared, look, now) = (&self.shared, self.look, self.now);
        (pane.as_mut(), Cx { shared, filter, arrangement, look, area, now })
    }

    pub fn each(&mut self, mut visit: impl FnMut(&mut dyn Pane, &Cx<'_>)) {
        let (area, look, now) = (self.pane_area(), self.look, self.now);
        let shared = &self.shared;
        for Slot { pane, filter, arrangement } in &mut self.panes {
            visit(pane.as_mut(), &Cx { shared, filter, arrangement, look, area, now });
        }
    }

    /// Forgets the panes' data, which is about another chain. Filters and arrangements stay.
    pub fn forget(&mut self) {
        let panes = fresh();
        for (slot, fresh) in self.panes.iter_mut().zip(panes) {
            slot.pane = fresh.pane;
        }
        self.answered.clear();
        let name = std::mem::take(&mut self.shared.devnet);
        self.shared = Shared::new(name);
    }
}

fn fresh() -> Vec<Slot> {
    let slot = |new: &fn() -> Box<dyn Pane>| Slot {
        pane: new(),
        filter: Filter::default(),
        arrangement: Arrangement::default(),
    };
    panes::ALL.iter().map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_size_has_its_areas() {
        for width in 0..4 {
            for height in 0..4 {
                let whole = Rect::new(0, 0, width, height);
                let Areas { tabs, pane, footer } = areas(Size { width, height });
                for area in [tabs, pane, footer] {
                    assert_eq!(area.intersection(whole).area(), area.area());
                }
            }
        }
    }
}
