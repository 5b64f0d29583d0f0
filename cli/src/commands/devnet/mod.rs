//! `devnet`: starting, stopping and inspecting devnets.

pub(super) mod choose;
pub mod daemon;
pub(super) mod down;
mod exec;
pub(super) mod export;
pub(super) mod file;
pub mod launch;
mod logs;
mod ready;
pub(super) mod report;
pub(super) mod rm;
pub(super) mod snapshot;
pub(super) mod status;
pub(super) mod up;
mod upgrade;

pub use down::{gone_within, stop};
pub use ready::UpReport;
pub use up::{DevnetOptions, Up, saved_plan};

use super::{block_on, to_end};
use crate::{complete, context::Context, error::CliError};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use cowboy_devnet::topology::Name;

#[derive(Debug, Subcommand)]
pub enum Devnet {
    /// Start a devnet, and run it until interrupted
    ///
    /// A stopped devnet continues with its chain; options then have to fit that chain. Its log is
    /// log/devnet.log in its folder; COWBOYCTL_LOG sets what is logged, for example
    /// cowboy_devnet=debug.
    Up(Box<Up>),
    /// Run a command with a devnet of its own, which ends with it
    ///
    /// The command's environment names the devnet, as `devnet env` prints it. The devnet ends and
    /// its files go however the command or this process ends, also with the process that started
    /// it. Its name is exec- and a number, so that any number can run at once. The exit code is
    /// the command's, or 128 and the number of the signal that ended it.
    Exec(Box<exec::Exec>),
    /// Stop a devnet; it keeps its chain
    Down(down::Down),
    /// List every devnet, running or not
    Ls,
    /// Choose the default devnet for commands
    ///
    /// --devnet and COWBOYCTL_DEVNET take precedence. A chosen devnet that is gone is ignored.
    Use(choose::Use),
    /// Show a devnet's head, validators and runners
    Status(Which),
    /// Show the log of a devnet's process
    ///
    /// With --node, only the lines that name this validator or runner, and the log of its own
    /// process if it has one. With --all, the logs of all processes of `hosts: process`.
    Logs(logs::Logs),
    /// Print shell exports that make a devnet the current one
    Env(Which),
    /// Write a commented topology: every field with its default
    Init(file::Init),
    /// Check a topology and show what it resolves to
    Validate(file::Validate),
    /// Write files that run a topology's nodes elsewhere
    #[command(subcommand)]
    Export(export::Export),
    /// Stop a devnet and delete its chain; keys and topology stay
    Reset(down::Down),
    /// Remove devnets with their chains, keys and logs; snapshots stay
    Rm(rm::Rm),
    /// Let a validator's own process run another build of cowboyctl
    ///
    /// The validator stops and starts again; the others go on. A program that speaks another
    /// protocol or has another format of stores is refused. If it does not start, the validator
    /// goes on with the former one.
    Upgrade(upgrade::Upgrade),
    /// Save a devnet's state, and restore it
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
    /// Pack what helps to find out what went wrong: logs, topology, status, the machine
    ///
    /// Keys, tokens and ids of leases are left out. It can be shared; read it first.
    Report(report::Report),
}

/// The devnet that a command applies to.
#[derive(Debug, Args)]
pub struct Which {
    /// The devnet [default: the one chosen with `devnet use`, else the only one running]
    #[arg(value_name = "DEVNET", add = ArgValueCandidates::new(complete::devnets))]
    named: Option<Name>,
}

impl Devnet {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        match self {
            Self::Up(up) => start(cx, &up),
            Self::Exec(exec) => to_end(exec.run(cx)),
            Self::Down(down) => block_on(down.run(cx)),
            Self::Ls => block_on(status::ls(cx)),
            Self::Use(choose) => choose.run(cx),
            Self::Status(which) => block_on(status::status(cx, which.named.as_ref())),
            Self::Logs(logs) => block_on(logs.run(cx)),
            Self::Env(which) => status::env(cx, which.named.as_ref()),
            Self::Init(init) => init.run(cx),
            Self::Validate(validate) => validate.run(cx),
            Self::Export(export) => export.run(cx),
            Self::Reset(down) => block_on(down.reset(cx)),
            Self::Rm(rm) => block_on(rm.run(cx)),
            Self::Upgrade(upgrade) => block_on(upgrade.run(cx)),
            Self::Snapshot(snapshot) => block_on(snapshot.run(cx)),
            Self::Report(report) => block_on(report.run(cx)),
        }
    }
}

fn start(cx: &Context, up: &Up) -> Result<(), CliError> {
    if up.detach && !up.daemon {
        return cx.ui.document(&to_end(detached(cx, up))?);
    }
    let (plan, devnet) = up.asked.resolve(cx)?;
    match (up.daemon, up.ephemeral) {
        (true, true) => daemon::run_ephemeral(plan, &devnet),
        (true, false) => daemon::run(plan, &devnet),
        (false, _) => launch::foreground(cx, plan, &devnet),
    }
}

/// Starts a devnet in the background and waits until it is ready.
pub async fn detached(cx: &Context, up: &Up) -> Result<UpReport, CliError> {
    let (plan, devnet) = up.asked.resolve(cx)?;
    Ok(daemon::start(cx, up, &plan, &devnet).await?.report)
}
