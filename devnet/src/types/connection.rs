//! Runners' connections to validators.

use super::AddressText;
use cowboy_engine::{presence::Unmet, wire::BackpressureSignal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A runner's connection to a validator, as the validator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectedRunner {
    /// The runner's account.
    pub runner: AddressText,
    /// The first condition that keeps the validator from counting the runner as present; absent
    /// when all are met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<PresenceCondition>,
    /// The load that the runner last reported; absent before its first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<ConnectionLoad>,
    /// The height of the last valid ping; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ping: Option<u64>,
    /// The labels that the runner has withdrawn for now, as `llm:small`.
    #[serde(default)]
    pub withdrawn: Vec<String>,
}

/// The load that a runner reported to a validator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConnectionLoad {
    /// Jobs it works on.
    pub active_jobs: u32,
    /// The maximum number of jobs that it takes at a time.
    pub max_concurrent: u32,
    /// Whether it takes more; if not, that validator does not count it as present.
    pub accepting_new: bool,
    /// Why not, as `paused`; absent when it takes more.
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
    /// No valid ping of it arrived in time, or none has arrived since it left an assignment
    /// unanswered.
    NoRecentPing,
    /// It reported last that it takes no jobs.
    TakesNoJobs,
    /// It withdrew an ability that a job in the mempool needs.
    WithdrewWhatIsNeeded,
    /// Validators count it as present, but the newest P(h) has too few votes for it.
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
    /// The side that said goodbye: `validator` or `runner`; `none` when the connection broke.
    pub by: String,
    /// The reason given in the goodbye, `lost` or `handshake_timeout`.
    pub reason: String,
    /// The validator's head at that time.
    pub height: u64,
}
