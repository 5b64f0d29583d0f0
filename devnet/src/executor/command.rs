//! Runs a command in a fresh directory. From the runner's environment it gets only `PATH` and
//! `LANG`; the directory's path is in `HOME`, `TMPDIR` and [`DIRECTORY_VARIABLE`]. If the runner's
//! folder is among those of devnets, the command is kept out of them as far as the system allows:
//! [`private`].
//!
//! The command leads its own process group. When it exits, fails or has to stop, the whole group is
//! killed, including background processes. On Linux, processes that moved to another group or
//! session, as daemons do, are killed too: they are found by that variable in their environment. A
//! process that left its group and also cleared its environment is out of reach once its parent has
//! ended, unless this process adopts orphans ([`adopt_orphans`]). On other systems every process
//! that left its group is out of reach. The runner does not wait for the output of such processes.
//!
//! A killed runner removes nothing. A runner with its own folder for jobs
//! ([`Directories::in_folder`]) removes the remains at its next start.
//!
//! A command can report its progress on its standard error, on a separate line: `progress: 42` or
//! `progress: 42 some words`, with a number from 0 to 100. Such a line does not count as an error
//! message.
//!
//! The memory limit bounds the private writable memory of each process (Linux: `RLIMIT_DATA`), not
//! of all together, and takes effect right after the start. On other systems there is no limit.

mod directory;
mod orphans;
pub mod private;
mod stat;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use directory::{Directories, Directory};
pub(crate) use orphans::adopt as adopt_orphans;
#[cfg(test)]
pub(super) use stat::has_members;
pub(crate) use tree::{END_TIMEOUT, Tree};

use super::{Bounded, Cancelled, ExecutorError, TaskLimits, TaskProgress, within};
use crate::spelling::Quoted;
use rustix::process::Pid;
use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::{fs::PermissionsExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
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

/// Maximum bytes kept of the last line on a command's standard error.
pub const MAX_STDERR: usize = 1024;

/// The environment variable with the path of the command's directory. It marks the job's processes;
/// a job cannot set it.
pub const DIRECTORY_VARIABLE: &str = "COWBOY_JOB_DIRECTORY";

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
    /// Its standard input.
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

    /// The group's leader, with its standard streams.
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

/// The path of `program`: itself if it is a path, otherwise found in a directory of `path`.
pub(crate) fn locate(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    env::split_paths(path).map(|directory| directory.join(program)).find(|file| {
        fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// Limits the memory of the process and of its future children.
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
        match told(&shown(&line)) {
            Some(told) => progress(told),
            None if line.trim_ascii().is_empty() => {}
            None => self.last = line,
        }
    }

    /// The last line, made safe to show.
    fn last(mut self) -> String {
        self.end_line(&|_| {});
        shown(&self.last)
    }
}

/// A line without control characters, at most [`MAX_STDERR`] bytes.
pub(crate) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let shown: String =
        text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shown[..shown.floor_char_boundary(MAX_STDERR)].trim().to_owned()
}

/// Parses a progress line; `None` if the line is not one.
pub(crate) fn told(line: &str) -> Option<TaskProgress> {
    let text = line.strip_prefix("progress:")?.trim_start();
    let (number, words) = text.split_once(' ').unwrap_or((text, ""));
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let percent = number.parse().ok().filter(|percent| digits && *percent <= 100)?;
    let words = words.trim();
    Some(TaskProgress { percent, detail: (!words.is_empty()).then(|| words.to_owned()) })
}
