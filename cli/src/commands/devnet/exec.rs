//! `devnet exec`: a command with a devnet of its own.

use super::{
    daemon::{self, StartedDevnet},
    down::{gone_within, stop},
    status::Environment,
    up::{DevnetOptions, Up},
};
use crate::{
    args,
    context::{self, Context},
    error::{CliError, Exit},
};
use clap::Args;
use cowboy_devnet::{orchestrator::end_left, orchestrator::home::DevnetHome, topology::Name};
use cowboy_host::process::{DIRECTORY_VARIABLE, Directories, parent_ends};
use rustix::{
    process::{Pid, Signal, kill_process},
    termios::isatty,
};
use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    pin::Pin,
    process::{self, ExitStatus},
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    signal::unix::{self, SignalKind, signal},
    time::timeout,
};

/// Time that the command has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// Time that the devnet's process has to end; it usually takes a fraction of a second.
const ENDS: Duration = Duration::from_secs(30);

/// `devnet exec`.
#[derive(Debug, Args)]
pub struct Exec {
    #[command(flatten)]
    asked: DevnetOptions,
    /// Maximum time until the devnet is ready
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    timeout: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Exec {
    /// Ends this process with the command's exit code.
    pub async fn run(mut self, cx: &Context) -> Result<(), CliError> {
        // From here on nothing ends this process before its devnet.
        let mut ends = Ends::watch()?;
        let name = match self.asked.name.take() {
            Some(name) => name,
            None => free_name()?,
        };
        self.asked.name = Some(name);
        let up = Up { asked: self.asked, timeout: self.timeout, ephemeral: true, ..Up::default() };
        let (plan, devnet) = up.asked.resolve(cx)?;
        if devnet.exists() {
            let what = format!("there is a devnet `{}` already", devnet.name());
            return Err(CliError::new(Exit::Conflict, what)
                .detail("that of a command is removed with it")
                .hint("leave out --name, or choose another"));
        }
        let started = tokio::select! {
            started = daemon::start(cx, &up, &plan, &devnet) => started,
            _ = ends.next() => Err(CliError::interrupted()),
        };
        let StartedDevnet { child: mut process, input, .. } = match started {
            Ok(begun) => begun,
            Err(error) => {
                remove(&devnet).await?;
                return Err(match error.exit {
                    // The devnet that other commands would be asked about is gone.
                    Exit::TimedOut => error.hint("give it longer with --timeout"),
                    _ => error,
                });
            }
        };
        let ended = run(&self.command, &devnet, &mut ends).await;
        // The end of its input ends it.
        drop(input);
        if timeout(ENDS, process.wait()).await.is_err() {
            process.kill().await.map_err(|error| failed("the devnet's process", error))?;
        }
        remove(&devnet).await?;
        let ended = ended?;
        let code = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
        process::exit(code.unwrap_or(1));
    }
}

/// A name that no devnet has.
fn free_name() -> Result<Name, CliError> {
    let home = context::home()?;
    let id = process::id();
    let names = (0_u32..).map(|number| match number {
        0 => format!("exec-{id}"),
        _ => format!("exec-{id}-{number}"),
    });
    let mut names = names.map(|name| name.parse::<Name>().expect("the name is a name"));
    Ok(names.find(|name| !home.devnet(name).exists()).expect("numbers do not end"))
}

/// Removes what is left of a devnet whose process has ended or is about to.
async fn remove(devnet: &DevnetHome) -> Result<(), CliError> {
    if !devnet.exists() {
        return Ok(());
    }
    stop(devnet, ENDS).await?;
    match devnet.lock() {
        Ok(lock) => {
            end_left(devnet).await.map_err(CliError::failed)?;
            lock.remove()?;
        }
        // The process does it.
        Err(_) => drop(gone_within(ENDS, || Ok(!devnet.exists())).await?),
    }
    Ok(())
}

/// Runs the command until it ends or is ended. No process of it is left then.
async fn run(
    command: &[OsString],
    devnet: &DevnetHome,
    ends: &mut Ends,
) -> Result<ExitStatus, CliError> {
    let mark =
        devnet.path().canonicalize().map_err(|error| failed("the devnet's folder", error))?;
    let [program, arguments @ ..] = command else { unreachable!("clap demands a command") };
    let mut command = Command::new(program);
    command.args(arguments).env(DIRECTORY_VARIABLE, mark.join("exec"));
    for (name, value) in Environment::of(devnet)?.variables() {
        command.env(name, value);
    }
    let mut child = command.spawn().map_err(|error| {
        let what = format!("{}: {error}", program.display());
        match error.kind() {
            io::ErrorKind::NotFound => CliError::new(Exit::NotFound, what)
                .hint("the command follows `--`, and is looked up in PATH"),
            _ => CliError::failed(what),
        }
    })?;
    let ended = until_ended(&mut child, ends).await;
    let folder = mark.clone();
    let left = tokio::task::spawn_blocking(move || Directories::kill_left(&folder));
    left.await.map_err(|error| CliError::failed(error.to_string()))?;
    ended.map_err(|error| failed("the command", error))
}

async fn until_ended(child: &mut Child, ends: &mut Ends) -> io::Result<ExitStatus> {
    loop {
        let signal = tokio::select! {
            ended = child.wait() => return ended,
            signal = ends.next() => signal,
        };
        // A terminal sends it to the command as well.
        if signal == Signal::INT && isatty(io::stdin()) {
            continue;
        }
        let process = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(process) = process {
            // An error means that it has ended since.
            let _ = kill_process(process, signal);
        }
        if let Ok(ended) = timeout(GRACE, child.wait()).await {
            return ended;
        }
        child.kill().await?;
    }
}

/// What asks this process to end: a signal, or the end of the process that started it.
struct Ends {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hang_up: unix::Signal,
    parent: Pin<Box<dyn Future<Output = ()>>>,
    parent_ended: bool,
}

impl Ends {
    fn watch() -> Result<Self, CliError> {
        let on = |kind| signal(kind).map_err(|error| failed("signals", error));
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
            parent: Box::pin(parent_ends()),
            parent_ended: false,
        })
    }

    /// The signal to pass on. Without a parent the command is asked to end, once.
    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hang_up.recv() => Signal::HUP,
            () = &mut self.parent, if !self.parent_ended => {
                self.parent_ended = true;
                Signal::TERM
            }
        }
    }
}

fn failed(what: &str, error: io::Error) -> CliError {
    CliError::failed(format!("{what}: {error}"))
}
