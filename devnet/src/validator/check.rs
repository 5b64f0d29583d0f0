//! Checks a validator's store: everything in it must follow from the chain's blocks.

use crate::{
    chain::ledger::LedgerError,
    consensus::{certificate, scheme::Committee},
    machines::{self, borrowed},
    storage::{StorageError, ValidatorStore},
};
use cowboy_engine::{
    chain::{Block, Execution, Genesis, State, execute_on},
    primitives::{Hash, Height, codec::to_vec},
};
use cowboy_pvm::machine::Machine;
use std::{fmt, sync::Arc};

/// Number of faults after which a check ends.
const FAULTS: usize = 10;

/// An inconsistency in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFault {
    /// The part that is wrong: `index`, `blocks`, `certificates`, `roots` or `records`.
    pub what: &'static str,
    pub detail: String,
}

impl fmt::Display for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.detail)
    }
}

struct Check<'a> {
    store: &'a ValidatorStore,
    /// Runs actors in Python.
    machine: Option<Arc<Machine>>,
    faults: Vec<StoreFault>,
}

/// Checks a whole store: its pages and indexes, and for each block from the oldest to the newest
/// its link to its parent, its certificate, and the results of executing it again. If the oldest
/// blocks have been dropped, execution starts at the oldest snapshot of the state. Returns at most
/// [`FAULTS`] faults.
pub fn all(store: &ValidatorStore, genesis: &Genesis) -> Vec<StoreFault> {
    let mut check = Check { store, machine: None, faults: Vec::new() };
    if let Err(error) = check.run(genesis) {
        check.found("index", error);
    }
    check.faults.truncate(FAULTS);
    check.faults
}

impl Check<'_> {
    fn found(&mut self, what: &'static str, detail: impl fmt::Display) {
        self.faults.push(StoreFault { what, detail: detail.to_string() });
    }

    fn run(&mut self, genesis: &Genesis) -> Result<(), LedgerError> {
        self.machine = machines::of(&genesis.params)?;
        for line in self.store.integrity()? {
            self.found("index", line);
        }
        let Some((head, _)) = self.store.head()? else { return Ok(()) };
        let from = self.store.kept_from();
        let mut state = match from > Height::new(1) {
            false => Some(genesis.state()?),
            true => None,
        };
        let mut snapshots = self.store.snapshots()?;
        let mut parent = None;
        let mut height = from;
        while height <= head && self.faults.len() < FAULTS {
            let Some(block) = self.block(height, parent) else { return Ok(()) };
            parent = Some(block.hash());
            if let Some(before) = &state {
                let Some(after) = self.executed(before, &block) else { return Ok(()) };
                state = Some(after);
            }
            let snapshot = snapshots.iter().position(|snapshot| snapshot.height() == height);
            if let Some(snapshot) = snapshot.map(|at| snapshots.swap_remove(at)) {
                self.snapshot(height, &snapshot, state.as_ref())?;
                state.get_or_insert(snapshot);
            }
            height = height.next();
        }
        Ok(())
    }

    /// Reads a block; reports a fault unless it is well formed and follows its parent.
    fn block(&mut self, height: Height, parent: Option<Hash>) -> Option<Block> {
        let block = match self.store.block(height) {
            Ok(Some(block)) => block,
            Ok(None) => {
                self.found("blocks", format!("block {height} is missing"));
                return None;
            }
            Err(error) => {
                self.found("blocks", error);
                return None;
            }
        };
        let hash = block.hash();
        if !matches!(self.store.height_of(&hash), Ok(Some(at)) if at == height) {
            self.found("blocks", format!("block {height} has hash {hash}, which is not its own"));
            return None;
        }
        if parent.is_some_and(|parent| parent != block.header.parent) {
            self.found("blocks", format!("block {height} does not follow the one before it"));
            return None;
        }
        Some(block)
    }

    fn executed(&mut self, before: &State, block: &Block) -> Option<State> {
        let height = block.header.height;
        let execution = match execute_on(borrowed(&self.machine), before, block) {
            Ok(execution) => execution,
            Err(error) => {
                self.found("blocks", error);
                return None;
            }
        };
        self.certificates(before, block);
        let root = execution.state.root();
        match self.store.executed(height) {
            Ok(Some((stored, _))) if stored == root => {}
            Ok(Some((stored, _))) => self.found(
                "roots",
                format!("block {height} gives root {root}, the store says {stored}"),
            ),
            Ok(None) => self.found("roots", format!("block {height} has none")),
            Err(error) => self.found("roots", error),
        }
        for (name, stored, expected) in self.records(block, &execution) {
            match stored {
                Ok(stored) if stored == expected => {}
                Ok(_) => self.found(
                    "records",
                    format!("{name} of block {height} differ from what executing it again gives"),
                ),
                Err(error) => self.found("records", error),
            }
        }
        Some(execution.state)
    }

    fn certificates(&mut self, state: &State, block: &Block) {
        for proof in &block.certificates {
            let validators = state.validators_in(proof.round.epoch);
            let height = block.header.height;
            match Committee::of(state.chain_id(), validators) {
                Ok(committee) => {
                    if let Err(error) = certificate::verify(&committee, proof) {
                        self.found("certificates", format!("in block {height}: {error}"));
                    }
                }
                Err(error) => self.found("certificates", format!("in block {height}: {error}")),
            }
        }
    }

    fn snapshot(
        &mut self,
        height: Height,
        snapshot: &State,
        state: Option<&State>,
    ) -> Result<(), StorageError> {
        let root = snapshot.root();
        let stored = self.store.executed(height)?.map(|(root, _)| root);
        if stored != Some(root) || state.is_some_and(|state| state.root() != root) {
            self.found("roots", format!("the snapshot at block {height} has another root, {root}"));
        }
        Ok(())
    }

    /// The stored records of a block's execution, each with its expected value.
    fn records(&self, block: &Block, execution: &Execution) -> Vec<CheckedRecord> {
        let (store, at) = (self.store, block.header.height);
        let events = store.events_at(at).map(|events| {
            events.iter().flat_map(|stored| to_vec(&stored.event)).collect::<Vec<u8>>()
        });
        let lanes = store.lanes(at, at);
        let mut records = vec![
            ("receipts", store.receipts(at).map(|it| to_vec(&it)), to_vec(&execution.receipts)),
            ("fires", store.fires(at).map(|it| to_vec(&it)), to_vec(&execution.fires)),
            ("events", events, execution.events.iter().flat_map(to_vec).collect()),
            (
                "timer lanes",
                lanes.map(|it| it.iter().flat_map(|lane| to_vec(&lane.report)).collect()),
                to_vec(&execution.lane),
            ),
        ];
        for (job, runner, bytes) in &execution.results {
            let stored = store.result(job).map(|stored| {
                stored.map_or_else(Vec::new, |it| [&it.runner.0[..], &it.bytes].concat())
            });
            records.push(("results", stored, [&runner.0[..], bytes.as_slice()].concat()));
        }
        for derived in &execution.derived {
            let stored = store.presence(derived.height).map(|stored| {
                stored.map_or_else(Vec::new, |it| {
                    [it.certificate, it.bitmap, to_vec(&it.registry)].concat()
                })
            });
            let certificate = to_vec(&block.certificates[derived.certificate]);
            let bitmap = derived.bitmap.as_bytes().to_vec();
            records.push((
                "presence",
                stored,
                [certificate, bitmap, to_vec(&derived.order)].concat(),
            ));
        }
        records
    }
}

/// The name of a record, its stored bytes and the expected bytes.
type CheckedRecord = (&'static str, Result<Vec<u8>, StorageError>, Vec<u8>);
