//! Reading the store.

use super::{
    StorageError, Store,
    segment::{self, PresenceRow},
};
use cowboy_engine::{
    chain::{Block, Certificate, DrawRecord, Event, EventKind, Receipt, event::ReputationChanged},
    presence::Bitmap,
    primitives::{
        Address, Hash, Height,
        codec::{Decode, Encode, from_slice},
    },
    registry::Order,
};
use rusqlite::{OptionalExtension as _, Row, params};

/// Changes of reputations that are looked through for those of one runner.
const REPUTATION_EVENTS: i64 = 10_000;

/// A transaction's place and receipt.
#[derive(Clone, Debug)]
pub struct StoredTransaction {
    /// The block it stands in.
    pub height: Height,
    /// Its place there.
    pub position: u32,
    /// What became of it.
    pub receipt: Receipt,
}

/// An event and its place.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// The block.
    pub height: Height,
    /// Its place there.
    pub position: u32,
    /// What happened.
    pub event: Event,
}

/// The canonical certificate of a block, and what was derived from it.
#[derive(Clone, Debug)]
pub struct StoredPresence {
    /// The block certified.
    pub height: Height,
    /// The block that carries the certificate.
    pub embedded_at: Height,
    /// The certificate's bytes as stored: damage shows where they are decoded or verified.
    pub certificate: Vec<u8>,
    /// P(H) as derived when the block was executed: its length and bytes as stored.
    pub bit_length: u32,
    /// See `bit_length`.
    pub bitmap: Vec<u8>,
    /// The runners that the bits stand for.
    pub registry: Order,
}

impl StoredPresence {
    /// The certificate.
    pub fn certificate(&self) -> Result<Certificate, StorageError> {
        decode("certificate", self.height, &self.certificate)
    }

    /// P(H) as stored; `None` where the bytes are no bitmap of that length.
    pub fn bitmap(&self) -> Option<Bitmap> {
        Bitmap::from_bytes(self.bit_length, &self.bitmap).ok()
    }
}

/// A draw of a job's committee.
#[derive(Clone, Debug)]
pub struct StoredDraw {
    /// The block that drew.
    pub height: Height,
    /// The draw and its evidence.
    pub draw: DrawRecord,
}

/// A job's final result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResult {
    /// The block that made it final.
    pub height: Height,
    /// Whose it is.
    pub runner: Address,
    /// The result.
    pub bytes: Vec<u8>,
}

/// A line of an actor's log, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLine {
    /// The block.
    pub height: Height,
    /// Its place among the block's lines of all actors.
    pub line: u64,
    /// What made the actor run.
    pub cause: Cause,
    /// What it says.
    pub what: Line,
}

/// What makes actors run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A transaction.
    Transaction(Hash),
    /// A timer's fire.
    Timer(Hash),
    /// The end of a job, which an actor was told of.
    Job(Hash),
}

/// What a line of an actor's log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The actor printed or logged it.
    Log(String),
    /// The actor emitted it.
    Event {
        /// The event's name.
        name: String,
        /// Its data, JSON.
        data: String,
    },
    /// A transaction's call of the actor failed, or a timer's.
    Error(String),
}

/// Some of what there is, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What was read.
    pub rows: Vec<T>,
    /// Whether the limit, or [`PAGE_BYTES`], left some out.
    pub more: bool,
}

/// Bytes that a page holds at most, unless a single row has more.
pub const PAGE_BYTES: usize = 8 << 20;

/// Which events to list.
#[derive(Clone, Copy, Debug)]
pub struct EventFilter<'a> {
    /// From this block on.
    pub from: Height,
    /// Of this kind only.
    pub kind: Option<&'a str>,
    /// At most so many.
    pub limit: u32,
}

impl Store {
    /// A finalized block.
    pub fn block(&self, height: Height) -> Result<Option<Block>, StorageError> {
        let bytes: Option<Vec<u8>> = self
            .lock()
            .prepare_cached("SELECT body FROM block WHERE height = ?")?
            .query_row(params![signed(height)], |row| row.get(0))
            .optional()?;
        let bytes = match bytes {
            None => self.archived(height)?.map(|block| block.body),
            recent => recent,
        };
        bytes.map(|bytes| decode("block", height, &bytes)).transpose()
    }

    /// State root after a block, and when this validator executed it (Unix ms).
    pub fn executed(&self, height: Height) -> Result<Option<(Hash, u64)>, StorageError> {
        let recent = self
            .lock()
            .prepare_cached("SELECT state_root, executed_ms FROM block WHERE height = ?")?
            .query_row(params![signed(height)], |row| Ok((hash(row, 0)?, row.get(1)?)))
            .optional()?;
        match recent {
            None => Ok(self.archived(height)?.map(|block| (block.state_root, block.executed_ms))),
            recent => Ok(recent),
        }
    }

    /// Height of the finalized block with this hash.
    pub fn height_of(&self, block: &Hash) -> Result<Option<Height>, StorageError> {
        let recent = self
            .lock()
            .prepare_cached("SELECT height FROM block WHERE hash = ?")?
            .query_row(params![block.0], |row| height(row, 0))
            .optional()?;
        match recent {
            None => self.archived_height(block),
            recent => Ok(recent),
        }
    }

    /// A transaction's place and receipt.
    pub fn transaction(&self, id: &Hash) -> Result<Option<StoredTransaction>, StorageError> {
        let row: Option<(Height, u32, Vec<u8>)> = self
            .lock()
            .prepare_cached("SELECT height, position, receipt FROM tx WHERE hash = ?")?
            .query_row(params![id.0], |row| Ok((height(row, 0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        row.map(|(height, position, bytes)| {
            Ok(StoredTransaction { height, position, receipt: decode("tx", height, &bytes)? })
        })
        .transpose()
    }

    /// Receipts of a block, in order.
    pub fn receipts(&self, at: Height) -> Result<Vec<Receipt>, StorageError> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT t.receipt FROM tx t WHERE t.height = ? ORDER BY t.position")?;
        let rows = statement.query_map(params![signed(at)], |row| row.get::<_, Vec<u8>>(0))?;
        rows.map(|bytes| decode("tx", at, &bytes?)).collect()
    }

    /// Events in order of their places, up to the limit, which may end within a block.
    pub fn events(&self, filter: EventFilter<'_>) -> Result<Page<StoredEvent>, StorageError> {
        let wanted = filter.limit.saturating_add(1);
        let archived = match filter.kind {
            None | Some(segment::ROUTINE) => self.archived_events(filter.from, wanted as usize)?,
            Some(_) => Vec::new(),
        };
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT height, position, body FROM event
             WHERE height >= ?1 AND (?2 IS NULL OR kind = ?2)
             ORDER BY height, position LIMIT ?3",
        )?;
        let from = signed(filter.from);
        let rows = statement.query_map(params![from, filter.kind, wanted], stored_event)?;
        let page = page(merged(archived, rows), filter.limit, |(_, _, body)| body.len())?;
        let rows = page.rows.into_iter().map(event).collect::<Result<_, _>>()?;
        Ok(Page { rows, more: page.more })
    }

    /// Lines of an actor's log, in order: from a block on, or the last ones.
    pub fn actor_log(
        &self,
        actor: &Address,
        from: Option<Height>,
        limit: u32,
    ) -> Result<Page<StoredLine>, StorageError> {
        let connection = self.lock();
        let order = if from.is_some() { "ASC" } else { "DESC" };
        let mut statement = connection.prepare_cached(&format!(
            "SELECT height, line, tx, timer, job, kind, name, body FROM actor_log
             WHERE actor = ?1 AND height >= ?2
             ORDER BY height {order}, line {order} LIMIT ?3"
        ))?;
        let after = signed(from.unwrap_or(Height::GENESIS));
        let rows = statement.query_map(params![actor.0, after, limit.saturating_add(1)], line)?;
        let mut page = page(rows, limit, |line| match &line.what {
            Line::Log(text) | Line::Error(text) => text.len(),
            Line::Event { name, data } => name.len() + data.len(),
        })?;
        if from.is_none() {
            page.rows.reverse();
        }
        Ok(page)
    }

    /// How many events of a kind there are after a block, up to another one. Not for the kind
    /// that each block has.
    pub fn count_events(
        &self,
        kind: &str,
        after: Height,
        up_to: Height,
    ) -> Result<u64, StorageError> {
        Ok(self
            .lock()
            .prepare_cached(
                "SELECT count(*) FROM event WHERE kind = ? AND height > ? AND height <= ?",
            )?
            .query_row(params![kind, signed(after), signed(up_to)], |row| row.get(0))?)
    }

    /// The last changes of a runner's reputation up to a block, newest first: `limit` at most, and
    /// those among the last [`REPUTATION_EVENTS`] of all runners.
    pub fn reputation_of(
        &self,
        runner: &Address,
        up_to: Height,
        limit: usize,
    ) -> Result<Vec<(Height, ReputationChanged)>, StorageError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT height, position, body FROM event
             WHERE kind = 'ReputationChanged' AND height <= ?
             ORDER BY height DESC, position DESC LIMIT ?",
        )?;
        let mut rows = statement.query(params![signed(up_to), REPUTATION_EVENTS])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()?
            && found.len() < limit
        {
            let StoredEvent { height, event, .. } = event(stored_event(row)?)?;
            if let EventKind::ReputationChanged(changed) = event.kind
                && changed.runner == *runner
            {
                found.push((height, changed));
            }
        }
        Ok(found)
    }

    /// Events of one block.
    pub fn events_at(&self, at: Height) -> Result<Vec<StoredEvent>, StorageError> {
        let archived = match self.archived(at)? {
            Some(block) => segment::events(at, &block),
            None => Vec::new(),
        };
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT height, position, body FROM event WHERE height = ? ORDER BY position",
        )?;
        let rows = statement.query_map(params![signed(at)], stored_event)?;
        merged(archived, rows).map(|row| event(row?)).collect()
    }

    /// Events about one job.
    pub fn events_of(&self, job: &Hash) -> Result<Vec<StoredEvent>, StorageError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT height, position, body FROM event WHERE job_id = ? ORDER BY height, position",
        )?;
        let rows = statement.query_map(params![job.0], stored_event)?;
        rows.map(|row| event(row?)).collect()
    }

    /// The canonical certificate of the block at `height`, where the chain has one.
    pub fn presence(&self, certified: Height) -> Result<Option<StoredPresence>, StorageError> {
        let recent = self
            .lock()
            .prepare_cached(
                "SELECT embedded_at, certificate, bit_length, bitmap, registry
                 FROM presence WHERE height = ?",
            )?
            .query_row(params![signed(certified)], PresenceRow::read)
            .optional()?;
        let row = match recent {
            None => self.archived(certified)?.and_then(|block| block.presence),
            recent => recent,
        };
        row.map(|row| {
            Ok(StoredPresence {
                height: certified,
                embedded_at: row.embedded_at,
                certificate: row.certificate,
                bit_length: row.bit_length,
                bitmap: row.bitmap,
                registry: decode("registry order", certified, &row.registry)?,
            })
        })
        .transpose()
    }

    /// A certificate of the block at `height`, where one is kept.
    pub fn certificate(&self, height: Height) -> Result<Option<Certificate>, StorageError> {
        if let Some(presence) = self.presence(height)? {
            return presence.certificate().map(Some);
        }
        let recent: Option<Option<Vec<u8>>> = self
            .lock()
            .prepare_cached("SELECT proof FROM block WHERE height = ?")?
            .query_row(params![signed(height)], |row| row.get(0))
            .optional()?;
        let proof = match recent {
            None => self.archived(height)?.and_then(|block| block.proof),
            Some(proof) => proof,
        };
        proof.map(|bytes| decode("certificate", height, &bytes)).transpose()
    }

    /// The draws of a job, one for each attempt at it, the first in front; the last may have found
    /// nobody.
    pub fn draws_of(&self, job: &Hash) -> Result<Vec<StoredDraw>, StorageError> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT height, body FROM draw WHERE job_id = ? ORDER BY height")?;
        let mut rows = statement.query(params![job.0])?;
        let mut draws = Vec::new();
        while let Some(row) = rows.next()? {
            let (height, bytes): (Height, Vec<u8>) = (height(row, 0)?, row.get(1)?);
            draws.push(StoredDraw { height, draw: decode("draw", height, &bytes)? });
        }
        Ok(draws)
    }

    /// The draws kept of the blocks from `from` to `to`, in order, up to the limit.
    pub fn draws(
        &self,
        from: Height,
        to: Height,
        limit: u32,
    ) -> Result<Page<StoredDraw>, StorageError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT height, body FROM draw WHERE height BETWEEN ?1 AND ?2
             ORDER BY height, job_id LIMIT ?3",
        )?;
        let rows = statement
            .query_map(params![signed(from), signed(to), limit.saturating_add(1)], |row| {
                Ok((height(row, 0)?, row.get::<_, Vec<u8>>(1)?))
            })?;
        let Page { rows, more } = page(rows, limit, |(_, body)| body.len())?;
        let draw = |(height, bytes): (Height, Vec<u8>)| {
            Ok(StoredDraw { height, draw: decode("draw", height, &bytes)? })
        };
        Ok(Page { rows: rows.into_iter().map(draw).collect::<Result<_, StorageError>>()?, more })
    }

    /// A job's final result.
    pub fn result(&self, job: &Hash) -> Result<Option<StoredResult>, StorageError> {
        Ok(self
            .lock()
            .prepare_cached("SELECT height, runner, bytes FROM result WHERE job_id = ?")?
            .query_row(params![job.0], |row| {
                Ok(StoredResult {
                    height: height(row, 0)?,
                    runner: Address(row.get(1)?),
                    bytes: row.get(2)?,
                })
            })
            .optional()?)
    }
}

fn line(row: &Row<'_>) -> rusqlite::Result<StoredLine> {
    let (kind, body): (String, String) = (row.get(5)?, row.get(7)?);
    let what = match kind.as_str() {
        "log" => Line::Log(body),
        "event" => Line::Event { name: row.get(6)?, data: body },
        _ => Line::Error(body),
    };
    let other = |at| row.get::<_, Option<[u8; 32]>>(at).map(|id| id.map(Hash));
    let cause = match (other(3)?, other(4)?) {
        (Some(timer), _) => Cause::Timer(timer),
        (None, Some(job)) => Cause::Job(job),
        (None, None) => Cause::Transaction(hash(row, 2)?),
    };
    Ok(StoredLine { height: height(row, 0)?, line: row.get(1)?, cause, what })
}

/// Reads up to `limit` rows and [`PAGE_BYTES`], one at least. The query yields one more row than
/// the limit where there is one.
fn page<T>(
    rows: impl Iterator<Item = rusqlite::Result<T>>,
    limit: u32,
    size: impl Fn(&T) -> usize,
) -> Result<Page<T>, StorageError> {
    let mut page = Page { rows: Vec::new(), more: false };
    let mut bytes = 0;
    for row in rows {
        let row = row?;
        bytes += size(&row);
        page.more =
            page.rows.len() >= limit as usize || (bytes > PAGE_BYTES && !page.rows.is_empty());
        if page.more {
            break;
        }
        page.rows.push(row);
    }
    Ok(page)
}

/// Events of segments and of the table, both in order, in the order of both.
fn merged(
    archived: Vec<EventRow>,
    rows: impl Iterator<Item = rusqlite::Result<EventRow>>,
) -> impl Iterator<Item = rusqlite::Result<EventRow>> {
    let (mut archived, mut rows) = (archived.into_iter().peekable(), rows.peekable());
    std::iter::from_fn(move || match (archived.peek(), rows.peek()) {
        (Some(a), Some(Ok(b))) if (a.0, a.1) < (b.0, b.1) => archived.next().map(Ok),
        (Some(_), None) => archived.next().map(Ok),
        _ => rows.next(),
    })
}

pub(super) type EventRow = (Height, u32, Vec<u8>);

pub(super) fn stored_event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok((height(row, 0)?, row.get(1)?, row.get(2)?))
}

pub(super) fn event((height, position, bytes): EventRow) -> Result<StoredEvent, StorageError> {
    Ok(StoredEvent { height, position, event: decode("event", height, &bytes)? })
}

pub(super) fn decode<T: Encode + Decode>(
    record: &'static str,
    height: Height,
    bytes: &[u8],
) -> Result<T, StorageError> {
    from_slice(bytes).map_err(|error| StorageError::Corrupt { record, height: height.get(), error })
}

/// A height to ask SQLite for, whose integers end at 2^63 − 1: no block has one beyond.
pub(super) fn signed(height: Height) -> i64 {
    i64::try_from(height.get()).unwrap_or(i64::MAX)
}

pub(super) fn height(row: &Row<'_>, column: usize) -> rusqlite::Result<Height> {
    row.get(column).map(Height::new)
}

pub(super) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<Hash> {
    row.get(column).map(Hash)
}
