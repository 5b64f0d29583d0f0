//! Queries of the store.

use super::{
    StorageError, ValidatorStore,
    columns::{decode, hash, height, prefix, signed},
    index::ROUTINE,
    segment::PresenceRow,
};
use cowboy_engine::{
    chain::{
        Block, Certificate, DrawRecord, Event, EventKind, Receipt, ReceiptStatus,
        event::ReputationChanged,
    },
    presence::Bitmap,
    primitives::{Address, Hash, Height, codec::to_vec},
    registry::Order,
};
use rusqlite::{Row, params};

/// Number of reputation changes of all runners that are searched for those of one runner.
const REPUTATION_EVENTS: u32 = 10_000;

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

    /// A transaction where it took effect. One that was only skipped is that of the newest block: a
    /// dishonest proposer may repeat a transaction.
    pub fn transaction(&self, id: &Hash) -> Result<Option<StoredTransaction>, StorageError> {
        let sql = "SELECT height, position FROM tx WHERE prefix = ? ORDER BY height, position";
        let places: Vec<(Height, u32)> =
            self.rows(sql, [prefix(id)], |row| Ok((height(row, 0)?, row.get(1)?)))?;
        let mut newest = None;
        for (height, position) in places {
            let receipt = self.receipts(height)?.into_iter().nth(position as usize);
            let Some(receipt) = receipt.filter(|receipt| receipt.transaction == *id) else {
                continue;
            };
            let skipped = matches!(receipt.status, ReceiptStatus::Skipped(_));
            newest = Some(StoredTransaction { height, position, receipt });
            if !skipped {
                break;
            }
        }
        Ok(newest)
    }

    /// The receipts of a block, in order.
    pub fn receipts(&self, at: Height) -> Result<Vec<Receipt>, StorageError> {
        self.effects(at)?.receipts(at)
    }

    /// Lists events in order of their positions, up to the limit, which may fall within a block.
    pub fn events(&self, filter: EventFilter<'_>) -> Result<Page<StoredEvent>, StorageError> {
        let mut filling = Filling::new(filter.limit);
        let mut from = filter.from;
        while let Some(height) = self.next_with_events(filter.kind, from)? {
            for stored in self.events_at(height)? {
                if filter.kind.is_none_or(|kind| stored.event.kind.name() == kind)
                    && !filling.push(to_vec(&stored.event).len(), stored)
                {
                    return Ok(filling.page);
                }
            }
            from = height.next();
        }
        Ok(filling.page)
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

    /// Counts the events of a kind after one block and up to another. Not for the routine kind that
    /// every block has.
    pub fn count_events(
        &self,
        kind: &str,
        after: Height,
        up_to: Height,
    ) -> Result<u64, StorageError> {
        let sql = "SELECT coalesce(sum(events), 0) FROM event_kind
                   WHERE kind = ? AND height > ? AND height <= ?";
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
        let (mut found, mut searched) = (Vec::new(), 0);
        for height in self.blocks_with("ReputationChanged", up_to, REPUTATION_EVENTS)? {
            for StoredEvent { event, .. } in self.events_at(height)?.into_iter().rev() {
                let EventKind::ReputationChanged(changed) = event.kind else { continue };
                searched += 1;
                if changed.runner == *runner {
                    found.push((height, changed));
                }
                if found.len() == limit || searched == REPUTATION_EVENTS {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    pub fn events_at(&self, at: Height) -> Result<Vec<StoredEvent>, StorageError> {
        let events = (0..).zip(self.effects(at)?.events(at)?);
        Ok(events.map(|(position, event)| StoredEvent { height: at, position, event }).collect())
    }

    pub fn events_of(&self, job: &Hash) -> Result<Vec<StoredEvent>, StorageError> {
        let sql = "SELECT height FROM event_job WHERE job_id = ? ORDER BY height";
        let mut found = Vec::new();
        for height in self.rows(sql, [job.0], |row| height(row, 0))? {
            let events = self.events_at(height)?.into_iter();
            found.extend(events.filter(|stored| stored.event.job_id() == Some(*job)));
        }
        Ok(found)
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

/// A page that is being filled up to its limit and [`PAGE_BYTES`], but with at least one row.
struct Filling<T> {
    page: Page<T>,
    limit: usize,
    bytes: usize,
}

impl<T> Filling<T> {
    const fn new(limit: u32) -> Self {
        Self { page: Page { rows: Vec::new(), more: false }, limit: limit as usize, bytes: 0 }
    }

    /// Adds a row of this size and returns true, or notes that there is no room for it.
    fn push(&mut self, bytes: usize, row: T) -> bool {
        let rows = &mut self.page.rows;
        self.bytes += bytes;
        let fits = rows.len() < self.limit && (self.bytes <= PAGE_BYTES || rows.is_empty());
        if fits {
            rows.push(row);
        }
        self.page.more = !fits;
        fits
    }
}

/// Reads a page of rows. The query returns one row beyond the limit if there is one.
fn page<T>(
    rows: impl Iterator<Item = rusqlite::Result<T>>,
    limit: u32,
    size: impl Fn(&T) -> usize,
) -> Result<Page<T>, StorageError> {
    let mut filling = Filling::new(limit);
    for row in rows {
        let row = row?;
        if !filling.push(size(&row), row) {
            break;
        }
    }
    Ok(filling.page)
}
