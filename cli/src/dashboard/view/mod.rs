//! The picture of a state: tabs at the top, the shown pane, a footer, and overlays.

pub mod chart;
pub mod events;
pub mod facts;
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

use super::{
    panes::Cx,
    state::{Link, Mode, Slot, State},
};
use crate::output::{cut, grouped, seconds_since, width};
use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Position, Rect, Size},
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Widget as _,
};

/// The smallest supported terminal.
pub const SMALLEST: Size = Size::new(80, 24);

/// The parts of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    /// The tabs, and the devnet's health.
    pub tabs: Rect,
    pub pane: Rect,
    /// Keys and notices.
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

/// The form of the tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TabStyle {
    /// Whether there is a space after the number, and two between tabs.
    wide: bool,
    /// Whether the other tabs have full names.
    others: bool,
    /// Whether the shown tab has a full name.
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

/// The tabs' areas and texts.
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

/// The tab at a position.
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

/// Draws a rule with a title. Returns the area below it.
pub fn section(title: &str, area: Rect, look: super::look::Look, buffer: &mut Buffer) -> Rect {
    if area.height == 0 {
        return area;
    }
    let rule = "─".repeat(area.width.into());
    buffer.set_stringn(area.x, area.y, rule, area.width.into(), look.faint());
    if !title.is_empty() {
        let room = usize::from(area.width.saturating_sub(2));
        let title = format!(" {} ", cut(title, room.saturating_sub(2)));
        buffer.set_stringn(area.x + 1, area.y, title, room, look.title());
    }
    Rect { y: area.y + 1, height: area.height - 1, ..area }
}

/// Draws lines from top to bottom, as many as fit.
pub fn lines(lines: impl IntoIterator<Item = Line<'static>>, area: Rect, buffer: &mut Buffer) {
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

/// Explains why a list is empty, and how to show more: `narrowed` is the hint if more than the
/// filter hides rows.
pub fn unlike(what: &str, narrowed: Option<&str>, cx: &Cx<'_>) -> String {
    let filter = (!cx.filter.is_empty()).then_some("esc clears the filter");
    let hints: Vec<_> = filter.into_iter().chain(narrowed).collect();
    match hints.is_empty() {
        true => format!("no {what} like that"),
        false => format!("no {what} like that: {}", hints.join(", ")),
    }
}

/// A text in lines of at most `columns` columns, broken at spaces if there are any.
pub fn wrapped(text: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns).max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut rest = word;
        while !rest.is_empty() {
            let line = lines.last_mut().expect("there is a first line");
            let used = width(line);
            let gap = usize::from(used > 0);
            if used + gap + width(rest) <= columns {
                line.push_str(&" "[..gap]);
                line.push_str(rest);
                rest = "";
            } else if used > 0 {
                lines.push(String::new());
            } else {
                let (begin, end) = rest.split_at(beginning(rest, columns));
                line.push_str(begin);
                rest = end;
            }
        }
    }
    lines
}

/// Number of bytes of a text that fit into `columns` columns; at least its first character.
fn beginning(text: &str, columns: usize) -> usize {
    let mut used = 0;
    let mut buffer = [0; 4];
    let beyond = text.char_indices().find(|(at, char)| {
        used += width(char.encode_utf8(&mut buffer));
        used > columns && *at > 0
    });
    beyond.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::look::{Look, Theme};

    #[test]
    fn text_wraps_at_spaces_where_there_are_some() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("0123456789", 4), ["0123", "4567", "89"]);
        assert_eq!(wrapped("a 0123456789", 4), ["a", "0123", "4567", "89"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("日本語", 1), ["日", "本", "語"]);
    }

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
