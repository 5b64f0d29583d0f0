//! What one validator keeps beside consensus' own archives: blocks with their receipts, events,
//! certificates and draws, and snapshots of the state. One SQLite file, one transaction per block.
//!
//! Blocks that are no longer recent are moved into compressed segments (`segment`), and the oldest
//! of those are dropped where the chain has more than is to be kept (`keep`).
//!
//! The file is crash-safe (write-ahead log), survives `kill -9` at any moment, and may be read by
//! anybody while the devnet runs; docs/storage.md lists its tables. Bodies are deterministic CBOR,
//! the forms that `cowboy-engine` defines.

mod format;
mod keep;
mod query;
mod schema;
mod segment;
mod timers;

pub use format::{FORMAT, stored_format};
pub use keep::Keep;
pub use query::{
    Cause, EventFilter, Line, PAGE_BYTES, Page, StoredDraw, StoredEvent, StoredLine,
    StoredPresence, StoredResult, StoredTransaction,
};
pub use timers::{End, StoredLane, StoredTimer, TimerFilter};

use cowboy_engine::{
    chain::{
        ActorReceipt, Block, Certificate, EventKind, Execution, Payload, State, Status,
        event::ActorEmitted,
    },
    primitives::{
        Address, Hash, Height,
        codec::{DecodeError, to_vec},
    },
    timer::Policy,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, params};
use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A snapshot of the state is kept every so many blocks: a restart executes at most these again.
pub const SNAPSHOT_BLOCKS: u64 = 256;

/// How long a statement waits for a reader of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the store cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// SQLite refuses.
    #[error("storage: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A segment cannot be made.
    #[error("storage: compressing blocks: {0}")]
    Compression(#[from] io::Error),
    /// A record is not what it should be.
    #[error("storage: the {record} at {height} does not decode: {error}")]
    Corrupt {
        /// Which table.
        record: &'static str,
        /// At which height.
        height: u64,
        /// How.
        error: DecodeError,
    },
    /// The file is of another version of this program.
    #[error(
        "storage: the file has format {got}, this program reads {expected}; `devnet reset` deletes the chain"
    )]
    Format {
        /// What the file says.
        got: i64,
        /// What is read.
        expected: i64,
    },
    /// The file is of another chain.
    #[error(
        "storage: the file belongs to chain {got:#x}, not {expected:#x}; `devnet reset` deletes the chain"
    )]
    Chain {
        /// What the file says.
        got: u64,
        /// What is wanted.
        expected: u64,
    },
    /// A table or an index is missing or another one.
    #[error("storage: `{name}` is missing, or defined otherwise than in format {FORMAT}")]
    Definition {
        /// Its name.
        name: String,
    },
    /// A block does not follow the last one stored.
    #[error("storage: block {got} does not follow {head}")]
    Gap {
        /// What was to be stored.
        got: Height,
        /// What stands there.
        head: Height,
    },
}

impl StorageError {
    /// Whether the file itself is at fault, as opposed to the disk, the machine or whoever gave it.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => !matches!(
                error.sqlite_error_code(),
                Some(
                    ErrorCode::CannotOpen
                        | ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::DiskFull
                        | ErrorCode::OutOfMemory
                        | ErrorCode::PermissionDenied
                        | ErrorCode::ReadOnly
                        | ErrorCode::SystemIoFailure
                )
            ),
            Self::Corrupt { .. } | Self::Definition { .. } | Self::Gap { .. } => true,
            Self::Compression(_) | Self::Format { .. } | Self::Chain { .. } => false,
        }
    }
}

/// The last block of a file whose chain is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredHead {
    /// The chain.
    pub chain_id: u64,
    /// The block's height.
    pub height: Height,
    /// The block's hash.
    pub hash: Hash,
}

/// The last block in a validator's file, of whatever chain; `None`: it has no block yet.
pub fn head_of(path: &Path) -> Result<Option<StoredHead>, StorageError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let head = "SELECT chain_id, height, hash FROM meta, block ORDER BY height DESC LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(StoredHead {
            chain_id: u64::from_be_bytes(row.get(0)?),
            height: query::height(row, 1)?,
            hash: query::hash(row, 2)?,
        })
    };
    Ok(connection.query_row(head, [], read).optional()?)
}

/// One validator's file.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<Connection>,
    keep: Keep,
    /// As in `meta`.
    kept_from: AtomicU64,
    last_read: Mutex<Option<segment::Segment>>,
}

/// A finalized block and what executing it did.
#[derive(Clone, Copy, Debug)]
pub struct BlockRecord<'a> {
    /// The block.
    pub block: &'a Block,
    /// The state before it.
    pub parent: &'a State,
    /// What it did.
    pub execution: &'a Execution,
    /// When this validator executed it, Unix ms.
    pub executed_ms: u64,
    /// Proof that it is final, where this validator holds one.
    pub proof: Option<&'a Certificate>,
}

impl Store {
    /// Opens or creates the file of the chain with this id.
    pub fn open(path: &Path, chain_id: u64) -> Result<Self, StorageError> {
        let store = Self::open_damaged(path, chain_id)?;
        schema::complete(&store.lock())?;
        Ok(store)
    }

    /// Opens a file of the chain with this id which may lack tables, for what can be read of it.
    pub fn open_damaged(path: &Path, chain_id: u64) -> Result<Self, StorageError> {
        Self::with(Connection::open(path)?, chain_id)
    }

    /// A store that ends with the process, for the simulator.
    pub fn in_memory(chain_id: u64) -> Result<Self, StorageError> {
        Self::with(Connection::open_in_memory()?, chain_id)
    }

    fn with(connection: Connection, chain_id: u64) -> Result<Self, StorageError> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(64);
        schema::prepare(&connection, chain_id)?;
        let kept_from = "SELECT kept_from FROM meta";
        let kept_from: u64 = connection.query_row(kept_from, [], |row| row.get(0))?;
        Ok(Self {
            connection: Mutex::new(connection),
            keep: Keep::default(),
            kept_from: kept_from.into(),
            last_read: Mutex::default(),
        })
    }

    /// Drops the oldest blocks beyond `keep`, as new ones come.
    pub fn keeping(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// The first block that is kept, with its parent.
    pub fn kept_from(&self) -> Height {
        Height::new(self.kept_from.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic while the lock was held rolled its transaction back: the file is as before.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a copy of the file, as of now, to a path at which there is nothing.
    pub fn copy(&self, to: &Path) -> Result<(), StorageError> {
        self.lock().execute("VACUUM INTO ?", params![to.to_string_lossy()])?;
        Ok(())
    }

    /// What SQLite finds wrong with the file's pages and indexes: a line for each, some at most.
    pub fn integrity(&self) -> Result<Vec<String>, StorageError> {
        let connection = self.lock();
        let mut statement = connection.prepare("PRAGMA integrity_check(5)")?;
        let lines = statement.query_map([], |row| row.get(0))?;
        let lines = lines.collect::<Result<Vec<String>, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Makes what is stored outlast a power failure: until then the newest blocks may not.
    pub fn sync(&self) -> Result<(), StorageError> {
        self.lock().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }

    /// Height and hash of the last block stored.
    pub fn head(&self) -> Result<Option<(Height, Hash)>, StorageError> {
        let head = self
            .lock()
            .prepare_cached("SELECT height, hash FROM block ORDER BY height DESC LIMIT 1")?
            .query_row([], |row| Ok((query::height(row, 0)?, query::hash(row, 1)?)))
            .optional()?;
        Ok(head)
    }

    /// Stores a block with all that it did, whole or not at all. A block stored before is left
    /// as it is.
    pub fn commit(&self, record: &BlockRecord<'_>) -> Result<(), StorageError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let height = record.block.header.height;
        let head: Option<u64> = transaction
            .prepare_cached("SELECT max(height) FROM block")?
            .query_row([], |row| row.get(0))?;
        match head.map(Height::new) {
            Some(head) if height <= head => return Ok(()),
            Some(head) if height != head.next() => {
                return Err(StorageError::Gap { got: height, head });
            }
            None if height.get() > 1 => {
                return Err(StorageError::Gap { got: height, head: Height::GENESIS });
            }
            _ => {}
        }
        insert(&transaction, record)?;
        if height.get().is_multiple_of(SNAPSHOT_BLOCKS) {
            insert_snapshot(&transaction, &record.execution.state)?;
        }
        let kept_from = if height.get().is_multiple_of(segment::BLOCKS) {
            segment::archive(&transaction, height)?;
            keep::drop_oldest(&transaction, self.keep, height)?
        } else {
            None
        };
        transaction.commit()?;
        if let Some(height) = kept_from {
            self.kept_from.store(height.get(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Stores a snapshot of the state after the last block stored, so that the next start
    /// executes nothing again.
    pub fn snapshot(&self, state: &State) -> Result<(), StorageError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        insert_snapshot(&transaction, state)?;
        transaction.commit()?;
        Ok(())
    }

    /// The newest snapshot.
    pub fn load_snapshot(&self) -> Result<Option<State>, StorageError> {
        Ok(self.newest_snapshots(1)?.pop())
    }

    /// All snapshots, the newest first.
    pub fn snapshots(&self) -> Result<Vec<State>, StorageError> {
        self.newest_snapshots(u32::MAX)
    }

    fn newest_snapshots(&self, count: u32) -> Result<Vec<State>, StorageError> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT height, state FROM snapshot ORDER BY height DESC LIMIT ?")?;
        let rows = statement.query_map(params![count], |row| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, Vec<u8>>(1)?))
        })?;
        rows.map(|row| {
            let (height, bytes) = row?;
            State::from_bytes(&bytes).map_err(|error| StorageError::Corrupt {
                record: "snapshot",
                height,
                error,
            })
        })
        .collect()
    }
}

fn insert(
    transaction: &rusqlite::Transaction<'_>,
    record: &BlockRecord<'_>,
) -> Result<(), StorageError> {
    let BlockRecord { block, execution, executed_ms, proof, .. } = record;
    let height = block.header.height.get();
    transaction
        .prepare_cached(
            "INSERT INTO block (height, hash, state_root, executed_ms, body, proof)
             VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            height,
            execution.state.head_hash().0,
            execution.state.root().0,
            executed_ms,
            block.to_bytes(),
            proof.map(to_vec)
        ])?;
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO tx (hash, height, position, receipt) VALUES (?, ?, ?, ?)",
    )?;
    for (position, receipt) in execution.receipts.iter().enumerate() {
        statement.execute(params![receipt.transaction.0, height, position, to_vec(receipt)])?;
    }
    let mut statement = transaction.prepare_cached(
        "INSERT INTO event (height, position, kind, job_id, timer_id, body)
         VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for (position, event) in execution.events.iter().enumerate() {
        let (job, timer) = (event.job_id().map(|id| id.0), event.timer_id().map(|id| id.0));
        let kind = event.kind.name();
        statement.execute(params![height, position, kind, job, timer, to_vec(event)])?;
    }
    let mut statement = transaction.prepare_cached(
        "INSERT INTO presence (height, embedded_at, certificate, bit_length, bitmap, registry)
         VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for derived in &execution.derived {
        statement.execute(params![
            derived.height.get(),
            height,
            to_vec(&block.certificates[derived.certificate]),
            derived.bitmap.len(),
            derived.bitmap.as_bytes(),
            to_vec(&derived.order)
        ])?;
    }
    let mut statement = transaction
        .prepare_cached("INSERT INTO draw (job_id, height, found, body) VALUES (?, ?, ?, ?)")?;
    for draw in &execution.draws {
        // A job that waits is drawn every block: the last of those draws is the one to explain.
        transaction
            .prepare_cached("DELETE FROM draw WHERE job_id = ? AND NOT found")?
            .execute(params![draw.job_id.0])?;
        let found = !draw.selection.committee.is_empty();
        statement.execute(params![draw.job_id.0, height, found, to_vec(draw)])?;
    }
    let mut statement = transaction
        .prepare_cached("INSERT INTO result (job_id, height, runner, bytes) VALUES (?, ?, ?, ?)")?;
    for (job_id, runner, bytes) in &execution.results {
        statement.execute(params![job_id.0, height, runner.0, bytes.as_slice()])?;
    }
    timers::insert(transaction, record)?;
    insert_actor_log(transaction, record)
}

/// Inserts, run by run, the lines that actors logged, the events that they emitted and the error
/// that ended a call.
fn insert_actor_log(
    transaction: &rusqlite::Transaction<'_>,
    record: &BlockRecord<'_>,
) -> Result<(), StorageError> {
    let BlockRecord { block, execution, .. } = record;
    let height = block.header.height.get();
    let mut statement = transaction.prepare_cached(
        "INSERT INTO actor_log (actor, height, line, tx, timer, job, kind, name, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut emitted: BTreeMap<Cause, Vec<&ActorEmitted>> = BTreeMap::new();
    // What stands before the event that tells of a callback, and of nothing else, is that one's.
    let mut of_callback = Vec::new();
    for event in &execution.events {
        let timer = event.timer.map(Cause::Timer);
        let cause = timer.or(event.transaction.map(Cause::Transaction));
        match (cause, &event.kind) {
            (Some(cause), EventKind::ActorEmitted(event)) => {
                emitted.entry(cause).or_default().push(event);
            }
            (None, EventKind::ActorEmitted(event)) => of_callback.push(event),
            (_, EventKind::CallbackMade(made)) => {
                emitted.insert(Cause::Job(made.job_id), std::mem::take(&mut of_callback));
            }
            _ => {}
        }
    }
    let mut lines = 0_u64..;
    let mut insert = |actor: &Address, cause: Cause, kind, name: Option<&str>, body: &str| {
        let line = lines.next().expect("a block's lines can be counted");
        let (tx, timer, job) = match cause {
            Cause::Transaction(tx) => (Some(tx.0), None, None),
            Cause::Timer(timer) => (None, Some(timer.0), None),
            Cause::Job(job) => (None, None, Some(job.0)),
        };
        statement.execute(params![actor.0, height, line, tx, timer, job, kind, name, body])
    };
    for (cause, done, error) in runs(block, execution) {
        for (actor, line) in &done.log {
            insert(actor, cause, "log", None, line)?;
        }
        for ActorEmitted { actor, name, data } in emitted.remove(&cause).unwrap_or_default() {
            insert(actor, cause, "event", Some(name.as_str()), &String::from_utf8_lossy(data))?;
        }
        if let Some(error) = error {
            insert(&done.actor, cause, "error", None, error)?;
        }
    }
    Ok(())
}

/// What made actors run in a block, in order: what they did and the error that ended a call.
fn runs<'a>(
    block: &'a Block,
    execution: &'a Execution,
) -> impl Iterator<Item = (Cause, &'a ActorReceipt, Option<&'a str>)> {
    let transactions =
        block.transactions.iter().zip(&execution.receipts).filter_map(|(signed, receipt)| {
            // What was refused at deployment is no actor.
            let error = match (&signed.transaction.payload, &receipt.status) {
                (Payload::CallActor(_), Status::Failed(error)) => Some(error.as_str()),
                _ => None,
            };
            Some((Cause::Transaction(receipt.transaction), receipt.actor.as_ref()?, error))
        });
    let fires = execution
        .fires
        .iter()
        .map(|fire| (Cause::Timer(fire.timer_id), &fire.outcome, fire.status.error()));
    // Under that policy alone timers come before the transactions.
    let first = execution.lane.policy == Policy::GbaAuction;
    let (mut runs, fires): (Vec<_>, Vec<_>) = (transactions.collect(), fires.collect());
    runs.splice(if first { 0..0 } else { runs.len()..runs.len() }, fires);
    let told = execution.told.iter();
    let told = told.map(|told| (Cause::Job(told.job_id), &told.outcome, told.error.as_deref()));
    runs.into_iter().chain(told)
}

/// Inserts a snapshot and drops all but the one before it.
fn insert_snapshot(
    transaction: &rusqlite::Transaction<'_>,
    state: &State,
) -> Result<(), StorageError> {
    let height = state.height().get();
    transaction
        .prepare_cached("INSERT OR REPLACE INTO snapshot (height, state) VALUES (?, ?)")?
        .execute(params![height, state.to_bytes()])?;
    transaction
        .prepare_cached(
            "DELETE FROM snapshot WHERE height NOT IN
             (SELECT height FROM snapshot ORDER BY height DESC LIMIT 2)",
        )?
        .execute([])?;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
