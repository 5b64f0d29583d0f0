//! Aligned columns that fit: a header, and rows, one of which is under the cursor.

use crate::{
    dashboard::{
        arrangement::{Column, Sorting},
        look::Look,
        pane::Cx,
    },
    output::{LEAST_ID, cut, least_width, width},
};
use ratatui::{buffer::Buffer, layout::Rect, style::Style};

/// Columns between two of the table's columns.
const GAP: usize = 2;

/// The minimum width of a column that is cut. Columns with ids are cut first.
const NARROWEST: usize = 6;

pub type Cell = (String, Style);

pub fn plain(text: impl Into<String>) -> Cell {
    (text.into(), Style::new())
}

/// Draws a header and below it the visible rows; `selected` is the row under the cursor. If there
/// is too little room, columns that may be cut are cut, the widest first; then columns are left out
/// from the right.
pub fn grid(
    columns: &[Column],
    rows: &[Vec<Cell>],
    selected: Option<usize>,
    area: Rect,
    look: Look,
    buffer: &mut Buffer,
) {
    let widths = widths(columns, rows, area.width.into());
    let mut lines = area.rows();
    let Some(header) = lines.next() else { return };
    let mut x = header.x;
    for (column, width) in columns.iter().zip(&widths) {
        let name = format!("{}{}", column.name.to_uppercase(), column.mark);
        let name = aligned(&name, *width, column.right);
        buffer.set_stringn(x, header.y, name, *width, look.title());
        x += (*width + GAP) as u16;
    }
    for ((index, row), line) in rows.iter().enumerate().zip(lines) {
        let is_selected = selected == Some(index);
        if is_selected {
            buffer.set_style(line, look.selected());
        }
        let mut x = line.x;
        for ((column, width), (text, style)) in columns.iter().zip(&widths).zip(row) {
            let text = aligned(&cut(text, *width), *width, column.right);
            let style = if is_selected { look.selected().patch(*style) } else { *style };
            buffer.set_stringn(x, line.y, text, *width, style);
            x += (*width + GAP) as u16;
        }
    }
}

/// Draws a pane's list as a [`grid`] of at most `most` of its columns, as the user has arranged
/// them: the header marks the column that sorts the rows.
pub fn list_grid(
    columns: &[Column],
    most: usize,
    rows: &[Vec<Cell>],
    selected: Option<usize>,
    area: Rect,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
) {
    let shown = (0..columns.len()).filter(|column| cx.arrangement.shows(*column));
    let shown: Vec<usize> = shown.take(most).collect();
    let marked = |index: &usize| {
        let mark = match cx.arrangement.sorting() {
            Some(Sorting { column, descending: false }) if column == *index => "▲",
            Some(Sorting { column, descending: true }) if column == *index => "▼",
            _ => "",
        };
        Column { mark, ..columns[*index] }
    };
    let columns: Vec<_> = shown.iter().map(marked).collect();
    let chosen = |row: &Vec<Cell>| -> Vec<Cell> {
        shown.iter().filter_map(|index| row.get(*index).cloned()).collect()
    };
    let rows: Vec<_> = rows.iter().map(chosen).collect();
    grid(&columns, &rows, selected, area, cx.look, buffer);
}

/// A text padded to `columns` columns, unless it is longer.
pub fn aligned(text: &str, columns: usize, right: bool) -> String {
    let room = " ".repeat(columns.saturating_sub(width(text)));
    if right { room + text } else { text.to_owned() + &room }
}

/// The widths of the columns: as wide as their contents, or cut if that is too much. Columns that
/// are left out are missing at the end.
fn widths(columns: &[Column], rows: &[Vec<Cell>], room: usize) -> Vec<usize> {
    let widest = |of: fn(&str) -> usize| {
        let mut widths: Vec<_> =
            columns.iter().map(|column| width(column.name) + width(column.mark)).collect();
        for row in rows {
            for (width, (text, _)) in widths.iter_mut().zip(row) {
                *width = (*width).max(of(text));
            }
        }
        widths
    };
    let (widths, shortest) = (widest(width), widest(|line| least_width(line, LEAST_ID)));
    let total = |widths: &[usize]| widths.iter().map(|width| width + GAP).sum::<usize>();
    for count in (1..=widths.len()).rev() {
        let mut widths = widths[..count].to_vec();
        for least in [&shortest[..], &vec![NARROWEST; count]] {
            while total(&widths) > room + GAP {
                let shrinks = |index: &usize| columns[*index].cut && widths[*index] > least[*index];
                let widest = (0..count).filter(shrinks).max_by_key(|index| widths[*index]);
                let Some(widest) = widest else { break };
                widths[widest] -= 1;
            }
        }
        if total(&widths) <= room + GAP {
            return widths;
        }
    }
    vec![room]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit() {
        let columns = [Column::text("name"), Column::long("what"), Column::number("height")];
        let rows = vec![vec![plain("a".repeat(10)), plain("b".repeat(30)), plain("7")]];
        let check = |room, expected: &[usize]| {
            assert_eq!(widths(&columns, &rows, room), expected, "{room}");
        };
        check(100, &[10, 30, 6]);
        check(50, &[10, 30, 6]);
        check(49, &[10, 29, 6]);
        check(26, &[10, 6, 6]);
        check(25, &[10, 13]);
        check(18, &[10, 6]);
        check(17, &[10]);
        check(3, &[3]);
    }

    #[test]
    fn ids_give_way_before_words() {
        let columns = [Column::long("id"), Column::long("runners")];
        let rows = vec![vec![plain(format!("0x{}", "7".repeat(64))), plain("a".repeat(20))]];
        let check = |room, expected: &[usize]| {
            assert_eq!(widths(&columns, &rows, room), expected, "{room}");
        };
        check(88, &[66, 20]);
        check(60, &[38, 20]);
        check(35, &[13, 20]);
        check(30, &[13, 15]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = vec![vec![plain("日本"), plain("x")]];
        assert_eq!(widths(&[Column::text("a"), Column::text("b")], &rows, 20), [4, 1]);
        assert_eq!(aligned("日本", 5, false), "日本 ");
        assert_eq!(aligned("日本", 5, true), " 日本");
    }
}
