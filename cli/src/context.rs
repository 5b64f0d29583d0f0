//! What every command starts from: where it prints, which devnet it is about, who answers.

use crate::{
    error::{CliError, Exit},
    output::Ui,
};
use cowboy_devnet::{
    client::Client,
    orchestrator::home::{DevnetHome, Home, State},
    topology::Name,
};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, timeout_at};

/// What the global options say.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where output goes.
    pub ui: Ui,
    /// The devnet named on the command line or in the environment.
    pub devnet: Option<Name>,
    /// The validator that is to answer.
    pub node: Option<String>,
}

impl Context {
    /// The devnet that is meant: `named`, else the global option, else the only one running.
    pub fn running(&self, named: Option<&Name>) -> Result<DevnetHome, CliError> {
        let home = home()?;
        if let Some(name) = named.or(self.devnet.as_ref()) {
            return Ok(home.devnet(name));
        }
        let all = home.list()?;
        let mut running = Vec::new();
        for devnet in &all {
            if devnet.state()? != State::Stopped {
                running.push(devnet.clone());
            }
        }
        only(running, "running").map_err(|error| match all.as_slice() {
            [.., last] if error.exit == Exit::NotRunning => error
                .hint(format!("start one: cowboyctl devnet up --detach --name {}", last.name())),
            _ => error,
        })
    }

    /// The devnet that is meant, running or not: as [`Self::running`], else the only one there is.
    pub fn existing(&self, named: Option<&Name>) -> Result<DevnetHome, CliError> {
        if let Some(name) = named.or(self.devnet.as_ref()) {
            let devnet = home()?.devnet(name);
            if !devnet.exists() {
                return Err(CliError::new(
                    Exit::NotRunning,
                    format!("there is no devnet `{name}`"),
                )
                .hint("see which there are: cowboyctl devnet ls"));
            }
            return Ok(devnet);
        }
        match self.running(None) {
            Err(error) if error.exit == Exit::NotRunning => only(home()?.list()?, "there"),
            other => other,
        }
    }

    /// A client of the devnet that is meant.
    pub fn client(&self) -> Result<Client, CliError> {
        self.client_of(&self.running(None)?)
    }

    /// A client of this devnet.
    pub fn client_of(&self, devnet: &DevnetHome) -> Result<Client, CliError> {
        Ok(Client::of_devnet(devnet)?.with_node(self.node.clone()))
    }
}

/// The folder of all devnets.
pub fn home() -> Result<Home, CliError> {
    Ok(Home::from_env()?)
}

/// The only one of several devnets.
fn only(mut devnets: Vec<DevnetHome>, what: &str) -> Result<DevnetHome, CliError> {
    let names = devnets.iter().map(|d| d.name().to_string()).collect::<Vec<_>>().join(", ");
    match (devnets.pop(), devnets.is_empty()) {
        (Some(devnet), true) => Ok(devnet),
        (Some(_), false) => {
            Err(CliError::new(Exit::Usage, format!("several devnets are {what}: {names}"))
                .hint("say which: --devnet NAME, or export COWBOYCTL_DEVNET"))
        }
        (None, _) => Err(CliError::new(Exit::NotRunning, format!("no devnet is {what}"))
            .hint("start one: cowboyctl devnet up --detach")),
    }
}

/// The end of a wait.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    /// So long from now.
    pub fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    /// The outcome of `step` if it comes in time; else an error that says what was awaited and
    /// what was seen last.
    pub async fn bound<T>(
        &self,
        step: impl Future<Output = T>,
        awaited: &str,
        last: &str,
    ) -> Result<T, CliError> {
        timeout_at(self.at, step).await.map_err(|_| {
            let timeout = self.timeout;
            CliError::new(Exit::TimedOut, format!("{awaited}: not within {timeout:?}"))
                .detail(format!("last seen: {last}"))
                .hint("give it longer with --timeout, or see: cowboyctl devnet status")
        })
    }
}
