//! The picture of a state: tabs at the top, the shown pane, a footer, and overlays.

pub mod overlay;

use super::{
    shared::Link,
    state::{Areas, Mode, SMALLEST, Slot, State, areas},
};
use crate::output::{cut, grouped, seconds_since, width};
use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Position, Rect, Size},
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TabStyle {
    /// Whether there is a space after the number, and two between tabs.
    wide: bool,
    others: bool,
    shown: bool,
    /// Minimum columns for the devnet's name, if it is that long.
    devnet: usize,
}

/// The most legible form first: full names, then short names except for the shown tab, then closer
/// together, then with a shortened devnet name.
const WRITTEN: [TabStyle; 4] = [
    TabStyle { wide: true, others: true, shown: true, devnet: usize::MAX },
    TabStyle { wide: true, others: false, shown: true, devnet: usize::MAX },
    TabStyle { wide: false, others: false, shown: true, devnet: usize::MAX },
    TabStyle { wide: false, others: false, shown: true, devnet: 8 },
];

/// The form if none of these fits: only short names.
const CLOSEST: TabStyle = TabStyle { wide: false, others: false, shown: false, devnet: 0 };

fn tabs(state: &State) -> Vec<(Rect, usize, String)> {
    let texts = |written: TabStyle| -> Vec<String> {
        let text = |(index, slot): (usize, &Slot)| {
            let full = if index == state.shown { written.shown } else { written.others };
            let name = if full { slot.pane.name() } else { slot.pane.short() };
            match written.wide {
                true => format!(" {} {name} ", index + 1),
                false => format!("{}{name} ", index + 1),
            }
        };
        state.panes.iter().enumerate().map(text).collect()
    };
    let fits = |written: &TabStyle| {
        let wide: usize = texts(*written).iter().map(|text| width(text)).sum();
        wide + health(state, written.devnet).width() <= state.size.width.into()
    };
    let texts = texts(WRITTEN.into_iter().find(fits).unwrap_or(CLOSEST));
    let mut x = 0;
    let place = |(index, text): (usize, String)| {
        let width = width(&text) as u16;
        let area = Rect::new(x, 0, width, 1);
        x += width;
        (area, index, text)
    };
    texts.into_iter().enumerate().map(place).collect()
}

pub fn tab_at(state: &State, at: Position) -> Option<usize> {
    tabs(state).into_iter().find(|(area, ..)| area.contains(at)).map(|(_, index, _)| index)
}

fn draw_tabs(state: &State, area: Rect, buffer: &mut Buffer) {
    let mut end = area.x;
    for (place, index, text) in tabs(state) {
        let style = match index == state.shown {
            true => state.look.selected().patch(state.look.strong()),
            false => Style::new(),
        };
        let place = place.intersection(area);
        end = place.right();
        // Without a space before the number, the space after the name is not part of the tab.
        let text = if text.starts_with(' ') { &text } else { text.trim_end() };
        buffer.set_stringn(place.x, place.y, text, place.width.into(), style);
        if index != state.shown {
            let number = text.chars().take_while(|c| !c.is_alphabetic()).count();
            buffer.set_style(Rect { width: number as u16, ..place }, state.look.title());
        }
    }
    let room = area.right().saturating_sub(end);
    let rest = health(state, 0).width();
    let health = health(state, usize::from(room).saturating_sub(rest));
    let width = (health.width() as u16).min(room);
    buffer.set_line(area.right() - width, area.y, &health, width);
}

/// The devnet's name in `columns` columns, its head, and whether it answers.
fn health(state: &State, columns: usize) -> Line<'static> {
    let (look, shared) = (state.look, &state.shared);
    let name = Span::raw(format!("{} ", cut(&shared.devnet, columns)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::look::{Look, Theme};

    #[test]
    fn tabs_are_read_at_every_size() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let first_line = |width: u16, devnet: &str, shown: usize| {
            let look = Look(Theme::None);
            let mut state = State::new(devnet.to_owned(), Size::new(width, 24), look, now);
            (state.shared.link, state.shared.height, state.shown) = (Link::Up, 1_234, shown);
            let area = Rect::new(0, 0, width, 1);
            let mut buffer = Buffer::empty(area);
            draw_tabs(&state, area, &mut buffer);
            buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect::<String>()
        };
        let check = |width, devnet, shown, expected: &str| {
            assert_eq!(first_line(width, devnet, shown), expected);
        };
        check(
            80,
            "local",
            0,
            "1overview 2pres 3timer 4jobs 5mru 6spec 7lease 8event 9logs        local ● 1,234",
        );
        check(
            80,
            "local",
            5,
            "1over 2pres 3timer 4jobs 5mru 6speculation 7lease 8event 9logs     local ● 1,234",
        );
        check(
            80,
            "a-devnet-with-a-long-name",
            5,
            "1over 2pres 3timer 4jobs 5mru 6speculation 7lease 8event 9logs a-dev…ame ● 1,234",
        );
        check(
            120,
            "local",
            5,
            " 1 overview  2 presence  3 timers  4 jobs  5 mru  6 speculation  7 leases  8 events  \
             9 logs                local ● 1,234",
        );
        check(
            120,
            "a-devnet-with-a-long-name-indeed",
            2,
            " 1 over  2 pres  3 timers  4 jobs  5 mru  6 spec  7 lease  8 event  9 logs      \
             a-devnet-with-a-long-name-indeed ● 1,234",
        );
        // However long names are, every tab is shown.
        for width in 80..=200 {
            for shown in 0..9 {
                let line = first_line(width, &"long".repeat(20), shown);
                let all =
                    ["over", "pres", "timer", "jobs", "mru", "spec", "lease", "event", "logs"];
                let mut rest = line.as_str();
                for (number, name) in (1..).zip(all) {
                    let at = rest.find(&format!("{number}")).unwrap_or_else(|| panic!("{line}"));
                    rest = rest[at + 1..].trim_start();
                    assert!(rest.starts_with(name), "{name} in {line}");
                }
                assert!(line.ends_with("● 1,234"), "{line}");
            }
        }
    }
}
