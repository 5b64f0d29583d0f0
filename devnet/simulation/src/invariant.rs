//! Invariants of every block of every devnet, checked from outside the code that maintains them.

use cowboy_devnet::chain::ledger::ExecutedBlock;
use cowboy_engine::{
    chain::{EventKind, Execution},
    presence::Bitmap,
    primitives::{Address, Hash, Height, Wei, codec::to_vec, keccak256},
    registry::JobKind,
};
use std::collections::BTreeMap;

/// All invariants: their names and what holds. Those up to `mru` hold for every block, the others
/// for the run.
pub const INVARIANTS: [(&str, &str); 15] = [
    ("fork", "each height has one block and one root"),
    ("receipts", "each height has the same receipts, fires, lane and events"),
    ("presence", "each height has the same P"),
    ("fabricated", "too few liars put no runner into P"),
    ("hidden", "too few liars keep no runner out of P"),
    ("supply", "no money is created or lost"),
    ("one_result", "a job has one result"),
    ("mru", "MRU records come only from verified results"),
    ("liveness", "the chain did not halt, and nodes that lagged caught up"),
    ("agreement", "all stored chains agree"),
    ("trust", "no node has cut off another"),
    ("roots", "no block contradicts a root"),
    ("finality", "no block contradicts a final block"),
    ("deadlines", "no job is open past its deadline"),
    ("no_panic", "the simulated code did not panic"),
];

/// The invariant that a block breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("{validator} has {got} with root {root} at {height}, another {expected}")]
    Fork { validator: usize, height: Height, got: Hash, root: Hash, expected: String },
    /// Two validators have different receipts of a block (of transactions, timers or the lane), or
    /// different events.
    #[error("{validator} has other receipts or events of {height}")]
    Receipts { validator: usize, height: Height },
    #[error("{validator} derives another P({height})")]
    Presence { validator: usize, height: Height },
    #[error(
        "P({height}) has runner-{runner}, which no honest validator saw: {liars} lied, and it \
         takes {enough}"
    )]
    Fabricated {
        runner: usize,
        height: Height,
        /// Number of validators that lied about that block and can influence it.
        liars: u32,
        enough: u32,
    },
    #[error(
        "P({height}) lacks runner-{runner}, which all honest validators of its subset saw: \
         {liars} of them lied, and it takes {enough}"
    )]
    Hidden { runner: usize, height: Height, liars: u32, enough: u32 },
    #[error("after {height} there are {got} wei, not {expected}")]
    Supply { height: Height, got: Wei, expected: Wei },
    #[error("job {job} has a second result at {height}, the first was at {first}")]
    SecondResult { job: Hash, height: Height, first: Height },
    #[error("an MRU record for {runner} at {height} without a verified result of its own")]
    Mru { runner: Address, height: Height },
    #[error(
        "the state's MRU runner of {submitter} is not the one that the events tell at {height}"
    )]
    MruState { submitter: Address, height: Height },
}

impl Violation {
    pub const fn invariant(&self) -> &'static str {
        match self {
            Self::Fork { .. } => "fork",
            Self::Receipts { .. } => "receipts",
            Self::Presence { .. } => "presence",
            Self::Fabricated { .. } => "fabricated",
            Self::Hidden { .. } => "hidden",
            Self::Supply { .. } => "supply",
            Self::SecondResult { .. } => "one_result",
            Self::Mru { .. } | Self::MruState { .. } => "mru",
        }
    }
}

/// Checks every block that every validator executes.
pub struct Invariants {
    supply: Wei,
    chain: BTreeMap<Height, (Hash, Hash)>,
    receipts: BTreeMap<Height, Hash>,
    presence: BTreeMap<Height, Bitmap>,
    /// Per validator, because a validator may execute blocks again after a crash and repeat their
    /// events.
    validators: BTreeMap<usize, Seen>,
    /// Number of events of each kind, of every block once.
    events: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct Seen {
    head: Height,
    results: BTreeMap<Hash, Height>,
    mru: BTreeMap<(Address, JobKind), Address>,
}

impl Invariants {
    pub const fn new(supply: Wei) -> Self {
        Self {
            supply,
            chain: BTreeMap::new(),
            receipts: BTreeMap::new(),
            presence: BTreeMap::new(),
            validators: BTreeMap::new(),
            events: BTreeMap::new(),
        }
    }

    pub const fn events(&self) -> &BTreeMap<&'static str, u64> {
        &self.events
    }

    /// The highest checked block.
    pub fn height(&self) -> Height {
        self.chain.last_key_value().map_or(Height::GENESIS, |(height, _)| *height)
    }

    pub fn root(&self, height: Height) -> Option<Hash> {
        self.chain.get(&height).map(|(_, root)| *root)
    }

    pub fn check(&mut self, validator: usize, executed: &ExecutedBlock) -> Result<(), Violation> {
        let height = executed.block.header.height;
        let mine = (executed.hash, executed.root);
        if !self.chain.contains_key(&height) {
            for event in &executed.execution.events {
                *self.events.entry(event.kind.name()).or_default() += 1;
            }
        }
        let agreed = *self.chain.entry(height).or_insert(mine);
        if agreed != mine {
            return Err(Violation::Fork {
                validator,
                height,
                got: executed.hash,
                root: executed.root,
                expected: format!("{} with root {}", agreed.0, agreed.1),
            });
        }
        let mine = digest(&executed.execution);
        if *self.receipts.entry(height).or_insert(mine) != mine {
            return Err(Violation::Receipts { validator, height });
        }
        for derived in &executed.execution.derived {
            let agreed =
                self.presence.entry(derived.height).or_insert_with(|| derived.bitmap.clone());
            if *agreed != derived.bitmap {
                return Err(Violation::Presence { validator, height: derived.height });
            }
        }
        let got = executed.execution.state.supply().total();
        if got != self.supply {
            return Err(Violation::Supply { height, got, expected: self.supply });
        }
        let seen = self.validators.entry(validator).or_default();
        if height <= seen.head {
            return Ok(());
        }
        seen.head = height;
        seen.events(height, executed)
    }
}

/// A hash over receipts, fires, lane and events, each in order.
fn digest(execution: &Execution) -> Hash {
    let Execution { receipts, fires, lane, events, .. } = execution;
    let mut parts = vec![to_vec(lane)];
    parts.extend(receipts.iter().map(to_vec));
    parts.extend(fires.iter().map(to_vec));
    parts.extend(events.iter().map(to_vec));
    keccak256(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

impl Seen {
    fn events(&mut self, height: Height, executed: &ExecutedBlock) -> Result<(), Violation> {
        let mut verified = Vec::new();
        for event in &executed.execution.events {
            match &event.kind {
                EventKind::JobVerified(job) => {
                    if let Some(first) = self.results.insert(job.job_id, height) {
                        return Err(Violation::SecondResult { job: job.job_id, height, first });
                    }
                    verified.push((event.transaction, job.runner));
                }
                EventKind::MruUpdated(mru) => {
                    if !verified.contains(&(event.transaction, mru.runner)) {
                        return Err(Violation::Mru { runner: mru.runner, height });
                    }
                    self.mru.insert((mru.submitter, mru.kind), mru.runner);
                }
                _ => {}
            }
        }
        for (submitter, kind, record) in executed.execution.state.mru() {
            if self.mru.get(&(submitter, kind)) != Some(&record.runner) {
                return Err(Violation::MruState { submitter, height });
            }
        }
        Ok(())
    }
}
