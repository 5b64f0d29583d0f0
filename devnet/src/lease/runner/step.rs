//! One step: a shell and its descendants. Their output is passed on while they run, and all of them
//! are ended when the step ends.

use super::{
    SHELL,
    container::{Container, LastLine},
    heartbeat::{Halt, Heartbeats},
    output::Output,
};
use crate::executor::command::Tree;
use std::{
    collections::BTreeMap,
    ffi::OsString,
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

/// Size of the blocks in which output is read, in bytes.
const BLOCK: usize = 16 << 10;
/// Longest time that a process tree has to stop before it is killed.
const MAX_GRACE: Duration = Duration::from_secs(10);
/// The same when the runner ends.
const GRACE: Duration = Duration::from_secs(5);
/// How much is read, after a step's end, of the output of a process that could not be ended, in
/// bytes.
const MAX_REST: usize = 1 << 20;

/// The surroundings of a job's steps.
pub(super) struct StepContext<'a> {
    /// The job's directory, which also marks its processes.
    pub(super) job: &'a Path,
    /// Where the shell starts.
    pub(super) workdir: &'a Path,
    /// The complete environment.
    pub(super) env: &'a BTreeMap<String, OsString>,
    /// The container in which they run, which has the environment.
    pub(super) container: Option<&'a Container<'a>>,
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Exited(ExitStatus),
    /// The step had to stop.
    Halted(Halt, ExitStatus),
}

/// The exit code as a shell reports it: 128 plus the signal's number for a killed process.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Runs `script` to its end. Errors: it could not be started, or the system lost track of it.
pub(super) async fn run(
    place: &StepContext<'_>,
    script: &str,
    hold: &Heartbeats,
    output: &mut Output<'_>,
) -> io::Result<End> {
    let ended = || io::Error::other("its container has ended");
    let command = match place.container {
        None => shell(place, script),
        Some(container) => container.step(place.workdir, script).ok_or_else(ended)?,
    };
    let end = attend(command, place.job, place.container, hold, output, None).await?;
    match (&end, place.container) {
        (End::Exited(status), Some(container)) if !status.success() && container.has_ended() => {
            Err(ended())
        }
        _ => Ok(end),
    }
}

/// Runs a command to its end, passes on its output, and keeps the last line of it in `heard`.
/// `mark` marks its processes; those of a container's client run in the container.
pub(super) async fn attend(
    mut command: Command,
    mark: &Path,
    container: Option<&Container<'_>>,
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
        let end = end(tree, exits, container, hold).await;
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
        tokio::select! {
            () = hold.cutoff() => {}
            () = read => {}
        }
    };
    let (end, ()) = tokio::join!(work, read);
    end
}

/// Waits until the command has exited or has to stop, and ends its process tree.
async fn end(
    tree: Tree,
    mut exits: Signal,
    container: Option<&Container<'_>>,
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
    let over = async {
        tokio::select! {
            _ = hold.lost() => {}
            () = sleep_until(now + grace) => {}
        }
    };
    let status = match (grace, container) {
        (Duration::ZERO, _) => tree.end(|| ()).await?,
        (_, None) => tree.stop(over).await?,
        (_, Some(container)) => {
            let ends = async {
                container.ask_to_end().await;
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

/// The shell command of a step without a container.
fn shell(place: &StepContext<'_>, script: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.arg0("sh").args(["-c", script]).current_dir(place.workdir).env_clear().envs(place.env);
    command
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
