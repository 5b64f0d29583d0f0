//! The state of a chain after a block: cheap to fork, hashed to one root.

mod actors;
mod genesis;
mod marks;
mod money;
mod root;
mod tasks;
mod timers;

pub use marks::{MAX_MARKS, Mark, MarkError};
pub use money::{Burned, MoneyError, Supply};
pub use root::{PARTS, Part};

use self::marks::Marks;
use super::{
    actors::{Actor, ActorCode, StoreKey},
    block::Header,
    committee::{GenesisValidator, Rhythm, Roster, SubsetEpoch, Turn, Validators, subsets_of},
    params::Params,
    tasks::Tasks,
    timers::Timers,
};
use crate::{
    job::{
        SeedCertificate,
        mru::MruRecord,
        spec::{Commitment, Job, JobStatus, Withheld},
    },
    presence::{self, Bitmap, Connectivity, Migration, Phase, ThresholdRule},
    primitives::{
        Address, Hash, Height, PublicKey, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer, from_slice, to_vec},
        merkle::Map,
    },
    record,
    registry::{Entitlements, JobKind, MIN_STAKE, Order, Registry},
    speculation::Bonds,
    wire::GoodbyeReason,
};
use std::{iter, sync::Arc};

/// Number of blocks for which registry orders are kept. Votes on an ancestor are read by the order
/// of its parent, and certificates arrive at most a few blocks late.
const ORDERS_KEPT: u64 = 256;

/// An account; absent accounts have the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Account {
    pub nonce: u64,
    pub balance: Wei,
}
record!(Account { nonce, balance });

/// The newest known P(h).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPresence {
    pub height: Height,
    /// Runners present in P(h), ascending by address.
    pub present: Arc<Vec<Address>>,
}
record!(KnownPresence { height, present });

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OrderSince {
    pub(super) height: Height,
    pub(super) order: Order,
}
record!(OrderSince { height, order });

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingCallback {
    pub(super) job_id: Hash,
    pub(super) result: Option<Arc<Vec<u8>>>,
}
record!(PendingCallback { job_id, result });

/// A message from an actor in Python that the next block delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingMessage {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) payload: Arc<Vec<u8>>,
    /// The transaction, the timer or the job that caused it.
    pub(super) cause: Hash,
}
record!(PendingMessage { from, to, payload, cause });

/// A clock of blocks that was moved ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    pub(super) ms: u64,
    /// The block that moved it last.
    pub(super) since: Height,
    /// How far ahead it was before, in milliseconds.
    pub(super) before: u64,
}
record!(Ahead { ms, since, before });

/// Messages that wait, in the order in which they were sent. A state leaves them out when there are
/// none.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox(pub(super) Arc<Vec<PendingMessage>>);

/// Maximum number of messages that wait, of all actors, and of bytes of their payloads. Every
/// block's root is computed from them, and a state is cloned before each delivery.
const MAX_OUTBOX: usize = 4_096;
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The share of both that one actor can take, so that it does not lock out the others.
const SHARES: usize = 16;
const BYTE_SHARES: usize = 4;
/// Bytes of one payload: what an actor may have waiting.
pub(super) const MAX_ONE_MESSAGE_BYTES: usize = MAX_MESSAGE_BYTES / BYTE_SHARES;

impl Outbox {
    /// Appends a message; returns false if too many wait, of all actors or of this one.
    pub(super) fn push(&mut self, message: PendingMessage) -> bool {
        let room = |from: Option<Address>, shares: usize, byte_shares: usize| {
            let counts = |waiting: &&PendingMessage| from.is_none_or(|from| waiting.from == from);
            let waiting = self.0.iter().filter(counts);
            let lengths = waiting.map(|waiting| waiting.payload.len());
            let (count, bytes) = lengths.fold((0, 0), |(n, sum), length| (n + 1, sum + length));
            count < MAX_OUTBOX / shares
                && bytes + message.payload.len() <= MAX_MESSAGE_BYTES / byte_shares
        };
        let fits = room(None, 1, 1) && room(Some(message.from), SHARES, BYTE_SHARES);
        if fits {
            Arc::make_mut(&mut self.0).push(message);
        }
        fits
    }
}

impl Encode for Outbox {
    fn encode(&self, w: &mut Writer) {
        self.0.encode(w);
    }

    fn is_absent(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for Outbox {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Decode::decode(r).map(Self)
    }

    fn absent(_: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::default())
    }
}

record! {
    /// A chain after one of its blocks. Clones share structure, so cloning is O(1).
    #[derive(Clone, Debug)]
    pub struct State {
        pub(super) chain_id: u64,
        pub(super) params: Arc<Params>,
        pub(super) validators: Validators,
        pub(super) head: Arc<Header>,
        pub(super) head_hash: Hash,
        pub(super) accounts: Map<Address, Account>,
        pub(super) registry: Registry,
        pub(super) entitlements: Entitlements,
        pub(super) jobs: Map<Hash, Job>,
        pub(super) open_jobs: Map<Hash, Height>,
        /// Commitments that were not revealed before their job was verified, by job.
        pub(super) withheld: Map<Hash, Withheld>,
        pub(super) mru: Map<(Address, JobKind), MruRecord>,
        /// Callbacks still to be made, in the order in which their jobs ended.
        pub(super) callbacks: Arc<Vec<PendingCallback>>,
        pub(super) outbox: Outbox,
        pub(super) actors: Map<Address, Actor>,
        pub(super) code: Map<Hash, ActorCode>,
        pub(super) storage: Map<(Address, StoreKey), Vec<u8>>,
        pub(super) timers: Timers,
        pub(super) tasks: Tasks,
        pub(super) basefee_cycle: Wei,
        pub(super) basefee_cell: Wei,
        pub(super) burned: Burned,
        pub(super) orders: Arc<Vec<OrderSince>>,
        pub(super) presence: Option<KnownPresence>,
        /// The newest certificate on the chain, if draws are seeded by certificates.
        pub(super) seed_certificate: Option<SeedCertificate>,
        pub(super) migration: Migration,
        pub(super) connectivity: Connectivity,
        pub(super) bonds: Bonds,
        pub(super) marks: Marks,
        pub(super) ahead: Option<Ahead>,
    }
}

impl State {
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    pub fn params(&self) -> &Params {
        &self.params
    }

    pub fn head(&self) -> &Header {
        &self.head
    }

    /// How far ahead of its proposer's clock a block's timestamp is, in milliseconds, if the block
    /// names this state as executed.
    pub fn ahead_ms(&self) -> u64 {
        self.ahead.map_or(0, |ahead| ahead.ms)
    }

    /// When the head was proposed, by its proposer's clock, in Unix ms.
    pub fn proposed_ms(&self) -> u64 {
        let ahead = self.ahead.map_or(0, |ahead| {
            if self.head.executed.height < ahead.since { ahead.before } else { ahead.ms }
        });
        self.head.timestamp_ms.saturating_sub(ahead)
    }

    pub fn height(&self) -> Height {
        self.head.height
    }

    pub const fn head_hash(&self) -> Hash {
        self.head_hash
    }

    /// An account; empty if it was never paid.
    pub fn account(&self, address: &Address) -> Account {
        self.accounts.get(address).copied().unwrap_or_default()
    }

    /// Every account that has ever held money, by address.
    pub fn accounts(&self) -> impl Iterator<Item = (&Address, &Account)> {
        self.accounts.iter()
    }

    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    pub const fn entitlements(&self) -> &Entitlements {
        &self.entitlements
    }

    pub fn job(&self, id: &Hash) -> Option<&Job> {
        self.jobs.get(id)
    }

    pub fn jobs(&self) -> impl Iterator<Item = (&Hash, &Job)> {
        self.jobs.iter()
    }

    pub fn open_jobs(&self) -> impl Iterator<Item = (&Hash, &Job)> {
        self.open_jobs.iter().filter_map(|(id, _)| Some((id, self.jobs.get(id)?)))
    }

    /// Verified jobs with committed results that are not revealed yet, by id.
    pub fn withheld(&self) -> impl Iterator<Item = (&Hash, &Withheld)> {
        self.withheld.iter()
    }

    pub fn withheld_of(&self, job_id: &Hash) -> Option<&Withheld> {
        self.withheld.get(job_id)
    }

    /// The commitments to results of a job that may be revealed now, including those already
    /// revealed. `None` if more commitments may follow, or if results no longer count.
    pub fn commitments(&self, job_id: &Hash) -> Option<&[Commitment]> {
        match &self.jobs.get(job_id)?.status {
            JobStatus::Committed(round) => Some(&round.commitments),
            _ => Some(&self.withheld.get(job_id)?.commitments),
        }
    }

    /// Every MRU record, including expired ones that have not been read since.
    pub fn mru(&self) -> impl Iterator<Item = (Address, JobKind, &MruRecord)> {
        self.mru.iter().map(|((submitter, kind), record)| (*submitter, *kind, record))
    }

    /// Price of a cycle in the next block, without priority.
    pub const fn basefee_cycle(&self) -> Wei {
        self.basefee_cycle
    }

    /// Price of a cell in the next block, without priority.
    pub const fn basefee_cell(&self) -> Wei {
        self.basefee_cell
    }

    pub fn epoch_at(&self, height: Height) -> u64 {
        height.get() / self.params.epoch_blocks
    }

    /// The validators that vote on the next block, ascending by address.
    pub fn validators(&self) -> &[GenesisValidator] {
        self.validators_in(self.epoch_at(self.height().next()))
    }

    /// The validators of a consensus epoch, ascending by address. For an epoch beyond the one after
    /// the head's, the validators it would have if nothing more changed.
    pub fn validators_in(&self, epoch: u64) -> &[GenesisValidator] {
        self.validators.committee(epoch)
    }

    /// Every set of validators so far, newest first, with its first consensus epoch.
    pub fn validator_sets(&self) -> impl Iterator<Item = (u64, &[GenesisValidator])> {
        self.validators.committees().map(|(epoch, set)| (epoch, set.as_slice()))
    }

    /// The validators of a consensus epoch in vote order: ascending by ed25519 key.
    pub fn committee_in(&self, epoch: u64) -> Vec<&GenesisValidator> {
        let mut committee: Vec<_> = self.validators_in(epoch).iter().collect();
        committee.sort_by_key(|v| v.consensus_key);
        committee
    }

    /// The validators that vote on the next block, in vote order.
    pub fn committee(&self) -> Vec<&GenesisValidator> {
        self.committee_in(self.epoch_at(self.height().next()))
    }

    pub const fn connectivity(&self) -> &Connectivity {
        &self.connectivity
    }

    /// The subset epoch of the head, and the previous one while its subsets count too.
    pub fn subset_epochs(&self) -> (&SubsetEpoch, Option<&SubsetEpoch>) {
        self.subset_epochs_counting(self.height())
    }

    /// Like [`Self::subset_epochs`], for the block at `height`, which must not be after the head.
    fn subset_epochs_counting(&self, height: Height) -> (&SubsetEpoch, Option<&SubsetEpoch>) {
        let (since, current, before) = self.validators.subset_epochs(height);
        let overlaps = height.since(since) < self.connectivity.overlap_blocks;
        (current, before.filter(|_| overlaps))
    }

    pub fn childs_subset_epoch(&self) -> u64 {
        self.turn(self.height().next()).current.number
    }

    /// The subset epoch number of the block at `height`. `None` if this state cannot tell, because
    /// the block is in a later consensus epoch than the head's child, or too old.
    pub fn subset_epoch_at(&self, height: Height) -> Option<u64> {
        if height <= self.height() {
            return self.validators.number_at(height);
        }
        let foreseen = Validators::foresees(self.height(), height, self.rhythm());
        foreseen.then(|| self.turn(height).current.number)
    }

    pub(super) fn rhythm(&self) -> Rhythm {
        Rhythm {
            epoch_blocks: self.params.epoch_blocks,
            subset_epoch_blocks: self.connectivity.subset_epoch_blocks,
        }
    }

    /// The subset epochs of the block at `height`, a later one, as far as this state can tell.
    fn turn(&self, height: Height) -> Turn {
        self.validators.ahead(self.height(), height, self.rhythm())
    }

    /// The subset epoch that begins with the block at `height`, a child of this state's, if any.
    pub(super) fn subset_epoch_due(&self, height: Height) -> Option<SubsetEpoch> {
        let Turn { since, current, .. } = self.turn(height);
        (since == height).then_some(current)
    }

    /// The validators a runner connects to, nearest first (connectivity.md §1).
    pub fn subset_of(&self, runner: &PublicKey) -> Vec<&GenesisValidator> {
        self.subset_epochs().0.subset_of(runner)
    }

    /// The validators that a runner may be connected to: its subset, then the previous subset while
    /// both count.
    pub fn subsets_of(&self, runner: &PublicKey) -> Vec<&GenesisValidator> {
        let (current, before) = self.subset_epochs();
        subsets_of(iter::once(current).chain(before), runner)
    }

    pub fn roster(&self) -> Roster {
        let epoch = self.epoch_at(self.height());
        let (current, before) = self.subset_epochs();
        Roster {
            epoch,
            committee: self.validators.committee(epoch).clone(),
            next: self.validators.committee(epoch.saturating_add(1)).clone(),
            next_decided: self.epoch_at(self.height().next()) > epoch,
            subsets: iter::once(current).chain(before).cloned().collect(),
        }
    }

    /// Whether `validator` accepts a connection from `runner`: the on-chain checks of
    /// connectivity.md §2, in their order.
    pub fn admit(
        &self,
        runner: &PublicKey,
        validator: &PublicKey,
    ) -> Result<Address, GoodbyeReason> {
        let address = runner.address();
        self.in_service(&address)?;
        if !self.subsets_of(runner).iter().any(|v| v.pubkey == *validator) {
            return Err(GoodbyeReason::NotInSubset);
        }
        Ok(address)
    }

    /// Whether the chain lets a runner work at all: it is registered and has enough stake.
    pub fn in_service(&self, runner: &Address) -> Result<(), GoodbyeReason> {
        let record = self.registry.get(runner).ok_or(GoodbyeReason::UnknownRunner)?;
        if record.deregistered {
            return Err(GoodbyeReason::Deregistered);
        }
        if record.stake < MIN_STAKE {
            return Err(GoodbyeReason::InsufficientStake);
        }
        Ok(())
    }

    /// The subset epochs whose subsets count at `height`, newest first. Beyond this state's child
    /// the answer assumes that no committee and no governed parameter changes on the way.
    pub fn subset_epochs_at(&self, height: Height) -> Vec<SubsetEpoch> {
        self.turn(height).counting(height, self.connectivity.overlap_blocks)
    }

    /// The registry order that indexes votes on the block at `height`: its parent's. `None` if that
    /// order is no longer kept.
    pub fn order_for_votes_on(&self, height: Height) -> Option<&Order> {
        let parent = height.previous()?;
        self.orders.iter().rev().find(|since| since.height <= parent).map(|since| &since.order)
    }

    /// P(H) from the votes on the block at `height`, which are indexed by `order` (connectivity.md
    /// §5).
    pub fn presence_from(&self, height: Height, votes: &[(u32, &Bitmap)], order: &Order) -> Bitmap {
        self.presence_under(self.params.threshold_rule, height, votes, order)
    }

    pub fn presence_under(
        &self,
        rule: ThresholdRule,
        height: Height,
        votes: &[(u32, &Bitmap)],
        order: &Order,
    ) -> Bitmap {
        let committee = self.committee_in(self.epoch_at(height));
        let validators = u32::try_from(committee.len()).unwrap_or(u32::MAX);
        let len = order.len();
        let derive =
            |members: &[Vec<u32>]| presence::canonical(votes, len, validators, rule, members);
        if rule != ThresholdRule::Subset {
            return derive(&[]);
        }
        // While two subsets count, either makes a runner present, so an advance hides no runner.
        let (current, before) = self.subset_epochs_counting(height);
        let mut bitmap = derive(&self.subset_members(order, &committee, current));
        if let Some(before) = before.filter(|before| before.validators != current.validators) {
            let also = derive(&self.subset_members(order, &committee, before));
            bitmap = Bitmap::from_fn(len, |runner| bitmap.get(runner) || also.get(runner));
        }
        bitmap
    }

    /// For each runner of `order`, its subset in a subset epoch, as vote numbers of a committee.
    fn subset_members(
        &self,
        order: &Order,
        committee: &[&GenesisValidator],
        epoch: &SubsetEpoch,
    ) -> Arc<Vec<Vec<u32>>> {
        let runners = order.as_slice().iter().filter_map(|address| self.registry.get(address));
        let runners: Vec<_> = runners.map(|runner| &runner.pubkey).collect();
        let committee: Vec<_> = committee.iter().map(|validator| &validator.pubkey).collect();
        let candidates: Vec<_> = epoch.validators.iter().map(|v| v.pubkey.clone()).collect();
        presence::subset::members(&runners, &candidates, &committee)
    }

    /// The migration phase of the next block, and its first block.
    pub const fn migration(&self) -> Migration {
        self.migration
    }

    pub const fn phase(&self) -> Phase {
        self.migration.phase
    }

    /// The newest P(h) known, however old.
    pub const fn known_presence(&self) -> Option<&KnownPresence> {
        self.presence.as_ref()
    }

    /// The runners that count as present in the block at `height`, a child of this state's or its
    /// own: the newest known P(h), unless height − 1 − h exceeds
    /// [`presence_timeout_blocks`](Connectivity::presence_timeout_blocks).
    pub fn present_at(&self, height: Height) -> Option<&[Address]> {
        let known = self.presence.as_ref()?;
        let age = height.previous()?.since(known.height);
        (age <= self.connectivity.presence_timeout_blocks).then(|| known.present.as_slice())
    }

    /// The certificate that seeds the draws in a child of this block; `None`: this block's hash
    /// seeds them.
    pub const fn seed_certificate(&self) -> Option<SeedCertificate> {
        self.seed_certificate
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        to_vec(self)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        from_slice(bytes)
    }

    /// Records the registry's order if this block changed it, and drops orders that are too old.
    pub(super) fn note_order(&mut self, height: Height) {
        let order = self.registry.order();
        if self.orders.last().is_some_and(|since| since.order == *order) {
            return;
        }
        let order = order.clone();
        let orders = Arc::make_mut(&mut self.orders);
        orders.push(OrderSince { height, order });
        let horizon = height.get().saturating_sub(ORDERS_KEPT);
        // The order in force at the horizon is still needed.
        let needed = orders.iter().rposition(|since| since.height.get() <= horizon).unwrap_or(0);
        orders.drain(..needed);
    }
}
