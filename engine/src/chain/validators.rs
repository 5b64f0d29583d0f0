//! Who validates when, and whom runners connect to (spec connectivity.md §1, chain.md
//! "Transactions").
//!
//! Blocks are counted in consensus epochs of [`Params::epoch_blocks`](super::Params::epoch_blocks):
//! epoch e holds the heights from e · `epoch_blocks` on. A committee serves for whole epochs. A
//! transaction in epoch e changes the committee of e + 1, which therefore is known once the last
//! block of e is executed.
//!
//! Runners connect to a subset of the committee as it was when the subset epoch began. That one
//! advances with the first block of a consensus epoch, when [`SUBSET_EPOCH_BLOCKS`] have passed
//! since the last advance or more than a tenth of the committee has come or gone. A removed
//! validator that stays below the tenth remains in subsets until then, and an added one is in none.

use super::{genesis::Validator, params::SUBSET_EPOCH_BLOCKS};
use crate::{
    presence::subset,
    primitives::{
        Address, Hash, Height, PublicKey,
        codec::{Decode, DecodeError, Encode, Reader, Writer, to_vec},
        keccak256,
        merkle::{self, Map},
    },
    record,
};
use curve25519_dalek::edwards::CompressedEdwardsY;
use std::{cmp::Ordering, sync::Arc};

/// Validators in a committee at most.
pub const MAX_VALIDATORS: usize = 100;
/// Blocks after an advance of the subset epoch during which the subsets of before count too.
pub const OVERLAP_BLOCKS: u64 = 32;
/// The part of the committee that has to come or go for the subset epoch to advance early: more
/// than one in this many.
const CHURN: usize = 10;

/// Why a committee does not change. The variant's name opens the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommitteeError {
    /// It has a validator with one of these keys, in this epoch or the next.
    #[error("ValidatorExists: {0} is in the committee of the next epoch, or its consensus key is")]
    Exists(Address),
    /// It has no such validator.
    #[error("UnknownValidator: {0} is not in the committee of the next epoch")]
    Unknown(Address),
    /// Nobody would be left.
    #[error("LastValidator: without {0} the next epoch would have no validator")]
    Last(Address),
    /// As many as there may be.
    #[error("TooManyValidators: a committee has at most {MAX_VALIDATORS}")]
    TooMany,
    /// Bytes that nobody can sign for.
    #[error("InvalidConsensusKey: its consensus key is no ed25519 public key")]
    InvalidKey,
}

/// Where an entry begins to hold. Ordered downwards: what holds at x is the first entry from x on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since(u64);

impl Ord for Since {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}

impl PartialOrd for Since {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Encode for Since {
    fn encode(&self, w: &mut Writer) {
        w.u64(self.0);
    }
}

impl Decode for Since {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.u64().map(Self)
    }
}

/// A subset epoch: what subsets are computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubsetEpoch {
    /// Its number, as headers have it.
    pub number: u64,
    /// The committee when it began, ascending by address.
    pub validators: Arc<Vec<Validator>>,
}
record!(SubsetEpoch { number, validators });

impl SubsetEpoch {
    /// The subset of a runner, nearest first.
    pub fn subset_of(&self, runner: &PublicKey) -> Vec<&Validator> {
        let keys: Vec<_> = self.validators.iter().map(|v| v.pubkey.clone()).collect();
        subset::of(runner, &keys).into_iter().map(|i| &self.validators[i]).collect()
    }
}

/// The validators that a runner may be connected to while the subsets of all `epochs` count: those
/// of the first, nearest first, then the others of each further one.
pub(super) fn subsets_of<'a>(
    epochs: impl IntoIterator<Item = &'a SubsetEpoch>,
    runner: &PublicKey,
) -> Vec<&'a Validator> {
    let mut all: Vec<&Validator> = Vec::new();
    for validator in epochs.into_iter().flat_map(|epoch| epoch.subset_of(runner)) {
        if !all.contains(&validator) {
            all.push(validator);
        }
    }
    all
}

/// Who validates, and whom runners connect to, as one state has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The consensus epoch of the block that left the state.
    pub epoch: u64,
    /// The committee of that epoch, ascending by address.
    pub committee: Arc<Vec<Validator>>,
    /// The committee of the next epoch, if nothing more changes.
    pub next: Arc<Vec<Validator>>,
    /// Whether nothing more can change: the block is the last of its epoch.
    pub next_decided: bool,
    /// The subset epochs that count, newest first: one or two.
    pub subsets: Vec<SubsetEpoch>,
}

impl Roster {
    /// The committee of a consensus epoch; `None`: neither the state's epoch nor the next.
    pub fn committee_of(&self, epoch: u64) -> Option<&Arc<Vec<Validator>>> {
        match epoch.checked_sub(self.epoch)? {
            0 => Some(&self.committee),
            1 => Some(&self.next),
            _ => None,
        }
    }

    /// The validators that a runner may be connected to, nearest first: as
    /// [`State::subsets_of`](super::State::subsets_of).
    pub fn subsets_of(&self, runner: &PublicKey) -> Vec<&Validator> {
        subsets_of(&self.subsets, runner)
    }
}

/// An entry of one of the two maps, with what shows that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The first consensus epoch, or the first height, from which it holds.
    pub since: u64,
    /// The value in its one form.
    pub value: Vec<u8>,
    /// The way to the map's root.
    pub proof: merkle::Proof,
}

/// The newest entries of a map of validators: all that holds at the state's height, because no
/// entry begins later than with the next consensus epoch. The part of the state root names where
/// they begin, so that none can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// A number of blocks that the part commits to: those of a consensus epoch, or of an overlap.
    pub blocks: u64,
    /// The newest entry.
    pub newest: Held,
    /// The one before it; `None`: there is no other.
    pub before: Option<Held>,
}

impl Newest {
    fn of<V: Encode + Clone>(map: &Map<Since, V>, blocks: u64) -> Self {
        let mut entries = map.iter().map(|(since, value)| {
            let proof = map.prove(since).expect("it is there");
            Held { since: since.0, value: to_vec(value), proof }
        });
        let newest = entries.next().expect("one since genesis");
        Self { blocks, newest, before: entries.next() }
    }

    /// The part of the state root that this is of; `None`: the entries are not of one map, or out
    /// of order. `name` is the map's.
    pub(super) fn part(&self, name: &str) -> Option<Hash> {
        let root_by = |held: &Held| held.proof.root(&Since(held.since), &held.value);
        let root = root_by(&self.newest)?;
        let mut since = vec![self.newest.since];
        if let Some(before) = &self.before {
            if before.since >= self.newest.since || root_by(before)? != root {
                return None;
            }
            since.push(before.since);
        }
        Some(part(name, &root, self.blocks, &since))
    }

    /// The entry that holds at `at`.
    pub(super) fn holding_at(&self, at: u64) -> Option<&Held> {
        [Some(&self.newest), self.before.as_ref()].into_iter().flatten().find(|h| h.since <= at)
    }
}

/// keccak256(name ‖ root of the map ‖ blocks (8) ‖ where the newest two entries begin (8 each)).
fn part(name: &str, root: &Hash, blocks: u64, since: &[u64]) -> Hash {
    let since: Vec<u8> = since.iter().flat_map(|since| since.to_be_bytes()).collect();
    keccak256(&[name.as_bytes(), &root.0, &blocks.to_be_bytes(), &since])
}

/// The name of the committees' part of the state root.
pub(super) const COMMITTEES: &str = "committees";
/// The name of the subset epochs' part of the state root.
pub(super) const SUBSETS: &str = "subset-epochs";

/// All committees and subset epochs of a chain so far, and the next committee where it differs.
#[derive(Clone, Debug)]
pub(super) struct Validators {
    /// By the first consensus epoch they serve in.
    committees: Map<Since, Arc<Vec<Validator>>>,
    /// By their first height.
    subsets: Map<Since, SubsetEpoch>,
}
record!(Validators { committees, subsets });

impl Validators {
    /// `first`, ascending by address, from genesis on.
    pub(super) fn genesis(first: Vec<Validator>) -> Self {
        let first = Arc::new(first);
        let mut subsets = Map::new();
        subsets.insert(Since(0), SubsetEpoch { number: 0, validators: first.clone() });
        let mut committees = Map::new();
        committees.insert(Since(0), first);
        Self { committees, subsets }
    }

    /// Commits to all of it, to where the newest entries begin, and to how long a consensus epoch
    /// and an overlap are.
    pub(super) fn roots(&self, epoch_blocks: u64) -> [Hash; 2] {
        fn newest<V>(map: &Map<Since, V>) -> Vec<u64> {
            map.iter().take(2).map(|(since, _)| since.0).collect()
        }
        let (committees, subsets) = (&self.committees, &self.subsets);
        [
            part(COMMITTEES, &committees.root(), epoch_blocks, &newest(committees)),
            part(SUBSETS, &subsets.root(), OVERLAP_BLOCKS, &newest(subsets)),
        ]
    }

    /// What shows both parts of [`Self::roots`]: the newest committees and subset epochs.
    pub(super) fn newest(&self, epoch_blocks: u64) -> [Newest; 2] {
        [Newest::of(&self.committees, epoch_blocks), Newest::of(&self.subsets, OVERLAP_BLOCKS)]
    }

    /// The committee of a consensus epoch, ascending by address. Of epochs beyond the next one,
    /// what it would be if nothing more changed.
    pub(super) fn committee(&self, epoch: u64) -> &Arc<Vec<Validator>> {
        let (_, committee) =
            self.committees.range_from(&Since(epoch)).next().expect("since epoch 0");
        committee
    }

    /// The epochs in which a new committee begins, newest first, with their committees.
    pub(super) fn committees(&self) -> impl Iterator<Item = (u64, &Arc<Vec<Validator>>)> {
        self.committees.iter().map(|(since, committee)| (since.0, committee))
    }

    /// The subset epoch that holds at `height` and since when, and the one before it where its
    /// subsets count too.
    pub(super) fn subset_epochs(
        &self,
        height: Height,
    ) -> (Height, &SubsetEpoch, Option<&SubsetEpoch>) {
        let mut entries = self.subsets.range_from(&Since(height.get()));
        let (since, current) = entries.next().expect("since genesis");
        let overlaps = height.get() - since.0 < OVERLAP_BLOCKS;
        let before = entries.next().filter(|_| overlaps).map(|(_, before)| before);
        (Height::new(since.0), current, before)
    }

    /// What begins with the block at `height`, the first of a consensus epoch with `committee`;
    /// `None`: the subset epoch goes on.
    pub(super) fn due(&self, height: Height, epoch: u64) -> Option<SubsetEpoch> {
        let (since, current, _) = self.subset_epochs(height);
        let committee = self.committee(epoch);
        let changed = churn(&current.validators, committee);
        let early = changed * CHURN > current.validators.len();
        (early || height.since(since) >= SUBSET_EPOCH_BLOCKS)
            .then(|| SubsetEpoch { number: current.number + 1, validators: committee.clone() })
    }

    /// A subset epoch begins with the block at `height`.
    pub(super) fn advance(&mut self, height: Height, epoch: SubsetEpoch) {
        self.subsets.insert(Since(height.get()), epoch);
    }

    /// `validator` serves from `epoch` on, the next one.
    pub(super) fn add(&mut self, epoch: u64, validator: Validator) -> Result<(), CommitteeError> {
        let address = validator.pubkey.address();
        if CompressedEdwardsY(validator.consensus_key).decompress().is_none() {
            return Err(CommitteeError::InvalidKey);
        }
        let mut committee = self.committee(epoch).to_vec();
        let shares_key = |v: &Validator| {
            v.pubkey == validator.pubkey || v.consensus_key == validator.consensus_key
        };
        // One that leaves with this epoch may stay after all, but nobody else with a key of its.
        let mut serving = self.committee(epoch.saturating_sub(1)).iter();
        if committee.iter().any(shares_key) || serving.any(|v| shares_key(v) && *v != validator) {
            return Err(CommitteeError::Exists(address));
        }
        if committee.len() >= MAX_VALIDATORS {
            return Err(CommitteeError::TooMany);
        }
        let at = committee.partition_point(|v| v.pubkey.address() < address);
        committee.insert(at, validator);
        self.committees.insert(Since(epoch), Arc::new(committee));
        Ok(())
    }

    /// The validator `address` serves no longer from `epoch` on, the next one.
    pub(super) fn remove(&mut self, epoch: u64, address: Address) -> Result<(), CommitteeError> {
        let mut committee = self.committee(epoch).to_vec();
        let at = committee.iter().position(|v| v.pubkey.address() == address);
        committee.remove(at.ok_or(CommitteeError::Unknown(address))?);
        if committee.is_empty() {
            return Err(CommitteeError::Last(address));
        }
        self.committees.insert(Since(epoch), Arc::new(committee));
        Ok(())
    }
}

/// How many validators are in one of the two sets only.
fn churn(before: &[Validator], after: &[Validator]) -> usize {
    let only_in = |a: &[Validator], b: &[Validator]| a.iter().filter(|v| !b.contains(v)).count();
    only_in(before, after) + only_in(after, before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::SecretKey;

    fn committee(n: u8) -> Vec<Validator> {
        let validator = |i: u8| Validator {
            pubkey: SecretKey::derive(b"validators", &i.to_string()).public_key(),
            consensus_key: [i; 32],
        };
        let mut all: Vec<_> = (0..n).map(validator).collect();
        all.sort_by_key(|v| v.pubkey.address());
        all
    }

    #[test]
    fn the_subset_epoch_advances_with_time_alone() {
        let mut validators = Validators::genesis(committee(4));
        let at = Height::new(SUBSET_EPOCH_BLOCKS);
        assert_eq!(validators.due(Height::new(SUBSET_EPOCH_BLOCKS - 1), 0), None);
        let due = validators.due(at, 0).unwrap();
        assert_eq!(due.number, 1);
        validators.advance(at, due);
        assert_eq!(validators.due(Height::new(2 * SUBSET_EPOCH_BLOCKS - 1), 0), None);
        assert_eq!(validators.due(Height::new(2 * SUBSET_EPOCH_BLOCKS), 0).unwrap().number, 2);

        let numbers = |height: u64| {
            let (since, current, before) = validators.subset_epochs(Height::new(height));
            (since.get(), current.number, before.map(|before| before.number))
        };
        assert_eq!(numbers(0), (0, 0, None));
        assert_eq!(numbers(at.get() - 1), (0, 0, None));
        assert_eq!(numbers(at.get()), (at.get(), 1, Some(0)));
        assert_eq!(numbers(at.get() + OVERLAP_BLOCKS - 1), (at.get(), 1, Some(0)));
        assert_eq!(numbers(at.get() + OVERLAP_BLOCKS), (at.get(), 1, None));
    }

    #[test]
    fn a_tenth_is_not_more_than_a_tenth() {
        for (n, gone, early) in [(10, 1, false), (10, 2, true), (9, 1, true), (20, 2, false)] {
            let mut validators = Validators::genesis(committee(n));
            for validator in committee(n).iter().take(gone) {
                validators.remove(1, validator.pubkey.address()).unwrap();
            }
            assert_eq!(validators.due(Height::new(64), 1).is_some(), early, "{gone} of {n}");
        }
    }
}
