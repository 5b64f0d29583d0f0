//! What a state knows about timers, and the changes that are allowed to them.

use super::State;
use crate::{
    actor::effect,
    chain::{
        actors::{ActorCode, Language},
        event::{
            EventKind, TimerCancelled, TimerExceedsAuctionCap, TimerExtended,
            TimerPriorityClampedAtSchedule, TimerScheduled,
        },
        timers::{Lane, QueueCounts},
    },
    primitives::{Address, Hash, Height, Wei},
    timer::{
        Admitted, Auction, Fairness, FairnessScope, Governed, Policy, Queue, ScheduleTerms, Timer,
        TimerError, fairness::weight_numerator, lane::Prices,
    },
};

impl State {
    /// Applies what was proposed for the next block.
    pub(in crate::chain) fn prepare(&mut self, next: Height) {
        let Self { timers, connectivity, bonds, basefee_cycle, params, .. } = self;
        timers.prepare((connectivity, bonds), &params.timers, next, *basefee_cycle);
    }

    /// Number of timers in each part of the queue, for display. The newest state of a chain has a
    /// calendar with the counts; for other states, and after a restart, timers are counted one by
    /// one.
    pub fn timer_buckets(&self) -> QueueCounts {
        self.timers.buckets(self.height())
    }

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

    pub const fn fairness(&self) -> &Fairness {
        &self.timers.fairness
    }

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

    pub(in crate::chain) fn schedule_timer(
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
    pub(in crate::chain) fn cancel_timer(
        &mut self,
        id: &Hash,
        by: Address,
        may: impl Fn(&Self, &Timer) -> bool,
    ) -> Result<TimerCancelled, TimerError> {
        let timer = self.timers.queue.get(id).ok_or(TimerError::UnknownTimer(*id))?;
        let actor = timer.actor;
        if !may(self, &timer) {
            return Err(TimerError::Unauthorized { who: by, actor });
        }
        self.timers.queue.remove(id);
        Ok(TimerCancelled { timer_id: *id, actor, by })
    }

    /// The handler that a fire of a timer calls, and its argument.
    pub fn called_by(&self, timer: &Timer) -> (String, Vec<u8>) {
        let code = self.actor(&timer.actor).and_then(|actor| self.code(&actor.code));
        let called = match code.map_or(Language::Starlark, ActorCode::language) {
            Language::Starlark => effect::called,
            Language::Python => effect::called_in_python,
        };
        called(timer.handler.as_deref(), &timer.payload)
    }

    /// Extends a timer's lifetime if `may` allows it. An error names `by`.
    pub(in crate::chain) fn extend_timer(
        &mut self,
        terms: &ScheduleTerms,
        (id, expires_at): (&Hash, Height),
        by: Address,
        may: impl Fn(&Self, &Timer) -> bool,
    ) -> Result<TimerExtended, TimerError> {
        let mut timer = self.timers.queue.get(id).ok_or(TimerError::UnknownTimer(*id))?;
        if !may(self, &timer) {
            return Err(TimerError::Unauthorized { who: by, actor: timer.actor });
        }
        terms.extend(&mut timer, expires_at)?;
        self.timers.queue.replace(&timer);
        Ok(TimerExtended { timer_id: *id, actor: timer.actor, expires_at })
    }

    pub(in crate::chain) fn deployed(&self, who: Address, timer: &Timer) -> bool {
        self.actor(&timer.actor).is_some_and(|actor| actor.deployer == who)
    }

    /// The block from which the present limits apply: timers scheduled before it are held to them.
    pub(in crate::chain) const fn limits_since(&self) -> Height {
        self.timers.lane.capped_from
    }

    /// An actor's weight for ranking: the numerator of W under `eip1559`, millionths under
    /// `gba-auction`, 1 under `fifo`.
    pub(in crate::chain) fn timer_weight(
        &self,
        policy: Policy,
        twice_median: u64,
        actor: Address,
    ) -> u64 {
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
    pub(in crate::chain) fn fairness_key(&self, actor: Address) -> Address {
        match self.params.timers.scope {
            FairnessScope::Actor => actor,
            FairnessScope::Deployer => self.actor(&actor).map_or(actor, |found| found.deployer),
        }
    }
}
