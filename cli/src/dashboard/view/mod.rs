//! The picture of a state: tabs above, the shown pane, a line below, and what lies over them.

pub mod chart;
pub mod events;
pub mod grid;
pub mod jobs;
pub mod leases;
pub mod logs;
pub mod mru;
pub mod overlay;
pub mod overview;
pub mod page;
pub mod presence;
pub mod speculation;
pub mod timer;
pub mod timers;

use super::state::{Link, Mode, State};
use crate::output::{grouped, seconds_since};
use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Position, Rect, Size},
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Widget as _,
};

/// The smallest terminal that it works on.
pub const SMALLEST: Size = Size::new(80, 24);

/// The parts of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    /// The tabs, and how the devnet is.
    pub tabs: Rect,
    /// The pane.
    pub pane: Rect,
    /// Keys, and what there is to say.
    pub footer: Rect,
}

/// The parts of a terminal of this size.
pub const fn areas(size: Size) -> Areas {
    let (width, height) = (size.width, size.height);
    Areas {
        tabs: Rect::new(0, 0, width, if height > 0 { 1 } else { 0 }),
        pane: Rect::new(0, 1, width, height.saturating_sub(2)),
        footer: Rect::new(0, height.saturating_sub(1), width, if height > 1 { 1 } else { 0 }),
    }
}

/// Draws a state.
pub fn draw(state: &State, frame: &mut Frame<'_>) {
    let buffer = frame.buffer_mut();
    let size = state.size;
    // The frame may be drawn before the resize is heard of.
    if buffer.area.as_size() != size {
        return;
    }
    if size.width < SMALLEST.width || size.height < SMALLEST.height {
        return too_small(size, buffer);
    }
    let Areas { tabs, footer, .. } = areas(size);
    draw_tabs(state, tabs, buffer);
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

/// The tabs' places and texts. Where there is little room, only the shown one has its name in full.
fn tabs(state: &State) -> Vec<(Rect, usize, String)> {
    let names: Vec<_> = state.panes.iter().map(|slot| slot.pane.name()).collect();
    let room = usize::from(state.size.width).saturating_sub(health(state).width() + 1);
    let texts = |letters: usize| -> Vec<String> {
        let text = |(index, name): (usize, &&str)| {
            let letters = if index == state.shown { name.len() } else { letters };
            format!("{} {}", index + 1, name.chars().take(letters).collect::<String>())
        };
        names.iter().enumerate().map(text).collect()
    };
    let width =
        |texts: &[String]| texts.iter().map(|text| text.trim_end().len() + 2).sum::<usize>();
    let letters = (0..=12).rev().find(|letters| width(&texts(*letters)) <= room).unwrap_or(0);
    let mut x = 0;
    let place = |(index, text): (usize, String)| {
        let text = format!(" {} ", text.trim_end());
        let width = text.chars().count() as u16;
        let area = Rect::new(x, 0, width, 1);
        x += width;
        (area, index, text)
    };
    texts(letters).into_iter().enumerate().map(place).collect()
}

/// The tab at a place.
pub fn tab_at(state: &State, at: Position) -> Option<usize> {
    tabs(state).into_iter().find(|(area, ..)| area.contains(at)).map(|(_, index, _)| index)
}

fn draw_tabs(state: &State, area: Rect, buffer: &mut Buffer) {
    for (place, index, text) in tabs(state) {
        let style = match index == state.shown {
            true => state.look.selected().patch(state.look.strong()),
            false => Style::new(),
        };
        let place = place.intersection(area);
        buffer.set_stringn(place.x, place.y, text, place.width.into(), style);
    }
    let health = health(state);
    let width = (health.width() as u16).min(area.width);
    buffer.set_line(area.right() - width, area.y, &health, width);
}

/// The devnet's name, its head, and whether it answers.
fn health(state: &State) -> Line<'static> {
    let (look, shared) = (state.look, &state.shared);
    let name = Span::raw(format!("{} ", shared.devnet));
    let height = Span::styled(grouped(shared.height.into()), look.strong());
    match &shared.link {
        Link::Connecting => Line::from(vec![name, Span::styled("connecting", look.warn())]),
        Link::Up if state.replay => {
            Line::from(vec![name, Span::styled("recorded ", look.busy()), height])
        }
        Link::Up => Line::from(vec![name, Span::styled("● ", look.good()), height]),
        Link::Lost { since, .. } => {
            let text = format!("reconnecting {}", seconds_since(*since, state.now));
            Line::from(vec![name, Span::styled(text, look.bad())])
        }
    }
}

/// A line of what is unusual, and the keys that are always there.
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
    let keys = match state.mode {
        Mode::Filtering => "enter keep  esc clear",
        _ => "? keys  / filter  : command  space freeze  y as command  q quit",
    };
    let mut line = Line::default();
    for part in parts {
        line.push_span(part);
        line.push_span("  ");
    }
    let room = usize::from(area.width).saturating_sub(line.width() + 1);
    if keys.len() <= room {
        let x = area.right() - keys.len() as u16;
        buffer.set_stringn(x, area.y, keys, keys.len(), look.faint());
    }
    buffer.set_line(area.x, area.y, &line, area.width);
}

/// A titled section: a rule with the title in it. The place below the rule.
pub fn section(title: &str, area: Rect, look: super::look::Look, buffer: &mut Buffer) -> Rect {
    if area.height == 0 {
        return area;
    }
    let rule = "─".repeat(area.width.into());
    buffer.set_stringn(area.x, area.y, rule, area.width.into(), look.faint());
    if !title.is_empty() {
        let room = usize::from(area.width.saturating_sub(2));
        buffer.set_stringn(area.x + 1, area.y, format!(" {title} "), room, look.title());
    }
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// Lines below one another, as far as they fit.
pub fn lines(lines: impl IntoIterator<Item = Line<'static>>, area: Rect, buffer: &mut Buffer) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

/// A text in lines of at most so many columns, broken at spaces where there are some.
pub fn wrapped(text: &str, width: u16) -> Vec<String> {
    let width = usize::from(width).max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() || lines.is_empty() {
            let line = lines.last_mut().expect("there is a first line");
            let used = line.chars().count();
            let gap = usize::from(used > 0);
            if used + gap + word.len() <= width {
                line.push_str(&" "[..gap]);
                line.extend(word.drain(..));
            } else if used > 0 {
                lines.push(String::new());
            } else {
                line.extend(word.drain(..width));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_spaces_where_there_are_some() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("0123456789", 4), ["0123", "4567", "89"]);
        assert_eq!(wrapped("a 0123456789", 4), ["a", "0123", "4567", "89"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn any_size_has_its_areas() {
        for width in 0..4 {
            for height in 0..4 {
                let whole = Rect::new(0, 0, width, height);
                let Areas { tabs, pane, footer } = areas(Size { width, height });
                for area in [tabs, pane, footer] {
                    assert_eq!(area.intersection(whole).area(), area.area());
                }
            }
        }
    }
}
