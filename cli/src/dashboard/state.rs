//! All that is shown: what is known of the devnet, the panes, and what lies over them.

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

/// Blocks that are remembered; a chart of the widest terminal shows fewer.
pub const BLOCKS: usize = 240;

/// News that a frozen picture holds back; older ones are counted as dropped.
pub const HELD: usize = 4_096;

/// Something that changes the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A key.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize(Size),
    /// Time has passed.
    Tick,
    /// Something was heard of the devnet.
    News(News),
    /// Something was heard of a command, by the number of its run.
    Child(u64, Heard),
    /// What can follow in the palette's line.
    Offered(Offer),
    /// So much news was dropped altogether.
    Dropped(u64),
    /// The file that news are written to is full.
    RecordingFull,
}

/// Something to do outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// End.
    Quit,
    /// Give the terminal back until the process is continued.
    Suspend,
    /// Start a command.
    Run {
        /// The number of its run.
        run: u64,
        /// Its arguments, without the program.
        args: Vec<String>,
    },
    /// Ask what can follow these words of a command.
    Complete {
        /// As they are typed, with the space behind them.
        head: String,
        /// The words.
        words: Vec<String>,
    },
    /// End the command that runs.
    Kill,
    /// Hand a text to the terminal's clipboard.
    Copy(String),
}

/// Whether the devnet answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// Nothing was heard yet.
    Connecting,
    /// It does.
    Up,
    /// It does not.
    Lost {
        /// Since when.
        since: Timestamp,
        /// Why.
        reason: String,
    },
}

/// What every pane may look at.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The devnet's name.
    pub devnet: String,
    /// Whether it answers.
    pub link: Link,
    /// Which chain it has.
    pub genesis: Option<HashText>,
    /// The newest block that was heard of.
    pub height: u64,
    /// The newest blocks, ascending.
    pub blocks: VecDeque<Seen>,
    /// The devnet at a glance.
    pub status: Option<Status>,
    /// Basefees, limits, the threshold rule.
    pub parameters: Option<Parameters>,
}

/// A block as charts need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its height.
    pub height: u64,
    /// When it was learnt that it is final.
    pub finalized_at: Timestamp,
    /// How many transactions it holds.
    pub transactions: u32,
    /// How many timers fired in it.
    pub fires: u32,
    /// How many events it has.
    pub events: usize,
    /// How many runners its presence has.
    pub present: u32,
    /// How many runners are registered.
    pub registry_len: u32,
    /// The blocks whose certificates it embeds.
    pub certificate_for: Vec<u64>,
}

impl Shared {
    /// What is always asked: every pane names runners and validators, and shows prices.
    pub const WANTS: [Ask; 2] = [Ask::Status, Ask::Parameters];

    /// Nothing is known of the devnet but its name.
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

    /// Takes in a block; whether it is a new one.
    pub fn block(&mut self, block: &BlockNotice, now: Timestamp) -> bool {
        if self.blocks.back().is_some_and(|last| last.height >= block.height) {
            return false;
        }
        if self.blocks.len() == BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back(Seen {
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

    /// A runner's name, by its place in the registry.
    pub fn runner(&self, index: usize) -> String {
        let known = self.status.as_ref().and_then(|status| status.runners.get(index));
        known.map_or_else(|| format!("#{index}"), |runner| runner.name.clone())
    }

    /// How many runners there are.
    pub fn runners(&self) -> usize {
        let last = self.blocks.back().map_or(0, |block| block.registry_len as usize);
        self.status.as_ref().map_or(0, |status| status.runners.len()).max(last)
    }
}

/// What lies over the panes, or takes the keys from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Panes,
    /// The pane's filter is typed.
    Filtering,
    /// A command is typed; after a line that was none: why.
    Palette(Palette, Option<String>),
    /// What a command prints.
    Output(Output),
    /// The keys of the pane, scrolled by so many lines.
    Help(usize),
    /// The command that shows the same as the pane.
    Equivalent(String),
}

/// A pane and its filter.
#[derive(Debug)]
pub struct Slot {
    /// The pane.
    pub pane: Box<dyn Pane>,
    /// What narrows it.
    pub filter: Filter,
}

/// A picture that stands still.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frozen {
    /// Blocks and links since then, in order.
    pub held: VecDeque<News>,
    /// How many events there were in them.
    pub behind: u64,
    /// Asks whose answers are in the picture: later ones are not let into it.
    pub settled: BTreeSet<Ask>,
}

/// All that is shown.
#[derive(Debug)]
pub struct State {
    /// The terminal's size.
    pub size: Size,
    /// Its styles.
    pub look: Look,
    /// The time of the last event.
    pub now: Timestamp,
    /// What every pane may look at.
    pub shared: Shared,
    /// The panes, in the order of their tabs.
    pub panes: Vec<Slot>,
    /// The one that is shown.
    pub shown: usize,
    /// Whether the picture stands still.
    pub frozen: Option<Frozen>,
    /// Asks that were answered; those that nobody wants any more may be missing.
    pub answered: BTreeSet<Ask>,
    /// What lies over the panes.
    pub mode: Mode,
    /// Commands that the palette completes.
    pub commands: Vec<Completion>,
    /// How many commands were run.
    pub runs: u64,
    /// News that was dropped on the way here.
    pub dropped: u64,
    /// News that a frozen picture could not hold.
    pub overheld: u64,
    /// Whether the file that news are written to is full.
    pub recording_full: bool,
    /// Whether the devnet comes from a file.
    pub replay: bool,
}

impl State {
    /// The beginning.
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

    /// What the shown pane wants, the most important first; of all panes where `all` says so.
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

    /// What a pane is told of its surroundings.
    pub fn cx(&self, index: usize) -> Cx<'_> {
        Cx {
            shared: &self.shared,
            filter: &self.panes[index].filter,
            look: self.look,
            area: view::areas(self.size).pane,
            now: self.now,
        }
    }

    /// The pane that is shown, and what it is told of its surroundings.
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

    /// Runs over all panes.
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

    /// Forgets what panes know: it was of another chain. Filters stay.
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
