//! The tables, and the checks on opening a file.

use super::StorageError;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// The version of the tables below and of the records in them; another version is refused.
pub(super) const FORMAT: i64 = 13;

const TABLES: &str = "
-- kept_from: the first block that is kept with its parent; 1 until blocks are dropped.
CREATE TABLE meta (chain_id BLOB NOT NULL, kept_from INTEGER NOT NULL);
-- The newest finalized blocks. body: the block. proof: a certificate of it that this validator held,
-- which need not be the one on the chain.
CREATE TABLE block (
  height INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, state_root BLOB NOT NULL,
  executed_ms INTEGER NOT NULL, body BLOB NOT NULL, proof BLOB);
-- Older blocks, consecutive ones in one row, with their rows of presence and lane, with short rows of
-- effects, and with their proofs where they have no presence: a frame of Zstandard with a checksum
-- over deterministic CBOR.
CREATE TABLE segment (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, body BLOB NOT NULL);
-- Heights of the blocks in segments. prefix: the first 8 bytes of the block's hash as a big-endian
-- integer, minus 2^63.
CREATE TABLE archived (
  prefix INTEGER NOT NULL, height INTEGER NOT NULL, PRIMARY KEY (prefix, height)) WITHOUT ROWID;
-- Events, receipts of transactions and fires, and ended timers of each block, except short ones of
-- blocks in segments: deterministic CBOR, in a frame of Zstandard with a checksum if it is long.
CREATE TABLE effects (height INTEGER PRIMARY KEY, body BLOB NOT NULL);
-- The tables up to `timer_ended` index them. prefix: as above, of a transaction's hash or a timer's
-- id. position: of the receipt or the ended timer in its block.
CREATE TABLE tx (
  prefix INTEGER NOT NULL, height INTEGER NOT NULL, position INTEGER NOT NULL,
  PRIMARY KEY (prefix, height, position)) WITHOUT ROWID;
-- The number of events of a kind in a block, except the kind that every block has.
CREATE TABLE event_kind (
  kind TEXT NOT NULL, height INTEGER NOT NULL, events INTEGER NOT NULL,
  PRIMARY KEY (kind, height)) WITHOUT ROWID;
CREATE TABLE event_job (
  job_id BLOB NOT NULL, height INTEGER NOT NULL, PRIMARY KEY (job_id, height)) WITHOUT ROWID;
-- Blocks that extended, clamped or cancelled a timer, or in which its agent failed. Those that
-- scheduled and ended it are known from its record.
CREATE TABLE event_timer (
  timer_id BLOB NOT NULL, height INTEGER NOT NULL, PRIMARY KEY (timer_id, height)) WITHOUT ROWID;
-- Timers that a block left in the queue and that have ended; the state has those that wait.
CREATE TABLE timer (
  prefix INTEGER NOT NULL, height INTEGER NOT NULL, position INTEGER NOT NULL,
  PRIMARY KEY (prefix, height, position)) WITHOUT ROWID;
-- Blocks that ended timers. of: nothing for all timers, `a` and the actor, or `p` and the payer.
-- status: fired, failed, expired, cancelled or insufficient_funds.
CREATE TABLE timer_ended (
  of BLOB NOT NULL, status TEXT NOT NULL, height INTEGER NOT NULL,
  PRIMARY KEY (of, status, height)) WITHOUT ROWID;
-- The canonical certificate of each block of `block` that has one, and P(H) as derived from it.
-- registry: the addresses of the runners, in the order of the bits.
CREATE TABLE presence (
  height INTEGER PRIMARY KEY, embedded_at INTEGER NOT NULL, certificate BLOB NOT NULL,
  bit_length INTEGER NOT NULL, bitmap BLOB NOT NULL, registry BLOB NOT NULL);
-- The draws of each job that found a committee, one per attempt, and the last draw if it found none.
CREATE TABLE draw (
  job_id BLOB NOT NULL, height INTEGER NOT NULL, found INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (job_id, height)) WITHOUT ROWID;
CREATE INDEX draw_height ON draw (height);
CREATE TABLE result (
  job_id BLOB PRIMARY KEY, height INTEGER NOT NULL, runner BLOB NOT NULL, bytes BLOB NOT NULL);
CREATE INDEX result_height ON result (height);
-- Lines and events of actors and the errors of their calls, numbered within a block.
-- tx, timer, job: the one that made the actor run. kind: log, event or error. name: the event's.
-- body: text; JSON for an event.
CREATE TABLE actor_log (
  actor BLOB NOT NULL, height INTEGER NOT NULL, line INTEGER NOT NULL, tx BLOB, timer BLOB,
  job BLOB, kind TEXT NOT NULL, name TEXT, body TEXT NOT NULL,
  PRIMARY KEY (actor, height, line)) WITHOUT ROWID;
CREATE INDEX actor_log_height ON actor_log (height);
-- The report of the timer lane of each block in `block`. basefee_cycle: 16 bytes, big-endian.
-- cap: cycles above which a timer was not attempted.
CREATE TABLE lane (
  height INTEGER PRIMARY KEY, basefee_cycle BLOB NOT NULL, cap INTEGER NOT NULL,
  report BLOB NOT NULL);
CREATE TABLE snapshot (height INTEGER PRIMARY KEY, state BLOB NOT NULL);
";

/// Creates the tables in a new file, or checks that an existing one has this format and chain.
pub(super) fn prepare(connection: &Connection, chain_id: u64) -> Result<(), StorageError> {
    // NORMAL syncs at checkpoints only: a power failure may lose the newest blocks of this file,
    // but consensus' archives are synced and bring them back.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -1024; PRAGMA wal_autocheckpoint = 256;",
    )?;
    let format: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if format == 0 {
        let create = format!(
            "BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {FORMAT};
             INSERT INTO meta VALUES (x'{chain_id:016x}', 1); COMMIT;"
        );
        connection.execute_batch(&create)?;
        return Ok(());
    }
    if format != FORMAT {
        return Err(StorageError::Format { got: format, expected: FORMAT });
    }
    let got: [u8; 8] = connection.query_row("SELECT chain_id FROM meta", [], |row| row.get(0))?;
    let got = u64::from_be_bytes(got);
    if got != chain_id {
        return Err(StorageError::Chain { got, expected: chain_id });
    }
    Ok(())
}

/// Checks that all tables and indexes of this format exist with the right definition. Additional
/// ones are allowed.
pub(super) fn complete(connection: &Connection) -> Result<(), StorageError> {
    let new = Connection::open_in_memory()?;
    new.execute_batch(TABLES)?;
    let got = definitions(connection)?;
    match definitions(&new)?.into_iter().find(|(name, sql)| got.get(name) != Some(sql)) {
        Some((name, _)) => Err(StorageError::Definition { name }),
        None => Ok(()),
    }
}

/// The SQL definition of each table and index; `None` for SQLite's own indexes.
fn definitions(connection: &Connection) -> Result<BTreeMap<String, Option<String>>, StorageError> {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
