//! What commands print: data to stdout in the format asked for, everything else to stderr.
//!
//! A command builds a value and hands it to [`Ui`], the sole owner of both streams. [`Row`] is one
//! of many alike, [`Document`] stands alone; each says what people see, and serde what programs
//! see. What people see fits their terminal ([`within`]); what programs see may pass a [`Filter`].
//! What jobs wrote is [`Foreign`].

mod decoded;
mod filter;
mod fit;
mod foreign;
pub mod forest;
mod jq;
mod json;
pub mod pipeline;
mod progress;
mod table;
mod template;
mod theme;
pub mod timer;
mod ui;

pub use decoded::{cbor, decoded};
pub use filter::Filter;
pub use fit::{LEAST_ID, cut, cut_lines, has_id, least_width, room, short, width, within};
pub use foreign::Foreign;
pub use progress::Progress;
pub use table::{Row, fields, listed, or_dash, rows, table, table_leaving};
pub use theme::{
    AWAITED, BUSY, DONE, FAILED, FAINT, HEADING, UNDONE, amount, bytes, grouped, millis,
    seconds_since, time, wei,
};
pub use ui::{COLUMNS, Ui, captured, error, raw, warn};

use serde::Serialize;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people: aligned columns, amounts in CBY.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// A JSON document per line.
    Jsonl,
    /// YAML.
    Yaml,
}

/// A value that stands alone.
pub trait Document: Serialize {
    /// What people see, without a line feed at the end.
    fn text(&self) -> String;

    /// What `--quiet` prints: the one thing that a script needs; may be of several lines.
    fn id(&self) -> String;
}
