//! The log, and one of its lines in full.

use super::{
    grid::{Column, grid, plain},
    lines as draw_lines, section, wrapped,
};
use crate::{
    dashboard::{
        look::Look,
        panes::{Cx, Entry, Level, Logs},
    },
    output::grouped,
};
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};

/// The columns of the list.
const COLUMNS: [Column; 3] =
    [Column::text("time (UTC)"), Column::text("level"), Column::long("message")];

/// How the targets of most lines begin.
const PREFIX: &str = "cowboy_devnet::";

/// How lines of a validator begin.
const SPAN: &str = "validator{name=";

/// Rows that fit into an area, below the rule and the header.
pub fn rows(area: Rect) -> usize {
    area.height.saturating_sub(2).into()
}

/// All of a line, in parts that fit.
pub fn lines(entry: &Entry, cx: &Cx<'_>) -> Vec<String> {
    wrapped(&entry.text, cx.area.width)
}

/// A message without what most begin with, so that what it says is seen on narrow terminals:
/// `validator{name=validator-1}: cowboy_devnet::validator::gateway: …` as `validator-1 gateway: …`.
fn brief(message: &str) -> String {
    let of_validator = message.strip_prefix(SPAN).and_then(|rest| rest.split_once("}: "));
    match of_validator {
        Some((name, rest)) => {
            let rest = rest.strip_prefix(PREFIX).unwrap_or(rest);
            format!("{name} {}", rest.strip_prefix("validator::").unwrap_or(rest))
        }
        None => message.replacen(PREFIX, "", 1),
    }
}

fn style(level: Option<Level>, look: Look) -> Style {
    match level {
        Some(Level::Trace | Level::Debug) => look.faint(),
        Some(Level::Info) => look.good(),
        Some(Level::Warn) | None => look.warn(),
        Some(Level::Error) => look.bad(),
    }
}

/// What is shown, and how much of it.
fn title(pane: &Logs, count: usize) -> String {
    let (count, all) = (grouped(count as u128), grouped(pane.all() as u128));
    let mut title = match count == all {
        true => format!("log: {count} lines"),
        false => format!("log: {count} of {all} lines"),
    };
    if pane.level > Level::Trace {
        title += &format!(", {} and graver", pane.level.name());
    }
    if let Some(node) = &pane.node {
        title += &format!(", of {node}");
    }
    title + if pane.follows() { ", following" } else { "" }
}

/// Draws the pane.
pub fn draw(pane: &Logs, cx: &Cx<'_>, buffer: &mut Buffer) {
    let look = cx.look;
    if let Some((entry, first)) = &pane.opened {
        let area = section("line of the log", cx.area, look, buffer);
        let all = lines(entry, cx);
        let last = all.len().saturating_sub(rows(cx.area));
        let seen = all.into_iter().skip(first.of(last + 1)).map(Line::raw);
        return draw_lines(seen, area, buffer);
    }
    let count = pane.count(cx);
    let area = section(&title(pane, count), cx.area, look, buffer);
    if count == 0 {
        let text = match (&pane.refused, pane.all()) {
            (Some(reason), _) => format!("no log: {reason}"),
            (None, 0) => "nothing said yet".to_owned(),
            (None, _) => {
                "no line like that: l changes the level, n the node, esc the filter".into()
            }
        };
        return draw_lines([Line::styled(text, look.faint())], area, buffer);
    }
    let cursor = pane.cursor(count);
    let window = cursor.window(count, rows(cx.area));
    // The newest line of a log that is followed is not one that was chosen.
    let selected = (!pane.follows()).then(|| cursor.of(count) - window.start);
    let rows: Vec<_> = pane
        .accepted(cx)
        .skip(window.start)
        .take(window.len())
        .map(|entry| {
            let level = entry.level.map_or("-", Level::name);
            let style = style(entry.level, look);
            let message = brief(&entry.message);
            let message = match entry.level {
                Some(Level::Warn | Level::Error) | None => (message, style),
                Some(_) => plain(message),
            };
            vec![(entry.time.clone(), look.faint()), (level.to_owned(), style), message]
        })
        .collect();
    grid(&COLUMNS, &rows, selected, area, look, buffer);
}
