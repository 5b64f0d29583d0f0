//! Runs that are handed in by themselves, whenever a timer of the chain fires.

use super::NewRun;
use crate::lease::schema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Schedules that a server keeps at most.
pub const MAX_SCHEDULES: usize = 100;

/// A run, and the timers that hand it in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewSchedule {
    /// The actor whose timers hand it in.
    #[schema(value_type = schema::Address)]
    pub actor: String,
    /// Only timers that call this handler [default: all of the actor].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Handler>)]
    pub handler: Option<String>,
    /// What is handed in each time.
    pub run: NewRun,
}

/// A schedule, and what came of it. Never a secret's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its id.
    pub schedule: String,
    /// What its runs are called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many jobs a run has.
    pub jobs: u64,
    /// The actor whose timers hand runs in.
    pub actor: String,
    /// The handler that these timers call; without one all timers of the actor count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// The height of the chain then: fires in later blocks count.
    pub since: u64,
    /// How many runs it has made.
    pub runs: u64,
    /// How many fires made none.
    pub skipped: u64,
    /// The last run that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<ScheduledRun>,
    /// The last fire that made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<ScheduleFailure>,
}

/// A run that a schedule made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduledRun {
    /// The run.
    pub run_id: String,
    /// The block in which the timer fired.
    pub height: u64,
    /// The timer.
    pub timer_id: String,
}

/// A fire that made no run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleFailure {
    /// When it was skipped.
    pub at: String,
    /// The block in which the timer fired; of several blocks, the last.
    pub height: u64,
    /// The timer, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_id: Option<String>,
    /// Why.
    pub reason: String,
}

/// The schedule that made a run, and the fire that it made it for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BySchedule {
    /// The schedule, which may be gone.
    pub schedule: String,
    /// The block in which the timer fired.
    pub height: u64,
    /// The timer.
    pub timer_id: String,
}
