//! Charts of bars over blocks, with their scales.

use super::section;
use crate::{
    dashboard::look::Look,
    output::{EIGHTHS, grouped, width},
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    widgets::{Sparkline, Widget as _},
};

/// The maximum columns of a block's bar.
const BAR: u64 = 3;

/// The minimum rows of bars above an axis of heights.
const BARS: u16 = 2;

/// Which blocks are shown if there are more than columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartEnd {
    /// The newest ones, at the right edge.
    Newest,
    /// Those that come next, at the left edge.
    Next,
}

/// A bar for each block, on a scale from zero to the largest value.
#[derive(Debug, Clone)]
pub struct Chart {
    pub title: String,
    /// Heights and values, ascending by height.
    pub values: Vec<(u64, u64)>,
    /// A value as text, with its unit.
    pub unit: fn(u64) -> String,
    pub end: ChartEnd,
}

impl Chart {
    /// A chart of the newest blocks, titled with a name and the newest value.
    pub fn newest(name: &str, values: Vec<(u64, u64)>, unit: fn(u64) -> String) -> Self {
        let title = match values.last() {
            Some((_, last)) => format!("{name}: {}", unit(*last)),
            None => name.to_owned(),
        };
        Self { title, values, unit, end: ChartEnd::Newest }
    }

    /// Draws the bars; left of them the scale, and below them the first and the last height, as far
    /// as there is room.
    pub fn draw(&self, area: Rect, look: Look, buffer: &mut Buffer) {
        let area = section(&self.title, area, look, buffer);
        let (Some((first, _)), Some((last, _))) = (self.values.first(), self.values.last()) else {
            return;
        };
        let most = self.values.iter().map(|(_, value)| *value).max().unwrap_or(0).max(1);
        let labels = [(self.unit)(most), (self.unit)(0)];
        let gutter = labels.iter().map(|label| width(label)).max().unwrap_or(0) as u16 + 1;
        let gutter = if gutter <= area.width / 3 { gutter } else { 0 };
        let axis = u16::from(area.height > BARS);
        let bars = Rect {
            x: area.x + gutter,
            width: area.width - gutter,
            height: area.height - axis,
            ..area
        };
        if bars.is_empty() {
            return;
        }
        let columns = u64::from(bars.width);
        let bar = (columns / (last - first).saturating_add(1)).clamp(1, BAR);
        // The distance of the outermost blocks.
        let most_apart = columns / bar - 1;
        let (from, to) = match self.end {
            ChartEnd::Newest => (last.saturating_sub(most_apart).max(*first), *last),
            ChartEnd::Next => (*first, first.saturating_add(most_apart).min(*last)),
        };
        let used = ((to - from + 1) * bar) as u16;
        let x = match self.end {
            ChartEnd::Newest => bars.right() - used,
            ChartEnd::Next => bars.x,
        };
        let plot = Rect { x, width: used, ..bars };
        let mut data = vec![None; plot.width.into()];
        for (height, value) in &self.values {
            let at = height.checked_sub(from).filter(|_| *height <= to).map(|at| at * bar);
            let Some(at) = at.and_then(|at| usize::try_from(at).ok()) else { continue };
            data.iter_mut().skip(at).take(bar as usize).for_each(|cell| *cell = Some(*value));
        }
        Sparkline::default()
            .data(data)
            .max(most)
            .style(look.chart())
            .absent_value_symbol(" ")
            .render(plot, buffer);
        if gutter > 0 {
            let rows = [bars.y, bars.bottom() - 1];
            for (label, y) in labels.iter().zip(rows).take(usize::from(bars.height).min(2)) {
                let x = bars.x - 1 - width(label) as u16;
                buffer.set_stringn(x, y, label, gutter.into(), look.faint());
            }
        }
        if axis > 0 {
            heights(from, to, plot, bars, look, buffer);
        }
    }
}

/// Draws the first and the last height below a plot.
pub fn heights(from: u64, to: u64, plot: Rect, room: Rect, look: Look, buffer: &mut Buffer) {
    let (from, to) = (grouped(from.into()), grouped(to.into()));
    let y = plot.bottom();
    let right = plot.right().saturating_sub(to.len() as u16).max(room.x);
    buffer.set_stringn(right, y, &to, (room.right() - right).into(), look.faint());
    if plot.x + (from.len() as u16) < right {
        buffer.set_stringn(plot.x, y, &from, from.len(), look.faint());
    }
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
    use crate::dashboard::look::Theme;

    #[test]
    fn bars_are_of_the_newest() {
        assert_eq!(spark(&[0, 1, 4, 8], 6), "   ▁▄█");
        assert_eq!(spark(&[8, 0, 0, 4, 8], 3), " ▄█");
        assert_eq!(spark(&[1, 1_000_000], 2), "▁█");
        assert_eq!(spark(&[], 2), "  ");
    }

    fn drawn(chart: &Chart, width: u16, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        chart.draw(area, Look(Theme::None), &mut buffer);
        let rows = buffer.content().chunks(width.max(1).into());
        rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect()).collect()
    }

    #[test]
    fn a_chart_has_its_scales() {
        let values = vec![(7, 8), (8, 0), (10, 4)];
        let unit = |value| format!("{value} ms");
        let mut chart = Chart::newest("took", values, unit);
        // Each block has the same width, and one that is not known leaves a gap.
        assert_eq!(
            drawn(&chart, 17, 5),
            [
                "─ took: 4 ms ────",
                "8 ms ███         ",
                "     ███      ▄▄▄",
                "0 ms ███      ███",
                "     7         10",
            ]
        );
        // Only the newest fit.
        assert_eq!(drawn(&chart, 7, 3)[1..], ["   █   ", "   █  █"]);
        chart.end = ChartEnd::Next;
        assert_eq!(drawn(&chart, 2, 2)[1], "█ ");
        for width in 0..30 {
            for height in 0..9 {
                drawn(&chart, width, height);
            }
        }
    }
}
