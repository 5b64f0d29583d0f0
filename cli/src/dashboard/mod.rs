//! The terminal dashboard: panes that show a running devnet, fed with news of it.
//!
//! | file | subject |
//! |---|---|
//! | [`log`] | the devnet's log file, piece by piece |
//! | [`lease`] | what a lease server answers |
//! | [`news`] | the panes' questions to a devnet, its answers, and its other news |
//! | [`recording`] | records news in a file, and plays a file instead of a devnet |
//! | [`feed`] | requests what the panes want, at most once per block, and reconnects |
//! | [`filter`], [`arrangement`], [`rows`] | a list's filter, its order and columns, its cursor |
//! | [`look`] | styles of dark, light and colourless terminals |
//! | [`palette`], [`output`] | the typed command, and the commands' output |
//! | [`shared`] | what all panes know |
//! | [`trouble`] | injected faults in words |
//! | [`pane`] | what a pane is, and what it is given |
//! | [`drawing`] | tables, charts and pages, which panes draw |
//! | [`panes`] | a folder per pane: its data, its questions, its keys, its picture |
//! | [`state`] | all that is shown |
//! | [`view`] | the picture of a state: tabs, the shown pane, a footer, overlays |
//! | [`update`] | the state's change by an event, and the resulting effects |
//! | [`command`] | commands of the palette as processes |
//! | [`screen`] | the terminal: raw mode, its restoration, and its keys |
//! | [`session`] | the loop that connects them |
//!
//! A file uses only those above it.
//!
//! [`update::update`] and [`view::draw`] are pure: the time comes with the event, and outside work
//! is returned as an effect. Only `news`, `recording`, `feed`, `command`, `screen` and `session`
//! know sockets, files, processes and the clock.
//!
//! A new pane is a folder in `panes` and a line in [`panes::ALL`]; a new question is a line in the
//! table of [`news`].

mod arrangement;
mod command;
mod drawing;
mod feed;
mod filter;
mod lease;
mod log;
mod look;
mod news;
mod output;
mod palette;
mod pane;
mod panes;
mod recording;
mod rows;
mod screen;
mod session;
mod shared;
mod state;
mod trouble;
mod update;
mod view;

pub use log::names;
pub use look::Theme;
pub use palette::{Completion, quoted};
pub use session::{Options, Origin, run};

#[cfg(test)]
mod tests;
