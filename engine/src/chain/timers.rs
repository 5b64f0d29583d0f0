//! Timers as the chain keeps them: what is scheduled, and the prices that all timers share (spec
//! timers.md).

use super::{
    event::{
        EventKind, TimerCancelled, TimerExceedsAuctionCap, TimerExtended,
        TimerPriorityClampedAtSchedule, TimerScheduled,
    },
    state::State,
};
use crate::{
    presence::Connectivity,
    primitives::{
        Address, Hash, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
    speculation::Bonds,
    timer::{
        Admitted, Auction, Calendar, Config, Fairness, Governed, Key, Params, Place, Policy,
        Proposal, Queue, Scope, Setting, Terms, Timer, TimerError,
        fairness::weight_numerator,
        lane::{Buffers, Prices},
        queue,
    },
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// What all timers of a block share. It follows from the blocks before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// How due timers compete in the next block.
    pub policy: Policy,
    /// The first block under this policy.
    pub policy_since: Height,
    /// The first block that refuses the withdrawn `bid`, where the policy is not `fifo`.
    pub bid_refused_from: Height,
    /// The governed parameters of the next block.
    pub config: Config,
    /// What was proposed of all that is governed, ascending by height; an entry goes when its block
    /// begins.
    pub pending: Vec<Proposal>,
    /// Price of a cycle of the lane in the next block, beside the cycle basefee. Counts under
    /// `eip1559` alone.
    pub basefee: Wei,
    /// Median priority of the timers that fired in the newest block, wei per cycle.
    pub p50: Wei,
    /// Cycles that the newest block used, lane included.
    pub last_cycles: u64,
    /// Lane basefees burned since genesis: part of what is burned in all.
    pub burned: Wei,
    /// The block from which on limits are lower than before: timers scheduled before it are held to
    /// them when they are due.
    pub capped_from: Height,
    /// The last owner whose agent was asked for a bid: the next block begins after it.
    pub asked: Address,
}
record!(Lane {
    policy,
    policy_since,
    bid_refused_from,
    config,
    pending,
    basefee,
    p50,
    last_cycles,
    burned,
    capped_from,
    asked,
});

impl Lane {
    /// Before block 1.
    fn genesis(params: &Params) -> Self {
        let pending = params.activation.map(|activation| Proposal {
            height: activation.height,
            by: None,
            settings: vec![Setting::policy(activation.policy)],
        });
        Self {
            policy: params.policy,
            policy_since: Height::GENESIS,
            bid_refused_from: Height::GENESIS,
            config: params.config,
            pending: pending.into_iter().collect(),
            basefee: params.genesis_lane_basefee,
            p50: Wei::ZERO,
            last_cycles: 0,
            burned: Wei::ZERO,
            capped_from: Height::GENESIS,
            asked: Address::default(),
        }
    }

    /// The policy of the block at `height`, a later one, as far as is known now.
    pub fn policy_at(&self, height: Height) -> Policy {
        let known = self.pending.iter().take_while(|proposal| proposal.height <= height);
        let settings = known.flat_map(|proposal| &proposal.settings);
        let policies = settings.filter(|setting| setting.key == Key::POLICY);
        let named = policies.filter_map(|setting| Policy::numbered(setting.value)).last();
        named.unwrap_or(self.policy)
    }

    /// What a cycle of the lane costs under a policy with a lane basefee.
    fn price(&self) -> Wei {
        let share = u128::from(self.config.lane_fee_multiplier);
        // A basefee is below 2^64.
        Wei::new(self.basefee.get().saturating_mul(share) / 1_000)
    }
}

/// The timers of a state.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// Every timer that is scheduled.
    pub queue: Queue,
    /// Prices and parameters.
    pub lane: Lane,
    /// Fires of the last blocks.
    pub fairness: Fairness,
    /// Weights under `gba-auction`.
    pub auction: Auction,
    /// What the next block's execution works with.
    pub desk: Parked,
}
record!(Timers { queue, lane, fairness, auction, desk });

/// What the execution of a block works with: it follows from the queue, and costs to make.
pub(super) struct Desk {
    /// Finds the queue's timers by height.
    pub calendar: Calendar,
    /// Memory for ranking.
    pub buffers: Buffers,
}

/// Where a desk waits for the block after a state: whoever executes that block takes it along, and
/// whoever comes second makes another from the queue. Clones share the place; it is no content.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<Option<Box<Desk>>>>);

impl Parked {
    pub(super) fn new(desk: Box<Desk>) -> Self {
        Self(Arc::new(Mutex::new(Some(desk))))
    }

    fn take(&self) -> Option<Box<Desk>> {
        // A desk is put in whole: whoever panicked beside it harms nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parked")
    }
}

/// A record with one leaves it out.
impl Encode for Parked {
    fn encode(&self, _: &mut Writer) {}

    fn is_absent(&self) -> bool {
        true
    }
}

impl Decode for Parked {
    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Err(DecodeError::Invalid("a desk is no content"))
    }

    fn absent(_: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::default())
    }
}

impl Timers {
    pub(super) fn genesis(params: &Params) -> Self {
        let mut timers = Self {
            queue: Queue::default(),
            lane: Lane::genesis(params),
            fairness: Fairness::default(),
            auction: Auction::default(),
            desk: Parked::default(),
        };
        // All that may be pending in a genesis document is a policy.
        let mut others = (Connectivity::DEFAULT, Bonds::DEFAULT);
        let basefee = params.genesis_lane_basefee;
        let others = (&mut others.0, &mut others.1);
        timers.prepare(others, params, Height::GENESIS.next(), basefee);
        timers
    }

    /// Makes what was proposed for the next block what it finds, of `connectivity` and `bonds` too.
    /// A cycle costs `basefee_cycle` there.
    ///
    /// The queue, the fairness window and what is due stay as they are. Weights begin again where
    /// `gba-auction` begins or ends, and otherwise keep to their bounds.
    pub(super) fn prepare(
        &mut self,
        (connectivity, bonds): (&mut Connectivity, &mut Bonds),
        params: &Params,
        next: Height,
        basefee_cycle: Wei,
    ) {
        let lane = &mut self.lane;
        let Some(due) = lane.pending.first().filter(|proposal| proposal.height == next) else {
            return;
        };
        let (policy, config) = (lane.policy, lane.config);
        let before = Governed { policy, config, connectivity: *connectivity, bonds: *bonds };
        let after = before.with(&due.settings).expect("it was checked when it was proposed");
        (lane.policy, lane.config) = (after.policy, after.config);
        (*connectivity, *bonds) = (after.connectivity, after.bonds);
        if after.is_tighter_than(&before) {
            lane.capped_from = next;
        }
        if after.policy != before.policy {
            lane.policy_since = next;
            if before.policy == Policy::Fifo {
                lane.bid_refused_from = next.after(params.deprecation_blocks);
            }
            if after.policy == Policy::Eip1559 {
                // Until now a cycle of the lane was worth a cycle (CIP-1 §13.2).
                lane.basefee = basefee_cycle;
            }
            if [before.policy, after.policy].contains(&Policy::GbaAuction) {
                self.auction = Auction::default();
            }
        } else if after.config.weights != before.config.weights {
            self.auction.rescale(&after.config.weights);
        }
        lane.basefee = lane.config.lane_basefee.clamp(lane.basefee);
    }

    /// The desk as the block at `height`, whose state this is, left it.
    pub(super) fn take_desk(&mut self, height: Height) -> Box<Desk> {
        self.desk.take().unwrap_or_else(|| {
            let calendar = Calendar::rebuild(&mut self.queue, height);
            Box::new(Desk { calendar, buffers: Buffers::default() })
        })
    }
}

/// Numbers of timers by where the calendar queue has them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Buckets {
    /// Tier 1: heights that have timers, ascending.
    pub ring: Vec<(Height, u64)>,
    /// Tier 2: epochs that have timers, ascending.
    pub epochs: Vec<(u64, u64)>,
    /// Tier 3.
    pub overflow: u64,
    /// Due and carried over.
    pub carry_over: u64,
}

impl Timers {
    /// Counts the queue's timers one by one.
    fn count(&self, now: Height) -> Buckets {
        let (mut ring, mut epochs) = (BTreeMap::new(), BTreeMap::new());
        let mut buckets = Buckets::default();
        for timer in self.queue.iter() {
            match Place::of(timer.height, timer.scheduled_at, now) {
                Place::CarryOver => buckets.carry_over += 1,
                Place::Ring => *ring.entry(timer.height).or_default() += 1,
                Place::Epoch => *epochs.entry(queue::epoch(timer.height)).or_default() += 1,
                Place::Overflow => buckets.overflow += 1,
            }
        }
        Buckets {
            ring: ring.into_iter().collect(),
            epochs: epochs.into_iter().collect(),
            ..buckets
        }
    }
}

impl State {
    /// Makes what was proposed for the next block what it finds.
    pub(super) fn prepare(&mut self, next: Height) {
        let Self { timers, connectivity, bonds, basefee_cycle, params, .. } = self;
        timers.prepare((connectivity, bonds), &params.timers, next, *basefee_cycle);
    }

    /// Numbers of timers by where they are, for display. The newest state of a chain has its
    /// calendar and asks that; for others, and after a restart, the timers are counted one by one.
    pub fn timer_buckets(&self) -> Buckets {
        let Timers { queue, desk, .. } = &self.timers;
        let now = self.height();
        let parked = desk.0.lock().unwrap_or_else(PoisonError::into_inner);
        match parked.as_deref().map(|desk| &desk.calendar).filter(|found| found.now() == now) {
            Some(calendar) => Buckets {
                ring: calendar.ring().collect(),
                epochs: calendar.epochs().collect(),
                overflow: queue.overflow_len() as u64,
                carry_over: calendar.counts().carry_over,
            },
            None => {
                drop(parked);
                self.timers.count(now)
            }
        }
    }

    /// Prices and parameters of the timer lane.
    pub const fn lane(&self) -> &Lane {
        &self.timers.lane
    }

    /// All that is governed by keys, as the next block finds it.
    pub const fn governed(&self) -> Governed {
        let (lane, connectivity, bonds) = (&self.timers.lane, self.connectivity, self.bonds);
        Governed { policy: lane.policy, config: lane.config, connectivity, bonds }
    }

    /// A timer that has not fired yet.
    pub fn timer(&self, id: &Hash) -> Option<Timer> {
        self.timers.queue.get(id)
    }

    /// The timers.
    pub const fn timers(&self) -> &Queue {
        &self.timers.queue
    }

    /// Fires of the last blocks.
    pub const fn fairness(&self) -> &Fairness {
        &self.timers.fairness
    }

    /// Weights under `gba-auction`.
    pub const fn auction(&self) -> &Auction {
        &self.timers.auction
    }

    /// What a cycle of the lane costs in the block at `height`, a child of this state's, beside
    /// the cycle basefee: nothing where the policy has no lane basefee.
    pub fn lane_basefee(&self, height: Height) -> Wei {
        match self.timers.lane.policy_at(height) {
            Policy::Eip1559 => self.timers.lane.price(),
            Policy::Fifo | Policy::GbaAuction => Wei::ZERO,
        }
    }

    /// What timers are scheduled under in the block at `height`, a child of this state's.
    pub fn timer_terms(&self, height: Height) -> Terms {
        let lane = &self.timers.lane;
        let policy = lane.policy_at(height);
        Terms {
            now: height,
            policy,
            config: lane.config,
            lane_price: match policy {
                Policy::Eip1559 => lane.price(),
                Policy::Fifo | Policy::GbaAuction => self.basefee_cycle,
            },
            basefee_cycle: self.basefee_cycle,
            basefee_cell: self.basefee_cell,
            p50: lane.p50,
            takes_bid: policy == Policy::Fifo || height < lane.bid_refused_from,
        }
    }

    /// What the timers of a block pay that these are the terms of, a child of this state's.
    pub fn lane_prices(&self, terms: &Terms) -> Prices {
        Prices {
            policy: terms.policy,
            basefee_cycle: self.basefee_cycle,
            basefee_lane: self.lane_basefee(terms.now),
            basefee_cell: self.basefee_cell,
            p50: terms.p50,
            config: terms.config,
        }
    }

    /// Puts a timer into the queue under this id.
    pub(super) fn schedule_timer(
        &mut self,
        terms: &Terms,
        id: Hash,
        admitted: Admitted,
        events: &mut Vec<EventKind>,
    ) -> Result<(), TimerError> {
        let Admitted { mut timer, clamped_from, exceeds_cap } = admitted;
        let (actor, limit) = (timer.actor, terms.config.max_timers_per_actor);
        if self.timers.queue.count_of(&actor) >= limit {
            return Err(TimerError::TooManyTimers { actor, limit });
        }
        timer.id = id;
        events.push(
            TimerScheduled {
                timer_id: id,
                actor,
                height: timer.height,
                expires_at: timer.expires_at,
                max_fee_per_cycle: timer.max_fee_per_cycle,
                max_priority_fee_per_cycle: timer.max_priority_fee_per_cycle,
                fee_payer: timer.fee_payer,
                max_cost: timer.promised.unwrap_or_else(|| terms.worst_cost(&timer)),
            }
            .into(),
        );
        if let Some(stated) = clamped_from {
            let clamped = timer.max_priority_fee_per_cycle;
            let timer_id = id;
            events.push(TimerPriorityClampedAtSchedule { timer_id, actor, stated, clamped }.into());
        }
        if let Some(cap) = exceeds_cap {
            let gas_limit = timer.gas_limit;
            let timer_id = id;
            events.push(TimerExceedsAuctionCap { timer_id, actor, gas_limit, cap }.into());
        }
        self.timers.queue.schedule(timer);
        Ok(())
    }

    /// Takes a timer out of the queue. `by` is told; `may` says whose timers it may be.
    pub(super) fn cancel_timer(
        &mut self,
        id: &Hash,
        by: Address,
        may: impl Fn(&Self, &Timer) -> bool,
        events: &mut Vec<EventKind>,
    ) -> Result<(), TimerError> {
        let timer = self.timers.queue.get(id).ok_or(TimerError::UnknownTimer(*id))?;
        let actor = timer.actor;
        if !may(self, &timer) {
            return Err(TimerError::Unauthorized { who: by, actor });
        }
        self.timers.queue.remove(id);
        events.push(TimerCancelled { timer_id: *id, actor, by }.into());
        Ok(())
    }

    /// Lets a timer live longer.
    pub(super) fn extend_timer(
        &mut self,
        terms: &Terms,
        (id, expires_at): (&Hash, Height),
        by: Address,
        may: impl Fn(&Self, &Timer) -> bool,
        events: &mut Vec<EventKind>,
    ) -> Result<(), TimerError> {
        let mut timer = self.timers.queue.get(id).ok_or(TimerError::UnknownTimer(*id))?;
        if !may(self, &timer) {
            return Err(TimerError::Unauthorized { who: by, actor: timer.actor });
        }
        terms.extend(&mut timer, expires_at)?;
        self.timers.queue.replace(&timer);
        events.push(TimerExtended { timer_id: *id, actor: timer.actor, expires_at }.into());
        Ok(())
    }

    /// Whether `who` deployed the actor of this timer.
    pub(super) fn deployed(&self, who: Address, timer: &Timer) -> bool {
        self.actor(&timer.actor).is_some_and(|actor| actor.deployer == who)
    }

    /// The block from which on limits are those of now: what was scheduled before is held to them.
    pub(super) const fn limits_since(&self) -> Height {
        self.timers.lane.capped_from
    }

    /// An actor's weight as ranking takes it: the numerator of W under `eip1559`, millionths under
    /// `gba-auction`, 1 under `fifo`.
    pub(super) fn timer_weight(&self, policy: Policy, twice_median: u64, actor: Address) -> u64 {
        match policy {
            Policy::Eip1559 => {
                let recent = self.fairness().recent(&self.fairness_key(actor));
                weight_numerator(recent, twice_median)
            }
            Policy::Fifo => 1,
            Policy::GbaAuction => self.auction().weight(&actor),
        }
    }

    /// Whose fires count together with those of `actor` (timers.md §4).
    pub(super) fn fairness_key(&self, actor: Address) -> Address {
        match self.params.timers.scope {
            Scope::Actor => actor,
            Scope::Deployer => self.actor(&actor).map_or(actor, |found| found.deployer),
        }
    }
}
