//! One command from its start to its end: its output, and the end of its process tree.

use super::{
    heartbeat::{Halt, Heartbeats, unless},
    output::Output,
};
use cowboy_host::process::{Tree, shown};
use futures::{FutureExt as _, future::BoxFuture};
use std::{
    io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt as _},
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    net::unix::pipe,
    process::Command,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{Instant, sleep_until},
};

const BLOCK: usize = 16 << 10;
/// Longest time that a process tree has to stop before it is killed.
const MAX_GRACE: Duration = Duration::from_secs(10);
/// The same when the runner ends.
const GRACE: Duration = Duration::from_secs(5);
/// How much is read, after a step's end, of the output of a process that could not be ended, in
/// bytes.
const MAX_REST: usize = 1 << 20;

/// How much of the last line is kept, in bytes.
const MAX_ERROR_LINE: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Exited(ExitStatus),
    Halted(Halt, ExitStatus),
}

/// The exit code as a shell reports it: 128 plus the signal's number for a killed process.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Runs a command to its end, passes on its output, and keeps the last line of it in `heard`.
/// `mark` marks its processes. `ask_to_end` asks those of a container, which are not in the tree of
/// its client.
pub(super) async fn attend(
    mut command: Command,
    mark: &Path,
    ask_to_end: Option<BoxFuture<'_, ()>>,
    hold: &Heartbeats,
    output: &mut Output<'_>,
    heard: Option<&mut LastLine>,
) -> io::Result<End> {
    // Registered before the start, because the exit of a quick step could be missed otherwise.
    let exits = signal(SignalKind::child())?;
    let (reader, stdout) = io::pipe()?;
    let reader = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let stderr = stdout.try_clone()?;
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let tree = Tree::start(&mut command, mark)?;
    // This closes the process' own end of the output.
    drop(command);
    let (over, is_over) = watch::channel(false);
    let work = async {
        let end = end(tree, exits, ask_to_end, hold).await;
        // Fails if the output was given up.
        let _ = over.send(true);
        end
    };
    let read = async {
        let read = async {
            if let Err(error) = read(reader, is_over, output, heard).await {
                output.note(&format!("the rest of the output cannot be read: {error}")).await;
            }
        };
        let _ = unless(hold.cutoff(), read).await;
    };
    let (end, ()) = tokio::join!(work, read);
    end
}

async fn end(
    tree: Tree,
    mut exits: Signal,
    ask_to_end: Option<BoxFuture<'_, ()>>,
    hold: &Heartbeats,
) -> io::Result<End> {
    let halt = tokio::select! {
        biased;
        halt = hold.halted() => halt,
        exited = tree.exited(&mut exits) => {
            exited?;
            return tree.end(|| ()).await.map(End::Exited);
        }
    };
    let now = Instant::now();
    let grace = match &halt {
        Halt::Lost(_) => Duration::ZERO,
        Halt::Canceled { by } | Halt::TimedOut { by } => {
            (by.saturating_duration_since(now) / 2).min(MAX_GRACE)
        }
        Halt::Stopped => GRACE,
    };
    let over = unless(hold.lost(), sleep_until(now + grace)).map(drop);
    let status = match (grace, ask_to_end) {
        (Duration::ZERO, _) => tree.end(|| ()).await?,
        (_, None) => tree.stop(over).await?,
        (_, Some(ask_to_end)) => {
            let ends = async {
                ask_to_end.await;
                tree.exited(&mut exits).await
            };
            tokio::select! {
                ended = ends => ended?,
                () = over => {}
            }
            tree.end(|| ()).await?
        }
    };
    Ok(End::Halted(halt, status))
}

/// Passes on output until every writer has closed it or, once the step is over, until no more is
/// there: a process that still holds it open then is out of reach.
async fn read(
    reader: pipe::Receiver,
    mut is_over: watch::Receiver<bool>,
    output: &mut Output<'_>,
    mut heard: Option<&mut LastLine>,
) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    let mut rest = MAX_REST;
    let done = loop {
        let over = *is_over.borrow_and_update();
        match reader.try_read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(length) => {
                if let Some(heard) = &mut heard {
                    heard.push(&buffer[..length]);
                }
                output.write(&buffer[..length]).await;
                if over {
                    rest = rest.saturating_sub(length);
                }
                if rest == 0 {
                    break Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if over {
                    break Ok(());
                }
                tokio::select! {
                    ready = reader.readable() => ready?,
                    // Fails if the sender is gone: the step is over and has reported it.
                    _ = is_over.changed() => {}
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    output.end().await;
    done
}

/// The last nonempty line that was written, up to [`MAX_ERROR_LINE`] bytes.
#[derive(Debug, Default)]
pub(super) struct LastLine {
    line: Vec<u8>,
    ended: bool,
}

impl LastLine {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.ended && !piece.trim_ascii().is_empty() {
                self.line.clear();
                self.ended = false;
            }
            let room = MAX_ERROR_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.ended |= piece.ends_with(b"\n") && !self.line.trim_ascii().is_empty();
        }
    }

    /// The line, or, without one, the writer's exit status.
    pub(super) fn or(&self, status: ExitStatus) -> String {
        match shown(&self.line) {
            line if line.is_empty() => status.to_string(),
            line => line.strip_prefix("Error: ").map_or(line.clone(), str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_words_tells_what_went_wrong() {
        let check = |pieces: &[&str], expected: &str| {
            let mut last = LastLine::default();
            for piece in pieces {
                last.push(piece.as_bytes());
            }
            assert_eq!(last.or(ExitStatus::from_raw(125 << 8)), expected, "{pieces:?}");
        };
        check(&[], "exit status: 125");
        check(&["\n \n"], "exit status: 125");
        check(&["one\ntwo\n"], "two");
        check(&["one\nError: t", "wo\n\n"], "two");
        check(&["one\ntwo \u{1b}[2J without an end"], "two  [2J without an end");
        check(&[&"x".repeat(5000), "\n"], &"x".repeat(MAX_ERROR_LINE));
    }
}
