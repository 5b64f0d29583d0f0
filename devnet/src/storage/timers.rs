//! Timers: what was scheduled, how it ended, and the report of each block's timer lane.
//!
//! A block writes a timer's row when the timer is scheduled, extended, clamped to lower limits or
//! ended, and one row for its lane. A due timer that waits costs nothing: the reason follows from
//! the lanes' rows. An agent's last bid is in the state before the block that ends its timer, or
//! among the answers of that block.

use super::{
    BlockRecord, StorageError, ValidatorStore,
    columns::{self, decode, signed},
    query::{self, StoredEvent},
    segment::LaneRow,
};
use cowboy_engine::{
    chain::{
        EventKind, Fire, LaneReport, ReceiptStatus,
        event::{
            TimerCancelled, TimerCancelledInsufficientFunds, TimerExpired, TimerExtended,
            TimerGasClamped, TimerScheduled,
        },
    },
    names,
    primitives::{Address, Hash, Height, Wei, codec::to_vec},
    timer::{Timer, lane::Prices},
};
use rusqlite::{Row, ToSql, Transaction, params};
use std::collections::BTreeMap;

/// How a timer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerEnd {
    Fired,
    Failed,
    Expired,
    Cancelled,
    InsufficientFunds,
}

names!(TimerEnd:
    Fired = "fired",
    Failed = "failed",
    Expired = "expired",
    Cancelled = "cancelled",
    InsufficientFunds = "insufficient_funds",
);

const WAITING: &str = "waiting";

/// A timer in the store, with its last state and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTimer {
    /// Its record as of the last block that had it in the state, without the payload and with the
    /// handler that it calls.
    pub timer: Timer,
    pub ended: Option<(Height, TimerEnd)>,
}

/// The report of one block's timer lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredLane {
    pub height: Height,
    /// The price of a cycle in the block outside the lane, in wei.
    pub basefee_cycle: Wei,
    /// The cycle limit above which a timer was not attempted.
    pub cap: u64,
    pub report: LaneReport,
}

/// A filter for lists of timers.
#[derive(Clone, Copy, Debug)]
pub struct TimerFilter {
    pub actor: Option<Address>,
    /// Only timers for which this account or actor pays.
    pub payer: Option<Address>,
    pub limit: u32,
}

impl TimerFilter {
    /// The condition on `?1`, the actor, and `?2`, the payer, written so that each can use its
    /// index.
    fn condition(&self) -> String {
        let is = |column: &str, given: Option<Address>, number: u32| match given {
            Some(_) => format!("{column} = ?{number}"),
            None => format!("?{number} IS NULL"),
        };
        format!("{} AND {}", is("actor", self.actor, 1), is("payer", self.payer, 2))
    }
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    record: &BlockRecord<'_>,
) -> Result<(), StorageError> {
    insert_lane(transaction, record)?;
    let BlockRecord { block, parent, execution, .. } = record;
    let height = block.header.height;
    let state = &execution.state;
    let mut add = transaction.prepare_cached(
        "INSERT OR REPLACE INTO timer
           (seq, timer_id, actor, payer, scheduled_at, height, status, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut add_payload = transaction
        .prepare_cached("INSERT OR REPLACE INTO timer_payload (seq, payload) VALUES (?, ?)")?;
    let mut change = transaction.prepare_cached("UPDATE timer SET body = ?2 WHERE seq = ?1")?;
    let mut close = transaction.prepare_cached(
        "UPDATE timer SET status = ?2, ended_at = ?3, position = ?4, body = coalesce(?5, body)
         WHERE seq = ?1",
    )?;
    // An agent's last answer counts, including one in the block that ends its timer.
    let bids: BTreeMap<_, _> = execution.bids.iter().copied().collect();
    let mut end = |id: &Hash, end: TimerEnd, position: Option<usize>| -> Result<(), StorageError> {
        // A timer scheduled in this block has no row yet.
        let Some(mut timer) = parent.timer(id) else { return Ok(()) };
        timer.bid = bids.get(id).copied().or(timer.bid);
        let seq = timer.seq;
        // The stored record is still correct unless the agent has answered since.
        let last = timer.bid.is_some().then(|| body(timer).0);
        close.execute(params![seq, end.name(), height.get(), position, last])?;
        Ok(())
    };
    for event in &execution.events {
        match &event.kind {
            EventKind::TimerScheduled(TimerScheduled { timer_id, .. }) => {
                // A timer cancelled in the same block is in no state and gets no row.
                let Some(timer) = state.timer(timer_id) else { continue };
                let Timer { seq, actor, fee_payer, scheduled_at, height: due, .. } = timer;
                let (id, at, due) = (timer_id.0, scheduled_at.get(), due.get());
                let (body, payload) = body(timer);
                add.execute(params![seq, id, actor.0, fee_payer.0, at, due, WAITING, body])?;
                if !payload.is_empty() {
                    add_payload.execute(params![seq, payload])?;
                }
            }
            EventKind::TimerExtended(TimerExtended { timer_id, .. })
            | EventKind::TimerGasClamped(TimerGasClamped { timer_id, .. }) => {
                if let Some(timer) = state.timer(timer_id) {
                    let seq = timer.seq;
                    change.execute(params![seq, body(timer).0])?;
                }
            }
            EventKind::TimerExpired(TimerExpired { timer_id, .. }) => {
                end(timer_id, TimerEnd::Expired, None)?;
            }
            EventKind::TimerCancelled(TimerCancelled { timer_id, .. }) => {
                end(timer_id, TimerEnd::Cancelled, None)?;
            }
            EventKind::TimerCancelledInsufficientFunds(TimerCancelledInsufficientFunds {
                timer_id,
                ..
            }) => end(timer_id, TimerEnd::InsufficientFunds, None)?,
            _ => {}
        }
    }
    let mut add_fire = transaction.prepare_cached(
        "INSERT INTO fire (height, position, timer_id, receipt) VALUES (?, ?, ?, ?)",
    )?;
    for (position, fire) in execution.fires.iter().enumerate() {
        let success = fire.status == ReceiptStatus::Success;
        let how = if success { TimerEnd::Fired } else { TimerEnd::Failed };
        end(&fire.timer_id, how, Some(position))?;
        add_fire.execute(params![height.get(), position, fire.timer_id.0, to_vec(fire)])?;
    }
    Ok(())
}

fn insert_lane(
    transaction: &Transaction<'_>,
    record: &BlockRecord<'_>,
) -> Result<(), StorageError> {
    let BlockRecord { block, parent, execution, .. } = record;
    let report = &execution.lane;
    let prices = Prices {
        policy: report.policy,
        basefee_cycle: parent.basefee_cycle(),
        basefee_lane: report.basefee,
        basefee_cell: parent.basefee_cell(),
        p50: parent.lane().p50,
        config: parent.lane().config,
    };
    transaction
        .prepare_cached(
            "INSERT INTO lane (height, basefee_cycle, cap, report) VALUES (?, ?, ?, ?)",
        )?
        .execute(params![
            block.header.height.get(),
            parent.basefee_cycle().get().to_be_bytes(),
            prices.cap(),
            to_vec(report)
        ])?;
    Ok(())
}

/// A timer's record without its payload (which may have named the handler), and the payload.
fn body(mut timer: Timer) -> (Vec<u8>, Vec<u8>) {
    timer.handler = Some(timer.call().0);
    let payload = std::mem::take(&mut timer.payload);
    (to_vec(&timer), payload)
}

impl ValidatorStore {
    pub fn timer(&self, id: &Hash) -> Result<Option<StoredTimer>, StorageError> {
        Ok(self.timers_from(id, 1)?.into_iter().find(|stored| stored.timer.id == *id))
    }

    /// Timers in order of their ids, from a given id on; no timer needs to have that id.
    pub fn timers_from(&self, id: &Hash, limit: u32) -> Result<Vec<StoredTimer>, StorageError> {
        let sql = "SELECT height, status, ended_at, body FROM timer
                   WHERE timer_id >= ? ORDER BY timer_id LIMIT ?";
        self.read_timers(sql, params![id.0, limit])
    }

    pub fn newest_timer(&self) -> Result<Option<StoredTimer>, StorageError> {
        let sql = "SELECT height, status, ended_at, body FROM timer ORDER BY seq DESC LIMIT 1";
        Ok(self.read_timers(sql, params![])?.pop())
    }

    /// Timers that have not ended and are due from one height to another, both included, ordered by
    /// height and then by when they were scheduled.
    pub fn waiting_timers(
        &self,
        filter: TimerFilter,
        (from, to): (Height, Height),
    ) -> Result<Vec<StoredTimer>, StorageError> {
        let condition = filter.condition();
        let sql = format!(
            "SELECT height, status, ended_at, body FROM timer
             WHERE {condition} AND height BETWEEN ?3 AND ?4 AND ended_at IS NULL
             ORDER BY height, seq LIMIT ?5"
        );
        let (actor, payer) = (filter.actor.map(|a| a.0), filter.payer.map(|a| a.0));
        self.read_timers(&sql, params![actor, payer, signed(from), signed(to), filter.limit])
    }

    /// Timers that ended in this way, latest first.
    pub fn ended_timers(
        &self,
        filter: TimerFilter,
        end: TimerEnd,
    ) -> Result<Vec<StoredTimer>, StorageError> {
        let condition = filter.condition();
        let sql = format!(
            "SELECT height, status, ended_at, body FROM timer
             WHERE {condition} AND status = ?3 AND ended_at IS NOT NULL
             ORDER BY ended_at DESC, seq DESC LIMIT ?4"
        );
        let (actor, payer) = (filter.actor.map(|a| a.0), filter.payer.map(|a| a.0));
        self.read_timers(&sql, params![actor, payer, end.name(), filter.limit])
    }

    fn read_timers(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<Vec<StoredTimer>, StorageError> {
        let timer = |(due, ended, body): TimerRow| {
            Ok(StoredTimer { timer: decode("timer", due, &body)?, ended })
        };
        self.rows(sql, values, stored)?.into_iter().map(timer).collect()
    }

    pub fn timer_payload(&self, id: &Hash) -> Result<Vec<u8>, StorageError> {
        let sql = "SELECT payload FROM timer JOIN timer_payload USING (seq) WHERE timer_id = ?";
        Ok(self.row(sql, [id.0], |row| row.get(0))?.unwrap_or_default())
    }

    pub fn fire(&self, id: &Hash) -> Result<Option<(Height, Fire)>, StorageError> {
        let sql = "SELECT fire.height, receipt FROM timer
                   JOIN fire ON fire.height = ended_at AND fire.position = timer.position
                   WHERE timer.timer_id = ?";
        let row: Option<(Height, Vec<u8>)> =
            self.row(sql, [id.0], |row| Ok((columns::height(row, 0)?, row.get(1)?)))?;
        row.map(|(height, bytes)| Ok((height, decode("fire", height, &bytes)?))).transpose()
    }

    /// The receipts of the timers that fired in a block, in order.
    pub fn fires(&self, at: Height) -> Result<Vec<Fire>, StorageError> {
        let sql = "SELECT receipt FROM fire WHERE height = ? ORDER BY position";
        let rows: Vec<Vec<u8>> = self.rows(sql, [signed(at)], |row| row.get(0))?;
        rows.iter().map(|bytes| decode("fire", at, bytes)).collect()
    }

    pub fn count_fires(&self, at: Height) -> Result<u32, StorageError> {
        let sql = "SELECT count(*) FROM fire WHERE height = ?";
        Ok(self.row(sql, [signed(at)], |row| row.get(0))?.unwrap_or_default())
    }

    /// Events about one timer, or caused by its fire if they are about no other timer, in order:
    /// all from the blocks that scheduled and ended it, and the newest of those between.
    pub fn events_of_timer(
        &self,
        timer: &Hash,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StorageError> {
        let sql = "
            SELECT height, position, body FROM event WHERE timer_id = ?1
               AND height IN (SELECT scheduled_at FROM timer WHERE timer_id = ?1
                              UNION SELECT ended_at FROM timer WHERE timer_id = ?1)
             UNION
             SELECT height, position, body FROM event WHERE timer_id = ?1
               AND kind IN ('GbaFailed', 'TimerCancelled', 'TimerExtended', 'TimerGasClamped')
             ORDER BY height DESC, position DESC LIMIT ?2";
        let rows = self.rows(sql, params![timer.0, limit], query::stored_event)?;
        rows.into_iter().rev().map(query::event).collect()
    }

    /// The reports of the timer lanes of the blocks from one height to another, both included.
    pub fn lanes(&self, from: Height, to: Height) -> Result<Vec<StoredLane>, StorageError> {
        let mut lanes: Vec<(Height, LaneRow)> = self
            .archived_between(from, to)?
            .into_iter()
            .filter_map(|(height, block)| Some((height, block.lane?)))
            .collect();
        let sql = "SELECT height, basefee_cycle, cap, report FROM lane
                   WHERE height BETWEEN ? AND ? ORDER BY height";
        lanes.extend(self.rows(sql, [signed(from), signed(to)], |row| {
            Ok((columns::height(row, 0)?, LaneRow::read(row, 1)?))
        })?);
        let lane = |(height, row): (Height, LaneRow)| {
            let basefee_cycle = Wei::new(u128::from_be_bytes(row.basefee_cycle));
            let report = decode("lane", height, &row.report)?;
            Ok(StoredLane { height, basefee_cycle, cap: row.cap, report })
        };
        lanes.into_iter().map(lane).collect()
    }
}

type TimerRow = (Height, Option<(Height, TimerEnd)>, Vec<u8>);

fn stored(row: &Row<'_>) -> rusqlite::Result<TimerRow> {
    let (status, ended_at): (String, Option<u64>) = (row.get(1)?, row.get(2)?);
    let end = TimerEnd::named(&status);
    Ok((columns::height(row, 0)?, ended_at.map(Height::new).zip(end), row.get(3)?))
}
