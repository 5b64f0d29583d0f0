//! Index rows: the blocks of a transaction, a job, a timer or a kind of event.
//!
//! They have no other contents and follow from a block's [`effects`](super::effects), so a block
//! that is dropped is read once more to find its rows.

use super::{
    StorageError,
    columns::prefix,
    effects::Effects,
    ended::{EndedTimer, TimerEnd},
};
use cowboy_engine::{
    chain::{Event, EventKind, Receipt},
    primitives::{Address, Hash, Height},
};
use rusqlite::{Connection, params};
use std::collections::{BTreeMap, BTreeSet};

/// The kind of the one event that every block has. It is not indexed.
pub(super) const ROUTINE: &str = "PresenceDerived";

/// The index rows of one block.
#[derive(Default)]
pub(super) struct IndexRows {
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
    pub(super) fn new(events: &[Event], receipts: &[Receipt], ended: &[EndedTimer]) -> Self {
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

    pub(super) fn insert(&self, connection: &Connection, at: u64) -> rusqlite::Result<()> {
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

/// Removes the index rows of a block with this row of effects.
pub(super) fn remove(connection: &Connection, at: Height, body: &[u8]) -> Result<(), StorageError> {
    let effects = Effects::unpack(at, body)?;
    IndexRows::new(&effects.events(at)?, &effects.receipts(at)?, &effects.timers(at)?)
        .remove(connection, at.get())?;
    Ok(())
}
