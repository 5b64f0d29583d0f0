//! Opening a validator's store at its start: it is read, or rebuilt if it is damaged.
//!
//! The contents of a store follow from its blocks. A damaged store is set aside, and a new one is
//! built by executing the readable blocks in order, up to the first unreadable one. The other
//! validators have the rest, and consensus fetches it with the proof that it is final.

use super::check;
use crate::{
    chain::ledger::{Ledger, LedgerError},
    storage::{Keep, StorageError, ValidatorStore},
};
use cowboy_engine::{
    chain::Genesis,
    primitives::{Hash, Height},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A report on a rebuilt store.
#[derive(Debug)]
pub struct Rebuilt {
    pub damage: LedgerError,
    pub aside: PathBuf,
    /// The last block that was readable.
    pub up_to: Height,
    /// The last block of the damaged store, if that was readable.
    pub of: Option<Height>,
}

/// Why a validator has no store.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// The store cannot be read for a reason other than damage.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("{path}: {error}")]
    Aside { path: PathBuf, error: io::Error },
}

/// Opens the store at `path` with its chain. A damaged store is rebuilt.
pub fn open(
    path: &Path,
    genesis: &Genesis,
    keep: Keep,
) -> Result<(Ledger, Option<Rebuilt>), RebuildError> {
    let damage = match read(path, genesis, keep) {
        Ok(ledger) => return Ok((ledger, None)),
        Err(error) if error.is_damage() => error,
        Err(error) => return Err(error.into()),
    };
    let aside = set_aside(path)?;
    let ledger = read(path, genesis, keep)?;
    let damaged = ValidatorStore::open_damaged(&aside, genesis.chain_id()).ok();
    let of = damaged.as_ref().and_then(|store| store.head().ok()?).map(|(height, _)| height);
    let up_to = match &damaged {
        Some(damaged) => salvage(damaged, &ledger)?,
        None => Height::GENESIS,
    };
    if ledger.alarm().is_some() {
        // The chain shows that its blocks used to have other results: the program has changed, and
        // the file is not damaged.
        drop((ledger, damaged));
        shift(&aside, path)?;
        return Err(damage.into());
    }
    Ok((ledger, Some(Rebuilt { damage, aside, up_to, of })))
}

/// Opens a chain from its store. A damaged store is rebuilt. If the others no longer have the
/// blocks that it lacks, it becomes a copy of one of their stores, which are at `others`.
pub fn open_chain(
    whose: &str,
    path: &Path,
    genesis: &Genesis,
    keep: Keep,
    others: &[PathBuf],
) -> Result<Ledger, String> {
    let told = |error: RebuildError| format!("{}: {error}", path.display());
    let (ledger, rebuilt) = open(path, genesis, keep).map_err(told)?;
    if let Some(Rebuilt { damage, aside, up_to, .. }) = rebuilt {
        let aside = aside.display();
        tracing::warn!(
            %whose, %damage, %aside,
            "its store is damaged: rebuilt up to block {up_to}, other validators have the rest"
        );
    }
    match copied(path, &ledger, genesis, keep, others).map_err(told)? {
        Some((copy, from)) => {
            let (height, from) = (copy.head().height(), from.display());
            tracing::warn!(
                %whose, %from,
                "the others have dropped the blocks that it lacks: copied up to block {height}"
            );
            Ok(copy)
        }
        None => Ok(ledger),
    }
}

fn read(path: &Path, genesis: &Genesis, keep: Keep) -> Result<Ledger, LedgerError> {
    let store = ValidatorStore::open(path, genesis.chain_id())?.keeping(keep);
    Ledger::open(genesis, Arc::new(store))
}

/// Renames the file and its SQLite companions to `index.db.damaged`, which replaces an earlier one.
fn set_aside(path: &Path) -> Result<PathBuf, RebuildError> {
    let aside = with_suffix(path, ".damaged");
    shift(path, &aside)?;
    Ok(aside)
}

/// Moves a store from one path to another, replacing what is there.
fn shift(from: &Path, to: &Path) -> Result<(), RebuildError> {
    for suffix in ["-shm", "-wal", ""] {
        let (from, to) = (with_suffix(from, suffix), with_suffix(to, suffix));
        remove(&to)?;
        match fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RebuildError::Aside { path: from, error });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Executes the readable blocks of `damaged`, from the first on; returns the last of them.
fn salvage(damaged: &ValidatorStore, ledger: &Ledger) -> Result<Height, LedgerError> {
    let mut up_to = Height::GENESIS;
    loop {
        let height = up_to.next();
        let (Ok(Some(block)), Ok(Some((_, executed_ms)))) =
            (damaged.block(height), damaged.executed(height))
        else {
            return Ok(up_to);
        };
        // The block's bytes are those that were stored; its results follow from them.
        if !is_sound(damaged, height, &block.hash()) {
            return Ok(up_to);
        }
        let block = Arc::new(block);
        match ledger.commit(&block, executed_ms) {
            Ok(_) => up_to = height,
            Err(LedgerError::Execution(_)) => return Ok(up_to),
            Err(error) => return Err(error),
        }
    }
}

fn is_sound(store: &ValidatorStore, height: Height, hash: &Hash) -> bool {
    matches!(store.height_of(hash), Ok(Some(stored)) if stored == height)
}

/// Replaces the store at `path` by a copy if no other validator has the block after the ledger's
/// head. The copy is of the store with the highest head among `others` (their files) whose check
/// finds no fault.
pub fn copied(
    path: &Path,
    ledger: &Ledger,
    genesis: &Genesis,
    keep: Keep,
    others: &[PathBuf],
) -> Result<Option<(Ledger, PathBuf)>, RebuildError> {
    let next = ledger.head().height().next();
    let mut heads = Vec::new();
    for other in others.iter().filter(|other| other.exists()) {
        let Ok(store) = ValidatorStore::open(other, genesis.chain_id()) else { continue };
        let Ok(Some((head, _))) = store.head() else { continue };
        if store.kept_from() <= next {
            return Ok(None);
        }
        heads.push((head, other));
    }
    heads.sort_unstable_by_key(|(head, _)| *head);
    let new = path.with_extension("db.new");
    for (_, other) in heads.into_iter().rev() {
        remove(&new)?;
        let copy =
            ValidatorStore::open(other, genesis.chain_id()).and_then(|store| store.copy(&new));
        if copy.is_err() {
            continue;
        }
        let checked = read(&new, genesis, keep).map(|copy| check::all(copy.store(), genesis));
        if !matches!(checked, Ok(faults) if faults.is_empty()) {
            tracing::warn!(from = %other.display(), "skipping an inconsistent store");
            continue;
        }
        remove_store(path).map_err(|error| RebuildError::Aside { path: path.to_owned(), error })?;
        fs::rename(&new, path)
            .map_err(|error| RebuildError::Aside { path: path.to_owned(), error })?;
        for suffix in ["-shm", "-wal"] {
            remove(&with_suffix(&new, suffix))?;
        }
        return Ok(Some((read(path, genesis, keep)?, other.clone())));
    }
    Ok(None)
}

/// Removes a store that no process has open.
pub fn remove_store(path: &Path) -> io::Result<()> {
    ["-shm", "-wal", ""].iter().try_for_each(|suffix| remove_file(&with_suffix(path, suffix)))
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove(path: &Path) -> Result<(), RebuildError> {
    remove_file(path).map_err(|error| RebuildError::Aside { path: path.to_owned(), error })
}

impl From<StorageError> for RebuildError {
    fn from(error: StorageError) -> Self {
        Self::Ledger(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        consensus::{
            Digest, Finalization, certificate,
            scheme::{BitmapSource, Committee, Scheme},
        },
        storage::{head_of, tests::extend_with},
    };
    use commonware_consensus::{
        simplex::types::{Finalize, Proposal},
        types::{Epoch, Round, View},
    };
    use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
    use commonware_parallel::Sequential;
    use commonware_utils::non_empty;
    use cowboy_engine::{
        chain::{Header, State},
        presence::Bitmap,
    };

    struct Everybody;

    impl BitmapSource for Everybody {
        fn presence(&self, _: &[u8]) -> Bitmap {
            Bitmap::from_fn(1, |_| true)
        }
    }

    fn key() -> PrivateKey {
        PrivateKey::from_seed(1)
    }

    fn genesis() -> Genesis {
        let mut genesis = crate::storage::tests::genesis();
        genesis.validators[0].consensus_key = key().public_key().as_ref().try_into().unwrap();
        genesis
    }

    fn chain(path: &Path, keep: Keep, blocks: u64) {
        changed_chain(path, keep, blocks, |_| ());
    }

    fn changed_chain(path: &Path, keep: Keep, blocks: u64, change: impl Fn(&mut Header)) {
        let mut state = genesis().state().unwrap();
        let store = ValidatorStore::open(path, state.chain_id()).unwrap().keeping(keep);
        let committee = Committee::of(state.chain_id(), &genesis().validators).unwrap();
        let scheme = Scheme::new(Arc::new(committee), key(), Arc::new(Everybody));
        let certificate = |state: &State| {
            let round = state.head().round;
            let proposal = Proposal::<Digest>::new(
                Round::new(Epoch::new(round.epoch), View::new(round.view)),
                View::new(round.parent_view),
                certificate::digest(state.head_hash()),
            );
            let vote = Finalize::sign(&scheme, proposal).unwrap();
            let finalization: Finalization =
                Finalization::from_finalizes(&scheme, non_empty![&vote], &Sequential).unwrap();
            certificate::from_finalization(&finalization)
        };
        extend_with(&store, &mut state, blocks, certificate, change);
        store.snapshot(&state).unwrap();
    }

    const KEEP: Keep = Keep::Blocks(Keep::MIN_BLOCKS);

    fn head(ledger: &Ledger) -> u64 {
        ledger.head().height().get()
    }

    #[test]
    fn what_can_be_read_of_a_damaged_store_is_executed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        chain(&path, Keep::default(), 300);
        let store = rusqlite::Connection::open(&path).unwrap();
        store.execute("UPDATE block SET body = x'00' WHERE height = 290", []).unwrap();
        store.execute("DELETE FROM snapshot WHERE height = 300", []).unwrap();
        drop(store);
        let (ledger, rebuilt) = open(&path, &genesis(), Keep::default()).unwrap();
        let rebuilt = rebuilt.unwrap();
        let expected = (289, Height::new(289), Some(Height::new(300)));
        assert_eq!((head(&ledger), rebuilt.up_to, rebuilt.of), expected);
        assert!(rebuilt.aside.exists());
        assert_eq!(check::all(ledger.store(), &genesis()), []);
        drop(ledger);
        assert!(open(&path, &genesis(), Keep::default()).unwrap().1.is_none());
        let store = rusqlite::Connection::open(&path).unwrap();
        store.execute_batch("DROP TABLE presence; DROP INDEX result_height").unwrap();
        drop(store);
        let (ledger, rebuilt) = open(&path, &genesis(), Keep::default()).unwrap();
        let rebuilt = rebuilt.unwrap();
        assert!(rebuilt.damage.to_string().contains("`presence` is missing"), "{rebuilt:?}");
        assert_eq!((head(&ledger), rebuilt.up_to), (289, Height::new(289)));
        assert_eq!(check::all(ledger.store(), &genesis()), []);
        drop(ledger);
        fs::write(&path, "no database, and nothing to be read of it").unwrap();
        for suffix in ["-wal", "-shm"] {
            remove(&with_suffix(&path, suffix)).unwrap();
        }
        let (ledger, rebuilt) = open(&path, &genesis(), Keep::default()).unwrap();
        assert_eq!((head(&ledger), rebuilt.unwrap().of), (0, None));
    }

    #[test]
    fn a_store_of_another_program_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        // Its blocks name another root than this program computes.
        changed_chain(&path, Keep::default(), 20, |header| {
            header.executed.state_root = Hash([9; 32]);
        });
        let change = |sql: &str| {
            rusqlite::Connection::open(&path).unwrap().execute(sql, []).unwrap();
        };
        change("DELETE FROM snapshot");
        change("UPDATE block SET state_root = zeroblob(32) WHERE height = 7");
        let error = open(&path, &genesis(), Keep::default()).err().unwrap();
        assert!(matches!(error, RebuildError::Ledger(LedgerError::Diverged { .. })), "{error}");
        assert!(!with_suffix(&path, ".damaged").exists());
        assert_eq!(head_of(&path).unwrap().unwrap().height, Height::new(20));
    }

    #[test]
    fn what_others_have_dropped_is_copied_from_a_sound_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (mine, short, long) = (path("mine"), path("short"), path("long"));
        chain(&short, KEEP, 1_300);
        chain(&long, KEEP, 1_400);
        let (ledger, _) = open(&mine, &genesis(), KEEP).unwrap();
        let copy = |others: &[PathBuf]| {
            copied(&mine, &ledger, &genesis(), KEEP, others).unwrap().map(|(copy, from)| {
                assert!(copy.store().kept_from() > Height::new(1));
                (head(&copy), from)
            })
        };
        rusqlite::Connection::open(&long)
            .unwrap()
            .execute("UPDATE effects SET body = zeroblob(3) WHERE height = 1399", [])
            .unwrap();
        let others = [short.clone(), long.clone(), path("none")];
        assert_eq!(copy(&others), Some((1_300, short.clone())), "the other one is damaged");
        chain(&path("whole"), Keep::default(), 10);
        assert_eq!(copy(&[short, path("whole")]), None, "its blocks can be fetched");
        assert_eq!(copy(&[]), None);
    }
}
