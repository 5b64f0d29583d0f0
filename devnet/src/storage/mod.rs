//! One validator's store, in addition to consensus' own archives: blocks with their receipts,
//! events, certificates and draws, and snapshots of the state. One SQLite file, one transaction per
//! block.
//!
//! A block's events, receipts and ended timers are one row (`effects`) with an `index`. Older
//! blocks are moved into compressed segments (`segment`), and the oldest segments are dropped when
//! the chain exceeds the limit (`keep`).
//!
//! The file is crash-safe (write-ahead log), survives `kill -9` at any moment, and may be read by
//! any process while the devnet runs; docs/storage.md lists its tables. Bodies are deterministic
//! CBOR in the formats of `cowboy-engine`.

mod columns;
mod effects;
mod ended;
mod format;
mod index;
mod keep;
mod query;
mod schema;
mod segment;
mod timers;

pub use ended::{EndedTimer, TimerEnd};
pub use format::{FORMAT, stored_format};
pub use keep::Keep;
pub use query::{
    Cause, EventFilter, Line, PAGE_BYTES, Page, StoredDraw, StoredEvent, StoredLine,
    StoredPresence, StoredResult, StoredTransaction,
};
pub use timers::{StoredLane, StoredTimer, TimerFilter};

use cowboy_engine::{
    chain::{
        ActorReceipt, Block, Certificate, EventKind, Execution, Payload, ReceiptStatus, State,
        event::{ActorEmitted, PythonEmitted},
    },
    primitives::{
        Address, Hash, Height, cbor,
        codec::{DecodeError, to_vec},
    },
    timer::Policy,
};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Params, Row, TransactionBehavior,
    params,
};
use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Blocks between snapshots of the state: a restart executes at most this many blocks again.
pub const SNAPSHOT_BLOCKS: u64 = 256;

/// Why the store fails.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("storage: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("storage: compressing blocks: {0}")]
    Compression(#[from] io::Error),
    #[error("storage: the {record} at {height} does not decode: {error}")]
    Corrupt { record: &'static str, height: u64, error: DecodeError },
    #[error(
        "storage: the file has format {got}, this program reads {expected}; run the program that wrote it, \
         or delete the chain: `devnet reset`, or `node run --resync` for one node"
    )]
    Format { got: i64, expected: i64 },
    #[error(
        "storage: the file belongs to chain {got:#x}, not {expected:#x}; `devnet reset` deletes the chain"
    )]
    Chain { got: u64, expected: u64 },
    #[error("storage: `{name}` is missing, or defined otherwise than in format {FORMAT}")]
    Definition { name: String },
    #[error("storage: block {got} does not follow {head}")]
    Gap { got: Height, head: Height },
}

impl StorageError {
    /// Whether the file itself is damaged, as opposed to a problem of the disk, the machine or the
    /// caller.
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

/// The last block in a file of any chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredHead {
    pub chain_id: u64,
    pub height: Height,
    pub hash: Hash,
}

/// The last block in a validator's file, of whatever chain; `None` if it has no block yet.
pub fn head_of(path: &Path) -> Result<Option<StoredHead>, StorageError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let head = "SELECT chain_id, height, hash FROM meta, block ORDER BY height DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        Ok(StoredHead {
            chain_id: u64::from_be_bytes(row.get(0)?),
            height: columns::height(row, 1)?,
            hash: columns::hash(row, 2)?,
        })
    };
    Ok(connection.query_row(head, [], read).optional()?)
}

/// One validator's store: an SQLite file, or memory in the simulator.
#[derive(Debug)]
pub struct ValidatorStore {
    connection: Mutex<Connection>,
    keep: Keep,
    /// A copy of `meta.kept_from`.
    kept_from: AtomicU64,
    last_read: Mutex<Option<segment::Segment>>,
}

/// A finalized block and the effects of executing it.
#[derive(Clone, Copy, Debug)]
pub struct BlockRecord<'a> {
    pub block: &'a Block,
    pub parent: &'a State,
    pub execution: &'a Execution,
    /// [`State::root`] after the block.
    pub root: Hash,
    /// The time when this validator executed it, in Unix ms.
    pub executed_ms: u64,
    /// A certificate that finalizes it, if this validator has one.
    pub proof: Option<&'a Certificate>,
}

impl ValidatorStore {
    /// Opens or creates the file of the chain with this id.
    pub fn open(path: &Path, chain_id: u64) -> Result<Self, StorageError> {
        let store = Self::open_damaged(path, chain_id)?;
        schema::complete(&store.lock())?;
        Ok(store)
    }

    /// Opens a file of the chain with this id to read as much as possible. Tables may be missing.
    pub fn open_damaged(path: &Path, chain_id: u64) -> Result<Self, StorageError> {
        Self::with(Connection::open(path)?, chain_id)
    }

    /// A store in memory, for the simulator.
    pub fn in_memory(chain_id: u64) -> Result<Self, StorageError> {
        Self::with(Connection::open_in_memory()?, chain_id)
    }

    fn with(connection: Connection, chain_id: u64) -> Result<Self, StorageError> {
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

    /// Sets the limit beyond which the oldest blocks are dropped as new ones come.
    pub fn keeping(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// The first block that is kept together with its parent.
    pub fn kept_from(&self) -> Height {
        Height::new(self.kept_from.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic under the lock rolled its transaction back, so the file is unchanged.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StorageError> {
        Ok(self.lock().prepare_cached(sql)?.query_row(values, read).optional()?)
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StorageError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_map(values, read)?.collect::<Result<_, _>>()?)
    }

    /// Writes a copy of the file, as of now, to a path that must not exist.
    pub fn copy(&self, to: &Path) -> Result<(), StorageError> {
        self.lock().execute("VACUUM INTO ?", params![to.to_string_lossy()])?;
        Ok(())
    }

    /// The faults that SQLite finds in the file's pages and indexes: one line each, up to SQLite's
    /// limit.
    pub fn integrity(&self) -> Result<Vec<String>, StorageError> {
        Ok(integrity(&self.lock())?)
    }

    /// Makes the stored blocks survive a power failure. Before that, the newest blocks may be lost.
    pub fn sync(&self) -> Result<(), StorageError> {
        self.lock().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }

    pub fn head(&self) -> Result<Option<(Height, Hash)>, StorageError> {
        let sql = "SELECT height, hash FROM block ORDER BY height DESC LIMIT 1";
        self.row(sql, [], |row| Ok((columns::height(row, 0)?, columns::hash(row, 1)?)))
    }

    /// All effects in one transaction; does nothing if the block is already stored.
    pub fn commit(&self, record: &BlockRecord<'_>) -> Result<(), StorageError> {
        let mut connection = self.lock();
        // A transaction that begins with a read cannot wait for another program's write.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
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

    pub fn load_snapshot(&self) -> Result<Option<State>, StorageError> {
        Ok(self.newest_snapshots(1)?.pop())
    }

    /// All snapshots, the newest first.
    pub fn snapshots(&self) -> Result<Vec<State>, StorageError> {
        self.newest_snapshots(u32::MAX)
    }

    fn newest_snapshots(&self, count: u32) -> Result<Vec<State>, StorageError> {
        let sql = "SELECT height, state FROM snapshot ORDER BY height DESC LIMIT ?";
        let rows: Vec<(u64, Vec<u8>)> =
            self.rows(sql, [count], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let state = |(height, bytes): (u64, Vec<u8>)| {
            let corrupt = |error| StorageError::Corrupt { record: "snapshot", height, error };
            State::from_bytes(&bytes).map_err(corrupt)
        };
        rows.into_iter().map(state).collect()
    }
}

/// As [`ValidatorStore::integrity`], for any SQLite file.
pub fn integrity(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check(5)")?;
    let lines = statement.query_map([], |row| row.get(0))?;
    let lines = lines.collect::<Result<Vec<String>, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

fn insert(
    transaction: &rusqlite::Transaction<'_>,
    record: &BlockRecord<'_>,
) -> Result<(), StorageError> {
    let BlockRecord { block, execution, root, executed_ms, proof, .. } = record;
    let height = block.header.height.get();
    transaction
        .prepare_cached(
            "INSERT INTO block (height, hash, state_root, executed_ms, body, proof)
             VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            height,
            execution.state.head_hash().0,
            root.0,
            executed_ms,
            block.to_bytes(),
            proof.map(to_vec)
        ])?;
    let ended = ended::ended(record);
    effects::insert(transaction, record, &ended)?;
    index::IndexRows::new(&execution.events, &execution.receipts, &ended)
        .insert(transaction, height)?;
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
        // A waiting job is drawn in every block; only the last of those draws matters for
        // explanations.
        transaction
            .prepare_cached("DELETE FROM draw WHERE job_id = ? AND NOT found")?
            .execute(params![draw.job_id.0])?;
        let found = !draw.selection.committee.is_empty();
        statement.execute(params![draw.job_id.0, height, found, to_vec(draw)])?;
    }
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO result (job_id, height, runner, bytes) VALUES (?, ?, ?, ?)",
    )?;
    for (job_id, runner, bytes) in &execution.results {
        statement.execute(params![job_id.0, height, runner.0, bytes.as_slice()])?;
    }
    timers::insert_lane(transaction, record)?;
    insert_actor_log(transaction, record)
}

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
    let mut emitted: BTreeMap<Cause, Vec<&EventKind>> = BTreeMap::new();
    // Events without a cause that precede a `CallbackMade` event belong to that callback.
    let mut of_callback = Vec::new();
    for event in &execution.events {
        let timer = event.timer.map(Cause::Timer);
        let cause = timer.or(event.transaction.map(Cause::Transaction));
        match (cause, &event.kind) {
            (cause, kind @ (EventKind::ActorEmitted(_) | EventKind::PythonEmitted(_))) => {
                match cause {
                    Some(cause) => emitted.entry(cause).or_default().push(kind),
                    None => of_callback.push(kind),
                }
            }
            (_, EventKind::CallbackMade(made)) => {
                emitted.insert(Cause::Job(made.job_id), std::mem::take(&mut of_callback));
            }
            _ => {}
        }
    }
    let mut lines = 0_u64..;
    let mut insert = |actor: &Address, cause: Cause, kind, name: Option<&str>, body: &str| {
        let line = lines.next().expect("a block has fewer than 2^64 lines");
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
        for event in emitted.remove(&cause).unwrap_or_default() {
            let (actor, name, data) = match event {
                EventKind::ActorEmitted(ActorEmitted { actor, name, data }) => {
                    (actor, name, String::from_utf8_lossy(data).into_owned())
                }
                EventKind::PythonEmitted(PythonEmitted { actor, name, data, .. }) => {
                    let decoded = cbor::decode(data).ok().and_then(|value| value.to_json());
                    (actor, name, decoded.unwrap_or_else(|| format!("\"0x{}\"", hex::encode(data))))
                }
                _ => continue,
            };
            insert(actor, cause, "event", Some(name.as_str()), &data)?;
        }
        if let Some(error) = error {
            insert(&done.actor, cause, "error", None, error)?;
        }
    }
    Ok(())
}

/// The actor runs of a block, in order, each with its cause, its effects and the error that ended a
/// call.
fn runs<'a>(
    block: &'a Block,
    execution: &'a Execution,
) -> impl Iterator<Item = (Cause, &'a ActorReceipt, Option<&'a str>)> {
    let transactions =
        block.transactions.iter().zip(&execution.receipts).filter_map(|(signed, receipt)| {
            // A failed deployment leaves no actor to log the error for.
            let error = match (&signed.transaction.payload, &receipt.status) {
                (Payload::CallActor(_), ReceiptStatus::Failed(error)) => Some(error.as_str()),
                _ => None,
            };
            Some((Cause::Transaction(receipt.transaction), receipt.actor.as_ref()?, error))
        });
    let fires = execution
        .fires
        .iter()
        .map(|fire| (Cause::Timer(fire.timer_id), &fire.outcome, fire.status.error()));
    // Only under that policy do timers run before the transactions.
    let first = execution.lane.policy == Policy::GbaAuction;
    let (mut runs, fires): (Vec<_>, Vec<_>) = (transactions.collect(), fires.collect());
    runs.splice(if first { 0..0 } else { runs.len()..runs.len() }, fires);
    let told = execution.told.iter();
    let told = told.map(|told| (Cause::Job(told.job_id), &told.outcome, told.error.as_deref()));
    runs.into_iter().chain(told)
}

/// Inserts a snapshot and drops all others except the previous one.
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
