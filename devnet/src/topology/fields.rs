//! The YAML form of a topology: fields and defaults.

use super::{
    Amount, BlockTime, ConnectivitySection, Cpus, Hosts, Image, LeaseSection, MAX_ACCOUNTS,
    MAX_CONCURRENT_JOBS, MAX_FILE_BYTES, MAX_RUNNERS, MAX_VALIDATORS, Name, PythonMachine,
    RunnerKind, Size, SpeculationSection, StorageSection, TasksSection, TimersSection,
    TopologyError,
};
use crate::{executor, telemetry::CollectorUrl, types::same};
use cowboy_engine::{
    chain::params::{MIN_EPOCH_BLOCKS, Powers},
    job::SeedRule,
    presence::{Phase, ThresholdRule},
    primitives::{CBY, Wei},
};
use cowboy_host::{located::Located, within::Within};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, SeqAccess, Unexpected, Visitor},
};
use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::Read as _,
    marker::PhantomData,
    ops::Not,
    path::{Path, PathBuf},
};

/// A topology file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a topology: fields and their values")]
pub struct Topology {
    /// The devnet's name (default `local`).
    pub name: Option<Name>,
    /// Where the nodes run.
    pub hosts: Hosts,
    /// The image of nodes in containers.
    pub image: Image,
    /// Chain parameters, which all validators share.
    pub chain: ChainSection,
    /// The source of the seeds of draws.
    pub selection: SelectionSection,
    /// The role of presence and polling.
    pub migration: MigrationSection,
    /// How runners and validators stay connected.
    pub connectivity: ConnectivitySection,
    /// How timers compete, and their limits.
    pub timers: TimersSection,
    /// Bonds for commitments to tasks' outputs.
    pub tasks: TasksSection,
    /// How pipelines of tasks run ahead of the chain.
    pub speculation: SpeculationSection,
    /// The terms of the lease server's leases.
    pub lease: LeaseSection,
    /// Disk usage of validators.
    pub storage: StorageSection,
    /// Export of traces.
    pub telemetry: TelemetrySection,
    /// The validators (default 4).
    pub validators: Option<NodeList<ValidatorSection, 1, MAX_VALIDATORS>>,
    /// The runners (default 4).
    pub runners: Option<NodeList<RunnerSection, 0, MAX_RUNNERS>>,
    /// The accounts whose keys are in the devnet's folder.
    pub accounts: AccountsSection,
    /// The control API.
    pub api: ApiSection,
}

/// `chain`: chain parameters, which all validators share.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `chain`")]
pub struct ChainSection {
    /// The chain's name (default: the devnet's), which determines its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The pace of blocks.
    pub block_time: BlockTime,
    /// The seed from which all keys are derived.
    pub seed: Within<0, { u64::MAX }>,
    /// Length of a consensus epoch in blocks (default 256). Committees change between epochs.
    pub epoch_blocks: Option<Within<MIN_EPOCH_BLOCKS, { 1 << 32 }>>,
    /// The machine of actors in Python.
    pub python: PythonMachine,
    /// Whether `governance` has powers beyond the chain's rules.
    pub powers: PowersRule,
    /// How votes become presence.
    pub presence: PresenceSection,
}

/// Whether governance has powers beyond the chain's rules; the YAML form of [`Powers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowersRule {
    /// It sets balances, code and stores, acts for others, and keeps states to return to.
    #[default]
    Allowed,
    /// It governs parameters and validators only.
    Refused,
}

impl From<PowersRule> for Powers {
    fn from(rule: PowersRule) -> Self {
        match rule {
            PowersRule::Allowed => Self::Allowed,
            PowersRule::Refused => Self::Refused,
        }
    }
}

impl From<Powers> for PowersRule {
    fn from(powers: Powers) -> Self {
        match powers {
            Powers::Allowed => Self::Allowed,
            Powers::Refused => Self::Refused,
        }
    }
}

/// `chain.presence`: how votes become presence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `chain.presence`")]
pub struct PresenceSection {
    /// The number of votes that a runner needs.
    pub threshold_rule: PresenceRule,
}

/// The number of votes that a runner needs; the YAML form of [`ThresholdRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PresenceRule {
    /// f + 1 of the validators.
    #[default]
    Committee,
    /// f + 1 of the votes.
    Quorum,
    /// f + 1 of the votes cast by the runner's own validators.
    Subset,
}

same!(PresenceRule = ThresholdRule: Committee, Quorum, Subset);

/// `selection`: how runners are drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `selection`")]
pub struct SelectionSection {
    /// The source of the seeds of draws.
    pub seed: SeedName,
}

/// The source of the seeds of draws; the YAML form of [`SeedRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeedName {
    /// The parent block's hash.
    #[default]
    Parent,
    /// The votes in the newest certificate on the chain.
    Certificate,
}

same!(SeedName = SeedRule: Parent, Certificate);

/// `migration`: the role of presence and polling.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `migration`")]
pub struct MigrationSection {
    /// The chain's initial phase.
    pub phase: PhaseName,
}

/// A migration phase; the YAML form of [`Phase`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// Presence is derived but not used; runners poll.
    Shadow,
    /// Only present runners are drawn; validators push.
    #[default]
    HotPath,
    /// Like `hot-path`, but without polling and without stale heartbeats.
    Sunset,
}

same!(PhaseName = Phase: Shadow, HotPath, Sunset);

/// Nodes of one kind: a number of them, or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NodeList<T, const MIN: u64, const MAX: u64> {
    /// This number of nodes, named by index.
    Count(u64),
    /// The listed nodes.
    List(Vec<T>),
}

impl<'de, T: Deserialize<'de>, const MIN: u64, const MAX: u64> Deserialize<'de>
    for NodeList<T, MIN, MAX>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountOrList<T, const MIN: u64, const MAX: u64>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MIN: u64, const MAX: u64> Visitor<'de>
            for CountOrList<T, MIN, MAX>
        {
            type Value = NodeList<T, MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {MIN} to {MAX}, or a list of that length")
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<Self::Value, E> {
                if !(MIN..=MAX).contains(&count) {
                    return Err(E::invalid_value(Unexpected::Unsigned(count), &self));
                }
                Ok(NodeList::Count(count))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(node) = seq.next_element()? {
                    list.push(node);
                    if list.len() as u64 > MAX {
                        return Err(A::Error::invalid_length(list.len(), &self));
                    }
                }
                if (list.len() as u64) < MIN {
                    return Err(A::Error::invalid_length(list.len(), &self));
                }
                Ok(NodeList::List(list))
            }
        }

        deserializer.deserialize_any(CountOrList(PhantomData))
    }
}

/// One validator of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the fields of a validator")]
pub struct ValidatorSection {
    /// Its name.
    pub name: Name,
    /// In a process or container of its own: its `cowboyctl` (default: the devnet's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<PathBuf>,
    /// Variables of its environment in addition to the devnet's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The processors that it may use (default: all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// The limit of its private writable memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Whether the kernel may write a core dump of it.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub core_dumps: bool,
    /// Whether it is started again after it died.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub restart: bool,
}

/// One runner of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the fields of a runner")]
pub struct RunnerSection {
    /// Its name.
    pub name: Name,
    /// The job kinds it takes (default: all that it can execute).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<RunnerKind>>,
    /// Its stake.
    #[serde(default = "default_stake")]
    pub stake: Amount,
    /// Its price per second of computing.
    #[serde(default = "default_price")]
    pub price_per_second: Amount,
    /// Its limit of concurrent jobs.
    #[serde(default = "default_concurrency")]
    pub max_concurrent_jobs: Within<1, MAX_CONCURRENT_JOBS>,
    /// Whether it claims to run in a trusted execution environment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tee: bool,
    /// The settings of its executors, apart from requests and commands.
    #[serde(default, skip_serializing_if = "executor::Config::is_default")]
    pub executors: executor::Config,
    /// As for a validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<PathBuf>,
    /// As for a validator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// As for a validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// As for a validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// As for a validator.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub core_dumps: bool,
    /// As for a validator.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub restart: bool,
}

impl RunnerSection {
    /// A runner of this name with default values.
    pub(super) fn named(name: Name) -> Self {
        Self {
            name,
            kinds: None,
            stake: default_stake(),
            price_per_second: default_price(),
            max_concurrent_jobs: default_concurrency(),
            tee: false,
            executors: executor::Config::default(),
            binary: None,
            env: BTreeMap::new(),
            cpus: None,
            memory: None,
            core_dumps: false,
            restart: false,
        }
    }
}

/// The minimum stake of a runner (spec jobs.md §1).
fn default_stake() -> Amount {
    Amount(super::plan::MIN_STAKE)
}

fn default_price() -> Amount {
    Amount(Wei::new(CBY / 1_000))
}

fn default_concurrency() -> Within<1, MAX_CONCURRENT_JOBS> {
    const { Within::new(4).expect("4 lies in the range") }
}

/// `accounts`: the accounts whose keys are in the devnet's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `accounts`")]
pub struct AccountsSection {
    /// The number of numbered accounts.
    pub count: Within<0, MAX_ACCOUNTS>,
    /// The initial balance of each numbered account.
    pub balance: Amount,
    /// Additional accounts with names of their own.
    pub extra: Vec<ExtraAccount>,
}

impl Default for AccountsSection {
    fn default() -> Self {
        Self {
            count: const { Within::new(10).expect("10 lies in the range") },
            balance: Amount(Wei::cby(1_000_000)),
            extra: Vec::new(),
        }
    }
}

/// An account with a name of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the fields of an account")]
pub struct ExtraAccount {
    /// Its name.
    pub name: Name,
    /// Its initial balance.
    pub balance: Amount,
}

/// `telemetry`: export of traces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `telemetry`")]
pub struct TelemetrySection {
    /// The collector that gets the traces of pipelines, by OTLP over HTTP (default: none).
    pub otlp: Option<CollectorUrl>,
}

/// `api`: the control API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `api`")]
pub struct ApiSection {
    /// Its port on the loopback; 0 lets the system choose.
    pub port: Within<0, { u16::MAX as u64 }>,
    /// Whether it also answers reads under the paths that tools of the ecosystem know, as
    /// `/actor/{actor}`: docs/python.md lists them.
    pub compat: bool,
}

impl Topology {
    /// Reads a file of at most [`MAX_FILE_BYTES`]. Returns its text as well, for [`Self::resolve`].
    pub fn load(path: &Path) -> Result<(Self, String), TopologyError> {
        let (file, text) = read(path)?;
        Ok((Self::parse(&text, &file)?, text))
    }

    /// Parses a text; `file` is its name in errors. An empty text gives the defaults.
    pub fn parse(text: &str, file: &str) -> Result<Self, TopologyError> {
        parse(text, file)
    }

    /// The topology as YAML.
    pub fn to_yaml(&self) -> String {
        serde_yaml::to_string(self).expect("a topology is plain data")
    }
}

/// Reads a file that has the contents of a topology's `runners[].executors`, for a runner in a
/// process of its own: at most [`MAX_FILE_BYTES`].
pub fn load_executors(path: &Path) -> Result<executor::Config, TopologyError> {
    let (file, text) = read(path)?;
    parse(&text, &file)
}

/// Reads a file: its name as errors show it, and its text.
fn read(path: &Path) -> Result<(String, String), TopologyError> {
    let file = path.display().to_string();
    let refused = |message: String| TopologyError { file: file.clone(), located: message.into() };
    let mut text = String::new();
    File::open(path)
        .and_then(|f| f.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| refused(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(refused(format!("longer than {MAX_FILE_BYTES} bytes")));
    }
    Ok((file, text))
}

fn parse<T: Default + for<'de> Deserialize<'de>>(
    text: &str,
    file: &str,
) -> Result<T, TopologyError> {
    let blank = text.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---"
    });
    if blank {
        return Ok(T::default());
    }
    serde_yaml::from_str(text).map_err(|error| TopologyError {
        file: file.to_owned(),
        located: Located::yaml(&error, text),
    })
}
