//! The terminal: taken over, restored in any case, and its keys.

use super::state::{Event, SMALLEST};
use crate::error::{CliError, Exit};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use crossterm::{
    cursor::{Hide, Show},
    event::{self, DisableMouseCapture, EnableMouseCapture},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::{
    Frame, Terminal, TerminalOptions, Viewport,
    backend::CrosstermBackend,
    layout::{Position, Rect, Size},
};
use rustix::process::{Signal, kill_current_process_group};
use std::{
    io::{self, IsTerminal as _, Stdout},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::sync::mpsc;

const QUEUE: usize = 256;

/// How often the thread that reads keys checks whether the receiver still exists.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum bytes for the clipboard; terminals accept little more.
const CLIPBOARD: usize = 64 << 10;

static TAKEN: AtomicBool = AtomicBool::new(false);

static PANICKED: AtomicBool = AtomicBool::new(false);

/// The terminal. Dropping it restores the terminal.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes over the terminal. From then on a panic restores it before it prints anything.
    pub fn take() -> Result<Self, CliError> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                give_back();
                PANICKED.store(true, Ordering::Relaxed);
                before(info);
            }));
        });
        take()?;
        let viewport = Viewport::Fixed(Rect::from((Position::ORIGIN, size())));
        let backend = CrosstermBackend::new(io::stdout());
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(Self { terminal })
    }

    /// Resizes the picture to the terminal's size, which it returns. The next draw repaints
    /// everything.
    pub fn fit(&mut self) -> Result<Size, CliError> {
        let size = size();
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))?;
        Ok(size)
    }

    /// Whether the terminal has this size.
    pub fn has(known: Size) -> bool {
        size() == known
    }

    /// Draws a picture; only the differences from the last one are sent to the terminal.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> Result<(), CliError> {
        self.terminal.draw(picture)?;
        Ok(())
    }

    /// Whether some thread has panicked: the terminal is restored, and must not be drawn on.
    pub fn is_lost() -> bool {
        PANICKED.load(Ordering::Relaxed)
    }

    /// Restores the terminal and stops the process like a shell's ctrl-z. The process may run on
    /// for a moment, and without a shell to continue it, the system does not stop it.
    pub fn suspend() -> Result<(), CliError> {
        give_back();
        kill_current_process_group(Signal::TSTP).map_err(io::Error::from)?;
        Ok(())
    }

    /// Takes over the terminal again after another program used it; returns its size.
    pub fn resume(&mut self) -> Result<Size, CliError> {
        take()?;
        self.fit()
    }

    /// Copies a text to the terminal's clipboard (OSC 52). Terminals that do not support or allow
    /// it ignore it.
    pub fn copy(&mut self, text: &str) -> Result<(), CliError> {
        Ok(copy(text, self.terminal.backend_mut())?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Writes the sequence that copies a text to the clipboard; nothing for a text that is too long.
fn copy(text: &str, terminal: &mut impl io::Write) -> io::Result<()> {
    if text.len() > CLIPBOARD {
        return Ok(());
    }
    write!(terminal, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
    terminal.flush()
}

/// Fails if there is no terminal.
pub fn check() -> Result<(), CliError> {
    match io::stdin().is_terminal() && io::stdout().is_terminal() {
        true => Ok(()),
        false => Err(CliError::new(
            Exit::Usage,
            "the dashboard needs a terminal for its keys and its picture",
        )
        .hint("for scripts: cowboyctl devnet status, cowboyctl chain events --follow")),
    }
}

/// The size of the terminal on stdout; the smallest useful size if it is unknown.
fn size() -> Size {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size::new(size.ws_col, size.ws_row),
        _ => SMALLEST,
    }
}

fn take() -> Result<(), CliError> {
    TAKEN.store(true, Ordering::SeqCst);
    let taken = enable_raw_mode()
        .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, Hide));
    if taken.is_err() {
        give_back();
    }
    Ok(taken?)
}

/// Restores the terminal. A second call does nothing.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // If the terminal is gone, nothing more can be done.
        let _gone = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _gone = disable_raw_mode();
    }
}

/// Reads keys, the mouse and sizes in a separate thread, which ends when the receiver or the
/// terminal is gone.
pub fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    thread::spawn(move || {
        loop {
            match event::poll(LOOK) {
                Ok(true) => {}
                Ok(false) if sender.is_closed() => return,
                Ok(false) => continue,
                Err(_) => return,
            }
            let event = match event::read() {
                Ok(event::Event::Key(key)) => Event::Key(key),
                Ok(event::Event::Mouse(mouse)) => Event::Mouse(mouse),
                Ok(event::Event::Resize(width, height)) => Event::Resize(Size { width, height }),
                Ok(_) => continue,
                Err(_) => return,
            };
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_what_terminals_expect() {
        let check = |text: &str, expected: &[u8]| {
            let mut written = Vec::new();
            copy(text, &mut written).unwrap();
            assert_eq!(written, expected);
        };
        check("cowboyctl job ls", b"\x1b]52;c;Y293Ym95Y3RsIGpvYiBscw==\x07");
        // Characters that would end the sequence are encoded, too.
        check("\x07\x1b\\", b"\x1b]52;c;Bxtc\x07".as_slice());
        check("日本", b"\x1b]52;c;5pel5pys\x07");
        check("", b"\x1b]52;c;\x07");
        check(&"x".repeat(CLIPBOARD + 1), b"");
    }
}
