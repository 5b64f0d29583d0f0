//! Names in errors: how they stand there, and which was probably meant where one is none.

use std::fmt::{self, Write as _};

/// Letters of a name that is no slip any more.
const LONGEST: usize = 80;

/// The one of several names that was probably meant: so near that few letters were missed, swapped
/// or mistyped. The first of those that are equally near. Another number is no slip: who types
/// `runner-9` means none of `runner-0` to `runner-3`.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = match typed.chars().count() {
        // No name is so long: not a slip, and work for nothing.
        LONGEST.. => return None,
        length => length.div_ceil(3).min(4),
    };
    let letters = |text: &str| text.replace(|char: char| char.is_ascii_digit(), "");
    let typed_letters = letters(typed);
    names
        .into_iter()
        .filter(|name| letters(name) != typed_letters)
        .map(|name| (strsim::osa_distance(typed, name), name))
        .filter(|(distance, _)| (1..=most).contains(distance))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A text that somebody else chose, in backticks; what would move a terminal's cursor is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('`')?;
        for char in self.0.chars() {
            match char.is_control() {
                true => char.escape_default().fmt(f)?,
                false => f.write_char(char)?,
            }
        }
        f.write_char('`')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_texts_stay_on_their_line() {
        assert_eq!(Quoted("a \"b\" é").to_string(), "`a \"b\" é`");
        assert_eq!(Quoted("a\n\u{1b}[2J").to_string(), "`a\\n\\u{1b}[2J`");
    }

    #[test]
    fn slips_of_the_keyboard_are_seen_through() {
        let names = ["runner-0", "runner-1", "validator-0"];
        let check = |typed: &str, expected| assert_eq!(nearest(typed, names), expected, "{typed}");
        check("runer-0", Some("runner-0"));
        check("rnuner-1", Some("runner-1"));
        check("validatr-0", Some("validator-0"));
        check("runner-9", None);
        check("runner-0", None);
        check("r", None);
        check("", None);
        check("something", None);
    }
}
