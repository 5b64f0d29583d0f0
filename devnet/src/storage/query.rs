//! Queries of the store.

use super::{
    StorageError, ValidatorStore,
    columns::{decode, hash, height, signed},
    segment::{self, EventRow, PresenceRow},
};
use cowboy_engine::{
    chain::{Block, Certificate, DrawRecord, Event, EventKind, Receipt, event::ReputationChanged},
    presence::Bitmap,
    primitives::{Address, Hash, Height},
    registry::Order,
};
use rusqlite::{Row, params};

/// Number of reputation changes of all runners that are searched for those of one runner.
const REPUTATION_EVENTS: i64 = 10_000;

/// A transaction's receipt, with its height and its index in the block.
#[derive(Clone, Debug)]
pub struct StoredTransaction {
    pub height: Height,
    pub position: u32,
    pub receipt: Receipt,
}

/// An event, with its height and its index in the block.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    pub height: Height,
    pub position: u32,
    pub event: Event,
}

/// The canonical certificate of a block, and the presence bitmap derived from it.
#[derive(Clone, Debug)]
pub struct StoredPresence {
    /// The block certified.
    pub height: Height,
    pub embedded_at: Height,
    /// The certificate's bytes as stored: damage shows when they are decoded or verified.
    pub certificate: Vec<u8>,
    /// Length in bits of P(H) as derived when the block was executed.
    pub bit_length: u32,
    pub bitmap: Vec<u8>,
    /// The addresses of the runners, in the order of the bits.
    pub registry: Order,
}

impl StoredPresence {
    pub fn certificate(&self) -> Result<Certificate, StorageError> {
        decode("certificate", self.height, &self.certificate)
    }

    /// P(H) as stored; `None` when the bytes are not a bitmap of that length.
    pub fn bitmap(&self) -> Option<Bitmap> {
        Bitmap::from_bytes(self.bit_length, &self.bitmap).ok()
    }
}

/// A draw of a job's committee, and the height of the block that drew.
#[derive(Clone, Debug)]
pub struct StoredDraw {
    pub height: Height,
    pub draw: DrawRecord,
}

/// A job's final result, and the height of the block that made it final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResult {
    pub height: Height,
    pub runner: Address,
    pub bytes: Vec<u8>,
}

/// A line of an actor's log with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLine {
    pub height: Height,
    /// Its number among the block's lines of all actors.
    pub line: u64,
    pub cause: Cause,
    pub what: Line,
}

/// The cause of an actor's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    Transaction(Hash),
    Timer(Hash),
    Job(Hash),
}

/// The content of a line of an actor's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Log(String),
    Event {
        name: String,
        /// Its data, as JSON.
        data: String,
    },
    /// The error of a failed call of the actor by a transaction or a timer.
    Error(String),
}

/// Some rows of a longer list, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Whether the limit or [`PAGE_BYTES`] cut the list short.
    pub more: bool,
}

/// The maximum size of a page in bytes, unless a single row is larger.
pub const PAGE_BYTES: usize = 8 << 20;

/// A filter for lists of events.
#[derive(Clone, Copy, Debug)]
pub struct EventFilter<'a> {
    pub from: Height,
    pub kind: Option<&'a str>,
    pub limit: u32,
}

impl ValidatorStore {
    pub fn block(&self, height: Height) -> Result<Option<Block>, StorageError> {
        let sql = "SELECT body FROM block WHERE height = ?";
        let bytes: Option<Vec<u8>> = match self.row(sql, [signed(height)], |row| row.get(0))? {
            None => self.archived(height)?.map(|block| block.body),
            recent => recent,
        };
        bytes.map(|bytes| decode("block", height, &bytes)).transpose()
    }

    /// The state root after a block, and the time when this validator executed it (Unix ms).
    pub fn executed(&self, height: Height) -> Result<Option<(Hash, u64)>, StorageError> {
        let sql = "SELECT state_root, executed_ms FROM block WHERE height = ?";
        match self.row(sql, [signed(height)], |row| Ok((hash(row, 0)?, row.get(1)?)))? {
            None => Ok(self.archived(height)?.map(|block| (block.state_root, block.executed_ms))),
            recent => Ok(recent),
        }
    }

    pub fn height_of(&self, block: &Hash) -> Result<Option<Height>, StorageError> {
        let sql = "SELECT height FROM block WHERE hash = ?";
        match self.row(sql, [block.0], |row| height(row, 0))? {
            None => self.archived_height(block),
            recent => Ok(recent),
        }
    }

    pub fn transaction(&self, id: &Hash) -> Result<Option<StoredTransaction>, StorageError> {
        let sql = "SELECT height, position, receipt FROM tx WHERE hash = ?";
        self.row(sql, [id.0], stored_event)?
            .map(|(height, position, bytes)| {
                Ok(StoredTransaction { height, position, receipt: decode("tx", height, &bytes)? })
            })
            .transpose()
    }

    /// The receipts of a block, in order.
    pub fn receipts(&self, at: Height) -> Result<Vec<Receipt>, StorageError> {
        let sql = "SELECT receipt FROM tx WHERE height = ? ORDER BY position";
        let rows: Vec<Vec<u8>> = self.rows(sql, [signed(at)], |row| row.get(0))?;
        rows.iter().map(|bytes| decode("tx", at, bytes)).collect()
    }

    /// Lists events in order of their positions, up to the limit, which may fall within a block.
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

    /// Lists the lines of an actor's log in order: from a given block on, or the last ones.
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

    /// Counts the events of a kind after one block and up to another. Not for the routine kind that
    /// every block has.
    pub fn count_events(
        &self,
        kind: &str,
        after: Height,
        up_to: Height,
    ) -> Result<u64, StorageError> {
        let sql = "SELECT count(*) FROM event WHERE kind = ? AND height > ? AND height <= ?";
        let count = self.row(sql, params![kind, signed(after), signed(up_to)], |row| row.get(0))?;
        Ok(count.unwrap_or_default())
    }

    /// The latest changes of a runner's reputation up to a block, newest first: at most `limit`,
    /// and only those among the last [`REPUTATION_EVENTS`] of all runners.
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

    pub fn events_of(&self, job: &Hash) -> Result<Vec<StoredEvent>, StorageError> {
        let sql =
            "SELECT height, position, body FROM event WHERE job_id = ? ORDER BY height, position";
        self.rows(sql, [job.0], stored_event)?.into_iter().map(event).collect()
    }

    /// The canonical certificate of the block at `height`, if the chain has one.
    pub fn presence(&self, certified: Height) -> Result<Option<StoredPresence>, StorageError> {
        let row = match self.row(PresenceRow::SQL, [signed(certified)], PresenceRow::read)? {
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

    pub fn certificate(&self, height: Height) -> Result<Option<Certificate>, StorageError> {
        if let Some(presence) = self.presence(height)? {
            return presence.certificate().map(Some);
        }
        let sql = "SELECT proof FROM block WHERE height = ?";
        let proof: Option<Vec<u8>> = match self.row(sql, [signed(height)], |row| row.get(0))? {
            None => self.archived(height)?.and_then(|block| block.proof),
            Some(proof) => proof,
        };
        proof.map(|bytes| decode("certificate", height, &bytes)).transpose()
    }

    /// The draws of a job, one for each attempt, oldest first; the last may have found no runner.
    pub fn draws_of(&self, job: &Hash) -> Result<Vec<StoredDraw>, StorageError> {
        let sql = "SELECT height, body FROM draw WHERE job_id = ? ORDER BY height";
        self.rows(sql, [job.0], draw_row)?.into_iter().map(draw).collect()
    }

    /// The stored draws of the blocks from `from` to `to`, in order, up to the limit.
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
            .query_map(params![signed(from), signed(to), limit.saturating_add(1)], draw_row)?;
        let Page { rows, more } = page(rows, limit, |(_, body)| body.len())?;
        Ok(Page { rows: rows.into_iter().map(draw).collect::<Result<_, _>>()?, more })
    }

    pub fn result(&self, job: &Hash) -> Result<Option<StoredResult>, StorageError> {
        let sql = "SELECT height, runner, bytes FROM result WHERE job_id = ?";
        self.row(sql, [job.0], |row| {
            let runner = Address(row.get(1)?);
            Ok(StoredResult { height: height(row, 0)?, runner, bytes: row.get(2)? })
        })
    }
}

fn draw_row(row: &Row<'_>) -> rusqlite::Result<(Height, Vec<u8>)> {
    Ok((height(row, 0)?, row.get(1)?))
}

fn draw((height, bytes): (Height, Vec<u8>)) -> Result<StoredDraw, StorageError> {
    Ok(StoredDraw { height, draw: decode("draw", height, &bytes)? })
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

/// Reads up to `limit` rows and [`PAGE_BYTES`], but at least one row. The query returns one row
/// beyond the limit if there is one.
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

/// Merges the events of segments with those of the table. Both are sorted, and so is the result.
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

pub(super) fn stored_event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok((height(row, 0)?, row.get(1)?, row.get(2)?))
}

pub(super) fn event((height, position, bytes): EventRow) -> Result<StoredEvent, StorageError> {
    Ok(StoredEvent { height, position, event: decode("event", height, &bytes)? })
}
