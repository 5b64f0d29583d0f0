//! A devnet in its own process: the parent, which waits for it, and the child, which runs it.

use super::{
    launch,
    ready::{UpReport, warn_of_dead},
    up::Up,
};
use crate::{
    args, config,
    context::{Context, Deadline, reach},
    error::{CliError, Exit},
};
use cowboy_devnet::{
    client::Client,
    machines,
    orchestrator::home::{DevnetHome, DevnetState},
    topology::Plan,
};
use cowboy_host::process::{DIRECTORY_VARIABLE, Directories};
use std::{
    env,
    fs::{self, File},
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::process::{Child, ChildStdin, Command};

/// How often the parent checks whether the child has become ready.
const LOOK: Duration = Duration::from_millis(5);

const LAST_LINES: usize = 10;

const KEPT_VARIABLES: [&str; 3] = ["COWBOYCTL_HOME", "COWBOYCTL_LOG", machines::FOLDER];

/// The child: leaves the terminal's session and runs the devnet.
pub fn run(plan: Plan, devnet: &DevnetHome) -> Result<(), CliError> {
    // Fails only if the process already leads a session.
    let _leader = rustix::process::setsid();
    let lock = devnet.lock()?;
    launch::run(plan, lock, launch::stop(false)?, |_| {})
}

/// The child of `devnet exec`: ends with its parent, whose command it ends then, and removes the
/// devnet.
pub fn run_ephemeral(plan: Plan, devnet: &DevnetHome) -> Result<(), CliError> {
    let _leader = rustix::process::setsid();
    let lock = devnet.lock()?;
    let (stop, folder) = (launch::stop(true)?, devnet.path().to_owned());
    let stop = async move {
        stop.await;
        Directories::kill_left(&folder);
    };
    launch::run(plan, lock, stop, |_| {})?;
    Ok(devnet.lock()?.remove()?)
}

/// A devnet whose process has started.
pub struct StartedDevnet {
    pub child: Child,
    /// Its input, if it is to end with it.
    pub input: Option<ChildStdin>,
    pub report: UpReport,
}

/// The parent: starts the child and waits until the devnet is ready or the child has ended.
pub async fn start(
    cx: &Context,
    up: &Up,
    plan: &Plan,
    devnet: &DevnetHome,
) -> Result<StartedDevnet, CliError> {
    let started = Instant::now();
    let deadline = Deadline::after(up.timeout);
    let mut child = spawn(up, devnet)?;
    // Waiting for a child closes its input.
    let input = child.stdin.take();
    let (who, log) = (format!("devnet `{}`", devnet.name()), devnet.log_path());
    let awaited = format!("devnet {}", plan.name);
    let look = |id| {
        Ok(match devnet.state()? {
            DevnetState::Running(record) if record.pid == id => Some(record),
            _ => None,
        })
    };
    let record = until_ready(cx, (&who, &log), &awaited, &mut child, deadline, look).await?;
    let client = Client::of_devnet(devnet)?;
    let head = match up.wait {
        None => client.head().await?,
        Some(height) => tokio::select! {
            ended = child.wait() => return Err(died(cx, &who, &log, ended)),
            head = reach(cx.ui, &client, height, deadline) => head?,
        },
    };
    warn_of_dead(&client).await?;
    let nodes = (plan.validators.len(), plan.runners.len());
    let report = UpReport::new(record, devnet.path().to_owned(), head, nodes, started.elapsed());
    Ok(StartedDevnet { child, input, report })
}

/// Starts this program again with the same topology, its output in the devnet's log.
fn spawn(up: &Up, devnet: &DevnetHome) -> Result<Child, CliError> {
    let io = |error: io::Error| CliError::failed(format!("the devnet's process: {error}"));
    // Held for a moment: makes the folder, fails if the devnet is running, and keeps others from
    // moving the log meanwhile.
    let lock = devnet.lock()?;
    let log = launch::fresh_log(devnet)?;
    drop(lock);
    let mut command = Command::new(env::current_exe().map_err(io)?);
    command.args(["devnet", "up", "--daemon", "--name", devnet.name().as_str()]);
    let number = |value: Option<u64>| value.map(|number| number.to_string());
    let asked = &up.asked;
    let options = [
        ("--validators", number(asked.validators)),
        ("--runners", number(asked.runners)),
        ("--hosts", asked.hosts.map(|hosts| args::text_of(&hosts))),
        ("--seed", number(asked.seed)),
        ("--block-time", asked.block_time.map(|pace| pace.to_string())),
    ];
    for (option, value) in options {
        if let Some(value) = value {
            command.args([option, &value]);
        }
    }
    if let Some(file) = &asked.file {
        command.arg("--file").arg(file);
    }
    if up.ephemeral {
        // It outlives a command around it, because it removes the devnet.
        command.arg("--ephemeral").env_remove(DIRECTORY_VARIABLE);
    }
    let input = if up.ephemeral { Stdio::piped() } else { Stdio::null() };
    in_background(command, input, log).map_err(io)
}

/// Starts a process with its output in a log.
pub fn in_background(mut command: Command, input: Stdio, log: File) -> io::Result<Child> {
    with_own_variables(&mut command).stdin(input).stdout(log.try_clone()?).stderr(log).spawn()
}

/// Removes the variables of options and the configuration file from the command, whose command line
/// says everything.
fn with_own_variables(command: &mut Command) -> &mut Command {
    for (variable, _) in env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("COWBOYCTL_") && !KEPT_VARIABLES.contains(&name.as_ref()) {
            command.env_remove(&variable);
        }
    }
    // An empty file, because the parent has already applied the configuration.
    command.env(config::VARIABLE, "/dev/null")
}

/// Waits until `look`, called with the child's pid, returns the record of the child that is ready;
/// kills a child that does not get there in time.
pub async fn until_ready<T>(
    cx: &Context,
    (who, log): (&str, &Path),
    awaited: &str,
    child: &mut Child,
    deadline: Deadline,
    look: impl Fn(u32) -> Result<Option<T>, CliError>,
) -> Result<T, CliError> {
    let id = child.id().expect("the child has not been waited for");
    let ready = deadline.wait_for(cx.ui, awaited, async |wait| {
        wait.saw(format!("process {id}"));
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            if let Some(record) = look(id)? {
                return Ok(record);
            }
        }
    });
    let ready = tokio::select! {
        ended = child.wait() => return Err(died(cx, who, log, ended)),
        ready = ready => ready,
        _ = tokio::signal::ctrl_c() => Err(CliError::interrupted()),
    };
    if ready.is_err() {
        // One that comes up later would go unnoticed.
        child.kill().await?;
    }
    ready
}

fn died(cx: &Context, who: &str, log: &Path, ended: io::Result<ExitStatus>) -> CliError {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
        cx.ui.note(line);
    }
    let code = ended.as_ref().ok().and_then(ExitStatus::code);
    let exit = match code {
        Some(2) => Exit::Usage,
        Some(3) => Exit::NotFound,
        Some(4) => Exit::NotRunning,
        Some(8) => Exit::Conflict,
        _ => Exit::Failed,
    };
    let how = match ended {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let reason = lines.iter().rev().find_map(|line| line.strip_prefix("error: "));
    CliError::new(exit, format!("{who} ended during startup ({how})"))
        .detail(reason.unwrap_or("its last lines are above"))
        .hint(format!("all of them: {}", log.display()))
}
