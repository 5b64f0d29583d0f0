//! Data for people: columns and fields, as wide as [`super::within`] says.

use super::fit::{cut, has_id, least_width, room, width, wrap};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};
use serde::Serialize;

/// The fewest columns of a text of several words, of a name, and of a field's value.
const LEAST_TEXT: usize = 16;
const LEAST_NAME: usize = 8;
const LEAST_VALUE: usize = 20;

/// Columns between two of a table.
const GAP: usize = 2;

/// One of many values alike.
pub trait Row: Serialize {
    /// The columns' names; a name that begins with `>` is aligned to the right, without the sign.
    const HEADER: &'static [&'static str];

    /// What people see, a cell for each column.
    fn cells(&self) -> Vec<String>;

    /// What `--quiet` prints.
    fn id(&self) -> String;
}

/// Aligned columns without borders, without a line feed at the end. Where there is too little
/// room, ids lose their middle first, then texts their end, then names; numbers stay. Rows that
/// still do not fit are printed one below another, each as fields.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let Some(columns) = room() else { return aligned(header, rows) };
    match widths(header, &rows, columns) {
        Some(widths) => {
            let fit = |row: Vec<String>| {
                let cells = row.into_iter().zip(&widths);
                cells.map(|(cell, width)| fit_cell(&cell, *width)).collect()
            };
            aligned(header, rows.into_iter().map(fit).collect())
        }
        None if rows.is_empty() => wrap(&aligned(header, rows), columns),
        None => below_one_another(header, rows),
    }
}

fn fit_cell(cell: &str, width: usize) -> String {
    cell.split('\n').map(|line| cut(line, width)).collect::<Vec<_>>().join("\n")
}

fn title(name: &str) -> &str {
    name.trim_start_matches('>')
}

fn aligned(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|name| title(name).to_uppercase()));
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        let right = header.get(index).is_some_and(|name| name.starts_with('>'));
        column.set_padding((0, GAP as u16));
        if right {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    trim_lines(&table.to_string())
}

fn below_one_another(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let titles: Vec<_> = header.iter().map(|name| title(name)).collect();
    let records: Vec<_> = rows
        .into_iter()
        .map(|row| fields(&titles.iter().copied().zip(row).collect::<Vec<_>>()))
        .collect();
    records.join("\n\n")
}

/// What gives way, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Id,
    Text,
    Name,
    /// Never: half a number is another number.
    Number,
}

/// How wide each column may be so that all fit; `None` where they cannot.
fn widths(header: &[&str], rows: &[Vec<String>], columns: usize) -> Option<Vec<usize>> {
    /// A column: what it holds, how wide it is, and how narrow it may become without its ids'
    /// middles.
    struct Column {
        content: Content,
        width: usize,
        short: usize,
        title: usize,
    }
    let mut all: Vec<_> = header
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let cells = rows.iter().filter_map(|row| row.get(index)).flat_map(|cell| cell.lines());
            let title = width(title(name));
            let widest = |measure: fn(&str) -> usize| {
                cells.clone().map(measure).max().unwrap_or(0).max(title)
            };
            let content = if name.starts_with('>') {
                Content::Number
            } else if cells.clone().any(has_id) {
                Content::Id
            } else if cells.clone().any(|line| line.contains(' ')) {
                Content::Text
            } else {
                Content::Name
            };
            Column { content, width: widest(width), short: widest(least_width), title }
        })
        .collect();
    let gaps = GAP * header.len().saturating_sub(1);
    let mut excess = all.iter().map(|c| c.width).sum::<usize>() + gaps;
    excess = excess.saturating_sub(columns);
    // Ids first, then what stands beside them in the same cell as if it were text.
    let stages: [(&[Content], Option<usize>); 3] = [
        (&[Content::Id], None),
        (&[Content::Id, Content::Text], Some(LEAST_TEXT)),
        (&[Content::Name], Some(LEAST_NAME)),
    ];
    for (contents, least) in stages {
        while excess > 0 {
            let floor = |c: &Column| least.unwrap_or(c.short).max(c.title);
            let widest = all
                .iter_mut()
                .filter(|c| contents.contains(&c.content) && c.width > floor(c))
                .max_by_key(|c| c.width);
            let Some(widest) = widest else { break };
            widest.width -= 1;
            excess -= 1;
        }
    }
    (excess == 0).then(|| all.iter().map(|c| c.width).collect())
}

/// Names in one cell; `-` where there are none.
pub fn listed(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

/// Names and values below one another, without a line feed at the end; `-` where there is no value.
/// Where there is too little
/// room, values go on below themselves, and ids lose their middle.
pub fn fields(fields: &[(&str, String)]) -> String {
    let names = fields.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let room = room().map(|columns| columns.saturating_sub(names + GAP).max(LEAST_VALUE));
    let lines: Vec<_> = fields
        .iter()
        .map(|(name, value)| {
            let value = if value.trim().is_empty() { "-" } else { value };
            let value = match room {
                Some(room) => wrap(value, room),
                None => value.to_owned(),
            };
            let value = value.replace('\n', &format!("\n{:names$}  ", ""));
            format!("{name:names$}  {value}").trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}

fn trim_lines(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A value in a table or among fields; `-` for none.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::within;

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

    #[test]
    fn a_field_without_a_value_says_so() {
        assert_eq!(fields(&[("a", String::new()), ("b", "1".to_owned())]), "a  -\nb  1");
    }

    fn rows() -> Vec<Vec<String>> {
        let row = |name: &str, byte: &str, count: &str, about: &str| {
            vec![name.to_owned(), format!("0x{}", byte.repeat(20)), count.to_owned(), about.into()]
        };
        vec![
            row("runner-0", "1a", "7", "connected to every validator"),
            row("a-runner-with-a-name", "2b", "1,234,567", "gone"),
        ]
    }

    fn drawn(columns: usize) -> String {
        within(Some(columns), || table(&["name", "address", ">jobs", "state"], rows()))
    }

    #[test]
    fn what_gives_way_is_ids_then_texts_then_names() {
        insta::assert_snapshot!(drawn(107), @"
        NAME                  ADDRESS                                          JOBS  STATE
        runner-0              0x1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a          7  connected to every validator
        a-runner-with-a-name  0x2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b  1,234,567  gone
        ");
        insta::assert_snapshot!(drawn(80), @"
        NAME                  ADDRESS                 JOBS  STATE
        runner-0              0x1a1a1a1a1a…1a1a          7  connected to every validator
        a-runner-with-a-name  0x2b2b2b2b2b…2b2b  1,234,567  gone
        ");
        insta::assert_snapshot!(drawn(64), @"
        NAME                  ADDRESS             JOBS  STATE
        runner-0              0x1a1a1a…1a1a          7  connected to ev…
        a-runner-with-a-name  0x2b2b2b…2b2b  1,234,567  gone
        ");
        insta::assert_snapshot!(drawn(52), @"
        NAME      ADDRESS             JOBS  STATE
        runner-0  0x1a1a1a…1a1a          7  connected to ev…
        a-run…me  0x2b2b2b…2b2b  1,234,567  gone
        ");
        insta::assert_snapshot!(drawn(40), @"
        name     runner-0
        address  0x1a1a1a1a1a1a1a1a1a1a1a1a…1a1a
        jobs     7
        state    connected to every validator

        name     a-runner-with-a-name
        address  0x2b2b2b2b2b2b2b2b2b2b2b2b…2b2b
        jobs     1,234,567
        state    gone
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in 30..120 {
            let text = drawn(columns);
            let widest = text.lines().map(width).max();
            assert!(widest <= Some(columns), "{columns}:\n{text}");
            // No number is cut, and no line that has an id begins or ends within it.
            assert!(text.contains("1,234,567"), "{text}");
        }
    }

    #[test]
    fn fields_go_on_below_themselves() {
        let hash = format!("0x{}", "ab".repeat(32));
        let fields = [("hash", hash), ("runners", "runner-0, runner-1, runner-2".to_owned())];
        insta::assert_snapshot!(within(Some(40), || super::fields(&fields)), @"
        hash     0xabababababababababababab…abab
        runners  runner-0, runner-1, runner-2
        ");
    }

    #[test]
    fn a_header_alone_fits_too() {
        let header = ["name", "a-long-column", "another-long-column"];
        assert_eq!(within(Some(30), || table(&header, [])).lines().count(), 2);
    }
}
