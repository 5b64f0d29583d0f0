//! What one message changes, as rows: taken from the board at once, written when its turn comes.

use super::schedules::ScheduleChange;
use cowboy_engine::{
    lease::{Attempt, Board, Event, Job, JobId, JobState, LeaseState, RunnerId, Why},
    primitives::{Hash, codec::to_vec},
};
use std::collections::{BTreeMap, BTreeSet};

/// All that a message changes.
#[derive(Debug, Default)]
pub(in crate::lease) struct Record {
    /// A run that was handed in.
    pub submitted: Option<Submitted>,
    /// What the runner of an attempt said on the way.
    pub underway: Option<Underway>,
    /// What the runner of an attempt said at its end.
    pub report: Option<Report>,
    /// A token that was made or taken back.
    pub token: Option<TokenRow>,
    /// Schedules that are not what they were.
    pub schedules: Vec<ScheduleChange>,
    /// Runs that are to go.
    pub forgotten: Vec<String>,
    /// Runs that are gone, with their files.
    pub swept: Vec<String>,
    /// States that were entered.
    pub events: Vec<Event>,
    pub(super) jobs: Vec<JobRow>,
    pub(super) attempts: Vec<AttemptRow>,
}

/// A run as it was handed in.
#[derive(Debug)]
pub(in crate::lease) struct Submitted {
    /// Its id.
    pub run: String,
    /// What it is called.
    pub name: Option<String>,
    /// Its concurrency group, as JSON.
    pub concurrency: Option<String>,
    /// When it was.
    pub at: u64,
    /// Of each job its id, its name, and, as JSON, its spec and the values of its secrets.
    pub jobs: Vec<(String, String, String, SecretJson)>,
}

/// The values of a job's secrets, as JSON, where it has any.
pub(in crate::lease) type SecretJson = Option<Hidden>;

/// Shows no secret.
pub(in crate::lease) struct Hidden(pub String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden(..)")
    }
}

impl rusqlite::ToSql for Hidden {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// What a runner says of an attempt before its end; what it does not say stays as it was.
#[derive(Debug, Default)]
pub(in crate::lease) struct Underway {
    /// The job.
    pub job: String,
    /// Which attempt.
    pub number: u32,
    /// When it acked, by its own clock.
    pub accepted_at: Option<String>,
    /// How far it is, as JSON.
    pub progress: Option<String>,
    /// When it sent its heartbeat, by its own clock.
    pub heartbeat_at: Option<String>,
    /// How many bytes of the log it has sent.
    pub log_cursor: Option<u64>,
}

/// What a runner said at the end of an attempt.
#[derive(Debug)]
pub(in crate::lease) struct Report {
    /// The job.
    pub job: String,
    /// Which attempt.
    pub number: u32,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// In its words.
    pub summary: Option<String>,
    /// What it left behind, as JSON.
    pub artifacts: String,
    /// When it ran, as JSON.
    pub timings: Option<String>,
    /// What it hands to jobs that need it, as JSON, where there is anything.
    pub outputs: Option<String>,
}

/// A runner's token.
#[derive(Debug)]
pub(in crate::lease) struct TokenRow {
    /// The runner.
    pub runner: String,
    /// Its hash and when it was made; `None` where it was taken back.
    pub made: Option<(Hash, u64)>,
}

#[derive(Debug)]
pub(super) struct JobRow {
    pub id: JobId,
    pub machine: Vec<u8>,
    pub expires_at: Option<u64>,
    /// Where it is not just its times that have changed.
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
    /// Adds what has changed on the board since it was asked last. The answer: the jobs that were
    /// queued, the first of the queue first.
    pub fn note(&mut self, board: &mut Board) -> Vec<JobId> {
        let changes = board.drain();
        let mut numbers: BTreeMap<&JobId, BTreeSet<u32>> = BTreeMap::new();
        for event in &changes.events {
            numbers.entry(&event.job).or_default().insert(event.attempt);
        }
        let mut queued = BTreeMap::new();
        // A job that has gone since is none of what is kept.
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

    /// Whether there is nothing to write.
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
    fn of(job: &Job, entered: bool) -> Self {
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
