//! A chain's blocks with the rows that a validator's store writes for each.

use super::StorageFailure;
use crate::{RUNNERS, VALIDATORS, chain};
use cowboy_devnet::{
    chain::ledger::ExecutedBlock,
    sample,
    storage::{BlockRecord, ValidatorStore},
};
use cowboy_engine::chain::{Genesis, State};
use rusqlite::{
    Connection, params,
    types::{Value, ValueRef},
};
use std::{path::Path, sync::Arc};

/// Tables that hold rows of other blocks than the one being stored: they follow from the others.
const DERIVED: [&str; 3] = ["segment", "archived", "snapshot"];
/// The index on the hashes of blocks, as a table of its own for stores without indexes.
pub const BY_HASH: &str = "block_hash";

/// A table of the store, by the names of its columns.
#[derive(Debug)]
pub struct Table {
    pub name: String,
    columns: Vec<Column>,
}

#[derive(Debug)]
struct Column {
    name: String,
    /// Whether it is a part of the primary key.
    key: bool,
}

impl Table {
    pub fn insert(&self) -> String {
        let values = vec!["?"; self.columns.len()].join(", ");
        format!("INSERT INTO {} VALUES ({values})", self.name)
    }
}

/// A row, for SQLite and for stores of keys and values.
pub struct Record {
    /// The index in [`Series::tables`].
    pub table: usize,
    /// Its columns; empty for a row of [`BY_HASH`].
    pub values: Vec<Value>,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Consecutive blocks from the first on.
pub struct Series {
    pub name: &'static str,
    pub genesis: State,
    pub blocks: Vec<Arc<ExecutedBlock>>,
    /// The number of blocks before those that count.
    pub before: usize,
    pub tables: Vec<Table>,
    /// What creates the tables and their indexes.
    pub schema: String,
    /// The rows of each block.
    pub rows: Vec<Vec<Record>>,
}

impl Series {
    /// Empty blocks of four validators.
    pub fn empty(count: u64) -> Result<Self, StorageFailure> {
        let mut blocks = Vec::new();
        let transfers = chain::Transfers::NONE;
        chain::real_time(VALIDATORS, transfers, count, |block| blocks.push(block.clone()));
        Self::of("empty blocks", &sample::genesis(VALIDATORS, RUNNERS), blocks, 1)
    }

    /// Blocks in which 1,000 timers of an actor fire, write a counter and schedule the next.
    pub fn fires(count: u64) -> Result<Self, StorageFailure> {
        let mut blocks = Vec::new();
        chain::fires(count, |block| blocks.push(block.clone()));
        let before = blocks.len() - usize::try_from(count).unwrap_or(usize::MAX).min(blocks.len());
        Self::of("blocks of 1,000 fires", &chain::setup_for_fires().genesis, blocks, before)
    }

    fn of(
        name: &'static str,
        genesis: &Genesis,
        blocks: Vec<Arc<ExecutedBlock>>,
        before: usize,
    ) -> Result<Self, StorageFailure> {
        let genesis = genesis.state()?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("rows.db");
        let mut series = Self {
            name,
            genesis,
            blocks,
            before,
            tables: Vec::new(),
            schema: String::new(),
            rows: Vec::new(),
        };
        let store = ValidatorStore::open(&path, series.genesis.chain_id())?;
        let reader = Reader::new(&path)?;
        series.schema = reader.schema()?;
        series.tables = reader.tables()?;
        for index in 0..series.blocks.len() {
            store.commit(&series.record(index))?;
            let rows =
                reader.rows(&series.tables, series.blocks[index].block.header.height.get())?;
            series.rows.push(rows);
        }
        Ok(series)
    }

    /// What a validator gives its store for a block.
    pub fn record(&self, index: usize) -> BlockRecord<'_> {
        let executed = &self.blocks[index];
        let before = index.checked_sub(1).map(|before| &self.blocks[before].execution.state);
        // A validator has a certificate of its own, of the same size as the one in a later block.
        let next = self.blocks.get(index + 1).map(|next| &next.block.certificates);
        let proof = next.and_then(|certificates| {
            certificates.iter().find(|certificate| certificate.block == executed.hash)
        });
        BlockRecord {
            block: &executed.block,
            parent: before.unwrap_or(&self.genesis),
            execution: &executed.execution,
            root: executed.root,
            executed_ms: executed.executed_ms,
            proof,
        }
    }

    /// Index of the table with this name.
    pub fn table(&self, name: &'static str) -> Result<usize, StorageFailure> {
        let found = self.tables.iter().position(|table| table.name == name);
        found.ok_or(StorageFailure::Table(name))
    }

    /// Rows, and bytes of their keys and values, of an average block that counts.
    pub fn average(&self) -> (f64, f64) {
        let rows = &self.rows[self.before..];
        let bytes = |row: &Record| row.key.len() + row.value.len();
        let total: usize = rows.iter().flatten().map(bytes).sum();
        let count: usize = rows.iter().map(Vec::len).sum();
        (count as f64 / rows.len() as f64, total as f64 / rows.len() as f64)
    }
}

/// Reads what the store has written.
struct Reader(Connection);

impl Reader {
    fn new(path: &Path) -> Result<Self, StorageFailure> {
        Ok(Self(Connection::open(path)?))
    }

    fn schema(&self) -> Result<String, StorageFailure> {
        let sql = "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL";
        let mut statement = self.0.prepare(sql)?;
        let parts = statement.query_map([], |row| row.get(0))?;
        Ok(parts.collect::<Result<Vec<String>, _>>()?.concat())
    }

    /// All tables with a row for each block or more, and [`BY_HASH`].
    fn tables(&self) -> Result<Vec<Table>, StorageFailure> {
        let mut names = self.0.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
        let names = names.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        let mut tables = Vec::new();
        for name in names.into_iter().filter(|name| !DERIVED.contains(&name.as_str())) {
            let mut statement = self.0.prepare("SELECT name, pk FROM pragma_table_info(?)")?;
            let column = |row: &rusqlite::Row<'_>| {
                Ok(Column { name: row.get(0)?, key: row.get::<_, u32>(1)? > 0 })
            };
            let columns = statement.query_map(params![name], column)?;
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            if columns.iter().any(|column| column.name == "height") {
                tables.push(Table { name, columns });
            }
        }
        tables.push(Table { name: BY_HASH.to_owned(), columns: Vec::new() });
        Ok(tables)
    }

    fn rows(&self, tables: &[Table], height: u64) -> Result<Vec<Record>, StorageFailure> {
        let mut records = Vec::new();
        let stored = tables.iter().enumerate().filter(|(_, table)| table.name != BY_HASH);
        for (index, table) in stored {
            // A certificate is stored with the block that embeds it, under its own block's height.
            let of = if table.name == "presence" { "embedded_at" } else { "height" };
            let sql = format!("SELECT * FROM {} WHERE {of} = ?", table.name);
            let mut statement = self.0.prepare_cached(&sql)?;
            let mut rows = statement.query(params![height])?;
            while let Some(row) = rows.next()? {
                let (mut values, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
                for (at, column) in table.columns.iter().enumerate() {
                    let field = row.get_ref(at)?;
                    values.push(row.get(at)?);
                    if column.key {
                        put_key(&mut key, field);
                    } else {
                        put_value(&mut value, field);
                    }
                }
                if table.name == "block" {
                    let key = row.get("hash")?;
                    let value = height.to_be_bytes().to_vec();
                    let table = tables.len() - 1;
                    records.push(Record { table, values: Vec::new(), key, value });
                }
                records.push(Record { table: index, values, key, value });
            }
        }
        Ok(records)
    }
}

/// The key of a row with this height alone.
pub fn key_of(height: u64) -> Vec<u8> {
    let mut key = Vec::new();
    put_key(&mut key, ValueRef::Integer(height.cast_signed()));
    key
}

/// Integers in eight bytes, in the order of their values; texts and blobs after their length.
fn put_key(key: &mut Vec<u8>, field: ValueRef<'_>) {
    match field {
        ValueRef::Integer(number) => {
            key.extend((number.cast_unsigned() ^ (1 << 63)).to_be_bytes());
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            key.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
            key.extend(bytes);
        }
        ValueRef::Null | ValueRef::Real(_) => {}
    }
}

/// Integers in as few bytes as they need, everything after its length.
fn put_value(value: &mut Vec<u8>, field: ValueRef<'_>) {
    match field {
        ValueRef::Integer(number) => {
            let bytes = number.to_be_bytes();
            let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
            value.push((bytes.len() - zeros) as u8);
            value.extend(&bytes[zeros..]);
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            value.extend((bytes.len() as u32).to_be_bytes());
            value.extend(bytes);
        }
        ValueRef::Null | ValueRef::Real(_) => value.push(0),
    }
}
