//! Text that has to fit: cut in the middle or at the end, and rows of small bars.

/// Bars of one character, from none to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A text in at most so many characters: hex keeps its beginning and end, other text its
/// beginning.
pub fn fit(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let Some(kept) = width.checked_sub(1) else { return String::new() };
    let end = if text.starts_with("0x") && kept >= 7 { kept / 2 - 1 } else { 0 };
    let begin: String = text.chars().take(kept - end).collect();
    let rest: String = text.chars().skip(count - end).collect();
    format!("{begin}…{rest}")
}

/// The newest of some values as bars from zero to the largest, right-aligned in so many
/// characters.
pub fn spark(values: &[u64], width: usize) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let most = shown.iter().copied().max().unwrap_or(0).max(1);
    // What is not zero is seen.
    let bar = |value: &u64| {
        EIGHTHS[match value {
            0 => 0,
            value => (u128::from(*value) * 8 / u128::from(most)).max(1) as usize,
        }]
    };
    let bars: String = shown.iter().map(bar).collect();
    format!("{bars:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits() {
        let check = |text: &str, width, expected: &str| {
            assert_eq!(fit(text, width), expected);
            assert!(fit(text, width).chars().count() <= width);
        };
        check("abc", 3, "abc");
        check("abcd", 3, "ab…");
        check("abcd", 1, "…");
        check("abcd", 0, "");
        check("0x0123456789abcdef", 12, "0x01234…cdef");
        check("0x0123456789abcdef", 5, "0x01…");
        check("äöüß", 3, "äö…");
    }

    #[test]
    fn bars_are_of_the_newest() {
        assert_eq!(spark(&[0, 1, 4, 8], 6), "   ▁▄█");
        assert_eq!(spark(&[8, 0, 0, 4, 8], 3), " ▄█");
        assert_eq!(spark(&[1, 1_000_000], 2), "▁█");
        assert_eq!(spark(&[], 2), "  ");
    }
}
