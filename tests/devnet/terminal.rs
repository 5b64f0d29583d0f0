//! A terminal for a program under test: a pseudo-terminal, and the screen's content.

use super::support::PATIENCE;
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};
use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    num::NonZeroU16,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
    time::Instant,
};

/// The state that is shared with the thread that reads the program's output.
struct Shown {
    parser: Mutex<vt100::Parser>,
    changed: Condvar,
}

/// A program on a terminal. Dropping it ends the program.
pub struct Terminal {
    child: Child,
    master: File,
    /// Keeps the terminal alive after the program, to check the state that it left.
    slave: Option<File>,
    before: Termios,
    shown: Arc<Shown>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a program on a terminal of this size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
        resize(&master, columns, rows);
        let before = tcgetattr(&slave).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        // A separate process group, so that the program cannot signal this one.
        command.env("TERM", "xterm-256color").env_remove("RUST_BACKTRACE").process_group(0);
        let child = command.spawn().unwrap();
        // The command holds the terminal, too.
        drop(command);
        let parser = vt100::Parser::new(size(rows), size(columns), 0);
        let shown = Arc::new(Shown { parser: Mutex::new(parser), changed: Condvar::new() });
        let reader = {
            let mut master = File::from(master.try_clone().unwrap());
            let shown = Arc::clone(&shown);
            thread::spawn(move || {
                let mut bytes = [0; 4_096];
                // Reading fails once all other ends of the terminal are closed.
                while let Ok(count @ 1..) = master.read(&mut bytes) {
                    shown.parser.lock().unwrap().process(&bytes[..count]);
                    shown.changed.notify_all();
                }
            })
        };
        let master = File::from(master);
        Self { child, master, slave: Some(slave), before, shown, reader: Some(reader) }
    }

    /// The program's process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Resizes the terminal and signals the program. The system signals it only if this is the
    /// program's controlling terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.shown.parser.lock().unwrap().set_size(size(rows), size(columns));
        tcsetwinsize(&self.master, winsize(columns, rows)).unwrap();
        self.signal(Signal::WINCH);
    }

    /// Waits until the condition holds, and returns the screen's text.
    pub fn wait(&self, what: &str, holds: impl Fn(&vt100::Screen) -> bool) -> String {
        let start = Instant::now();
        let mut parser = self.shown.parser.lock().unwrap();
        while !holds(parser.screen()) {
            let left = PATIENCE.saturating_sub(start.elapsed());
            let screen = || parser.screen().contents();
            assert!(!left.is_zero(), "waited {PATIENCE:?} in vain: {what}\n{}", screen());
            parser = self.shown.changed.wait_timeout(parser, left).unwrap().0;
        }
        parser.screen().contents()
    }

    /// Waits until the screen has a text, and returns the screen's text.
    pub fn see(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contents().contains(text))
    }

    /// Waits until the screen no longer has a text.
    pub fn lose(&self, text: &str) {
        self.wait(&format!("no {text}"), |screen| !screen.contents().contains(text));
    }

    /// Waits until the program has ended, and checks that it restored the terminal: the modes, the
    /// main screen, the cursor and the mouse.
    pub fn ended(&mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "the program does not end");
            thread::park_timeout(std::time::Duration::from_millis(10));
        };
        self.wait("the terminal given back", |screen| {
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        });
        self.is_as_before();
        // The last output may not have been read yet: closing the terminal ends the reader.
        drop(self.slave.take());
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        let text = self.shown.parser.lock().unwrap().screen().contents();
        (status, text)
    }

    /// Checks that the terminal's modes are the same as before the program.
    pub fn is_as_before(&self) {
        let modes = |termios: &Termios| {
            let Termios { input_modes, output_modes, control_modes, local_modes, .. } = termios;
            (*input_modes, *output_modes, *control_modes, *local_modes)
        };
        let now = tcgetattr(self.slave.as_ref().unwrap()).unwrap();
        assert_eq!(modes(&now), modes(&self.before));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.slave.take());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn size(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

fn winsize(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn resize(master: &OwnedFd, columns: u16, rows: u16) {
    tcsetwinsize(master, winsize(columns, rows)).unwrap();
}
