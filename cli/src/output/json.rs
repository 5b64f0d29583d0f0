//! Output for programs.

use super::Format;
use serde::Serialize;

/// One document, with a line feed at the end. `Table` has no form for programs and counts as JSON.
pub fn document(format: Format, value: &impl Serialize) -> String {
    let plain = "output is plain data";
    match format {
        Format::Table | Format::Json => serde_json::to_string_pretty(value).expect(plain) + "\n",
        Format::Jsonl => serde_json::to_string(value).expect(plain) + "\n",
        Format::Yaml => serde_yaml::to_string(value).expect(plain),
    }
}

/// One record of an endless sequence.
pub fn record(format: Format, value: &impl Serialize) -> String {
    match format {
        Format::Yaml => format!("---\n{}", document(format, value)),
        _ => document(Format::Jsonl, value),
    }
}
