//! One step: a shell and its descendants. Their output is passed on while they run, and all of them
//! are ended when the step ends.

use super::{
    SHELL,
    attend::{End, attend},
    container::Container,
    heartbeat::Heartbeats,
    output::Output,
};
use futures::FutureExt as _;
use std::{collections::BTreeMap, ffi::OsString, io, path::Path};
use tokio::process::Command;

pub(super) struct StepContext<'a> {
    /// The job's directory, which also marks its processes.
    pub(super) job: &'a Path,
    pub(super) workdir: &'a Path,
    pub(super) env: &'a BTreeMap<String, OsString>,
    /// The container in which they run, which has the environment.
    pub(super) container: Option<&'a Container<'a>>,
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
    let ask = place.container.map(|container| container.ask_to_end().boxed());
    let end = attend(command, place.job, ask, hold, output, None).await?;
    match (&end, place.container) {
        (End::Exited(status), Some(container)) if !status.success() && container.has_ended() => {
            Err(ended())
        }
        _ => Ok(end),
    }
}

fn shell(place: &StepContext<'_>, script: &str) -> Command {
    let mut command = Command::new(SHELL);
    command.arg0("sh").args(["-c", script]).current_dir(place.workdir).env_clear().envs(place.env);
    command
}
