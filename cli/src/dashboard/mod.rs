//! The terminal dashboard: panes that show a running devnet, fed with news of it.
//!
//! | file | subject |
//! |---|---|
//! | [`log`] | the devnet's log file, piece by piece |
//! | [`lease`] | what a lease server answers |
//! | [`news`] | what panes ask a devnet, what it answers, and what else there is to hear of it |
//! | [`recording`] | news in a file, and from a file instead of a devnet |
//! | [`feed`] | asks a devnet what is wanted, as often as blocks come, and comes back to it |
//! | [`filter`], [`rows`] | what narrows a list, and the cursor in one |
//! | [`look`] | styles of dark, light and colourless terminals |
//! | [`palette`], [`output`] | the command that is typed, and what commands print |
//! | [`panes`] | a file per pane: what it knows, what it wants, its keys |
//! | [`state`] | all that is shown |
//! | [`update`] | what an event changes, and what has to be done about it |
//! | [`view`] | the picture of a state; a file per pane |
//! | [`command`] | commands of the palette as processes |
//! | [`screen`] | the terminal: taken, given back, and its keys |
//! | [`session`] | the loop that binds them |
//!
//! [`update::update`] and [`view::draw`] are pure: the time comes with the event, what has to be
//! done outside goes back as an effect. `news`, `recording`, `feed`, `command`, `screen` and
//! `session` are what knows sockets, files, processes and the clock.
//!
//! A new pane is a file in `panes`, a file in `view` and a line in [`panes::ALL`]; a new question a
//! line in the table of [`news`].

mod command;
mod feed;
mod filter;
mod lease;
mod log;
mod look;
mod news;
mod output;
mod palette;
mod panes;
mod recording;
mod rows;
mod screen;
mod session;
mod state;
mod update;
mod view;

pub use look::Theme;
pub use palette::Completion;
pub use session::{Options, Origin, run};

#[cfg(test)]
mod tests;
