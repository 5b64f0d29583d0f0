//! Commands on a pseudo terminal of a given width.

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::File,
    io::Read as _,
    process::{Command, Stdio},
};

pub struct Shown {
    pub code: i32,
    /// Both streams interleaved, with plain line feeds.
    pub text: String,
}

/// Runs a command with its output, and if `errors` also its standard error, on a terminal.
pub fn on_terminal(command: &mut Command, columns: u16, errors: bool) -> Shown {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = File::from(rustix::fs::open(name, flags, Mode::empty()).unwrap());
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&slave, size).unwrap();
    if errors {
        command.stderr(slave.try_clone().unwrap());
    } else {
        command.stderr(Stdio::null());
    }
    let mut child = command.stdout(slave).spawn().unwrap();
    // Drops this process's copies of the terminal's other end: reading ends with the command.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut text = Vec::new();
    let mut master = File::from(master);
    let mut buffer = [0; 4_096];
    // Reading fails when the other end of the terminal is closed.
    while let Ok(read @ 1..) = master.read(&mut buffer) {
        text.extend_from_slice(&buffer[..read]);
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    Shown { code, text: String::from_utf8(text).unwrap().replace("\r\n", "\n") }
}
