//! Charts of bars over the newest blocks.

use super::section;
use crate::{dashboard::look::Look, output::EIGHTHS};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    widgets::{Sparkline, Widget as _},
};

/// A titled chart of values, the newest at the right edge, from zero to the largest.
pub fn chart(title: &str, values: &[u64], area: Rect, look: Look, buffer: &mut Buffer) {
    let area = section(title, area, look, buffer);
    let width = usize::from(area.width);
    let shown = &values[values.len().saturating_sub(width)..];
    let missing = std::iter::repeat_n(None, width - shown.len());
    let bars: Vec<Option<u64>> = missing.chain(shown.iter().copied().map(Some)).collect();
    let most = shown.iter().copied().max().unwrap_or(0).max(1);
    Sparkline::default()
        .data(bars)
        .max(most)
        .style(look.chart())
        .absent_value_symbol(" ")
        .render(area, buffer);
}

/// Values for a chart, titled with a name, the newest value and the largest one.
pub fn titled(name: &str, values: Vec<u64>, unit: fn(u64) -> String) -> (String, Vec<u64>) {
    let most = values.iter().copied().max().unwrap_or(0);
    let title = match values.last() {
        Some(last) => format!("{name}: {}, max {}", unit(*last), unit(most)),
        None => name.to_owned(),
    };
    (title, values)
}

/// The newest values as bars from zero to the largest, right-aligned in `width` characters.
pub fn spark(values: &[u64], width: usize) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let most = shown.iter().copied().max().unwrap_or(0).max(1);
    // Any nonzero value is visible.
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
    fn bars_are_of_the_newest() {
        assert_eq!(spark(&[0, 1, 4, 8], 6), "   ▁▄█");
        assert_eq!(spark(&[8, 0, 0, 4, 8], 3), " ▄█");
        assert_eq!(spark(&[1, 1_000_000], 2), "▁█");
        assert_eq!(spark(&[], 2), "  ");
    }
}
