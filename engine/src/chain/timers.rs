//! The chain's record of timers: the scheduled ones, and the prices that all timers share (spec
//! timers.md).

use crate::{
    presence::Connectivity,
    primitives::{
        Address, Height, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
    speculation::Bonds,
    timer::{
        Auction, Calendar, Fairness, Governed, Key, Params, Policy, Proposal, ProposedValue, Queue,
        TimerConfig, TimerPlace, lane::Buffers, queue,
    },
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

record! {
    /// State that all timers of a block share. It follows from the blocks before it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Lane {
        /// The rule by which due timers compete in the next block.
        pub policy: Policy,
        pub policy_since: Height,
        /// The first block that refuses the deprecated `bid`, if the policy is not `fifo`.
        pub bid_refused_from: Height,
        /// The governed parameters of the next block.
        pub config: TimerConfig,
        /// Pending proposals for all governed parameters, ascending by height. An entry is removed
        /// when its block begins.
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
        /// The block in which limits were last lowered: timers scheduled before it are held to the
        /// new limits when they are due.
        pub capped_from: Height,
        /// The last owner whose agent was asked for a bid: the next block continues after it.
        pub asked: Address,
    }
}

impl Lane {
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
    pub(super) fn price(&self) -> Wei {
        let share = u128::from(self.config.lane_fee_multiplier);
        // A basefee is below 2^64.
        Wei::new(self.basefee.get().saturating_mul(share) / 1_000)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Timers {
    pub queue: Queue,
    pub lane: Lane,
    /// Fires of recent blocks.
    pub fairness: Fairness,
    /// Actors' weights under `gba-auction`.
    pub auction: Auction,
    pub desk: Parked,
}
record!(Timers { queue, lane, fairness, auction, desk });

/// Working memory for the execution of a block. It follows from the queue, but is expensive to
/// build.
pub(super) struct Desk {
    pub calendar: Calendar,
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
    /// The same, `blocks` later, in the state of block `now`.
    pub(super) fn later(self, blocks: u64, now: Height) -> Self {
        let Self { queue, mut lane, fairness, auction, desk: _ } = self;
        lane.policy_since = lane.policy_since.after(blocks);
        lane.bid_refused_from = lane.bid_refused_from.after(blocks);
        lane.capped_from = lane.capped_from.after(blocks);
        for proposal in &mut lane.pending {
            proposal.height = proposal.height.after(blocks);
        }
        let (queue, fairness) = (queue.later(blocks, now), fairness.later(blocks));
        Self { queue, lane, fairness, auction, desk: Parked::default() }
    }

    /// The same, without the working memory.
    pub(super) fn at_rest(&self) -> Self {
        Self { desk: Parked::default(), ..self.clone() }
    }

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
    pub carry_over: u64,
}

impl Timers {
    /// Number of timers in each part of the queue at height `now`: the calendar's counts, if it is
    /// here and at that height.
    pub(super) fn buckets(&self, now: Height) -> QueueCounts {
        let parked = self.desk.0.lock().unwrap_or_else(PoisonError::into_inner);
        match parked.as_deref().map(|desk| &desk.calendar).filter(|found| found.now() == now) {
            Some(calendar) => QueueCounts {
                ring: calendar.ring().collect(),
                epochs: calendar.epochs().collect(),
                overflow: self.queue.overflow_len() as u64,
                carry_over: calendar.counts().carry_over,
            },
            None => {
                drop(parked);
                self.count(now)
            }
        }
    }

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
