//! The tables, and the checks on opening a file.

use super::StorageError;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// The version of the tables below and of the records in them; another version is refused.
pub(super) const FORMAT: i64 = 12;

const TABLES: &str = "
-- kept_from: the first block that is kept with its parent; 1 until blocks are dropped.
CREATE TABLE meta (chain_id BLOB NOT NULL, kept_from INTEGER NOT NULL);
-- The newest finalized blocks. body: the block. proof: a certificate of it that this validator held,
-- which need not be the one on the chain.
CREATE TABLE block (
  height INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, state_root BLOB NOT NULL,
  executed_ms INTEGER NOT NULL, body BLOB NOT NULL, proof BLOB);
-- Older blocks, consecutive ones in one row, with their rows of presence and lane, and with their
-- proofs where they have no presence: a frame of Zstandard with a checksum over deterministic CBOR.
CREATE TABLE segment (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, body BLOB NOT NULL);
-- Heights of the blocks in segments. prefix: the first 8 bytes of the block's hash, big-endian.
CREATE TABLE archived (
  prefix INTEGER NOT NULL, height INTEGER NOT NULL, PRIMARY KEY (prefix, height)) WITHOUT ROWID;
-- The position of each transaction, and its receipt.
CREATE TABLE tx (
  hash BLOB PRIMARY KEY, height INTEGER NOT NULL, position INTEGER NOT NULL,
  receipt BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX tx_height ON tx (height, position);
CREATE TABLE event (
  height INTEGER NOT NULL, position INTEGER NOT NULL, kind TEXT NOT NULL, job_id BLOB,
  timer_id BLOB, body BLOB NOT NULL, PRIMARY KEY (height, position)) WITHOUT ROWID;
CREATE INDEX event_kind ON event (kind, height);
CREATE INDEX event_job ON event (job_id) WHERE job_id IS NOT NULL;
-- The blocks that scheduled and ended a timer are known; this index finds the events in between.
CREATE INDEX event_timer ON event (timer_id)
  WHERE kind IN ('GbaFailed', 'TimerCancelled', 'TimerExtended', 'TimerGasClamped');
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
-- Every timer that a block left in the queue. seq: its serial number on the chain. payer: the account
-- that pays for its fire. height: when it is due. status: waiting, fired, failed, expired, cancelled
-- or insufficient_funds. ended_at: the block; position: of its fire in that block. body: its record,
-- without the payload and with the handler that it calls. Ids are random hashes, so only one index is
-- in their order: a block changes few pages.
CREATE TABLE timer (
  seq INTEGER PRIMARY KEY, timer_id BLOB NOT NULL UNIQUE, actor BLOB NOT NULL,
  payer BLOB NOT NULL, scheduled_at INTEGER NOT NULL, height INTEGER NOT NULL, status TEXT NOT NULL,
  ended_at INTEGER, position INTEGER, body BLOB NOT NULL);
CREATE INDEX timer_waiting ON timer (height) WHERE ended_at IS NULL;
CREATE INDEX timer_waiting_of ON timer (actor, height) WHERE ended_at IS NULL;
CREATE INDEX timer_waiting_by ON timer (payer, height) WHERE ended_at IS NULL;
CREATE INDEX timer_ended ON timer (status, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX timer_ended_of ON timer (actor, status, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX timer_ended_by ON timer (payer, status, ended_at) WHERE ended_at IS NOT NULL;
-- Non-empty payloads for timers' handlers: each is written once and read for one timer.
CREATE TABLE timer_payload (seq INTEGER PRIMARY KEY, payload BLOB NOT NULL);
-- The timers that fired in each block, and their receipts.
CREATE TABLE fire (
  height INTEGER NOT NULL, position INTEGER NOT NULL, timer_id BLOB NOT NULL,
  receipt BLOB NOT NULL, PRIMARY KEY (height, position)) WITHOUT ROWID;
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
