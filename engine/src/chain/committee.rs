//! Committees of validators, and the subsets that runners connect to (spec connectivity.md §1,
//! chain.md "Transactions").
//!
//! Blocks are counted in consensus epochs of [`Params::epoch_blocks`](super::Params::epoch_blocks):
//! epoch e begins at height e · `epoch_blocks`. A committee serves for whole epochs. A transaction
//! in epoch e changes the committee of e + 1, which is therefore known once the last block of e is
//! executed.
//!
//! Runners connect to a subset of the committee as of the start of the subset epoch. The subset
//! epoch advances with any block when
//! [`subset_epoch_blocks`](crate::presence::Connectivity::subset_epoch_blocks) have passed since
//! the last advance, and with the first block of a consensus epoch also when more than a tenth of
//! the committee has come or gone. If fewer come and go, a removed validator remains in subsets
//! until the next advance, and an added one is in none.
//!
//! A validator may propose or vote on a block before it has executed the block's parent, but not
//! before it has executed the last block of the previous consensus epoch. All advances of a
//! consensus epoch therefore follow from that block's state: the committee is the epoch's, and
//! `subset_epoch_blocks` is the value at the epoch's first block. A value governed later applies
//! from the next epoch on.

use crate::{
    presence::subset,
    primitives::{
        Address, Hash, Height, PublicKey,
        codec::{Encode, to_vec, transparent},
        keccak256,
        merkle::{self, Map},
    },
    record,
};
use curve25519_dalek::edwards::CompressedEdwardsY;
use std::{cmp::Ordering, sync::Arc};

/// A validator's two identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenesisValidator {
    /// secp256k1 key: gives the address, signs messages to runners, orders the set.
    pub pubkey: PublicKey,
    /// ed25519 key for votes and p2p.
    pub consensus_key: [u8; 32],
}
record!(GenesisValidator { pubkey, consensus_key });

/// Maximum number of validators in a committee.
pub const MAX_VALIDATORS: usize = 100;
/// Number of blocks for which subset epochs are kept, as for registry orders. Those that stopped
/// counting before that are dropped when a new one begins.
const SUBSETS_KEPT: u64 = 256;
/// The subset epoch advances early if more than one in this many validators of the committee has
/// come or gone.
const CHURN: usize = 10;

/// Why a committee does not change. The text begins with the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommitteeError {
    #[error(
        "ValidatorExists: {0} or its consensus key is in the committee of this epoch or the next"
    )]
    Exists(Address),
    #[error("UnknownValidator: {0} is not in the committee of the next epoch")]
    Unknown(Address),
    #[error("LastValidator: without {0} the next epoch would have no validator")]
    Last(Address),
    #[error("TooManyValidators: a committee has at most {MAX_VALIDATORS}")]
    TooMany,
    /// The bytes are not the encoding of a curve point, so no private key exists.
    #[error("InvalidConsensusKey: the consensus key is not an ed25519 public key")]
    InvalidKey,
}

/// The first epoch or height of an entry. Ordered downwards, so that the first entry from x on is
/// the one in force at x.
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

transparent!(Since);

/// A subset epoch: the input that subsets are computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubsetEpoch {
    pub number: u64,
    /// The committee at the epoch's start, ascending by address.
    pub validators: Arc<Vec<GenesisValidator>>,
}
record!(SubsetEpoch { number, validators });

impl SubsetEpoch {
    /// The subset of a runner, nearest first.
    pub fn subset_of(&self, runner: &PublicKey) -> Vec<&GenesisValidator> {
        let keys: Vec<_> = self.validators.iter().map(|v| v.pubkey.clone()).collect();
        subset::of(runner, &keys).into_iter().map(|i| &self.validators[i]).collect()
    }
}

/// The validators that a runner may be connected to while the subsets of all `epochs` count: those
/// of the first, nearest first, then the others of each further one.
pub(super) fn subsets_of<'a>(
    epochs: impl IntoIterator<Item = &'a SubsetEpoch>,
    runner: &PublicKey,
) -> Vec<&'a GenesisValidator> {
    let mut all: Vec<&GenesisValidator> = Vec::new();
    for validator in epochs.into_iter().flat_map(|epoch| epoch.subset_of(runner)) {
        if !all.contains(&validator) {
            all.push(validator);
        }
    }
    all
}

/// The committees and subset epochs, as seen by one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    /// The consensus epoch of the state's head.
    pub epoch: u64,
    /// The committee of that epoch, ascending by address.
    pub committee: Arc<Vec<GenesisValidator>>,
    /// The committee of the next epoch, if nothing more changes.
    pub next: Arc<Vec<GenesisValidator>>,
    /// Whether `next` is final, because the head is the last block of its epoch.
    pub next_decided: bool,
    /// The subset epochs that count, newest first: one or two.
    pub subsets: Vec<SubsetEpoch>,
}

impl Roster {
    /// The committee of a consensus epoch; `None`: neither the state's epoch nor the next.
    pub fn committee_of(&self, epoch: u64) -> Option<&Arc<Vec<GenesisValidator>>> {
        match epoch.checked_sub(self.epoch)? {
            0 => Some(&self.committee),
            1 => Some(&self.next),
            _ => None,
        }
    }

    /// The validators that a runner may be connected to, nearest first: as
    /// [`State::subsets_of`](super::State::subsets_of).
    pub fn subsets_of(&self, runner: &PublicKey) -> Vec<&GenesisValidator> {
        subsets_of(&self.subsets, runner)
    }
}

/// An entry of one of the two maps, with a proof that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The first consensus epoch, or the first height, at which it is in force.
    pub since: u64,
    pub value: Vec<u8>,
    pub proof: merkle::InclusionProof,
}

/// The newest entries of a map of validators. They are all that is in force at the state's height,
/// because no entry begins later than with the next consensus epoch. The state root commits to
/// where they begin, so that none can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// A number of blocks that the part commits to: the length of a consensus epoch or of an
    /// overlap.
    pub blocks: u64,
    pub newest: Held,
    /// The previous entry; `None` if there is no other.
    pub before: Option<Held>,
}

impl Newest {
    fn of<V: Encode + Clone>(map: &Map<Since, V>, blocks: u64) -> Self {
        let mut entries = map.iter().map(|(since, value)| {
            let proof = map.prove(since).expect("it is there");
            Held { since: since.0, value: to_vec(value), proof }
        });
        let newest = entries.next().expect("there is one from genesis");
        Self { blocks, newest, before: entries.next() }
    }

    /// The part of the state root that these entries hash to; `None` if they are from different
    /// maps or out of order. `name` is the map's.
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

    pub(super) fn holding_at(&self, at: u64) -> Option<&Held> {
        [Some(&self.newest), self.before.as_ref()].into_iter().flatten().find(|h| h.since <= at)
    }
}

/// keccak256(name ‖ root of the map ‖ blocks (8) ‖ first epochs or heights of the newest two
/// entries (8 each)).
fn part(name: &str, root: &Hash, blocks: u64, since: &[u64]) -> Hash {
    let since: Vec<u8> = since.iter().flat_map(|since| since.to_be_bytes()).collect();
    keccak256(&[name.as_bytes(), &root.0, &blocks.to_be_bytes(), &since])
}

/// Name of the committees' part of the state root.
pub(super) const COMMITTEES: &str = "committees";
/// Name of the subset epochs' part of the state root.
pub(super) const SUBSETS: &str = "subset-epochs";

/// All committees of a chain so far, the next one if it differs, and the newest subset epochs.
#[derive(Clone, Debug)]
pub(super) struct Validators {
    /// By the first consensus epoch they serve in.
    committees: Map<Since, Arc<Vec<GenesisValidator>>>,
    /// By their first height.
    subsets: Map<Since, SubsetEpoch>,
    /// Blocks in a subset epoch, for the head's consensus epoch.
    subset_epoch_blocks: u64,
}
record!(Validators { committees, subsets, subset_epoch_blocks });

#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    pub epoch_blocks: u64,
    /// Blocks in a subset epoch, for the next consensus epoch: the present governed value.
    pub subset_epoch_blocks: u64,
}

impl Rhythm {
    /// The first height after `head` that begins a consensus epoch.
    const fn next_epoch(&self, head: Height) -> u64 {
        (head.get() / self.epoch_blocks + 1).saturating_mul(self.epoch_blocks)
    }
}

/// The current and previous subset epochs at a block, whether or not their subsets still count.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub since: Height,
    pub current: SubsetEpoch,
    pub before: Option<SubsetEpoch>,
}

impl Turn {
    /// The subset epochs whose subsets count at `height`; the older ones count for `overlap`
    /// blocks.
    pub(super) fn counting(self, height: Height, overlap: u64) -> Vec<SubsetEpoch> {
        let before = self.before.filter(|_| height.since(self.since) < overlap);
        [Some(self.current), before].into_iter().flatten().collect()
    }

    fn advance(&mut self, since: u64, validators: &Arc<Vec<GenesisValidator>>) {
        let number = self.current.number + 1;
        let next = SubsetEpoch { number, validators: validators.clone() };
        self.before = Some(std::mem::replace(&mut self.current, next));
        self.since = Height::new(since);
    }

    /// Advances every `blocks` blocks, by time alone, up to `height`.
    fn pass(&mut self, height: u64, blocks: u64, validators: &Arc<Vec<GenesisValidator>>) {
        let since = self.since.get();
        let times = height.saturating_sub(since).checked_div(blocks).unwrap_or(0);
        if times == 0 {
            return;
        }
        // If several advances pass, only the last two matter.
        if times > 1 {
            self.current.number += times - 2;
            self.advance(since, validators);
        }
        self.advance(since + times * blocks, validators);
    }
}

impl Validators {
    /// Starts with the committee `first`, ascending by address.
    pub(super) fn genesis(first: Vec<GenesisValidator>, subset_epoch_blocks: u64) -> Self {
        let first = Arc::new(first);
        let mut subsets = Map::new();
        subsets.insert(Since(0), SubsetEpoch { number: 0, validators: first.clone() });
        let mut committees = Map::new();
        committees.insert(Since(0), first);
        Self { committees, subsets, subset_epoch_blocks }
    }

    /// Blocks in a subset epoch during the head's consensus epoch.
    pub(super) const fn subset_epoch_blocks(&self) -> u64 {
        self.subset_epoch_blocks
    }

    /// Commits to everything except [`Self::subset_epoch_blocks`], to where the newest entries
    /// begin, and to the lengths of a consensus epoch and an overlap.
    pub(super) fn roots(&self, epoch_blocks: u64, overlap_blocks: u64) -> [Hash; 2] {
        fn newest<V>(map: &Map<Since, V>) -> Vec<u64> {
            map.iter().take(2).map(|(since, _)| since.0).collect()
        }
        let (committees, subsets) = (&self.committees, &self.subsets);
        [
            part(COMMITTEES, &committees.root(), epoch_blocks, &newest(committees)),
            part(SUBSETS, &subsets.root(), overlap_blocks, &newest(subsets)),
        ]
    }

    /// The evidence for both parts of [`Self::roots`]: the newest committees and subset epochs.
    pub(super) fn newest(&self, epoch_blocks: u64, overlap_blocks: u64) -> [Newest; 2] {
        [Newest::of(&self.committees, epoch_blocks), Newest::of(&self.subsets, overlap_blocks)]
    }

    /// The committee of a consensus epoch, ascending by address. For an epoch beyond the next one,
    /// the committee it would have if nothing more changed.
    pub(super) fn committee(&self, epoch: u64) -> &Arc<Vec<GenesisValidator>> {
        let (_, committee) =
            self.committees.range_from(&Since(epoch)).next().expect("there is one from epoch 0");
        committee
    }

    /// The epochs in which a new committee begins, newest first, with their committees.
    pub(super) fn committees(&self) -> impl Iterator<Item = (u64, &Arc<Vec<GenesisValidator>>)> {
        self.committees.iter().map(|(since, committee)| (since.0, committee))
    }

    /// The subset epoch at `height`, which must not be after the head, and the previous one. For a
    /// height that is too old to be kept, the oldest one kept.
    pub(super) fn subset_epochs(
        &self,
        height: Height,
    ) -> (Height, &SubsetEpoch, Option<&SubsetEpoch>) {
        let mut entries = self.subsets.range_from(&Since(height.get()));
        let (since, current) = entries
            .next()
            .or_else(|| self.subsets.iter().last())
            .expect("the last advance is kept");
        let before = entries.next().map(|(_, before)| before);
        (Height::new(since.0), current, before)
    }

    /// The subset epoch number at `height`, which must not be after the head; `None` if it is no
    /// longer kept.
    pub(super) fn number_at(&self, height: Height) -> Option<u64> {
        self.subsets.range_from(&Since(height.get())).next().map(|(_, epoch)| epoch.number)
    }

    /// The subset epochs of the block at `height`, as far as the state at `head` can tell. Within
    /// the consensus epoch of the head's child they are exact; beyond it they assume that no
    /// committee and no governed parameter changes on the way. Constant time, however far away the
    /// height is.
    pub(super) fn ahead(&self, head: Height, height: Height, rhythm: Rhythm) -> Turn {
        let (since, current, before) = self.subset_epochs(height.min(head));
        let mut turn = Turn { since, current: current.clone(), before: before.cloned() };
        if height <= head {
            return turn;
        }
        let next = rhythm.next_epoch(head);
        let last = height.get().min(next - 1);
        if last > head.get() {
            let committee = self.committee(head.get() / rhythm.epoch_blocks);
            turn.pass(last, self.subset_epoch_blocks, committee);
        }
        if height.get() >= next {
            let committee = self.committee(next / rhythm.epoch_blocks);
            let blocks = rhythm.subset_epoch_blocks;
            let left = &turn.current.validators;
            let early = churn(left, committee) * CHURN > left.len();
            if early || next - turn.since.get() >= blocks {
                turn.advance(next, committee);
            }
            turn.pass(height.get(), blocks, committee);
        }
        turn
    }

    /// Whether the state at `head` determines the subset epoch of `height`, a later one.
    pub(super) const fn foresees(head: Height, height: Height, rhythm: Rhythm) -> bool {
        height.get() / rhythm.epoch_blocks == head.next().get() / rhythm.epoch_blocks
    }

    /// Enters the block at `height`, a child of the head, and begins the subset epoch `due`, if
    /// any.
    pub(super) fn enter(&mut self, height: Height, rhythm: Rhythm, due: Option<SubsetEpoch>) {
        if height.get().is_multiple_of(rhythm.epoch_blocks) {
            self.subset_epoch_blocks = rhythm.subset_epoch_blocks;
        }
        let Some(due) = due else { return };
        self.subsets.insert(Since(height.get()), due);
        let horizon = height.get().saturating_sub(SUBSETS_KEPT);
        // The epoch in force at the horizon and the previous one are still needed.
        let old = self.subsets.iter().skip_while(|(since, _)| since.0 > horizon).skip(2);
        for since in old.map(|(since, _)| *since).collect::<Vec<_>>() {
            self.subsets.remove(&since);
        }
    }

    /// Adds `validator` from `epoch` on, which must be the next one.
    pub(super) fn add(
        &mut self,
        epoch: u64,
        validator: GenesisValidator,
    ) -> Result<(), CommitteeError> {
        let address = validator.pubkey.address();
        if CompressedEdwardsY(validator.consensus_key).decompress().is_none() {
            return Err(CommitteeError::InvalidKey);
        }
        let mut committee = self.committee(epoch).to_vec();
        let shares_key = |v: &GenesisValidator| {
            v.pubkey == validator.pubkey || v.consensus_key == validator.consensus_key
        };
        // A validator that leaves with this epoch may stay after all, but no other may reuse its
        // keys.
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

    /// Removes the validator `address` from `epoch` on, which must be the next one.
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

/// Number of validators that are in only one of the two sets.
fn churn(before: &[GenesisValidator], after: &[GenesisValidator]) -> usize {
    let only_in = |a: &[GenesisValidator], b: &[GenesisValidator]| {
        a.iter().filter(|v| !b.contains(v)).count()
    };
    only_in(before, after) + only_in(after, before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::SecretKey;

    fn committee(n: u8) -> Vec<GenesisValidator> {
        let validator = |i: u8| GenesisValidator {
            pubkey: SecretKey::derive(b"validators", &i.to_string()).public_key(),
            consensus_key: [i; 32],
        };
        let mut all: Vec<_> = (0..n).map(validator).collect();
        all.sort_by_key(|v| v.pubkey.address());
        all
    }

    fn rhythm(subset_epoch_blocks: u64) -> Rhythm {
        Rhythm { epoch_blocks: 256, subset_epoch_blocks }
    }

    /// Number, first height and previous number of the subset epoch at `height`.
    fn told(turn: &Turn) -> (u64, u64, Option<u64>) {
        (turn.current.number, turn.since.get(), turn.before.as_ref().map(|before| before.number))
    }

    /// The same epochs follow from any earlier state, and whether or not blocks in between are
    /// executed.
    #[test]
    fn the_subset_epoch_advances_with_time_alone() {
        for blocks in [8, 64, 100, 256, 300, 8_192] {
            let rhythm = rhythm(blocks);
            let mut validators = Validators::genesis(committee(4), blocks);
            let first = validators.clone();
            for height in 1..=2_000 {
                let (head, height) = (Height::new(height - 1), Height::new(height));
                let turn = validators.ahead(head, height, rhythm);
                let times = height.get() / blocks;
                let before = times.checked_sub(1);
                assert_eq!(told(&turn), (times, times * blocks, before), "{blocks}, {height}");
                assert_eq!(told(&first.ahead(Height::GENESIS, height, rhythm)), told(&turn));
                let due = height.get().is_multiple_of(blocks).then(|| turn.current.clone());
                validators.enter(height, rhythm, due);
                assert_eq!(told(&validators.ahead(height, height, rhythm)), told(&turn));
            }
        }
        let far = Validators::genesis(committee(4), 64);
        let turn = far.ahead(Height::GENESIS, Height::new(u64::MAX), rhythm(64));
        assert_eq!(turn.current.number, u64::MAX / 64, "however far away");
    }

    /// A new length applies from the next consensus epoch on, immediately if it has already passed
    /// by then.
    #[test]
    fn another_length_counts_from_the_next_consensus_epoch_on() {
        let validators = Validators::genesis(committee(4), 8_192);
        let number = |height, blocks| {
            let turn = validators.ahead(Height::new(10), Height::new(height), rhythm(blocks));
            (turn.current.number, turn.since.get())
        };
        assert_eq!(number(255, 64), (0, 0));
        assert_eq!(number(256, 64), (1, 256));
        assert_eq!(number(319, 64), (1, 256));
        assert_eq!(number(320, 64), (2, 320));
        assert_eq!(number(299, 300), (0, 0));
        assert_eq!(number(300, 300), (1, 300));
    }

    #[test]
    fn old_subset_epochs_go_and_those_that_count_stay() {
        let rhythm = rhythm(8);
        let mut validators = Validators::genesis(committee(4), 8);
        for height in 1..=1_000u64 {
            let (head, height) = (Height::new(height - 1), Height::new(height));
            let turn = validators.ahead(head, height, rhythm);
            let due = (turn.since == height).then_some(turn.current);
            validators.enter(height, rhythm, due);
            assert!(validators.subsets.iter().count() as u64 <= SUBSETS_KEPT / 8 + 3);
        }
        assert_eq!(validators.number_at(Height::new(744)), Some(93));
        let (since, current, before) = validators.subset_epochs(Height::new(744));
        assert_eq!((since.get(), current.number, before.unwrap().number), (744, 93, 92));
        assert_eq!(validators.number_at(Height::new(700)), None);
        let (_, oldest, before) = validators.subset_epochs(Height::new(700));
        assert_eq!((oldest.number, before), (92, None));
    }

    #[test]
    fn a_tenth_is_not_more_than_a_tenth() {
        for (n, gone, early) in [(10, 1, false), (10, 2, true), (9, 1, true), (20, 2, false)] {
            let mut validators = Validators::genesis(committee(n), 8_192);
            for validator in committee(n).iter().take(gone) {
                validators.remove(1, validator.pubkey.address()).unwrap();
            }
            let turn = validators.ahead(Height::new(255), Height::new(256), rhythm(8_192));
            assert_eq!(turn.current.number == 1, early, "{gone} of {n}");
        }
    }
}
