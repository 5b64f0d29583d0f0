//! The effects of each block: its events, the receipts of its transactions and fires, and the
//! timers that it ended.
//!
//! They are one row per block, decoded on demand, and compressed when they are long: a
//! thousand fires are one write instead of many thousand. [`index`](super::index) finds the blocks
//! of a transaction, a job, a timer or a kind of event.

use super::{
    BlockRecord, StorageError, ValidatorStore,
    columns::{decode, signed},
    ended::EndedTimer,
};
use cowboy_engine::{
    chain::{Event, Fire, Receipt},
    primitives::{
        Height,
        codec::{Decode, DecodeError, Encode, Reader, from_slice, to_vec},
    },
    record,
};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Bytes from which a row is compressed; shorter ones are compressed with their block's segment.
const PACKED_FROM: usize = 1_024;
/// The fastest level that finds the ids that events and receipts repeat.
const LEVEL: i32 = 1;
/// Maximum bytes of a row when it is not compressed: far more than a block's limits allow.
const MAX_BYTES: usize = 256 << 20;
/// The first bytes of a frame of Zstandard, which no list or map of CBOR begins with.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Each list as deterministic CBOR; an empty list has no bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    events: Vec<u8>,
    receipts: Vec<u8>,
    fires: Vec<u8>,
    timers: Vec<u8>,
}

record!(Effects { events, receipts, fires, timers });

fn listed<T: Encode>(items: &Vec<T>) -> Vec<u8> {
    if items.is_empty() { Vec::new() } else { to_vec(items) }
}

fn list<T: Encode + Decode>(
    record: &'static str,
    at: Height,
    bytes: &[u8],
) -> Result<Vec<T>, StorageError> {
    if bytes.is_empty() { Ok(Vec::new()) } else { decode(record, at, bytes) }
}

impl Effects {
    fn pack(&self) -> Result<Vec<u8>, StorageError> {
        let bytes = to_vec(self);
        if bytes.len() < PACKED_FROM {
            return Ok(bytes);
        }
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        Ok(compressor.compress(&bytes)?)
    }

    pub(super) fn unpack(at: Height, body: &[u8]) -> Result<Self, StorageError> {
        let corrupt = |error| StorageError::Corrupt { record: "effects", height: at.get(), error };
        if !body.starts_with(&FRAME) {
            return from_slice(body).map_err(corrupt);
        }
        let bytes = zstd::bulk::decompress(body, MAX_BYTES)
            .map_err(|error| corrupt(DecodeError::Malformed(error.to_string())))?;
        from_slice(&bytes).map_err(corrupt)
    }

    pub(super) fn events(&self, at: Height) -> Result<Vec<Event>, StorageError> {
        list("event", at, &self.events)
    }

    pub(super) fn receipts(&self, at: Height) -> Result<Vec<Receipt>, StorageError> {
        list("receipt", at, &self.receipts)
    }

    pub(super) fn fires(&self, at: Height) -> Result<Vec<Fire>, StorageError> {
        list("fire", at, &self.fires)
    }

    pub(super) fn count_fires(&self) -> u32 {
        let count = Reader::new(&self.fires).list(usize::MAX).unwrap_or_default();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(super) fn timers(&self, at: Height) -> Result<Vec<EndedTimer>, StorageError> {
        list("timer", at, &self.timers)
    }
}

pub(super) fn insert(
    connection: &Connection,
    record: &BlockRecord<'_>,
    ended: &Vec<EndedTimer>,
) -> Result<(), StorageError> {
    let BlockRecord { block, execution, .. } = record;
    let effects = Effects {
        events: listed(&execution.events),
        receipts: listed(&execution.receipts),
        fires: listed(&execution.fires),
        timers: listed(ended),
    };
    connection
        .prepare_cached("INSERT INTO effects (height, body) VALUES (?, ?)")?
        .execute(params![block.header.height.get(), effects.pack()?])?;
    Ok(())
}

/// The row of a block, which moves into the block's segment if it is short.
pub(super) fn short(connection: &Connection, at: Height) -> Result<Option<Vec<u8>>, StorageError> {
    Ok(row(connection, at)?.filter(|body| body.len() < PACKED_FROM))
}

pub(super) fn row(connection: &Connection, at: Height) -> Result<Option<Vec<u8>>, StorageError> {
    Ok(connection
        .prepare_cached("SELECT body FROM effects WHERE height = ?")?
        .query_row(params![signed(at)], |row| row.get(0))
        .optional()?)
}

impl ValidatorStore {
    /// The effects of a block; none if the store does not keep it.
    pub(super) fn effects(&self, at: Height) -> Result<Effects, StorageError> {
        if at < self.kept_from() {
            return Ok(Effects::default());
        }
        let recent = row(&self.lock(), at)?;
        let body = match recent {
            None => self.archived(at)?.and_then(|block| block.effects),
            recent => recent,
        };
        body.map_or_else(|| Ok(Effects::default()), |body| Effects::unpack(at, &body))
    }
}
