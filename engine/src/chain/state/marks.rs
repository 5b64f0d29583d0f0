//! Marks: the state after a block, kept so that a later block can return to it.
//!
//! The chain goes on when it returns: heights, timestamps, nonces and committees do not go back, so
//! consensus notices nothing and no transaction can be executed twice. Everything else is as it was
//! after the marked block, with every height and time that a rule reads moved by the blocks in
//! between. A timer that was due in five blocks is due in five blocks again. Heights and times that
//! actors stored themselves are not moved.

use super::{Account, Burned, Outbox, PendingCallback, State};
use crate::{
    chain::{
        actors::{Actor, ActorCode, StoreKey},
        tasks::Tasks,
        timers::{Lane, Timers},
    },
    job::{
        mru::MruRecord,
        spec::{Job, Withheld},
    },
    presence::{Connectivity, Migration},
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer, to_vec},
        keccak256,
        merkle::Map,
    },
    record,
    registry::{Entitlements, JobKind, Registry},
    speculation::Bonds,
};
use std::sync::Arc;

/// Maximum number of marks at a time. Each is a whole state where states are stored.
pub const MAX_MARKS: usize = 16;

/// Why a mark is not made or not returned to. The text begins with the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    #[error("TooManyMarks: a chain keeps at most {MAX_MARKS} snapshots; forget one")]
    TooMany,
    #[error("UnknownMark: there is no snapshot {0}")]
    Unknown(u64),
    #[error("OneMarkPerBlock: another transaction of this block has to do with a snapshot")]
    Taken,
}

record! {
    /// What a chain returns to: all of a state that does not belong to its consensus.
    #[derive(Clone, Debug)]
    struct MarkedState {
        accounts: Map<Address, Account>,
        registry: Registry,
        entitlements: Entitlements,
        jobs: Map<Hash, Job>,
        open_jobs: Map<Hash, Height>,
        withheld: Map<Hash, Withheld>,
        mru: Map<(Address, JobKind), MruRecord>,
        callbacks: Arc<Vec<PendingCallback>>,
        outbox: Outbox,
        actors: Map<Address, Actor>,
        code: Map<Hash, ActorCode>,
        storage: Map<(Address, StoreKey), Vec<u8>>,
        timers: Timers,
        tasks: Tasks,
        basefee_cycle: Wei,
        basefee_cell: Wei,
        burned: Burned,
        migration: Migration,
        connectivity: Connectivity,
        bonds: Bonds,
    }
}

record! {
    /// The values of a marked state outside its maps.
    struct MarkedScalars {
        callbacks: Arc<Vec<PendingCallback>>,
        outbox: Outbox,
        lane: Lane,
        basefee_cycle: Wei,
        basefee_cell: Wei,
        burned: Burned,
        migration: Migration,
        connectivity: Connectivity,
        bonds: Bonds,
    }
}

impl MarkedState {
    /// Commits to all of it.
    fn root(&self) -> Hash {
        let scalars = to_vec(&MarkedScalars {
            callbacks: self.callbacks.clone(),
            outbox: self.outbox.clone(),
            lane: self.timers.lane.clone(),
            basefee_cycle: self.basefee_cycle,
            basefee_cell: self.basefee_cell,
            burned: self.burned,
            migration: self.migration,
            connectivity: self.connectivity,
            bonds: self.bonds,
        });
        let parts = [
            self.accounts.root(),
            self.registry.root(),
            self.entitlements.root(),
            self.jobs.root(),
            self.open_jobs.root(),
            self.withheld.root(),
            self.mru.root(),
            self.actors.root(),
            self.code.root(),
            self.storage.root(),
            self.timers.queue.root(),
            self.timers.fairness.root(),
            self.timers.auction.root(),
            self.tasks.by_id.root(),
            self.tasks.open.root(),
            keccak256(&[&scalars]),
        ];
        let parts: Vec<u8> = parts.iter().flat_map(|part| part.0).collect();
        keccak256(&[b"cowboy-mark/v1", &parts])
    }
}

record! {
    /// A state that can be returned to.
    #[derive(Clone, Debug)]
    pub struct Mark {
        /// 1 for a chain's first mark; a number is never used twice.
        pub number: u64,
        /// The marked block.
        pub height: Height,
        /// That block's timestamp.
        timestamp_ms: u64,
        state: MarkedState,
    }
}

/// What a state root commits to of a mark.
struct MarkDigest {
    number: u64,
    height: Height,
    timestamp_ms: u64,
    root: Hash,
}
record!(MarkDigest { number, height, timestamp_ms, root });

/// A state's marks, ascending by number. A state leaves them out before the first.
#[derive(Clone, Debug, Default)]
pub(in crate::chain) struct Marks {
    marks: Arc<Vec<Mark>>,
    /// The number of the newest mark so far.
    newest: u64,
}

struct MarkList {
    marks: Arc<Vec<Mark>>,
    newest: u64,
}
record!(MarkList { marks, newest });

struct MarkDigests {
    marks: Vec<MarkDigest>,
    newest: u64,
}
record!(MarkDigests { marks, newest });

impl Encode for Marks {
    fn encode(&self, w: &mut Writer) {
        MarkList { marks: self.marks.clone(), newest: self.newest }.encode(w);
    }

    fn is_absent(&self) -> bool {
        self.newest == 0
    }
}

impl Decode for Marks {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let MarkList { marks, newest } = Decode::decode(r)?;
        let numbers: Vec<u64> = marks.iter().map(|mark| mark.number).collect();
        let bounded = marks.len() <= MAX_MARKS && numbers.is_sorted_by(|a, b| a < b);
        match bounded && newest > 0 && numbers.last().is_none_or(|last| *last <= newest) {
            true => Ok(Self { marks, newest }),
            false => Err(DecodeError::Invalid("marks: ascending, at most 16")),
        }
    }

    fn absent(_: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::default())
    }
}

impl Marks {
    /// What a state root commits to; `None` before the first mark.
    pub(super) fn commitment(&self) -> Option<Hash> {
        if self.is_absent() {
            return None;
        }
        let digest = |mark: &Mark| MarkDigest {
            number: mark.number,
            height: mark.height,
            timestamp_ms: mark.timestamp_ms,
            root: mark.state.root(),
        };
        let marks = self.marks.iter().map(digest).collect();
        Some(keccak256(&[&to_vec(&MarkDigests { marks, newest: self.newest })]))
    }
}

impl State {
    /// The marks, ascending by number.
    pub fn marks(&self) -> &[Mark] {
        &self.marks.marks
    }

    /// The number that the next mark gets.
    pub(in crate::chain) fn next_mark(&self) -> Result<u64, MarkError> {
        match self.marks.marks.len() < MAX_MARKS {
            true => Ok(self.marks.newest + 1),
            false => Err(MarkError::TooMany),
        }
    }

    /// Marks this state, under [`Self::next_mark`].
    pub(in crate::chain) fn mark(&mut self) {
        let state = MarkedState {
            accounts: self.accounts.clone(),
            registry: self.registry.clone(),
            entitlements: self.entitlements.clone(),
            jobs: self.jobs.clone(),
            open_jobs: self.open_jobs.clone(),
            withheld: self.withheld.clone(),
            mru: self.mru.clone(),
            callbacks: self.callbacks.clone(),
            outbox: self.outbox.clone(),
            actors: self.actors.clone(),
            code: self.code.clone(),
            storage: self.storage.clone(),
            timers: self.timers.at_rest(),
            tasks: self.tasks.clone(),
            basefee_cycle: self.basefee_cycle,
            basefee_cell: self.basefee_cell,
            burned: self.burned,
            migration: self.migration,
            connectivity: self.connectivity,
            bonds: self.bonds,
        };
        let number = self.marks.newest + 1;
        let (height, timestamp_ms) = (self.height(), self.head.timestamp_ms);
        let mark = Mark { number, height, timestamp_ms, state };
        self.marks.newest = number;
        Arc::make_mut(&mut self.marks.marks).push(mark);
    }

    pub(in crate::chain) fn forget(&mut self, number: u64) {
        Arc::make_mut(&mut self.marks.marks).retain(|mark| mark.number != number);
    }

    /// Returns to a mark and forgets later ones. Returns false if there is no such mark.
    pub(in crate::chain) fn return_to(&mut self, number: u64) -> bool {
        let Some(at) = self.marks.marks.iter().position(|mark| mark.number == number) else {
            return false;
        };
        Arc::make_mut(&mut self.marks.marks).truncate(at + 1);
        let Mark { height, timestamp_ms, state, .. } = self.marks.marks[at].clone();
        let (now, by) = (self.height(), self.height().since(height));
        let ms = self.head.timestamp_ms.saturating_sub(timestamp_ms);
        let nonces = self.accounts.clone();
        let MarkedState {
            accounts,
            registry,
            entitlements,
            jobs,
            open_jobs,
            withheld,
            mru,
            callbacks,
            outbox,
            actors,
            code,
            storage,
            timers,
            tasks,
            basefee_cycle,
            basefee_cell,
            burned,
            migration,
            connectivity,
            bonds,
        } = state;
        self.accounts = with_nonces(accounts, &nonces);
        self.registry = registry.later(by);
        self.entitlements = entitlements.later(by);
        self.jobs = jobs.map_values(|job| job.later(by, ms));
        self.open_jobs = open_jobs.map_values(|height| height.after(by));
        self.withheld = withheld.map_values(|withheld| withheld.later(by));
        self.mru = mru.map_values(|record| record.later(by));
        (self.callbacks, self.outbox) = (callbacks, outbox);
        self.actors = actors.map_values(|actor| actor.later(by));
        (self.code, self.storage) = (code, storage);
        self.timers = timers.later(by, now);
        self.tasks = tasks.later(by);
        (self.basefee_cycle, self.basefee_cell) = (basefee_cycle, basefee_cell);
        self.burned = burned;
        self.migration = Migration { since: migration.since.after(by), ..migration };
        (self.connectivity, self.bonds) = (connectivity, bonds);
        self.note_order(now);
        true
    }
}

/// The accounts of a mark with the nonces of now.
fn with_nonces(
    mut accounts: Map<Address, Account>,
    now: &Map<Address, Account>,
) -> Map<Address, Account> {
    for (address, Account { nonce, .. }) in now.iter() {
        let marked = accounts.get(address).copied().unwrap_or_default();
        if marked.nonce != *nonce {
            accounts.insert(*address, Account { nonce: *nonce, ..marked });
        }
    }
    accounts
}
