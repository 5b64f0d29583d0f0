//! Jobs with an image: their steps run in a container of their own, with the rules that steps have
//! without one.
//!
//! ```text
//! image there? ─▶ pull ─▶ noted ─▶ create ─▶ start ─▶ exec of each step ─▶ kill ─▶ rm ─▶ forgotten
//! ```
//!
//! * There is one container for all steps of a job. The job's directory, and nothing else of the
//!   machine, is in it at [`INSIDE`]; what a step writes elsewhere is there for the next one.
//! * The container's own process does nothing but wait for the end of its input, which the runner
//!   holds open: without the runner it ends, and all that runs in the container with it. The client
//!   that is attached to it leads a [`Tree`] as long as the container is there: orphans, as the
//!   engine's monitors are, are not a step's then.
//! * A step is a script that runs the job's, and kills what that left running ([`script`]). The
//!   environment comes from a file in the job's directory that only the runner's user reads, and is
//!   in no process' arguments.
//! * Upon a halt every process in the container is asked to end, and those that have not when the
//!   time is over are killed with the container. When the lease is lost they are killed at once.
//! * Before a container is made its name is noted in the runner's folder, until it is removed
//!   ([`left`]): the next runner removes what a killed one left.
//!
//! | file | subject |
//! |---|---|
//! | [`engine`] | podman or docker, whether it works, and its commands |
//! | [`image`] | which names of images are taken |
//! | [`script`] | what runs in a container for the runner |
//! | [`left`] | the names of containers on disk |

mod engine;
mod image;
pub(super) mod left;
mod script;

pub use engine::{Choice, Engine, EngineError};

use super::{
    hold::{Halt, Hold},
    output::Output,
    step::{self, End},
};
use crate::executor::command::{Tree, shown};
use engine::{AskError, pump};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// Where a job's directory is in its container.
const INSIDE: &str = "/cowboy";
/// The file with the environment, in the job's directory.
const ENVIRONMENT: &str = "container-env";
/// What containers of runners are labelled with; the value is the runner's folder.
const LABEL: &str = "cowboyctl.runner";

/// How long it may take to look for an image.
const LOOK_LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to make a container or to start it: some engines copy the image.
const MAKE_LIMIT: Duration = Duration::from_secs(600);
/// How long it may take to send a signal to what runs in a container.
const SIGNAL_LIMIT: Duration = Duration::from_secs(5);
/// How long the client that is attached to a container is waited for that has ended.
const ENDED_LIMIT: Duration = Duration::from_secs(1);
/// The longest number of a process, in digits.
const MAX_DIGITS: usize = 16;
/// The most that is kept of a line, in bytes.
const MAX_LINE: usize = 1024;

/// What a runner needs for jobs with an image.
#[derive(Debug)]
pub(super) struct Containers {
    /// What runs them.
    pub(super) engine: Engine,
    /// The runner's folder.
    pub(super) runner: PathBuf,
}

/// A job's container: not made yet, at work, or removed.
pub(super) struct Container<'a> {
    containers: Option<&'a Containers>,
    /// The job's directory.
    job: &'a Path,
    /// Its name, as long as it may be there.
    name: Option<String>,
    held: Option<Held>,
}

/// A container that runs.
struct Held {
    /// The client that is attached to it.
    tree: Tree,
    /// The number of the container's own process, there.
    process: String,
    /// Its input: when this ends, the container does.
    _stdin: Option<ChildStdin>,
    _stdout: Option<ChildStdout>,
    _stderr: Option<ChildStderr>,
}

/// Why a job has no container.
#[derive(Debug)]
pub(super) enum Unmade {
    /// The job has to stop.
    Halted(Halt),
    /// This.
    Failed(String),
}

/// Where what is in a job's directory is for the steps of a job with an image.
pub(super) fn inside(job: &Path, path: &Path) -> PathBuf {
    match path.strip_prefix(job) {
        Ok(below) if below.as_os_str().is_empty() => INSIDE.into(),
        Ok(below) => Path::new(INSIDE).join(below),
        Err(_) => path.to_owned(),
    }
}

impl<'a> Container<'a> {
    /// One for the job with this directory, which is not made yet.
    pub(super) fn new(containers: Option<&'a Containers>, job: &'a Path) -> Self {
        Self { containers, job, name: None, held: None }
    }

    /// Why a job of this image and environment cannot run on this runner, if it cannot.
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

    /// Makes it, with the image and an environment that were [`check`](Self::check)ed, and has it
    /// wait for steps.
    pub(super) async fn start(
        &mut self,
        image: &str,
        env: &BTreeMap<String, OsString>,
        hold: &Hold,
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
        let held = self.attach(containers, &name);
        let held = tokio::select! {
            biased;
            halt = hold.halted() => return Err(Unmade::Halted(halt)),
            held = timeout(MAKE_LIMIT, held) => held.unwrap_or_else(|_| Err(AskError::Silent)),
        };
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

    /// Has the engine have the image.
    async fn bring(
        &self,
        containers: &Containers,
        image: &str,
        hold: &Hold,
        output: &mut Output<'_>,
    ) -> Result<(), Unmade> {
        let look = ["image", "inspect", "--format", "{{.Id}}", "--", image];
        match self.ask(containers, look, LOOK_LIMIT, hold).await? {
            Ok(_) => return Ok(()),
            Err(AskError::Failed(_)) => {}
            Err(error) => {
                return Err(failed(&format!("image {image} cannot be looked for"), error));
            }
        }
        tell(&format!("pulling image {image}"), hold, output).await;
        let command = containers.engine.command(["pull", "--", image]);
        let mut last = LastLine::default();
        let mark = self.mark();
        let what = format!("image {image} cannot be pulled");
        match step::attend(command, &mark, None, hold, output, Some(&mut last)).await {
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
        hold: &Hold,
        output: &mut Output<'_>,
    ) -> Result<(), Unmade> {
        let options = containers.engine.options(self.job, INSIDE).map_err(Unmade::Failed)?;
        let what = format!("a container of {image} cannot be made");
        let mut init = true;
        loop {
            let args = creation(containers, name, image, &options, init);
            let asked = self.ask(containers, args, MAKE_LIMIT, hold).await?;
            let Err(error) = asked else { return Ok(()) };
            // Podman has its own only where another package is installed.
            if !(init && matches!(&error, AskError::Failed(why) if why.contains("init binary"))) {
                return Err(failed(&what, error));
            }
            tell(&format!("processes that end may stay zombies: {error}"), hold, output).await;
            init = false;
        }
    }

    /// Starts the container with a client attached to it, and waits until it says that it runs.
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
        // It has failed, and says why; or what the image has is no shell.
        drop((stdin, stdout));
        let mut complaint = LastLine::default();
        let _ = timeout(ENDED_LIMIT, async {
            pump(stderr.take(), |bytes| complaint.push(bytes)).await;
            tree.exited(&mut exits).await
        })
        .await;
        let status = tree.end(|| ()).await?;
        let reason = match status.success() {
            true => format!("its {} is no shell", script::SHELL),
            false => complaint.or(status),
        };
        Err(AskError::Failed(reason))
    }

    /// The client that runs `step` from `workdir` on, in the job's directory. `None`: it does not
    /// run.
    pub(super) fn step(&self, workdir: &Path, step: &str) -> Option<Command> {
        let environment = inside(self.job, &self.job.join(ENVIRONMENT));
        let workdir = inside(self.job, workdir);
        self.exec(script::STEP, &[environment.as_os_str(), workdir.as_os_str(), step.as_ref()])
    }

    /// Asks all processes in it to end: a step's client ends when they have.
    pub(super) async fn ask_to_end(&self) {
        let Some(mut command) = self.exec(script::END, &[]) else { return };
        if let Err(error) = engine::ask(&mut command, &self.mark(), SIGNAL_LIMIT).await {
            tracing::debug!(%error, "processes in a container were not asked to end");
        }
    }

    fn exec(&self, script: &str, more: &[&OsStr]) -> Option<Command> {
        let (containers, name, held) = (self.containers?, self.name.as_ref()?, self.held.as_ref()?);
        let mut command = containers.engine.command(["exec", name, script::SHELL, "-c", script]);
        command.args(["sh", &held.process]).args(more);
        Some(command)
    }

    /// Whether it ran, and does no longer.
    pub(super) fn has_ended(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.tree.has_exited().unwrap_or(true))
    }

    /// Kills what runs in it.
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

    /// Removes it, with all that runs in it. What cannot be removed stays noted.
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

    /// Runs a command of the engine until the job has to stop.
    async fn ask<S: AsRef<OsStr>>(
        &self,
        containers: &Containers,
        args: impl IntoIterator<Item = S>,
        limit: Duration,
        hold: &Hold,
    ) -> Result<Result<String, AskError>, Unmade> {
        let mark = self.mark();
        tokio::select! {
            biased;
            halt = hold.halted() => Err(Unmade::Halted(halt)),
            asked = containers.engine.ask(args, &mark, limit) => Ok(asked),
        }
    }

    /// What marks the engine's clients: not what marks a step, with which they would end.
    fn mark(&self) -> PathBuf {
        self.job.join("engine")
    }
}

/// How a container is made.
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
    // What is removed is killed, not asked.
    args.extend(["--stop-signal", "KILL", "--stop-timeout", "0"]);
    args.extend(["--interactive", "--workdir", INSIDE]);
    args.extend(["--entrypoint", script::SHELL, "--", image, "-c", script::HOLD]);
    args.into_iter().map(str::to_owned).collect()
}

/// Says something in the job's log, as long as the job has not to stop.
async fn tell(text: &str, hold: &Hold, output: &mut Output<'_>) {
    tokio::select! {
        biased;
        _ = hold.halted() => {}
        () = output.note(text) => {}
    }
}

fn failed(what: &str, why: impl std::fmt::Display) -> Unmade {
    Unmade::Failed(format!("{what}: {why}"))
}

/// The number that a line has which comes first.
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

/// The last line with words that was written, or what is there of it.
#[derive(Debug, Default)]
pub(super) struct LastLine {
    line: Vec<u8>,
    ended: bool,
}

impl LastLine {
    /// What was written next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.ended && !piece.trim_ascii().is_empty() {
                self.line.clear();
                self.ended = false;
            }
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.ended |= piece.ends_with(b"\n") && !self.line.trim_ascii().is_empty();
        }
    }

    /// The line, or, without a line, how its writer ended.
    fn or(&self, status: ExitStatus) -> String {
        match shown(&self.line) {
            line if line.is_empty() => status.to_string(),
            line => line.strip_prefix("Error: ").map_or(line.clone(), str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests;
