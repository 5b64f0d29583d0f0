//! Data for people: columns and fields.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};
use serde::Serialize;

/// One of many values alike.
pub trait Row: Serialize {
    /// The columns' names; a name that begins with `>` is aligned to the right, without the sign.
    const HEADER: &'static [&'static str];

    /// What people see, a cell for each column.
    fn cells(&self) -> Vec<String>;

    /// What `--quiet` prints.
    fn id(&self) -> String;
}

/// Aligned columns without borders, without a line feed at the end.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|name| name.trim_start_matches('>').to_uppercase()));
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let right = header.get(index).is_some_and(|name| name.starts_with('>'));
        column.set_padding((0, 2));
        if right {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    trim_lines(&table.to_string())
}

/// Names and values below one another, without a line feed at the end.
pub fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<_> = fields
        .iter()
        .map(|(name, value)| {
            let value = value.replace('\n', &format!("\n{:width$}  ", ""));
            format!("{name:width$}  {value}").trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}

fn trim_lines(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "1"], ["longer", "1000"]].map(|row| row.map(str::to_owned).to_vec());
        insta::assert_snapshot!(table(&["name", ">count"], rows), @"
        NAME    COUNT
        a           1
        longer   1000
        ");
    }

    #[test]
    fn fields_keep_their_lines_together() {
        let value = "one\ntwo".to_owned();
        insta::assert_snapshot!(fields(&[("a", value), ("long name", "x".to_owned())]), @"
        a          one
                   two
        long name  x
        ");
    }
}
