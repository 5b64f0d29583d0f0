//! Schedules: runs that are submitted whenever a timer of the chain fires.

use super::{NewRun, schema};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of schedules of a server.
pub const MAX_SCHEDULES: usize = 100;

/// A run, and the timers that submit it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewSchedule {
    /// The actor whose timers submit the run.
    #[schema(value_type = schema::Address)]
    pub actor: String,
    /// Only timers that call this handler [default: all timers of the actor].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Handler>)]
    pub handler: Option<String>,
    /// The run to submit each time.
    pub run: NewRun,
}

/// A schedule and its history. It never contains a secret's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its id.
    pub schedule: String,
    /// Name of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of jobs in each run.
    pub jobs: u64,
    /// The actor whose timers submit the run.
    pub actor: String,
    /// The handler that the timers must call; without it, all timers of the actor count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// When the schedule was added.
    pub created_at: String,
    /// Height of the chain at that time: fires in later blocks count.
    pub since: u64,
    /// Number of runs that it has submitted.
    pub runs: u64,
    /// Number of fires that submitted no run.
    pub skipped: u64,
    /// The last run that it submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<ScheduledRun>,
    /// The last fire that submitted no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<ScheduleFailure>,
}

/// A run that a schedule submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduledRun {
    /// Id of the run.
    pub run_id: String,
    /// The block in which the timer fired.
    pub height: u64,
    /// Id of the timer.
    pub timer_id: String,
}

/// A fire that submitted no run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleFailure {
    /// When the fire was skipped.
    pub at: String,
    /// The block in which the timer fired; the last one if there are several.
    pub height: u64,
    /// Id of the timer, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_id: Option<String>,
    /// The reason why there is no run.
    pub reason: String,
}

/// The schedule that submitted a run, and the timer's fire that triggered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BySchedule {
    /// Id of the schedule, which may have been removed.
    pub schedule: String,
    /// The block in which the timer fired.
    pub height: u64,
    /// Id of the timer.
    pub timer_id: String,
}
