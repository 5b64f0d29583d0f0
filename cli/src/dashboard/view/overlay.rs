//! The overlays: help, the palette, a command's output, the equivalent command.

use crate::{
    dashboard::{
        drawing::{grid::aligned, section, wrapped},
        output::{EndedCommand, Output},
        palette::Palette,
        pane::Proposal,
        rows::Cursor,
        state::{Mode, Slot, State},
    },
    output::{cut, grouped, width},
};
use ratatui::{
    buffer::Buffer,
    layout::{Rect, Size},
    style::Style,
    widgets::{Clear, Widget as _},
};

const SUGGESTIONS: usize = 8;

/// The minimum width to show keys and what they do side by side.
const HELP: u16 = 80;

/// The column of what a key does, below the key.
const BELOW: u16 = 3;

const CLOSES: &str = " any key closes this";

const KEYS: &[(&str, &str)] = &[
    ("1 to 9 0 - =, tab", "another pane; shift-tab the one before"),
    ("/", "filter: words that a line has, !words that it has not"),
    (":", "run a command; enter and tab complete it, its flags and names"),
    ("space", "freeze the picture, and let it go on"),
    ("y", "the command that shows the same; it is copied, too"),
    ("mouse", "click a tab or a row, turn the wheel"),
    ("ctrl-z", "suspend"),
    ("q, ctrl-c", "quit"),
];

/// Keys of panes with a list that can be arranged.
const ARRANGE: &[(&str, &str)] =
    &[("s S", "sort by the next column, or the other way around"), ("c", "choose the columns")];

fn output_area(size: Size) -> Rect {
    Rect::new(0, 1, size.width, size.height.saturating_sub(2))
}

pub fn lines(size: Size) -> usize {
    output_area(size).height.saturating_sub(2).into()
}

pub fn draw(state: &State, buffer: &mut Buffer) {
    match &state.mode {
        Mode::Panes | Mode::Filtering => {}
        Mode::Help(scrolled) => help(state, *scrolled, buffer),
        Mode::Palette(palette, complaint) => {
            draw_palette(state, palette, complaint.as_ref(), buffer);
        }
        Mode::Columns(cursor) => choose(state, *cursor, buffer),
        Mode::Question(proposal) => question(state, proposal, buffer),
        Mode::Output(output) => draw_output(state, output, buffer),
        Mode::Equivalent(command) => equivalent(state, command, buffer),
    }
}

/// Clears `height` lines at the bottom, above the footer, and draws a title. Returns the area in
/// it.
fn drawer(state: &State, height: usize, title: &str, buffer: &mut Buffer) -> Rect {
    let all = output_area(state.size);
    let height = (height as u16 + 1).min(all.height);
    let area = Rect { y: all.bottom() - height, height, ..all };
    Clear.render(area, buffer);
    section(title, area, state.look, buffer)
}

fn put(line: usize, text: &str, style: Style, area: Rect, buffer: &mut Buffer) {
    if line < usize::from(area.height) {
        buffer.set_stringn(area.x, area.y + line as u16, text, area.width.into(), style);
    }
}

fn help(state: &State, scrolled: usize, buffer: &mut Buffer) {
    let pane = &state.panes[state.shown].pane;
    let arranges: &[_] = if pane.columns().is_empty() { &[] } else { ARRANGE };
    let all: Vec<_> = pane.keys().iter().chain(arranges).chain(KEYS).collect();
    let widest = all.iter().map(|(key, _)| width(key)).max().unwrap_or(0);
    let lines = help_lines(&all, widest as u16 + 3, state.size.width);
    let title = format!("keys of {}", pane.name());
    let area = drawer(state, lines.len() + 1, &title, buffer);
    let rows = usize::from(area.height).saturating_sub(1);
    let first = scrolled.min(lines.len().saturating_sub(rows));
    for (line, (key, from, about)) in lines.iter().skip(first).take(rows).enumerate() {
        put(line, &format!(" {key}"), state.look.strong(), area, buffer);
        let right = Rect { x: area.x + *from, ..area };
        put(line, about, Style::new(), right.intersection(area), buffer);
    }
    let hint = if lines.len() > rows { " ↑ ↓ scroll, any other key closes" } else { CLOSES };
    put(rows, hint, state.look.faint(), area, buffer);
}

/// Keys, and what they do in a column that begins at `right`, or below each other on a narrow
/// terminal; with the column of each text.
fn help_lines<'a>(
    all: &[&(&'a str, &'a str)],
    right: u16,
    columns: u16,
) -> Vec<(&'a str, u16, String)> {
    let mut lines = Vec::new();
    for (key, about) in all {
        let from = if columns >= HELP { right } else { BELOW };
        let mut about = wrapped(about, columns.saturating_sub(from)).into_iter();
        let first = if columns >= HELP { about.next() } else { None };
        lines.push((*key, from, first.unwrap_or_default()));
        lines.extend(about.map(|line| ("", from, line)));
    }
    lines
}

fn draw_palette(state: &State, palette: &Palette, complaint: Option<&String>, buffer: &mut Buffer) {
    let look = state.look;
    let found = palette.suggestions(&state.commands);
    let first = palette.picked().saturating_sub(SUGGESTIONS - 1);
    let shown: Vec<_> = found.iter().enumerate().skip(first).take(SUGGESTIONS).collect();
    let title = match palette.takes(&state.commands) {
        true => "command: enter takes the suggestion, esc leaves",
        false => "command: enter runs it, tab takes the suggestion, esc leaves",
    };
    let area = drawer(state, shown.len() + 1, title, buffer);
    let widest = shown.iter().map(|(_, command)| width(&command.path)).max().unwrap_or(0);
    let widest = widest.min(usize::from(area.width) * 2 / 5);
    for (line, (index, command)) in shown.iter().enumerate() {
        let style = if *index == palette.picked() { look.selected() } else { look.faint() };
        let path = aligned(&cut(&command.path, widest), widest, false);
        let about = cut(&command.about, usize::from(area.width).saturating_sub(widest + 3));
        put(line, &format!(" {path}  {about}"), style, area, buffer);
    }
    let (line, style) = match complaint {
        Some(complaint) => (format!(":{}  {complaint}", palette.line), look.bad()),
        None => (format!(":{}▏", palette.line), look.strong()),
    };
    // Show the end of a long line, because that is being typed.
    let begin = line.char_indices().map(|(at, _)| at);
    let begin = begin.into_iter().find(|at| width(&line[*at..]) <= area.width.into());
    put(shown.len(), &line[begin.unwrap_or(line.len())..], style, area, buffer);
}

fn question(state: &State, proposal: &Proposal, buffer: &mut Buffer) {
    let (look, width) = (state.look, state.size.width);
    let (title, lines, hint) = match proposal {
        Proposal::Run { about, words } => {
            let about = wrapped(about, width).into_iter().map(|line| (line, look.strong()));
            let command = wrapped(&format!("cowboyctl {}", words.join(" ")), width);
            let command = command.into_iter().map(|line| (line, look.faint()));
            ("sure?", about.chain(command).collect::<Vec<_>>(), "y does it, any other key does not")
        }
        Proposal::Nothing(reason) => {
            let lines = wrapped(reason, width).into_iter().map(|line| (line, Style::new()));
            ("nothing to do", lines.collect(), CLOSES.trim_start())
        }
    };
    let area = drawer(state, lines.len() + 1, title, buffer);
    for (line, (text, style)) in lines.iter().enumerate() {
        put(line, text, *style, area, buffer);
    }
    put(lines.len(), hint, look.warn(), area, buffer);
}

/// Draws the columns of the pane's list, each with a sign if it is shown.
fn choose(state: &State, cursor: Cursor, buffer: &mut Buffer) {
    let Slot { pane, arrangement, .. } = &state.panes[state.shown];
    let columns = pane.columns();
    let title = format!("columns of {}: space shows or hides, esc closes", pane.name());
    let area = drawer(state, columns.len(), &title, buffer);
    let window = cursor.window(columns.len(), area.height.into());
    for (line, index) in window.enumerate() {
        let sign = if arrangement.shows(index) { "■" } else { "·" };
        let style = match index == cursor.of(columns.len()) {
            true => state.look.selected(),
            false => Style::new(),
        };
        put(line, &format!(" {sign} {} ", columns[index].name), style, area, buffer);
    }
}

fn draw_output(state: &State, output: &Output, buffer: &mut Buffer) {
    let look = state.look;
    let seen = output.window(lines(state.size));
    // The pane stays visible above a short output.
    let area = drawer(state, seen.len() + 1, &output.title, buffer);
    for (line, text) in output.lines.range(seen).enumerate() {
        put(line, text, Style::new(), area, buffer);
    }
    let forgotten = match output.forgotten {
        0 => String::new(),
        count => format!("  {} lines dropped", grouped(count.into())),
    };
    let (text, style) = match &output.ended {
        None => (format!("running; esc ends it{forgotten}"), look.busy()),
        Some(EndedCommand::Code(0)) => (format!("done; esc closes this{forgotten}"), look.good()),
        Some(EndedCommand::Code(code)) => {
            (format!("exit code {code}; esc closes this{forgotten}"), look.bad())
        }
        Some(EndedCommand::Not(reason)) => {
            (format!("{reason}; esc closes this{forgotten}"), look.bad())
        }
    };
    put(usize::from(area.height).saturating_sub(1), &text, style, area, buffer);
}

fn equivalent(state: &State, command: &str, buffer: &mut Buffer) {
    let lines = wrapped(command, state.size.width);
    let title = "the same as a command, copied; enter: run it here";
    let area = drawer(state, lines.len(), title, buffer);
    for (line, text) in lines.iter().enumerate() {
        put(line, text, state.look.strong(), area, buffer);
    }
}
