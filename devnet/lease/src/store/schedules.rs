//! The storage of schedules.

use super::{
    Reader, Store, StoreError, all, execute, first,
    secret::{Hidden, SecretJson},
};
use crate::{
    fire::{Fire, FirePlace},
    messages::{BySchedule, EnvValue, NewRun, Schedule, ScheduleFailure, ScheduledRun as LastRun},
    time,
};
use cowboy_engine::primitives::Address;
use rusqlite::{Connection, Row, ToSql, params};
use std::collections::BTreeMap;

/// The tables for schedules that format 4 adds to format 3, for new files and for upgrades.
pub(super) const TABLES: &str = "
-- since: fires in later blocks count. next_height, next_position: the first fire that was not
-- looked at. run: JSON, as it was handed in, without the values of secrets.
CREATE TABLE schedule (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT, jobs INTEGER NOT NULL,
  actor TEXT NOT NULL, handler TEXT, run TEXT NOT NULL, created_at INTEGER NOT NULL,
  since INTEGER NOT NULL, next_height INTEGER NOT NULL, next_position INTEGER NOT NULL,
  runs INTEGER NOT NULL DEFAULT 0, last_run TEXT, last_height INTEGER, last_timer TEXT,
  skipped INTEGER NOT NULL DEFAULT 0, failed_at INTEGER, failed_height INTEGER,
  failed_timer TEXT, failure TEXT) STRICT;
-- The values of secrets of a schedule's run, by job, until it is removed; in pages of their own.
CREATE TABLE schedule_secret (
  schedule TEXT PRIMARY KEY, page BLOB NOT NULL DEFAULT (zeroblob(4096)), secrets TEXT NOT NULL)
  STRICT;
-- The schedule that made a run, and the fire that it made it for.
ALTER TABLE run ADD COLUMN schedule TEXT;
ALTER TABLE run ADD COLUMN fire_height INTEGER;
ALTER TABLE run ADD COLUMN fire_timer TEXT;
";

const SCHEDULE: &str = "SELECT id, name, jobs, actor, handler, created_at, since, runs, last_run,
  last_height, last_timer, skipped, failed_at, failed_height, failed_timer, failure
  FROM schedule";

/// Secret values of a run, by job and name.
pub(crate) type RunSecrets = BTreeMap<String, BTreeMap<String, String>>;

pub(crate) enum ScheduleChange {
    Made(Box<NewRow>),
    Gone(String),
    Fired {
        schedule: String,
        fire: Fire,
        /// The first fire that is not processed.
        next: FirePlace,
        /// The id of the submitted run; otherwise the time and the reason.
        outcome: Result<String, (u64, String)>,
    },
    /// All fires up to a height are processed.
    Followed {
        height: u64,
        /// When and why the fires of these blocks are unknown, if they are.
        missed: Option<(u64, &'static str)>,
    },
}

pub(crate) struct NewRow {
    pub id: String,
    pub name: Option<String>,
    pub jobs: u64,
    pub actor: Address,
    pub handler: Option<String>,
    /// The run as JSON, without its secret values.
    pub run: String,
    pub secrets: SecretJson,
    /// In milliseconds.
    pub at: u64,
    /// Fires in blocks after this height count.
    pub since: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trigger {
    pub id: String,
    pub actor: Address,
    pub handler: Option<String>,
    /// The first fire that is not processed.
    pub next: FirePlace,
}

impl Store {
    /// In the order in which the schedules were added.
    pub fn triggers(&self) -> Result<Vec<Trigger>, StoreError> {
        let sql =
            "SELECT id, actor, handler, next_height, next_position FROM schedule ORDER BY seq";
        let rows: Vec<(String, String, _, _, _)> = self.all(sql, [], |row| row.try_into())?;
        let rows = rows.into_iter().map(|(id, actor, handler, height, position)| {
            let damaged = |error| self.damaged(format!("schedule {id}"), error);
            let actor = actor.parse().map_err(damaged)?;
            Ok(Trigger { id, actor, handler, next: (height, position) })
        });
        rows.collect()
    }

    pub fn scheduled_run(&self, schedule: &str) -> Result<NewRun, StoreError> {
        let sql = "SELECT run, secrets FROM schedule
             LEFT JOIN schedule_secret ON schedule = id WHERE id = ?";
        let (run, secrets) = self.there(sql, schedule)?;
        // The decoder's message is left out, because it may contain a secret.
        let damaged = |_| self.damaged(format!("schedule {schedule}"), "not the JSON of a run");
        let mut run: NewRun = serde_json::from_str(&run).map_err(damaged)?;
        let secrets = secrets.as_deref().map_or(Ok(RunSecrets::new()), serde_json::from_str);
        let mut secrets = secrets.map_err(damaged)?;
        for job in &mut run.jobs {
            let Some(mut values) = secrets.remove(&job.name) else { continue };
            for (name, value) in &mut job.env {
                if let EnvValue::Secret { secret } = value {
                    *secret = values.remove(name).unwrap_or_default();
                }
            }
        }
        Ok(run)
    }
}

impl Reader {
    /// Newest first.
    pub fn schedules(&self) -> Result<Vec<Schedule>, StoreError> {
        let sql = format!("{SCHEDULE} ORDER BY seq DESC");
        self.read(|connection| all(connection, &sql, [], shown))
    }

    pub fn schedule(&self, id: &str) -> Result<Option<Schedule>, StoreError> {
        let sql = format!("{SCHEDULE} WHERE id = ?");
        self.read(|connection| first(connection, &sql, [id], shown))
    }
}

fn shown(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    let last_run = match row.get(8)? {
        Some(run_id) => Some(LastRun { run_id, height: row.get(9)?, timer_id: row.get(10)? }),
        None => None,
    };
    let last_failure = match row.get(15)? {
        Some(reason) => Some(ScheduleFailure {
            at: time(row.get(12)?),
            height: row.get(13)?,
            timer_id: row.get(14)?,
            reason,
        }),
        None => None,
    };
    Ok(Schedule {
        schedule: row.get(0)?,
        name: row.get(1)?,
        jobs: row.get(2)?,
        actor: row.get(3)?,
        handler: row.get(4)?,
        created_at: time(row.get(5)?),
        since: row.get(6)?,
        runs: row.get(7)?,
        skipped: row.get(11)?,
        last_run,
        last_failure,
    })
}

/// The schedule that submitted a run, from the columns `at` to `at + 2`.
pub(super) fn by_schedule(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<BySchedule>> {
    let Some(schedule) = row.get(at)? else { return Ok(None) };
    Ok(Some(BySchedule { schedule, height: row.get(at + 1)?, timer_id: row.get(at + 2)? }))
}

/// Returns whether secret values were deleted.
pub(super) fn write(connection: &Connection, change: &ScheduleChange) -> rusqlite::Result<bool> {
    let execute = |sql: &str, values: &[&dyn ToSql]| execute(connection, sql, values);
    match change {
        ScheduleChange::Made(row) => {
            let NewRow { id, name, jobs, actor, handler, run, secrets, at, since } = &**row;
            execute(
                "INSERT INTO schedule (id, name, jobs, actor, handler, run, created_at, since,
                   next_height, next_position)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?8, ?8 + 1, 0)",
                params![id, name, jobs, actor.to_string(), handler, run, at, since],
            )?;
            if let Some(secrets) = secrets {
                let insert = "INSERT INTO schedule_secret (schedule, secrets) VALUES (?, ?)";
                execute(insert, params![id, secrets])?;
            }
        }
        ScheduleChange::Gone(id) => {
            execute("DELETE FROM schedule WHERE id = ?", params![id])?;
            let gone = execute("DELETE FROM schedule_secret WHERE schedule = ?", params![id])?;
            return Ok(gone > 0);
        }
        ScheduleChange::Fired { schedule, fire, next, outcome } => {
            execute(
                "UPDATE schedule SET next_height = ?, next_position = ? WHERE id = ?",
                params![next.0, next.1, schedule],
            )?;
            let (height, timer) = (fire.height, fire.timer.to_string());
            match outcome {
                Ok(run) => {
                    execute(
                        "UPDATE schedule SET runs = runs + 1, last_run = ?, last_height = ?,
                           last_timer = ? WHERE id = ?",
                        params![run, height, timer, schedule],
                    )?;
                    execute(
                        "UPDATE run SET schedule = ?, fire_height = ?, fire_timer = ?
                         WHERE id = ?",
                        params![schedule, height, timer, run],
                    )?;
                }
                Err((at, reason)) => {
                    execute(
                        "UPDATE schedule SET skipped = skipped + 1, failed_at = ?,
                           failed_height = ?, failed_timer = ?, failure = ? WHERE id = ?",
                        params![at, height, timer, reason, schedule],
                    )?;
                }
            }
        }
        ScheduleChange::Followed { height, missed } => {
            if let Some((at, reason)) = missed {
                execute(
                    "UPDATE schedule SET failed_at = ?, failed_height = ?2, failed_timer = NULL,
                       failure = ? WHERE next_height <= ?2",
                    params![at, height, reason],
                )?;
            }
            execute(
                "UPDATE schedule SET next_height = ?1 + 1, next_position = 0
                 WHERE next_height <= ?1",
                params![height],
            )?;
        }
    }
    Ok(false)
}

pub(crate) fn hidden(secrets: &RunSecrets) -> SecretJson {
    let json = || serde_json::to_string(secrets).expect("texts under texts are JSON");
    (!secrets.is_empty()).then(|| Hidden(json()))
}
