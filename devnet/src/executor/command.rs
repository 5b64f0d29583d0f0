//! Runs a command in a fresh directory. From the runner's environment it gets only `PATH` and
//! `LANG`; the directory's path is in `HOME`, `TMPDIR` and
//! [`cowboy_host::process::DIRECTORY_VARIABLE`]. If the runner's folder is among those of devnets,
//! the command is kept out of them as far as the system allows: [`cowboy_host::process::private`].
//!
//! A command can report its progress on its standard error, on a separate line: `progress: 42` or
//! `progress: 42 some words`, with a number from 0 to 100. Such a line does not count as an error
//! message.
//!
//! The memory limit bounds the private writable memory of each process (Linux: `RLIMIT_DATA`), not
//! of all together, and takes effect right after the start. On other systems there is no limit.

#[cfg(test)]
mod tests;

use super::{Bounded, Cancelled, ExecutorError, TaskLimits, within};
use cowboy_host::{
    process::{Directories, Directory, END_TIMEOUT, MAX_STDERR, TaskProgress, Tree, locate, shown},
    spelling::Quoted,
};
use rustix::process::Pid;
use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
    signal::unix::{self, SignalKind},
    time::timeout,
};

/// How long to wait, after the command's end, for output that a process out of reach may hold open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

// A cancelled task is over within a second (spec jobs §7).
const _: () = assert!(END_TIMEOUT.as_millis() + DRAIN_TIMEOUT.as_millis() < 1000);

/// A program to run, without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// A path, or a name to look up in `PATH`.
    pub program: String,
    pub args: Vec<String>,
    /// Environment variables beyond those that every command has, some of which it may override.
    pub env: BTreeMap<String, String>,
    pub stdin: Vec<u8>,
}

/// Runs `command` to its end and returns its standard output.
pub(super) async fn run(
    directories: &Directories,
    command: &Command,
    limits: &TaskLimits,
    cancelled: Cancelled,
    started: impl FnOnce(Instant) + Send,
    progress: impl Fn(TaskProgress) + Send + Sync,
) -> Result<Vec<u8>, ExecutorError> {
    // Before the start, or the exit of a quick command could be missed.
    let mut exits = unix::signal(SignalKind::child()).map_err(local("cannot watch processes"))?;
    let mut process = CommandProcess::start(directories, command, limits).await?;
    started(Instant::now());

    let mut output = Bounded::new(limits.max_return_bytes);
    let mut complaints = Complaints::default();
    let mut drained = false;
    let child = process.child();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let result = {
        let mut streams = pin!(async {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // An error means that the command does not read all of it, which is allowed.
                    let _ = stdin.write_all(&command.stdin).await;
                }
                Ok(())
            };
            let read = pump(stdout, |bytes| output.push(bytes));
            let listen = pump(stderr, |bytes| {
                complaints.push(bytes, &progress);
                Ok(())
            });
            tokio::try_join!(feed, read, listen).map(|_| ())
        });
        let work = async {
            let mut exited = pin!(process.exited(&mut exits));
            loop {
                tokio::select! {
                    biased;
                    result = &mut streams, if !drained => {
                        drained = true;
                        result?;
                    }
                    exit = &mut exited => return exit,
                }
            }
        };
        let result = within(limits.timeout, cancelled, work).await;
        process.tree.kill();
        if result.is_ok() && !drained {
            // The output from before the exit. A timeout: a process out of reach holds the pipe
            // open.
            match timeout(DRAIN_TIMEOUT, &mut streams).await {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) | Err(_) => Ok(()),
            }
        } else {
            result
        }
    };
    let status = process.end().await;
    result?;
    match status? {
        status if status.success() => Ok(output.bytes),
        status => Err(failure(status, complaints.last())),
    }
}

fn failure(status: ExitStatus, stderr: String) -> ExecutorError {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExecutorError::Exit { code, stderr },
        (None, signal) => ExecutorError::Signal { signal: signal.unwrap_or_default(), stderr },
    }
}

pub(super) fn local(what: &'static str) -> impl Fn(io::Error) -> ExecutorError {
    move |error| ExecutorError::Local { what, reason: error.to_string() }
}

/// Passes everything read to `take`, until the end or its first error.
pub(super) async fn pump(
    from: Option<impl AsyncRead + Unpin>,
    mut take: impl FnMut(&[u8]) -> Result<(), ExecutorError>,
) -> Result<(), ExecutorError> {
    let Some(mut from) = from else { return Ok(()) };
    let mut buffer = vec![0; 8192];
    loop {
        match from.read(&mut buffer).await.map_err(local("cannot read from the command"))? {
            0 => return Ok(()),
            length => take(&buffer[..length])?,
        }
    }
}

/// A running command. If it is dropped before [`end`](Self::end), it is killed and removed.
pub(super) struct CommandProcess {
    // Dropped in this order: all processes must be gone when the directory is removed.
    tree: Tree,
    directory: Directory,
}

impl CommandProcess {
    /// Starts `command` in a fresh directory as the leader of its own process group.
    pub(super) async fn start(
        directories: &Directories,
        command: &Command,
        limits: &TaskLimits,
    ) -> Result<Self, ExecutorError> {
        if let Some(name) = command.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            let what = format!("{} is not an environment variable name", Quoted(name));
            return Err(ExecutorError::Invalid(what));
        }
        let failed = |error: io::Error| ExecutorError::Start {
            program: command.program.clone(),
            reason: error.to_string(),
        };
        let directory =
            Directory::new(directories).map_err(local("cannot make a directory for the job"))?;
        let path = command.env.get("PATH").map(OsString::from).or_else(|| env::var_os("PATH"));
        let path = path.unwrap_or_default();
        // A name is looked up here, because the standard library would have to fork for it, which
        // copies the page tables of the whole devnet. With a path it can spawn.
        let program = locate(&command.program, &path).ok_or_else(|| ExecutorError::Start {
            program: command.program.clone(),
            reason: "not found in PATH".to_owned(),
        })?;
        let mut prepared = tokio::process::Command::new(program);
        prepared
            .arg0(&command.program)
            .args(&command.args)
            .current_dir(directory.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", directory.path())
            .env("TMPDIR", directory.path())
            .envs(env::var_os("LANG").map(|language| ("LANG", language)))
            .envs(&command.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut start = move |directory: &Path| Tree::start(&mut prepared, directory);
        let started = match directories.private() {
            None => start(directory.path()).map(|tree| (tree, directory)),
            Some(private) => private.clone().start(directory, start).await,
        };
        let (tree, directory) = started.map_err(failed)?;
        let leader = tree.leader();
        let process = Self { tree, directory };
        limit_memory(leader, limits)?;
        Ok(process)
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.tree.child
    }

    /// Waits until the leader has exited. `exits` must watch for child exits since before the
    /// start, or the exit of a quick command could be missed.
    pub(super) async fn exited(&self, exits: &mut unix::Signal) -> Result<(), ExecutorError> {
        self.tree.exited(exits).await.map_err(local("cannot wait for the command"))
    }

    /// Kills the remaining processes and removes the directory. Takes at most [`END_TIMEOUT`].
    pub(super) async fn end(self) -> Result<ExitStatus, ExecutorError> {
        let directory = self.directory;
        let ended = self.tree.end(move || drop(directory)).await;
        ended.map_err(local("cannot clear away the command"))
    }
}

#[cfg(target_os = "linux")]
fn limit_memory(process: Pid, limits: &TaskLimits) -> Result<(), ExecutorError> {
    use rustix::{
        io::Errno,
        process::{Resource, Rlimit, prlimit},
    };

    let Some(mebibytes) = limits.max_memory_mb else { return Ok(()) };
    let bytes = Some(mebibytes.saturating_mul(1024 * 1024));
    match prlimit(Some(process), Resource::Data, Rlimit { current: bytes, maximum: bytes }) {
        // It has exited already.
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(local("cannot limit the command's memory")(errno.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: Pid, _: &TaskLimits) -> Result<(), ExecutorError> {
    Ok(())
}

/// The end of the standard error: the current line, and the last complete line that is neither
/// blank nor about progress. Only the last bytes of each line are kept.
#[derive(Default)]
struct Complaints {
    line: Vec<u8>,
    last: Vec<u8>,
}

impl Complaints {
    fn push(&mut self, bytes: &[u8], progress: &impl Fn(TaskProgress)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&piece[piece.len().saturating_sub(MAX_STDERR + 1)..]);
            // One more byte than is shown, for the line feed.
            self.line.drain(..self.line.len().saturating_sub(MAX_STDERR + 1));
            if piece.ends_with(b"\n") {
                self.end_line(progress);
            }
        }
    }

    fn end_line(&mut self, progress: &impl Fn(TaskProgress)) {
        let line = std::mem::take(&mut self.line);
        match TaskProgress::reported(&shown(&line)) {
            Some(told) => progress(told),
            None if line.trim_ascii().is_empty() => {}
            None => self.last = line,
        }
    }

    fn last(mut self) -> String {
        self.end_line(&|_| {});
        shown(&self.last)
    }
}
