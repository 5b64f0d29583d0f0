//! `devnet ls`, `status` and `env`.

use super::saved_plan;
use crate::{
    commands::fault,
    context::{self, Context},
    error::CliError,
    output::{
        ColumnOf, Document, Row, columns, fields, or_dash, paragraphs, seconds_since, short,
        table_of,
    },
};
use cowboy_devnet::{
    client::{Client, ClientError},
    orchestrator::home::{DevnetHome, DevnetState},
    snapshot::{self, StoredHead},
    topology::{Name, Plan},
    types::{
        AddressText, Head, RunnerState, RunnerStatus, Status, ValidatorState, ValidatorStatus,
    },
};
use jiff::Timestamp;
use serde::Serialize;
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

/// Time limit for a listed devnet to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A listed devnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ListedDevnet {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// Whether a process runs it.
    running: bool,
    /// `running`, `starting`, `stopped`, `unresponsive`, or `died`: its process was killed.
    status: &'static str,
    /// The pid of that process, or of the killed one.
    pid: Option<u32>,
    /// The URL of its control API.
    rpc_url: Option<String>,
    /// Its head; if its process was killed, the newest stored block.
    height: Option<u64>,
    /// Number of validators.
    validators: Option<usize>,
    /// Number of runners.
    runners: Option<usize>,
    /// Its folder.
    #[cfg_attr(test, schema(value_type = String))]
    home: PathBuf,
    /// Whether `devnet use` chose it.
    current: bool,
}

pub async fn ls(cx: &Context) -> Result<(), CliError> {
    let mut entries = Vec::new();
    let home = context::home()?;
    let current = home.current()?;
    for devnet in home.list()? {
        let entry = ListedDevnet::of(&devnet).await?;
        entries.push(ListedDevnet { current: current.as_ref() == Some(devnet.name()), ..entry });
    }
    cx.ui.list(&entries)
}

impl ListedDevnet {
    async fn of(devnet: &DevnetHome) -> Result<Self, CliError> {
        let plan = plan(devnet);
        let stopped = Self {
            name: devnet.name().clone(),
            running: false,
            status: "stopped",
            pid: None,
            rpc_url: None,
            height: None,
            validators: plan.as_ref().map(|plan| plan.validators.len()),
            runners: plan.as_ref().map(|plan| plan.runners.len()),
            home: devnet.path().to_owned(),
            current: false,
        };
        match devnet.state()? {
            DevnetState::Absent | DevnetState::Stopped => Ok(stopped),
            DevnetState::Died(record) => {
                let height = last_block(&stored(devnet)).map(|head| head.height);
                Ok(Self { status: "died", pid: Some(record.pid), height, ..stopped })
            }
            DevnetState::Starting { pid } => {
                Ok(Self { running: true, status: "starting", pid, ..stopped })
            }
            DevnetState::Running(record) => {
                let head = match Client::new(&record.rpc_url) {
                    Ok(client) => client.with_timeout(PATIENCE).head().await.ok(),
                    Err(_) => None,
                };
                Ok(Self {
                    running: true,
                    status: if head.is_some() { "running" } else { "unresponsive" },
                    pid: Some(record.pid),
                    rpc_url: Some(record.rpc_url),
                    height: head.map(|head| head.height),
                    ..stopped
                })
            }
        }
    }
}

/// The heads that the validators have stored, as far as they can be read.
fn stored(devnet: &DevnetHome) -> BTreeMap<String, StoredHead> {
    snapshot::heads(devnet.path()).unwrap_or_default()
}

fn last_block(heads: &BTreeMap<String, StoredHead>) -> Option<Head> {
    let last = heads.values().max_by_key(|head| head.height)?;
    Some(Head { height: last.height.get(), hash: last.hash.into(), finalized_at: None })
}

pub(super) fn plan(devnet: &DevnetHome) -> Option<Plan> {
    saved_plan(devnet).ok()?
}

impl Row for ListedDevnet {
    columns! { self;
        let mark = if self.current { " (current)" } else { "" };
        "name" => format!("{}{mark}", self.name),
        "status" => self.status.to_owned(),
        ">height" => or_dash(self.height),
        ">validators" => or_dash(self.validators),
        ">runners" => or_dash(self.runners),
        "control API" => or_dash(self.rpc_url.clone()),
        ">process" => or_dash(self.pid),
    }
    const LEAST: &'static [&'static str] = &["process", "control API"];

    fn id(&self) -> String {
        self.name.to_string()
    }
}

/// A stopped devnet is shown, too, but is an error.
pub async fn status(cx: &Context, named: Option<&Name>) -> Result<(), CliError> {
    let devnet = cx.existing(named)?;
    let state = devnet.state()?;
    if state.is_down() {
        let died = match state {
            DevnetState::Died(record) => Some(format!("its process {} was killed", record.pid)),
            _ => None,
        };
        cx.ui.document(&Status { died, ..stopped(&devnet) })?;
        // Fails in the same way as any other request to a devnet.
        Client::of_devnet(&devnet)?;
        return Err(ClientError::NotRunning(devnet.name().clone()).into());
    }
    cx.ui.document(&cx.client_of(&devnet)?.status().await?)
}

fn stopped(devnet: &DevnetHome) -> Status {
    let (plan, heads) = (plan(devnet), stored(devnet));
    let height = |name: &Name| heads.get(name.as_str()).map_or(0, |head| head.height.get());
    let address = |plan: &Plan, name: &Name| AddressText::from(plan.key(name).address());
    let validators = plan.iter().flat_map(|plan| {
        plan.validators.iter().map(|validator| ValidatorStatus {
            name: validator.name.to_string(),
            address: address(plan, &validator.name),
            index: None,
            height: height(&validator.name),
            status: ValidatorState::Stopped,
            reason: None,
        })
    });
    let runners = plan.iter().flat_map(|plan| {
        plan.runners.iter().map(move |runner| RunnerStatus {
            name: runner.name.to_string(),
            address: address(plan, &runner.name),
            status: RunnerState::Stopped,
            connected_validators: Vec::new(),
            unmet: None,
        })
    });
    Status {
        name: devnet.name().to_string(),
        running: false,
        ready: false,
        chain_id: None,
        head: last_block(&heads),
        kept_from: None,
        validators: validators.collect(),
        runners: runners.collect(),
        faults: Vec::new(),
        supply: None,
        pid: None,
        started_at: None,
        died: None,
    }
}

const VALIDATORS: &[ColumnOf<ValidatorStatus>] = &[
    (">index", |validator| or_dash(validator.index)),
    ("validator", |validator| validator.name.clone()),
    ("address", |validator| validator.address.to_string()),
    ("status", |validator| validator.status.to_string()),
    (">height", |validator| validator.height.to_string()),
];

const RUNNERS: &[ColumnOf<RunnerStatus>] = &[
    ("runner", |runner| runner.name.clone()),
    ("address", |runner| runner.address.to_string()),
    ("status", |runner| match runner.status {
        RunnerState::Connected => "connected".to_owned(),
        RunnerState::Connecting => "connecting".to_owned(),
        RunnerState::Stopped => "stopped".to_owned(),
    }),
    ("unmet", |runner| or_dash(runner.unmet.as_ref().map(|unmet| unmet.condition.as_str()))),
    ("connected to", |runner| runner.connected_validators.join(",")),
];

impl Document for Status {
    fn text(&self) -> String {
        let running = match (self.running, self.ready) {
            (true, true) => "running",
            (true, false) => "running, not every node is ready",
            (false, _) => "stopped",
        };
        let running = match &self.died {
            Some(reason) => format!("died: {reason}"),
            None => running.to_owned(),
        };
        let mut lines = vec![("devnet", self.name.clone()), ("status", running)];
        lines.extend(self.chain_id.map(|chain_id| ("chain", chain_id.to_string())));
        if let Some(head) = &self.head {
            lines.push(("head", format!("{} ({})", head.height, short(&head.hash))));
        }
        if let Some(oldest) = self.kept_from.filter(|oldest| *oldest > 1) {
            lines.push(("oldest block", format!("{oldest}; those before it were dropped")));
        }
        lines.extend(self.pid.map(|pid| ("process", pid.to_string())));
        if let Some(started) = self.started_at {
            lines.push(("up for", seconds_since(*started, Timestamp::now())));
        }
        if !self.faults.is_empty() {
            let faults: Vec<_> = self.faults.iter().map(fault::words).collect();
            lines.push(("faults", faults.join("\n")));
        }
        let mut reasons = BTreeMap::<_, Vec<_>>::new();
        for validator in &self.validators {
            if let Some(reason) = &validator.reason {
                reasons
                    .entry((validator.status.to_string(), reason))
                    .or_default()
                    .push(validator.name.as_str());
            }
        }
        let reasons: Vec<_> = reasons
            .into_iter()
            .map(|((state, reason), names)| format!("{} {state}: {reason}", names.join(", ")))
            .collect();
        if !reasons.is_empty() {
            lines.push(("validators", reasons.join("\n")));
        }
        paragraphs([
            fields(&lines),
            table_of(&[], VALIDATORS, &self.validators),
            table_of(&["address"], RUNNERS, &self.runners),
        ])
    }

    fn id(&self) -> String {
        match (self.running, &self.died) {
            (true, _) => "running",
            (false, Some(_)) => "died",
            (false, None) => "stopped",
        }
        .to_owned()
    }
}

/// What other programs need to reach a devnet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Environment {
    /// The folder of all devnets.
    #[cfg_attr(test, schema(value_type = String))]
    home: PathBuf,
    /// The devnet's name.
    #[cfg_attr(test, schema(value_type = String))]
    devnet: Name,
    /// The URL of its control API.
    rpc_url: String,
    /// The file with the API's token.
    #[cfg_attr(test, schema(value_type = String))]
    token_file: PathBuf,
}

/// Prints exports for `eval "$(cowboyctl devnet env)"`.
pub fn env(cx: &Context, named: Option<&Name>) -> Result<(), CliError> {
    cx.ui.document(&Environment::of(&cx.running(named)?)?)
}

impl Environment {
    pub fn of(devnet: &DevnetHome) -> Result<Self, CliError> {
        // Fails in the same way as any other request to a devnet.
        Client::of_devnet(devnet)?;
        let DevnetState::Running(record) = devnet.state()? else {
            return Err(ClientError::NotRunning(devnet.name().clone()).into());
        };
        Ok(Self {
            home: context::home()?.path().to_owned(),
            devnet: record.name,
            rpc_url: record.rpc_url,
            token_file: devnet.token_path(),
        })
    }

    /// The environment variables that say the same.
    pub fn variables(&self) -> [(&'static str, OsString); 4] {
        [
            ("COWBOYCTL_HOME", self.home.clone().into()),
            ("COWBOYCTL_DEVNET", self.devnet.as_str().into()),
            ("COWBOYCTL_RPC_URL", self.rpc_url.clone().into()),
            ("COWBOYCTL_TOKEN_FILE", self.token_file.clone().into()),
        ]
    }
}

impl Document for Environment {
    fn text(&self) -> String {
        let exports = self.variables().map(|(name, value)| {
            let value = value.display().to_string().replace('\'', r"'\''");
            format!("export {name}='{value}'")
        });
        exports.join("\n")
    }

    fn id(&self) -> String {
        self.rpc_url.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_survive_a_shell() {
        let environment = Environment {
            home: PathBuf::from("/a b/it's"),
            devnet: "local".parse().unwrap(),
            rpc_url: "http://127.0.0.1:20123".to_owned(),
            token_file: PathBuf::from("/a b/it's/local/token"),
        };
        insta::assert_snapshot!(environment.text(), @r"
        export COWBOYCTL_HOME='/a b/it'\''s'
        export COWBOYCTL_DEVNET='local'
        export COWBOYCTL_RPC_URL='http://127.0.0.1:20123'
        export COWBOYCTL_TOKEN_FILE='/a b/it'\''s/local/token'
        ");
    }
}
