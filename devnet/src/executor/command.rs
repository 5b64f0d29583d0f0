//! Runs a command in a fresh directory, with nothing of the runner's environment but `PATH`; the
//! directory's path is in [`DIRECTORY_VARIABLE`].
//!
//! The command leads a process group of its own. When it exits, fails or has to stop, the whole
//! group is killed: what it left running in the background goes with it. On Linux so does what
//! moved to another group or session, as daemons do: it is found by that variable in its
//! environment. A process that left its group and dropped its environment as well is beyond reach,
//! and elsewhere every process that left its group is; its output is not waited for.
//!
//! A process that is killed clears nothing away. Whoever runs jobs in a folder of their own
//! ([`Directories::in_folder`]) does that at the next start.
//!
//! On its standard error a command may say how far it is, in a line of its own: `progress: 42` or
//! `progress: 42 some words`, the number from 0 to 100. Such a line is no complaint.
//!
//! The memory limit bounds the private writable memory of each process (Linux: `RLIMIT_DATA`), not
//! of all together, and takes hold right after the start. Elsewhere there is none.

#[cfg(test)]
mod tests;

use super::{Bounded, Cancelled, ExecutorError, Limits, Progress, within};
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions},
};
use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, PermissionsExt as _},
        process::ExitStatusExt as _,
    },
    path::{Path, PathBuf},
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Child,
    signal::unix::{self, SignalKind},
    time::timeout,
};

/// The most that is kept of the last line on a command's standard error, in bytes.
pub const MAX_STDERR: usize = 1024;

/// The environment variable with the path of the command's directory. It marks the processes of the
/// job; a job cannot set it.
pub const DIRECTORY_VARIABLE: &str = "COWBOY_JOB_DIRECTORY";

/// After the group was killed: how long its leader's end, then output that a process beyond reach
/// may hold open, is waited for.
const REAP_TIMEOUT: Duration = Duration::from_millis(500);
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// How long [`Process::end`] takes at most.
pub(super) const END_TIMEOUT: Duration =
    Duration::from_millis((REAP_TIMEOUT.as_millis() + GONE_TIMEOUT.as_millis()) as u64);

// A cancelled task is over within a second (spec jobs §7).
const _: () = assert!(END_TIMEOUT.as_millis() + DRAIN_TIMEOUT.as_millis() < 1000);

/// How long killed processes are waited for that are not the executor's children, so that they no
/// longer write where the directory is being removed.
const GONE_TIMEOUT: Duration = Duration::from_millis(128);

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// A path, or a name to be found in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides `PATH`, which it may set as well.
    pub env: BTreeMap<String, String>,
    /// What it reads from its standard input.
    pub stdin: Vec<u8>,
}

/// Runs `command` to its end, and yields what it wrote to its standard output.
pub(super) async fn run(
    directories: &Directories,
    command: &Command,
    limits: &Limits,
    cancelled: Cancelled,
    started: impl FnOnce(Instant) + Send,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Vec<u8>, ExecutorError> {
    // Before the start, or the exit of a quick command could be missed.
    let mut exits = unix::signal(SignalKind::child()).map_err(local("cannot watch processes"))?;
    let mut process = Process::start(directories, command, limits)?;
    started(Instant::now());

    let mut output = Bounded::new(limits.max_return_bytes);
    let mut complaints = Complaints::default();
    let mut drained = false;
    let child = &mut process.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let result = {
        let mut streams = pin!(async {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // An error: the command does not read it all, as it may.
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
            let mut exited = pin!(exited(process.group.leader, &mut exits));
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
        process.group.kill();
        if result.is_ok() && !drained {
            // What it wrote before it exited. An error of time: someone beyond reach holds on.
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

/// Hands what comes to `take`, until the end or its first error.
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

/// Waits until the process has exited; it stays a zombie, so that its number, which is its
/// group's, is not given to another.
async fn exited(process: Pid, exits: &mut unix::Signal) -> Result<(), ExecutorError> {
    while !has_exited(process)? {
        exits.recv().await;
    }
    Ok(())
}

fn has_exited(process: Pid) -> Result<bool, ExecutorError> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(process), options)
        .map(|status| status.is_some())
        .map_err(|errno| local("cannot wait for the command")(errno.into()))
}

/// A running command. Dropped before its [`end`](Self::end), it is killed and cleared away.
pub(super) struct Process {
    // In the order they must go: no process when the directory is removed.
    group: Group,
    /// The process that leads the group, with its standard streams.
    pub(super) child: Child,
    directory: Directory,
}

impl Process {
    /// Starts `command` in a fresh directory and a process group of its own.
    pub(super) fn start(
        directories: &Directories,
        command: &Command,
        limits: &Limits,
    ) -> Result<Self, ExecutorError> {
        if let Some(name) = command.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            return Err(ExecutorError::Invalid(format!("{name:?} names no environment variable")));
        }
        let failed = |error: io::Error| ExecutorError::Start {
            program: command.program.clone(),
            reason: error.to_string(),
        };
        let directory =
            Directory::new(directories).map_err(local("cannot make a directory for the job"))?;
        let path = command.env.get("PATH").map(OsString::from).or_else(|| env::var_os("PATH"));
        let path = path.unwrap_or_default();
        // A name is looked up here: the standard library would have to fork, which copies the page
        // tables of the whole devnet, where a path lets it spawn.
        let program = locate(&command.program, &path).ok_or_else(|| ExecutorError::Start {
            program: command.program.clone(),
            reason: "not found in PATH".to_owned(),
        })?;
        let child = tokio::process::Command::new(program)
            .arg0(&command.program)
            .args(&command.args)
            .current_dir(directory.path())
            .env_clear()
            .env("PATH", path)
            .envs(&command.env)
            .env(DIRECTORY_VARIABLE, directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .expect("a process that was not waited for has a number");
        let group = Group { leader, alive: true, directory: directory.path().to_owned() };
        let process = Self { group, child, directory };
        limit_memory(leader, limits)?;
        Ok(process)
    }

    /// Waits until the leader has exited. `exits` watches for children's ends since before the
    /// start, or that of a quick one could be missed.
    pub(super) async fn exited(&self, exits: &mut unix::Signal) -> Result<(), ExecutorError> {
        exited(self.group.leader, exits).await
    }

    /// Kills what still runs, and clears it and the directory away. Takes [`END_TIMEOUT`] at most.
    pub(super) async fn end(mut self) -> Result<ExitStatus, ExecutorError> {
        self.group.kill();
        let status = match timeout(REAP_TIMEOUT, self.child.wait()).await {
            Ok(status) => status.map_err(local("cannot wait for the command"))?,
            // It is stuck in the kernel, and reaped once it comes out.
            Err(_) => ExitStatus::from_raw(Signal::KILL.as_raw()),
        };
        self.group.alive = false;
        let (group, directory) = (self.group, self.directory);
        let cleared = tokio::task::spawn_blocking(move || {
            group.clear();
            drop(directory);
        });
        cleared.await.map_err(|error| local("cannot clear away the command")(error.into()))?;
        Ok(status)
    }
}

/// Where `program` is: itself if it is a path, otherwise in a directory of `path`.
fn locate(program: &str, path: &OsStr) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    env::split_paths(path).map(|directory| directory.join(program)).find(|file| {
        fs::metadata(file)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// The process group of a command.
struct Group {
    leader: Pid,
    /// The leader was not reaped yet: the number is the group's.
    alive: bool,
    /// What the environment of its processes names.
    directory: PathBuf,
}

impl Group {
    /// Kills every process of the group.
    fn kill(&self) {
        if self.alive {
            // An error: all are gone, or none may be killed.
            let _ = rustix::process::kill_process_group(self.leader, Signal::KILL);
        }
    }

    /// Kills what left the group, and waits, for a moment at most, until no process of either runs
    /// any more. Most are no children of this process: all that can be done is to look.
    fn clear(&self) {
        until_gone(|| {
            let strays = kill_jobs(|directory| directory == self.directory);
            strays == 0 && !has_members(self.leader)
        });
    }
}

/// Looks again and again, for [`GONE_TIMEOUT`] at most, until killed processes are gone.
fn until_gone(gone: impl Fn() -> bool) {
    let mut pause = Duration::from_millis(1);
    while pause < GONE_TIMEOUT && !gone() {
        std::thread::sleep(pause);
        pause *= 2;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.alive {
            self.kill();
            self.clear();
        }
    }
}

/// Kills the processes of jobs in these directories, and says how many there were. Those of other
/// users cannot be read, and are none of the jobs'.
fn kill_jobs(are: impl Fn(&Path) -> bool) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let mark = format!("{DIRECTORY_VARIABLE}=").into_bytes();
    let mut killed = 0;
    for entry in processes.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        let directory = variables.find_map(|variable| variable.strip_prefix(&*mark));
        if directory.is_some_and(|directory| are(Path::new(OsStr::from_bytes(directory))))
            && let Some(process) = Pid::from_raw(process)
        {
            // An error: it has ended meanwhile.
            let _ = rustix::process::kill_process(process, Signal::KILL);
            killed += 1;
        }
    }
    killed
}

/// Whether a process of the group runs. The dead that nobody has reaped, which may take long in a
/// container, count only where the system does not tell them apart.
pub(super) fn has_members(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let group = group.as_raw_pid().to_string();
    processes
        .flatten()
        .filter_map(|process| fs::read_to_string(process.path().join("stat")).ok())
        .any(|stat| {
            // The name before the parenthesis may hold anything; after it: state, parent, group.
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            let mut fields = fields.split_ascii_whitespace();
            let state = fields.next();
            fields.nth(1) == Some(&group) && !matches!(state, Some("Z" | "X"))
        })
}

/// Bounds the memory of the process and of those it will start.
#[cfg(target_os = "linux")]
fn limit_memory(process: Pid, limits: &Limits) -> Result<(), ExecutorError> {
    use rustix::process::{Resource, Rlimit, prlimit};

    let Some(mebibytes) = limits.max_memory_mb else { return Ok(()) };
    let bytes = Some(mebibytes.saturating_mul(1024 * 1024));
    match prlimit(Some(process), Resource::Data, Rlimit { current: bytes, maximum: bytes }) {
        // It has exited already.
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(local("cannot limit the command's memory")(errno.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: Pid, _: &Limits) -> Result<(), ExecutorError> {
    Ok(())
}

/// Where the directories of jobs are made: among the system's temporary files, unless they have a
/// folder of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Directories(Option<Arc<Path>>);

impl Directories {
    /// In `folder`, which nobody else uses. What is there is of jobs whose runner was killed: the
    /// processes are killed too, and the directories removed.
    pub(super) fn in_folder(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // The same whichever way leads there: processes are known by it.
        let folder = fs::canonicalize(folder)?;
        until_gone(|| kill_jobs(|directory| directory.starts_with(&folder)) == 0);
        for left in fs::read_dir(&folder)? {
            let path = left?.path();
            tracing::info!(path = %path.display(), "job directory of a killed runner removed");
            remove(&path);
        }
        Ok(Self(Some(folder.into())))
    }
}

/// A command's working directory, removed with all that is in it.
struct Directory(Option<TempDir>);

impl Directory {
    fn new(directories: &Directories) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("cowboy-job-");
        let made = match &directories.0 {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        };
        made.map(|made| Self(Some(made)))
    }

    fn path(&self) -> &Path {
        self.0.as_ref().expect("there until it is dropped").path()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some(path) = self.0.take().map(TempDir::keep) {
            remove(&path);
        }
    }
}

/// Removes a job's directory.
fn remove(path: &Path) {
    let removed = fs::remove_dir_all(path).or_else(|_| {
        // The command may have taken away its own permissions.
        open_up(path.to_owned());
        fs::remove_dir_all(path)
    });
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "job directory left behind");
    }
}

/// Makes all directories below `top` writable. Links are not followed.
fn open_up(top: PathBuf) {
    let mut closed = vec![top];
    while let Some(directory) = closed.pop() {
        // Errors show when the directory is removed.
        let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let below =
            entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        closed.extend(below.map(|entry| entry.path()));
    }
}

/// What was written to the standard error: the line that is being written, and the last one that
/// is neither blank nor about progress. Of a line its last bytes are kept.
#[derive(Default)]
struct Complaints {
    line: Vec<u8>,
    last: Vec<u8>,
}

impl Complaints {
    fn push(&mut self, bytes: &[u8], progress: &impl Fn(Progress)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&piece[piece.len().saturating_sub(MAX_STDERR + 1)..]);
            // One more than is shown: the line feed.
            self.line.drain(..self.line.len().saturating_sub(MAX_STDERR + 1));
            if piece.ends_with(b"\n") {
                self.end_line(progress);
            }
        }
    }

    fn end_line(&mut self, progress: &impl Fn(Progress)) {
        let line = std::mem::take(&mut self.line);
        match told(&shown(&line)) {
            Some(told) => progress(told),
            None if line.trim_ascii().is_empty() => {}
            None => self.last = line,
        }
    }

    /// The last line, fit to be shown.
    fn last(mut self) -> String {
        self.end_line(&|_| {});
        shown(&self.last)
    }
}

/// A line without control characters, at most [`MAX_STDERR`] bytes of it.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let shown: String =
        text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shown[..shown.floor_char_boundary(MAX_STDERR)].trim().to_owned()
}

/// What a line says of progress; `None`: nothing.
pub(crate) fn told(line: &str) -> Option<Progress> {
    let text = line.strip_prefix("progress:")?.trim_start();
    let (number, words) = text.split_once(' ').unwrap_or((text, ""));
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let percent = number.parse().ok().filter(|percent| digits && *percent <= 100)?;
    let words = words.trim();
    Some(Progress { percent, detail: (!words.is_empty()).then(|| words.to_owned()) })
}
