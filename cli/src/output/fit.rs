//! Text that fits a terminal: its width, and what is shortened if there is too little room.
//!
//! [`within`] sets the number of columns while something is drawn; [`super::table()`] and
//! [`super::fields`] read it, and a table reports the columns that do not fit with [`leave_out`].
//! Without a width, as in a pipe, nothing is ever shortened.

use ratatui::text::Span;
use std::{
    cell::{Cell, RefCell},
    ops::Range,
};

thread_local! {
    static COLUMNS: Cell<Option<usize>> = const { Cell::new(None) };
    static LEFT_OUT: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The minimum columns of an id: `0x12ab34…cdef`.
pub const LEAST_ID: usize = 13;

const ELLIPSIS: char = '…';

/// The number of digits at an id's end that are kept; few, because beginnings differ more often
/// than ends.
const END: usize = 4;

/// Draws for this many columns; without a limit for `None`.
pub fn within<T>(columns: Option<usize>, draw: impl FnOnce() -> T) -> T {
    /// Restores the old width, even if `draw` panics.
    struct Before(Option<usize>);
    impl Drop for Before {
        fn drop(&mut self) {
            COLUMNS.set(self.0);
        }
    }
    let _before = Before(COLUMNS.replace(columns));
    draw()
}

pub fn room() -> Option<usize> {
    COLUMNS.get()
}

/// Remembers the name of a column that was left out for lack of room.
pub fn leave_out(name: &str) {
    LEFT_OUT.with_borrow_mut(|names| {
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    });
}

/// Takes the names of the columns that were left out since the last call.
pub fn left_out() -> Vec<String> {
    LEFT_OUT.take()
}

/// The number of columns that a line takes on a terminal.
pub fn width(line: &str) -> usize {
    Span::raw(line).width()
}

/// A long hex string for a table's cell: whole, or its beginning and end if the terminal is known
/// to be narrow.
pub fn short(hex: &impl ToString) -> String {
    let text = hex.to_string();
    match room() {
        Some(_) => cut(&text, LEAST_ID + 4),
        None => text,
    }
}

/// A line shortened to `columns` columns: ids lose their middle first, then a single word its
/// middle, or a text of several words its end.
pub fn cut(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let line = shrink_ids(line, columns);
    if width(&line) <= columns {
        return line;
    }
    let end = if line.contains(' ') { 0 } else { END.min(columns / 3) };
    middle(&line, columns, end)
}

/// A styled drawing, its lines cut to the terminal's columns if those are limited.
pub fn fitted(drawing: String) -> String {
    match room() {
        Some(columns) => cut_lines(&drawing, columns),
        None => drawing,
    }
}

fn cut_lines(text: &str, columns: usize) -> String {
    text.split('\n').map(|line| cut_styled(line, columns)).collect::<Vec<_>>().join("\n")
}

fn cut_styled(line: &str, columns: usize) -> String {
    if width(&anstream::adapter::strip_str(line).to_string()) <= columns {
        return line.to_owned();
    }
    let (mut left, mut is_full) = (columns.saturating_sub(1), false);
    let mut text = String::new();
    let mut chars = line.chars();
    let mut buffer = [0; 4];
    while let Some(char) = chars.next() {
        if char == '\u{1b}' {
            // A style, up to its letter: it has no width, and a style that begins has to end.
            text.push(char);
            for char in chars.by_ref() {
                text.push(char);
                if char.is_ascii_alphabetic() {
                    break;
                }
            }
            continue;
        }
        match left.checked_sub(width(char.encode_utf8(&mut buffer))) {
            Some(rest) if !is_full => {
                left = rest;
                text.push(char);
            }
            _ if !is_full => {
                is_full = true;
                text.push(ELLIPSIS);
            }
            _ => {}
        }
    }
    text
}

/// The number of columns that a line takes if each of its ids has at most `id` columns.
pub fn least_width(line: &str, id: usize) -> usize {
    let spare = ids(line).map(|range| (range.end - range.start).saturating_sub(id)).sum();
    width(line).saturating_sub(spare)
}

/// Whether a line contains an id that can be shortened.
pub fn has_id(line: &str) -> bool {
    ids(line).any(|id| id.end - id.start > LEAST_ID)
}

/// Breaks a text at spaces into lines of at most `columns`. A longer word stays whole, because
/// keys, addresses and paths are copied from here.
pub fn wrap(text: &str, columns: usize) -> String {
    let lines: Vec<_> = text.split('\n').map(|line| wrap_line(line, columns)).collect();
    lines.join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let indent: String = line.chars().take_while(|char| *char == ' ').collect();
    let indent = if indent.len() * 2 > columns { String::new() } else { indent };
    let mut wrapped = indent.clone();
    let mut used = indent.len();
    for word in line.split_whitespace() {
        let wide = width(word);
        if used > indent.len() {
            if used + 1 + wide > columns {
                wrapped.push('\n');
                wrapped.push_str(&indent);
                used = indent.len();
            } else {
                wrapped.push(' ');
                used += 1;
            }
        }
        wrapped.push_str(word);
        used += wide;
    }
    wrapped
}

/// Removes the middle of ids, the longest first, until the line fits or all are short.
fn shrink_ids(line: &str, columns: usize) -> String {
    let mut line = line.to_owned();
    loop {
        let excess = width(&line).saturating_sub(columns);
        let longest = ids(&line).max_by_key(|id| id.end - id.start);
        let Some(id) = longest.filter(|id| excess > 0 && id.end - id.start > LEAST_ID) else {
            return line;
        };
        let room = (id.end - id.start).saturating_sub(excess).max(LEAST_ID);
        let shorter = middle(&line[id.clone()], room, END);
        line.replace_range(id, &shorter);
    }
}

/// A line without its middle, `columns` wide, with `end` columns for its end.
fn middle(line: &str, columns: usize, end: usize) -> String {
    let Some(begin) = columns.checked_sub(end + 1) else { return String::new() };
    let mut buffer = [0; 4];
    let mut take = |char: char, left: &mut usize| match left
        .checked_sub(width(char.encode_utf8(&mut buffer)))
    {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    };
    let mut left = begin;
    let mut text: String = line.chars().take_while(|char| take(*char, &mut left)).collect();
    let mut left = end;
    let tail: Vec<_> = line.chars().rev().take_while(|char| take(*char, &mut left)).collect();
    text.truncate(text.trim_end().len());
    text.push(ELLIPSIS);
    text.extend(tail.iter().rev());
    text
}

/// The positions of ids: hex strings, and words of letters and digits that only an id is long
/// enough for.
fn ids(line: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = line.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at + bytes[at..].iter().position(is_part)?;
            let length = bytes[start..].iter().position(|byte| !is_part(byte));
            at = length.map_or(bytes.len(), |length| start + length);
            let word = &line[start..at];
            let hex = word.strip_prefix("0x").is_some_and(|digits| {
                digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            });
            let long = word.len() >= 20
                && word.bytes().any(|byte| byte.is_ascii_digit())
                && word.bytes().any(|byte| byte.is_ascii_alphabetic());
            if hex || long {
                return Some(start..at);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "0x12ab34cd56ef78901234567890abcdefabcdcdef";

    #[test]
    fn ids_lose_their_middle() {
        let check = |line: &str, columns, expected: &str| {
            let got = cut(line, columns);
            assert_eq!(got, expected);
            assert!(width(&got) <= columns, "{got}");
        };
        check(ADDRESS, 42, ADDRESS);
        check(ADDRESS, 41, "0x12ab34cd56ef78901234567890abcdefab…cdef");
        check(ADDRESS, 13, "0x12ab34…cdef");
        check(ADDRESS, 8, "0x12a…ef");
        check(&format!("dev-0 ({ADDRESS})"), 21, "dev-0 (0x12ab34…cdef)");
        check(&format!("{ADDRESS} {ADDRESS}"), 30, "0x12ab34cd5…cdef 0x12ab34…cdef");
        check("job_01jd3mxq9rtvexample8", 15, "job_01jd3m…ple8");
        check("a text of several words", 12, "a text of s…");
        check("validator-12", 9, "valid…-12");
        check("runner", 1, "…");
        check("runner", 0, "");
    }

    #[test]
    fn styled_lines_lose_their_ends_and_no_style_goes_on() {
        let green = "\u{1b}[32m";
        let check = |line: &str, columns, expected: &str| {
            assert_eq!(cut_lines(line, columns), expected);
        };
        check("abc\nabcdef", 4, "abc\nabc…");
        check(&format!("{green}abc\u{1b}[0m"), 3, &format!("{green}abc\u{1b}[0m"));
        check(&format!("a{green}bcdef\u{1b}[0mg"), 4, &format!("a{green}bc…\u{1b}[0m"));
        check("日本語", 4, "日…");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width("日本"), 4);
        assert_eq!(cut("日本語日本語", 7), "日本…語");
        assert_eq!(cut("é́abc", 3).chars().last(), Some('c'));
    }

    #[test]
    fn text_breaks_at_spaces_and_words_never_do() {
        assert_eq!(wrap("one two three", 7), "one two\nthree");
        assert_eq!(wrap("  one two", 5), "  one\n  two");
        assert_eq!(wrap(&format!("at {ADDRESS}"), 20), format!("at\n{ADDRESS}"));
        // Two spaces are kept if nothing has to be shortened.
        assert_eq!(wrap("a  b", 4), "a  b");
        let url = "http://127.0.0.1:8545/a/long/path";
        assert_eq!(wrap(&format!("at {url}"), 10), format!("at\n{url}"));
    }

    #[test]
    fn what_is_left_out_is_named_once() {
        ["b", "a", "b"].into_iter().for_each(leave_out);
        assert_eq!(left_out(), ["b", "a"]);
        assert!(left_out().is_empty());
    }

    #[test]
    fn a_width_holds_while_something_is_drawn() {
        assert_eq!(room(), None);
        assert_eq!(within(Some(10), || (room(), within(None, room), room())), {
            (Some(10), None, Some(10))
        });
        assert_eq!(room(), None);
        assert_eq!(short(&ADDRESS), ADDRESS);
        assert_eq!(within(Some(80), || short(&ADDRESS)), "0x12ab34cd56…cdef");
    }
}
