//! The order of a list's rows, and which of its columns are shown.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeSet,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// Whether it is aligned to the right, as numbers are.
    pub right: bool,
    /// Whether its texts may be cut if there is too little room.
    pub cut: bool,
    /// The sign after its name, which tells that it sorts the rows.
    pub mark: &'static str,
}

impl Column {
    /// Text that stays whole.
    pub const fn text(name: &'static str) -> Self {
        Self { name, right: false, cut: false, mark: "" }
    }

    /// Text that may be cut.
    pub const fn long(name: &'static str) -> Self {
        Self { name, right: false, cut: true, mark: "" }
    }

    pub const fn number(name: &'static str) -> Self {
        Self { name, right: true, cut: false, mark: "" }
    }
}

/// A column's value in a row, by which rows are sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortKey {
    /// Not known, or nothing.
    Nothing,
    Number(u128),
    Text(String),
}

impl SortKey {
    pub fn number(value: impl Into<u128>) -> Self {
        Self::Number(value.into())
    }

    pub fn text(value: impl ToString) -> Self {
        Self::Text(value.to_string())
    }

    /// The key of a value that may be absent.
    pub fn of<T: Into<u128>>(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Self::number)
    }
}

impl Ord for SortKey {
    /// Names by their parts: `runner-2` comes before `runner-10`.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => Ordering::Equal,
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => parts(a).cmp(&parts(b)).then_with(|| a.cmp(b)),
            (Self::Nothing, _) | (_, Self::Text(_)) => Ordering::Less,
            (_, Self::Nothing) | (Self::Text(_), _) => Ordering::Greater,
        }
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The text before the digits at the end, and the number of those digits.
fn parts(text: &str) -> (&str, usize) {
    let stem = text.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, text.len() - stem.len())
}

/// The column that sorts a list, and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sorting {
    pub column: usize,
    pub descending: bool,
}

/// How a pane's list is arranged; by default in the pane's own order, with all columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrangement {
    sorting: Option<Sorting>,
    hidden: BTreeSet<usize>,
}

impl Arrangement {
    pub const fn sorting(&self) -> Option<Sorting> {
        self.sorting
    }

    pub fn shows(&self, column: usize) -> bool {
        !self.hidden.contains(&column)
    }

    /// Sorts by the next shown column; after the last, in the pane's own order. Numbers begin with
    /// the largest.
    pub fn next(&mut self, columns: &[Column]) {
        let from = self.sorting.map_or(0, |sorting| sorting.column + 1);
        let next = (from..columns.len()).find(|column| self.shows(*column));
        self.sorting = next.map(|column| Sorting { column, descending: columns[column].right });
    }

    pub fn reverse(&mut self) {
        if let Some(sorting) = &mut self.sorting {
            sorting.descending = !sorting.descending;
        }
    }

    /// Hides a column or shows it again. The first one always stays.
    pub fn toggle(&mut self, column: usize) {
        if column > 0 && !self.hidden.remove(&column) {
            self.hidden.insert(column);
            if self.sorting.is_some_and(|sorting| sorting.column == column) {
                self.sorting = None;
            }
        }
    }

    /// Sorts rows whose values `key` returns; rows with equal values keep their order.
    pub fn sort<T>(&self, rows: &mut [T], key: impl Fn(&T, usize) -> SortKey) {
        let Some(Sorting { column, descending }) = self.sorting else { return };
        match descending {
            true => rows.sort_by_cached_key(|row| Reverse(key(row, column))),
            false => rows.sort_by_cached_key(|row| key(row, column)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::text("name"), Column::number("value"), Column::text("last")];

    fn sorted(arrangement: &Arrangement) -> Vec<(&'static str, u32)> {
        let mut rows = vec![("runner-10", 1), ("a", 3), ("runner-2", 3), ("b", 2)];
        arrangement.sort(&mut rows, |(name, value), column| match column {
            0 => SortKey::text(name),
            _ => SortKey::number(*value),
        });
        rows
    }

    #[test]
    fn rows_are_sorted_by_the_chosen_column() {
        let mut arrangement = Arrangement::default();
        assert_eq!(sorted(&arrangement)[0], ("runner-10", 1));
        arrangement.next(&COLUMNS);
        assert_eq!(sorted(&arrangement), [("a", 3), ("b", 2), ("runner-2", 3), ("runner-10", 1)]);
        arrangement.next(&COLUMNS);
        let by_value = [("a", 3), ("runner-2", 3), ("b", 2), ("runner-10", 1)];
        assert_eq!(sorted(&arrangement), by_value);
        arrangement.reverse();
        assert_eq!(sorted(&arrangement)[0], ("runner-10", 1));
        arrangement.next(&COLUMNS);
        arrangement.next(&COLUMNS);
        assert_eq!(arrangement, Arrangement::default());
        arrangement.reverse();
        assert_eq!(arrangement, Arrangement::default());
    }

    #[test]
    fn a_hidden_column_does_not_sort() {
        let mut arrangement = Arrangement::default();
        arrangement.toggle(0);
        assert!(arrangement.shows(0), "the first one stays");
        arrangement.next(&COLUMNS);
        arrangement.next(&COLUMNS);
        arrangement.toggle(1);
        assert_eq!((arrangement.sorting(), arrangement.shows(1)), (None, false));
        arrangement.next(&COLUMNS);
        arrangement.next(&COLUMNS);
        assert_eq!(arrangement.sorting().map(|sorting| sorting.column), Some(2));
        arrangement.toggle(1);
        assert!(arrangement.shows(1));
    }

    #[test]
    fn what_is_not_known_comes_first() {
        let keys = [SortKey::of(None::<u64>), SortKey::of(Some(0_u64)), SortKey::text("")];
        assert!(keys.is_sorted());
    }
}
