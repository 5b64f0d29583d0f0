//! The agent's state on disk: one SQLite file, written shortly after each change, in one
//! transaction. After a kill at any time, pipelines, outputs and machine are consistent with each
//! other; the work of the last moment is done again.

use super::{
    core::{Core, ROLLBACKS, Undone},
    run::{Course, Run, TaskRun},
};
use crate::speculation::pipeline::Pipeline;
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    primitives::{Height, Wei},
    speculation::{SnapshotError, Speculation},
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

const FORMAT: i64 = 3;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS meta (
        only INTEGER PRIMARY KEY CHECK (only = 0), format INTEGER NOT NULL, chain TEXT NOT NULL,
        next INTEGER NOT NULL, booked INTEGER NOT NULL DEFAULT 0, machine BLOB
    ) STRICT;
    CREATE TABLE IF NOT EXISTS pipelines (
        number INTEGER PRIMARY KEY, written TEXT NOT NULL, submitted_at INTEGER NOT NULL,
        ended_at INTEGER, speculated INTEGER NOT NULL, synchronous_ms INTEGER
    ) STRICT;
    CREATE TABLE IF NOT EXISTS tasks (
        pipeline INTEGER NOT NULL, place INTEGER NOT NULL, record TEXT NOT NULL,
        PRIMARY KEY (pipeline, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS outputs (
        pipeline INTEGER NOT NULL, place INTEGER NOT NULL, output BLOB,
        PRIMARY KEY (pipeline, place)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS rollbacks (id INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT;
";

/// Why the stored state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{path}: {error}")]
    Sqlite { path: PathBuf, error: rusqlite::Error },
    #[error("{path} has {got}, expected {expected}; `devnet reset` deletes the chain")]
    Other { path: PathBuf, got: String, expected: String },
    #[error("{path}: {what} is damaged: {error}; `devnet reset` deletes the chain")]
    Damaged { path: PathBuf, what: String, error: String },
}

pub(super) struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
}

pub(super) struct Change {
    machine: Vec<u8>,
    next: u64,
    booked: u64,
    pipelines: Vec<(u64, String, Course)>,
    tasks: Vec<(u64, usize, String)>,
    outputs: Vec<ChangedOutput>,
    rollbacks: Vec<Undone>,
    forgotten: Vec<u64>,
}

type ChangedOutput = (u64, usize, Option<Arc<Vec<u8>>>);

impl Change {
    /// The changes since the last one; `None` if nothing changed.
    pub(super) fn of(core: &mut Core) -> Option<Self> {
        let nothing = core.dirty.is_empty()
            && core.dirty_runs.is_empty()
            && core.new_rollbacks.is_empty()
            && core.dirty_outputs.is_empty()
            && !core.dirty_books
            && core.forgotten.is_empty();
        if nothing {
            return None;
        }
        core.dirty_books = false;
        let pipelines = std::mem::take(&mut core.dirty_runs);
        let pipelines = pipelines.iter().filter_map(|number| {
            let run = core.runs.get(number)?;
            let written = serde_json::to_string(&run.written()).expect("a pipeline came from text");
            Some((*number, written, run.course()))
        });
        let pipelines = pipelines.collect();
        let tasks = std::mem::take(&mut core.dirty);
        let tasks = tasks.into_iter().filter_map(|(number, at)| {
            let task = core.runs.get(&number)?.tasks.get(at)?;
            let record = serde_json::to_string(task).expect("a record of texts and numbers");
            Some((number, at, record))
        });
        let tasks = tasks.collect();
        let outputs = std::mem::take(&mut core.dirty_outputs);
        let outputs = outputs.into_iter().filter_map(|(number, at)| {
            Some((number, at, core.runs.get(&number)?.tasks.get(at)?.output.clone()))
        });
        let outputs = outputs.collect();
        Some(Self {
            machine: core.machine.snapshot(),
            next: core.next,
            booked: core.booked.get(),
            pipelines,
            tasks,
            outputs,
            rollbacks: std::mem::take(&mut core.new_rollbacks),
            forgotten: std::mem::take(&mut core.forgotten),
        })
    }

    pub(super) fn undone(self, core: &mut Core) {
        core.dirty_books = true;
        core.dirty_runs.extend(self.pipelines.iter().map(|(number, ..)| *number));
        core.dirty.extend(self.tasks.iter().map(|(number, at, _)| (*number, *at)));
        core.dirty_outputs.extend(self.outputs.iter().map(|(number, at, _)| (*number, *at)));
        core.new_rollbacks.splice(0..0, self.rollbacks);
        core.forgotten.extend(self.forgotten);
    }
}

impl Store {
    /// Opens or creates the file, which only its owner may read.
    pub(super) fn open(path: &Path, chain_id: u64) -> Result<Self, StoreError> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.map_err(|error| StoreError::Io { path: path.to_owned(), error })?;
        let sqlite = |error| StoreError::Sqlite { path: path.to_owned(), error };
        let connection = Connection::open(path).map_err(sqlite)?;
        let chain = format!("{chain_id:#x}");
        let prepare = |connection: &Connection| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            connection.execute_batch(SCHEMA)?;
            connection.execute(
                "INSERT OR IGNORE INTO meta (only, format, chain, next) VALUES (0, ?, ?, 1)",
                params![FORMAT, chain],
            )?;
            connection.query_row("SELECT format, chain FROM meta", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
        };
        let (format, of) = prepare(&connection).map_err(sqlite)?;
        let other = |got, expected| Err(StoreError::Other { path: path.to_owned(), got, expected });
        if format != FORMAT {
            return other(format!("format {format}"), format!("format {FORMAT}"));
        }
        if of != chain {
            return other(format!("chain {of}"), format!("chain {chain}"));
        }
        Ok(Self { path: path.to_owned(), connection: Mutex::new(connection) })
    }

    fn damaged(&self, what: impl Into<String>, error: impl ToString) -> StoreError {
        let (path, what, error) = (self.path.clone(), what.into(), error.to_string());
        StoreError::Damaged { path, what, error }
    }

    pub(super) fn load(&self, core: &mut Core, now: u64) -> Result<(), StoreError> {
        let sqlite = |error| StoreError::Sqlite { path: self.path.clone(), error };
        let kept = self.read().map_err(sqlite)?;
        if let Some(machine) = kept.machine {
            let config = core.options.config.clone();
            // The chain was down while this process was.
            let mut machine = Speculation::restore(&machine, 0)
                .map_err(|error: SnapshotError| self.damaged("the machine's snapshot", error))?;
            machine.chain_lost(machine.now(), now);
            // The configuration and the deposit come from the topology.
            machine.set_config(config, now);
            let deposit = Wei::new(core.options.deposit.into());
            machine.set_stake(deposit.saturating_sub(machine.stake().slashed));
            core.machine = machine;
        }
        let mut tasks = kept.tasks.into_iter().peekable();
        for (number, written, course) in kept.pipelines {
            let what = || format!("pipeline {number}");
            let pipeline: Pipeline =
                serde_json::from_str(&written).map_err(|error| self.damaged(what(), error))?;
            let checked = pipeline.check().map_err(|error| self.damaged(what(), error))?;
            let mut of_run = Vec::with_capacity(checked.tasks.len());
            // Skips tasks of pipelines that are gone.
            while tasks.next_if(|(of, ..)| *of < number).is_some() {}
            while let Some((_, record, output)) = tasks.next_if(|(of, ..)| *of == number) {
                let task: TaskRun =
                    serde_json::from_str(&record).map_err(|error| self.damaged(what(), error))?;
                of_run.push(TaskRun { output: output.map(Arc::new), ..task });
            }
            let run = Run::restored(&core.agent, number, checked, of_run, course);
            core.adopt(run.ok_or_else(|| self.damaged(what(), "tasks are missing"))?);
        }
        for record in kept.rollbacks {
            let undone: Undone =
                serde_json::from_str(&record).map_err(|error| self.damaged("a rollback", error))?;
            core.rollbacks.push_back(undone);
        }
        core.next = core.next.max(kept.next);
        core.booked = Height::new(kept.booked);
        Ok(())
    }

    fn read(&self) -> rusqlite::Result<StoredAgent> {
        let connection = self.connection.lock();
        let meta = connection
            .query_row("SELECT machine, next, booked FROM meta", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let (machine, next, booked) = meta.unwrap_or((None, 1, 0));
        let mut pipelines = connection.prepare(
            "SELECT number, written, submitted_at, ended_at, speculated, synchronous_ms \
                 FROM pipelines ORDER BY number",
        )?;
        let pipeline = |row: &Row<'_>| {
            let (submitted_at, ended_at) = (row.get(2)?, row.get(3)?);
            let (speculated, synchronous_ms) = (row.get(4)?, row.get(5)?);
            let course = Course { submitted_at, ended_at, speculated, synchronous_ms };
            Ok((row.get(0)?, row.get(1)?, course))
        };
        let pipelines = pipelines.query_map([], pipeline)?.collect::<Result<_, _>>()?;
        let mut tasks = connection.prepare(
            "SELECT tasks.pipeline, record, output FROM tasks LEFT JOIN outputs USING \
                 (pipeline, place) ORDER BY tasks.pipeline, tasks.place",
        )?;
        let tasks = tasks
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let mut rollbacks = connection.prepare("SELECT record FROM rollbacks ORDER BY id")?;
        let rollbacks = rollbacks.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(StoredAgent { machine, next, booked, pipelines, tasks, rollbacks })
    }

    /// Writes a change completely or not at all.
    pub(super) fn write(&self, change: &Change) -> Result<(), StoreError> {
        let write = || {
            let mut connection = self.connection.lock();
            let transaction = connection.transaction()?;
            transaction.execute(
                "UPDATE meta SET machine = ?, next = ?, booked = ?",
                params![change.machine, change.next, change.booked],
            )?;
            for (number, written, course) in &change.pipelines {
                let Course { submitted_at, ended_at, speculated, synchronous_ms } = course;
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO pipelines VALUES (?, ?, ?, ?, ?, ?)")?
                    .execute(params![
                        number,
                        written,
                        submitted_at,
                        ended_at,
                        speculated,
                        synchronous_ms
                    ])?;
            }
            for (number, at, record) in &change.tasks {
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?)")?
                    .execute(params![number, at, record])?;
            }
            for (number, at, output) in &change.outputs {
                let output = output.as_ref().map(|output| output.as_slice());
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?)")?
                    .execute(params![number, at, output])?;
            }
            for undone in &change.rollbacks {
                let record = serde_json::to_string(undone).expect("a record of texts and numbers");
                transaction.execute(
                    "INSERT OR REPLACE INTO rollbacks (id, record) VALUES (?, ?)",
                    params![undone.number, record],
                )?;
            }
            if !change.rollbacks.is_empty() {
                transaction.execute(
                    "DELETE FROM rollbacks WHERE id <= (SELECT max(id) FROM rollbacks) - ?",
                    [ROLLBACKS],
                )?;
            }
            for number in &change.forgotten {
                transaction.execute("DELETE FROM pipelines WHERE number = ?", [number])?;
                transaction.execute("DELETE FROM tasks WHERE pipeline = ?", [number])?;
                transaction.execute("DELETE FROM outputs WHERE pipeline = ?", [number])?;
            }
            transaction.commit()
        };
        write().map_err(|error| StoreError::Sqlite { path: self.path.clone(), error })
    }
}

struct StoredAgent {
    machine: Option<Vec<u8>>,
    next: u64,
    booked: u64,
    pipelines: Vec<(u64, String, Course)>,
    tasks: Vec<(u64, String, Option<Vec<u8>>)>,
    rollbacks: Vec<String>,
}
