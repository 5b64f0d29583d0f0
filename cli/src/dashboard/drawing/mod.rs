//! What panes and overlays are drawn with.
//!
//! | file | subject |
//! |---|---|
//! | [`grid`] | a table |
//! | [`facts`] | pairs of names and values, in two columns |
//! | [`chart`] | bars |
//! | [`page`] | a scrollable text about one thing |

pub mod chart;
pub mod facts;
pub mod grid;
pub mod page;

pub use super::arrangement::Column;
pub use grid::{Cell, grid, list_grid, plain};
pub use page::Page;

use super::{look::Look, pane::Cx};
use crate::output::{cut, width};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::Line,
    widgets::Widget as _,
};

/// Draws a rule with a title. Returns the area below it.
pub fn section(title: &str, area: Rect, look: Look, buffer: &mut Buffer) -> Rect {
    if area.height == 0 {
        return area;
    }
    let rule = "─".repeat(area.width.into());
    buffer.set_stringn(area.x, area.y, rule, area.width.into(), look.faint());
    if !title.is_empty() {
        let room = usize::from(area.width.saturating_sub(2));
        let title = format!(" {} ", cut(title, room.saturating_sub(2)));
        buffer.set_stringn(area.x + 1, area.y, title, room, look.title());
    }
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// Draws lines from top to bottom, as many as fit.
pub fn lines(lines: impl IntoIterator<Item = Line<'static>>, area: Rect, buffer: &mut Buffer) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

/// Splits an area: `height` rows at most, and the rest.
pub fn split(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    (Rect { height, ..area }, rest)
}

/// The minimum rows of a pane that shows the item under the cursor below its list.
const TALL: u16 = 30;

/// The areas of a list of `rows` rows and of the item under the cursor, which has no rows if there
/// is too little room.
pub fn beneath(area: Rect, rows: usize) -> (Rect, Rect) {
    if area.height < TALL || rows == 0 {
        return split(area, area.height);
    }
    // A short list leaves more room, up to three quarters.
    let wanted = rows.min(usize::from(area.height)) as u16 + 2;
    split(area, wanted.clamp(area.height / 4, area.height / 2))
}

/// Number of a list's rows that fit into an area, below the rule and the header.
pub fn list_rows(area: Rect) -> usize {
    area.height.saturating_sub(2).into()
}

/// The visible row of a list at a position, below the rule and the header.
pub fn list_row_at(area: Rect, at: Position) -> Option<usize> {
    let line = at.y.checked_sub(area.y + 2)?;
    area.contains(at).then_some(line.into())
}

/// Explains why a list is empty, and how to show more: `narrowed` is the hint if more than the
/// filter hides rows.
pub fn unlike(what: &str, narrowed: Option<&str>, cx: &Cx<'_>) -> String {
    let filter = (!cx.filter.is_empty()).then_some("esc clears the filter");
    let hints: Vec<_> = filter.into_iter().chain(narrowed).collect();
    match hints.is_empty() {
        true => format!("no {what} like that"),
        false => format!("no {what} like that: {}", hints.join(", ")),
    }
}

/// Text of others on one line, without control characters.
pub fn printable(text: &str) -> String {
    text.trim_end().replace('\n', " ").replace(char::is_control, "\u{fffd}")
}

/// A text in lines of at most `columns` columns, broken at spaces if there are any.
pub fn wrapped(text: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns).max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word;
        while !rest.is_empty() {
            let line = lines.last_mut().expect("there is a first line");
            let used = width(line);
            let gap = usize::from(used > 0);
            if used + gap + width(rest) <= columns {
                line.push_str(&" "[..gap]);
                line.push_str(rest);
                rest = "";
            } else if used > 0 {
                lines.push(String::new());
            } else {
                let (begin, end) = rest.split_at(beginning(rest, columns));
                line.push_str(begin);
                rest = end;
            }
        }
    }
    lines
}

/// Number of bytes of a text that fit into `columns` columns; at least its first character.
fn beginning(text: &str, columns: usize) -> usize {
    let mut used = 0;
    let mut buffer = [0; 4];
    let beyond = text.char_indices().find(|(at, char)| {
        used += width(char.encode_utf8(&mut buffer));
        used > columns && *at > 0
    });
    beyond.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_spaces_where_there_are_some() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("0123456789", 4), ["0123", "4567", "89"]);
        assert_eq!(wrapped("a 0123456789", 4), ["a", "0123", "4567", "89"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("日本語", 1), ["日", "本", "語"]);
    }
}
