//! The log, and one of its lines in full.

use super::{LogEntry, LogLevel, Logs};
use crate::{
    dashboard::{
        drawing::{Column, grid, lines as draw_lines, list_rows, plain, section, unlike, wrapped},
        look::Look,
        pane::Cx,
    },
    output::grouped,
};
use ratatui::{buffer::Buffer, style::Style, text::Line};

const COLUMNS: [Column; 3] =
    [Column::text("time (UTC)"), Column::text("level"), Column::long("message")];

/// The same on a narrow terminal: times without fractions, levels as letters.
const NARROW: [Column; 3] = [Column::text("time"), Column::text(""), Column::long("message")];

/// The minimum width for whole times and levels.
const WIDE: u16 = 60;

/// Characters of a time up to its seconds.
const SECONDS: usize = 8;

const PREFIX: &str = "cowboy_devnet::";

/// The span of a validator's lines, and the rest of their targets.
const VALIDATOR: &str = "validator";

pub fn lines(entry: &LogEntry, cx: &Cx<'_>) -> Vec<String> {
    wrapped(&entry.text, cx.area.width)
}

/// A message without the usual beginning, so that its text is visible on narrow terminals:
/// `validator{name=validator-1}: cowboy_devnet::validator::gateway: …` as `validator-1 gateway: …`.
/// Other spans are removed completely, because the message repeats their important fields.
fn brief(message: &str) -> String {
    let (mut rest, mut validator) = (message, None);
    while let Some((name, fields, behind)) = span(rest) {
        validator = validator.or(fields.strip_prefix("name=").filter(|_| name == VALIDATOR));
        rest = behind;
    }
    let rest = rest.strip_prefix(PREFIX).unwrap_or(rest);
    match validator {
        Some(name) => {
            let within = rest.strip_prefix(VALIDATOR).and_then(|rest| rest.strip_prefix("::"));
            format!("{name} {}", within.unwrap_or(rest))
        }
        None => rest.to_owned(),
    }
}

/// The span at the beginning of a message: its name, its fields, and the rest of the message.
fn span(message: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = message.split_once('{')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    // Values of fields may contain braces.
    let mut open = 1_usize;
    let end = rest.find(|c: char| {
        open = match c {
            '{' => open + 1,
            '}' => open - 1,
            _ => open,
        };
        open == 0
    })?;
    let behind = rest[end + 1..].strip_prefix(':')?;
    Some((name, &rest[..end], behind.trim_start()))
}

fn style(level: Option<LogLevel>, look: Look) -> Style {
    match level {
        Some(LogLevel::Trace | LogLevel::Debug) => look.faint(),
        Some(LogLevel::Info) => look.good(),
        Some(LogLevel::Warn) | None => look.warn(),
        Some(LogLevel::Error) => look.bad(),
    }
}

fn title(pane: &Logs, count: usize) -> String {
    let (count, all) = (grouped(count as u128), grouped(pane.all() as u128));
    let mut title = match count == all {
        true => format!("log: {count} lines"),
        false => format!("log: {count} of {all} lines"),
    };
    if pane.level > LogLevel::Trace {
        title += &format!(", {} and above", pane.level.name());
    }
    if let Some(node) = &pane.node {
        title += &format!(", of {node}");
    }
    title + if pane.follows() { ", following" } else { "" }
}

pub fn draw(pane: &Logs, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    if let Some((entry, first)) = &pane.opened {
        let area = section("line of the log", cx.area, look, buffer);
        let all = lines(entry, cx);
        let last = all.len().saturating_sub(list_rows(cx.area));
        let seen = all.into_iter().skip(first.of(last + 1)).map(Line::raw);
        return draw_lines(seen, area, buffer);
    }
    let count = pane.count(cx);
    let area = section(&title(pane, count), cx.area, look, buffer);
    if count == 0 {
        let text = match (&pane.refused, pane.all()) {
            (Some(reason), _) => format!("no log: {reason}"),
            (None, 0) => "nothing said yet".to_owned(),
            (None, _) => unlike("line", Some("l changes the level, n the node"), cx),
        };
        return draw_lines([Line::styled(text, look.faint())], area, buffer);
    }
    let narrow = area.width < WIDE;
    let cursor = pane.cursor(count);
    let window = cursor.window(count, list_rows(cx.area));
    // While the log is followed, no line is selected.
    let selected = (!pane.follows()).then(|| cursor.of(count) - window.start);
    let rows: Vec<_> = pane
        .accepted(cx)
        .skip(window.start)
        .take(window.len())
        .map(|entry| {
            let level = entry.level.map_or("-", LogLevel::name);
            let style = style(entry.level, look);
            let message = brief(&entry.message);
            let message = match entry.level {
                Some(LogLevel::Warn | LogLevel::Error) | None => (message, style),
                Some(_) => plain(message),
            };
            let (time, level) = match narrow {
                true => (entry.time.get(..SECONDS).unwrap_or_default(), &level[..1]),
                false => (entry.time.as_str(), level),
            };
            vec![(time.to_owned(), look.faint()), (level.to_owned(), style), message]
        })
        .collect();
    grid(if narrow { &NARROW } else { &COLUMNS }, &rows, selected, area, look, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_seen_without_what_most_begin_with() {
        let check = |message: &str, expected: &str| assert_eq!(brief(message), expected);
        check(
            "validator{name=validator-1}: cowboy_devnet::validator::gateway: connected a=1",
            "validator-1 gateway: connected a=1",
        );
        check("cowboy_devnet::runner::node: job failed", "runner::node: job failed");
        check("cowboy_devnet::validator::peers: lost", "validator::peers: lost");
        check("s.wait{id=0x1 of=Some(A { b: 1 })}: agent: proved", "agent: proved");
        check("a{x=1}:b{y=2}: agent: proved", "agent: proved");
        check(
            "validator{name=v-2}:sync{from=7}: cowboy_devnet::storage: read",
            "v-2 storage: read",
        );
        check("agent: a{b} c", "agent: a{b} c");
        check("a{b: never closed", "a{b: never closed");
        check("a{b}", "a{b}");
    }
}
