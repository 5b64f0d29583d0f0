//! `devnet up`: resolves what to run, and runs it here or in the background.

use crate::{
    args,
    context::{self, Context},
    error::{CliError, Exit},
    output::warn,
};
use clap::Args;
use cowboy_devnet::{
    orchestrator::home::{DevnetHome, DevnetState, Home, HomeError},
    topology::{
        BlockTime, Hosts, MAX_RUNNERS, MAX_VALIDATORS, Name, Overrides, Plan, PythonMachine,
        Topology, Visibility,
    },
};
use std::{path::PathBuf, time::Duration};

/// What a devnet is to be, as typed.
#[derive(Debug, Clone, Default, Args)]
pub struct DevnetOptions {
    /// A topology file [default: 4 validators, 4 runners]
    #[arg(long, short)]
    pub file: Option<PathBuf>,
    /// The devnet's name [default: the topology's, else `local`]
    #[arg(long)]
    pub name: Option<Name>,
    /// Where the nodes run: in-process or process [default: the topology's, else in-process]
    #[arg(long, value_name = "HOSTS", value_parser = args::field::<Hosts>)]
    pub hosts: Option<Hosts>,
    /// Number of validators [default: the topology's, else 4]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_VALIDATORS))]
    pub validators: Option<u64>,
    /// Number of runners [default: the topology's, else 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=MAX_RUNNERS))]
    pub runners: Option<u64>,
    /// The block time, such as 250ms [default: the topology's, else 1s]
    #[arg(long, value_name = "DURATION")]
    pub block_time: Option<BlockTime>,
    /// The seed that every key derives from [default: the topology's, else 0]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

/// `devnet up`.
#[derive(Debug, Clone, Default, Args)]
pub struct Up {
    #[command(flatten)]
    pub asked: DevnetOptions,
    /// Run it in the background, and return when it is ready
    #[arg(long)]
    pub detach: bool,
    /// With --detach: return when the chain has reached this height
    #[arg(long, value_name = "HEIGHT", requires = "detach")]
    pub wait: Option<u64>,
    /// With --detach: maximum time to wait
    #[arg(long, value_parser = args::duration, value_name = "DURATION", default_value = "60s")]
    pub timeout: Duration,
    /// This is the background process: its output is the devnet's log
    #[arg(long, hide = true)]
    pub daemon: bool,
    /// With --daemon: end when standard input does, and remove the devnet then
    #[arg(long, hide = true, requires = "daemon")]
    pub ephemeral: bool,
}

impl DevnetOptions {
    /// The plan and the folder of its devnet; an error if the devnet is running.
    pub fn resolve(&self, cx: &Context) -> Result<(Plan, DevnetHome), CliError> {
        let home = context::home()?;
        let overrides = Overrides {
            // The global --devnet names the devnet to start, too.
            name: self.name.clone().or_else(|| cx.devnet.clone()),
            hosts: self.hosts,
            validators: self.validators,
            runners: self.runners,
            block_time: self.block_time,
            seed: self.seed,
        };
        // The newest machine of this host is for new chains: one that has begun keeps its own.
        let mut newest_machine = false;
        let mut plan = match &self.file {
            Some(file) => {
                let (topology, text) = Topology::load(file)?;
                newest_machine = topology.chain.python == PythonMachine::Auto;
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
        if devnet.is_of_node() {
            let what = format!("`{}` is a single node and not a devnet", plan.name);
            return Err(CliError::new(Exit::Conflict, what)
                .hint("start it with `cowboyctl node run`, or choose another name: --name NAME"));
        }
        if let Some(saved) = saved_plan(&devnet)?.filter(|_| devnet.has_chain()) {
            if newest_machine {
                plan.python = saved.python;
            }
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

pub fn saved_plan(devnet: &DevnetHome) -> Result<Option<Plan>, CliError> {
    let Some(text) = devnet.topology()? else { return Ok(None) };
    let file = devnet.topology_path().display().to_string();
    Ok(Some(Topology::parse(&text, &file)?.resolve(&Overrides::default(), &text, &file)?))
}

/// A chain that has begun cannot have another genesis. These may change: the block time, the API's
/// port and paths, the lease server's port and settings, the speculation settings other than the
/// proof generator, how much is kept and reserved, where traces go, and how a validator's own
/// process is run.
fn same_chain(plan: &Plan, saved: &Plan) -> Result<(), CliError> {
    let names = |plan: &Plan| plan.validators.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
    let other_validators = names(plan) != names(saved);
    let adjusted = Plan {
        validators: if other_validators { plan } else { saved }.validators.clone(),
        block_time: saved.block_time,
        api_port: saved.api_port,
        api_compat: saved.api_compat,
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
        ("hosts", plan.hosts != saved.hosts),
        ("machine for Python", plan.python != saved.python),
        ("validators", other_validators),
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
