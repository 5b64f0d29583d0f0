//! Facts in two columns of names and values.

use crate::{
    dashboard::look::Look,
    output::{cut, width},
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

/// Columns between a name and its value, and between the two columns.
const GAP: usize = 2;

pub type Facts = Vec<(&'static str, Vec<Span<'static>>)>;

pub fn raw(text: impl Into<String>) -> Vec<Span<'static>> {
    styled(text, Style::new())
}

pub fn styled(text: impl Into<String>, style: Style) -> Vec<Span<'static>> {
    vec![Span::styled(text.into(), style)]
}

fn widths(facts: &Facts) -> (usize, usize) {
    let names = facts.iter().map(|(name, _)| width(name)).max().unwrap_or(0) + GAP;
    let of = |spans: &[Span<'_>]| spans.iter().map(Span::width).sum();
    (names, facts.iter().map(|(_, spans)| of(spans)).max().unwrap_or(0))
}

/// The position of the right column: the middle, unless one side needs more than half.
fn middle(left: usize, right: usize, columns: usize) -> usize {
    let half = columns / 2;
    match (left + GAP, columns.saturating_sub(right)) {
        (least, most) if least <= most => half.clamp(least, most),
        _ => half,
    }
}

/// Draws two lists of facts side by side, and cuts what does not fit.
pub fn draw(left: &Facts, right: &Facts, area: Rect, look: Look, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let ((left_names, of_left), (right_names, of_right)) = (widths(left), widths(right));
    let begin = middle(left_names + of_left, right_names + of_right, columns);
    let left = (left, left_names, 0, begin.saturating_sub(GAP));
    let right = (right, right_names, begin, columns.saturating_sub(begin));
    for (facts, names, from, columns) in [left, right] {
        for ((name, spans), row) in facts.iter().zip(area.rows()) {
            let mut line = Line::from(Span::styled(format!("{name:<names$}"), look.faint()));
            let mut room = columns.saturating_sub(names);
            for span in spans {
                let text = cut(&span.content, room);
                room = room.saturating_sub(width(&text));
                line.push_span(Span::styled(text, span.style));
            }
            buffer.set_line(row.x + from as u16, row.y, &line, columns as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_column_begins_where_both_fit() {
        assert_eq!(middle(30, 30, 80), 40);
        assert_eq!(middle(45, 30, 80), 47);
        assert_eq!(middle(20, 50, 80), 30);
        assert_eq!(middle(50, 50, 80), 40);
        assert_eq!(middle(0, 0, 1), 0);
    }
}
