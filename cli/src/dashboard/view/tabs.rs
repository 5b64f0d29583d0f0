//! The first line: a tab for each pane, and the devnet's name and head.

use crate::{
    dashboard::{
        panes::TAB_KEYS,
        shared::Link,
        state::{Slot, State},
    },
    output::{cut, grouped, seconds_since, width},
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::Style,
    text::{Line, Span},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TabStyle {
    /// Whether there is a space after the key, and two between tabs.
    wide: bool,
    /// Whether tabs that are not shown have their full names.
    full: bool,
    /// Minimum columns for the devnet's name, if it is that long.
    devnet: usize,
}

/// The most legible form first: full names, then short names except for the shown tab, then closer
/// together, then with a shortened devnet name.
const WRITTEN: [TabStyle; 4] = [
    TabStyle { wide: true, full: true, devnet: usize::MAX },
    TabStyle { wide: true, full: false, devnet: usize::MAX },
    TabStyle { wide: false, full: false, devnet: usize::MAX },
    CLOSEST,
];

const CLOSEST: TabStyle = TabStyle { wide: false, full: false, devnet: 8 };

/// The minimum width to show the devnet's name when there is no room for all tabs.
const NAMED: u16 = 60;

/// A tab's place in the first line, the pane's index, and the text.
type PlacedTab = (Rect, usize, String);

/// The tabs that fit. If not all of them do, `‹` and `›` at the ends say that there are more.
struct TabBar {
    tabs: Vec<PlacedTab>,
    before: bool,
    after: bool,
    /// Maximum columns for the devnet's name.
    devnet: usize,
    /// The column after the last tab.
    end: u16,
}

fn texts(state: &State, written: TabStyle) -> Vec<String> {
    let text = |((index, slot), key): ((usize, &Slot), char)| {
        let full = index == state.shown || written.full;
        let name = if full { slot.pane.name() } else { slot.pane.short() };
        match written.wide {
            true => format!(" {key} {name} "),
            false => format!("{key}{name} "),
        }
    };
    state.panes.iter().enumerate().zip(TAB_KEYS).map(text).collect()
}

fn bar(state: &State) -> TabBar {
    let columns = usize::from(state.size.width);
    let total = |texts: &[String]| texts.iter().map(|text| width(text)).sum::<usize>();
    let fits = |written: &TabStyle| {
        total(&texts(state, *written)) + health(state, written.devnet).width() <= columns
    };
    let fitting = WRITTEN.into_iter().find(fits);
    let texts = texts(state, fitting.unwrap_or(CLOSEST));
    let devnet = match fitting {
        None if state.size.width < NAMED => 0,
        None => CLOSEST.devnet,
        Some(_) => usize::MAX,
    };
    let (first, last) = match fitting {
        Some(_) => (0, texts.len()),
        None => {
            // A column on either side for the arrows.
            let room = columns.saturating_sub(health(state, devnet).width() + 2);
            window(&texts, state.shown, room, total)
        }
    };
    let mut x = u16::from(first > 0);
    let mut tabs = Vec::new();
    for (index, text) in texts.iter().enumerate().take(last).skip(first) {
        let width = width(text) as u16;
        tabs.push((Rect::new(x, 0, width, 1), index, text.clone()));
        x += width;
    }
    TabBar { tabs, before: first > 0, after: last < texts.len(), devnet, end: x }
}

/// The range of tabs in `room` columns: the first ones, or those up to the shown one.
fn window(
    texts: &[String],
    shown: usize,
    room: usize,
    total: impl Fn(&[String]) -> usize,
) -> (usize, usize) {
    let first = (0..=shown).find(|first| total(&texts[*first..=shown]) <= room).unwrap_or(shown);
    let last = (shown + 1..=texts.len()).rev().find(|last| total(&texts[first..*last]) <= room);
    (first, last.unwrap_or(shown + 1))
}

pub fn tab_at(state: &State, at: Position) -> Option<usize> {
    let mut tabs = bar(state).tabs.into_iter();
    tabs.find(|(area, ..)| area.contains(at)).map(|(_, index, _)| index)
}

pub fn draw(state: &State, area: Rect, buffer: &mut Buffer) {
    let look = state.look;
    let TabBar { tabs, before, after, devnet, end } = bar(state);
    if before {
        buffer.set_stringn(area.x, area.y, "‹", area.width.into(), look.title());
    }
    for (place, index, text) in tabs {
        let style = match index == state.shown {
            true => look.selected().patch(look.strong()),
            false => Style::new(),
        };
        let place = place.intersection(area);
        // Without a space before the key, the space after the name is not part of the tab.
        let text = if text.starts_with(' ') { &text } else { text.trim_end() };
        buffer.set_stringn(place.x, place.y, text, place.width.into(), style);
        if index != state.shown {
            let key = text.chars().take_while(|c| !c.is_alphabetic()).count() as u16;
            buffer.set_style(Rect { width: key.min(place.width), ..place }, look.title());
        }
    }
    if after && end < area.right() {
        buffer.set_stringn(end, area.y, "›", 1, look.title());
    }
    let end = end + u16::from(after);
    let room = area.right().saturating_sub(end);
    // A space follows the name.
    let rest = health(state, 0).width() + 1;
    let health = health(state, usize::from(room).saturating_sub(rest).min(devnet));
    let width = (health.width() as u16).min(room);
    buffer.set_line(area.right() - width, area.y, &health, width);
}

/// The devnet's name in `columns` columns, its head, and whether it answers.
fn health(state: &State, columns: usize) -> Line<'static> {
    let (look, shared) = (state.look, &state.shared);
    let name = Span::raw(match columns {
        0 => String::new(),
        columns => format!("{} ", cut(&shared.devnet, columns)),
    });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::look::{Look, Theme};
    use ratatui::layout::Size;

    fn first_line(width: u16, devnet: &str, shown: usize) -> String {
        let (now, look) = (jiff::Timestamp::UNIX_EPOCH, Look(Theme::None));
        let mut state = State::new(devnet.to_owned(), Size::new(width, 24), look, now);
        (state.shared.link, state.shared.height, state.shown) = (Link::Up, 1_234, shown);
        let area = Rect::new(0, 0, width, 1);
        let mut buffer = Buffer::empty(area);
        draw(&state, area, &mut buffer);
        buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect()
    }

    #[test]
    fn tabs_are_read_at_every_size() {
        let check = |width, devnet, shown, expected: &str| {
            assert_eq!(first_line(width, devnet, shown), expected);
        };
        check(
            80,
            "local",
            0,
            "1overview 2block 3pres 4jobs 5timer 6acct 7fault 8spec 9lease ›    local ● 1,234",
        );
        check(
            80,
            "local",
            11,
            "‹3pres 4jobs 5timer 6acct 7fault 8spec 9lease 0mru -event =logs    local ● 1,234",
        );
        check(40, "local", 0, "1overview 2block 3pres 4jobs ›   ● 1,234");
        check(
            160,
            "local",
            1,
            " 1 overview  2 blocks  3 presence  4 jobs  5 timers  6 accounts  7 faults  \
             8 speculation  9 leases  0 mru  - events  = logs                        local ● 1,234",
        );
    }

    #[test]
    fn the_shown_tab_is_always_seen() {
        for width in 40..=200 {
            for shown in 0..TAB_KEYS.len() {
                for devnet in ["a", &"long".repeat(20)] {
                    let line = first_line(width, devnet, shown);
                    let slot = crate::dashboard::panes::ALL[shown]();
                    assert!(line.contains(slot.name()), "{line}");
                    assert!(line.ends_with("● 1,234"), "{line}");
                }
            }
        }
    }
}
