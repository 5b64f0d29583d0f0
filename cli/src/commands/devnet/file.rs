//! `devnet init` and `devnet validate`: write and check topology files.

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{ColumnOf, Document, amount, fields, millis, paragraphs, raw, table_of, to_ms, warn},
};
use clap::Args;
use cowboy_devnet::{
    orchestrator::files::{memory_mib, needed},
    topology::{
        ConnectivitySection, MAX_RUNNERS, Name, Overrides, Plan, RunnerPlan, TEMPLATE,
        TasksSection, TimersSection, Topology, Visibility,
    },
};
use cowboy_engine::timer::{self, Activation, Policy};
use serde::Serialize;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
};

/// `devnet init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The file to write; - for standard output
    #[arg(default_value = "devnet.yaml")]
    file: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

impl Init {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        if self.file.as_os_str() == "-" {
            return raw(TEMPLATE.as_bytes());
        }
        let file = self.file.display().to_string();
        // An empty file has nothing to lose; `init > devnet.yaml` has just made one.
        let empty = fs::metadata(&self.file).is_ok_and(|found| found.is_file() && found.len() == 0);
        let mut options = OpenOptions::new();
        options.write(true);
        if self.force || empty {
            options.create(true).truncate(true);
        } else {
            options.create_new(true);
        }
        let mut target = options.open(&self.file).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                CliError::new(Exit::Conflict, format!("{file} already exists"))
                    .hint("overwrite it with --force, or name another file")
            }
            _ => CliError::file(Exit::Failed, &self.file, &error),
        })?;
        target
            .write_all(TEMPLATE.as_bytes())
            .map_err(|error| CliError::file(Exit::Failed, &self.file, &error))?;
        cx.ui.note(&format!("wrote {file}; start it: cowboyctl devnet up -f {file}"));
        Ok(())
    }
}

/// `devnet validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// The topology file
    file: PathBuf,
}

impl Validate {
    pub fn run(self, cx: &Context) -> Result<(), CliError> {
        let (topology, text) = Topology::load(&self.file)?;
        let file = self.file.display().to_string();
        let plan = topology.resolve(&Overrides::default(), &text, &file)?;
        let resolved = Resolved::of(file, &plan);
        for warning in &resolved.warnings {
            warn(warning);
        }
        cx.ui.document(&resolved)
    }
}

/// The resolved topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Resolved {
    /// The file.
    file: String,
    /// Always true, because a topology that cannot start is an error.
    valid: bool,
    /// The devnet's name.
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    /// Block time in milliseconds.
    block_time_ms: u64,
    /// The seed that every key derives from.
    seed: u64,
    /// How reliably runners are present.
    presence: PresenceForecast,
    /// How runners and validators keep in touch.
    #[cfg_attr(test, schema(value_type = Object))]
    connectivity: ConnectivitySection,
    /// How timers compete, and their limits.
    #[cfg_attr(test, schema(value_type = Object))]
    timers: TimersSection,
    /// The chain's requirements for bonds under commitments to tasks' outputs.
    #[cfg_attr(test, schema(value_type = Object))]
    tasks: TasksSection,
    /// The migration phase that the chain starts in.
    migration_phase: String,
    /// The validators, in the set's order.
    validators: Vec<NodeKind>,
    /// The runners, in the order they register.
    runners: Vec<RunnerNode>,
    /// The accounts.
    accounts: Vec<Endowed>,
    /// The machine's resources that it needs.
    needs: Needs,
    /// The control API's port; absent if the system chooses it.
    api_port: Option<u16>,
    /// Possible problems.
    warnings: Vec<String>,
}

/// The machine's resources that a devnet's process needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Needs {
    /// Maximum number of open files and sockets; `devnet up` fails if the limit is lower.
    open_files: u64,
    /// Memory of an idle devnet in MiB; jobs, actors and long queues need more.
    memory_mib: u64,
}

/// How reliably a connected runner is present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PresenceForecast {
    /// How votes become presence.
    threshold_rule: String,
    /// Validators that each runner is connected to.
    subset: u32,
    /// Votes in a certificate.
    quorum: u32,
    /// Votes that a runner needs to be present.
    threshold: u32,
    /// `always` or `sometimes`; a runner that is never visible is an error.
    visibility: &'static str,
    /// Maximum number of registered runners, because a vote's bitmap carries no more.
    max_runners: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct NodeKind {
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    address: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RunnerNode {
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    address: String,
    kinds: Vec<String>,
    stake: String,
    price_per_second: String,
    max_concurrent_jobs: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Endowed {
    #[cfg_attr(test, schema(value_type = String))]
    name: Name,
    address: String,
    balance: String,
}

impl Resolved {
    fn of(file: String, plan: &Plan) -> Self {
        let feasibility = plan.feasibility();
        let unreliable =
            feasibility.visibility == Visibility::Sometimes && !plan.runners.is_empty();
        let address = |name: &Name| plan.key(name).address().to_string();
        let runner = |runner: &RunnerPlan| RunnerNode {
            name: runner.name.clone(),
            address: address(&runner.name),
            kinds: runner.kinds.iter().map(ToString::to_string).collect(),
            stake: runner.stake.to_string(),
            price_per_second: runner.price_per_second.to_string(),
            max_concurrent_jobs: runner.max_concurrent_jobs,
        };
        Self {
            file,
            valid: true,
            name: plan.name.clone(),
            block_time_ms: to_ms(plan.block_time),
            seed: plan.seed,
            presence: PresenceForecast {
                threshold_rule: feasibility.rule.to_string(),
                subset: feasibility.subset,
                quorum: feasibility.quorum,
                threshold: feasibility.threshold,
                visibility: match feasibility.visibility {
                    Visibility::Always => "always",
                    Visibility::Sometimes => "sometimes",
                    Visibility::Never => "never",
                },
                max_runners: MAX_RUNNERS,
            },
            connectivity: ConnectivitySection::of(&plan.connectivity),
            timers: TimersSection::of(&plan.timers),
            tasks: TasksSection::of(&plan.bonds),
            migration_phase: plan.phase.to_string(),
            validators: plan
                .validators
                .iter()
                .map(|v| NodeKind { name: v.name.clone(), address: address(&v.name) })
                .collect(),
            runners: plan.runners.iter().map(runner).collect(),
            accounts: plan
                .accounts
                .iter()
                .map(|account| Endowed {
                    name: account.name.clone(),
                    address: address(&account.name),
                    balance: account.balance.to_string(),
                })
                .collect(),
            needs: Needs { open_files: needed(plan), memory_mib: memory_mib(plan) },
            api_port: plan.api_port,
            warnings: unreliable
                .then(|| feasibility.to_string())
                .into_iter()
                .chain(starved(&plan.timers))
                .collect(),
        }
    }

    fn timers_in_words(&self) -> String {
        let timers = self.timers.params();
        let config = timers.config;
        let mut text = timers.policy.name().to_owned();
        if let Some(Activation { policy, height }) = timers.activation {
            text += &format!(", {} from block {height} on", policy.name());
        }
        let (lane, window) = (config.lane_timer_cycles, config.fairness_window_blocks);
        let scope = timers.scope.name();
        text + &format!("; {lane} cycles a block; fairness by {scope} over {window} blocks")
    }
}

/// A warning if timers without their own gas limit can never fire.
fn starved(timers: &timer::Params) -> Option<String> {
    let config = timers.config;
    let asked = match timers.policy {
        Policy::Eip1559 => config.max_cycles_per_fire.min(config.max_cycles_per_fire_auction_phase),
        Policy::Fifo | Policy::GbaAuction => config.max_cycles_per_fire,
    };
    let lane = config.lane_timer_cycles;
    (asked > lane).then(|| {
        format!(
            "timers that name no gas limit ask for {asked} cycles and never fire: the lane has \
             {lane} a block; raise timers.lane_timer_cycles or lower the caps per fire"
        )
    })
}

const VALIDATORS: &[ColumnOf<NodeKind>] = &[
    ("validator", |validator| validator.name.to_string()),
    ("address", |validator| validator.address.clone()),
];

const RUNNERS: &[ColumnOf<RunnerNode>] = &[
    ("runner", |runner| runner.name.to_string()),
    ("address", |runner| runner.address.clone()),
    ("kinds", |runner| runner.kinds.join(",")),
    (">stake", |runner| money(&runner.stake)),
    (">price per second", |runner| money(&runner.price_per_second)),
    (">jobs", |runner| runner.max_concurrent_jobs.to_string()),
];

const ACCOUNTS: &[ColumnOf<Endowed>] = &[
    ("account", |account| account.name.to_string()),
    ("address", |account| account.address.clone()),
    (">balance", |account| money(&account.balance)),
];

fn money(wei: &str) -> String {
    amount(wei.parse().expect("an amount prints as one"))
}

impl Document for Resolved {
    fn text(&self) -> String {
        let presence = &self.presence;
        let head = fields(&[
            ("devnet", self.name.to_string()),
            ("block time", millis(self.block_time_ms)),
            ("seed", self.seed.to_string()),
            (
                "presence",
                format!(
                    "{}: {} of {} votes; a runner is connected to {} of {} validators and is {} \
                     present",
                    presence.threshold_rule,
                    presence.threshold,
                    presence.quorum,
                    presence.subset,
                    self.validators.len(),
                    presence.visibility,
                ),
            ),
            (
                "runners",
                format!(
                    "{} of {} at most: a vote carries no more",
                    self.runners.len(),
                    presence.max_runners
                ),
            ),
            (
                "needs",
                format!(
                    "{} open files and sockets, {} MiB of memory",
                    self.needs.open_files, self.needs.memory_mib
                ),
            ),
            ("migration phase", self.migration_phase.clone()),
            ("timers", self.timers_in_words()),
            ("api port", self.api_port.map_or_else(|| "any".to_owned(), |port| port.to_string())),
        ]);
        paragraphs([
            head,
            table_of(&[], VALIDATORS, &self.validators),
            table_of(&[], RUNNERS, &self.runners),
            table_of(&[], ACCOUNTS, &self.accounts),
        ])
    }

    fn id(&self) -> String {
        self.name.to_string()
    }
}
