//! Positions of bytes in a source.

use crate::actor::error::Position;

/// Bytes between two of the places for which preceding characters are counted.
const STRIDE: usize = 1024;

/// A source, and the offsets at which its lines begin.
#[derive(Clone, Debug)]
pub(in crate::actor) struct Lines {
    source: Box<str>,
    starts: Vec<u32>,
    /// The number of characters that begin before every `STRIDE`th byte, and their total. An error
    /// on a long line, which is not paid for, then reads only a little of it.
    characters: Vec<u32>,
}

impl Lines {
    pub(in crate::actor) fn new(source: &str) -> Self {
        let breaks = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at as u32 + 1)).collect();
        let (mut characters, mut before) = (vec![0], 0);
        for stride in source.as_bytes().chunks(STRIDE) {
            before += beginning(stride);
            characters.push(before);
        }
        Self { source: source.into(), starts, characters }
    }

    pub(in crate::actor) fn count(&self) -> usize {
        self.starts.len()
    }

    pub(in crate::actor) fn source(&self) -> &str {
        &self.source
    }

    pub(in crate::actor) fn position(&self, offset: u32) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let (start, offset) = (self.starts[line - 1] as usize, offset as usize);
        let before = match self.source.get(start..offset) {
            Some(_) => self.before(offset) - self.before(start),
            None => 0,
        };
        Position { line: line as u32, column: before + 1 }
    }

    /// The number of characters before a byte of the source.
    fn before(&self, offset: usize) -> u32 {
        let stride = offset / STRIDE;
        let rest = &self.source.as_bytes()[stride * STRIDE..offset];
        self.characters[stride] + beginning(rest)
    }
}

/// The number of characters that begin in some bytes of UTF-8.
fn beginning(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32
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

    #[test]
    fn columns_of_long_lines_count_characters_too() {
        for (character, bytes) in [("a", 1), ("\u{e9}", 2), ("\u{20ac}", 3)] {
            let source = format!("first\n{}\nlast", character.repeat(5000));
            for column in [0, 1, 341, 342, 1023, 1024, 1025, 2048, 4096, 5000] {
                check(&source, 6 + column * bytes, 2, column + 1);
            }
        }
        check(&"a".repeat(2 * STRIDE), 2 * STRIDE as u32, 1, 2 * STRIDE as u32 + 1);
    }
}
