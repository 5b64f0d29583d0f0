//! Names in errors: quoted safely, and with a suggestion for a misspelled name.

use std::fmt::{self, Write as _};

/// Length in characters from which a name is not corrected.
const LONGEST: usize = 80;

/// The name that was probably meant: close enough that only a few letters were missed, swapped or
/// mistyped. The first wins among equally close ones. A different number is not a typo: `runner-9`
/// does not suggest `runner-0` to `runner-3`.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = match typed.chars().count() {
        // No name is that long, and the comparison would be costly.
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

/// Untrusted text in backticks, with control characters escaped.
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
