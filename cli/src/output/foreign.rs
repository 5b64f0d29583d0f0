//! Jobs' output on its way to a terminal: text and its colours.
//!
//! A terminal interprets some characters as commands: to move the cursor, to change its title, to
//! write to the clipboard, to answer as if the user typed. Only those that set colours (`ESC [ …
//! m`) pass, and only if the terminal is to show colours.
//!
//! | input | output |
//! |---|---|
//! | a line feed, a tab, a printable character | itself |
//! | carriage returns | the end of a line, one with the line feed that follows them |
//! | any other control character, bytes that are not UTF-8 | `�` |
//! | any other sequence, to its end or the end of its line | nothing |

use super::ui::raw;
use crate::error::CliError;
use anstream::{AutoStream, ColorChoice};
use std::{
    io::{self, IsTerminal as _},
    mem,
};

/// The maximum number of characters between `ESC [` and `m`.
const MAX_PARAMETERS: usize = 64;

const ESCAPE: char = '\u{1b}';
const RESET: &str = "\u{1b}[0m";

/// Prints jobs' output to stdout, in pieces: cleaned if stdout is a terminal.
#[derive(Debug)]
pub struct Foreign(Option<Cleaner>);

impl Foreign {
    /// With `all`, the output is never cleaned.
    pub fn new(all: bool) -> Self {
        let stdout = io::stdout();
        let colours = || AutoStream::choice(&stdout) != ColorChoice::Never;
        Self((!all && stdout.is_terminal()).then(|| Cleaner::new(colours())))
    }

    pub fn print(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        match &mut self.0 {
            None => raw(bytes),
            Some(cleaner) => raw(cleaner.clean(bytes).as_bytes()),
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(cleaner) = &mut self.0 {
            // An error means that the reader is gone.
            let _ = raw(cleaner.end().as_bytes());
        }
    }
}

#[derive(Debug)]
enum SequenceState {
    Text,
    Return,
    Escape,
    /// `ESC` and characters that precede a letter.
    Short,
    /// `ESC [` and these parameters.
    Control(String),
    /// A command string, and whether an `ESC` has arrived that may begin its end.
    Command {
        escape: bool,
    },
}

/// Removes a terminal's commands from text, except for colours.
#[derive(Debug)]
struct Cleaner {
    colours: bool,
    state: SequenceState,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
    coloured: bool,
}

impl Cleaner {
    const fn new(colours: bool) -> Self {
        Self { colours, state: SequenceState::Text, partial: Vec::new(), coloured: false }
    }

    fn clean(&mut self, bytes: &[u8]) -> String {
        let mut pending = mem::take(&mut self.partial);
        pending.extend_from_slice(bytes);
        let mut shown = String::with_capacity(pending.len());
        let mut left = pending.len();
        for chunk in pending.utf8_chunks() {
            chunk.valid().chars().for_each(|char| self.step(char, &mut shown));
            left -= chunk.valid().len() + chunk.invalid().len();
            let cut = |bytes| str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
            if left == 0 && cut(chunk.invalid()) {
                self.partial = chunk.invalid().to_owned();
            } else if !chunk.invalid().is_empty() {
                self.step(char::REPLACEMENT_CHARACTER, &mut shown);
            }
        }
        shown
    }

    fn end(&mut self) -> String {
        let mut shown = String::new();
        if !mem::take(&mut self.partial).is_empty() {
            self.step(char::REPLACEMENT_CHARACTER, &mut shown);
        }
        if matches!(self.state, SequenceState::Return) {
            shown.push('\n');
        }
        if self.coloured {
            shown.push_str(RESET);
        }
        *self = Self::new(self.colours);
        shown
    }

    fn step(&mut self, char: char, shown: &mut String) {
        self.state = match (mem::replace(&mut self.state, SequenceState::Text), char) {
            (SequenceState::Return, '\r') => SequenceState::Return,
            (SequenceState::Return, '\n') => {
                shown.push('\n');
                SequenceState::Text
            }
            (SequenceState::Return, _) => {
                shown.push('\n');
                return self.step(char, shown);
            }
            // The end of a line ends any open sequence.
            (_, '\n') => {
                shown.push('\n');
                SequenceState::Text
            }
            (SequenceState::Command { escape: true }, '\\') => SequenceState::Text,
            (SequenceState::Command { escape: true }, _) => {
                self.state = SequenceState::Escape;
                return self.step(char, shown);
            }
            (SequenceState::Command { .. }, '\u{7}' | '\u{18}' | '\u{1a}' | '\u{9c}') => {
                SequenceState::Text
            }
            (SequenceState::Command { .. }, _) => SequenceState::Command { escape: char == ESCAPE },
            (_, ESCAPE) => SequenceState::Escape,
            (SequenceState::Text, '\r') => SequenceState::Return,
            (SequenceState::Text, '\t') => {
                shown.push('\t');
                SequenceState::Text
            }
            (SequenceState::Text, _) => {
                shown.push(if char.is_control() { char::REPLACEMENT_CHARACTER } else { char });
                SequenceState::Text
            }
            (SequenceState::Escape, '[') => SequenceState::Control(String::new()),
            (SequenceState::Escape, ']' | 'P' | 'X' | '^' | '_') => {
                SequenceState::Command { escape: false }
            }
            (SequenceState::Escape | SequenceState::Short, ' '..='/') => SequenceState::Short,
            (SequenceState::Control(mut parameters), ' '..='?') => {
                // One character more than the limit, and the sequence is dropped.
                if parameters.len() <= MAX_PARAMETERS {
                    parameters.push(char);
                }
                SequenceState::Control(parameters)
            }
            (SequenceState::Control(parameters), 'm') => {
                self.colour(&parameters, shown);
                SequenceState::Text
            }
            (SequenceState::Escape | SequenceState::Short | SequenceState::Control(_), _) => {
                SequenceState::Text
            }
        };
    }

    fn colour(&mut self, parameters: &str, shown: &mut String) {
        let known = |char: char| char.is_ascii_digit() || matches!(char, ';' | ':');
        if self.colours && parameters.len() <= MAX_PARAMETERS && parameters.chars().all(known) {
            shown.push(ESCAPE);
            shown.push('[');
            shown.push_str(parameters);
            shown.push('m');
            self.coloured = !matches!(parameters, "" | "0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the output for a text, in pieces of any size.
    #[track_caller]
    fn check(text: &[u8], expected: &str) {
        let shown = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut cleaner = Cleaner::new(true);
            let mut shown: String = pieces.map(|piece| cleaner.clean(piece)).collect();
            shown += &cleaner.end();
            shown
        };
        for size in 1..=text.len() {
            let said = shown(&mut text.chunks(size));
            assert_eq!(said, expected, "in pieces of {size} bytes");
        }
    }

    #[test]
    fn text_and_colours_are_shown() {
        check("plain\ttext, größer 🤠\n".as_bytes(), "plain\ttext, größer 🤠\n");
        check(b"\x1b[1;31mred\x1b[0m\n", "\x1b[1;31mred\x1b[0m\n");
        check(b"\x1b[38:2::1:2:3mx\x1b[m", "\x1b[38:2::1:2:3mx\x1b[m");
        // The terminal's own colours are restored at the end.
        check(b"\x1b[32mgreen", "\x1b[32mgreen\x1b[0m");
    }

    #[test]
    fn lines_end_however_they_are_written() {
        check(b"one\r\ntwo\r\r\nthree\rfour\r", "one\ntwo\nthree\nfour\n");
        check(b"10 %\r\x1b[K20 %\r\n", "10 %\n20 %\n");
    }

    #[test]
    fn commands_to_the_terminal_are_not_shown() {
        check(b"a\x1b[2Jb\x1b[10;10Hc\x1b[?1049hd\x1b[6ne", "abcde");
        check(b"a\x1b]0;title\x07b\x1b]52;c;eA==\x1b\\c\x1bP+q\x1b\\d\x1b_x\x1b\\e", "abcde");
        check(b"a\x1bcb\x1b(0c\x1b#8d\x1b7e", "abcde");
        check(b"a\x1b[>4;2mb\x1b[0 mc\x1b[?1md", "abcd");
        check(b"a\x07b\x08c\x7fd\x00e\x1a", "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}");
        // The second range of control characters, in UTF-8 and as single bytes.
        check("a\u{9b}2Jb\u{85}".as_bytes(), "a\u{fffd}2Jb\u{fffd}");
        check(b"a\x9b2Jb\xffc\xe2\x82", "a\u{fffd}2Jb\u{fffd}c\u{fffd}");
        check(format!("\x1b[{}1mx", "0;".repeat(40)).as_bytes(), "x");
    }

    #[test]
    fn a_command_that_is_cut_off_hides_no_more_than_its_line() {
        check(b"a\x1b]0;title\nb\x1b[1\nc\x1b\nd\x1bP", "a\nb\nc\nd");
        check(b"\x1b]0;title\x1b[1mx", "\x1b[1mx\x1b[0m");
        check(b"\x1b[1\x1b[2mx\x1b[0m", "\x1b[2mx\x1b[0m");
    }

    #[test]
    fn where_no_colours_are_shown_there_are_none() {
        let mut cleaner = Cleaner::new(false);
        assert_eq!(cleaner.clean(b"\x1b[31mred\x1b[0m\n"), "red\n");
        assert_eq!(cleaner.end(), "");
    }
}
