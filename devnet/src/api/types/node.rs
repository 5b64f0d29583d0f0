//! The devnet as a whole, its validators and its runners.

use super::{
    AddressText, AmountText, BytesText, ChainIdText, Fault, HashText, Head, KeyText, TimeText,
};
use crate::api::steer::Told;
use cowboy_engine::{
    presence::Unmet,
    primitives::Address,
    registry::Ability,
    wire::{self, BackpressureSignal},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt};
use utoipa::{IntoParams, ToSchema};

/// Who answers a read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NodeQuery {
    /// The validator, by name; any running one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// The devnet at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The devnet's name.
    pub name: String,
    /// Whether it runs; always true in an answer of its own.
    pub running: bool,
    /// Whether every validator has finalized a block and every runner is connected to its subset.
    pub ready: bool,
    /// What its transactions name; absent when it does not run.
    pub chain_id: Option<ChainIdText>,
    /// The newest finalized and executed block; when it does not run, the newest that is stored.
    pub head: Option<Head>,
    /// The oldest block that every running validator keeps; absent when none runs.
    pub kept_from: Option<u64>,
    /// The validators, in the set's order.
    pub validators: Vec<ValidatorStatus>,
    /// The runners, in registry order.
    pub runners: Vec<RunnerStatus>,
    /// What was broken on purpose, the oldest first.
    pub faults: Vec<Fault>,
    /// Where all money is; absent when it does not run.
    pub supply: Option<Supply>,
    /// The process that runs it; absent when it does not run.
    pub pid: Option<u32>,
    /// Since when it runs; absent when it does not run.
    pub started_at: Option<TimeText>,
    /// How its process ended, where it was killed; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died: Option<String>,
}

/// What a name is given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamedKind {
    /// An actor.
    Actor,
    /// A timer.
    Timer,
    /// A job.
    Job,
}

impl fmt::Display for NamedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Actor => "actor",
            Self::Timer => "timer",
            Self::Job => "job",
        })
    }
}

/// Gives an actor, a timer or a job a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NameRequest {
    /// What is named.
    pub kind: NamedKind,
    /// The name: 1 to 32 of a-z, 0-9 and -, the first not -; not `latest`, and not 0x and what
    /// follows.
    pub name: String,
    /// The address of an actor, the id of a timer or a job; absent: nothing is named, the answer
    /// says whether the name is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Where all money is. The parts always add up to the same total.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Supply {
    /// The sum of all balances.
    pub balances: AmountText,
    /// Held for jobs and tasks that have not ended.
    pub escrow: AmountText,
    /// Locked by runners.
    pub stakes: AmountText,
    /// Locked under commitments to tasks' outputs.
    pub bonds: AmountText,
    /// Gone as basefees, and what was slashed.
    pub burned: AmountText,
    /// All of it.
    pub total: AmountText,
}

/// A validator at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidatorStatus {
    /// Its name.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Its place among those who vote on the next block, as certificates number them; absent: it is
    /// not in the committee, or the devnet does not run.
    #[serde(default)]
    pub index: Option<u32>,
    /// Its newest finalized and executed block; the last known one when it is stopped.
    pub height: u64,
    /// Whether it runs.
    pub status: ValidatorState,
    /// Why it is paused, or what it died of; absent otherwise.
    pub reason: Option<String>,
}

/// How many blocks a running validator may be behind the highest one before it counts as behind.
pub const BEHIND: u64 = 2;

/// Whether a validator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidatorState {
    /// It has not finalized a block since it was started.
    Starting,
    /// It finalizes blocks.
    Running,
    /// It runs and is more than [`BEHIND`] blocks behind the highest validator.
    CatchingUp,
    /// It waits for space on its disk, and goes on by itself: until then it can be read.
    Paused,
    /// It was stopped.
    Stopped,
    /// It has ended by itself.
    Died,
}

impl fmt::Display for ValidatorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::CatchingUp => "catching_up",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Died => "died",
        })
    }
}

/// A runner at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerStatus {
    /// Its name.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Whether it runs and is connected.
    pub status: RunnerState,
    /// The validators that hold an authenticated connection to it.
    pub connected_validators: Vec<String>,
    /// What keeps it from being present; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<UnmetPresence>,
}

/// Whether a runner runs and is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunnerState {
    /// Connected to every running validator of its subset.
    Connected,
    /// Running, and some validator of its subset is not connected.
    Connecting,
    /// Not running.
    Stopped,
}

/// A validator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Validator {
    /// Its name.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Its secp256k1 identity: what runners know it by.
    pub pubkey: KeyText,
    /// Its ed25519 key: what other validators know it by.
    pub consensus_key: BytesText,
    /// Its place among those who vote on the next block, as certificates number them; absent: it is
    /// not in the committee, and follows the chain only.
    pub index: Option<u32>,
    /// Whether it runs.
    pub status: ValidatorState,
    /// Why it is paused, or what it died of; absent otherwise.
    pub reason: Option<String>,
    /// Its newest finalized and executed block; the last known one when it is stopped.
    pub height: u64,
    /// Where runners reach it over QUIC, as `127.0.0.1:29001`; absent when it is stopped.
    pub quic: Option<String>,
    /// Where other validators reach it; absent when it is stopped.
    pub p2p: Option<String>,
    /// The runners whose subset it is in.
    pub subset_of: Vec<String>,
    /// The runners it holds an authenticated connection to.
    pub connected_runners: Vec<String>,
}

/// What the registry says of a runner's liveness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum RunnerHealth {
    /// It may be drawn.
    Healthy,
    /// Its last heartbeat is too old.
    Unhealthy,
    /// It has left.
    Deregistered,
}

/// A runner: its entry in the registry and its connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Runner {
    /// Its name; its address where this devnet did not start it.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Its secp256k1 identity.
    pub pubkey: KeyText,
    /// Its place in the registry; bitmaps use it.
    pub index: u32,
    /// What it has locked.
    pub stake: AmountText,
    /// 0 to 100; 100 at registration.
    pub reputation: u32,
    /// The job kinds it takes: `llm`, `http`, `mcp`, `eth_send`, `custom`.
    pub kinds: Vec<String>,
    /// The models of `llm` jobs that it takes; left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// The servers of `mcp` jobs that it takes; left out: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<String>>,
    /// Whether it runs in a trusted execution environment, as it is registered.
    #[serde(default)]
    pub tee: bool,
    /// What it asks per second of computing.
    pub price_per_second: AmountText,
    /// Jobs that are assigned to it now.
    pub active_jobs: u32,
    /// Jobs it takes at a time.
    pub max_concurrent_jobs: u32,
    /// What the registry says of it.
    pub status: RunnerHealth,
    /// The height that registered it.
    pub registered_at: u64,
    /// The height of its last on-chain heartbeat, or of its registration.
    pub last_heartbeat: u64,
    /// The names of the validators it has to be connected to, in subset order.
    pub subset: Vec<String>,
    /// The same, with what the connection is like now.
    pub connections: Vec<RunnerConnection>,
    /// Whether a draw in the next block would find it present, as far as the chain can tell now.
    pub present: bool,
    /// The same, and why. Absent in recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<RunnerPresence>,
    /// What keeps it from being present; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<UnmetPresence>,
    /// How its reputation changed last, newest first, where one runner is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reputation_history: Vec<ReputationStep>,
}

/// What a draw in the next block would read of a runner's presence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerPresence {
    /// What it comes to.
    pub standing: PresenceStanding,
    /// The newest h whose P(h) is on the chain; absent: none is. The next block may embed the
    /// certificate of a newer one, which its draws read then.
    pub of: Option<u64>,
    /// The next block.
    pub for_block: u64,
    /// Where the chain has halted: milliseconds since its newest block was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted_ms: Option<u64>,
}

/// Whether the next draw finds a runner present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PresenceStanding {
    /// Its bit is set in the P(h) that the draw reads.
    Present,
    /// Its bit is not set there.
    Absent,
    /// The newest P(h) is too old to be read: no runner is present in the draw.
    Stale,
    /// The chain has halted: no block comes that could draw.
    Halted,
    /// No P(h) is known yet: no runner is present in the draw.
    Unknown,
}

impl PresenceStanding {
    /// In a word: `yes`, `no`, `stale`, `halted` or `unknown`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Present => "yes",
            Self::Absent => "no",
            Self::Stale => "stale",
            Self::Halted => "halted",
            Self::Unknown => "unknown",
        }
    }
}

/// In words, for people.
impl fmt::Display for RunnerPresence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { standing, of, for_block, halted_ms } = self;
        let (word, of) = (standing.word(), of.unwrap_or_default());
        match standing {
            PresenceStanding::Present | PresenceStanding::Absent => {
                write!(f, "{word}: by P({of}), for a draw in block {for_block}")
            }
            PresenceStanding::Stale => write!(
                f,
                "{word}: P({of}) is the newest, too old for a draw in block {for_block}, in which \
                 no runner is present"
            ),
            PresenceStanding::Halted => {
                let seconds = halted_ms.unwrap_or_default() / 1_000;
                write!(f, "{word}: there has been no block for {seconds} s, so nothing is drawn")
            }
            PresenceStanding::Unknown => write!(f, "{word}: no P(h) is on the chain yet"),
        }
    }
}

/// A change of a runner's reputation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReputationStep {
    /// The block.
    pub height: u64,
    /// The job it came of.
    pub job_id: HashText,
    /// What it was.
    pub before: u32,
    /// What it is since.
    pub after: u32,
}

/// A runner's connection to a validator of its subset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerConnection {
    /// The validator.
    pub validator: String,
    /// The validator's account.
    pub validator_address: AddressText,
    /// Whether that validator holds an authenticated connection.
    pub connected: bool,
    /// Whether that validator counts the runner as present.
    pub locally_present: bool,
    /// The first condition that keeps that validator from doing so; absent where none does, and
    /// where the validator does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<PresenceCondition>,
    /// What the runner said last to that validator of its load; absent where it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<ConnectionLoad>,
    /// The height of the last valid ping there; absent where there was none.
    pub last_ping: Option<u64>,
    /// How the last connection there ended, and at which height of the validator; absent where none
    /// has since the validator started, and in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<ConnectionEnd>,
    /// Labels of what the runner told that validator that it cannot do for now, as `llm:small`.
    #[serde(default)]
    pub withdrawn: Vec<String>,
}

/// What a runner said to a validator of its load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionLoad {
    /// Jobs it works on.
    pub active_jobs: u32,
    /// Jobs it takes at a time.
    pub max_concurrent: u32,
    /// Whether it takes more; where not, that validator does not count it as present.
    pub accepting_new: bool,
    /// Why not, as `paused`; absent where it takes more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<BackpressureSignal> for ConnectionLoad {
    fn from(said: BackpressureSignal) -> Self {
        let BackpressureSignal { active_jobs, max_concurrent, accepting_new, reason } = said;
        let reason = reason.map(|reason| reason.as_str().to_owned());
        Self { active_jobs, max_concurrent, accepting_new, reason }
    }
}

/// Why a runner is not present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnmetPresence {
    /// The condition that it does not meet.
    pub condition: PresenceCondition,
    /// In words, with the figures and the validators.
    pub detail: String,
}

/// In words, for people.
impl fmt::Display for UnmetPresence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.condition.as_str(), self.detail)
    }
}

/// A condition of presence that a runner does not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PresenceCondition {
    /// It has locked less than the minimum.
    InsufficientStake,
    /// It has left the registry.
    Deregistered,
    /// The validator is not in its subset.
    NotInSubset,
    /// It has no authenticated connection.
    NotConnected,
    /// No valid ping of it arrived in time, or none since it left an assignment unanswered.
    NoRecentPing,
    /// It said last that it takes no jobs.
    TakesNoJobs,
    /// It withdrew something that a job in the mempool needs.
    WithdrewWhatIsNeeded,
    /// Validators count it as present, and the newest P(h) has too few votes for it.
    TooFewVotes,
}

impl PresenceCondition {
    /// Its name, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InsufficientStake => "insufficient_stake",
            Self::Deregistered => "deregistered",
            Self::NotInSubset => "not_in_subset",
            Self::NotConnected => "not_connected",
            Self::NoRecentPing => "no_recent_ping",
            Self::TakesNoJobs => "takes_no_jobs",
            Self::WithdrewWhatIsNeeded => "withdrew_what_is_needed",
            Self::TooFewVotes => "too_few_votes",
        }
    }
}

impl From<Unmet> for PresenceCondition {
    fn from(unmet: Unmet) -> Self {
        match unmet {
            Unmet::Connection => Self::NotConnected,
            Unmet::Ping => Self::NoRecentPing,
            Unmet::Work => Self::TakesNoJobs,
            Unmet::Label => Self::WithdrewWhatIsNeeded,
        }
    }
}

/// How a runner's connection to a validator ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionEnd {
    /// Who said goodbye: `validator`, `runner`, or `none` where it broke.
    pub by: String,
    /// The reason of the goodbye, `lost` or `handshake_timeout`.
    pub reason: String,
    /// The validator's head then.
    pub height: u64,
}

/// What a runner takes on, as it last told its validators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerLoad {
    /// Its name.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Whether it runs.
    pub running: bool,
    /// Jobs it works on now.
    pub active_jobs: u32,
    /// Jobs it takes at a time.
    pub max_concurrent: u32,
    /// Whether it takes more; where not, it is not present.
    pub accepting_new: bool,
    /// Why not, as `paused`; absent where it takes more.
    pub reason: Option<String>,
    /// Labels of what it cannot do for now, as `llm:small`.
    #[serde(default)]
    pub withdrawn: Vec<String>,
}

impl RunnerLoad {
    /// Of what a runner tells; `None`: it does not run.
    pub fn new(name: &str, address: Address, told: Option<Told>) -> Self {
        let running = told.is_some();
        let stopped = || BackpressureSignal {
            active_jobs: 0,
            max_concurrent: 0,
            accepting_new: false,
            reason: Some(wire::Text::truncated("stopped")),
        };
        let Told { load: told, withdrawn } =
            told.unwrap_or_else(|| Told { load: stopped(), withdrawn: BTreeSet::new() });
        Self {
            name: name.to_owned(),
            address: address.into(),
            running,
            active_jobs: told.active_jobs,
            max_concurrent: told.max_concurrent,
            accepting_new: told.accepting_new,
            reason: told.reason.map(|reason| reason.as_str().to_owned()),
            withdrawn: withdrawn.iter().map(Ability::to_string).collect(),
        }
    }
}

/// Asks a runner to take fewer jobs at a time, or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRequest {
    /// So many, from now until it ends: 1 to 1,024.
    pub max_concurrent: u32,
}

/// Asks a runner to do some of what it is registered for again, or not to do it for now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilitiesRequest {
    /// Labels of what it does again: a kind, `llm:MODEL`, `mcp:SERVER`, `tee` or `pool:NAME`.
    pub add: Vec<String>,
    /// Labels of what it does not do from now until it ends.
    pub remove: Vec<String>,
}

/// Asks for one more validator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// Its name; absent: the first `validator-N` that is free.
    pub name: Option<String>,
}

/// A validator is none of the devnet's any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Left {
    /// Its name.
    pub name: String,
}

/// The devnet has begun to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stopping {
    /// The process to wait for.
    pub pid: u32,
}
