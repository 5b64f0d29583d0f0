//! Timers: how they ended, and the report of each block's timer lane.
//!
//! The state has the timers that wait. The block that ends one keeps its last record among its
//! effects. A due timer that waits costs nothing: the reason follows from the lanes' rows.

use super::{
    BlockRecord, StorageError, ValidatorStore,
    columns::{self, decode, prefix, signed},
    ended::{EndedTimer, TimerEnd},
    index::TimersOf,
    query::StoredEvent,
    segment::LaneRow,
};
use cowboy_engine::{
    chain::{Fire, LaneReport},
    primitives::{Address, Hash, Height, Wei, codec::to_vec},
    timer::{Timer, lane::Prices},
};
use rusqlite::{Transaction, params};
use std::collections::BTreeSet;

/// A timer with its last record and its end, if it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTimer {
    pub timer: Timer,
    pub ended: Option<(Height, TimerEnd)>,
}

impl StoredTimer {
    fn ended(at: Height, EndedTimer { timer, end }: EndedTimer) -> Self {
        Self { timer, ended: Some((at, end)) }
    }
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
    pub limit: usize,
}

impl TimerFilter {
    pub fn accepts(&self, timer: &Timer) -> bool {
        self.actor.is_none_or(|actor| timer.actor == actor)
            && self.payer.is_none_or(|payer| timer.fee_payer == payer)
    }
}

pub(super) fn insert_lane(
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

impl ValidatorStore {
    /// A timer that has ended.
    pub fn timer(&self, id: &Hash) -> Result<Option<StoredTimer>, StorageError> {
        let sql = "SELECT height, position FROM timer WHERE prefix = ?";
        let found = self.timers_at(self.rows(sql, [prefix(id)], TimerPlace::read)?)?;
        Ok(found.into_iter().find(|stored| stored.timer.id == *id))
    }

    /// Ended timers in order of their ids, from a given id on; no timer needs to have that id.
    pub fn timers_from(&self, id: &Hash, limit: usize) -> Result<Vec<StoredTimer>, StorageError> {
        // Those before the id that have the same prefix are left out, and hashes hardly share one.
        const ALIKE: usize = 8;
        let sql = "SELECT height, position FROM timer WHERE prefix >= ? ORDER BY prefix LIMIT ?";
        let places = self.rows(sql, params![prefix(id), limit + ALIKE], TimerPlace::read)?;
        let mut found = self.timers_at(places)?;
        found.retain(|stored| stored.timer.id >= *id);
        found.sort_by_key(|stored| stored.timer.id);
        found.truncate(limit);
        Ok(found)
    }

    fn timers_at(&self, places: Vec<TimerPlace>) -> Result<Vec<StoredTimer>, StorageError> {
        let timer = |TimerPlace { height, position }: TimerPlace| {
            let mut timers = self.effects(height)?.timers(height)?;
            let timer = (position < timers.len()).then(|| timers.swap_remove(position));
            Ok(timer.map(|timer| StoredTimer::ended(height, timer)))
        };
        places.into_iter().filter_map(|place| timer(place).transpose()).collect()
    }

    /// Timers that ended in this way in the blocks up to a height, latest first.
    pub fn ended_timers(
        &self,
        filter: TimerFilter,
        end: TimerEnd,
        up_to: Height,
    ) -> Result<Vec<StoredTimer>, StorageError> {
        let payer = || filter.payer.map(TimersOf::Payer);
        let of = filter.actor.map(TimersOf::Actor).or_else(payer).unwrap_or(TimersOf::All);
        let sql = "SELECT height FROM timer_ended WHERE of = ? AND status = ? AND height <= ?
                   ORDER BY height DESC LIMIT ?";
        let values = params![of.key(), end.name(), signed(up_to), filter.limit];
        let mut found = Vec::new();
        for height in self.rows(sql, values, |row| columns::height(row, 0))? {
            let mut timers = self.effects(height)?.timers(height)?;
            timers.retain(|ended| ended.end == end && filter.accepts(&ended.timer));
            timers.sort_by_key(|ended| std::cmp::Reverse(ended.timer.seq));
            found.extend(timers.into_iter().map(|ended| StoredTimer::ended(height, ended)));
            if found.len() >= filter.limit {
                found.truncate(filter.limit);
                break;
            }
        }
        Ok(found)
    }

    /// The receipts of the timers that fired in a block, in order.
    pub fn fires(&self, at: Height) -> Result<Vec<Fire>, StorageError> {
        self.effects(at)?.fires(at)
    }

    pub fn count_fires(&self, at: Height) -> Result<u32, StorageError> {
        Ok(self.effects(at)?.count_fires())
    }

    /// Events about one timer, or caused by its fire if they are about no other timer, in order:
    /// all from the blocks in `lived`, which scheduled and ended it, and the newest of those
    /// between.
    pub fn events_of_timer(
        &self,
        timer: &Hash,
        lived: &[Height],
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StorageError> {
        let sql = "SELECT height FROM event_timer WHERE timer_id = ? ORDER BY height DESC LIMIT ?";
        let between = self.rows(sql, params![timer.0, limit], |row| columns::height(row, 0))?;
        let blocks: BTreeSet<_> = between.iter().chain(lived).copied().collect();
        let mut found = Vec::new();
        for height in blocks.into_iter().rev() {
            let events = self.events_at(height)?.into_iter().rev();
            found.extend(events.filter(|stored| stored.event.timer_id() == Some(*timer)));
            if found.len() >= limit {
                found.truncate(limit);
                break;
            }
        }
        found.reverse();
        Ok(found)
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

/// Where an ended timer is: the block, and the position among the timers that it ended.
struct TimerPlace {
    height: Height,
    position: usize,
}

impl TimerPlace {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { height: columns::height(row, 0)?, position: row.get(1)? })
    }
}
