//! The changes of one message as rows: taken from the board at once, written later in the turn.

use super::{schedules::ScheduleChange, secret::SecretJson};
use crate::machine::{
    Attempt, Board, JobId, JobState, LeaseEvent, LeaseJob, LeaseState, RunnerId, Why,
};
use cowboy_engine::primitives::{Hash, codec::to_vec};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct Record {
    pub submitted: Option<Submitted>,
    pub underway: Option<Underway>,
    pub report: Option<Report>,
    pub token: Option<TokenRow>,
    pub schedules: Vec<ScheduleChange>,
    pub forgotten: Vec<String>,
    /// Runs whose files have been removed.
    pub swept: Vec<String>,
    pub events: Vec<LeaseEvent>,
    pub(super) jobs: Vec<JobRow>,
    pub(super) attempts: Vec<AttemptRow>,
}

pub(crate) struct Submitted {
    pub run: String,
    pub name: Option<String>,
    /// JSON.
    pub concurrency: Option<String>,
    /// In milliseconds.
    pub at: u64,
    /// For each job its id, its name and, as JSON, its spec and the values of its secrets.
    pub jobs: Vec<(String, String, String, SecretJson)>,
}

/// A runner's report before the attempt's end. Missing fields keep their values.
#[derive(Debug, Default)]
pub(crate) struct Underway {
    pub job: String,
    pub number: u32,
    /// When the runner acked, by its own clock.
    pub accepted_at: Option<String>,
    /// JSON.
    pub progress: Option<String>,
    /// When the runner sent the heartbeat, by its own clock.
    pub heartbeat_at: Option<String>,
    pub log_cursor: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub job: String,
    pub number: u32,
    pub exit_code: Option<i32>,
    pub summary: Option<String>,
    /// JSON.
    pub artifacts: String,
    /// JSON.
    pub timings: Option<String>,
    /// JSON.
    pub outputs: Option<String>,
}

#[derive(Debug)]
pub(crate) struct TokenRow {
    pub runner: String,
    /// Its hash and its time of issue, in milliseconds; `None` if it was removed.
    pub made: Option<(Hash, u64)>,
}

#[derive(Debug)]
pub(super) struct JobRow {
    pub id: JobId,
    pub machine: Vec<u8>,
    pub expires_at: Option<u64>,
    /// Set if more than its times has changed.
    pub entered: Option<Entered>,
}

#[derive(Debug)]
pub(super) struct Entered {
    pub state: JobState,
    pub attempt: u32,
    pub runner: Option<RunnerId>,
    pub lease: Option<LeaseState>,
    pub position: Option<u64>,
    pub ended: Option<(u64, Why)>,
    pub finalized: u32,
    pub allow_failure: bool,
}

#[derive(Debug)]
pub(super) struct AttemptRow {
    pub job: JobId,
    pub number: u32,
    pub attempt: Attempt,
    pub state: LeaseState,
    pub ended_at: Option<u64>,
}

impl Record {
    /// Adds the board's changes since the last call. Returns the newly queued jobs, in the order of
    /// the queue.
    pub fn note(&mut self, board: &mut Board) -> Vec<JobId> {
        let changes = board.drain();
        let mut numbers: BTreeMap<&JobId, BTreeSet<u32>> = BTreeMap::new();
        for event in &changes.events {
            numbers.entry(&event.job).or_default().insert(event.attempt);
        }
        let mut queued = BTreeMap::new();
        // Jobs that have been removed since are skipped.
        for job in changes.jobs.iter().filter_map(|id| board.job(&id.0)) {
            queued.extend(job.position().map(|position| (position, job.id().clone())));
            let entered = numbers.remove(job.id());
            self.jobs.push(JobRow::of(job, entered.is_some()));
            let mut numbers = entered.unwrap_or_default();
            numbers.insert(job.attempt());
            let attempts = (1..).zip(job.attempts()).filter(|(n, _)| numbers.contains(n));
            self.attempts.extend(attempts.map(|(number, (attempt, state, ended_at))| {
                let (job, attempt) = (job.id().clone(), attempt.clone());
                AttemptRow { job, number, attempt, state, ended_at }
            }));
        }
        self.events.extend(changes.events);
        queued.into_values().collect()
    }

    pub fn is_empty(&self) -> bool {
        let Self { submitted, underway, report, token, schedules, forgotten, swept, .. } = self;
        let Self { events, jobs, attempts, .. } = self;
        submitted.is_none()
            && underway.is_none()
            && report.is_none()
            && token.is_none()
            && schedules.is_empty()
            && forgotten.is_empty()
            && swept.is_empty()
            && events.is_empty()
            && jobs.is_empty()
            && attempts.is_empty()
    }
}

impl JobRow {
    fn of(job: &LeaseJob, entered: bool) -> Self {
        let last = job.attempts().last();
        let entered = entered || job.expires_at().is_none();
        let entered = entered.then(|| Entered {
            state: job.state(),
            attempt: job.attempt(),
            runner: last.as_ref().map(|(attempt, ..)| attempt.runner.clone()),
            lease: last.as_ref().map(|(_, lease, _)| *lease),
            position: job.position(),
            ended: job.end(),
            finalized: job.finalized(),
            allow_failure: job.rules().allow_failure == Some(true),
        });
        Self { id: job.id().clone(), machine: to_vec(job), expires_at: job.expires_at(), entered }
    }
}
