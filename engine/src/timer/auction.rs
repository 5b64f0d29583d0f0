//! Weights of policy `gba-auction` (timers.md §6; the original CIP-1 §3, step 5).
//!
//! Everything is in millionths, floored at each step. An actor's weight starts at 1,000,000; an
//! actor with that weight holds no state. In each block [`Auction::record`] adds the results of
//! each actor's due timers. In an epoch's first block, before its timers, [`Auction::rollover`]
//! computes weight' = (1 − λ) × weight + λ × S, where S is the mean of four terms over the epoch
//! that ended:
//!
//! 1. Tip: the share of the actors with due timers whose mean effective tip is at most this
//!    actor's, itself included. The mean is over every block and every timer due in it, in wei,
//!    floored; a timer that is priced out counts with a tip of 0.
//! 2. Success: fired / (carried into the epoch + became due in it).
//! 3. Lateness: the mean of min(32, now − height) / 32, over the same timers as the tip.
//! 4. Thrift: 1 − cycles consumed / lane budget of all the epoch's blocks.
//!
//! A timer counts as due from its height until it fires or its lifetime ends, whether or not its
//! payer can pay. The result is clamped to 0.5 and 2.0; if a timer of the actor did not fire in its
//! eighth block or later, the result is at least 1.5. The weight of an actor without a due timer in
//! the epoch moves toward 1,000,000: its distance is multiplied by 1 − λ. λ and the three bounds
//! are governed ([`Weighting`]).
//!
//! See [`lane`](super::lane) for how weights order timers and divide the lane into slices.

use crate::{
    primitives::{
        Address, Hash, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
        keccak256,
        merkle::Map,
    },
    record,
};

/// 1.0 in the unit of weights (timers.md §6).
const ONE: u64 = 1_000_000;
/// The weight of an actor without a history, in millionths (timers.md §6).
pub const START_WEIGHT: u64 = ONE;
/// The lateness in blocks beyond which it counts no further (timers.md §6).
const MOST_LATE: u32 = 32;
/// The number of blocks after which a deferred timer counts as starved (timers.md §6).
const STARVED_BLOCKS: u32 = 8;

record! {
    /// The governed rules by which weights change; the defaults are those of timers.md §6.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Weighting {
        /// λ, in millionths: at most 1,000,000.
        pub lambda: u64 = 200_000,
        /// The minimum weight, in millionths: from 1 to [`START_WEIGHT`].
        pub min: u64 = ONE / 2,
        /// The maximum weight, in millionths: at least [`START_WEIGHT`].
        pub max: u64 = 2 * ONE,
        /// The minimum weight of an actor with starved timers, in millionths: from `min` to `max`.
        pub starvation_floor: u64 = ONE / 2 * 3,
    }
}

/// The results of an actor's due timers in one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    pub due: u64,
    /// Number of timers that became due in this block.
    pub fresh: u64,
    /// The sum of their effective tips, in wei per cycle.
    pub tips: u128,
    /// The sum of the blocks by which they were late, at most 32 each.
    pub late: u64,
    /// Number of timers in their eighth block or later that did not fire.
    pub starved: u64,
    pub fired: u64,
    pub consumed: u64,
}

impl Standing {
    /// Adds a due timer that is `waited` blocks late; a timer that is priced out has no tip.
    pub const fn note(&mut self, waited: u32, tip: Option<u64>) {
        self.due += 1;
        self.fresh += (waited == 0) as u64;
        self.late += if waited < MOST_LATE { waited } else { MOST_LATE } as u64;
        self.starved += (waited + 1 >= STARVED_BLOCKS) as u64;
        if let Some(tip) = tip {
            self.tips = self.tips.saturating_add(tip as u128);
        }
    }

    pub const fn fire(&mut self, waited: u32, cycles: u64) {
        self.fired += 1;
        self.consumed = self.consumed.saturating_add(cycles);
        if waited + 1 >= STARVED_BLOCKS {
            self.starved = self.starved.saturating_sub(1);
        }
    }
}

/// The results of an actor's due timers in the epoch so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AuctionTally {
    /// Number of due timers, summed over the blocks; never 0.
    due: u64,
    entered: u64,
    tips: Wei,
    late: u64,
    starved: bool,
    fired: u64,
    consumed: u64,
}
record!(AuctionTally { due, entered, tips, late, starved, fired, consumed });

impl AuctionTally {
    /// Mean effective tip, in wei per cycle.
    const fn mean_tip(&self) -> u128 {
        self.tips.get() / self.due as u128
    }

    /// S in millionths, given its first term.
    fn score(&self, tip: u64, budget: u64) -> u64 {
        let success = share(self.fired, self.entered);
        let late = share(self.late, self.due.saturating_mul(u64::from(MOST_LATE)));
        let thrift = ONE - share(self.consumed, budget);
        (tip + success + late + thrift) / 4
    }
}

/// floor(part / whole) in millionths, at most 1.0; 0 if `whole` is 0.
fn share(part: u64, whole: u64) -> u64 {
    let share = (u128::from(part.min(whole)) * u128::from(ONE)).checked_div(whole.into());
    share.unwrap_or(0) as u64
}

/// The actors' weights, and the tallies of the current epoch. Clones are O(1) and independent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auction {
    /// Weights in millionths, except those that are [`START_WEIGHT`].
    weights: Map<Address, u64>,
    tallies: Map<Address, AuctionTally>,
    /// Cycles of the lane, summed over the epoch's blocks so far.
    budget: u64,
}

impl Auction {
    /// An actor's weight, in millionths.
    pub fn weight(&self, actor: &Address) -> u64 {
        self.weights.get(actor).copied().unwrap_or(START_WEIGHT)
    }

    /// The weights other than [`START_WEIGHT`], in order of actor.
    pub fn weights(&self) -> impl Iterator<Item = (&Address, u64)> {
        self.weights.iter().map(|(actor, weight)| (actor, *weight))
    }

    /// Adds the results of a block's due timers, one entry per actor, and the lane's cycles.
    pub fn record(&mut self, lane: u64, block: impl IntoIterator<Item = (Address, Standing)>) {
        self.budget = self.budget.saturating_add(lane);
        for (actor, standing) in block {
            if standing.due == 0 {
                continue;
            }
            let known = self.tallies.get(&actor).copied();
            // When an epoch first sees an actor, its due timers were carried into the epoch or are
            // new.
            let entered = if known.is_some() { standing.fresh } else { standing.due };
            let tally = known.unwrap_or_default();
            let tally = AuctionTally {
                due: tally.due.saturating_add(standing.due),
                entered: tally.entered.saturating_add(entered),
                tips: tally.tips.saturating_add(Wei::new(standing.tips)),
                late: tally.late.saturating_add(standing.late),
                starved: tally.starved || standing.starved > 0,
                fired: tally.fired.saturating_add(standing.fired),
                consumed: tally.consumed.saturating_add(standing.consumed),
            };
            self.tallies.insert(actor, tally);
        }
    }

    /// Ends the epoch: computes new weights and clears the tallies.
    pub fn rollover(&mut self, rules: &Weighting) {
        let idle: Vec<_> = self.weights.iter().map(|(actor, weight)| (*actor, *weight)).collect();
        for (actor, weight) in idle {
            if !self.tallies.contains_key(&actor) {
                self.set(actor, rested(weight, rules));
            }
        }
        let mut tips: Vec<_> = self.tallies.iter().map(|(_, tally)| tally.mean_tip()).collect();
        tips.sort_unstable();
        for (actor, tally) in std::mem::take(&mut self.tallies).iter() {
            let mean = tally.mean_tip();
            let at_most = tips.partition_point(|tip| *tip <= mean);
            let score = tally.score(share(at_most as u64, tips.len() as u64), self.budget);
            let kept = ONE.saturating_sub(rules.lambda);
            let blended = (kept * self.weight(actor) + rules.lambda * score) / ONE;
            let least = if tally.starved { rules.starvation_floor } else { rules.min };
            self.set(*actor, blended.max(least).min(rules.max));
        }
        self.budget = 0;
    }

    /// Clamps weights to bounds that have changed.
    pub fn rescale(&mut self, rules: &Weighting) {
        let all: Vec<_> = self.weights.iter().map(|(actor, weight)| (*actor, *weight)).collect();
        for (actor, weight) in all {
            self.set(actor, weight.max(rules.min).min(rules.max));
        }
    }

    pub fn root(&self) -> Hash {
        let budget = self.budget.to_be_bytes();
        keccak256(&[&self.weights.root().0, &self.tallies.root().0, &budget])
    }

    fn set(&mut self, actor: Address, weight: u64) {
        if weight == START_WEIGHT {
            self.weights.remove(&actor);
        } else {
            self.weights.insert(actor, weight);
        }
    }
}

/// The weight after an epoch without a due timer.
const fn rested(weight: u64, rules: &Weighting) -> u64 {
    // Floored, so that the distance reaches 0.
    let distance = weight.abs_diff(START_WEIGHT) * ONE.saturating_sub(rules.lambda) / ONE;
    if weight < START_WEIGHT { START_WEIGHT - distance } else { START_WEIGHT + distance }
}

/// The stored form of [`Auction`], before validation.
struct Stored {
    weights: Map<Address, u64>,
    tallies: Map<Address, AuctionTally>,
    budget: u64,
}
record!(Stored { weights, tallies, budget });

impl Encode for Auction {
    fn encode(&self, w: &mut Writer) {
        let Self { weights, tallies, budget } = self.clone();
        Stored { weights, tallies, budget }.encode(w);
    }
}

impl Decode for Auction {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let Stored { weights, tallies, budget } = Stored::decode(r)?;
        if weights.iter().any(|(_, weight)| *weight == START_WEIGHT) {
            return Err(DecodeError::Invalid("a weight is stored if it is not 1.0"));
        }
        if tallies.iter().any(|(_, tally)| tally.due == 0) {
            return Err(DecodeError::Invalid("an actor is tallied where it has due timers"));
        }
        Ok(Self { weights, tallies, budget })
    }
}

#[cfg(test)]
mod tests;
