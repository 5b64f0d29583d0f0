//! The whole state of the dashboard: knowledge about the devnet, the panes, and the overlays.

use super::{
    filter::Filter,
    look::Look,
    news::{Ask, News},
    output::{Heard, Output},
    palette::{Completion, Offer, Palette},
    panes::{self, Cx, Pane},
    view,
};
use cowboy_devnet::api::types::{BlockNotice, HashText, Parameters, Status};
use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use ratatui::layout::Size;
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of blocks to remember; a chart of the widest terminal shows fewer.
pub const BLOCKS: usize = 240;

/// Maximum number of news items that a frozen picture holds back; older ones are counted as
/// dropped.
pub const HELD: usize = 4_096;

/// Something that changes the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize(Size),
    /// Time has passed.
    Tick,
    /// News about the devnet.
    News(News),
    /// A message from a command, with the number of its run.
    Child(u64, Heard),
    /// Completions for the palette's line.
    Offered(Offer),
    /// The total number of dropped news items.
    Dropped(u64),
    /// The recording is full.
    RecordingFull,
}

/// Work outside the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    /// Release the terminal until the process is continued.
    Suspend,
    /// Start a command.
    Run {
        /// The number of its run.
        run: u64,
        /// Its arguments, without the program.
        args: Vec<String>,
    },
    /// Request the words that can follow these words of a command.
    Complete {
        /// The typed text, with the space after it.
        head: String,
        words: Vec<String>,
    },
    /// Stop the running command.
    Kill,
    /// Copy a text to the terminal's clipboard.
    Copy(String),
}

/// Whether the devnet answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// No news yet.
    Connecting,
    Up,
    /// It does not answer.
    Lost {
        since: Timestamp,
        reason: String,
    },
}

/// The knowledge that all panes share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The devnet's name.
    pub devnet: String,
    /// Whether it answers.
    pub link: Link,
    /// The hash of its genesis block.
    pub genesis: Option<HashText>,
    /// The newest known block.
    pub height: u64,
    /// The newest blocks, ascending.
    pub blocks: VecDeque<SeenBlock>,
    /// The devnet at a glance.
    pub status: Option<Status>,
    /// Basefees, limits, the threshold rule.
    pub parameters: Option<Parameters>,
}

/// A block's data for charts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenBlock {
    pub height: u64,
    /// The time when it was learnt to be final.
    pub finalized_at: Timestamp,
    /// Number of transactions.
    pub transactions: u32,
    /// Number of timers that fired.
    pub fires: u32,
    pub events: usize,
    /// Number of present runners.
    pub present: u32,
    /// Number of registered runners.
    pub registry_len: u32,
    /// The blocks whose certificates it embeds.
    pub certificate_for: Vec<u64>,
}

impl Shared {
    /// Questions that are always asked, because every pane names runners and validators, and shows
    /// prices.
    pub const WANTS: [Ask; 2] = [Ask::Status, Ask::Parameters];

    /// The initial state: only the devnet's name is known.
    pub const fn new(devnet: String) -> Self {
        Self {
            devnet,
            link: Link::Connecting,
            genesis: None,
            height: 0,
            blocks: VecDeque::new(),
            status: None,
            parameters: None,
        }
    }

    /// Takes in a block; returns whether it is new.
    pub fn block(&mut self, block: &BlockNotice, now: Timestamp) -> bool {
        if self.blocks.back().is_some_and(|last| last.height >= block.height) {
            return false;
        }
        if self.blocks.len() == BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back(SeenBlock {
            height: block.height,
            finalized_at: block.finalized_at.map_or(now, |at| *at),
            transactions: block.transactions,
            fires: block.fires,
            events: block.events.len(),
            present: block.present,
            registry_len: block.registry_len,
            certificate_for: block.certificate_for.clone(),
        });
        self.height = self.height.max(block.height);
        true
    }

    /// A runner's name, by position in the registry.
    pub fn runner(&self, index: usize) -> String {
        let known = self.status.as_ref().and_then(|status| status.runners.get(index));
        known.map_or_else(|| format!("#{index}"), |runner| runner.name.clone())
    }

    /// Number of runners.
    pub fn runners(&self) -> usize {
        let last = self.blocks.back().map_or(0, |block| block.registry_len as usize);
        self.status.as_ref().map_or(0, |status| status.runners.len()).max(last)
    }
}

/// An overlay, or another mode that takes the keys from the panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Panes,
    /// The pane's filter is being typed.
    Filtering,
    /// A command is being typed; with the reason if the last line was not a command.
    Palette(Palette, Option<String>),
    /// A command's output.
    Output(Output),
    /// The keys of the pane, scrolled by this many lines.
    Help(usize),
    /// The command that is equivalent to the pane.
    Equivalent(String),
}

/// A pane and its filter.
#[derive(Debug)]
pub struct Slot {
    pub pane: Box<dyn Pane>,
    pub filter: Filter,
}

/// A frozen picture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frozen {
    /// Blocks and links since the freeze, in order.
    pub held: VecDeque<News>,
    /// Number of events in the held blocks.
    pub behind: u64,
    /// Questions whose answers are in the picture; later answers are not applied.
    pub settled: BTreeSet<Ask>,
}

/// The whole state.
#[derive(Debug)]
pub struct State {
    /// The terminal's size.
    pub size: Size,
    pub look: Look,
    /// The time of the last event.
    pub now: Timestamp,
    pub shared: Shared,
    /// The panes, in the order of their tabs.
    pub panes: Vec<Slot>,
    /// The index of the shown pane.
    pub shown: usize,
    /// Present while the picture is frozen.
    pub frozen: Option<Frozen>,
    /// Answered questions; those that are no longer wanted may be missing.
    pub answered: BTreeSet<Ask>,
    pub mode: Mode,
    /// Commands that the palette completes.
    pub commands: Vec<Completion>,
    /// Number of commands that were run.
    pub runs: u64,
    /// Number of news items that were dropped on the way here.
    pub dropped: u64,
    /// Number of news items that a frozen picture could not hold.
    pub overheld: u64,
    /// Whether the recording is full.
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

    /// The context of a pane.
    pub fn cx(&self, index: usize) -> Cx<'_> {
        Cx {
            shared: &self.shared,
            filter: &self.panes[index].filter,
            look: self.look,
            area: view::areas(self.size).pane,
            now: self.now,
        }
    }

    /// The shown pane, with its context.
    pub fn shown(&mut self) -> (&mut dyn Pane, Cx<'_>) {
        let slot = &mut self.panes[self.shown];
        let cx = Cx {
            shared: &self.shared,
            filter: &slot.filter,
            look: self.look,
            area: view::areas(self.size).pane,
            now: self.now,
        };
        (slot.pane.as_mut(), cx)
    }

    /// Visits all panes.
    pub fn each(&mut self, mut visit: impl FnMut(&mut dyn Pane, &Cx<'_>)) {
        let area = view::areas(self.size).pane;
        for slot in &mut self.panes {
            let cx = Cx {
                shared: &self.shared,
                filter: &slot.filter,
                look: self.look,
                area,
                now: self.now,
            };
            visit(slot.pane.as_mut(), &cx);
        }
    }

    /// Forgets the panes' data, which is about another chain. Filters stay.
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
    panes::ALL.iter().map(|new| Slot { pane: new(), filter: Filter::default() }).collect()
}
