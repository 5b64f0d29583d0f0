//! A line on a terminal, with its keys, its history and its completions.

use crate::output::width;
use cowboy_engine::actor::typed::MAX_TYPED_BYTES;
use crossterm::{
    cursor::MoveToColumn,
    event::{
        self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind,
        KeyModifiers,
    },
    execute, queue,
    style::Print,
    terminal::{self, Clear, ClearType},
};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};
use std::{
    collections::VecDeque,
    io::{self, Write as _},
};

/// Lines that are kept to be called back.
const HISTORY: usize = 500;
/// Maximum length of a pasted text, in bytes.
const PASTE: usize = 4 * MAX_TYPED_BYTES;
/// Columns of a terminal that does not report them.
const COLUMNS: u16 = 80;

/// The outcome of reading a line.
#[derive(Debug)]
pub enum Read {
    Line(String),
    /// Ctrl-c: what was typed is forgotten.
    Abandoned,
    /// A line of the input that is too long, or not UTF-8, and why.
    Refused(String),
    End,
    Failed(io::Error),
}

/// Reads lines from the terminal.
#[derive(Debug, Default)]
pub struct Editor {
    history: VecDeque<String>,
    /// The rest of a pasted text; the last line is not entered yet.
    pasted: VecDeque<String>,
}

impl Editor {
    /// Reads a line. `words` are the completions of its last word.
    pub fn read(&mut self, prompt: &str, words: &[String]) -> io::Result<Read> {
        let _raw = RawMode::enter()?;
        let mut line = EditedLine::new(self.history.len());
        let mut out = io::stdout();
        if let Some(text) = self.pasted.pop_front() {
            line.insert(&text);
            if !self.pasted.is_empty() {
                return self.entered(prompt, &line);
            }
        }
        loop {
            let columns = terminal::size().map_or(COLUMNS, |(columns, _)| columns.max(1));
            let (shown, at) = line.view(usize::from(columns).saturating_sub(width(prompt) + 1));
            let at = u16::try_from(width(prompt) + at).unwrap_or(u16::MAX);
            queue!(out, MoveToColumn(0), Print(prompt), Print(shown))?;
            queue!(out, Clear(ClearType::UntilNewLine), MoveToColumn(at))?;
            out.flush()?;
            let key = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => key,
                Event::Paste(text) if text.len() <= PASTE => {
                    let text = text.replace("\r\n", "\n").replace('\r', "\n");
                    self.pasted.extend(text.split('\n').map(str::to_owned));
                    line.insert(&self.pasted.pop_front().unwrap_or_default());
                    if self.pasted.is_empty() {
                        continue;
                    }
                    return self.entered(prompt, &line);
                }
                _ => continue,
            };
            match line.press(key, &self.history, words) {
                Pressed::Entered => return self.entered(prompt, &line),
                Pressed::Abandoned => {
                    self.pasted.clear();
                    execute!(out, Print("^C\r\n"))?;
                    return Ok(Read::Abandoned);
                }
                Pressed::Ended => {
                    execute!(out, Print("\r\n"))?;
                    return Ok(Read::End);
                }
                Pressed::Several(found) => execute!(out, Print(format!("\r\n{found}\r\n")))?,
                Pressed::Cleared => {
                    execute!(out, Clear(ClearType::All), crossterm::cursor::MoveTo(0, 0))?;
                }
                Pressed::Edited => {}
            }
        }
    }

    fn entered(&mut self, prompt: &str, line: &EditedLine) -> io::Result<Read> {
        let text = line.text();
        execute!(
            io::stdout(),
            MoveToColumn(0),
            Print(format!("{prompt}{text}")),
            Clear(ClearType::UntilNewLine),
            Print("\r\n")
        )?;
        if !text.trim().is_empty() && self.history.back() != Some(&text) {
            if self.history.len() == HISTORY {
                self.history.pop_front();
            }
            self.history.push_back(text.clone());
        }
        Ok(Read::Line(text))
    }
}

/// The terminal's mode while a line is read. Dropping it lets ctrl-c be a signal and output be
/// lines; keys still arrive as they are typed, so that none is lost or shown before the next line
/// is read.
struct RawMode;

impl RawMode {
    fn enter() -> io::Result<Self> {
        // Remembers the mode to return to; later ones change nothing.
        terminal::enable_raw_mode()?;
        let entered = Self;
        between_lines(false)?;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(entered)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // If the terminal is gone, nothing more can be done.
        let _gone = between_lines(true);
    }
}

/// Sets whether ctrl-c is a signal and line feeds begin lines.
fn between_lines(is_between: bool) -> io::Result<()> {
    let stdin = io::stdin();
    let mut modes = tcgetattr(&stdin)?;
    modes.local_modes.set(LocalModes::ISIG, is_between);
    modes.output_modes.set(OutputModes::OPOST, is_between);
    tcsetattr(&stdin, OptionalActions::Now, &modes)?;
    Ok(())
}

/// Restores the terminal's mode, when no more lines are read.
pub fn leave() {
    // If the terminal is gone, nothing more can be done.
    let _gone = execute!(io::stdout(), DisableBracketedPaste);
    let _gone = terminal::disable_raw_mode();
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    Edited,
    Entered,
    Abandoned,
    Ended,
    Cleared,
    /// Several words fit.
    Several(String),
}

/// A line while it is typed.
#[derive(Debug)]
struct EditedLine {
    characters: Vec<char>,
    /// The cursor, as the number of characters before it.
    at: usize,
    /// The line of the history that is shown; its length for the line that was being typed.
    recalled: usize,
    /// That line.
    draft: Vec<char>,
}

impl EditedLine {
    const fn new(history: usize) -> Self {
        Self { characters: Vec::new(), at: 0, recalled: history, draft: Vec::new() }
    }

    fn text(&self) -> String {
        self.characters.iter().collect()
    }

    /// Inserts text at the cursor as far as the line has room. A tab becomes four spaces.
    fn insert(&mut self, text: &str) {
        let mut left = MAX_TYPED_BYTES.saturating_sub(self.text().len());
        for character in text.replace('\t', "    ").chars() {
            if character.is_control() {
                continue;
            }
            let Some(less) = left.checked_sub(character.len_utf8()) else { return };
            left = less;
            self.characters.insert(self.at, character);
            self.at += 1;
        }
    }

    fn press(&mut self, key: KeyEvent, history: &VecDeque<String>, words: &[String]) -> Pressed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let end = self.characters.len();
        match key.code {
            KeyCode::Enter => return Pressed::Entered,
            // What was typed while no line was read has line feeds.
            KeyCode::Char('j') if control => return Pressed::Entered,
            KeyCode::Char('c') if control => return Pressed::Abandoned,
            KeyCode::Char('d') if control && end == 0 => return Pressed::Ended,
            KeyCode::Char('l') if control => return Pressed::Cleared,
            KeyCode::Tab => return self.complete(words),
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(end),
            KeyCode::Home => self.at = 0,
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::End => self.at = end,
            KeyCode::Char('e') if control => self.at = end,
            KeyCode::Char('u') if control => self.remove_from(0),
            KeyCode::Char('k') if control => self.characters.truncate(self.at),
            KeyCode::Char('w') if control => {
                let before = &self.characters[..self.at];
                let word = before.iter().rev().skip_while(|c| c.is_whitespace());
                let spaces = before.iter().rev().take_while(|c| c.is_whitespace()).count();
                let length = spaces + word.take_while(|c| !c.is_whitespace()).count();
                self.remove_from(self.at - length);
            }
            KeyCode::Backspace if self.at > 0 => {
                self.at -= 1;
                self.characters.remove(self.at);
            }
            KeyCode::Delete if self.at < end => drop(self.characters.remove(self.at)),
            KeyCode::Char('d') if control && self.at < end => drop(self.characters.remove(self.at)),
            KeyCode::Up if self.recalled > 0 => self.recall(self.recalled - 1, history),
            KeyCode::Down if self.recalled < history.len() => {
                self.recall(self.recalled + 1, history);
            }
            KeyCode::Char(character) if !control => self.insert(character.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Pressed::Edited
    }

    /// Removes the characters from there to the cursor.
    fn remove_from(&mut self, from: usize) {
        self.characters.drain(from..self.at);
        self.at = from;
    }

    fn recall(&mut self, number: usize, history: &VecDeque<String>) {
        if self.recalled == history.len() {
            self.draft = self.characters.clone();
        }
        self.recalled = number;
        self.characters = match history.get(number) {
            Some(line) => line.chars().collect(),
            None => self.draft.clone(),
        };
        self.at = self.characters.len();
    }

    /// Completes the word before the cursor as far as the words that fit agree.
    fn complete(&mut self, words: &[String]) -> Pressed {
        let before = &self.characters[..self.at];
        let is_part = |c: &&char| c.is_alphanumeric() || matches!(c, '_' | ':' | '.');
        let length = before.iter().rev().take_while(is_part).count();
        let typed: String = before[self.at - length..].iter().collect();
        let found: Vec<_> = words.iter().filter(|word| word.starts_with(&typed)).collect();
        let Some(first) = found.first().filter(|_| !typed.is_empty()) else {
            return Pressed::Edited;
        };
        let agreed = found.iter().fold(first.len(), |agreed, word| {
            let same = first.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
            agreed.min(same)
        });
        let rest = first.get(typed.len()..agreed).unwrap_or_default();
        if rest.is_empty() && found.len() > 1 {
            return Pressed::Several(found.into_iter().cloned().collect::<Vec<_>>().join("  "));
        }
        self.insert(rest);
        Pressed::Edited
    }

    /// The part of the line that fits this many columns, and the cursor's column in it.
    fn view(&self, columns: usize) -> (String, usize) {
        let wide = |characters: &[char]| width(&characters.iter().collect::<String>());
        let mut from = 0;
        while from < self.at && wide(&self.characters[from..self.at]) > columns {
            from += 1;
        }
        let mut to = self.at;
        while to < self.characters.len() && wide(&self.characters[from..=to]) <= columns {
            to += 1;
        }
        (self.characters[from..to].iter().collect(), wide(&self.characters[from..self.at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(
        line: &mut EditedLine,
        keys: &[KeyEvent],
        history: &[&str],
        words: &[&str],
    ) -> Pressed {
        let history: VecDeque<_> = history.iter().map(|line| (*line).to_owned()).collect();
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let pressed = keys.iter().map(|key| line.press(*key, &history, &words)).last();
        pressed.unwrap_or(Pressed::Edited)
    }

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn control(character: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL)
    }

    #[test]
    fn keys_edit_a_line() {
        let check = |keys: &[KeyEvent], expected: &str, at: usize| {
            let mut line = EditedLine::new(0);
            line.insert("one two");
            typed(&mut line, keys, &[], &[]);
            assert_eq!((line.text().as_str(), line.at), (expected, at), "{keys:?}");
        };
        use KeyCode::{Backspace, Char, Delete, End, Home, Left, Right};
        check(&[key(Left), key(Char('x'))], "one twxo", 7);
        check(&[key(Home), key(Delete), key(Right), key(Backspace)], "e two", 0);
        check(&[key(Home), key(Left), key(Backspace)], "one two", 0);
        check(&[key(End), key(Right), key(Delete)], "one two", 7);
        check(&[control('w')], "one ", 4);
        check(&[control('w'), control('w'), control('w')], "", 0);
        check(&[key(Left), control('u')], "o", 0);
        check(&[control('a'), key(Right), control('k')], "o", 1);
        check(&[control('a'), control('d'), control('e')], "ne two", 6);
    }

    #[test]
    fn a_line_has_a_bound_and_no_control_characters() {
        let mut line = EditedLine::new(0);
        line.insert("\u{1b}[2Ja\tb");
        assert_eq!(line.text(), "[2Ja    b");
        line.insert(&"é".repeat(MAX_TYPED_BYTES));
        assert!(line.text().len() <= MAX_TYPED_BYTES);
    }

    #[test]
    fn lines_are_called_back() {
        let (up, down) = (key(KeyCode::Up), key(KeyCode::Down));
        let check = |keys: &[KeyEvent], expected: &str| {
            let mut line = EditedLine::new(2);
            line.insert("draft");
            typed(&mut line, keys, &["first", "second"], &[]);
            assert_eq!(line.text(), expected, "{keys:?}");
        };
        check(&[up], "second");
        check(&[up, up, up], "first");
        check(&[up, up, down], "second");
        check(&[up, down, down], "draft");
    }

    #[test]
    fn a_line_ends_in_three_ways() {
        let ends = |keys: &[KeyEvent]| typed(&mut EditedLine::new(0), keys, &[], &[]);
        assert_eq!(ends(&[key(KeyCode::Enter)]), Pressed::Entered);
        assert_eq!(ends(&[control('j')]), Pressed::Entered);
        assert_eq!(ends(&[control('c')]), Pressed::Abandoned);
        assert_eq!(ends(&[control('d')]), Pressed::Ended);
        assert_eq!(ends(&[key(KeyCode::Char('x')), control('d')]), Pressed::Edited);
    }

    #[test]
    fn tab_completes_as_far_as_words_agree() {
        let words = [":call", ":handlers", "bump", "bump_twice", "get_state"];
        let check = |text: &str, expected: &str| {
            let mut line = EditedLine::new(0);
            line.insert(text);
            let pressed = typed(&mut line, &[key(KeyCode::Tab)], &[], &words);
            assert_eq!(line.text(), expected);
            pressed
        };
        check(":c", ":call");
        check(":call b", ":call bump");
        assert_eq!(check(":call bump", ":call bump"), Pressed::Several("bump  bump_twice".into()));
        check("f(get", "f(get_state");
        assert_eq!(check("", ""), Pressed::Edited);
        assert_eq!(check("nothing", "nothing"), Pressed::Edited);
    }

    #[test]
    fn a_long_line_shows_the_part_around_the_cursor() {
        let mut line = EditedLine::new(0);
        line.insert("0123456789");
        assert_eq!(line.view(20), ("0123456789".into(), 10));
        assert_eq!(line.view(4), ("6789".into(), 4));
        line.at = 2;
        assert_eq!(line.view(4), ("0123".into(), 2));
        line.insert("日本");
        assert_eq!(line.view(4), ("日本".into(), 4));
        assert_eq!(line.view(0), (String::new(), 0));
    }
}
