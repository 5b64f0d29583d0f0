//! The storage of a lease server: one SQLite file. The changes of messages that are answered
//! together are one transaction.
//!
//! The file is crash-safe (write-ahead log, synced before any answer). Only its owner can read it,
//! and may query it while the server runs. Times are in milliseconds since the Unix epoch. Leases
//! and tokens are stored only as hashes.
//!
//! Values of secrets are deleted when their jobs end. For this they are stored in pages of their
//! own, which are zeroed when they are freed: a row that shares a page may be copied when the page
//! is rebuilt, and the copy would survive. [`empty_log`] removes them from the write-ahead log.
//!
//! | file | subject |
//! |---|---|
//! | [`record`] | the changes of one message, as rows |
//! | [`reader`] | the reads for lists and views |
//! | [`schedules`] | schedules, which submit runs |

mod reader;
mod record;
mod schedules;
mod secret;

pub(super) use reader::Reader;
pub(super) use record::{Record, Report, Submitted, TokenRow, Underway};
pub(super) use schedules::{NewRow, RunSecrets, ScheduleChange, Trigger, hidden};
pub(super) use secret::Hidden;

use super::messages::JobSpec;
use crate::machine::{LeaseJob, RunnerId};
use cowboy_engine::primitives::{
    Hash,
    codec::{DecodeError, from_slice},
};
use record::{AttemptRow, JobRow};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Params, Row, ToSql, params,
};
use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// Version of the tables below. Older ones are upgraded, newer ones refused.
const FORMAT: i64 = 4;
/// How long [`empty_log`] waits for a lock: short, because the writer may wait for it meanwhile.
const EMPTY_TIMEOUT: Duration = Duration::from_millis(100);
const STATEMENTS: usize = 64;

const TABLES: &str = "
-- concurrency: JSON.
CREATE TABLE run (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT, created_at INTEGER NOT NULL,
  concurrency TEXT) STRICT;
-- state, lease_state: as in the protocol. attempt, runner, lease_state: of the last attempt.
-- position: in the queue, of those that can be granted. machine: all of it, deterministic CBOR.
-- allow_failure: 1 where its run counts it as succeeded although it fails or times out.
CREATE TABLE job (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL, name TEXT NOT NULL,
  state TEXT NOT NULL, attempt INTEGER NOT NULL, runner TEXT, lease_state TEXT,
  expires_at INTEGER, position INTEGER, created_at INTEGER NOT NULL, ended_at INTEGER,
  ended_by TEXT, finalized INTEGER NOT NULL, machine BLOB NOT NULL,
  allow_failure INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX job_run ON job (run, seq);
CREATE INDEX job_state ON job (state, seq);
CREATE INDEX job_queue ON job (position) WHERE position IS NOT NULL;
-- spec: JSON, as the job was handed in, without the values of secrets.
CREATE TABLE spec (job TEXT PRIMARY KEY, spec TEXT NOT NULL) STRICT;
-- number: from 1. progress, artifacts, timings, outputs: JSON, by the runner's word, as are the columns
-- after them: texts of times, and how many bytes of the log it had sent.
CREATE TABLE attempt (
  job TEXT NOT NULL, number INTEGER NOT NULL, runner TEXT NOT NULL, lease_state TEXT NOT NULL,
  granted_at INTEGER NOT NULL, acked_at INTEGER, heartbeat_at INTEGER, ended_at INTEGER,
  progress TEXT, exit_code INTEGER, summary TEXT, artifacts TEXT, timings TEXT,
  runner_accepted_at TEXT, runner_heartbeat_at TEXT, log_cursor INTEGER, outputs TEXT,
  PRIMARY KEY (job, number)) STRICT, WITHOUT ROWID;
-- Every state that a job or its lease has entered.
CREATE TABLE event (
  seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, job TEXT NOT NULL, attempt INTEGER NOT NULL,
  state TEXT NOT NULL, lease_state TEXT) STRICT;
CREATE INDEX event_job ON event (job);
CREATE TABLE token (
  runner TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, created_at INTEGER NOT NULL) STRICT;
-- Runs that are gone, whose files are still to go.
CREATE TABLE forgotten (run TEXT PRIMARY KEY) STRICT;
";

/// Values of a job's secrets as a JSON object, until the job has ended. It is padded with a page's
/// size of zeros, so that it gets pages of its own.
const SECRETS: &str = "
CREATE TABLE secret (
  job TEXT PRIMARY KEY, page BLOB NOT NULL DEFAULT (zeroblob(4096)), secrets TEXT NOT NULL) STRICT;
";

const FROM_1: &str = "
INSERT INTO secret (job, secrets) SELECT job, secrets FROM spec WHERE secrets IS NOT NULL;
UPDATE spec SET secrets = NULL;
ALTER TABLE spec DROP COLUMN secrets;
";

const FROM_2: &str = "
ALTER TABLE attempt ADD COLUMN runner_accepted_at TEXT;
ALTER TABLE attempt ADD COLUMN runner_heartbeat_at TEXT;
ALTER TABLE attempt ADD COLUMN log_cursor INTEGER;
ALTER TABLE job ADD COLUMN allow_failure INTEGER NOT NULL DEFAULT 0;
";

const FROM_3: &str = "
ALTER TABLE attempt ADD COLUMN outputs TEXT;
ALTER TABLE run ADD COLUMN concurrency TEXT;
";

/// The reason why stored data cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{path}: {error}")]
    Sqlite { path: PathBuf, error: rusqlite::Error },
    #[error("{path} has format {got}, this program reads {FORMAT}; move it away to start over")]
    Format { path: PathBuf, got: i64 },
    #[error("{path}: {what} is damaged: {reason}; move the file away to start over")]
    Damaged { path: PathBuf, what: String, reason: String },
}

impl StoreError {
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::Sqlite { error, .. }
            if error.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }
}

/// The write connection to the file; there is only one.
///
/// [`write`](Self::write) changes the file, and [`commit`](Self::commit) makes all changes since
/// the last commit durable. Reads see uncommitted writes. After an error of either, everything
/// since the last commit is undone.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    connection: Connection,
    /// Whether secret values were deleted since the last commit.
    secrets_go: bool,
}

impl Drop for Store {
    fn drop(&mut self) {
        // Uncommitted changes were not acknowledged. If this fails, the next start does it.
        let _ = self.roll_back();
        let _ = checkpoint(&self.connection);
    }
}

pub(super) struct Kept {
    /// In the order in which they were submitted.
    pub jobs: Vec<LeaseJob>,
    /// By number.
    pub runs: BTreeMap<i64, String>,
}

/// A job as it was submitted, and the values of its secrets.
pub(super) type Spec = (JobSpec, BTreeMap<String, String>);

impl Store {
    /// Creates the file if absent, readable only by its owner.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.map_err(|error| StoreError::Io { path: path.to_owned(), error })?;
        let sqlite = |error| StoreError::Sqlite { path: path.to_owned(), error };
        let connection = Connection::open(path).map_err(sqlite)?;
        let format = prepare(&connection).map_err(sqlite)?;
        if format != FORMAT {
            return Err(StoreError::Format { path: path.to_owned(), got: format });
        }
        // Checkpoints the log of a killed server. Fails if another process reads the file.
        let _ = checkpoint(&connection);
        Ok(Self { path: path.to_owned(), connection, secrets_go: false })
    }

    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.path)
    }

    fn sqlite(&self, error: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), error }
    }

    fn damaged(&self, what: impl Into<String>, reason: impl ToString) -> StoreError {
        let (path, what, reason) = (self.path.clone(), what.into(), reason.to_string());
        StoreError::Damaged { path, what, reason }
    }

    fn first<T>(
        &self,
        sql: &str,
        values: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        first(&self.connection, sql, values, row).map_err(|error| self.sqlite(error))
    }

    fn all<T>(
        &self,
        sql: &str,
        values: impl Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        all(&self.connection, sql, values, row).map_err(|error| self.sqlite(error))
    }

    /// The row of an id that is there: a text, and another that may be missing.
    fn there(&self, sql: &str, id: &str) -> Result<(String, Option<String>), StoreError> {
        let found = self.first(sql, [id], |row| row.try_into())?;
        found.ok_or_else(|| self.sqlite(rusqlite::Error::QueryReturnedNoRows))
    }

    /// All jobs and runs, as of the last commit.
    pub fn load(&mut self) -> Result<Kept, StoreError> {
        self.roll_back()?;
        let jobs = "SELECT id, machine FROM job ORDER BY seq";
        let jobs: Vec<(String, Vec<u8>)> = self.all(jobs, [], |row| row.try_into())?;
        let runs = self.all("SELECT seq, id FROM run", [], |row| row.try_into())?;
        let jobs = jobs.into_iter().map(|(id, machine)| {
            from_slice(&machine)
                .map_err(|error: DecodeError| self.damaged(format!("job {id}"), error))
        });
        Ok(Kept { jobs: jobs.collect::<Result<_, _>>()?, runs: runs.into_iter().collect() })
    }

    pub fn tokens(&self) -> Result<Vec<(RunnerId, Hash)>, StoreError> {
        self.all("SELECT runner, hash FROM token", [], |row| {
            Ok((RunnerId(row.get(0)?), Hash(row.get(1)?)))
        })
    }

    /// When it was made, and its hash.
    pub fn token(&self, runner: &str) -> Result<Option<(u64, Hash)>, StoreError> {
        let sql = "SELECT created_at, hash FROM token WHERE runner = ?";
        self.first(sql, [runner], |row| Ok((row.get(0)?, Hash(row.get(1)?))))
    }

    pub fn spec(&self, job: &str) -> Result<Spec, StoreError> {
        let sql = "SELECT spec, secrets FROM spec LEFT JOIN secret USING (job) WHERE job = ?";
        let (spec, secrets) = self.there(sql, job)?;
        let secrets = secrets.unwrap_or_else(|| "{}".to_owned());
        // The decoder's message is left out, because it may contain a secret.
        let damaged = |_| self.damaged(format!("the spec of job {job}"), "not the JSON of a job");
        let spec = serde_json::from_str(&spec).map_err(damaged)?;
        let secrets = serde_json::from_str(&secrets).map_err(damaged)?;
        Ok((spec, secrets))
    }

    /// The job's name, and the outputs of its last attempt as JSON.
    pub fn outputs(&self, job: &str) -> Result<Option<(String, Option<String>)>, StoreError> {
        let sql = "SELECT name, outputs FROM job
             LEFT JOIN attempt ON attempt.job = id AND number = job.attempt WHERE id = ?";
        self.first(sql, [job], |row| row.try_into())
    }

    pub fn job_named(&self, run: &str, name: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT id FROM job WHERE run = ? AND name = ?";
        self.first(sql, [run, name], |row| row.get(0))
    }

    /// At most `limit` of the forgotten runs whose files still exist, sorted by id, starting after
    /// `after`.
    pub fn forgotten(&self, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT run FROM forgotten WHERE run > ? ORDER BY run LIMIT ?";
        self.all(sql, params![after, limit], |row| row.get(0))
    }

    /// Writes all changes of a message, after those since the last commit.
    pub fn write(&mut self, record: &Record) -> Result<(), StoreError> {
        let Self { connection, secrets_go, .. } = self;
        let mut write = || {
            begin(connection)?;
            *secrets_go |= write(connection, record)?;
            Ok(())
        };
        write().map_err(|error| self.undone(error))
    }

    /// Rewrites an unchanged value, to see whether writes succeed.
    pub fn touch(&mut self) -> Result<(), StoreError> {
        let touched = begin(&self.connection)
            .and_then(|()| self.connection.pragma_update(None, "user_version", FORMAT));
        touched.map_err(|error| self.undone(error))
    }

    /// Makes the writes durable. Returns whether secret values were deleted.
    pub fn commit(&mut self) -> Result<bool, StoreError> {
        let commit = || match self.connection.is_autocommit() {
            true => Ok(()),
            false => execute(&self.connection, "COMMIT", []).map(drop),
        };
        commit().map_err(|error| self.undone(error))?;
        Ok(std::mem::take(&mut self.secrets_go))
    }

    fn roll_back(&mut self) -> Result<(), StoreError> {
        self.secrets_go = false;
        match self.connection.is_autocommit() {
            true => Ok(()),
            false => self.connection.execute_batch("ROLLBACK").map_err(|error| self.sqlite(error)),
        }
    }

    /// The error, after undoing its partial changes.
    fn undone(&mut self, error: rusqlite::Error) -> StoreError {
        if let Err(error) = self.roll_back() {
            // The caller reloads the data next, which rolls back again.
            tracing::error!(%error, "a change of leases could not be undone");
        }
        self.sqlite(error)
    }
}

/// The first row of a query, if it has any.
fn first<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(values, row).optional()
}

/// All rows of a query.
fn all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, row)?.collect()
}

/// Executes a statement. Returns the number of changed rows.
fn execute(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

fn begin(connection: &Connection) -> rusqlite::Result<()> {
    match connection.is_autocommit() {
        true => execute(connection, "BEGIN IMMEDIATE", []).map(drop),
        false => Ok(()),
    }
}

/// Checkpoints the write-ahead log and empties it, because it keeps data that the file no longer
/// has, such as secret values. Returns whether it is empty, which a concurrent reader may prevent.
/// Uses its own connection, concurrently with the writer.
pub(super) fn empty_log(path: &Path) -> Result<bool, StoreError> {
    let empty = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(EMPTY_TIMEOUT)?;
        // Most of it is done while others write.
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        checkpoint(&connection)
    };
    empty().map_err(|error| StoreError::Sqlite { path: path.to_owned(), error })
}

fn checkpoint(connection: &Connection) -> rusqlite::Result<bool> {
    let busy = |row: &Row<'_>| row.get::<_, i64>(0);
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], busy).map(|busy| busy == 0)
}

/// Returns the format that the file had.
fn prepare(connection: &Connection) -> rusqlite::Result<i64> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Zeroes deleted data, above all secrets, also in freed pages.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;
         PRAGMA temp_store = MEMORY;",
    )?;
    let format = || connection.query_row("PRAGMA user_version", [], |row| row.get(0));
    let tables: &[&str] = match format()? {
        0 => &[TABLES, SECRETS, schedules::TABLES],
        1 => &[SECRETS, FROM_1, FROM_2, FROM_3, schedules::TABLES],
        2 => &[FROM_2, FROM_3, schedules::TABLES],
        3 => &[FROM_3, schedules::TABLES],
        other => return Ok(other),
    };
    let tables = tables.concat();
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {tables} PRAGMA user_version = {FORMAT}; COMMIT;"
    ))?;
    format()
}

/// Returns whether secret values were deleted.
fn write(connection: &Connection, record: &Record) -> rusqlite::Result<bool> {
    let mut secrets_go = false;
    let execute = |sql: &str, values: &[&dyn ToSql]| execute(connection, sql, values);
    if let Some(Submitted { run, name, concurrency, at, jobs }) = &record.submitted {
        execute(
            "INSERT INTO run (id, name, created_at, concurrency) VALUES (?, ?, ?, ?)",
            params![run, name, at, concurrency],
        )?;
        for (job, name, spec, secrets) in jobs {
            // The rest of the row is filled in with the others below.
            execute(
                "INSERT INTO job (id, run, name, state, attempt, created_at, finalized, machine)
                 VALUES (?, ?, ?, '', 0, ?, 0, x'')",
                params![job, run, name, at],
            )?;
            execute("INSERT INTO spec VALUES (?, ?)", params![job, spec])?;
            if let Some(secrets) = secrets {
                let insert = "INSERT INTO secret (job, secrets) VALUES (?, ?)";
                execute(insert, params![job, secrets])?;
            }
        }
    }
    for change in &record.schedules {
        secrets_go |= schedules::write(connection, change)?;
    }
    for row in &record.jobs {
        secrets_go |= write_job(connection, row)?;
    }
    for row in &record.attempts {
        let AttemptRow { job, number, attempt, state, ended_at } = row;
        execute(
            "INSERT INTO attempt
               (job, number, runner, lease_state, granted_at, acked_at, heartbeat_at, ended_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET lease_state = excluded.lease_state,
               acked_at = excluded.acked_at, heartbeat_at = excluded.heartbeat_at,
               ended_at = excluded.ended_at",
            params![
                job.0,
                number,
                attempt.runner.0,
                state.name(),
                attempt.granted_at,
                attempt.acked_at,
                attempt.heartbeat_at,
                ended_at
            ],
        )?;
    }
    for event in &record.events {
        execute(
            "INSERT INTO event (at, job, attempt, state, lease_state) VALUES (?, ?, ?, ?, ?)",
            params![
                event.at,
                event.job.0,
                event.attempt,
                event.state.name(),
                event.lease.map(|lease| lease.name())
            ],
        )?;
    }
    if let Some(Underway { job, number, accepted_at, progress, heartbeat_at, log_cursor }) =
        &record.underway
    {
        // A repeated ack changes nothing; fields that a heartbeat omits keep their values.
        execute(
            "UPDATE attempt SET runner_accepted_at = coalesce(runner_accepted_at, ?),
               progress = coalesce(?, progress), log_cursor = coalesce(?, log_cursor),
               runner_heartbeat_at = coalesce(?, runner_heartbeat_at)
             WHERE job = ? AND number = ?",
            params![accepted_at, progress, log_cursor, heartbeat_at, job, number],
        )?;
    }
    if let Some(report) = &record.report {
        let Report { job, number, exit_code, summary, artifacts, timings, outputs } = report;
        execute(
            "UPDATE attempt SET exit_code = ?, summary = ?, artifacts = ?, timings = ?, outputs = ?
             WHERE job = ? AND number = ?",
            params![exit_code, summary, artifacts, timings, outputs, job, number],
        )?;
    }
    match &record.token {
        Some(TokenRow { runner, made: Some((hash, at)) }) => {
            execute("INSERT OR REPLACE INTO token VALUES (?, ?, ?)", params![runner, hash.0, at])?;
        }
        Some(TokenRow { runner, made: None }) => {
            execute("DELETE FROM token WHERE runner = ?", params![runner])?;
        }
        None => {}
    }
    for run in &record.forgotten {
        for table in ["event", "attempt", "spec", "secret"] {
            let of = "WHERE job IN (SELECT id FROM job WHERE run = ?)";
            execute(&format!("DELETE FROM {table} {of}"), params![run])?;
        }
        execute("DELETE FROM job WHERE run = ?", params![run])?;
        execute("DELETE FROM run WHERE id = ?", params![run])?;
        execute("INSERT OR IGNORE INTO forgotten VALUES (?)", params![run])?;
    }
    for run in &record.swept {
        execute("DELETE FROM forgotten WHERE run = ?", params![run])?;
    }
    Ok(secrets_go)
}

/// Returns whether secret values were deleted.
fn write_job(connection: &Connection, row: &JobRow) -> rusqlite::Result<bool> {
    let JobRow { id, machine, expires_at, entered } = row;
    let Some(entered) = entered else {
        // No index contains these columns, so that a heartbeat changes one page here.
        let update = "UPDATE job SET expires_at = ?, machine = ? WHERE id = ?";
        execute(connection, update, params![expires_at, machine, id.0])?;
        return Ok(false);
    };
    execute(
        connection,
        "UPDATE job SET state = ?, attempt = ?, runner = ?, lease_state = ?, expires_at = ?,
           position = ?, ended_at = ?, ended_by = ?, finalized = ?, machine = ?, allow_failure = ?
         WHERE id = ?",
        params![
            entered.state.name(),
            entered.attempt,
            entered.runner.as_ref().map(|runner| &runner.0),
            entered.lease.map(|lease| lease.name()),
            expires_at,
            entered.position,
            entered.ended.map(|(at, _)| at),
            entered.ended.map(|(_, why)| why.name()),
            entered.finalized,
            machine,
            entered.allow_failure,
            id.0
        ],
    )?;
    if entered.ended.is_none() {
        return Ok(false);
    }
    Ok(execute(connection, "DELETE FROM secret WHERE job = ?", [&id.0])? > 0)
}
