//! `devnet up`: resolves what to run, and runs it here or in the background.

use super::{daemon, launch};
use crate::{
    args,
    commands::to_end,
    context::{self, Context},
    error::{CliError, Exit},
    output::{Document, fields, millis, short, warn},
};
use clap::{Args, builder::FalseyValueParser};
use cowboy_devnet::{
    api::types::{ChainIdText, Head, ValidatorState, ValidatorStatus},
    client::Client,
    orchestrator::home::{DevnetHome, DevnetRecord, DevnetState, Home, HomeError},
    topology::{
        BlockTime, MAX_RUNNERS, MAX_VALIDATORS, Name, Overrides, Plan, Topology, Visibility,
    },
};
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// `devnet up`.
#[derive(Debug, Clone, Default, Args)]
pub struct Up {
    /// A topology file [default: 4 validators, 4 runners]
    #[arg(long, short, env = "COWBOYCTL_FILE", hide_env_values = true)]
    pub file: Option<PathBuf>,
    /// The devnet's name [default: the topology's, else `local`]
    #[arg(long, env = "COWBOYCTL_NAME", hide_env_values = true)]
    pub name: Option<Name>,
    /// Number of validators [default: the topology's, else 4]
    #[arg(long, value_name = "N", env = "COWBOYCTL_VALIDATORS", hide_env_values = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_VALIDATORS))]
    pub validators: Option<u64>,
    /// Number of runners [default: the topology's, else 4]
    #[arg(long, value_name = "N", env = "COWBOYCTL_RUNNERS", hide_env_values = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=MAX_RUNNERS))]
    pub runners: Option<u64>,
    /// The block time, such as 250ms [default: the topology's, else 1s]
    #[arg(long, value_name = "DURATION", env = "COWBOYCTL_BLOCK_TIME", hide_env_values = true)]
    pub block_time: Option<BlockTime>,
    /// The seed that every key derives from [default: the topology's, else 0]
    #[arg(long, value_name = "NUMBER", env = "COWBOYCTL_SEED", hide_env_values = true)]
    pub seed: Option<u64>,
    /// Run it in the background, and return when it is ready
    #[arg(long, env = "COWBOYCTL_DETACH", hide_env_values = true)]
    #[arg(value_parser = FalseyValueParser::new())]
    pub detach: bool,
    /// With --detach: return when the chain has reached this height
    #[arg(long, value_name = "HEIGHT", requires = "detach")]
    pub wait: Option<u64>,
    /// With --detach: maximum time to wait
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    #[arg(env = "COWBOYCTL_TIMEOUT", hide_env_values = true)]
    pub timeout: Duration,
    /// This is the background process: its output is the devnet's log
    #[arg(long, hide = true)]
    pub daemon: bool,
}

impl Up {
    /// Runs the devnet, or starts the process that does.
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        if self.daemon {
            let (plan, devnet) = self.resolve(cx)?;
            return daemon::run(plan, &devnet);
        }
        if self.detach {
            return cx.ui.document(&to_end(super::detached(cx, &self))?);
        }
        let (plan, devnet) = self.resolve(cx)?;
        launch::foreground(cx, plan, &devnet)
    }

    /// The plan and the folder of its devnet; an error if the devnet is running.
    pub fn resolve(&self, cx: &Context) -> Result<(Plan, DevnetHome), CliError> {
        let home = context::home()?;
        let overrides = Overrides {
            // The global --devnet names the devnet to start, too.
            name: self.name.clone().or_else(|| cx.devnet.clone()),
            validators: self.validators,
            runners: self.runners,
            block_time: self.block_time,
            seed: self.seed,
        };
        let plan = match &self.file {
            Some(file) => {
                let (topology, text) = Topology::load(file)?;
                topology.resolve(&overrides, &text, &file.display().to_string())?
            }
            None => of_saved(&home, &overrides)?,
        };
        let devnet = home.devnet(&plan.name);
        match devnet.state()? {
            DevnetState::Absent | DevnetState::Stopped | DevnetState::Died(_) => {}
            DevnetState::Starting { pid } => {
                return Err(HomeError::InUse { name: plan.name, pid }.into());
            }
            DevnetState::Running(record) => {
                let what = format!("devnet `{}` is already running", plan.name);
                return Err(CliError::new(Exit::Conflict, what)
                    .detail(format!("process {} answers at {}", record.pid, record.rpc_url))
                    .hint(format!("stop it: cowboyctl devnet down {}", plan.name)));
            }
        }
        if let Some(saved) = saved_plan(&devnet)?.filter(|_| devnet.has_chain()) {
            same_chain(&plan, &saved)?;
        }
        let feasibility = plan.feasibility();
        if feasibility.visibility == Visibility::Sometimes && !plan.runners.is_empty() {
            warn(&feasibility.to_string());
        }
        Ok((plan, devnet))
    }
}

/// Without a file: the saved topology of the devnet, else the defaults.
fn of_saved(home: &Home, overrides: &Overrides) -> Result<Plan, CliError> {
    let fresh = Topology::default().resolve(overrides, "", "command line")?;
    let devnet = home.devnet(&fresh.name);
    let Some(text) = devnet.topology()? else { return Ok(fresh) };
    let file = devnet.topology_path().display().to_string();
    Ok(Topology::parse(&text, &file)?.resolve(overrides, &text, &file)?)
}

/// The topology that a devnet's chain began with.
pub fn saved_plan(devnet: &DevnetHome) -> Result<Option<Plan>, CliError> {
    let Some(text) = devnet.topology()? else { return Ok(None) };
    let file = devnet.topology_path().display().to_string();
    Ok(Some(Topology::parse(&text, &file)?.resolve(&Overrides::default(), &text, &file)?))
}

/// A chain that has begun cannot have another genesis. These may change: the block time, the API's
/// port, the lease server's port and settings, the speculation settings other than the proof
/// generator, how much is kept and reserved, and where traces go.
fn same_chain(plan: &Plan, saved: &Plan) -> Result<(), CliError> {
    let adjusted = Plan {
        block_time: saved.block_time,
        api_port: saved.api_port,
        speculation: saved.speculation.clone(),
        lease: saved.lease,
        lease_port: saved.lease_port,
        keep: saved.keep,
        reserve: saved.reserve,
        collector: saved.collector.clone(),
        ..plan.clone()
    };
    let generator = |plan: &Plan| plan.speculation.config.generator;
    let other_proofs = generator(plan) != generator(saved);
    if adjusted == *saved && !other_proofs {
        return Ok(());
    }
    let differs = [
        ("chain name", plan.chain_name != saved.chain_name),
        ("seed", plan.seed != saved.seed),
        ("epoch blocks", plan.epoch_blocks != saved.epoch_blocks),
        ("threshold rule", plan.threshold_rule != saved.threshold_rule),
        ("seeds of draws", plan.selection_seed != saved.selection_seed),
        ("migration phase", plan.phase != saved.phase),
        ("validators", plan.validators != saved.validators),
        ("runners", plan.runners != saved.runners),
        ("accounts", plan.accounts != saved.accounts),
        ("connectivity", plan.connectivity != saved.connectivity),
        ("timers", plan.timers != saved.timers),
        ("bonds of tasks", plan.bonds != saved.bonds),
        ("proof generator", other_proofs),
    ];
    let differs: Vec<_> = differs.iter().filter(|(_, d)| *d).map(|(name, _)| *name).collect();
    let what = format!("devnet `{}` has a chain of another topology", plan.name);
    Err(CliError::new(Exit::Conflict, what).detail(format!("other {}", differs.join(", "))).hint(
        format!(
            "go on with it without these options, or delete it: cowboyctl devnet reset {}",
            plan.name
        ),
    ))
}

/// Warns about validators that did not start, if the devnet continues without them.
pub(super) async fn warn_of_dead(client: &Client) -> Result<(), CliError> {
    for validator in client.status().await?.validators {
        if validator.status == ValidatorState::Died {
            let ValidatorStatus { name, reason, .. } = validator;
            let reason = reason.unwrap_or_default();
            warn(&format!(
                "{name} does not run: {reason}\n  the others go on; to have it take the chain from \
                 them: cowboyctl validator resync {name}"
            ));
        }
    }
    Ok(())
}

/// A devnet that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct UpReport {
    /// Its name.
    #[cfg_attr(test, schema(value_type = String))]
    pub name: Name,
    /// The chain's id, which its transactions name.
    pub chain_id: ChainIdText,
    /// The URL of its control API.
    pub rpc_url: String,
    /// Its folder.
    #[cfg_attr(test, schema(value_type = String))]
    pub home: PathBuf,
    /// The newest finalized and executed block.
    pub head: Head,
    /// Number of validators.
    pub validators: usize,
    /// Number of runners.
    pub runners: usize,
    /// The pid of the process that runs it.
    pub pid: u32,
    /// Milliseconds from the start until it was ready.
    pub ready_ms: u64,
}

impl UpReport {
    /// Combines a devnet's record with the time that it took to become ready.
    pub(in crate::commands) fn new(
        record: DevnetRecord,
        home: PathBuf,
        head: Head,
        (validators, runners): (usize, usize),
        ready: Duration,
    ) -> Self {
        Self {
            name: record.name,
            chain_id: record.chain_id,
            rpc_url: record.rpc_url,
            home,
            head,
            validators,
            runners,
            pid: record.pid,
            ready_ms: u64::try_from(ready.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Document for UpReport {
    fn text(&self) -> String {
        let head = &self.head;
        fields(&[
            ("devnet", self.name.to_string()),
            ("chain", self.chain_id.to_string()),
            ("control API", self.rpc_url.clone()),
            ("home", self.home.display().to_string()),
            ("head", format!("{} ({})", head.height, short(&head.hash))),
            ("nodes", format!("{} validators, {} runners", self.validators, self.runners)),
            ("process", self.pid.to_string()),
            ("ready after", millis(self.ready_ms)),
        ])
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}
