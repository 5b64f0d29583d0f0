//! The cursor in a list: where it is, how keys move it, which rows are seen, and which row it is
//! on while rows come and go; what is looked into of it.

use crossterm::event::{KeyCode, KeyEvent};
use std::ops::Range;

/// A place in a list. The list may change under it: it is asked with the length each time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    at: usize,
}

impl Cursor {
    /// The row it is on, of so many; 0 where there are none.
    pub fn of(self, rows: usize) -> usize {
        self.at.min(rows.saturating_sub(1))
    }

    /// Moves it to a row.
    pub fn go(&mut self, row: usize) {
        self.at = row;
    }

    /// Moves it by a key, where the list has so many rows and shows so many at a time. Whether the
    /// key means a movement.
    pub fn key(&mut self, key: KeyEvent, rows: usize, page: usize) -> bool {
        let (at, last) = (self.of(rows), rows.saturating_sub(1));
        let page = page.max(2) - 1;
        self.at = match key.code {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (at + 1).min(last),
            KeyCode::PageUp => at.saturating_sub(page),
            KeyCode::PageDown => (at + page).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => return false,
        };
        true
    }

    /// The rows that are seen where so many fit: those around the cursor.
    pub fn window(self, rows: usize, fit: usize) -> Range<usize> {
        let last_start = rows.saturating_sub(fit);
        let start = self.of(rows).saturating_sub(fit / 2).min(last_start);
        start..(start + fit).min(rows)
    }

    /// Moves it to the row that is seen as the `line`th, where so many fit. Whether there is one.
    pub fn click(&mut self, line: usize, rows: usize, fit: usize) -> bool {
        let window = self.window(rows, fit);
        let row = window.start + line;
        let hit = line < fit && window.contains(&row);
        if hit {
            self.at = row;
        }
        hit
    }
}

/// The row that is picked in a list whose rows are known by their keys: the cursor stays on it
/// wherever it goes. At the top the cursor stays with the first row, whichever that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick<K> {
    cursor: Cursor,
    /// `None`: the first.
    key: Option<K>,
}

impl<K> Default for Pick<K> {
    fn default() -> Self {
        Self { cursor: Cursor::default(), key: None }
    }
}

impl<K: Clone + PartialEq> Pick<K> {
    /// The cursor, among rows of these keys. Where the picked one is not among them, it is where
    /// the cursor was last.
    pub fn cursor(&self, rows: &[K]) -> Cursor {
        let picked = self.key.as_ref();
        let at = picked.and_then(|key| rows.iter().position(|row| row == key));
        at.map_or(self.cursor, |at| Cursor { at })
    }

    /// The key of the row that the cursor is on.
    pub fn chosen(&self, rows: &[K]) -> Option<K> {
        rows.get(self.cursor(rows).of(rows.len())).cloned()
    }

    /// Moves the cursor by a key, where so many rows are shown at a time. Whether the key means a
    /// movement.
    pub fn key(&mut self, key: KeyEvent, rows: &[K], page: usize) -> bool {
        self.moves(rows, |cursor| cursor.key(key, rows.len(), page))
    }

    /// Moves it to the row that is seen as the `line`th, where so many fit. Whether there is one.
    pub fn click(&mut self, line: usize, rows: &[K], fit: usize) -> bool {
        self.moves(rows, |cursor| cursor.click(line, rows.len(), fit))
    }

    /// Moves it to a row that is to stay under it, the first one, too.
    pub fn go(&mut self, key: K) {
        self.key = Some(key);
    }

    fn moves(&mut self, rows: &[K], by: impl FnOnce(&mut Cursor) -> bool) -> bool {
        let mut cursor = self.cursor(rows);
        let moved = by(&mut cursor);
        if moved {
            let at = cursor.of(rows.len());
            self.cursor = cursor;
            self.key = rows.get(at).filter(|_| at > 0).cloned();
        }
        moved
    }
}

/// What is looked into: what was heard of it, and the line of its page that is seen first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail<K, V> {
    /// What it is known by.
    pub key: K,
    /// What the devnet says of it.
    pub known: Option<V>,
    /// Why the devnet does not say.
    pub refused: Option<String>,
    /// The line that is seen first.
    pub first: Cursor,
}

impl<K, V> Detail<K, V> {
    /// Nothing was heard of it yet.
    pub fn new(key: K) -> Self {
        Self { key, known: None, refused: None, first: Cursor::default() }
    }

    /// Takes in what the devnet says.
    pub fn hear(&mut self, known: V) {
        self.known = Some(known);
        self.refused = None;
    }

    /// Takes in why it does not say.
    pub fn refuse(&mut self, reason: &str) {
        self.refused = Some(reason.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_within_the_list() {
        let mut cursor = Cursor::default();
        let mut check = |code, rows, expected| {
            assert!(cursor.key(KeyEvent::from(code), rows, 5));
            assert_eq!(cursor.of(rows), expected, "{code}");
        };
        check(KeyCode::Up, 10, 0);
        check(KeyCode::Down, 10, 1);
        check(KeyCode::PageDown, 10, 5);
        check(KeyCode::PageDown, 10, 9);
        check(KeyCode::Down, 10, 9);
        check(KeyCode::Up, 3, 1);
        check(KeyCode::End, 3, 2);
        check(KeyCode::Home, 3, 0);
        check(KeyCode::Down, 0, 0);
        assert!(!cursor.key(KeyEvent::from(KeyCode::Char('x')), 3, 5));
    }

    #[test]
    fn the_cursor_is_always_seen() {
        for rows in 0..30 {
            for at in 0..rows {
                let window = Cursor { at }.window(rows, 7);
                assert!(window.contains(&at), "{at} of {rows}: {window:?}");
                assert_eq!(window.len(), rows.min(7));
            }
        }
        assert_eq!(Cursor::default().window(0, 7), 0..0);
    }

    #[test]
    fn a_click_hits_what_is_seen() {
        let mut cursor = Cursor { at: 15 };
        assert!(cursor.click(0, 30, 7));
        assert_eq!(cursor.of(30), 12);
        assert!(!cursor.click(7, 30, 7));
        assert!(!cursor.click(2, 2, 7));
    }

    #[test]
    fn what_is_picked_stays_under_the_cursor() {
        let mut pick = Pick::default();
        assert_eq!(pick.chosen(&[]), None::<char>);
        assert_eq!(pick.chosen(&['a', 'b']), Some('a'));
        // At the top it is the first, whichever that is.
        assert_eq!(pick.chosen(&['x', 'a', 'b']), Some('x'));
        assert!(pick.key(KeyEvent::from(KeyCode::Down), &['a', 'b', 'c'], 5));
        assert_eq!(pick.chosen(&['x', 'y', 'a', 'b']), Some('b'));
        // Where it is gone, what stands in its place.
        assert_eq!(pick.chosen(&['a', 'c']), Some('c'));
        assert_eq!(pick.chosen(&['a']), Some('a'));
        assert_eq!(pick.chosen(&['b', 'a']), Some('b'));
        assert!(pick.click(2, &['a', 'b', 'c'], 3) && !pick.click(9, &['a', 'b', 'c'], 3));
        assert_eq!(pick.chosen(&['c', 'a']), Some('c'));
        pick.go('a');
        assert_eq!(pick.chosen(&['c', 'b', 'a']), Some('a'));
    }
}
