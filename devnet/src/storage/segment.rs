//! Segments: older blocks, compressed, many to a row.
//!
//! Content that blocks have in common takes almost no room in a segment, and a block's certificate
//! is stored once, although the next block embeds it. An empty block costs only its hashes and
//! signatures.

use super::{
    StorageError, ValidatorStore,
    columns::{self, prefix, signed},
    effects, index,
};
use cowboy_engine::{
    primitives::{
        Hash, Height,
        codec::{DecodeError, from_slice, to_vec},
    },
    record,
};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use std::sync::Arc;

pub(super) const BLOCKS: u64 = 128;
/// Size in bytes, before compression, beyond which no block is added to a segment.
const BYTES: usize = 4 << 20;
/// The maximum size in bytes of a decompressed segment: [`BYTES`] and the largest block.
const MAX_SEGMENT_BYTES: usize = 64 << 20;
/// Compresses well and is about as fast as the disk, because a chain's blocks come one by one.
const LEVEL: i32 = 9;
/// Minimum number of newest blocks that keep rows of their own; up to [`BLOCKS`] more may.
pub(super) const RECENT: u64 = 512;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archived {
    pub(super) hash: Hash,
    pub(super) state_root: Hash,
    pub(super) executed_ms: u64,
    pub(super) body: Vec<u8>,
    pub(super) proof: Option<Vec<u8>>,
    pub(super) presence: Option<PresenceRow>,
    pub(super) lane: Option<LaneRow>,
    /// Its row of `effects`, if that is short.
    pub(super) effects: Option<Vec<u8>>,
}

/// The columns of `presence` except its height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PresenceRow {
    pub(super) embedded_at: Height,
    pub(super) certificate: Vec<u8>,
    pub(super) bit_length: u32,
    pub(super) bitmap: Vec<u8>,
    pub(super) registry: Vec<u8>,
}

/// The columns of `lane` except its height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LaneRow {
    pub(super) basefee_cycle: [u8; 16],
    pub(super) cap: u64,
    pub(super) report: Vec<u8>,
}

record!(Archived { hash, state_root, executed_ms, body, proof, presence, lane, effects });
record!(PresenceRow { embedded_at, certificate, bit_length, bitmap, registry });
record!(LaneRow { basefee_cycle, cap, report });

impl PresenceRow {
    pub(super) const SQL: &str = "SELECT embedded_at, certificate, bit_length, bitmap, registry
        FROM presence WHERE height = ?";

    /// Reads the five columns in their order.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            embedded_at: columns::height(row, 0)?,
            certificate: row.get(1)?,
            bit_length: row.get(2)?,
            bitmap: row.get(3)?,
            registry: row.get(4)?,
        })
    }
}

impl LaneRow {
    /// Reads the three columns in their order, starting with the column `at`.
    pub(super) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self { basefee_cycle: row.get(at)?, cap: row.get(at + 1)?, report: row.get(at + 2)? })
    }
}

impl Archived {
    fn size(&self) -> usize {
        let presence = self.presence.as_ref().map_or(0, |presence| {
            presence.certificate.len() + presence.bitmap.len() + presence.registry.len()
        });
        let effects = self.effects.as_ref().map_or(0, Vec::len);
        let lane = self.lane.as_ref().map_or(0, |lane| lane.report.len());
        256 + self.body.len() + presence + effects + lane
    }
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    first: u64,
    blocks: Arc<Vec<Archived>>,
}

impl Segment {
    fn at(&self, height: Height) -> Option<&Archived> {
        let index = height.get().checked_sub(self.first)?;
        self.blocks.get(usize::try_from(index).ok()?)
    }
}

fn pack(blocks: &Vec<Archived>) -> Result<Vec<u8>, StorageError> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    Ok(compressor.compress(&to_vec(blocks))?)
}

fn unpack(first: u64, body: &[u8]) -> Result<Segment, StorageError> {
    let corrupt = |error| StorageError::Corrupt { record: "segment", height: first, error };
    let bytes = zstd::bulk::decompress(body, MAX_SEGMENT_BYTES)
        .map_err(|error| corrupt(DecodeError::Malformed(error.to_string())))?;
    let blocks = from_slice(&bytes).map_err(corrupt)?;
    Ok(Segment { first, blocks: Arc::new(blocks) })
}

pub(super) fn archive(transaction: &Transaction<'_>, head: Height) -> Result<(), StorageError> {
    let oldest = "SELECT min(height) FROM block";
    let oldest: Option<u64> = transaction.query_row(oldest, [], |row| row.get(0))?;
    let Some(mut first) = oldest else { return Ok(()) };
    while first + BLOCKS + RECENT <= head.get() + 1 {
        let mut blocks = Vec::new();
        let mut bytes = 0;
        for height in first..first + BLOCKS {
            let block = row(transaction, Height::new(height))?;
            bytes += block.size();
            blocks.push(block);
            if bytes >= BYTES {
                break;
            }
        }
        let last = first + blocks.len() as u64 - 1;
        transaction
            .prepare_cached("INSERT INTO segment (first, last, body) VALUES (?, ?, ?)")?
            .execute(params![first, last, pack(&blocks)?])?;
        let mut index =
            transaction.prepare_cached("INSERT INTO archived (prefix, height) VALUES (?, ?)")?;
        for (height, block) in (first..).zip(&blocks) {
            index.execute(params![prefix(&block.hash), height])?;
        }
        for table in ["block", "presence", "lane"] {
            let delete = format!("DELETE FROM {table} WHERE height BETWEEN ? AND ?");
            transaction.prepare_cached(&delete)?.execute(params![first, last])?;
        }
        let mut moved = transaction.prepare_cached("DELETE FROM effects WHERE height = ?")?;
        for (height, _) in (first..).zip(&blocks).filter(|(_, block)| block.effects.is_some()) {
            moved.execute(params![height])?;
        }
        first = last + 1;
    }
    Ok(())
}

/// Removes a segment, and the effects of its blocks.
pub(super) fn remove(
    transaction: &Transaction<'_>,
    (first, last): (u64, u64),
) -> Result<(), StorageError> {
    let (_, body) = find(transaction, Height::new(first))?
        .ok_or(StorageError::Sqlite(rusqlite::Error::QueryReturnedNoRows))?;
    let mut unindex =
        transaction.prepare_cached("DELETE FROM archived WHERE prefix = ? AND height = ?")?;
    for (height, block) in (first..).zip(unpack(first, &body)?.blocks.iter()) {
        unindex.execute(params![prefix(&block.hash), height])?;
        let height = Height::new(height);
        let long = effects::row(transaction, height)?;
        if let Some(body) = long.as_ref().or(block.effects.as_ref()) {
            index::remove(transaction, height, body)?;
        }
    }
    for (table, key) in [("segment", "first"), ("effects", "height")] {
        let delete = format!("DELETE FROM {table} WHERE {key} BETWEEN ? AND ?");
        transaction.prepare_cached(&delete)?.execute(params![first, last])?;
    }
    Ok(())
}

fn row(transaction: &Transaction<'_>, height: Height) -> Result<Archived, StorageError> {
    let at = params![signed(height)];
    let presence = transaction
        .prepare_cached(PresenceRow::SQL)?
        .query_row(at, PresenceRow::read)
        .optional()?;
    let lane = transaction
        .prepare_cached("SELECT basefee_cycle, cap, report FROM lane WHERE height = ?")?
        .query_row(at, |row| LaneRow::read(row, 0))
        .optional()?;
    let effects = effects::short(transaction, height)?;
    Ok(transaction
        .prepare_cached(
            "SELECT hash, state_root, executed_ms, body, proof FROM block WHERE height = ?",
        )?
        .query_row(at, |row| {
            Ok(Archived {
                hash: columns::hash(row, 0)?,
                state_root: columns::hash(row, 1)?,
                executed_ms: row.get(2)?,
                body: row.get(3)?,
                proof: if presence.is_none() { row.get(4)? } else { None },
                presence,
                lane,
                effects,
            })
        })?)
}

impl ValidatorStore {
    pub(super) fn archived(&self, height: Height) -> Result<Option<Archived>, StorageError> {
        Ok(self.segment(height)?.and_then(|segment| segment.at(height).cloned()))
    }

    /// The blocks in segments from one height to another, both included, in order.
    pub(super) fn archived_between(
        &self,
        from: Height,
        to: Height,
    ) -> Result<Vec<(Height, Archived)>, StorageError> {
        let mut found = Vec::new();
        let mut next = from.max(self.kept_from());
        while next <= to
            && let Some(segment) = self.segment(next)?
        {
            while next <= to
                && let Some(block) = segment.at(next)
            {
                found.push((next, block.clone()));
                next = next.next();
            }
        }
        Ok(found)
    }

    /// The last one read is cached because blocks are read in order.
    fn segment(&self, height: Height) -> Result<Option<Segment>, StorageError> {
        let mut last_read = self.last_read.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(segment) = last_read.as_ref().filter(|segment| segment.at(height).is_some()) {
            return Ok(Some(segment.clone()));
        }
        let Some((first, body)) = find(&self.lock(), height)? else { return Ok(None) };
        let segment = unpack(first, &body)?;
        *last_read = Some(segment.clone());
        Ok(Some(segment))
    }

    pub(super) fn archived_height(&self, hash: &Hash) -> Result<Option<Height>, StorageError> {
        let sql = "SELECT height FROM archived WHERE prefix = ?";
        for height in self.rows(sql, [prefix(hash)], |row| columns::height(row, 0))? {
            if self.archived(height)?.is_some_and(|block| block.hash == *hash) {
                return Ok(Some(height));
            }
        }
        Ok(None)
    }
}

fn find(connection: &Connection, height: Height) -> Result<Option<(u64, Vec<u8>)>, StorageError> {
    Ok(connection
        .prepare_cached(
            "SELECT first, body FROM segment WHERE first =
               (SELECT max(first) FROM segment WHERE first <= ?1) AND last >= ?1",
        )?
        .query_row(params![signed(height)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}

#[cfg(test)]
mod tests;
