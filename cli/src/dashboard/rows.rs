//! The cursor in a list: where it is, how keys move it, which rows are seen.

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
}
