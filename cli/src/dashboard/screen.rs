//! The terminal: taken, and given back whatever happens; its keys.

use super::{state::Event, view::SMALLEST};
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

/// Keys on their way at most.
const QUEUE: usize = 256;

/// How long the thread that reads keys waits before it looks whether anybody still wants them.
const LOOK: Duration = Duration::from_secs(1);

/// Bytes that are handed to the clipboard at most; terminals take little more.
const CLIPBOARD: usize = 64 << 10;

/// Whether the terminal is taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether some thread has panicked.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The terminal. Dropping it gives the terminal back.
#[derive(Debug)]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal. From here on a panic gives it back before it says anything.
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

    /// Fits the picture to the terminal's size, which it returns. All of it is drawn anew.
    pub fn fit(&mut self) -> Result<Size, CliError> {
        let size = size();
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))?;
        Ok(size)
    }

    /// Draws a picture; only what differs from the last one goes to the terminal.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> Result<(), CliError> {
        self.terminal.draw(picture)?;
        Ok(())
    }

    /// Whether some thread has panicked: the terminal is given back, and no more to be drawn on.
    pub fn is_lost() -> bool {
        PANICKED.load(Ordering::Relaxed)
    }

    /// Gives the terminal back and stops the process as a shell's ctrl-z does. The process may run
    /// on for a moment, and where there is no shell to continue it, the system does not stop it.
    pub fn suspend() -> Result<(), CliError> {
        give_back();
        kill_current_process_group(Signal::TSTP).map_err(io::Error::from)?;
        Ok(())
    }

    /// Takes the terminal again after somebody else had it; its size.
    pub fn resume(&mut self) -> Result<Size, CliError> {
        take()?;
        self.fit()
    }

    /// Hands a text to the terminal's clipboard (OSC 52). Terminals that do not know of it, or do
    /// not allow it, ignore it.
    pub fn copy(&mut self, text: &str) -> Result<(), CliError> {
        Ok(copy(text, self.terminal.backend_mut())?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Writes what hands a text to the clipboard; nothing for one that is too long.
fn copy(text: &str, terminal: &mut impl io::Write) -> io::Result<()> {
    if text.len() > CLIPBOARD {
        return Ok(());
    }
    write!(terminal, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
    terminal.flush()
}

/// Fails where there is no terminal.
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

/// The size of the terminal that shows stdout; the smallest useful one where it does not say.
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

/// Gives the terminal back as it was. A second time does nothing.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Nothing more can be done where the terminal is gone.
        let _gone = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen, Show);
        let _gone = disable_raw_mode();
    }
}

/// Reads keys, the mouse and sizes, in a thread of its own. It ends when nobody listens, and when
/// the terminal is gone.
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
        // What would end the sequence is encoded like all else.
        check("\x07\x1b\\", b"\x1b]52;c;Bxtc\x07".as_slice());
        check("日本", b"\x1b]52;c;5pel5pys\x07");
        check("", b"\x1b]52;c;\x07");
        check(&"x".repeat(CLIPBOARD + 1), b"");
    }
}
