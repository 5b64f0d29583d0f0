//! Reads for lists and views, on a separate connection that never waits for the writer.

use super::{STATEMENTS, StoreError, all, first, schedules::by_schedule};
use crate::{
    files::AttemptPlace,
    machine,
    messages::{
        Artifact, Attempt, EndReason, Job, JobEvent, JobQuery, JobSpec, JobState, JobSummary,
        LeaseState, LogCursor, Progress, Run, RunSummary, Timings, Token,
    },
    time,
};
use cowboy_engine::primitives::codec::from_slice;
use rusqlite::{Connection, OpenFlags, Row, params, types::Type};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

const SUMMARY: &str =
    "SELECT id, run, name, state, attempt, runner, lease_state, expires_at, allow_failure FROM job";

#[derive(Debug)]
pub(crate) struct Reader {
    path: PathBuf,
    connection: Mutex<Connection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Following {
    pub run: String,
    /// `None` before the first.
    pub attempt: Option<u32>,
    pub ended: bool,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS);
            Ok(connection)
        };
        let connection =
            open().map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })?;
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic while the lock was held has changed nothing, because this only reads.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads in one transaction, which sees a single state of the file.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut connection = self.lock();
        let done = connection.transaction().and_then(|transaction| read(&transaction));
        done.map_err(|error| StoreError::Sqlite { path: self.path.clone(), error })
    }

    /// Newest first.
    pub fn runs(&self, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        self.read(|connection| {
            let mut runs = connection.prepare_cached(
                "SELECT run.id, run.name, run.created_at, job.state, count(*), job.allow_failure,
                   run.schedule, run.fire_height, run.fire_timer
                 FROM (SELECT * FROM run ORDER BY seq DESC LIMIT ?) AS run
                   JOIN job ON job.run = run.id
                 GROUP BY run.seq, job.state, job.allow_failure ORDER BY run.seq DESC",
            )?;
            let mut rows = runs.query([limit])?;
            let mut runs: Vec<RunSummary> = Vec::new();
            while let Some(row) = rows.next()? {
                let (run_id, state, count) = (row.get(0)?, job_state(row, 3)?, row.get(4)?);
                let ended = if state.is_terminal() { count } else { 0 };
                let state = counted(state, row.get(5)?);
                match runs.last_mut() {
                    Some(run) if run.run_id == run_id => {
                        run.state = telling(run.state, state);
                        run.jobs += count;
                        run.ended += ended;
                    }
                    _ => runs.push(RunSummary {
                        run_id,
                        name: row.get(1)?,
                        created_at: time(row.get(2)?),
                        by_schedule: by_schedule(row, 6)?,
                        state,
                        jobs: count,
                        ended,
                    }),
                }
            }
            Ok(runs)
        })
    }

    pub fn run(&self, run: &str) -> Result<Option<Run>, StoreError> {
        self.read(|connection| {
            let jobs = format!("{SUMMARY} WHERE run = ? ORDER BY seq");
            let jobs = all(connection, &jobs, [run], summary)?;
            let states = jobs.iter().map(|job| counted(job.state, job.allow_failure));
            let state = states.reduce(telling).unwrap_or(JobState::Queued);
            let sql = "SELECT id, name, created_at, concurrency, schedule, fire_height, fire_timer
                       FROM run WHERE id = ?";
            first(connection, sql, [run], |row| {
                Ok(Run {
                    run_id: row.get(0)?,
                    name: row.get(1)?,
                    created_at: time(row.get(2)?),
                    concurrency: optional_json(row, 3)?,
                    by_schedule: by_schedule(row, 4)?,
                    state,
                    jobs,
                })
            })
        })
    }

    /// Newest first.
    pub fn jobs(&self, query: &JobQuery, limit: usize) -> Result<Vec<JobSummary>, StoreError> {
        let state = query.state.map(|state| state.to_string());
        let filter = match (&query.run, &state) {
            (None, None) => "WHERE ?1 IS NULL AND ?2 IS NULL",
            (Some(_), None) => "WHERE run = ?1 AND ?2 IS NULL",
            (None, Some(_)) => "WHERE ?1 IS NULL AND state = ?2",
            // The unary `+` makes SQLite search the run's jobs instead of all jobs in the state.
            (Some(_), Some(_)) => "WHERE run = ?1 AND +state = ?2",
        };
        self.read(|connection| {
            let sql = format!("{SUMMARY} {filter} ORDER BY seq DESC LIMIT ?3");
            all(connection, &sql, params![query.run, state, limit], summary)
        })
    }

    /// A job with its whole history, except for the lengths of its logs.
    pub fn job(&self, job: &str) -> Result<Option<Job>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT id, run, job.name, state, attempt, runner, lease_state, expires_at,
                         allow_failure, created_at, ended_at, ended_by, finalized, machine,
                         spec.spec,
                         (SELECT count(*) FROM job AS other WHERE other.position <= job.position)
                       FROM job JOIN spec ON spec.job = job.id WHERE job.id = ?";
            let mut query = connection.prepare_cached(sql)?;
            let mut rows = query.query([job])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let summary = summary(row)?;
            let machine: Vec<u8> = row.get(13)?;
            let machine: machine::LeaseJob =
                from_slice(&machine).map_err(|error| broken(13, error))?;
            let mut waits_for = Vec::new();
            for need in machine.needs() {
                let mut name = connection.prepare_cached("SELECT name FROM job WHERE id = ?")?;
                waits_for.push(name.query_row([&need.0], |row| row.get(0))?);
            }
            waits_for.sort();
            let position: u64 = row.get(15)?;
            let rules = machine.rules();
            Ok(Some(Job {
                summary,
                spec: json::<JobSpec>(row, 14)?,
                max_attempts: rules.max_attempts,
                max_runtime_seconds: rules.max_runtime_seconds,
                queue_position: (position > 0).then_some(position),
                resumes_at: machine.resumes_at().map(time),
                why_queued: None,
                waits_for,
                created_at: time(row.get(9)?),
                ended_at: row.get::<_, Option<u64>>(10)?.map(time),
                ended_by: named(row, 11, machine::Why::named)?.map(EndReason::from),
                finalized: row.get(12)?,
                attempts: attempts(connection, job)?,
            }))
        })
    }

    /// The jobs that have an active or granted lease.
    pub fn at_work(&self) -> Result<Vec<JobSummary>, StoreError> {
        let sql = format!(
            "{SUMMARY} WHERE state IN ('LEASED', 'STARTING', 'RUNNING', 'CANCEL_REQUESTED')"
        );
        self.read(|connection| all(connection, &sql, [], summary))
    }

    /// Oldest first.
    pub fn events(&self, job: &str) -> Result<Vec<JobEvent>, StoreError> {
        let sql = "SELECT at, attempt, state, lease_state FROM event WHERE job = ? ORDER BY seq";
        let event = |row: &Row<'_>| {
            Ok(JobEvent {
                at: time(row.get(0)?),
                attempt: row.get(1)?,
                state: job_state(row, 2)?,
                lease_state: named(row, 3, machine::LeaseState::named)?.map(LeaseState::from),
            })
        };
        self.read(|connection| all(connection, sql, [job], event))
    }

    pub fn run_of(&self, job: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT run FROM job WHERE id = ?";
        self.read(|connection| first(connection, sql, [job], |row| row.get(0)))
    }

    /// The last attempts of the jobs whose artifacts a job needs, by their names in its spec. The
    /// attempt is 0 before the first; `None` if the job is no longer stored.
    pub fn needs(&self, job: &str) -> Result<BTreeMap<String, Option<AttemptPlace>>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT run, spec FROM job JOIN spec ON job = id WHERE id = ?";
            let spec = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, json::<JobSpec>(row, 1)?));
            let found = first(connection, sql, [job], spec)?;
            let Some((run, spec)) = found else { return Ok(BTreeMap::new()) };
            let needed = "SELECT run, id, attempt FROM job WHERE run = ? AND name = ?";
            let other = "SELECT run, id, attempt FROM job WHERE id = ?";
            let place = |row: &Row<'_>| {
                Ok(AttemptPlace { run: row.get(0)?, job: row.get(1)?, attempt: row.get(2)? })
            };
            let mut places = BTreeMap::new();
            for name in spec.needs {
                let found = first(connection, needed, [&run, &name], place)?;
                places.insert(name, found);
            }
            for id in spec.artifacts_of {
                let found = first(connection, other, [&id], place)?;
                places.insert(id, found);
            }
            Ok(places)
        })
    }

    /// A job's run, and the given attempt, or the last one; `None` if there is no such attempt.
    pub fn following(
        &self,
        job: &str,
        number: Option<u32>,
    ) -> Result<Option<Following>, StoreError> {
        self.read(|connection| {
            let of_job = "SELECT run, attempt, ended_at IS NOT NULL FROM job WHERE id = ?";
            let of_job = first(connection, of_job, [job], |row| row.try_into())?;
            let Some((run, last, over)) = of_job else { return Ok(None) };
            let attempt: u32 = number.unwrap_or(last);
            if attempt == 0 {
                return Ok(Some(Following { run, attempt: None, ended: over }));
            }
            let ended = "SELECT ended_at IS NOT NULL FROM attempt WHERE job = ? AND number = ?";
            let ended = first(connection, ended, params![job, attempt], |row| row.get(0))?;
            let ended = ended.map(|ended| if number.is_some() { ended } else { over });
            Ok(ended.map(|ended| Following { run, attempt: Some(attempt), ended }))
        })
    }

    /// Sorted by name.
    pub fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let sql = "SELECT runner, created_at FROM token ORDER BY runner";
        let row =
            |row: &Row<'_>| Ok(Token { runner_id: row.get(0)?, created_at: time(row.get(1)?) });
        self.read(|connection| all(connection, sql, [], row))
    }
}

fn attempts(connection: &Connection, job: &str) -> rusqlite::Result<Vec<Attempt>> {
    let sql = "SELECT number, runner, lease_state, granted_at, acked_at, heartbeat_at, ended_at,
                 progress, exit_code, timings, artifacts, summary, runner_accepted_at,
                 runner_heartbeat_at, log_cursor, outputs
               FROM attempt WHERE job = ? ORDER BY number";
    let at = |row: &Row<'_>, column| row.get::<_, Option<u64>>(column).map(|at| at.map(time));
    let attempt = |row: &Row<'_>| {
        let lease_state = named(row, 2, machine::LeaseState::named)?;
        Ok(Attempt {
            attempt: row.get(0)?,
            runner: row.get(1)?,
            lease_state: LeaseState::from(lease_state.ok_or(rusqlite::Error::InvalidQuery)?),
            granted_at: time(row.get(3)?),
            acked_at: at(row, 4)?,
            heartbeat_at: at(row, 5)?,
            runner_accepted_at: row.get(12)?,
            runner_heartbeat_at: row.get(13)?,
            log_cursor: row.get::<_, Option<u64>>(14)?.map(|bytes_sent| LogCursor { bytes_sent }),
            ended_at: at(row, 6)?,
            progress: optional_json::<Progress>(row, 7)?,
            exit_code: row.get(8)?,
            timings: optional_json::<Timings>(row, 9)?,
            artifacts: optional_json::<Vec<Artifact>>(row, 10)?.unwrap_or_default(),
            outputs: optional_json(row, 15)?.unwrap_or_default(),
            summary: row.get(11)?,
            log_bytes: 0,
        })
    };
    all(connection, sql, [job], attempt)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<JobSummary> {
    Ok(JobSummary {
        job: row.get(0)?,
        run: row.get(1)?,
        name: row.get(2)?,
        state: job_state(row, 3)?,
        attempt: row.get(4)?,
        runner: row.get(5)?,
        lease_state: named(row, 6, machine::LeaseState::named)?.map(LeaseState::from),
        expires_at: row.get::<_, Option<u64>>(7)?.map(time),
        allow_failure: row.get(8)?,
    })
}

fn job_state(row: &Row<'_>, column: usize) -> rusqlite::Result<JobState> {
    let state = named(row, column, machine::JobState::named)?;
    state.map(JobState::from).ok_or(rusqlite::Error::InvalidColumnType(
        column,
        "state".to_owned(),
        Type::Null,
    ))
}

/// The value with the name in a column; `None` for NULL.
fn named<T>(
    row: &Row<'_>,
    column: usize,
    named: fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let name: Option<String> = row.get(column)?;
    let unknown = || broken(column, "an unknown name");
    name.map(|name| named(&name).ok_or_else(unknown)).transpose()
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| broken(column, error))
}

fn optional_json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| broken(column, error))).transpose()
}

fn broken(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}

/// The state as which a job counts in its run.
const fn counted(state: JobState, allow_failure: bool) -> JobState {
    match state {
        JobState::Failed | JobState::TimedOut if allow_failure => JobState::Succeeded,
        state => state,
    }
}

/// The more telling of two states of a run's jobs: in progress before waiting before failed before
/// succeeded.
fn telling(a: JobState, b: JobState) -> JobState {
    let rank = |state| match state {
        JobState::Running => 0,
        JobState::CancelRequested => 1,
        JobState::Starting => 2,
        JobState::Leased => 3,
        JobState::Queued => 4,
        JobState::Failed => 5,
        JobState::TimedOut => 6,
        JobState::Canceled => 7,
        JobState::Succeeded => 8,
        JobState::Skipped => 9,
    };
    if rank(b) < rank(a) { b } else { a }
}
