//! The stores, behind one interface.

use super::{
    StorageFailure,
    series::{Record, Series, key_of},
};
use cowboy_devnet::storage::ValidatorStore;
use cowboy_engine::primitives::Height;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use redb::{Durability, ReadableDatabase as _, TableDefinition};
use rusqlite::{Connection, TransactionBehavior, params, params_from_iter};
use std::path::Path;

/// What a committed block survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// The end of the process at any moment; a power failure may take the newest blocks. So are
    /// our validators' stores.
    Kill,
    /// A power failure: the disk is synced for every block.
    PowerFailure,
}

/// A store and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The store of our validators, with all of its work.
    Ours,
    /// Its rows in its tables, written by SQL with its pragmas.
    Sqlite(Survives),
    Redb(Survives),
    Fjall(Survives),
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::Ours,
        Self::Sqlite(Survives::Kill),
        Self::Fjall(Survives::Kill),
        Self::Redb(Survives::Kill),
        Self::Sqlite(Survives::PowerFailure),
        Self::Fjall(Survives::PowerFailure),
        Self::Redb(Survives::PowerFailure),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Sqlite(Survives::Kill) => "sqlite NORMAL",
            Self::Sqlite(Survives::PowerFailure) => "sqlite FULL",
            Self::Redb(Survives::Kill) => "redb None",
            Self::Redb(Survives::PowerFailure) => "redb Immediate",
            Self::Fjall(Survives::Kill) => "fjall Buffer",
            Self::Fjall(Survives::PowerFailure) => "fjall SyncData",
        }
    }

    /// What the settings mean.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ours => {
                "ValidatorStore::commit: encodes and compresses, writes and later archives; \
                 write-ahead log, synced about every MiB; survives kill -9"
            }
            Self::Sqlite(Survives::Kill) => {
                "the same rows, encoded before, in the same tables: synchronous = NORMAL; \
                 survives kill -9"
            }
            Self::Sqlite(Survives::PowerFailure) => {
                "synchronous = FULL: the log is synced for every block; survives a power failure"
            }
            Self::Redb(Survives::Kill) => {
                "Durability::None, and Immediate once per MiB: less than ours, kill -9 may take \
                 the blocks since the last Immediate"
            }
            Self::Redb(Survives::PowerFailure) => {
                "Durability::Immediate: synced for every block; survives a power failure"
            }
            Self::Fjall(Survives::Kill) => {
                "PersistMode::Buffer: the log is given to the system; survives kill -9"
            }
            Self::Fjall(Survives::PowerFailure) => {
                "PersistMode::SyncData: the log is synced for every block; survives a power \
                 failure"
            }
        }
    }

    /// Opens a new store in a folder.
    pub fn open<'a>(
        self,
        folder: &Path,
        series: &'a Series,
    ) -> Result<Box<dyn Store + 'a>, StorageFailure> {
        Ok(match self {
            Self::Ours => {
                let path = folder.join("ours.db");
                let store = ValidatorStore::open(&path, series.genesis.chain_id())?;
                Box::new(Ours { store, series })
            }
            Self::Sqlite(survives) => {
                let connection = Connection::open(folder.join("sqlite.db"))?;
                Box::new(Sqlite::create(connection, series, survives)?)
            }
            Self::Redb(survives) => {
                let database = redb::Database::create(folder.join("redb")).map_err(redb_failed)?;
                Box::new(Redb { database, series, survives, unsynced: 0 })
            }
            Self::Fjall(survives) => Box::new(Fjall::create(folder, series, survives)?),
        })
    }
}

/// A store of blocks.
pub trait Store {
    /// Writes a block of the series in one transaction.
    fn commit(&mut self, index: usize) -> Result<(), StorageFailure>;
    /// Reads the body and the effects of the block at a height; returns their bytes, or 1 when
    /// they are decoded.
    fn read(&self, height: u64) -> Result<usize, StorageFailure>;
    /// Makes everything survive a power failure, and closes the files.
    fn close(self: Box<Self>) -> Result<(), StorageFailure>;
}

struct Ours<'a> {
    store: ValidatorStore,
    series: &'a Series,
}

impl Store for Ours<'_> {
    fn commit(&mut self, index: usize) -> Result<(), StorageFailure> {
        Ok(self.store.commit(&self.series.record(index))?)
    }

    fn read(&self, height: u64) -> Result<usize, StorageFailure> {
        let height = Height::new(height);
        let body = self.store.block(height)?;
        let fires = self.store.fires(height)?;
        Ok(usize::from(body.is_some()) + fires.len())
    }

    fn close(self: Box<Self>) -> Result<(), StorageFailure> {
        Ok(self.store.sync()?)
    }
}

struct Sqlite<'a> {
    connection: Connection,
    series: &'a Series,
    statements: Vec<String>,
}

impl<'a> Sqlite<'a> {
    /// Pragmas and cached statements are those of `cowboy_devnet::storage`.
    fn create(
        connection: Connection,
        series: &'a Series,
        survives: Survives,
    ) -> Result<Self, StorageFailure> {
        let synchronous = match survives {
            Survives::Kill => "NORMAL",
            Survives::PowerFailure => "FULL",
        };
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
             PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1024;
             PRAGMA wal_autocheckpoint = 256; {}",
            series.schema
        ))?;
        let statements = series.tables.iter().map(|table| table.insert()).collect();
        Ok(Self { connection, series, statements })
    }
}

impl Store for Sqlite<'_> {
    fn commit(&mut self, index: usize) -> Result<(), StorageFailure> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        for Record { table, values, .. } in &self.series.rows[index] {
            // SQLite keeps the index itself.
            if !values.is_empty() {
                let mut statement = transaction.prepare_cached(&self.statements[*table])?;
                statement.execute(params_from_iter(values))?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, height: u64) -> Result<usize, StorageFailure> {
        let mut bytes = 0;
        for table in ["block", "effects"] {
            let sql = format!("SELECT body FROM {table} WHERE height = ?");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let body: Vec<u8> = statement.query_row(params![height], |row| row.get(0))?;
            bytes += body.len();
        }
        Ok(bytes)
    }

    fn close(self: Box<Self>) -> Result<(), StorageFailure> {
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        self.connection.close().map_err(|(_, error)| StorageFailure::Sqlite(error))
    }
}

/// Bytes between two commits of redb that sync, when not all do: as many as our store writes
/// between two checkpoints.
const UNSYNCED: usize = 256 * 4096;

struct Redb<'a> {
    database: redb::Database,
    series: &'a Series,
    survives: Survives,
    /// Bytes since the last commit that synced.
    unsynced: usize,
}

fn redb_failed(error: impl Into<redb::Error>) -> StorageFailure {
    StorageFailure::Redb(Box::new(error.into()))
}

fn definition(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

impl Store for Redb<'_> {
    fn commit(&mut self, index: usize) -> Result<(), StorageFailure> {
        let rows = &self.series.rows[index];
        self.unsynced += rows.iter().map(|row| row.key.len() + row.value.len()).sum::<usize>();
        let mut transaction = self.database.begin_write().map_err(redb_failed)?;
        if self.survives == Survives::Kill && self.unsynced < UNSYNCED {
            transaction.set_durability(Durability::None).map_err(redb_failed)?;
        } else {
            self.unsynced = 0;
        }
        // Rows of a table follow one another, apart from those of the index of hashes.
        for rows in rows.chunk_by(|one, next| one.table == next.table) {
            let name = &self.series.tables[rows[0].table].name;
            let mut table = transaction.open_table(definition(name)).map_err(redb_failed)?;
            for row in rows {
                table.insert(row.key.as_slice(), row.value.as_slice()).map_err(redb_failed)?;
            }
        }
        transaction.commit().map_err(redb_failed)
    }

    fn read(&self, height: u64) -> Result<usize, StorageFailure> {
        let transaction = self.database.begin_read().map_err(redb_failed)?;
        let mut bytes = 0;
        for name in ["block", "effects"] {
            let table = transaction.open_table(definition(name)).map_err(redb_failed)?;
            let value = table.get(key_of(height).as_slice()).map_err(redb_failed)?;
            let value = value.ok_or(StorageFailure::Missing(height))?;
            bytes += value.value().to_vec().len();
        }
        Ok(bytes)
    }

    fn close(self: Box<Self>) -> Result<(), StorageFailure> {
        let transaction = self.database.begin_write().map_err(redb_failed)?;
        transaction.commit().map_err(redb_failed)?;
        self.database.close().map_err(redb_failed)
    }
}

struct Fjall<'a> {
    database: Database,
    /// In the order of the series' tables.
    keyspaces: Vec<Keyspace>,
    series: &'a Series,
    mode: PersistMode,
}

impl<'a> Fjall<'a> {
    fn create(
        folder: &Path,
        series: &'a Series,
        survives: Survives,
    ) -> Result<Self, StorageFailure> {
        let database = Database::builder(folder.join("fjall")).open()?;
        let keyspaces = series
            .tables
            .iter()
            .map(|table| database.keyspace(&table.name, KeyspaceCreateOptions::default));
        let keyspaces = keyspaces.collect::<Result<_, _>>()?;
        let mode = match survives {
            Survives::Kill => PersistMode::Buffer,
            Survives::PowerFailure => PersistMode::SyncData,
        };
        Ok(Self { database, keyspaces, series, mode })
    }
}

impl Store for Fjall<'_> {
    fn commit(&mut self, index: usize) -> Result<(), StorageFailure> {
        let mut batch = self.database.batch().durability(Some(self.mode));
        for row in &self.series.rows[index] {
            batch.insert(&self.keyspaces[row.table], row.key.as_slice(), row.value.as_slice());
        }
        Ok(batch.commit()?)
    }

    fn read(&self, height: u64) -> Result<usize, StorageFailure> {
        let mut bytes = 0;
        for name in ["block", "effects"] {
            let value = self.keyspaces[self.series.table(name)?].get(key_of(height))?;
            bytes += value.ok_or(StorageFailure::Missing(height))?.to_vec().len();
        }
        Ok(bytes)
    }

    fn close(self: Box<Self>) -> Result<(), StorageFailure> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}
