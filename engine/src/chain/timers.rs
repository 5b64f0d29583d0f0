//! The chain's record of timers: the scheduled ones, and the prices that all timers share (spec
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
        Admitted, Auction, Calendar, Fairness, FairnessScope, Governed, Key, Params, Policy,
        Proposal, ProposedValue, Queue, ScheduleTerms, Timer, TimerConfig, TimerError, TimerPlace,
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

/// State that all timers of a block share. It follows from the blocks before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The rule by which due timers compete in the next block.
    pub policy: Policy,
    /// The first block under this policy.
    pub policy_since: Height,
    /// The first block that refuses the deprecated `bid`, if the policy is not `fifo`.
    pub bid_refused_from: Height,
    /// The governed parameters of the next block.
    pub config: TimerConfig,
    /// Pending proposals for all governed parameters, ascending by height. An entry is removed when
    /// its block begins.
    pub pending: Vec<Proposal>,
    /// Price of a cycle of the lane in the next block, on top of the cycle basefee. Used under
    /// `eip1559` only.
    pub basefee: Wei,
    /// Median priority of the timers that fired in the newest block, in wei per cycle.
    pub p50: Wei,
    /// Cycles used by the newest block, including the lane.
    pub last_cycles: u64,
    /// Lane basefees burned since genesis; part of the total burned.
    pub burned: Wei,
    /// The block in which limits were last lowered: timers scheduled before it are held to the new
    /// limits when they are due.
    pub capped_from: Height,
    /// The last owner whose agent was asked for a bid: the next block continues after it.
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
    /// The lane before block 1.
    fn genesis(params: &Params) -> Self {
        let pending = params.activation.map(|activation| Proposal {
            height: activation.height,
            by: None,
            settings: vec![ProposedValue::policy(activation.policy)],
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

    /// Price of a cycle of the lane under a policy with a lane basefee.
    fn price(&self) -> Wei {
        let share = u128::from(self.config.lane_fee_multiplier);
        // A basefee is below 2^64.
        Wei::new(self.basefee.get().saturating_mul(share) / 1_000)
    }
}

/// The timers of a state.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// Every scheduled timer.
    pub queue: Queue,
    pub lane: Lane,
    /// Fires of recent blocks.
    pub fairness: Fairness,
    /// Actors' weights under `gba-auction`.
    pub auction: Auction,
    /// Working memory for the execution of the next block.
    pub desk: Parked,
}
record!(Timers { queue, lane, fairness, auction, desk });

/// Working memory for the execution of a block. It follows from the queue, but is expensive to
/// build.
pub(super) struct Desk {
    /// Finds the queue's timers by height.
    pub calendar: Calendar,
    /// Memory for ranking.
    pub buffers: Buffers,
}

/// Holds the desk for the block after a state. The first execution of that block takes it; a later
/// one rebuilds it from the queue. Clones share it; it is not part of the state.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<Option<Box<Desk>>>>);

impl Parked {
    pub(super) fn new(desk: Box<Desk>) -> Self {
        Self(Arc::new(Mutex::new(Some(desk))))
    }

    fn take(&self) -> Option<Box<Desk>> {
        // A desk is stored whole, so a panic elsewhere leaves nothing half done here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parked")
    }
}

/// A record that contains one omits it.
impl Encode for Parked {
    fn encode(&self, _: &mut Writer) {}

    fn is_absent(&self) -> bool {
        true
    }
}

impl Decode for Parked {
    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Err(DecodeError::Invalid("a desk is never encoded"))
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
        // Only a policy can be pending in a genesis document.
        let mut others = (Connectivity::DEFAULT, Bonds::DEFAULT);
        let basefee = params.genesis_lane_basefee;
        let others = (&mut others.0, &mut others.1);
        timers.prepare(others, params, Height::GENESIS.next(), basefee);
        timers
    }

    /// Applies what was proposed for the next block, including to `connectivity` and `bonds`. A
    /// cycle costs `basefee_cycle` in that block.
    ///
    /// The queue, the fairness window and due timers stay unchanged. Weights are reset when
    /// `gba-auction` begins or ends, and are otherwise kept within their bounds.
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
        let after = before.with(&due.settings).expect("every proposal was checked");
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
                // Until now a cycle of the lane cost as much as any other cycle (CIP-1 §13.2).
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

    /// The desk left by the block at `height`, whose state this is; rebuilt if it was taken.
    pub(super) fn take_desk(&mut self, height: Height) -> Box<Desk> {
        self.desk.take().unwrap_or_else(|| {
            let calendar = Calendar::rebuild(&mut self.queue, height);
            Box::new(Desk { calendar, buffers: Buffers::default() })
        })
    }
}

/// Number of timers in each part of the calendar queue.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Tier 1: heights that have timers, ascending.
    pub ring: Vec<(Height, u64)>,
    /// Tier 2: epochs that have timers, ascending.
    pub epochs: Vec<(u64, u64)>,
    /// Tier 3.
    pub overflow: u64,
    /// Due timers that were carried over.
    pub carry_over: u64,
}

impl Timers {
    /// Counts the queue's timers one by one.
    fn count(&self, now: Height) -> QueueCounts {
        let (mut ring, mut epochs) = (BTreeMap::new(), BTreeMap::new());
        let mut buckets = QueueCounts::default();
        for timer in self.queue.iter() {
            match TimerPlace::of(timer.height, timer.scheduled_at, now) {
                TimerPlace::CarryOver => buckets.carry_over += 1,
                TimerPlace::Ring => *ring.entry(timer.height).or_default() += 1,
                TimerPlace::Epoch => *epochs.entry(queue::epoch(timer.height)).or_default() += 1,
                TimerPlace::Overflow => buckets.overflow += 1,
            }
        }
        QueueCounts {
            ring: ring.into_iter().collect(),
            epochs: epochs.into_iter().collect(),
            ..buckets
        }
    }
}

impl State {
    /// Applies what was proposed for the next block.
    pub(super) fn prepare(&mut self, next: Height) {
        let Self { timers, connectivity, bonds, basefee_cycle, params, .. } = self;
        timers.prepare((connectivity, bonds), &params.timers, next, *basefee_cycle);
    }

    /// Number of timers in each part of the queue, for display. The newest state of a chain has a
    /// calendar with the counts; for other states, and after a restart, timers are counted one by
    /// one.
    pub fn timer_buckets(&self) -> QueueCounts {
        let Timers { queue, desk, .. } = &self.timers;
        let now = self.height();
        let parked = desk.0.lock().unwrap_or_else(PoisonError::into_inner);
        match parked.as_deref().map(|desk| &desk.calendar).filter(|found| found.now() == now) {
            Some(calendar) => QueueCounts {
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

    /// All parameters that are governed by key, for the next block.
    pub const fn governed(&self) -> Governed {
        let (lane, connectivity, bonds) = (&self.timers.lane, self.connectivity, self.bonds);
        Governed { policy: lane.policy, config: lane.config, connectivity, bonds }
    }

    /// A timer that has not fired yet.
    pub fn timer(&self, id: &Hash) -> Option<Timer> {
        self.timers.queue.get(id)
    }

    pub const fn timers(&self) -> &Queue {
        &self.timers.queue
    }

    /// Fires of recent blocks.
    pub const fn fairness(&self) -> &Fairness {
        &self.timers.fairness
    }

    /// Actors' weights under `gba-auction`.
    pub const fn auction(&self) -> &Auction {
        &self.timers.auction
    }

    /// Price of a cycle of the lane in the block at `height`, a child of this state's, on top of
    /// the cycle basefee; zero if the policy has no lane basefee.
    pub fn lane_basefee(&self, height: Height) -> Wei {
        match self.timers.lane.policy_at(height) {
            Policy::Eip1559 => self.timers.lane.price(),
            Policy::Fifo | Policy::GbaAuction => Wei::ZERO,
        }
    }

    /// The terms for timers scheduled in the block at `height`, a child of this state's.
    pub fn timer_terms(&self, height: Height) -> ScheduleTerms {
        let lane = &self.timers.lane;
        let policy = lane.policy_at(height);
        ScheduleTerms {
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

    /// The prices that timers pay in a block with these terms, a child of this state's.
    pub fn lane_prices(&self, terms: &ScheduleTerms) -> Prices {
        Prices {
            policy: terms.policy,
            basefee_cycle: self.basefee_cycle,
            basefee_lane: self.lane_basefee(terms.now),
            basefee_cell: self.basefee_cell,
            p50: terms.p50,
            config: terms.config,
        }
    }

    /// Adds a timer to the queue under this id.
    pub(super) fn schedule_timer(
        &mut self,
        terms: &ScheduleTerms,
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

    /// Removes a timer from the queue if `may` allows it. The event names `by`.
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

    /// Extends a timer's lifetime if `may` allows it. An error names `by`.
    pub(super) fn extend_timer(
        &mut self,
        terms: &ScheduleTerms,
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

    /// The block from which the present limits apply: timers scheduled before it are held to them.
    pub(super) const fn limits_since(&self) -> Height {
        self.timers.lane.capped_from
    }

    /// An actor's weight for ranking: the numerator of W under `eip1559`, millionths under
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

    /// The key under which `actor`'s fires are counted: it or its deployer (timers.md §4).
    pub(super) fn fairness_key(&self, actor: Address) -> Address {
        match self.params.timers.scope {
            FairnessScope::Actor => actor,
            FairnessScope::Deployer => self.actor(&actor).map_or(actor, |found| found.deployer),
        }
    }
}
