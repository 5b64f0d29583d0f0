//! The place of an error in a text: its line, and carets under the fault.

use cowboy_host::located::FilePlace;
use ratatui::text::Span;
use std::{fmt, ops::Range};

/// Maximum columns to show of a line; of a longer one, those around the fault.
const SHOWN: usize = 96;

const ELLIPSIS: &str = "…";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The line's number, from 1; absent for an argument of the command line.
    number: Option<usize>,
    line: String,
    /// The faulty bytes of the line; empty for the place after them.
    fault: Range<usize>,
}

impl Excerpt {
    /// The part of an argument at these bytes.
    pub fn of_argument(text: &str, at: Range<usize>) -> Self {
        let start = floor(text, at.start);
        let begin = text[..start].rfind('\n').map_or(0, |feed| feed + 1);
        let end = text[start..].find('\n').map_or(text.len(), |feed| start + feed);
        let fault_end = floor(text, at.end.clamp(start, end));
        Self {
            number: None,
            line: text[begin..end].trim_end().to_owned(),
            fault: start - begin..fault_end - begin,
        }
    }

    /// The word in a file's line that begins at this place, or the first after it.
    pub fn of_place(place: &FilePlace) -> Self {
        let FilePlace { line: number, column, text: line } = place;
        let rest =
            line.char_indices().nth(column.saturating_sub(1)).map_or("", |(at, _)| &line[at..]);
        let start = line.len() - rest.trim_start().len();
        let rest = &line[start..];
        let is_end = |(at, char): (usize, char)| {
            // A colon ends a key, but not in the middle of a URL.
            let key = char == ':' && rest[at + 1..].chars().next().is_none_or(char::is_whitespace);
            (key || char.is_whitespace() || ",]}#".contains(char)).then_some(at)
        };
        let word = rest.char_indices().find_map(is_end).filter(|length| *length > 0);
        let end = word.map_or(line.trim_end().len().max(start), |length| start + length);
        Self { number: Some(*number), line: line.clone(), fault: start..end }
    }

    /// Moves the carets under `word`, if the line contains it.
    pub fn under(mut self, word: &str) -> Self {
        let found = self.line.match_indices(word).find(|(at, _)| {
            let is_part = |char: char| char.is_alphanumeric() || char == '_' || char == '-';
            let before = self.line[..*at].chars().next_back();
            let after = self.line[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        });
        if let Some((at, _)) = found.filter(|_| !word.is_empty()) {
            self.fault = at..at + word.len();
        }
        self
    }

    /// The line's number and the fault's column, both from 1.
    pub fn place(&self) -> Option<(usize, usize)> {
        let column = self.line.get(..self.fault.start).unwrap_or(&self.line).chars().count() + 1;
        self.number.map(|line| (line, column))
    }
}

/// The line, and below it the carets; without a line feed at the end.
impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number.map_or(String::new(), |number| format!("{number} | "));
        let rule = match self.number {
            Some(_) => format!("{:>width$}", "| ", width = number.len()),
            None => String::new(),
        };
        let at = self.fault.start.min(self.line.len());
        let line = masked(&self.line);
        let before = plain(&line[..at]);
        let fault = plain(&line[at..self.fault.end.clamp(at, line.len())]);
        let after = plain(&line[self.fault.end.clamp(at, line.len())..]);
        // Long lines are shortened, first before the fault.
        let before = match before.chars().count().checked_sub(SHOWN / 2) {
            Some(left_out) if left_out > 0 => {
                ELLIPSIS.chars().chain(before.chars().skip(left_out)).collect()
            }
            _ => before,
        };
        let fault: String = fault.chars().take(SHOWN / 2).collect();
        let room = SHOWN.saturating_sub(before.chars().count() + fault.chars().count());
        let after = match after.chars().count() > room {
            true => after.chars().take(room).collect::<String>() + ELLIPSIS,
            false => after,
        };
        let line = format!("{before}{fault}{after}");
        let carets = "^".repeat(Span::raw(&fault).width().max(1));
        let indent = " ".repeat(Span::raw(&before).width());
        write!(f, "  {number}{}\n  {rule}{indent}{carets}", line.trim_end())
    }
}

/// Masks secrets in a line with stars: the user in a URL, and the value of a name that ends with
/// secret, token, password or key. The length in bytes stays the same.
fn masked(line: &str) -> String {
    let mut secret = Vec::new();
    for (at, _) in line.match_indices("://") {
        let start = at + "://".len();
        let end = line[start..].find(|char: char| char.is_whitespace() || "/'\"".contains(char));
        let end = end.map_or(line.len(), |length| start + length);
        if let Some(length) = line[start..end].rfind('@') {
            secret.push(start..start + length);
        }
    }
    for (at, _) in line.match_indices(": ") {
        let key = line[..at].rsplit(|char: char| !char.is_alphanumeric() && char != '_').next();
        let key = key.unwrap_or_default().to_ascii_lowercase();
        let names = ["secret", "token", "password", "passwd", "key"];
        // `api_key_env` is the name of a variable, and `key: cache-1` the key of a cache.
        if key != "key" && names.iter().any(|name| key.ends_with(name)) {
            let end = line[at + 2..].find([',', '}']).map_or(line.len(), |length| at + 2 + length);
            secret.push(at + 2..end);
        }
    }
    let hide = |(at, char): (usize, char)| match secret.iter().any(|range| range.contains(&at)) {
        true => "*".repeat(char.len_utf8()),
        false => char.to_string(),
    };
    line.char_indices().map(hide).collect()
}

/// A text as one line on any terminal: control characters become spaces.
fn plain(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// The start of the character at a byte, or the one before it.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_stand_under_the_fault() {
        let check = |excerpt: Excerpt, expected: &str| assert_eq!(excerpt.to_string(), expected);
        check(Excerpt::of_argument(".a | | .b", 5..6), "  .a | | .b\n       ^");
        check(Excerpt::of_argument(".a[", 3..3), "  .a[\n     ^");
        check(Excerpt::of_argument("é(", 3..9), "  é(\n    ^");
        check(Excerpt::of_argument("", 0..0), "  \n  ^".trim_start_matches('x'));
        let file = "jobs:\n  a:\n    stepz: [1]\n";
        let at = Excerpt::of_place(&FilePlace::of_byte(file, 15));
        check(at.clone(), "  3 |     stepz: [1]\n    |     ^^^^^");
        assert_eq!(at.place(), Some((3, 5)));
        check(at.under("1"), "  3 |     stepz: [1]\n    |             ^");
        let beyond = FilePlace { line: 1, column: 90, text: "jobs:".to_owned() };
        check(Excerpt::of_place(&beyond), "  1 | jobs:\n    |      ^");
        let tabs = Excerpt::of_argument("\ta", 1..2);
        check(tabs, "   a\n   ^");
    }

    #[test]
    fn secrets_are_not_drawn() {
        let check = |line: &str, expected: &str| {
            assert_eq!(masked(line), expected);
            assert_eq!(line.len(), expected.len());
        };
        check("  base_url: http://me:s3cret@h/a@b", "  base_url: http://*********@h/a@b");
        check("env: {API_TOKEN: abc, A: b}", "env: {API_TOKEN: ***, A: b}");
        check("  db_password: é", "  db_password: **");
        check("  api_key_env: NAME", "  api_key_env: NAME");
        check("  - {key: cache-1}", "  - {key: cache-1}");
    }

    #[test]
    fn long_lines_show_what_is_around_the_fault() {
        let line = format!("{}BAD{}", "a".repeat(500), "b".repeat(500));
        let text = Excerpt::of_argument(&line, 500..503).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("  …aaa") && lines[0].ends_with("bbb…"), "{text}");
        assert_eq!(lines[0].find("BAD").map(|at| at - "…".len() + 1), lines[1].find("^^^"));
        assert!(lines[0].chars().count() < SHOWN + 5, "{text}");
    }
}
