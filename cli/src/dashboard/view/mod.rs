//! The picture of a state: tabs at the top, the shown pane, a footer, and overlays.

pub mod overlay;
mod tabs;

pub use tabs::tab_at;

use super::{
    shared::Link,
    state::{Areas, Mode, SMALLEST, State, areas},
};
use crate::output::grouped;
use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Rect, Size},
    style::{Modifier, Style},
    text::{Line, Span},
};

pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let buffer = frame.buffer_mut();
    let size = state.size;
    // The frame may be drawn before the resize event arrives.
    if buffer.area.as_size() != size {
        return;
    }
    if size.width < SMALLEST.width || size.height < SMALLEST.height {
        return too_small(size, buffer);
    }
    let Areas { tabs: top, footer, .. } = areas(size);
    tabs::draw(state, top, buffer);
    let cx = state.cx(state.shown);
    state.panes[state.shown].pane.draw(&cx, buffer);
    draw_footer(state, footer, buffer);
    overlay::draw(state, buffer);
}

fn too_small(size: Size, buffer: &mut Buffer) {
    let Size { width, height } = SMALLEST;
    let lines = [
        format!("{width}×{height} are needed,"),
        format!("this is {}×{}", size.width, size.height),
    ];
    for (line, y) in lines.iter().zip(0..size.height) {
        buffer.set_stringn(0, y, line, size.width.into(), Style::new());
    }
}

/// Draws a line of notices, and the keys that always work.
fn draw_footer(state: &State, area: Rect, buffer: &mut Buffer) {
    let look = state.look;
    let mut parts = Vec::new();
    if let Some(frozen) = &state.frozen {
        let text = format!("frozen, {} behind", grouped(frozen.behind.into()));
        parts.push(Span::styled(text, look.warn().add_modifier(Modifier::BOLD)));
    }
    let dropped = state.dropped + state.overheld;
    if dropped > 0 {
        let text = format!("{} dropped", grouped(dropped.into()));
        parts.push(Span::styled(text, look.bad()));
    }
    if state.recording_full {
        parts.push(Span::styled("recording full", look.warn()));
    }
    if let Link::Lost { reason, .. } = &state.shared.link {
        parts.push(Span::styled(reason.clone(), look.bad()));
    }
    let filter = &state.panes[state.shown].filter;
    if state.mode == Mode::Filtering {
        parts.push(Span::styled(format!("/{}▏", filter.text()), look.strong()));
    } else if !filter.is_empty() {
        parts.push(Span::styled(format!("/{}", filter.text()), look.busy()));
    }
    let keys: &[&str] = match state.mode {
        Mode::Filtering => &["enter keep  esc clear"],
        _ => &["? keys  / filter  : command  space freeze  y as command  q quit", "? keys  q quit"],
    };
    let mut line = Line::default();
    for part in parts {
        line.push_span(part);
        line.push_span("  ");
    }
    let room = usize::from(area.width).saturating_sub(line.width() + 1);
    if let Some(keys) = keys.iter().find(|keys| keys.len() <= room) {
        let x = area.right() - keys.len() as u16;
        buffer.set_stringn(x, area.y, keys, keys.len(), look.faint());
    }
    buffer.set_line(area.x, area.y, &line, area.width);
}
