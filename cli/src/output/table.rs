//! Data for people: tables and fields, as wide as [`super::within`] allows.

use super::fit::{LEAST_ID, cut, has_id, least_width, leave_out, room, width, wrap};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};
use serde::Serialize;
use std::collections::BTreeSet;

/// The minimum columns of a text of several words, and of a field's value.
const LEAST_TEXT: usize = 24;
const LEAST_VALUE: usize = 20;

/// The minimum columns of an id in a table: ten of its digits distinguish it from others, in the
/// form of [`super::short`].
const LEAST_CELL_ID: usize = LEAST_ID + 4;

const KEPT: usize = 2;

const GAP: usize = 2;

/// One of many values of a kind.
pub trait Row: Serialize {
    /// The columns' names. A name that begins with `>` is aligned to the right, one that begins
    /// with `=` is never cut; neither sign is shown.
    const HEADER: &'static [&'static str];

    /// The least important columns, without signs: if there is too little room, they are left out
    /// in this order, then the others, the last first. The first column always stays.
    const LEAST: &'static [&'static str] = &[];

    /// The text for people, a cell for each column.
    fn cells(&self) -> Vec<String>;

    /// The output with `--quiet`.
    fn id(&self) -> String;
}

/// The columns of a [`Row`], each name next to its cell; `let`s before them are for the cells.
macro_rules! columns {
    ($row:ident; $(let $name:pat = $value:expr;)* $($column:literal => $cell:expr,)+) => {
        const HEADER: &'static [&'static str] = &[$($column),+];

        fn cells(&$row) -> Vec<String> {
            $(let $name = $value;)*
            vec![$($cell),+]
        }
    };
}

pub(crate) use columns;

/// Aligned columns without borders, without a line feed at the end. If there is too little room,
/// ids lose their middle first, then texts their end; then columns are left out, the last first,
/// and reported to [`super::within`]. Names, numbers and URLs are never cut.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    draw(header, &[], rows.into_iter().collect())
}

/// A [`table`] that leaves out the columns in `least` first, in this order.
pub fn table_leaving(
    least: &[&str],
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    draw(header, least, rows.into_iter().collect())
}

/// A [`table`], or an empty text without rows.
pub fn any_table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    if rows.is_empty() { String::new() } else { table(header, rows) }
}

/// A column of a table of `T`s: its name, and the text of its cells.
pub type ColumnOf<T> = (&'static str, fn(&T) -> String);

/// A [`table_leaving`] of `values`, one row each.
pub fn table_of<T>(least: &[&str], columns: &[ColumnOf<T>], values: &[T]) -> String {
    let header: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let row = |value| columns.iter().map(|(_, cell)| cell(value)).collect();
    draw(&header, least, values.iter().map(row).collect())
}

/// A [`table_of`] values, or an empty text without any.
pub fn any_table_of<T>(columns: &[ColumnOf<T>], values: &[T]) -> String {
    if values.is_empty() { String::new() } else { table_of(&[], columns, values) }
}

/// Texts with an empty line between them; empty ones are left out.
pub fn paragraphs<const N: usize>(texts: [String; N]) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The [`rows`] of values, or an empty text without any.
pub fn any_rows<T: Row>(values: &[T]) -> String {
    if values.is_empty() { String::new() } else { rows(values) }
}

/// A [`table`] of values of a kind, whose type sets what is left out first.
pub fn rows<'a, T: Row + 'a>(rows: impl IntoIterator<Item = &'a T>) -> String {
    draw(T::HEADER, T::LEAST, rows.into_iter().map(T::cells).collect())
}

/// A text that may be an actor's or a job's, without characters that a terminal would take for
/// commands.
fn without_controls(text: &str) -> String {
    let is_command = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.replace(is_command, "\u{fffd}")
}

fn draw(header: &[&str], least: &[&str], rows: Vec<Vec<String>>) -> String {
    let plain = |row: Vec<String>| row.iter().map(|cell| without_controls(cell)).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(plain).collect();
    let Some(columns) = room() else { return aligned(header, rows) };
    let all: Vec<_> = header
        .iter()
        .enumerate()
        .map(|(index, name)| TableColumn::new(name, index, &rows))
        .collect();
    let kept = layout(&all, &order(header, least), columns);
    if !rows.is_empty() {
        let is_kept = |index| kept.iter().any(|(kept, _)| *kept == index);
        let left = (0..header.len()).filter(|index| !is_kept(*index));
        left.for_each(|index| leave_out(title(header[index])));
    }
    let header: Vec<_> = kept.iter().map(|(index, _)| header[*index]).collect();
    let fit = |row: Vec<String>| {
        let cells = kept.iter().map_while(|(index, width)| Some((row.get(*index)?, width)));
        cells.map(|(cell, width)| fit_cell(cell, *width)).collect()
    };
    aligned(&header, rows.into_iter().map(fit).collect())
}

fn fit_cell(cell: &str, width: usize) -> String {
    cell.split('\n').map(|line| cut(line, width)).collect::<Vec<_>>().join("\n")
}

fn title(name: &str) -> &str {
    name.trim_start_matches(['>', '='])
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

/// The width of a column, and its minimum widths without its ids' middles, and without its texts'
/// ends.
#[derive(Debug, Clone, Copy)]
struct TableColumn {
    width: usize,
    short: usize,
    least: usize,
}

impl TableColumn {
    fn new(name: &str, index: usize, rows: &[Vec<String>]) -> Self {
        let lines = rows.iter().filter_map(|row| row.get(index)).flat_map(|cell| cell.lines());
        let title_width = width(title(name));
        let widest = |measure: fn(&str) -> usize| {
            lines.clone().map(measure).max().unwrap_or(0).max(title_width)
        };
        let full = widest(width);
        let text = full.min(LEAST_TEXT.max(title_width));
        // A cut number would be a wrong number, and names and URLs are there to be copied.
        let whole = name.starts_with(['>', '=']) || lines.clone().any(|line| line.contains("://"));
        let (short, least) = if !whole && lines.clone().any(has_id) {
            let short = widest(|line| least_width(line, LEAST_CELL_ID));
            (short, short.min(text))
        } else if !whole && lines.clone().any(|line| line.contains(' ')) {
            (full, text)
        } else {
            (full, full)
        };
        Self { width: full, short, least }
    }
}

/// The columns in the order in which they are left out, without the first one.
fn order(header: &[&str], least: &[&str]) -> Vec<usize> {
    let place = |name: &&str| header.iter().position(|other| title(other) == *name);
    let named: Vec<_> = least.iter().filter_map(place).collect();
    debug_assert_eq!(named.len(), least.len(), "{least:?} are columns of {header:?}");
    let rest = (1..header.len()).rev().filter(|index| !named.contains(index));
    named.iter().copied().chain(rest).collect()
}

/// The columns that are drawn, and the maximum width of each so that all fit.
fn layout(all: &[TableColumn], order: &[usize], columns: usize) -> Vec<(usize, usize)> {
    let mut kept: BTreeSet<usize> = (0..all.len()).collect();
    let mut left_out = Vec::new();
    for index in order {
        if kept.len() <= KEPT || widths(all, &kept, columns).is_ok() {
            break;
        }
        kept.remove(index);
        left_out.push(*index);
    }
    // A narrow column may fit after a wider, more important one was left out.
    for index in left_out.into_iter().rev() {
        kept.insert(index);
        if widths(all, &kept, columns).is_err() {
            kept.remove(&index);
        }
    }
    let widths = widths(all, &kept, columns).unwrap_or_else(|narrowest| narrowest);
    kept.into_iter().zip(widths).collect()
}

/// The maximum width of each column so that all fit, or the minimum widths if they cannot.
fn widths(
    all: &[TableColumn],
    kept: &BTreeSet<usize>,
    columns: usize,
) -> Result<Vec<usize>, Vec<usize>> {
    let mut all: Vec<_> = kept.iter().map(|index| all[*index]).collect();
    let gaps = GAP * all.len().saturating_sub(1);
    let mut excess = all.iter().map(|column| column.width).sum::<usize>() + gaps;
    excess = excess.saturating_sub(columns);
    // Shorten ids first, then other text in cells with ids.
    let floors: [fn(&TableColumn) -> usize; 2] = [|column| column.short, |column| column.least];
    for floor in floors {
        while excess > 0 {
            let widest =
                all.iter_mut().filter(|c| c.width > floor(c)).max_by_key(|column| column.width);
            let Some(widest) = widest else { break };
            widest.width -= 1;
            excess -= 1;
        }
    }
    let widths = all.iter().map(|column| column.width).collect();
    if excess == 0 { Ok(widths) } else { Err(widths) }
}

/// Names in one cell; `-` for an empty list.
pub fn listed(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

/// Lines of names and values, without a line feed at the end; `-` for a missing value. If there is
/// too little room, values are wrapped, and moved below their name if one of their words is too
/// wide. No word is cut.
pub fn fields(fields: &[(&str, String)]) -> String {
    let names = fields.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let columns = room();
    let room = columns.map(|columns| columns.saturating_sub(names + GAP).max(LEAST_VALUE));
    let lines: Vec<_> = fields
        .iter()
        .map(|(name, value)| {
            let value = &without_controls(value);
            let value = if value.trim().is_empty() { "-" } else { value };
            let (Some(columns), Some(room)) = (columns, room) else {
                return in_line(name, names, value);
            };
            match value.split_whitespace().any(|word| width(word) > room) {
                false => in_line(name, names, &wrap(value, room)),
                true => {
                    let value = wrap(value, columns.saturating_sub(GAP).max(LEAST_VALUE));
                    format!("{name}\n{:GAP$}{}", "", value.replace('\n', &format!("\n{:GAP$}", "")))
                }
            }
        })
        .collect();
    lines.join("\n")
}

/// A name padded to `names` columns, then its value; further lines of the value are indented below
/// the first.
fn in_line(name: &str, names: usize, value: &str) -> String {
    let value = value.replace('\n', &format!("\n{:names$}  ", ""));
    format!("{name:names$}  {value}").trim_end().to_owned()
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
    use crate::output::{fit::left_out, within};

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
    fn what_gives_way_is_ids_then_texts_then_columns() {
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
        NAME                  ADDRESS                               JOBS
        runner-0              0x1a1a1a1a1a1a1a1a1a1a1a1a…1a1a          7
        a-runner-with-a-name  0x2b2b2b2b2b2b2b2b2b2b2b2b…2b2b  1,234,567
        ");
        insta::assert_snapshot!(drawn(52), @"
        NAME                  ADDRESS                   JOBS
        runner-0              0x1a1a1a1a1a1a…1a1a          7
        a-runner-with-a-name  0x2b2b2b2b2b2b…2b2b  1,234,567
        ");
        insta::assert_snapshot!(drawn(40), @"
        NAME                  ADDRESS
        runner-0              0x1a1a1a1a1a1…1a1a
        a-runner-with-a-name  0x2b2b2b2b2b2…2b2b
        ");
    }

    #[test]
    fn columns_that_matter_least_are_left_out_first() {
        let header = ["name", "control API", ">process", ">height", "state"];
        let row = ["local", "http://127.0.0.1:20123", "4242", "70", "running"];
        let check = |least: &[&str], columns, expected: &[&str], gone: &[&str]| {
            let row = row.map(str::to_owned).to_vec();
            let text = within(Some(columns), || table_leaving(least, &header, [row]));
            let titles: Vec<_> = text.lines().next().unwrap().split("  ").map(str::trim).collect();
            let titles: Vec<_> = titles.into_iter().filter(|title| !title.is_empty()).collect();
            assert_eq!(titles, expected, "{columns}");
            assert_eq!(left_out(), gone, "{columns}");
        };
        let all = ["NAME", "CONTROL API", "PROCESS", "HEIGHT", "STATE"];
        let least = ["process", "control API"];
        check(&least, 55, &all, &[]);
        check(&least, 54, &["NAME", "CONTROL API", "HEIGHT", "STATE"], &["process"]);
        // A narrow column returns after a wide one was left out.
        check(&least, 45, &["NAME", "PROCESS", "HEIGHT", "STATE"], &["control API"]);
        check(&least, 25, &["NAME", "HEIGHT", "STATE"], &["control API", "process"]);
        check(&[], 54, &["NAME", "CONTROL API", "PROCESS", "HEIGHT"], &["state"]);
        // The first column stays with one more, even without room.
        check(&least, 5, &["NAME", "HEIGHT"], &["control API", "process", "state"]);
        // A URL is never cut.
        let rest = &["process", "height", "state"];
        check(rest, 20, &["NAME", "CONTROL API"], rest);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in 39..120 {
            let text = drawn(columns);
            let widest = text.lines().map(width).max();
            assert!(widest <= Some(columns), "{columns}:\n{text}");
            // No name is cut, and no id becomes useless.
            assert!(text.contains("a-runner-with-a-name"), "{text}");
            assert!(!text.contains("0x2b") || text.contains("0x2b2b2b2b2b"), "{text}");
        }
    }

    #[test]
    fn a_field_goes_on_below_itself_and_no_word_of_it_is_cut() {
        let key = format!("0x{}", "ab".repeat(20));
        let fields = [("key", key), ("runners", "runner-0, runner-1, runner-2".to_owned())];
        insta::assert_snapshot!(within(Some(40), || super::fields(&fields)), @"
        key
          0xabababababababababababababababababababab
        runners  runner-0, runner-1, runner-2
        ");
        insta::assert_snapshot!(within(Some(50), || super::fields(&fields)), @"
        key
          0xabababababababababababababababababababab
        runners  runner-0, runner-1, runner-2
        ");
        insta::assert_snapshot!(within(Some(80), || super::fields(&fields)), @"
        key      0xabababababababababababababababababababab
        runners  runner-0, runner-1, runner-2
        ");
    }

    #[test]
    fn a_header_alone_fits_too() {
        let header = ["name", "a-long-column", "another-long-column"];
        assert_eq!(within(Some(30), || table(&header, [])), "NAME  A-LONG-COLUMN");
        assert!(left_out().is_empty(), "there is nothing that is not shown");
    }
}
