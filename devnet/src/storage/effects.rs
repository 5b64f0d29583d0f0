//! The effects of each block: its events, the receipts of its transactions and fires, and the
//! timers that it ended.
//!
//! They are one row per block, decoded when somebody asks, and compressed when they are long: a
//! thousand fires are one write instead of many thousand. Index rows find the blocks of a
//! transaction, a job, a timer or a kind of event, and have no other contents. They follow from the
//! effects, so a block that is dropped is read once more to find its index rows.

use super::{
    BlockRecord, StorageError, ValidatorStore,
    columns::{decode, height, prefix, signed},
    query::StoredEvent,
    timers::{self, EndedTimer, TimerEnd},
};
use cowboy_engine::{
    chain::{Event, EventKind, Fire, Receipt},
    primitives::{
        Address, Hash, Height,
        codec::{Decode, DecodeError, Encode, Reader, from_slice, to_vec},
    },
    record,
};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::{BTreeMap, BTreeSet};

/// The kind of the one event that every block has. It is not indexed.
pub(super) const ROUTINE: &str = "PresenceDerived";

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

    fn unpack(at: Height, body: &[u8]) -> Result<Self, StorageError> {
        let corrupt = |error| StorageError::Corrupt { record: "effects", height: at.get(), error };
        if !body.starts_with(&FRAME) {
            return from_slice(body).map_err(corrupt);
        }
        let bytes = zstd::bulk::decompress(body, MAX_BYTES)
            .map_err(|error| corrupt(DecodeError::Malformed(error.to_string())))?;
        from_slice(&bytes).map_err(corrupt)
    }

    pub(super) fn events(&self, at: Height) -> Result<Vec<StoredEvent>, StorageError> {
        let events: Vec<Event> = list("event", at, &self.events)?;
        let stored = (0..).zip(events);
        Ok(stored.map(|(position, event)| StoredEvent { height: at, position, event }).collect())
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

/// The index rows of one block.
#[derive(Default)]
struct IndexRows {
    /// By the prefix of the hash; the position is that of the receipt.
    transactions: Vec<i64>,
    /// By kind, how many events.
    kinds: BTreeMap<&'static str, u64>,
    jobs: BTreeSet<Hash>,
    /// Timers with events that neither scheduled nor ended them, or that were in no state.
    timers: BTreeSet<Hash>,
    /// By the prefix of the id; the position is that among the ended timers.
    ended: Vec<i64>,
    /// By whose timers, and how they ended.
    lists: BTreeSet<(TimersOf, TimerEnd)>,
}

/// Whose ended timers a list has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimersOf {
    All,
    Actor(Address),
    Payer(Address),
}

impl TimersOf {
    /// The key in the column `of`: a letter and the address.
    pub(super) fn key(self) -> Vec<u8> {
        match self {
            Self::All => Vec::new(),
            Self::Actor(address) => [b"a", &address.0[..]].concat(),
            Self::Payer(address) => [b"p", &address.0[..]].concat(),
        }
    }
}

impl IndexRows {
    fn new<'a>(
        events: impl Iterator<Item = &'a Event>,
        receipts: &[Receipt],
        ended: &[EndedTimer],
    ) -> Self {
        let mut rows = Self::default();
        for event in events {
            if event.kind.name() != ROUTINE {
                *rows.kinds.entry(event.kind.name()).or_default() += 1;
            }
            rows.jobs.extend(event.job_id());
            if let EventKind::GbaFailed(_)
            | EventKind::TimerCancelled(_)
            | EventKind::TimerExtended(_)
            | EventKind::TimerGasClamped(_) = event.kind
            {
                rows.timers.extend(event.timer_id());
            }
        }
        rows.transactions = receipts.iter().map(|receipt| prefix(&receipt.transaction)).collect();
        for EndedTimer { timer, end } in ended {
            rows.ended.push(prefix(&timer.id));
            let of =
                [TimersOf::All, TimersOf::Actor(timer.actor), TimersOf::Payer(timer.fee_payer)];
            rows.lists.extend(of.map(|of| (of, *end)));
        }
        rows
    }

    fn insert(&self, connection: &Connection, at: u64) -> rusqlite::Result<()> {
        let mut insert = connection.prepare_cached("INSERT INTO tx VALUES (?, ?, ?)")?;
        for (position, prefix) in self.transactions.iter().enumerate() {
            insert.execute(params![prefix, at, position])?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO event_kind VALUES (?, ?, ?)")?;
        for (kind, count) in &self.kinds {
            insert.execute(params![kind, at, count])?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO event_job VALUES (?, ?)")?;
        for job in &self.jobs {
            insert.execute(params![job.0, at])?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO event_timer VALUES (?, ?)")?;
        for timer in &self.timers {
            insert.execute(params![timer.0, at])?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO timer VALUES (?, ?, ?)")?;
        for (position, prefix) in self.ended.iter().enumerate() {
            insert.execute(params![prefix, at, position])?;
        }
        let mut insert = connection.prepare_cached("INSERT INTO timer_ended VALUES (?, ?, ?)")?;
        for (of, end) in &self.lists {
            insert.execute(params![of.key(), end.name(), at])?;
        }
        Ok(())
    }

    fn remove(&self, connection: &Connection, at: u64) -> rusqlite::Result<()> {
        for (table, prefixes) in [("tx", &self.transactions), ("timer", &self.ended)] {
            let sql = format!("DELETE FROM {table} WHERE prefix = ? AND height = ?");
            let mut delete = connection.prepare_cached(&sql)?;
            for prefix in prefixes {
                delete.execute(params![prefix, at])?;
            }
        }
        let sql = "DELETE FROM event_kind WHERE kind = ? AND height = ?";
        let mut delete = connection.prepare_cached(sql)?;
        for kind in self.kinds.keys() {
            delete.execute(params![kind, at])?;
        }
        for (table, id, ids) in
            [("event_job", "job_id", &self.jobs), ("event_timer", "timer_id", &self.timers)]
        {
            let sql = format!("DELETE FROM {table} WHERE {id} = ? AND height = ?");
            let mut delete = connection.prepare_cached(&sql)?;
            for id in ids {
                delete.execute(params![id.0, at])?;
            }
        }
        let sql = "DELETE FROM timer_ended WHERE of = ? AND status = ? AND height = ?";
        let mut delete = connection.prepare_cached(sql)?;
        for (of, end) in &self.lists {
            delete.execute(params![of.key(), end.name(), at])?;
        }
        Ok(())
    }
}

pub(super) fn insert(
    connection: &Connection,
    record: &BlockRecord<'_>,
) -> Result<(), StorageError> {
    let execution = record.execution;
    let ended = timers::ended(record);
    let effects = Effects {
        events: listed(&execution.events),
        receipts: listed(&execution.receipts),
        fires: listed(&execution.fires),
        timers: listed(&ended),
    };
    let at = record.block.header.height.get();
    connection
        .prepare_cached("INSERT INTO effects (height, body) VALUES (?, ?)")?
        .execute(params![at, effects.pack()?])?;
    IndexRows::new(execution.events.iter(), &execution.receipts, &ended).insert(connection, at)?;
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

/// Removes the index rows of a block with these effects.
pub(super) fn remove_index(
    connection: &Connection,
    at: Height,
    body: &[u8],
) -> Result<(), StorageError> {
    let effects = Effects::unpack(at, body)?;
    let (events, ended) = (effects.events(at)?, effects.timers(at)?);
    let events = events.iter().map(|stored| &stored.event);
    IndexRows::new(events, &effects.receipts(at)?, &ended).remove(connection, at.get())?;
    Ok(())
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

    /// The first block from a height on that has an event of this kind, or any event.
    pub(super) fn next_with_events(
        &self,
        kind: Option<&str>,
        from: Height,
    ) -> Result<Option<Height>, StorageError> {
        let Some(kind) = kind.filter(|kind| *kind != ROUTINE) else {
            let head = self.head()?.map(|(height, _)| height);
            let next = from.max(self.kept_from());
            return Ok(head.filter(|head| next <= *head).map(|_| next));
        };
        let sql = "SELECT height FROM event_kind WHERE kind = ? AND height >= ?
                   ORDER BY height LIMIT 1";
        self.row(sql, params![kind, signed(from)], |row| height(row, 0))
    }

    /// The blocks up to a height that have events of this kind, newest first.
    pub fn blocks_with(
        &self,
        kind: &str,
        up_to: Height,
        limit: u32,
    ) -> Result<Vec<Height>, StorageError> {
        let sql = "SELECT height FROM event_kind WHERE kind = ? AND height <= ?
                   ORDER BY height DESC LIMIT ?";
        self.rows(sql, params![kind, signed(up_to), limit], |row| height(row, 0))
    }
}
