//! An SVG picture of a terminal after commands.

use crate::support::{Home, PATIENCE};
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use snapbox::{Data, data::DataFormat};
use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::Read as _,
    num::NonZeroU16,
    os::unix::ffi::OsStrExt as _,
    sync::mpsc::channel,
    thread,
};
use vt100::{Cell, Color, Parser, Screen};

/// Columns of the terminal.
const COLUMNS: u16 = 100;

/// Rows of the terminal: more than any command here fills, so that nothing scrolls.
const ROWS: u16 = 200;

/// Runs commands one after the other on a terminal, and draws the final screen.
pub fn picture(home: &Home, commands: &[&[&str]]) -> String {
    let size = |of| NonZeroU16::new(of).expect("the terminal has room");
    let mut terminal = Parser::new(size(ROWS), size(COLUMNS), 0);
    for (number, args) in commands.iter().enumerate() {
        let blank = if number == 0 { "" } else { "\r\n" };
        let typed = format!("{blank}\x1b[1;32m$\x1b[0m cowboyctl {}\r\n", args.join(" "));
        terminal.process(typed.as_bytes());
        terminal.process(on_terminal(home, args).as_bytes());
    }
    let ansi = ansi(terminal.screen());
    Data::text(ansi).coerce_to(DataFormat::TermSvg).render().expect("a picture is text")
}

/// A command's output to a new terminal.
fn on_terminal(home: &Home, args: &[&str]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 50, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs =
        OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();

    let mut command = home.command(args);
    command
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color")
        .env("COLORTERM", "truecolor")
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs);
    let mut child = command.spawn().unwrap();
    // The command holds the terminal's other end, which has to close before the reader can end.
    drop(command);

    let mut ours = File::from(ours);
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        let mut buffer = [0; 8_192];
        // Reading fails once the other end is closed everywhere.
        while let Ok(read @ 1..) = ours.read(&mut buffer) {
            all.extend_from_slice(&buffer[..read]);
        }
        let _gone = sender.send(all);
    });
    let all = receiver.recv_timeout(2 * PATIENCE).unwrap_or_else(|error| {
        let _ended = child.kill();
        panic!("{args:?} did not end: {error}")
    });
    let status = child.wait().unwrap();
    let all = String::from_utf8(all).unwrap();
    assert!(status.success(), "{args:?}: {status}: {all}");
    // The folder of a reader's devnets.
    all.replace(
        home.path("").display().to_string().trim_end_matches('/'),
        "~/.local/state/cowboyctl",
    )
}

/// The screen as lines of text with colours, without cursor movements.
fn ansi(screen: &Screen) -> String {
    let mut lines: Vec<String> = (0..ROWS).map(|row| line(screen, row)).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

fn line(screen: &Screen, row: u16) -> String {
    let cells: Vec<&Cell> = (0..COLUMNS).filter_map(|column| screen.cell(row, column)).collect();
    let used = cells.iter().rposition(|cell| cell.has_contents()).map_or(0, |last| last + 1);
    let mut text = String::new();
    let mut style = String::new();
    for cell in cells[..used].iter().filter(|cell| !cell.is_wide_continuation()) {
        let wanted = codes(cell);
        if wanted != style {
            write!(text, "\x1b[0{wanted}m").expect("a string takes what is written to it");
            style = wanted;
        }
        text += if cell.has_contents() { cell.contents() } else { " " };
    }
    text + if style.is_empty() { "" } else { "\x1b[0m" }
}

/// The escape codes that switch a cell's style on.
fn codes(cell: &Cell) -> String {
    let mut codes = String::new();
    let flags = [
        (cell.bold(), 1),
        (cell.dim(), 2),
        (cell.italic(), 3),
        (cell.underline(), 4),
        (cell.inverse(), 7),
    ];
    for (_, code) in flags.iter().filter(|(set, _)| *set) {
        write!(codes, ";{code}").expect("a string takes what is written to it");
    }
    for (color, base) in [(cell.fgcolor(), 30), (cell.bgcolor(), 40)] {
        match color {
            Color::Default => Ok(()),
            Color::Idx(index @ 0..8) => write!(codes, ";{}", base + u16::from(index)),
            Color::Idx(index @ 8..16) => write!(codes, ";{}", base + 52 + u16::from(index)),
            Color::Idx(index) => write!(codes, ";{};5;{index}", base + 8),
            Color::Rgb(red, green, blue) => write!(codes, ";{};2;{red};{green};{blue}", base + 8),
        }
        .expect("a string takes what is written to it");
    }
    codes
}

#[test]
fn a_screen_keeps_its_colours_and_its_gaps() {
    let size = |of| NonZeroU16::new(of).unwrap();
    let mut terminal = Parser::new(size(ROWS), size(COLUMNS), 0);
    terminal.process(b"gone\r\x1b[2K\x1b[1;32m$\x1b[0m a\x1b[5Cb\r\n\r\n\x1b[91mred\x1b[0m\r\n");
    assert_eq!(ansi(terminal.screen()), "\x1b[0;1;32m$\x1b[0m a     b\n\n\x1b[0;91mred\x1b[0m\n");
}
