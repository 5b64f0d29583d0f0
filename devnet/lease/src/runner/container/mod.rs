//! Jobs with an image: their steps run in the job's own container, by the same rules as steps
//! without one.
//!
//! ```text
//! image there? ─▶ pull ─▶ noted ─▶ create ─▶ start ─▶ exec of each step ─▶ kill ─▶ rm ─▶ forgotten
//! ```
//!
//! * All steps of a job share one container. The only part of the machine in it is the job's
//!   directory, at [`INSIDE`]; files that a step writes elsewhere stay for the next step.
//! * The container's main process only waits for the end of its input, which the runner holds open:
//!   when the runner dies, that process ends, and with it everything in the container. The client
//!   attached to it leads a [`Tree`] for as long as the container exists, so that orphans such as
//!   the engine's monitors do not count as a step's.
//! * A step is a script that runs the job's command and kills the processes that it leaves running
//!   ([`script`]). The environment comes from a file in the job's directory that only the runner's
//!   user can read, so that it is in no process' arguments.
//! * On a halt every process in the container is asked to end. Those that have not ended in time
//!   are killed with the container. When the lease is lost they are killed at once.
//! * A container's name is noted in the runner's folder before it is created and until it is
//!   removed ([`left`]): the next runner removes those of a killed one.
//!
//! | file | subject |
//! |---|---|
//! | [`engine`] | podman or docker, whether it works, and its commands |
//! | [`image`] | which names of images are accepted |
//! | [`script`] | the runner's scripts in a container |
//! | [`left`] | the names of containers on disk |

mod engine;
mod image;
pub(super) mod left;
mod script;

pub use engine::{AskError, Choice, Engine, EngineError};

use super::{
    SHELL,
    attend::{End, LastLine, attend},
    heartbeat::{Halt, Heartbeats, unless},
    output::Output,
};
use cowboy_host::process::Tree;
use engine::pump;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// Path of the job's directory in its container.
const INSIDE: &str = "/cowboy";
/// Name of the file with the environment, in the job's directory.
const ENVIRONMENT: &str = "container-env";
/// Label of the runners' containers; the value is the runner's folder.
const LABEL: &str = "cowboyctl.runner";

const LOOK_LIMIT: Duration = Duration::from_secs(60);
/// Time limit for creating a container, and for starting it: some engines copy the image.
const MAKE_LIMIT: Duration = Duration::from_secs(600);
/// Time limit for sending a signal to the processes in a container.
const SIGNAL_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait for the client of a container that has ended.
const ENDED_LIMIT: Duration = Duration::from_secs(1);
/// Longest process id, in digits.
const MAX_DIGITS: usize = 16;

#[derive(Debug)]
pub(super) struct Containers {
    pub(super) engine: Engine,
    /// The runner's folder.
    pub(super) runner: PathBuf,
}

/// A job's container: not created yet, running, or removed.
pub(super) struct Container<'a> {
    containers: Option<&'a Containers>,
    /// The job's directory.
    job: &'a Path,
    name: Option<String>,
    held: Option<Held>,
}

struct Held {
    tree: Tree,
    /// Id of the container's main process, inside the container.
    process: String,
    /// The container's input: the container ends when this is closed.
    _stdin: Option<ChildStdin>,
    _stdout: Option<ChildStdout>,
    _stderr: Option<ChildStderr>,
}

#[derive(Debug)]
pub(super) enum Unmade {
    Halted(Halt),
    Failed(String),
}

pub(super) fn inside(job: &Path, path: &Path) -> PathBuf {
    match path.strip_prefix(job) {
        Ok(below) if below.as_os_str().is_empty() => INSIDE.into(),
        Ok(below) => Path::new(INSIDE).join(below),
        Err(_) => path.to_owned(),
    }
}

impl<'a> Container<'a> {
    /// The container for the job with this directory, not created yet.
    pub(super) fn new(containers: Option<&'a Containers>, job: &'a Path) -> Self {
        Self { containers, job, name: None, held: None }
    }

    pub(super) fn check(
        &self,
        image: &str,
        env: &BTreeMap<String, OsString>,
    ) -> Result<(), String> {
        if self.containers.is_none() {
            return Err(format!("this runner has no containers, and the job wants {image}"));
        }
        image::check(image)?;
        script::environment(env).map(drop)
    }

    /// Creates and starts the container. The image and the environment have been
    /// [`check`](Self::check)ed.
    pub(super) async fn start(
        &mut self,
        image: &str,
        env: &BTreeMap<String, OsString>,
        hold: &Heartbeats,
        output: &mut Output<'_>,
    ) -> Result<(), Unmade> {
        let containers = self.containers.ok_or_else(|| failed("the runner", "no containers"))?;
        self.write(env).map_err(|error| failed("the file of the job's environment", error))?;
        self.bring(containers, image, hold, output).await?;
        let name = left::new_name();
        left::note(&containers.runner, &name, containers.engine.program()).map_err(|error| {
            failed("the container cannot be noted in the runner's folder", error)
        })?;
        self.name = Some(name.clone());
        self.create(containers, &name, image, hold, output).await?;
        let held = timeout(MAKE_LIMIT, self.attach(containers, &name));
        let held = unless(hold.halted(), held).await.map_err(Unmade::Halted)?;
        let held = held.unwrap_or_else(|_| Err(AskError::Silent));
        let what = format!("a container of {image} cannot be started");
        self.held = Some(held.map_err(|error| failed(&what, error))?);
        Ok(())
    }

    fn write(&self, env: &BTreeMap<String, OsString>) -> io::Result<()> {
        let text = script::environment(env).map_err(io::Error::other)?;
        let mut options = OpenOptions::new();
        let path = self.job.join(ENVIRONMENT);
        options.write(true).create_new(true).mode(0o600).open(path)?.write_all(&text)
    }

    async fn bring(
        &self,
        containers: &Containers,
        image: &str,
        hold: &Heartbeats,
        output: &mut Output<'_>,
    ) -> Result<(), Unmade> {
        let look = ["image", "inspect", "--format", "{{.Id}}", "--", image];
        match self.ask(containers, look, LOOK_LIMIT, hold).await? {
            Ok(_) => return Ok(()),
            Err(AskError::Failed(_)) => {}
            Err(error) => {
                return Err(failed(&format!("image {image} cannot be checked"), error));
            }
        }
        let text = format!("pulling image {image}");
        let _ = unless(hold.halted(), output.note(&text)).await;
        let command = containers.engine.command(["pull", "--", image]);
        let mut last = LastLine::default();
        let mark = self.mark();
        let what = format!("image {image} cannot be pulled");
        match attend(command, &mark, None, hold, output, Some(&mut last)).await {
            Ok(End::Halted(halt, _)) => Err(Unmade::Halted(halt)),
            Ok(End::Exited(status)) if status.success() => Ok(()),
            Ok(End::Exited(status)) => Err(failed(&what, last.or(status))),
            Err(error) => Err(failed(&what, error)),
        }
    }

    async fn create(
        &self,
        containers: &Containers,
        name: &str,
        image: &str,
        hold: &Heartbeats,
        output: &mut Output<'_>,
    ) -> Result<(), Unmade> {
        let options = containers.engine.options(self.job, INSIDE).map_err(Unmade::Failed)?;
        let what = format!("a container of {image} cannot be made");
        let mut init = true;
        loop {
            let args = creation(containers, name, image, &options, init);
            let asked = self.ask(containers, args, MAKE_LIMIT, hold).await?;
            let Err(error) = asked else { return Ok(()) };
            // Podman has an init binary only if another package is installed.
            if !(init && matches!(&error, AskError::Failed(why) if why.contains("init binary"))) {
                return Err(failed(&what, error));
            }
            let text = format!("processes that end may stay zombies: {error}");
            let _ = unless(hold.halted(), output.note(&text)).await;
            init = false;
        }
    }

    /// Starts the container with a client attached, and waits until it reports that it runs.
    async fn attach(&self, containers: &Containers, name: &str) -> Result<Held, AskError> {
        let mut exits = signal(SignalKind::child())?;
        let mut command = containers.engine.command(["start", "--attach", "--interactive", name]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut tree = Tree::start(&mut command, &self.job.join("container"))?;
        let stdin = tree.child.stdin.take();
        let (mut stdout, mut stderr) = (tree.child.stdout.take(), tree.child.stderr.take());
        let process = match &mut stdout {
            Some(stdout) => number(stdout).await,
            None => None,
        };
        if let Some(process) = process {
            return Ok(Held { tree, process, _stdin: stdin, _stdout: stdout, _stderr: stderr });
        }
        // It has failed with a message, or the image's shell is not a shell.
        drop((stdin, stdout));
        let mut complaint = LastLine::default();
        let _ = timeout(ENDED_LIMIT, async {
            pump(stderr.take(), |bytes| complaint.push(bytes)).await;
            tree.exited(&mut exits).await
        })
        .await;
        let status = tree.end(|| ()).await?;
        let reason = match status.success() {
            true => format!("its {SHELL} is not a shell"),
            false => complaint.or(status),
        };
        Err(AskError::Failed(reason))
    }

    /// A client that runs `step` in `workdir` of the job's directory. `None` if the container does
    /// not run.
    pub(super) fn step(&self, workdir: &Path, step: &str) -> Option<Command> {
        let environment = inside(self.job, &self.job.join(ENVIRONMENT));
        let workdir = inside(self.job, workdir);
        self.exec(script::STEP, &[environment.as_os_str(), workdir.as_os_str(), step.as_ref()])
    }

    /// Asks all processes in the container to end; a step's client ends when they have.
    pub(super) async fn ask_to_end(&self) {
        let Some(mut command) = self.exec(script::END, &[]) else { return };
        if let Err(error) = engine::ask(&mut command, &self.mark(), SIGNAL_LIMIT).await {
            tracing::debug!(%error, "processes in a container were not asked to end");
        }
    }

    fn exec(&self, script: &str, more: &[&OsStr]) -> Option<Command> {
        let (containers, name, held) = (self.containers?, self.name.as_ref()?, self.held.as_ref()?);
        let mut command = containers.engine.command(["exec", name, SHELL, "-c", script]);
        command.args(["sh", &held.process]).args(more);
        Some(command)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.tree.has_exited().unwrap_or(true))
    }

    pub(super) async fn kill(&self) {
        let (Some(containers), Some(name), Some(_)) = (self.containers, &self.name, &self.held)
        else {
            return;
        };
        let args = ["kill", "--signal", "KILL", name];
        let killed = containers.engine.ask(args, &self.mark(), SIGNAL_LIMIT).await;
        if let Err(error) = killed
            && !self.has_ended()
        {
            tracing::warn!(%name, %error, "what runs in a job's container cannot be killed");
        }
    }

    /// Removes the container with all its processes. If it cannot be removed, it stays noted.
    pub(super) async fn remove(self) {
        if let (Some(containers), Some(name)) = (self.containers, self.name) {
            let program = containers.engine.program();
            match engine::remove(program, &name, &containers.runner).await {
                Ok(()) => {
                    if let Err(error) = left::forget(&containers.runner, &name) {
                        tracing::warn!(%name, %error, "a container that was removed stays noted");
                    }
                }
                Err(error) => tracing::warn!(
                    %name, %error,
                    "a job's container cannot be removed, and is tried again when the runner ends"
                ),
            }
        }
        if let Some(Held { tree, .. }) = self.held
            && let Err(error) = tree.end(|| ()).await
        {
            tracing::warn!(%error, "a container's client cannot be ended");
        }
    }

    async fn ask<S: AsRef<OsStr>>(
        &self,
        containers: &Containers,
        args: impl IntoIterator<Item = S>,
        limit: Duration,
        hold: &Heartbeats,
    ) -> Result<Result<String, AskError>, Unmade> {
        let mark = self.mark();
        let asked = containers.engine.ask(args, &mark, limit);
        unless(hold.halted(), asked).await.map_err(Unmade::Halted)
    }

    /// The mark of the engine's clients. It differs from a step's, with which they would be killed.
    fn mark(&self) -> PathBuf {
        self.job.join("engine")
    }
}

fn creation(
    containers: &Containers,
    name: &str,
    image: &str,
    options: &[String],
    init: bool,
) -> Vec<String> {
    let label = format!("{LABEL}={}", containers.runner.display());
    let mut args = vec!["create", "--pull", "never", "--name", name, "--label", &label];
    if init {
        args.push("--init");
    }
    args.extend(options.iter().map(String::as_str));
    // Removal kills at once instead of asking first.
    args.extend(["--stop-signal", "KILL", "--stop-timeout", "0"]);
    args.extend(["--interactive", "--workdir", INSIDE]);
    args.extend(["--entrypoint", SHELL, "--", image, "-c", script::HOLD]);
    args.into_iter().map(str::to_owned).collect()
}

fn failed(what: &str, why: impl std::fmt::Display) -> Unmade {
    Unmade::Failed(format!("{what}: {why}"))
}

/// The number on the first line.
async fn number(from: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut digits = String::new();
    while digits.len() < MAX_DIGITS {
        match from.read_u8().await.ok()? {
            digit @ b'0'..=b'9' => digits.push(digit.into()),
            b'\n' if !digits.is_empty() => return Some(digits),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests;
