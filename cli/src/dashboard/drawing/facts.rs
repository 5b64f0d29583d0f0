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

/// The minimum width for two columns.
const TWO: u16 = 70;

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

/// Draws two lists of facts side by side, or one below the other if there is too little room; cuts
/// what does not fit.
pub fn draw(left: &Facts, right: &Facts, area: Rect, look: Look, buffer: &mut Buffer) {
    if area.width < TWO {
        let all: Facts = left.iter().chain(right).cloned().collect();
        let (names, _) = widths(&all);
        return column(&all, names, area, look, buffer);
    }
    let columns = usize::from(area.width);
    let ((left_names, of_left), (right_names, of_right)) = (widths(left), widths(right));
    let begin = middle(left_names + of_left, right_names + of_right, columns);
    let of_right = Rect { x: area.x + begin as u16, width: area.width - begin as u16, ..area };
    let of_left = Rect { width: begin.saturating_sub(GAP) as u16, ..area };
    column(left, left_names, of_left, look, buffer);
    column(right, right_names, of_right, look, buffer);
}

/// Draws facts one below the other, with `names` columns for their names.
fn column(facts: &Facts, names: usize, area: Rect, look: Look, buffer: &mut Buffer) {
    for ((name, spans), row) in facts.iter().zip(area.rows()) {
        let mut line = Line::from(Span::styled(format!("{name:<names$}"), look.faint()));
        let mut room = usize::from(area.width).saturating_sub(names);
        for span in spans {
            let text = cut(&span.content, room);
            room = room.saturating_sub(width(&text));
            line.push_span(Span::styled(text, span.style));
        }
        buffer.set_line(row.x, row.y, &line, area.width);
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
