//! A chart of bars over the newest blocks.

use super::section;
use crate::dashboard::look::Look;
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
