//! The output of commands: data to stdout in the chosen format, everything else to stderr.
//!
//! A command builds a value and passes it to [`Ui`], the sole owner of both streams. [`Row`] is one
//! of many values of a kind, [`Document`] a single value; each defines the text for people, and
//! serde the form for programs. Text for people fits their terminal ([`within`]); output for
//! programs may pass a [`Filter`]. Jobs' output is [`Foreign`].

mod data;
mod decoded;
mod filter;
mod fit;
mod foreign;
pub mod forest;
mod jq;
pub mod pipeline;
mod progress;
mod table;
mod template;
mod theme;
pub mod timer;
mod ui;

pub use data::{data, known};
pub use decoded::{cbor, decoded};
pub use filter::Filter;
pub use fit::{LEAST_ID, cut, fitted, has_id, least_width, room, short, width, within};
pub use foreign::Foreign;
pub use progress::Progress;
pub(crate) use table::columns;
pub use table::{
    ColumnOf, Row, any_rows, any_table, any_table_of, fields, listed, or_dash, paragraphs, rows,
    table, table_leaving, table_of,
};
pub use theme::{
    AWAITED, BUSY, DONE, EIGHTHS, FAILED, FAINT, HEADING, UNDONE, amount, bytes, callback, grouped,
    millis, named, progress, seconds_since, share, time, to_ms, wei,
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

/// A single value, as opposed to a list.
pub trait Document: Serialize {
    /// The text for people, without a line feed at the end.
    fn text(&self) -> String;

    /// The output with `--quiet`: the one thing that a script needs; may have several lines.
    fn id(&self) -> String;
}

/// One document for programs, with a line feed at the end. `Table` counts as JSON.
fn document(format: Format, value: &impl Serialize) -> String {
    let plain = "output is plain data";
    match format {
        Format::Table | Format::Json => serde_json::to_string_pretty(value).expect(plain) + "\n",
        Format::Jsonl => serde_json::to_string(value).expect(plain) + "\n",
        Format::Yaml => serde_yaml::to_string(value).expect(plain),
    }
}

/// One record of an endless sequence, for programs.
fn record(format: Format, value: &impl Serialize) -> String {
    match format {
        Format::Yaml => format!("---\n{}", document(format, value)),
        _ => document(Format::Jsonl, value),
    }
}
