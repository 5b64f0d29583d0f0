//! The sole owner of stdout and stderr.

use super::{
    Document, Filter, Format, Row, document,
    fit::{left_out, width, within, wrap},
    progress::{Pace, Progress},
    record, table,
    theme::{ERROR, HEADING, WARNING},
};
use crate::error::{CliError, ErrorReport, Exit};
use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use std::{
    cell::RefCell,
    env,
    io::{self, IsTerminal as _, Write},
};

thread_local! {
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Runs `work` and returns its output instead of printing it. Notes and progress are left out; a
/// list is one document in every format.
pub fn captured<T>(work: impl FnOnce() -> T) -> (T, Vec<u8>) {
    CAPTURED.set(Some(Vec::new()));
    let outcome = work();
    (outcome, CAPTURED.take().unwrap_or_default())
}

fn is_captured() -> bool {
    CAPTURED.with_borrow(Option::is_some)
}

/// Columns of a drawing if no terminal sets them.
pub const COLUMNS: usize = 80;

/// Prints the output of a command. Colours are only used on a terminal, and never with `NO_COLOR`.
#[derive(Debug, Clone, Copy)]
pub struct Ui {
    format: Format,
    quiet: bool,
    wide: bool,
    /// Rewrites every document. It lives as long as the process, because copies of `Ui` do.
    filter: Option<&'static Filter>,
}

impl Ui {
    /// Output in this format; `quiet` prints only identifiers, `wide` shortens nothing.
    pub const fn new(format: Format, quiet: bool, wide: bool) -> Self {
        Self { format, quiet, wide, filter: None }
    }

    /// JSON output through a filter: a list is one document, or one per item if the format is
    /// line-based.
    pub fn filtered(format: Format, filter: Filter) -> Self {
        let format = match format {
            Format::Jsonl => Format::Jsonl,
            Format::Table | Format::Json | Format::Yaml => Format::Json,
        };
        Self { filter: Some(Box::leak(Box::new(filter))), ..Self::new(format, false, false) }
    }

    /// The same with JSON on one line, for a command that prints many documents.
    pub const fn lined(self) -> Self {
        match self.format {
            Format::Json => Self { format: Format::Jsonl, ..self },
            Format::Table | Format::Jsonl | Format::Yaml => self,
        }
    }

    pub fn is_for_people(self) -> bool {
        self.format == Format::Table && !self.quiet
    }

    pub const fn format(self) -> Format {
        self.format
    }

    pub fn document(self, value: &impl Document) -> Result<(), CliError> {
        if self.quiet {
            // An empty id prints no line.
            let id = value.id();
            return if id.is_empty() { Ok(()) } else { line(&id) };
        }
        match self.format {
            Format::Table => self.people(|| value.text()),
            format => self.program(document(format, value)),
        }
    }

    /// Prints a single value for programs in any format: as JSON if the format is for people.
    pub fn data(self, value: &impl Document) -> Result<(), CliError> {
        match self.quiet {
            true => self.document(value),
            false => self.program(document(self.format, value)),
        }
    }

    /// Prints a picture of the data that follows, and an empty line, for people at a terminal.
    pub fn picture(self, text: &str) -> Result<(), CliError> {
        // A picture that does not fit is not printed.
        let fits = |columns| text.lines().all(|line| width(line) <= columns);
        match terminal() {
            Some(columns) if self.is_for_people() && (self.wide || fits(columns)) => line(text),
            _ => Ok(()),
        }
    }

    /// Prints a single value, drawn for the available columns. Styles are removed if there is no
    /// terminal, and nothing is cut ([`within`]) if no terminal limits the width.
    pub fn drawing(
        self,
        value: &impl Document,
        draw: impl FnOnce(usize) -> String,
    ) -> Result<(), CliError> {
        if !self.is_for_people() {
            return self.document(value);
        }
        let limit = terminal().filter(|_| !self.wide);
        let text = within(limit, || draw(terminal().unwrap_or(COLUMNS)));
        styled(&format!("{text}\n"))?;
        self.name_left_out()
    }

    pub fn list<T: Row>(self, rows: &[T]) -> Result<(), CliError> {
        if self.quiet {
            return rows.iter().try_for_each(|row| line(&row.id()));
        }
        match self.format {
            Format::Table => self.people(|| table::rows(rows)),
            Format::Jsonl if !is_captured() => rows.iter().try_for_each(|row| self.record(row)),
            format => self.program(document(format, &rows)),
        }
    }

    /// Prints an empty list: nothing for people, `[]` for programs.
    pub fn none<T: Row>(self) -> Result<(), CliError> {
        if self.is_for_people() { Ok(()) } else { self.list::<T>(&[]) }
    }

    /// Prints the next record of an endless sequence: one line each, except in YAML.
    pub fn record<T: Row>(self, row: &T) -> Result<(), CliError> {
        if self.quiet {
            return line(&row.id());
        }
        match self.format {
            Format::Table => self.people(|| row.cells().join("  ")),
            format => self.program(record(format, row)),
        }
    }

    /// Prints text for people, drawn for the terminal's columns if stdout is one. Text that is
    /// still too wide is wrapped.
    fn people(self, draw: impl FnOnce() -> String) -> Result<(), CliError> {
        let columns = terminal().filter(|_| !self.wide);
        line(&within(columns, || match columns {
            Some(columns) => wrap(&draw(), columns),
            None => draw(),
        }))?;
        self.name_left_out()
    }

    /// Reports the columns that did not fit: on stderr, or below captured output.
    fn name_left_out(self) -> Result<(), CliError> {
        let names = left_out();
        if names.is_empty() {
            return Ok(());
        }
        let text = format!("not shown for lack of room: {}; --wide shows all", names.join(", "));
        if is_captured() {
            return line(&text);
        }
        self.note(&text);
        Ok(())
    }

    /// Prints data for programs, through the filter if there is one.
    fn program(self, text: String) -> Result<(), CliError> {
        match self.filter {
            Some(filter) => filter.apply(text, raw),
            None => raw(text.as_bytes()),
        }
    }

    /// Prints text in a specific form, which no filter rewrites.
    pub fn plain(self, text: &[u8]) -> Result<(), CliError> {
        match self.filter {
            Some(_) => {
                Err(CliError::new(Exit::Usage, "a filter rewrites JSON, and this is not JSON")
                    .hint("omit --jq and --template, or ask for the form json"))
            }
            None => raw(text),
        }
    }

    /// Prints a step of a transcript for people: the command in colour, then its output.
    pub fn transcript(self, command: &str, value: &impl Document) -> Result<(), CliError> {
        if !self.is_for_people() {
            return Ok(());
        }
        let text = within(terminal().filter(|_| !self.wide), || value.text());
        styled(&format!("{HEADING}{command}{HEADING:#}\n{}\n\n", text.trim_end()))?;
        self.name_left_out()
    }

    pub fn note(self, text: &str) {
        if !self.quiet && !is_captured() {
            say(text);
        }
    }

    /// Prints captured output. On a terminal it replaces `before`, the previous output; elsewhere
    /// it is appended.
    pub fn again(self, captured: &[u8], before: Option<&[u8]>) -> Result<(), CliError> {
        let is_table = self.is_for_people();
        let text = String::from_utf8_lossy(captured);
        let moves = env::var_os("TERM").is_none_or(|term| term != "dumb");
        if is_table && terminal().is_some() && moves {
            // The cursor moves even if colours are unwanted.
            let text = match AutoStream::choice(&io::stdout()) {
                ColorChoice::Never => strip_str(&text).to_string(),
                _ => text.into_owned(),
            };
            return raw(redrawn(&text, rows()).as_bytes());
        }
        match self.format {
            Format::Yaml if self.filter.is_none() && !self.quiet => {
                raw(format!("---\n{text}").as_bytes())
            }
            // Separates a table from the previous one.
            Format::Table if is_table && before.is_some() => styled(&format!("\n{text}")),
            Format::Table if is_table => styled(&text),
            _ => raw(captured),
        }
    }

    pub const fn is_filtered(self) -> bool {
        self.filter.is_some()
    }

    /// Shows progress of a wait: on a terminal of stderr as a changing line, elsewhere as
    /// occasional lines.
    pub fn progress(self, text: String) -> Progress {
        match (self.quiet || is_captured(), io::stderr().is_terminal()) {
            (true, _) => Progress::Silent,
            (false, true) => Progress::shown(text),
            (false, false) => Progress::told(text, Pace::LOG, say),
        }
    }
}

pub fn raw(bytes: &[u8]) -> Result<(), CliError> {
    write(io::stdout().lock(), bytes)
}

/// Prints styled text; styles are only kept on a terminal.
fn styled(text: &str) -> Result<(), CliError> {
    write(anstream::stdout().lock(), text.as_bytes())
}

/// Adds output to the captured output if it is captured, else writes it.
fn write(mut stdout: impl Write, bytes: &[u8]) -> Result<(), CliError> {
    let is_captured = CAPTURED.with_borrow_mut(|captured| {
        captured.as_mut().map(|captured| captured.extend_from_slice(bytes)).is_some()
    });
    if !is_captured {
        stdout.write_all(bytes)?;
        stdout.flush()?;
    }
    Ok(())
}

/// Draws a text from the top of a terminal with `rows` rows, over its old contents, so that the
/// screen is never blank in between. The last row counts the lines that do not fit.
fn redrawn(text: &str, rows: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    let room = rows.saturating_sub(1).max(1);
    let mut drawn = String::from("\x1b[H");
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    for line in &lines[..shown] {
        drawn.extend([line, "\x1b[K\n"]);
    }
    if shown < lines.len() {
        drawn += &format!("… {} lines more\x1b[K\n", lines.len() - shown);
    }
    drawn + "\x1b[J"
}

fn rows() -> usize {
    let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_row);
    if rows == 0 { 24 } else { rows.into() }
}

/// Prints a warning on stderr, about something that may fail later.
pub fn warn(text: &str) {
    say(&format!("{WARNING}warning:{WARNING:#} {text}"));
}

/// Prints an error on stderr, in the format of the data.
pub fn error(error: &CliError, format: Format) {
    match (error.exit, format) {
        (Exit::BrokenPipe, _) => {}
        (_, Format::Table) => say(&format!("{ERROR}error:{ERROR:#} {error}")),
        (_, Format::Yaml) => say(document(format, &ErrorReport::from(error)).trim_end()),
        // On one line, because warnings and notes may precede it.
        _ => say(record(Format::Jsonl, &ErrorReport::from(error)).trim_end()),
    }
}

fn terminal() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    // Some terminals do not report their size.
    let columns = rustix::termios::tcgetwinsize(stdout).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { COLUMNS } else { columns.into() })
}

fn line(text: &str) -> Result<(), CliError> {
    raw(format!("{text}\n").as_bytes())
}

/// Prints a line on stderr. If stderr is closed, the error cannot be reported.
fn say(text: &str) {
    let _gone = writeln!(anstream::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_captured_is_not_printed() {
        let ui = Ui::new(Format::Jsonl, false, false);
        let ((), printed) = captured(|| {
            raw(b"{}\n").unwrap();
            ui.note("nothing");
            styled("a\n").unwrap();
        });
        assert_eq!(printed, b"{}\na\n");
        assert!(!is_captured());
    }

    #[test]
    fn a_screen_is_drawn_from_its_top_and_never_scrolls() {
        assert_eq!(redrawn("a\nb\n", 24), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        let clipped = redrawn("a\nb\nc\nd\n", 4);
        assert_eq!(clipped, "\x1b[Ha\x1b[K\nb\x1b[K\n… 2 lines more\x1b[K\n\x1b[J");
        assert!(clipped.matches('\n').count() < 4);
        assert_eq!(redrawn("a\nb\n", 1).matches('\n').count(), 1);
    }
}
