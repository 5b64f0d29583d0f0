//! Where in the source a byte stands.

use crate::actor::error::Position;

/// A source and where its lines begin.
#[derive(Clone, Debug)]
pub(in crate::actor) struct Lines {
    source: Box<str>,
    starts: Vec<u32>,
}

impl Lines {
    pub(in crate::actor) fn new(source: &str) -> Self {
        let breaks = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect();
        Self { source: source.into(), starts }
    }

    pub(in crate::actor) fn count(&self) -> usize {
        self.starts.len()
    }

    pub(in crate::actor) fn source(&self) -> &str {
        &self.source
    }

    /// The line and column of a byte.
    pub(in crate::actor) fn position(&self, offset: u32) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1] as usize;
        let before = self.source.get(start..offset as usize).unwrap_or_default();
        Position { line: line as u32, column: before.chars().count() as u32 + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, offset: u32, line: u32, column: u32) {
        assert_eq!(Lines::new(source).position(offset), Position { line, column });
    }

    #[test]
    fn columns_count_characters_from_one() {
        check("", 0, 1, 1);
        check("ab\ncd", 1, 1, 2);
        check("ab\ncd", 2, 1, 3);
        check("ab\ncd", 3, 2, 1);
        check("\u{e9}x = 1\n", 2, 1, 2);
        check("a\n", 2, 2, 1);
        check("a", 99, 1, 1);
    }
}
