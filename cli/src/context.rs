//! The context of every command: its output, its devnet, and a client of it.

use crate::{
    error::{CliError, Exit, nearest},
    output::{Progress, Ui},
};
use cowboy_devnet::{
    client::{Client, EventStream},
    orchestrator::home::{DevnetHome, Home},
    topology::Name,
    types::{BEHIND, BlockNotice, Head, Status, Validator, ValidatorState},
};
use cowboy_host::duration::Plain;
use std::{
    cell::RefCell,
    collections::BTreeMap,
    ops::ControlFlow,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout_at};

#[derive(Debug, Clone)]
pub struct Context {
    pub ui: Ui,
    /// The devnet named on the command line or in the environment.
    pub devnet: Option<Name>,
    pub configured: Option<Name>,
    pub node: Option<String>,
}

impl Context {
    /// The selected devnet's name: the global option's, else that of `devnet use`, else the
    /// configuration file's. If `devnet use` chose one that is gone, prints a note, once.
    pub fn chosen(&self) -> Result<Option<Chosen>, CliError> {
        if let Some(name) = &self.devnet {
            return Ok(Some(Chosen { name: name.clone(), by: By::Option }));
        }
        let home = home()?;
        if let Some(name) = home.current()? {
            if home.devnet(&name).exists() {
                return Ok(Some(Chosen { name, by: By::Use }));
            }
            if !GONE_TOLD.swap(true, Ordering::Relaxed) {
                self.ui.note(&format!(
                    "devnet `{name}`, which `devnet use` chose, is gone: cowboyctl devnet use --unset"
                ));
            }
        }
        let configured = self.configured.clone();
        Ok(configured.map(|name| Chosen { name, by: By::Configuration }))
    }

    /// The selected devnet: `named`, else the chosen one, else the only one running.
    pub fn running(&self, named: Option<&Name>) -> Result<DevnetHome, CliError> {
        let home = home()?;
        if let Some(devnet) = self.named(&home, named)? {
            return Ok(devnet);
        }
        let all = home.list()?;
        let mut running = Vec::new();
        for devnet in &all {
            if !devnet.state()?.is_down() {
                running.push(devnet.clone());
            }
        }
        only(running, "running").map_err(|error| match all.as_slice() {
            [.., last] if error.exit == Exit::NotRunning => error
                .hint(format!("start one: cowboyctl devnet up --detach --name {}", last.name())),
            _ => error,
        })
    }

    /// The selected devnet, running or not: as [`Self::running`], else the only one that exists.
    pub fn existing(&self, named: Option<&Name>) -> Result<DevnetHome, CliError> {
        if let Some(devnet) = self.named(&home()?, named)? {
            return Ok(devnet);
        }
        match self.running(None) {
            Err(error) if error.exit == Exit::NotRunning => only(home()?.list()?, "there"),
            other => other,
        }
    }

    /// Prints a note if the validator of `--node` is behind the others: its answers are old, and a
    /// request to it may not reach them.
    pub async fn note_if_behind(&self) {
        let Some(node) = &self.node else { return };
        // The command itself meets the same error and reports it.
        let Ok(client) = self.client() else { return };
        let Ok(validators) = client.with_timeout(SILENCE).validators().await else { return };
        let highest = validators.iter().map(|validator| validator.height).max().unwrap_or(0);
        let asked = validators
            .iter()
            .find(|validator| validator.name == *node || node.parse() == Ok(*validator.address));
        if let Some(Validator { name, height, .. }) = asked
            && highest > height + BEHIND
        {
            self.ui.note(&format!(
                "--node {name}: it is at block {height} and the head is {highest}; omit --node \
                 to ask the newest"
            ));
        }
    }

    /// The devnet with this name, else the chosen one; `None` without either.
    fn named(&self, home: &Home, named: Option<&Name>) -> Result<Option<DevnetHome>, CliError> {
        let chosen = match named {
            Some(name) => Chosen { name: name.clone(), by: By::Option },
            None => match self.chosen()? {
                Some(chosen) => chosen,
                None => return Ok(None),
            },
        };
        let devnet = home.devnet(&chosen.name);
        match (devnet.exists(), chosen.by) {
            (true, _) => Ok(Some(devnet)),
            (false, By::Configuration) => Err(no_such_devnet(home, &chosen.name)
                .detail("the configuration file names it: cowboyctl config path")),
            (false, _) => Err(no_such_devnet(home, &chosen.name)),
        }
    }

    pub fn client(&self) -> Result<Client, CliError> {
        Ok(self.devnet_and_client()?.1)
    }

    /// The selected devnet, and a client of it.
    pub fn devnet_and_client(&self) -> Result<(DevnetHome, Client), CliError> {
        let devnet = self.running(None)?;
        let client = self.client_of(&devnet)?;
        Ok((devnet, client))
    }

    pub fn client_of(&self, devnet: &DevnetHome) -> Result<Client, CliError> {
        Ok(Client::of_devnet(devnet)?.with_node(self.node.clone()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The devnet may not exist.
    pub name: Name,
    pub by: By,
}

/// The ways to select a devnet; the first that applies counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `--devnet`, or its variable.
    Option,
    Use,
    Configuration,
}

static GONE_TOLD: AtomicBool = AtomicBool::new(false);

pub fn home() -> Result<Home, CliError> {
    Ok(Home::from_env()?)
}

/// The error for an unknown devnet, with the name that was probably meant.
fn no_such_devnet(home: &Home, name: &Name) -> CliError {
    let all = home.list().unwrap_or_default();
    let error = CliError::new(Exit::NotRunning, format!("there is no devnet `{name}`"));
    match nearest(name.as_str(), all.iter().map(|devnet| devnet.name().as_str())) {
        Some(meant) => {
            error.detail(format!("did you mean `{meant}`?")).hint("list them: cowboyctl devnet ls")
        }
        None => error.hint(format!("start one: cowboyctl devnet up --detach --name {name}")),
    }
}

/// The only devnet in the list; an error if there are several, or none.
fn only(mut devnets: Vec<DevnetHome>, what: &str) -> Result<DevnetHome, CliError> {
    let names = devnets.iter().map(|d| d.name().to_string()).collect::<Vec<_>>().join(", ");
    match (devnets.pop(), devnets.is_empty()) {
        (Some(devnet), true) => Ok(devnet),
        (Some(_), false) => {
            Err(CliError::new(Exit::Usage, format!("several devnets are {what}: {names}"))
                .hint("say which: --devnet NAME, or cowboyctl devnet use NAME"))
        }
        (None, _) => Err(CliError::new(Exit::NotRunning, format!("no devnet is {what}"))
            .hint("start one: cowboyctl devnet up --detach")),
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    timeout: Duration,
}

/// A running wait: shown on a terminal, and remembered for its timeout.
#[derive(Debug)]
pub struct Wait<'a> {
    awaited: &'a str,
    last: RefCell<String>,
    reason: RefCell<String>,
    progress: Progress,
}

/// Time without a block before asking for the reason.
const SILENCE: Duration = Duration::from_secs(2);

impl Wait<'_> {
    pub fn saw(&self, text: impl Into<String>) {
        *self.last.borrow_mut() = text.into();
        self.progress.show(format!("waiting for {}: {}", self.awaited, self.seen()));
    }

    fn seen(&self) -> String {
        format!("{}{}", self.last.borrow(), self.reason.borrow())
    }

    /// The next block. If none comes for a while, requests the reason and shows it with what was
    /// seen.
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
                    // The stream reports the error.
                    let Ok(status) = client.status().await else { continue };
                    *self.reason.borrow_mut() = standstill(&status);
                    let last = self.last.borrow().clone();
                    self.saw(last);
                }
            }
        }
    }
}

/// The reason why no block comes, as far as a devnet's status shows it.
fn standstill(status: &Status) -> String {
    let mut names = BTreeMap::<_, Vec<_>>::new();
    for validator in &status.validators {
        let says = match (validator.status, &validator.reason) {
            (
                ValidatorState::Starting | ValidatorState::Running | ValidatorState::CatchingUp,
                _,
            ) => continue,
            (state, Some(reason)) => format!("{state}: {reason}"),
            (state, None) => state.to_string(),
        };
        names.entry(says).or_default().push(validator.name.as_str());
    }
    let mut parts: Vec<_> =
        names.into_iter().map(|(says, names)| format!("{} {says}", names.join(", "))).collect();
    if !status.faults.is_empty() {
        parts.push("faults are in force, see cowboyctl fault ls".to_owned());
    }
    let highest = status.validators.iter().map(|validator| validator.height).max();
    let asked = status.head.as_ref().map(|head| head.height);
    if let (Some(highest), Some(asked)) = (highest, asked)
        && highest > asked + BEHIND
    {
        parts.push(format!("the asked validator is behind: the head is block {highest}"));
    }
    parts.insert(0, String::new());
    parts.join("; ")
}

impl Deadline {
    pub fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    /// The outcome of `work` if it finishes in time; else an error with what was awaited and what
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

    /// Calls `look` now and after each block until it breaks with the outcome; else it tells what
    /// was seen.
    pub async fn until<T>(
        &self,
        ui: Ui,
        client: &Client,
        awaited: &str,
        mut look: impl AsyncFnMut() -> Result<ControlFlow<T, String>, CliError>,
    ) -> Result<T, CliError> {
        self.wait_for(ui, awaited, async |wait| {
            let mut blocks = client.follow(None);
            blocks.connect().await?;
            loop {
                match look().await? {
                    ControlFlow::Break(outcome) => return Ok(outcome),
                    ControlFlow::Continue(seen) => wait.saw(seen),
                }
                wait.next(client, &mut blocks).await?;
            }
        })
        .await
    }
}

pub async fn reach(
    ui: Ui,
    client: &Client,
    height: u64,
    deadline: Deadline,
) -> Result<Head, CliError> {
    let awaited = format!("block {height}");
    deadline
        .wait_for(ui, &awaited, async |wait| {
            let mut blocks = client.follow(None);
            blocks.connect().await?;
            let mut head = client.head().await?;
            while head.height < height {
                wait.saw(format!("block {}", head.height));
                let notice = wait.next(client, &mut blocks).await?;
                // The stream may have begun before the head was asked for.
                if notice.height > head.height {
                    head = Head {
                        height: notice.height,
                        hash: notice.hash,
                        finalized_at: notice.finalized_at,
                    };
                }
            }
            Ok(head)
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowboy_devnet::types::{Head, ValidatorStatus};
    use cowboy_engine::primitives::{Address, Hash};

    fn validator(index: u64, status: ValidatorState, reason: Option<&str>) -> ValidatorStatus {
        ValidatorStatus {
            name: format!("validator-{index}"),
            address: Address([0; 20]).into(),
            index: None,
            height: 10 * index,
            status,
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn a_standstill_says_who_does_not_run_and_who_is_behind() {
        use ValidatorState::{CatchingUp, Died, Paused, Running, Stopped};

        let check = |head, validators: Vec<ValidatorStatus>, expected: &str| {
            let status = Status {
                name: "local".to_owned(),
                running: true,
                ready: false,
                chain_id: None,
                head: Some(Head { height: head, hash: Hash([0; 32]).into(), finalized_at: None }),
                kept_from: None,
                validators,
                runners: Vec::new(),
                faults: Vec::new(),
                supply: None,
                pid: None,
                started_at: None,
                died: None,
            };
            assert_eq!(standstill(&status), expected);
        };
        let fine = || vec![validator(4, Running, None), validator(5, CatchingUp, None)];
        check(50, fine(), "");
        let behind = "; the asked validator is behind: the head is block 50";
        check(40, fine(), behind);
        let away = vec![
            validator(1, Died, Some("no space left on device")),
            validator(2, Stopped, None),
            validator(3, Stopped, None),
            validator(4, Paused, Some("200 MiB are free")),
        ];
        check(
            40,
            away,
            "; validator-1 died: no space left on device; validator-4 paused: 200 MiB are free; \
             validator-2, validator-3 stopped",
        );
    }
}
