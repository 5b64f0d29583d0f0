//! What every command starts from: where it prints, which devnet it is about, who answers.

use crate::{
    error::{CliError, Exit, nearest},
    output::{Progress, Ui},
};
use cowboy_devnet::{
    api::types::BlockNotice,
    client::{Client, EventStream},
    duration::Plain,
    orchestrator::home::{DevnetHome, Home, State},
    topology::Name,
};
use std::{cell::RefCell, pin::pin, time::Duration};
use tokio::time::{Instant, sleep, timeout_at};

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
            let devnet = home.devnet(name);
            return if devnet.exists() { Ok(devnet) } else { Err(no_such_devnet(&home, name)) };
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
                return Err(no_such_devnet(&home()?, name));
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

/// An error for a name that no devnet has, with the one that was probably meant.
fn no_such_devnet(home: &Home, name: &Name) -> CliError {
    let all = home.list().unwrap_or_default();
    let error = CliError::new(Exit::NotRunning, format!("there is no devnet `{name}`"));
    match nearest(name.as_str(), all.iter().map(|devnet| devnet.name().as_str())) {
        Some(meant) => error
            .detail(format!("did you mean `{meant}`?"))
            .hint("see which there are: cowboyctl devnet ls"),
        None => error.hint(format!("start one: cowboyctl devnet up --detach --name {name}")),
    }
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

/// A wait that goes on: shown on a terminal, and remembered for its timeout.
#[derive(Debug)]
pub struct Wait<'a> {
    awaited: &'a str,
    last: RefCell<String>,
    reason: RefCell<String>,
    progress: Progress,
}

/// How long nothing comes before it is asked why.
const SILENCE: Duration = Duration::from_secs(2);

impl Wait<'_> {
    /// Says what was seen last.
    pub fn saw(&self, text: impl Into<String>) {
        *self.last.borrow_mut() = text.into();
        self.progress.show(format!("waiting for {}: {}", self.awaited, self.seen()));
    }

    fn seen(&self) -> String {
        format!("{}{}", self.last.borrow(), self.reason.borrow())
    }

    /// The next block. Where none comes for a while, why is asked, and shown with what was seen.
    pub async fn next(
        &self,
        client: &Client,
        blocks: &mut EventStream,
    ) -> Result<BlockNotice, CliError> {
        let mut next = pin!(blocks.next());
        loop {
            tokio::select! {
                notice = &mut next => {
                    self.reason.borrow_mut().clear();
                    return Ok(notice?);
                }
                () = sleep(SILENCE) => {
                    // An error: it is told by the stream.
                    let Ok(status) = client.status().await else { continue };
                    let why = status.validators.into_iter().find_map(|v| v.reason);
                    *self.reason.borrow_mut() =
                        why.map_or(String::new(), |why| format!("; validators stand still: {why}"));
                    let last = self.last.borrow().clone();
                    self.saw(last);
                }
            }
        }
    }
}

impl Deadline {
    /// So long from now.
    pub fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    /// The outcome of `work` if it comes in time; else an error that says what was awaited and what
    /// was seen last.
    pub async fn wait_for<T>(
        &self,
        ui: Ui,
        awaited: &str,
        work: impl AsyncFnOnce(&Wait<'_>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let progress = ui.progress(format!("waiting for {awaited}"));
        let wait = Wait {
            awaited,
            last: RefCell::new("nothing".to_owned()),
            reason: RefCell::default(),
            progress,
        };
        let outcome = timeout_at(self.at, work(&wait)).await;
        outcome.unwrap_or_else(|_| {
            let timeout = Plain(self.timeout);
            Err(CliError::new(Exit::TimedOut, format!("{awaited}: not within {timeout}"))
                .detail(format!("last seen: {}", wait.seen()))
                .hint("give it longer with --timeout, or see: cowboyctl devnet status"))
        })
    }
}
