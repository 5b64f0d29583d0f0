//! The devnet as a whole, its validators and its runners.

use super::{
    AddressText, AmountText, BytesText, ChainIdText, ConnectionEnd, ConnectionLoad, Fault,
    HashText, Head, KeyText, PresenceCondition, TimeText, same,
};
use cowboy_engine::{
    names,
    primitives::Address,
    registry::{self, Ability},
    wire::BackpressureSignal,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt};
use utoipa::{IntoParams, ToSchema};

/// The validator that answers a read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NodeQuery {
    /// The validator, by name (default: any running one).
    pub node: Option<String>,
}

/// The devnet at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The devnet's name.
    pub name: String,
    /// Whether it runs; always true in its own answer.
    pub running: bool,
    /// Whether every validator has finalized a block and every runner is connected to its subset.
    pub ready: bool,
    /// The chain id; absent when it does not run.
    pub chain_id: Option<ChainIdText>,
    /// The newest finalized and executed block; when it does not run, the newest that is stored.
    pub head: Option<Head>,
    /// The oldest block that every running validator keeps; absent when none runs.
    pub kept_from: Option<u64>,
    /// The validators, in the set's order.
    pub validators: Vec<ValidatorStatus>,
    /// The runners, in registry order.
    pub runners: Vec<RunnerStatus>,
    /// The injected faults, oldest first.
    pub faults: Vec<Fault>,
    /// The total supply and its parts; absent when it does not run.
    pub supply: Option<Supply>,
    /// The process that runs it; absent when it does not run.
    pub pid: Option<u32>,
    /// The time at which it was started; absent when it does not run.
    pub started_at: Option<TimeText>,
    /// How its process ended, if it was killed; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died: Option<String>,
}

/// The kind of object that a name is given to.
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

names!(NamedKind: Actor = "actor", Timer = "timer", Job = "job");

/// Gives an actor, a timer or a job a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NameRequest {
    /// The kind of object to name.
    pub kind: NamedKind,
    /// The name: 1 to 32 characters of a-z, 0-9 and -; it neither begins with - or 0x nor is
    /// `latest`.
    pub name: String,
    /// The address of an actor, or the id of a timer or a job. Absent: nothing is named, and the
    /// answer tells whether the name is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The total supply in wei, by where it is held. The parts always add up to the same total.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Supply {
    /// The sum of all balances.
    pub balances: AmountText,
    /// Escrow of jobs and tasks that have not ended.
    pub escrow: AmountText,
    /// Locked by runners.
    pub stakes: AmountText,
    /// Locked under commitments to tasks' outputs.
    pub bonds: AmountText,
    /// Burned as basefees, or slashed.
    pub burned: AmountText,
    /// The sum of the parts.
    pub total: AmountText,
}

/// A validator at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ValidatorStatus {
    /// Its name.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Its index in the committee of the next block, as in certificates; absent when it is not in
    /// the committee, or the devnet does not run.
    pub index: Option<u32>,
    /// Its newest finalized and executed block; the last known one when it is stopped.
    pub height: u64,
    /// Whether it runs.
    pub status: ValidatorState,
    /// The reason why it is paused, or why it died; absent otherwise.
    pub reason: Option<String>,
}

/// The number of blocks that a running validator may trail the highest one before it counts as
/// catching up.
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
    /// It waits for disk space and resumes by itself; meanwhile it still answers reads.
    Paused,
    /// It was stopped on request.
    Stopped,
    /// It ended by itself.
    Died,
}

names!(ValidatorState:
    Starting = "starting",
    Running = "running",
    CatchingUp = "catching_up",
    Paused = "paused",
    Stopped = "stopped",
    Died = "died",
);

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
    /// The condition that keeps it from being present, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<UnmetPresence>,
}

/// Whether a runner runs and is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunnerState {
    /// Connected to every running validator of its subset.
    Connected,
    /// Running, but some validator of its subset is not connected.
    Connecting,
    /// Not running.
    Stopped,
}

/// A validator and its connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Validator {
    /// Its name.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Its secp256k1 identity key, which runners know it by.
    pub pubkey: KeyText,
    /// Its ed25519 key, which other validators know it by.
    pub consensus_key: BytesText,
    /// Its index in the committee of the next block, as in certificates; absent when it is not in
    /// the committee and only follows the chain.
    pub index: Option<u32>,
    /// Whether it runs.
    pub status: ValidatorState,
    /// The reason why it is paused, or why it died; absent otherwise.
    pub reason: Option<String>,
    /// Its newest finalized and executed block; the last known one when it is stopped.
    pub height: u64,
    /// The QUIC address for runners, as `127.0.0.1:29001`; absent when it is stopped.
    pub quic: Option<String>,
    /// The address for other validators; absent when it is stopped.
    pub p2p: Option<String>,
    /// Its own process; absent when it runs in the devnet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The version of the program of its own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The runners that have it in their subset.
    pub subset_of: Vec<String>,
    /// The runners it holds an authenticated connection to.
    pub connected_runners: Vec<String>,
}

/// A runner's liveness according to the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum RunnerHealth {
    /// It can be drawn.
    Healthy,
    /// Its last heartbeat is too old.
    Unhealthy,
    /// It has left the registry.
    Deregistered,
}

same!(RunnerHealth = registry::Health: Healthy, Unhealthy, Deregistered);

/// A runner: its entry in the registry and its connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Runner {
    /// Its name; its address if this devnet did not start it.
    pub name: String,
    /// Its account.
    pub address: AddressText,
    /// Its secp256k1 identity key.
    pub pubkey: KeyText,
    /// Its index in the registry and in bitmaps.
    pub index: u32,
    /// Its stake in wei.
    pub stake: AmountText,
    /// Its reputation, 0 to 100; 100 at registration.
    pub reputation: u32,
    /// The job kinds it takes: `llm`, `http`, `mcp`, `eth_send`, `custom`.
    pub kinds: Vec<String>,
    /// The models of `llm` jobs that it takes; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// The servers of `mcp` jobs that it takes; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<String>>,
    /// Whether it is registered as running in a trusted execution environment.
    #[serde(default)]
    pub tee: bool,
    /// Its price per second of computing, in wei.
    pub price_per_second: AmountText,
    /// The number of jobs assigned to it now.
    pub active_jobs: u32,
    /// The maximum number of jobs that it takes at a time.
    pub max_concurrent_jobs: u32,
    /// Its liveness according to the registry.
    pub status: RunnerHealth,
    /// The height that registered it.
    pub registered_at: u64,
    /// The height of its last on-chain heartbeat, or of its registration.
    pub last_heartbeat: u64,
    /// The names of the validators that it has to be connected to, in subset order.
    pub subset: Vec<String>,
    /// The current state of its connection to each of them.
    pub connections: Vec<RunnerConnection>,
    /// Whether a draw in the next block would find it present, as far as the chain knows now.
    pub present: bool,
    /// Its presence with the reason. Absent in recordings of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<RunnerPresence>,
    /// The condition that keeps it from being present, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<UnmetPresence>,
    /// The last changes of its reputation, newest first; empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reputation_history: Vec<ReputationStep>,
}

/// A runner's presence as a draw in the next block would read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerPresence {
    /// The verdict.
    pub standing: PresenceStanding,
    /// The newest h with P(h) on the chain; absent when there is no P(h) yet. If the next block
    /// embeds a newer certificate, its draws read that one instead.
    pub of: Option<u64>,
    /// The next block.
    pub for_block: u64,
    /// Milliseconds since the newest block was proposed, if the chain has halted; absent otherwise.
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
    /// The newest P(h) is too old to use: no runner is present in the draw.
    Stale,
    /// The chain has halted: there is no next block that could draw.
    Halted,
    /// No P(h) is known yet: no runner is present in the draw.
    Unknown,
}

impl PresenceStanding {
    /// The verdict in one word: `yes`, `no`, `stale`, `halted` or `unknown`.
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
    /// The job that caused it.
    pub job_id: HashText,
    /// The reputation before.
    pub before: u32,
    /// The reputation after.
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
    /// The first condition that keeps that validator from doing so; absent when all are met, and
    /// when the validator does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<PresenceCondition>,
    /// The load that the runner last reported to that validator; absent before its first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<ConnectionLoad>,
    /// The height of the last valid ping there; absent before the first.
    pub last_ping: Option<u64>,
    /// How and at which height of the validator the last connection there ended; absent when none
    /// has ended since the validator started, and in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<ConnectionEnd>,
    /// The labels that the runner has withdrawn for now at that validator, as `llm:small`.
    #[serde(default)]
    pub withdrawn: Vec<String>,
}

/// Why a runner is not present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnmetPresence {
    /// The condition that it does not meet.
    pub condition: PresenceCondition,
    /// The reason in words, with the figures and the validators.
    pub detail: String,
}

/// In words, for people.
impl fmt::Display for UnmetPresence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.condition.as_str(), self.detail)
    }
}

/// A runner's capacity for jobs, as it last reported to its validators.
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
    /// The maximum number of jobs that it takes at a time.
    pub max_concurrent: u32,
    /// Whether it takes more; if not, it is not present.
    pub accepting_new: bool,
    /// Why not, as `paused`; absent when it takes more.
    pub reason: Option<String>,
    /// The labels that it has withdrawn for now, as `llm:small`.
    #[serde(default)]
    pub withdrawn: Vec<String>,
}

impl RunnerLoad {
    /// A runner's load as it reports it to its validators.
    pub fn new(
        name: &str,
        address: Address,
        load: &BackpressureSignal,
        withdrawn: &BTreeSet<Ability>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            address: address.into(),
            running: true,
            active_jobs: load.active_jobs,
            max_concurrent: load.max_concurrent,
            accepting_new: load.accepting_new,
            reason: load.reason.as_ref().map(|reason| reason.as_str().to_owned()),
            withdrawn: withdrawn.iter().map(Ability::to_string).collect(),
        }
    }

    /// The load of a runner that does not run.
    pub fn stopped(name: &str, address: Address) -> Self {
        Self {
            name: name.to_owned(),
            address: address.into(),
            running: false,
            active_jobs: 0,
            max_concurrent: 0,
            accepting_new: false,
            reason: Some("stopped".to_owned()),
            withdrawn: Vec::new(),
        }
    }
}

/// Changes the number of jobs that a runner takes at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRequest {
    /// The new maximum, until the runner ends: 1 to 1,024.
    pub max_concurrent: u32,
}

/// Asks a runner to withdraw some of its registered abilities for now, or to restore them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilitiesRequest {
    /// The labels to restore: a kind, `llm:MODEL`, `mcp:SERVER`, `tee` or `pool:NAME`.
    pub add: Vec<String>,
    /// The labels to withdraw, until the runner ends.
    pub remove: Vec<String>,
}

/// Gives a job that waits at a runner its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// The job.
    pub job_id: HashText,
    /// The result; absent with `failure`.
    #[serde(default)]
    pub result: Option<BytesText>,
    /// Why there is no result.
    #[serde(default)]
    pub failure: Option<String>,
}

/// Where the validators of a chain are, for a node in a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodePeers {
    /// The validators, in the same order for all nodes.
    pub validators: Vec<NodePeer>,
}

/// Where a validator is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodePeer {
    /// Its name.
    pub name: String,
    /// Its ed25519 key.
    pub consensus_key: BytesText,
    /// Where it listens for other validators: `HOST:PORT`.
    pub p2p: String,
}

/// Asks for another program for a validator's own process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpgradeRequest {
    /// The absolute path of the program, a `cowboyctl`.
    pub binary: String,
}

/// Asks for a new validator to join.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// Its name (default: the first free `validator-N`).
    pub name: Option<String>,
}

/// The validator has left the devnet.
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
