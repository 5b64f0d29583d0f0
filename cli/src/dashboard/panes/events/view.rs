//! The list of events, and one of them in full.

use super::{Events, line};
use crate::{
    dashboard::{
        drawing::{
            Cell, Column, Page, beneath, grid, lines as draw_lines, list_rows, plain, section,
            unlike,
        },
        look::Look,
        pane::Cx,
        rows::Cursor,
    },
    output::grouped,
};
use cowboy_devnet::types::Event;
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line};
use serde_json::Value;

const COLUMNS: [Column; 3] =
    [Column::number("height"), Column::text("kind"), Column::long("fields")];

const HAPPENED: [Column; 3] =
    [Column::number("block"), Column::text("event"), Column::long("fields")];

/// A table of events, each with its height, its kind and its fields.
pub fn happened<'a>(page: &mut Page, events: impl Iterator<Item = (u64, &'a str, &'a Value)>) {
    let look = page.look();
    let row = |(height, kind, data): (u64, &str, &Value)| -> Vec<Cell> {
        let height = grouped(height.into());
        vec![plain(height), (kind.to_owned(), style(kind, look)), plain(line(data))]
    };
    page.table(&HAPPENED, &events.map(row).collect::<Vec<_>>());
}

pub fn lines(event: &Event) -> Vec<String> {
    let text = serde_json::to_string_pretty(event).expect("an event is plain data");
    text.lines().map(str::to_owned).collect()
}

/// The style of a kind of event; failures are highlighted.
fn style(kind: &str, look: Look) -> Style {
    let bad = ["Fail", "Slash", "Reject", "Expired", "Insufficient", "Silent"];
    let good = ["Verified", "Confirmed", "Fired", "Completed"];
    let undone = ["RolledBack", "Cancel", "Deferred", "Retried"];
    let is = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    match kind {
        _ if is(&bad) => look.bad(),
        _ if is(&undone) => look.warn(),
        _ if is(&good) => look.good(),
        _ => Style::new(),
    }
}

fn draw_event(event: &Event, first: Cursor, area: Rect, look: Look, buffer: &mut Buffer) {
    let title = format!("{} in block {}", event.kind, grouped(event.height.into()));
    let area = section(&title, area, look, buffer);
    let all = lines(event);
    let seen = all.iter().skip(first.of(all.len())).map(|line| Line::raw(line.clone()));
    draw_lines(seen, area, buffer);
}

pub fn draw(pane: &Events, cx: &Cx<'_>, buffer: &mut Buffer) {
    if let Some((event, first)) = &pane.opened {
        return draw_event(event, *first, cx.area, cx.look, buffer);
    }
    let count = pane.count(cx);
    let (list, below) = beneath(cx.area, count);
    if let Some(event) = pane.chosen(cx).filter(|_| below.height > 0) {
        draw_event(event, Cursor::default(), below, cx.look, buffer);
    }
    let title = match cx.filter.is_empty() {
        true => format!("events: {}", grouped(pane.all() as u128)),
        false => format!("events: {} of {}", grouped(count as u128), grouped(pane.all() as u128)),
    };
    let area = section(&title, list, cx.look, buffer);
    if count == 0 {
        let text = match pane.all() {
            0 => "no events yet: each block brings some".to_owned(),
            _ => unlike("event", None, cx),
        };
        return draw_lines([Line::styled(text, cx.look.faint())], area, buffer);
    }
    let window = pane.cursor().window(count, list_rows(list));
    let selected = pane.cursor().of(count).checked_sub(window.start);
    let seen = pane.accepted(cx).skip(window.start).take(window.len());
    let rows: Vec<_> = seen
        .map(|entry| {
            let event = &entry.event;
            vec![
                plain(event.height.to_string()),
                (event.kind.clone(), style(&event.kind, cx.look)),
                plain(entry.line.clone()),
            ]
        })
        .collect();
    grid(&COLUMNS, &rows, selected, area, cx.look, buffer);
}
