//! Servers, clients and processes on one host, for whatever speaks HTTP or runs commands.
//!
//! This crate knows nothing of a chain, a devnet or a lease. A module uses only modules above it:
//!
//! | module | subject |
//! |---|---|
//! | [`duration`] | durations in human-readable form |
//! | [`located`] | errors with their place in a text |
//! | [`within`] | whole numbers in a range, for files that people write |
//! | [`host_port`] | a listener's place on a network: an address or a name, and a port |
//! | [`spelling`] | suggestions for misspelled names |
//! | [`nofollow`] | files and directories opened without following links |
//! | [`files`] | files that only their owner can read, and lock files |
//! | [`last_words`] | the messages of panicking tasks |
//! | [`log`] | logs, with write errors ignored |
//! | [`rarely`] | log lines that a peer can cause, bounded |
//! | [`open_files`] | the limit of open files |
//! | [`sse`] | a parser for the text of event streams |
//! | [`openmetrics`] | metrics in Prometheus' text format, rows of series |
//! | [`process`] | a job's processes: their directory, their progress, the end of the whole tree |
//! | [`http`] | HTTP servers: connections and their limits, TLS, bearer tokens |

pub mod duration;
pub mod files;
pub mod host_port;
pub mod http;
pub mod last_words;
pub mod located;
pub mod log;
pub mod nofollow;
pub mod open_files;
pub mod openmetrics;
pub mod process;
pub mod rarely;
pub mod spelling;
pub mod sse;
pub mod within;
