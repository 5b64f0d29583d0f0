//! The resolved form of a topology.

use super::{
    AccountsSection, Amount, ApiSection, BlockTime, ChainSection, ConnectivitySection,
    ExtraAccount, Feasibility, Hosts, Image, LeaseSection, MigrationSection, Name, NodeList,
    Options, PresenceSection, ProcessPlan, PythonMachine, Reserve, RunnerKind, RunnerSection,
    SelectionSection, SpeculationSection, StorageSection, TasksSection, TelemetrySection,
    TimersSection, Topology, TopologyError, ValidatorSection, Visibility, value::within,
};
use crate::{executor, storage::Keep, telemetry::CollectorUrl};
use cowboy_engine::{
    chain::params::{EPOCH_BLOCKS, Powers},
    job::SeedRule,
    presence::{Connectivity, Phase, ThresholdRule},
    primitives::{Hash, SecretKey, Wei},
    registry::{self, JobKind},
    speculation::Bonds,
    timer,
};
use cowboy_host::{
    located::{
        Located,
        PathStep::{self, Item, Key},
        path_text,
    },
    within::Within,
};
use cowboy_lease::machine;
use std::{
    collections::BTreeMap,
    path::{Path, absolute},
    time::Duration,
};

/// The account that `account fund` pays from. Every devnet has it.
pub const FAUCET: &str = "faucet";

/// The account that governs the chain's parameters and sends system instructions. Every devnet has
/// it.
pub const GOVERNANCE: &str = "governance";

/// The account that runs pipelines of tasks. Every devnet has it.
pub const AGENT: &str = "agent";

/// The agent's initial balance: it pays for its transactions and for its tasks' rewards and bonds.
const AGENT_BALANCE: Wei = Wei::cby(1_000_000);

/// The governance account's initial balance: it pays for its transactions.
const GOVERNANCE_BALANCE: Wei = Wei::cby(1_000_000);

/// The faucet's initial balance: enough that no devnet empties it.
const FAUCET_BALANCE: Wei = Wei::cby(1_000_000_000_000);

/// The maximum sum of balances and stakes: half of what a `Wei` can hold, which leaves room for the
/// initial balances of validators and runners.
const MAX_SUPPLY: Wei = Wei::new(1 << 127);

/// The minimum stake of a runner.
pub(super) const MIN_STAKE: Wei = registry::MIN_STAKE;

/// A resolved topology: every name, amount and default decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The devnet's name.
    pub name: Name,
    /// The chain's name: the devnet's, unless a snapshot was loaded under another name.
    pub chain_name: Name,
    /// Where the nodes run.
    pub hosts: Hosts,
    /// The image of nodes in containers.
    pub image: Image,
    /// The pace of blocks.
    pub block_time: Duration,
    /// The seed from which all keys are derived.
    pub seed: u64,
    /// Length of a consensus epoch in blocks.
    pub epoch_blocks: u64,
    /// The tuple of the machine of actors in Python, if the chain has one.
    pub python: Option<Hash>,
    /// Whether governance has powers beyond the chain's rules.
    pub powers: Powers,
    /// The number of votes that a runner needs.
    pub threshold_rule: ThresholdRule,
    /// The source of the seeds of draws.
    pub selection_seed: SeedRule,
    /// The chain's initial migration phase.
    pub phase: Phase,
    /// How runners and validators stay connected.
    pub connectivity: Connectivity,
    /// How timers compete, and their limits.
    pub timers: timer::Params,
    /// Bonds for commitments to tasks' outputs.
    pub bonds: Bonds,
    /// How pipelines of tasks run ahead of the chain.
    pub speculation: Options,
    /// The terms of the lease server's leases.
    pub lease: machine::Config,
    /// The lease server's port on the loopback; `None` lets the system choose.
    pub lease_port: Option<u16>,
    /// How much of its chain each validator keeps.
    pub keep: Keep,
    /// Free disk space below which validators pause.
    pub reserve: Reserve,
    /// The collector that gets the traces of pipelines.
    pub collector: Option<CollectorUrl>,
    /// The validators in the order of the set: at least one.
    pub validators: Vec<ValidatorPlan>,
    /// The runners in the order in which they register.
    pub runners: Vec<RunnerPlan>,
    /// The accounts, beginning with the faucet, the governance account and the agent. The names of
    /// all nodes and accounts are distinct.
    pub accounts: Vec<AccountPlan>,
    /// The control API's port on the loopback; `None` lets the system choose.
    pub api_port: Option<u16>,
    /// Whether the control API also answers under the paths that tools of the ecosystem know.
    pub api_compat: bool,
}

/// A validator to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatorPlan {
    /// Its name.
    pub name: Name,
    /// How its process is run, if it has one of its own.
    pub process: ProcessPlan,
}

/// A runner to register and start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerPlan {
    /// Its name.
    pub name: Name,
    /// The job kinds it takes: at least one, sorted.
    pub kinds: Vec<RunnerKind>,
    /// Its stake: at least MIN_STAKE.
    pub stake: Wei,
    /// Its price per second of computing.
    pub price_per_second: Wei,
    /// Its limit of concurrent jobs: at least one.
    pub max_concurrent_jobs: u32,
    /// Whether it claims to run in a trusted execution environment.
    pub tee: bool,
    /// The settings of its executors, apart from requests and commands: complete for its kinds.
    pub executors: executor::Config,
    /// How its process is run, if it has one of its own.
    pub process: ProcessPlan,
}

/// An account of the genesis block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPlan {
    /// Its name.
    pub name: Name,
    /// Its initial balance.
    pub balance: Wei,
}

/// Values from the command line, which override those of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The devnet's name.
    pub name: Option<Name>,
    /// Where the nodes run.
    pub hosts: Option<Hosts>,
    /// The number of validators; it replaces a list in the file.
    pub validators: Option<u64>,
    /// The number of runners; it replaces a list in the file.
    pub runners: Option<u64>,
    /// The pace of blocks.
    pub block_time: Option<BlockTime>,
    /// The seed from which all keys are derived.
    pub seed: Option<u64>,
}

impl Topology {
    /// Resolves this topology with the command line's overrides.
    ///
    /// `text` and `file` are the source of the topology; errors name a line of it.
    pub fn resolve(
        &self,
        overrides: &Overrides,
        text: &str,
        file: &str,
    ) -> Result<Plan, TopologyError> {
        let refused = |path: &[PathStep], message: String| TopologyError {
            file: file.to_owned(),
            located: Located::of_field(path, text, &message),
        };
        self.timers.check().map_err(|(path, message)| {
            let path: Vec<_> = path.iter().copied().map(Key).collect();
            refused(&path, message)
        })?;
        self.connectivity
            .check()
            .map_err(|(field, message)| refused(&[Key("connectivity"), Key(field)], message))?;
        let speculation = self.speculation.options().map_err(|(path, m)| refused(&path, m))?;
        let lease = self.lease.config().map_err(|(path, message)| refused(&path, message))?;
        let mut plan = self.assemble(overrides, speculation, lease);
        let hosts = plan.hosts;
        let validators = plan.validators.iter_mut().map(|node| &mut node.process);
        let validators = validators.enumerate().map(|(at, process)| (("validators", at), process));
        let runners = plan.runners.iter_mut().map(|node| &mut node.process);
        let runners = runners.enumerate().map(|(at, process)| (("runners", at), process));
        for (place, process) in validators.chain(runners) {
            let checked = process.check(hosts, place);
            checked.map_err(|(path, message)| refused(&path, message))?;
            // A relative path means the same from every working directory.
            if let Some(binary) = &mut process.binary {
                let folder = Path::new(file).parent().unwrap_or(Path::new(""));
                *binary = absolute(folder.join(&*binary)).unwrap_or_else(|_| binary.clone());
            }
        }
        check_names(self, &plan).map_err(|(path, message)| refused(&path, message))?;
        check_runners(&plan).map_err(|(path, message)| refused(&path, message))?;
        let balances = plan.accounts.iter().map(|account| account.balance);
        let stakes = plan.runners.iter().map(|runner| runner.stake);
        let supply = balances.chain(stakes).try_fold(Wei::ZERO, Wei::checked_add);
        if supply.is_none_or(|supply| supply > MAX_SUPPLY) {
            let message = "balances and stakes together are more than 2^127 wei";
            return Err(refused(&[Key("accounts")], message.to_owned()));
        }
        let feasibility = plan.feasibility();
        if !plan.runners.is_empty() && feasibility.visibility == Visibility::Never {
            let path = [Key("chain"), Key("presence"), Key("threshold_rule")];
            return Err(refused(&path, feasibility.to_string()));
        }
        Ok(plan)
    }

    fn assemble(
        &self,
        overrides: &Overrides,
        speculation: Options,
        lease: machine::Config,
    ) -> Plan {
        let named = |name: &str| name.parse::<Name>().expect("the program's own names are names");
        let validators = match (&overrides.validators, &self.validators) {
            (None, Some(NodeList::List(list))) => list.iter().map(ValidatorPlan::from).collect(),
            (Some(count), _) | (None, Some(NodeList::Count(count))) => numbered_validators(*count),
            (None, None) => numbered_validators(4),
        };
        let runners = match (&overrides.runners, &self.runners) {
            (None, Some(NodeList::List(list))) => list.iter().map(RunnerPlan::from).collect(),
            (Some(count), _) | (None, Some(NodeList::Count(count))) => numbered_runners(*count),
            (None, None) => numbered_runners(4),
        };
        let faucet = AccountPlan { name: named(FAUCET), balance: FAUCET_BALANCE };
        let governance = AccountPlan { name: named(GOVERNANCE), balance: GOVERNANCE_BALANCE };
        let agent = AccountPlan { name: named(AGENT), balance: AGENT_BALANCE };
        let numbered = (0..self.accounts.count.get() as usize).map(|index| AccountPlan {
            name: Name::numbered("dev", index),
            balance: self.accounts.balance.0,
        });
        let extra = self
            .accounts
            .extra
            .iter()
            .map(|account| AccountPlan { name: account.name.clone(), balance: account.balance.0 });
        let port = self.api.port.get() as u16;
        let name = overrides.name.clone().or_else(|| self.name.clone());
        let name = name.unwrap_or_else(|| named("local"));
        Plan {
            chain_name: self.chain.name.clone().unwrap_or_else(|| name.clone()),
            name,
            hosts: overrides.hosts.unwrap_or(self.hosts),
            image: self.image.clone(),
            block_time: overrides.block_time.unwrap_or(self.chain.block_time).get(),
            seed: overrides.seed.unwrap_or(self.chain.seed.get()),
            epoch_blocks: self.chain.epoch_blocks.map_or(EPOCH_BLOCKS, Within::get),
            python: self.chain.python.settled(),
            powers: self.chain.powers.into(),
            threshold_rule: self.chain.presence.threshold_rule.into(),
            selection_seed: self.selection.seed.into(),
            phase: self.migration.phase.into(),
            connectivity: self.connectivity.params(),
            timers: self.timers.params(),
            bonds: self.tasks.bonds(),
            speculation,
            lease,
            lease_port: Some(self.lease.port.get() as u16).filter(|port| *port != 0),
            keep: self.storage.keep,
            reserve: self.storage.reserve,
            collector: self.telemetry.otlp.clone(),
            validators,
            runners,
            accounts: [faucet, governance, agent]
                .into_iter()
                .chain(numbered)
                .chain(extra)
                .collect(),
            api_port: (port != 0).then_some(port),
            api_compat: self.api.compat,
        }
    }
}

fn numbered_validators(count: u64) -> Vec<ValidatorPlan> {
    let numbered = |i| Name::numbered("validator", i);
    let plan = |name| ValidatorPlan { name, process: ProcessPlan::default() };
    (0..count as usize).map(numbered).map(plan).collect()
}

fn numbered_runners(count: u64) -> Vec<RunnerPlan> {
    (0..count as usize)
        .map(|i| RunnerPlan::from(&RunnerSection::named(Name::numbered("runner", i))))
        .collect()
}

impl From<&ValidatorSection> for ValidatorPlan {
    fn from(section: &ValidatorSection) -> Self {
        let ValidatorSection { name, binary, env, cpus, memory, core_dumps, restart } =
            section.clone();
        let process = ProcessPlan { binary, env, cpus, memory, core_dumps, restart };
        Self { name, process }
    }
}

impl From<&ValidatorPlan> for ValidatorSection {
    fn from(plan: &ValidatorPlan) -> Self {
        let ValidatorPlan { name, process } = plan.clone();
        let ProcessPlan { binary, env, cpus, memory, core_dumps, restart } = process;
        Self { name, binary, env, cpus, memory, core_dumps, restart }
    }
}

impl From<&RunnerSection> for RunnerPlan {
    fn from(section: &RunnerSection) -> Self {
        let executable = || {
            let kinds = section.executors.kinds();
            RunnerKind::ALL
                .into_iter()
                .filter(|kind| kinds.contains(&JobKind::from(*kind)))
                .collect()
        };
        let mut kinds = section.kinds.clone().unwrap_or_else(executable);
        kinds.sort();
        Self {
            name: section.name.clone(),
            kinds,
            stake: section.stake.0,
            price_per_second: section.price_per_second.0,
            max_concurrent_jobs: section.max_concurrent_jobs.get() as u32,
            tee: section.tee,
            executors: section.executors.clone(),
            process: ProcessPlan {
                binary: section.binary.clone(),
                env: section.env.clone(),
                cpus: section.cpus.clone(),
                memory: section.memory,
                core_dumps: section.core_dumps,
                restart: section.restart,
            },
        }
    }
}

type PlanRefusal = (Vec<PathStep>, String);

/// Checks that names are unique: keys derive from names, so a shared name would be a shared key.
fn check_names(topology: &Topology, plan: &Plan) -> Result<(), PlanRefusal> {
    let mut seen: BTreeMap<&Name, String> = BTreeMap::new();
    let mut add = |name, path: Vec<PathStep>, fallback: String| -> Result<(), PlanRefusal> {
        let place = if path.is_empty() { fallback } else { path_text(&path) };
        match seen.insert(name, place) {
            None => Ok(()),
            Some(first) => {
                let message = format!("`{name}` is already the name of {first}; names are unique");
                Err((path, message))
            }
        }
    };
    let numbered = plan.accounts.len() - topology.accounts.extra.len();
    for account in &plan.accounts[..numbered] {
        add(&account.name, vec![], format!("the account {}", account.name))?;
    }
    for (index, validator) in plan.validators.iter().enumerate() {
        let path = [Key("validators"), Item(index), Key("name")];
        add(&validator.name, path.to_vec(), String::new())?;
    }
    for (index, runner) in plan.runners.iter().enumerate() {
        let path = [Key("runners"), Item(index), Key("name")];
        add(&runner.name, path.to_vec(), String::new())?;
    }
    for (index, account) in topology.accounts.extra.iter().enumerate() {
        let path = [Key("accounts"), Key("extra"), Item(index), Key("name")];
        add(&account.name, path.to_vec(), String::new())?;
    }
    Ok(())
}

fn check_runners(plan: &Plan) -> Result<(), PlanRefusal> {
    for (index, runner) in plan.runners.iter().enumerate() {
        let field = |name| vec![Key("runners"), Item(index), Key(name)];
        if runner.kinds.is_empty() {
            let all: Vec<_> = RunnerKind::ALL.iter().map(|kind| format!("`{kind}`")).collect();
            let message = format!("no kind: expected at least one of {}", all.join(", "));
            return Err((field("kinds"), message));
        }
        let twice = runner.kinds.array_windows().find(|[a, b]| a == b);
        if let Some([kind, _]) = twice {
            return Err((field("kinds"), format!("`{kind}` is listed twice")));
        }
        let lacking =
            runner.kinds.iter().find_map(|k| Some((k, runner.executors.lacks((*k).into())?)));
        if let Some((kind, lacking)) = lacking {
            let message = format!("for `{kind}` jobs the runner's `executors` need {lacking}");
            return Err((field("kinds"), message));
        }
        if runner.stake < MIN_STAKE {
            let message = format!(
                "{} wei are less than a runner must lock: expected at least {MIN_STAKE} wei \
                 (10000cby)",
                runner.stake
            );
            return Err((field("stake"), message));
        }
    }
    Ok(())
}

impl Plan {
    /// The secret key of the node or account with this name on this devnet.
    pub fn key(&self, name: &Name) -> SecretKey {
        SecretKey::derive(&self.seed.to_be_bytes(), name.as_str())
    }

    /// The account of the devnet's own agent; `None` if the topology has no such account.
    pub fn agent(&self) -> Option<&Name> {
        self.accounts.iter().map(|account| &account.name).find(|name| name.as_str() == AGENT)
    }

    /// How reliably a runner that is connected to its whole subset is present.
    pub fn feasibility(&self) -> Feasibility {
        Feasibility::of(self.validators.len(), self.threshold_rule)
    }

    /// The plan as a topology file that resolves to the same plan.
    pub fn to_yaml(&self) -> String {
        let (own, accounts) =
            self.accounts.split_first_chunk().expect("a plan has the devnet's own accounts");
        debug_assert_eq!(own.each_ref().map(|a| a.name.as_str()), [FAUCET, GOVERNANCE, AGENT]);
        let of_runner = |runner: &RunnerPlan, process: ProcessPlan| RunnerSection {
            name: runner.name.clone(),
            kinds: Some(runner.kinds.clone()),
            stake: Amount(runner.stake),
            price_per_second: Amount(runner.price_per_second),
            max_concurrent_jobs: within(runner.max_concurrent_jobs.into()),
            tee: runner.tee,
            executors: runner.executors.clone(),
            binary: process.binary,
            env: process.env,
            cpus: process.cpus,
            memory: process.memory,
            core_dumps: process.core_dumps,
            restart: process.restart,
        };
        let runner = |runner: &RunnerPlan| of_runner(runner, runner.process.clone());
        let account = |account: &AccountPlan| ExtraAccount {
            name: account.name.clone(),
            balance: Amount(account.balance),
        };
        let topology = Topology {
            name: Some(self.name.clone()),
            hosts: self.hosts,
            image: self.image.clone(),
            chain: ChainSection {
                name: Some(self.chain_name.clone()).filter(|name| *name != self.name),
                block_time: format!("{}ms", self.block_time.as_millis())
                    .parse()
                    .expect("a plan's block time lies in the range of the file"),
                seed: within(self.seed),
                epoch_blocks: Some(within(self.epoch_blocks)),
                python: self.python.map_or(PythonMachine::Off, PythonMachine::Tuple),
                powers: self.powers.into(),
                presence: PresenceSection { threshold_rule: self.threshold_rule.into() },
            },
            selection: SelectionSection { seed: self.selection_seed.into() },
            migration: MigrationSection { phase: self.phase.into() },
            connectivity: ConnectivitySection::of(&self.connectivity),
            timers: TimersSection::of(&self.timers),
            tasks: TasksSection::of(&self.bonds),
            speculation: SpeculationSection::of(&self.speculation),
            lease: LeaseSection::of(&self.lease, self.lease_port),
            storage: StorageSection { keep: self.keep, reserve: self.reserve },
            telemetry: TelemetrySection { otlp: self.collector.clone() },
            validators: Some(NodeList::List(
                self.validators.iter().map(ValidatorSection::from).collect(),
            )),
            runners: Some(NodeList::List(self.runners.iter().map(runner).collect())),
            accounts: AccountsSection {
                count: within(0),
                balance: Amount(Wei::ZERO),
                extra: accounts.iter().map(account).collect(),
            },
            api: ApiSection {
                port: within(self.api_port.unwrap_or(0).into()),
                compat: self.api_compat,
            },
        };
        topology.to_yaml()
    }
}
