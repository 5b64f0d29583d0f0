//! The governed parameters of timers, of runners' connections and of tasks' bonds: their keys,
//! their bounds, and the relations between them.
//!
//! There is one check: [`Governed::check`] applies to a genesis document, and to the values of
//! every height at which a [proposal](super::proposals) activates.

use super::{Params, Policy, TimerConfig};
use crate::{
    fees::{basefee::MOST_LANE_BASEFEE, meter},
    presence::Connectivity,
    speculation::{Bonds, Slashing},
};

/// The values of all governed parameters in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Governed {
    pub policy: Policy,
    pub config: TimerConfig,
    pub connectivity: Connectivity,
    pub bonds: Bonds,
}

/// A governed parameter: its key and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key in transactions.
    pub name: &'static str,
    /// The meaning and the unit.
    pub about: &'static str,
    pub unit: &'static str,
    pub min: u64,
    pub max: u64,
    /// The words for the values 0, 1, …; empty for a numeric parameter.
    pub words: &'static [&'static str],
}

impl Key {
    /// The key of the policy.
    pub const POLICY: &'static str = "system:cip1:policy";
    /// The prefix of the keys of [`Connectivity`].
    pub const CONNECTIVITY: &'static str = "system:cip11:";
    /// The prefix of the keys of [`Bonds`].
    pub const TASKS: &'static str = "system:tasks:";
    /// The key of [`Connectivity::stale_heartbeat_blocks`].
    pub const STALE_HEARTBEAT: &'static str = "system:cip11:stale_heartbeat_blocks";

    pub fn named(name: &str) -> Result<&'static Self, ParameterError> {
        let found = Governed::KEYS.iter().find(|key| key.name == name);
        found.ok_or_else(|| ParameterError::UnknownParameter(name.to_owned()))
    }

    /// The document that defines the parameter.
    pub fn source(&self) -> &'static str {
        match self.name.split(':').nth(1) {
            Some("cip1") => "CIP-1",
            Some("cip3") => "CIP-3",
            Some("cip5") => "CIP-5",
            Some("cip11") => "CIP-11 §13",
            Some("tasks") => "AgenC §4.4",
            _ => "this devnet",
        }
    }

    pub fn word(&self, value: u64) -> Option<&'static str> {
        self.words.get(usize::try_from(value).ok()?).copied()
    }
}

trait Number: Copy {
    const WORDS: &'static [&'static str] = &[];

    fn number(self) -> u64;

    fn of(number: u64) -> Option<Self>;
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }

    fn of(number: u64) -> Option<Self> {
        Some(number)
    }
}

impl Number for Policy {
    const WORDS: &'static [&'static str] =
        &[Self::ALL[0].name(), Self::ALL[1].name(), Self::ALL[2].name()];

    fn number(self) -> u64 {
        Self::number(self)
    }

    fn of(number: u64) -> Option<Self> {
        Self::numbered(number)
    }
}

impl Policy {
    /// The index in [`Policy::ALL`]: its value as a parameter.
    pub const fn number(self) -> u64 {
        match self {
            Self::Eip1559 => 0,
            Self::Fifo => 1,
            Self::GbaAuction => 2,
        }
    }

    pub fn numbered(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

macro_rules! keys {
    ($($($field:ident).+: $ty:ty = $name:expr, $min:literal..=$max:expr, $unit:literal,
        $about:literal;)*) => {
        impl Governed {
            /// The governed parameters, in order of their keys.
            pub const KEYS: &'static [Key] = &[$(Key {
                name: $name,
                about: $about,
                unit: $unit,
                min: $min,
                max: $max,
                words: <$ty>::WORDS,
            }),*];

            pub fn get(&self, key: &str) -> Option<u64> {
                $(if key == $name {
                    return Some(self.$($field).+.number());
                })*
                None
            }

            /// Sets the value of a key, within its bounds.
            pub fn set(&mut self, key: &str, value: u64) -> Result<(), ParameterError> {
                let &Key { name, min, max, .. } = Key::named(key)?;
                let out = ParameterError::ParameterOutOfRange { name, value, min, max };
                if !(min..=max).contains(&value) {
                    return Err(out);
                }
                $(if key == $name {
                    self.$($field).+ = Number::of(value).ok_or(out)?;
                    return Ok(());
                })*
                Err(ParameterError::UnknownParameter(key.to_owned()))
            }
        }
    };
}

/// Blocks of a year at one block per second: the maximum of all windows and lifetimes.
pub const YEAR_BLOCKS: u64 = 31_536_000;
/// Maximum cycles of any lane or budget.
const MOST_CYCLES: u64 = 1_000_000_000;

/// Maximum timeout of an assignment, in blocks: half of a job's default time, when commitments
/// close.
const MOST_ACK_TIMEOUT: u64 = 60;

keys! {
    connectivity.ack_timeout_blocks: u64 = "system:cip11:ack_timeout_blocks",
        1..=MOST_ACK_TIMEOUT, "blocks", "blocks within which a runner has to answer an assignment";
    connectivity.heartbeat_blocks: u64 = "system:cip11:heartbeat_blocks", 1..=30, "blocks",
        "blocks between the pings of a connected runner";
    connectivity.mru_multiplier: u64 = "system:cip11:mru_multiplier",
        1..=Connectivity::MAX_MULTIPLIER, "times",
        "factor on the weight of the most recently used runner in the first draw";
    connectivity.mru_ttl_blocks: u64 = "system:cip11:mru_ttl_blocks", 1..=YEAR_BLOCKS, "blocks",
        "blocks for which the most recently used runner is favoured";
    connectivity.overlap_blocks: u64 = "system:cip11:overlap_blocks", 1..=65_536, "blocks",
        "blocks after an advance of the subset epoch in which the previous subsets count too";
    connectivity.presence_timeout_blocks: u64 = "system:cip11:presence_timeout_blocks",
        2..=Connectivity::MAX_PRESENCE_TIMEOUT, "blocks",
        "blocks for which a ping makes a runner present, and for which a P(h) counts";
    connectivity.stale_heartbeat_blocks: u64 = Key::STALE_HEARTBEAT, 64..=YEAR_BLOCKS, "blocks",
        "blocks after which the last on-chain heartbeat of a runner is stale";
    connectivity.subset_epoch_blocks: u64 = "system:cip11:subset_epoch_blocks", 8..=YEAR_BLOCKS,
        "blocks", "blocks of a subset epoch; a new value counts from the next consensus epoch on";
    config.fairness_window_blocks: u64 = "system:cip1:fairness_window_blocks", 1..=100_000,
        "blocks", "blocks over which fires count for the fairness weight";
    config.lane_basefee.change_denominator: u64 = "system:cip1:lane_basefee_change_denominator",
        2..=1_000_000, "fraction",
        "a block changes the lane basefee by at most 1/this";
    config.lane_basefee.max: u64 = "system:cip1:lane_basefee_max", 1..=MOST_LANE_BASEFEE,
        "wei per cycle", "maximum lane basefee, wei per cycle";
    config.lane_basefee.min: u64 = "system:cip1:lane_basefee_min", 1..=MOST_LANE_BASEFEE,
        "wei per cycle", "minimum lane basefee, wei per cycle";
    config.max_cycles_per_fire_auction_phase: u64 =
        "system:cip1:max_cycles_per_fire_auction_phase", 1..=MOST_CYCLES, "cycles",
        "cycles above which a timer is not attempted under eip1559";
    policy: Policy = Key::POLICY, 0..=2, "word",
        "how due timers compete for the lane: eip1559, fifo or gba-auction";
    config.priority_tier_floor: u64 = "system:cip1:priority_tier_floor", 1..=1_000_000_000_000,
        "wei per cycle", "minimum median tip from which tiers are computed, wei per cycle";
    config.priority_tier_multipliers.economy: u64 =
        "system:cip1:priority_tier_multipliers.economy", 0..=1_000_000, "per mille",
        "factor on the median tip for tier economy, per mille";
    config.priority_tier_multipliers.fast: u64 =
        "system:cip1:priority_tier_multipliers.fast", 0..=1_000_000, "per mille",
        "factor on the median tip for tier fast, per mille";
    config.priority_tier_multipliers.standard: u64 =
        "system:cip1:priority_tier_multipliers.standard", 0..=1_000_000, "per mille",
        "factor on the median tip for tier standard, per mille";
    config.priority_tier_multipliers.urgent: u64 =
        "system:cip1:priority_tier_multipliers.urgent", 0..=1_000_000, "per mille",
        "factor on the median tip for tier urgent, per mille";
    config.weights.lambda: u64 = "system:cip1:weight_lambda", 0..=1_000_000, "millionths",
        "share of an epoch's score in the new weight under gba-auction, millionths";
    config.weights.max: u64 = "system:cip1:weight_max", 1_000_000..=10_000_000, "millionths",
        "maximum weight under gba-auction, millionths";
    config.weights.min: u64 = "system:cip1:weight_min", 1..=1_000_000, "millionths",
        "minimum weight under gba-auction, millionths";
    config.weights.starvation_floor: u64 = "system:cip1:weight_starvation_floor",
        1..=10_000_000, "millionths",
        "minimum weight of an actor whose timers waited too long, millionths";
    config.lane_fee_multiplier: u64 = "system:cip3:lane_fee_multiplier", 0..=10_000, "per mille",
        "cost of a cycle of the lane as a share of the lane basefee, per mille";
    config.gc_cycles_per_block: u64 = "system:cip5:gc_cycles_per_block", 0..=MOST_CYCLES,
        "cycles", "cycles per block for removing timers, 200 each";
    config.lane_timer_cells: u64 = "system:cip5:lane_timer_cells", 64..=meter::MAX_BLOCK_CELLS,
        "cells", "cells per block for firing timers";
    config.lane_timer_cycles: u64 = "system:cip5:lane_timer_cycles", 1..=MOST_CYCLES,
        "cycles", "cycles per block for firing timers";
    config.max_cells_per_fire: u64 = "system:cip5:max_cells_per_fire",
        0..=meter::MAX_BLOCK_CELLS, "cells", "cells that a timer may ask for";
    config.max_cycles_per_fire: u64 = "system:cip5:max_cycles_per_fire", 1..=MOST_CYCLES,
        "cycles", "cycles that a timer may ask for";
    config.max_timers_per_actor: u64 = "system:cip5:max_timers_per_actor", 0..=1_000_000,
        "timers", "timers that an actor may have";
    config.max_ttl_blocks: u64 = "system:cip5:max_ttl_blocks", 1..=YEAR_BLOCKS, "blocks",
        "blocks from scheduling to the last height at which a timer may fire";
    config.least_share_of_bought_cycles: u64 = "system:fees:least_share_of_bought_cycles",
        0..=1_000, "per mille",
        "minimum share of its bought cycles that a call or deployment pays, per mille";
    bonds.base: u64 = "system:tasks:bond_base", 1..=Bonds::MAX, "wei",
        "minimum bond of a commitment to a task without uncompleted ancestors";
    bonds.per_depth: u64 = "system:tasks:bond_per_depth", 0..=Bonds::MAX, "wei",
        "addition to the minimum bond per uncompleted task on the longest path above it";
    bonds.slashing.ancestor_failed: u64 = "system:tasks:slash_ancestor_failed",
        0..=Slashing::MAX, "basis points",
        "share of its bond that a task loses when it is given up because an ancestor failed";
    bonds.slashing.claim_expired: u64 = "system:tasks:slash_claim_expired",
        0..=Slashing::MAX, "basis points",
        "share of its bond that a task loses when its claim or deadline passes";
    bonds.slashing.commitment_expired: u64 = "system:tasks:slash_commitment_expired",
        0..=Slashing::MAX, "basis points",
        "share of its bond that a task loses when its commitment expires";
    bonds.slashing.manual_cancel: u64 = "system:tasks:slash_manual_cancel",
        0..=Slashing::MAX, "basis points",
        "share of its bond that a task loses when its agent gives it up";
    bonds.slashing.proof_failed: u64 = "system:tasks:slash_proof_failed",
        0..=Slashing::MAX, "basis points",
        "share of its bond that a task loses when its proof is refused";
    bonds.slashing.proof_timeout: u64 = "system:tasks:slash_proof_timeout",
        0..=Slashing::MAX, "basis points",
        "share of its bond that a task loses when its proof is late";
}

/// The required order of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    AtMost,
    Below,
}

impl Relation {
    const fn holds(self, low: u64, high: u64) -> bool {
        match self {
            Self::AtMost => low <= high,
            Self::Below => low < high,
        }
    }

    /// Describes the first value when the relation is violated.
    const fn broken(self) -> &'static str {
        match self {
            Self::AtMost => "above",
            Self::Below => "not below",
        }
    }
}

/// In each pair the first value must have this relation to the second.
const ORDERED: [(&str, Relation, &str); 6] = [
    // A ping must arrive before the previous one is too old, and a head may be late by a block.
    ("system:cip11:heartbeat_blocks", Relation::Below, "system:cip11:presence_timeout_blocks"),
    // An assignment waits for at least one round of pings (CIP-11 §11.1).
    ("system:cip11:heartbeat_blocks", Relation::AtMost, "system:cip11:ack_timeout_blocks"),
    // If only time ends subset epochs, the previous subsets expire before the next epoch ends.
    ("system:cip11:overlap_blocks", Relation::Below, "system:cip11:subset_epoch_blocks"),
    ("system:cip1:lane_basefee_min", Relation::AtMost, "system:cip1:lane_basefee_max"),
    ("system:cip1:weight_min", Relation::AtMost, "system:cip1:weight_starvation_floor"),
    ("system:cip1:weight_starvation_floor", Relation::AtMost, "system:cip1:weight_max"),
];

/// The initial values of a chain whose genesis document does not set any.
impl Default for Governed {
    fn default() -> Self {
        Self::first(&Params::default(), Connectivity::DEFAULT, Bonds::DEFAULT)
    }
}

impl Governed {
    pub const fn first(params: &Params, connectivity: Connectivity, bonds: Bonds) -> Self {
        Self { policy: params.policy, config: params.config, connectivity, bonds }
    }

    /// The error for a value out of its bounds, or for two that violate their relation.
    pub fn check(&self) -> Result<(), ParameterError> {
        let value = |key: &str| self.get(key).expect("a known key has a value");
        let mut same = *self;
        Self::KEYS.iter().try_for_each(|key| same.set(key.name, value(key.name)))?;
        for (lower, relation, upper) in ORDERED {
            let (low, high) = (value(lower), value(upper));
            if !relation.holds(low, high) {
                return Err(ParameterError::ParameterConflict {
                    lower,
                    low,
                    relation,
                    upper,
                    high,
                });
            }
        }
        Ok(())
    }

    /// Whether a timer that fits `before` may not fit these values.
    pub fn is_tighter_than(&self, before: &Self) -> bool {
        self.policy != before.policy || self.config.is_tighter_than(&before.config)
    }
}

impl Params {
    pub fn check(&self) -> Result<(), ParameterError> {
        Governed::first(self, Connectivity::DEFAULT, Bonds::DEFAULT).check()?;
        let (basefee, curve) = (self.genesis_lane_basefee, self.config.lane_basefee);
        match curve.holds(basefee) {
            true => Ok(()),
            false => Err(ParameterError::GenesisLaneBasefee {
                basefee: basefee.get(),
                min: curve.min,
                max: curve.max,
            }),
        }
    }
}

impl Connectivity {
    pub fn check(&self) -> Result<(), ParameterError> {
        Governed { connectivity: *self, ..Governed::default() }.check()
    }
}

impl Bonds {
    pub fn check(&self) -> Result<(), ParameterError> {
        Governed { bonds: *self, ..Governed::default() }.check()
    }
}

/// Why a parameter does not change. The text starts with the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    #[error("UnknownParameter: no parameter {0}")]
    UnknownParameter(String),
    #[error("ParameterOutOfRange: {name} is from {min} to {max}, not {value}")]
    ParameterOutOfRange { name: &'static str, value: u64, min: u64, max: u64 },
    #[error(
        "ParameterConflict: {lower} would be {low}, {} {upper}, which would be {high}",
        relation.broken()
    )]
    ParameterConflict {
        /// The parameter that has to be the lower.
        lower: &'static str,
        low: u64,
        relation: Relation,
        upper: &'static str,
        high: u64,
    },
    #[error("ParameterOutOfRange: genesis_lane_basefee is from {min} to {max} wei, not {basefee}")]
    GenesisLaneBasefee {
        /// The requested value, in wei per cycle.
        basefee: u128,
        min: u64,
        max: u64,
    },
    /// Values that conflict with those pending for earlier heights, or that would make those of
    /// later heights invalid.
    #[error("{error}, from block {height} on, with what is pending")]
    Pending {
        /// The first block with invalid values.
        height: u64,
        error: Box<Self>,
    },
    #[error("EmptyProposal: it gives no parameter a value")]
    EmptyProposal,
    #[error("ParameterRepeated: {0} is given two values")]
    ParameterRepeated(&'static str),
    #[error("ActivationInPast: block {got} has begun; {next} is the first that may change")]
    ActivationInPast { got: u64, next: u64 },
    #[error("ActivationTooFar: block {got} is too far away, {last} is the last")]
    ActivationTooFar {
        got: u64,
        /// The last height for which a proposal is accepted now.
        last: u64,
    },
    #[error("TooManyProposals: proposals are pending for {0} heights, the maximum")]
    TooManyProposals(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::Wei;

    fn first() -> Governed {
        Governed::default()
    }

    #[test]
    fn every_key_reads_what_was_set() {
        let mut governed = first();
        governed.check().unwrap();
        for (index, key) in Governed::KEYS.iter().enumerate() {
            let value = (key.min + index as u64).min(key.max);
            governed.set(key.name, value).unwrap();
            assert_eq!(governed.get(key.name), Some(value), "{}", key.name);
            let out = ParameterError::ParameterOutOfRange {
                name: key.name,
                value: key.max + 1,
                min: key.min,
                max: key.max,
            };
            assert_eq!(governed.set(key.name, key.max + 1), Err(out));
        }
        assert!(Governed::KEYS.is_sorted_by_key(|key| key.name), "they are listed in this order");
        let unknown = ParameterError::UnknownParameter("system:cip1:no".into());
        assert_eq!(governed.set("system:cip1:no", 1), Err(unknown));
    }

    #[test]
    fn every_policy_has_a_word_and_a_number() {
        let key = Key::named(Key::POLICY).unwrap();
        assert_eq!(key.words.len(), Policy::ALL.len());
        for (number, policy) in (0..).zip(Policy::ALL) {
            let mut governed = first();
            governed.set(key.name, number).unwrap();
            assert_eq!((governed.policy, key.word(number)), (*policy, Some(policy.name())));
        }
        assert_eq!((key.max, key.word(3)), (2, None));
    }

    #[test]
    fn values_have_to_go_together() {
        for (lower, _, upper) in ORDERED {
            let mut governed = first();
            let key = Key::named(lower).unwrap();
            governed.set(upper, Key::named(upper).unwrap().min).unwrap();
            governed.set(lower, key.max).unwrap();
            let error = governed.check().unwrap_err();
            assert!(matches!(error, ParameterError::ParameterConflict { .. }), "{error}");
        }
        let mut params = Params::default();
        params.config.lane_basefee.min = params.genesis_lane_basefee.get() as u64 + 1;
        assert!(matches!(params.check(), Err(ParameterError::GenesisLaneBasefee { .. })));
        params.genesis_lane_basefee = Wei::new(u128::from(params.config.lane_basefee.min));
        params.check().unwrap();
    }

    #[test]
    fn what_is_below_is_less() {
        let check = |overlap_blocks, subset_epoch_blocks, expected: Result<(), &str>| {
            let connectivity =
                Connectivity { subset_epoch_blocks, overlap_blocks, ..Connectivity::DEFAULT };
            let got = connectivity.check().map_err(|error| error.to_string());
            assert_eq!(got, expected.map_err(str::to_owned));
        };
        check(63, 64, Ok(()));
        check(
            64,
            64,
            Err("ParameterConflict: system:cip11:overlap_blocks would be 64, not below \
                 system:cip11:subset_epoch_blocks, which would be 64"),
        );
        check(
            1,
            7,
            Err("ParameterOutOfRange: system:cip11:subset_epoch_blocks is from 8 to 31536000, \
                 not 7"),
        );
    }

    #[test]
    fn every_key_names_its_source() {
        let source = |name: &str| Key::named(name).unwrap().source();
        assert_eq!(source(Key::POLICY), "CIP-1");
        assert_eq!(source(Key::STALE_HEARTBEAT), "CIP-11 §13");
        assert_eq!(source("system:fees:least_share_of_bought_cycles"), "this devnet");
    }
}
