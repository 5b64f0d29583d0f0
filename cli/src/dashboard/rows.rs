//! The cursor in a list: its position, its movement by keys, the visible rows, and the row that it
//! stays on while rows come and go; and the details of an opened row.

use crossterm::event::{KeyCode, KeyEvent};
use std::ops::Range;

/// A position in a list. The list may change, so every method takes its current length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    at: usize,
}

impl Cursor {
    /// The row it is on, of `rows`; 0 in an empty list.
    pub fn of(self, rows: usize) -> usize {
        self.at.min(rows.saturating_sub(1))
    }

    pub fn go(&mut self, row: usize) {
        self.at = row;
    }

    /// Moves it by a key, in a list of `rows` rows with `page` visible. Returns whether the key is
    /// a movement.
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

    /// The visible rows, if `fit` rows fit: those around the cursor.
    pub fn window(self, rows: usize, fit: usize) -> Range<usize> {
        let last_start = rows.saturating_sub(fit);
        let start = self.of(rows).saturating_sub(fit / 2).min(last_start);
        start..(start + fit).min(rows)
    }

    /// The visible rows, if `fit` rows fit, and which of them it is on.
    pub fn seen<T>(self, rows: &[T], fit: usize) -> (&[T], Option<usize>) {
        let window = self.window(rows.len(), fit);
        let selected = self.of(rows.len()).checked_sub(window.start);
        (&rows[window], selected)
    }

    /// Moves it to the `line`th visible row, if `fit` rows fit. Returns whether there is one.
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

/// The picked row in a list whose rows have keys: the cursor follows its row. At the top it stays
/// with the first row, even if that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick<K> {
    cursor: Cursor,
    /// `None` for the first.
    key: Option<K>,
}

impl<K> Default for Pick<K> {
    fn default() -> Self {
        Self { cursor: Cursor::default(), key: None }
    }
}

impl<K: Clone + PartialEq> Pick<K> {
    /// The cursor, among rows with these keys. If the picked row is gone, the cursor keeps its last
    /// position.
    pub fn cursor(&self, rows: &[K]) -> Cursor {
        let picked = self.key.as_ref();
        let at = picked.and_then(|key| rows.iter().position(|row| row == key));
        at.map_or(self.cursor, |at| Cursor { at })
    }

    pub fn chosen(&self, rows: &[K]) -> Option<K> {
        rows.get(self.cursor(rows).of(rows.len())).cloned()
    }

    /// Moves the cursor by a key, with `page` rows visible. Returns whether the key is a movement.
    pub fn key(&mut self, key: KeyEvent, rows: &[K], page: usize) -> bool {
        self.moves(rows, |cursor| cursor.key(key, rows.len(), page))
    }

    /// Moves it to the `line`th visible row, if `fit` rows fit. Returns whether there is one.
    pub fn click(&mut self, line: usize, rows: &[K], fit: usize) -> bool {
        self.moves(rows, |cursor| cursor.click(line, rows.len(), fit))
    }

    /// Moves it to a row and keeps it there, even on the first row.
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

/// The opened thing: its data, and the first visible line of its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail<K, V> {
    pub key: K,
    pub known: Option<V>,
    /// The reason why the devnet refused to answer.
    pub refused: Option<String>,
    pub first: Cursor,
}

impl<K, V> Detail<K, V> {
    pub fn new(key: K) -> Self {
        Self { key, known: None, refused: None, first: Cursor::default() }
    }

    pub fn hear(&mut self, known: V) {
        self.known = Some(known);
        self.refused = None;
    }

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
        // At the top it is always the first row.
        assert_eq!(pick.chosen(&['x', 'a', 'b']), Some('x'));
        assert!(pick.key(KeyEvent::from(KeyCode::Down), &['a', 'b', 'c'], 5));
        assert_eq!(pick.chosen(&['x', 'y', 'a', 'b']), Some('b'));
        // If the row is gone, the one now in its position.
        assert_eq!(pick.chosen(&['a', 'c']), Some('c'));
        assert_eq!(pick.chosen(&['a']), Some('a'));
        assert_eq!(pick.chosen(&['b', 'a']), Some('b'));
        assert!(pick.click(2, &['a', 'b', 'c'], 3) && !pick.click(9, &['a', 'b', 'c'], 3));
        assert_eq!(pick.chosen(&['c', 'a']), Some('c'));
        pick.go('a');
        assert_eq!(pick.chosen(&['c', 'b', 'a']), Some('a'));
    }
}
