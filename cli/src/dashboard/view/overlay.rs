//! The overlays: help, the palette, a command's output, the equivalent command.

use crate::{
    dashboard::{
        drawing::{grid::aligned, section, wrapped},
        output::{EndedCommand, Output},
        palette::Palette,
        state::{Mode, State},
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

const KEYS: &[(&str, &str)] = &[
    ("1 to 9, tab, shift-tab", "another pane"),
    ("/", "filter: words that a line has, !words that it has not"),
    (":", "run a command; tab completes it, its flags and names"),
    ("space", "freeze the picture, and let it go on"),
    ("y", "the command that shows the same; it is copied, too"),
    ("mouse", "click a tab or a row, turn the wheel"),
    ("ctrl-z", "suspend"),
    ("q, ctrl-c", "quit"),
];

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
    let all: Vec<_> = pane.keys().iter().chain(KEYS).collect();
    let height = all.len() + 1;
    let title = format!("keys of {}", pane.name());
    let area = drawer(state, height, &title, buffer);
    let rows = usize::from(area.height).saturating_sub(1);
    let first = scrolled.min(all.len().saturating_sub(rows));
    let widest = all.iter().map(|(key, _)| width(key)).max().unwrap_or(0);
    for (line, (key, about)) in all.iter().skip(first).take(rows).enumerate() {
        put(line, &format!(" {key}"), state.look.strong(), area, buffer);
        let right = Rect { x: area.x + widest as u16 + 3, ..area };
        let right = right.intersection(area);
        put(line, about, Style::new(), right, buffer);
    }
    put(rows, " any key closes this", state.look.faint(), area, buffer);
}

fn draw_palette(state: &State, palette: &Palette, complaint: Option<&String>, buffer: &mut Buffer) {
    let look = state.look;
    let found = palette.suggestions(&state.commands);
    let first = palette.picked.saturating_sub(SUGGESTIONS - 1);
    let shown: Vec<_> = found.iter().enumerate().skip(first).take(SUGGESTIONS).collect();
    let title = "command: enter runs it, tab takes the suggestion, esc leaves";
    let area = drawer(state, shown.len() + 1, title, buffer);
    let widest = shown.iter().map(|(_, command)| width(&command.path)).max().unwrap_or(0);
    let widest = widest.min(usize::from(area.width) * 2 / 5);
    for (line, (index, command)) in shown.iter().enumerate() {
        let style = if *index == palette.picked { look.selected() } else { look.faint() };
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

fn draw_output(state: &State, output: &Output, buffer: &mut Buffer) {
    let look = state.look;
    let whole = output_area(state.size);
    Clear.render(whole, buffer);
    let area = section(&output.title, whole, look, buffer);
    let rows = lines(state.size);
    for (line, text) in output.lines.range(output.window(rows)).enumerate() {
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
