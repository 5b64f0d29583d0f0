//! Data for programs.

use super::Format;
use serde::Serialize;

/// One document, with the line feed it ends with. `Table` has no such form and counts as JSON.
pub fn document(format: Format, value: &impl Serialize) -> String {
    let plain = "output is plain data";
    match format {
        Format::Table | Format::Json => serde_json::to_string_pretty(value).expect(plain) + "\n",
        Format::Jsonl => serde_json::to_string(value).expect(plain) + "\n",
        Format::Yaml => serde_yaml::to_string(value).expect(plain),
    }
}

/// One of an endless run of documents.
pub fn record(format: Format, value: &impl Serialize) -> String {
    match format {
        Format::Yaml => format!("---\n{}", document(format, value)),
        _ => document(Format::Jsonl, value),
    }
}
