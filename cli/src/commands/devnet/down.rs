//! `devnet down` and `devnet reset`: stop a devnet and wait until no process holds it.

use super::Which;
use crate::{
    args,
    context::Context,
    error::CliError,
    output::{Document, fields},
};
use clap::Args;
use cowboy_devnet::{
    client::Client,
    orchestrator::{
        end_left,
        home::{DevnetHome, DevnetState},
    },
    topology::Name,
};
use cowboy_host::files::has_open;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::time::Duration;
use tokio::time::{interval, timeout};

/// How often a stopping devnet is checked.
const LOOK: Duration = Duration::from_millis(10);

/// Time limit for the API to take the request to stop.
const ASKING: Duration = Duration::from_secs(2);

const SIGNAL_GRACE: Duration = Duration::from_secs(5);

/// The devnet to stop, and how long it may take.
#[derive(Debug, Args)]
pub struct Down {
    #[command(flatten)]
    which: Which,
    /// Maximum time for the devnet to stop by itself before it is killed
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "20s")]
    timeout: Duration,
}

/// How a devnet was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By its own API.
    Gracefully,
    /// By SIGTERM.
    Terminated,
    /// By SIGKILL.
    Killed,
    /// It was not running.
    NotRunning,
}

/// A devnet that has stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct DownReport {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// The process that ran it.
    pid: Option<u32>,
    /// How it was stopped.
    how: How,
}

/// A devnet whose chain is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ResetReport {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// Whether it was running.
    was_running: bool,
}

impl Down {
    pub async fn run(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.existing(self.which.named.as_ref())?;
        let progress = cx.ui.progress(format!("stopping devnet {}", devnet.name()));
        let report = stop(&devnet, self.timeout).await?;
        drop(progress);
        let name = devnet.name().clone();
        let report = report.unwrap_or(DownReport { name, pid: None, how: How::NotRunning });
        if report.how == How::NotRunning {
            cx.ui.note(&format!("devnet `{}` was not running", report.name));
        }
        cx.ui.document(&report)
    }

    /// `devnet reset`: stops it, and deletes its chain.
    pub async fn reset(self, cx: &Context) -> Result<(), CliError> {
        let devnet = cx.existing(self.which.named.as_ref())?;
        let was_running = stop(&devnet, self.timeout).await?.is_some();
        devnet.lock()?.reset()?;
        cx.ui.document(&ResetReport { name: devnet.name().clone(), was_running })
    }
}

/// Stops a devnet and waits until its process is gone; `None` if it was not running.
///
/// Asks the API first, then sends SIGTERM after `grace`, then SIGKILL. A signal goes to the
/// process that holds the devnet's lock at that moment, and to no other.
pub async fn stop(devnet: &DevnetHome, grace: Duration) -> Result<Option<DownReport>, CliError> {
    let holder = LockHolder::of(devnet)?;
    let left = async || end_left(devnet).await.map_err(CliError::failed);
    if holder == LockHolder::Free {
        left().await?;
        // A killed devnet leaves its record behind.
        if devnet.record()?.is_some() {
            devnet.lock()?.clean()?;
        }
        return Ok(None);
    }
    let name = devnet.name().clone();
    let report = |how| Ok(Some(DownReport { name: name.clone(), pid: holder.pid(), how }));
    let released = || Ok(LockHolder::of(devnet)? != holder);
    let asked = match Client::of_devnet(devnet) {
        Ok(client) => client.with_timeout(ASKING).shutdown().await.is_ok(),
        Err(_) => false,
    };
    if asked && gone_within(grace, released).await? {
        return report(How::Gracefully);
    }
    for (number, how) in [(Signal::TERM, How::Terminated), (Signal::KILL, How::Killed)] {
        // The process may have ended meanwhile, and its pid may belong to another one.
        if released()? {
            return report(how);
        }
        let ours = holder.pid().filter(|pid| has_open(*pid, &devnet.lock_path()));
        if let Some(process) = ours.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            match kill_process(process, number) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => {
                    let what = format!(
                        "devnet `{name}`: process {} cannot be signalled",
                        process.as_raw_nonzero()
                    );
                    return Err(CliError::failed(what).detail(error.to_string()));
                }
            }
        }
        if gone_within(SIGNAL_GRACE, released).await? {
            left().await?;
            devnet.lock()?.clean()?;
            return report(how);
        }
    }
    let by = holder.pid().map_or(String::new(), |pid| format!(": process {pid} is still there"));
    Err(CliError::failed(format!("devnet `{name}` does not stop, not even when killed{by}"))
        .hint(format!("see what it does: cowboyctl devnet logs {name}")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockHolder {
    Free,
    /// A process that has not written its pid yet.
    Unknown,
    Process(u32),
}

impl LockHolder {
    fn of(devnet: &DevnetHome) -> Result<Self, CliError> {
        Ok(match devnet.state()? {
            DevnetState::Absent | DevnetState::Stopped | DevnetState::Died(_) => Self::Free,
            DevnetState::Starting { pid } => pid.map_or(Self::Unknown, Self::Process),
            DevnetState::Running(record) => Self::Process(record.pid),
        })
    }

    const fn pid(self) -> Option<u32> {
        match self {
            Self::Process(pid) => Some(pid),
            Self::Free | Self::Unknown => None,
        }
    }
}

/// Whether something is gone within `grace`.
pub async fn gone_within(
    grace: Duration,
    is_gone: impl Fn() -> Result<bool, CliError>,
) -> Result<bool, CliError> {
    let mut looks = interval(LOOK);
    let wait = async {
        loop {
            looks.tick().await;
            if is_gone()? {
                return Ok(true);
            }
        }
    };
    timeout(grace, wait).await.unwrap_or(Ok(false))
}

impl Document for DownReport {
    fn text(&self) -> String {
        let how = match self.how {
            How::Gracefully => "stopped",
            How::Terminated => "terminated",
            How::Killed => "killed",
            How::NotRunning => "was not running",
        };
        let mut lines = vec![("devnet", self.name.to_string()), ("status", how.to_owned())];
        lines.extend(self.pid.map(|pid| ("process", pid.to_string())));
        fields(&lines)
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}

impl Document for ResetReport {
    fn text(&self) -> String {
        fields(&[("devnet", self.name.to_string()), ("status", "its chain is deleted".to_owned())])
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}
