//! Policies, limits, and the keys under which they are governed.

use super::Due;
use crate::{
    fees::meter,
    names,
    primitives::{Height, Wei},
    record,
};

/// How due timers compete for the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Policy {
    /// Basefee and priority tip, weighted by fairness (CIP-1).
    #[default]
    Eip1559,
    /// In the order in which they were scheduled (CIP-5).
    Fifo,
    /// Bids of gas bidding agents, before the transactions (the original CIP-1).
    GbaAuction,
}

/// Whose fires the fairness weight counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scope {
    /// Each actor's by itself.
    #[default]
    Actor,
    /// Those of all actors of one deployer.
    Deployer,
}

names!(Policy: Eip1559 = "eip1559", Fifo = "fifo", GbaAuction = "gba-auction");
names!(Scope: Actor = "actor", Deployer = "deployer");
names!(Tier: Economy = "economy", Standard = "standard", Fast = "fast", Urgent = "urgent");

/// How urgent a timer is, for those who name no tip (CIP-1 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Below the median tip.
    Economy,
    /// The median tip.
    Standard,
    /// Above it.
    Fast,
    /// Far above it.
    Urgent,
}

/// What a tier makes of the median tip, per mille (CIP-1 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// [`Tier::Economy`].
    pub economy: u64,
    /// [`Tier::Standard`].
    pub standard: u64,
    /// [`Tier::Fast`].
    pub fast: u64,
    /// [`Tier::Urgent`].
    pub urgent: u64,
}
record!(Tiers { economy, standard, fast, urgent });

impl Tiers {
    /// The multiplier of a tier, per mille.
    pub const fn of(&self, tier: Tier) -> u64 {
        match tier {
            Tier::Economy => self.economy,
            Tier::Standard => self.standard,
            Tier::Fast => self.fast,
            Tier::Urgent => self.urgent,
        }
    }
}

/// Another policy from some block on (timers.md §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The policy.
    pub policy: Policy,
    /// The first block under it.
    pub height: Height,
}
record!(Activation { policy, height });

/// What a chain's genesis says of timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The policy of the first blocks.
    pub policy: Policy,
    /// The policy after it.
    pub activation: Option<Activation>,
    /// Blocks after the activation in which `bid` is still accepted and ignored.
    pub deprecation_blocks: u64,
    /// Whose fires count together.
    pub scope: Scope,
    /// Lane basefee of block 1.
    pub genesis_lane_basefee: Wei,
    /// The governed parameters' first values.
    pub config: Config,
}
record!(Params { policy, activation, deprecation_blocks, scope, genesis_lane_basefee, config });

impl Default for Params {
    fn default() -> Self {
        Self {
            policy: Policy::Eip1559,
            activation: None,
            deprecation_blocks: 1_000,
            scope: Scope::Actor,
            genesis_lane_basefee: Wei::new(meter::GENESIS_BASEFEE),
            config: Config::default(),
        }
    }
}

impl Params {
    /// The policy of the block at `height`.
    pub fn policy_at(&self, height: Height) -> Policy {
        match self.activation {
            Some(activation) if height >= activation.height => activation.policy,
            _ => self.policy,
        }
    }

    /// Whether scheduling with the withdrawn `bid` is still accepted at `height`, and ignored:
    /// under `fifo`, and for a while after it was replaced (timers.md §5, §7).
    pub fn takes_bid(&self, height: Height) -> bool {
        let legacy = self.policy == Policy::Fifo;
        legacy && self.activation.is_none_or(|a| height < a.height.after(self.deprecation_blocks))
    }
}

/// `TimerConfig`: what is governed (timers.md §1), and a share of fees. Read once per block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Blocks from scheduling to the last height at which a timer may fire.
    pub max_ttl_blocks: u64,
    /// Cycles that a timer may ask for.
    pub max_cycles_per_fire: u64,
    /// Cells that a timer may ask for.
    pub max_cells_per_fire: u64,
    /// Timers that an actor may have.
    pub max_timers_per_actor: u64,
    /// Cycles per block for removing timers.
    pub gc_cycles_per_block: u64,
    /// Cycles per block for firing timers.
    pub lane_timer_cycles: u64,
    /// Cells per block for firing timers.
    pub lane_timer_cells: u64,
    /// Cycles above which a timer is not attempted under `eip1559`.
    pub max_cycles_per_fire_auction_phase: u64,
    /// Blocks whose fires count for fairness.
    pub fairness_window_blocks: u64,
    /// Multipliers of the median tip.
    pub priority_tier_multipliers: Tiers,
    /// The least median tip that tiers are multiples of, in wei per cycle.
    pub priority_tier_floor: u64,
    /// What a transaction pays at least of the cycles that it bought, per mille.
    pub least_share_of_bought_cycles: u64,
}
record!(Config {
    max_ttl_blocks,
    max_cycles_per_fire,
    max_cells_per_fire,
    max_timers_per_actor,
    gc_cycles_per_block,
    lane_timer_cycles,
    lane_timer_cells,
    max_cycles_per_fire_auction_phase,
    fairness_window_blocks,
    priority_tier_multipliers,
    priority_tier_floor,
    least_share_of_bought_cycles,
});

impl Default for Config {
    fn default() -> Self {
        Self {
            max_ttl_blocks: 2_592_000,
            max_cycles_per_fire: 550_000,
            max_cells_per_fire: 550_000,
            max_timers_per_actor: 1_024,
            gc_cycles_per_block: 5_000_000,
            lane_timer_cycles: 2_000_000,
            lane_timer_cells: meter::MAX_BLOCK_CELLS,
            max_cycles_per_fire_auction_phase: 250_000,
            fairness_window_blocks: 1_000,
            priority_tier_multipliers: Tiers {
                economy: 800,
                standard: 1_000,
                fast: 1_500,
                urgent: 2_500,
            },
            priority_tier_floor: 100,
            least_share_of_bought_cycles: 125,
        }
    }
}

/// A governed parameter: its key, and the least and the most that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key, as `set_parameter` has it.
    pub name: &'static str,
    /// What it means and in which unit.
    pub about: &'static str,
    /// The least value.
    pub min: u64,
    /// The most.
    pub max: u64,
}

macro_rules! keys {
    ($($($field:ident).+: $name:literal, $min:literal..=$max:expr, $about:literal;)*) => {
        impl Config {
            /// The parameters that are governed, by key.
            pub const KEYS: &'static [Key] = &[$(Key {
                name: $name,
                about: $about,
                min: $min,
                max: $max,
            }),*];

            /// The value under a key.
            pub fn get(&self, key: &str) -> Option<u64> {
                match key {
                    $($name => Some(self.$($field).+),)*
                    _ => None,
                }
            }

            /// Gives a key another value, within its bounds.
            pub fn set(&mut self, key: &str, value: u64) -> Result<(), ParameterError> {
                let unknown = || ParameterError::UnknownParameter(key.to_owned());
                let known = Self::KEYS.iter().find(|known| known.name == key);
                let &Key { name, min, max, .. } = known.ok_or_else(unknown)?;
                if !(min..=max).contains(&value) {
                    return Err(ParameterError::ParameterOutOfRange { name, value, min, max });
                }
                match key {
                    $($name => self.$($field).+ = value,)*
                    _ => return Err(unknown()),
                }
                Ok(())
            }
        }
    };
}

/// Blocks of a year at a block a second: no window or lifetime is longer.
const YEAR_BLOCKS: u64 = 31_536_000;
/// No lane or budget has more cycles than this.
const MOST_CYCLES: u64 = 1_000_000_000;

keys! {
    fairness_window_blocks: "system:cip1:fairness_window_blocks", 1..=100_000,
        "blocks whose fires count for the fairness weight";
    max_cycles_per_fire_auction_phase: "system:cip1:max_cycles_per_fire_auction_phase",
        1..=MOST_CYCLES, "cycles above which a timer is not attempted under eip1559";
    priority_tier_floor: "system:cip1:priority_tier_floor", 1..=1_000_000_000_000,
        "the least median tip that tiers are multiples of, wei per cycle";
    priority_tier_multipliers.economy: "system:cip1:priority_tier_multipliers.economy", 0..=1_000_000,
        "what tier economy makes of the median tip, per mille";
    priority_tier_multipliers.fast: "system:cip1:priority_tier_multipliers.fast", 0..=1_000_000,
        "what tier fast makes of the median tip, per mille";
    priority_tier_multipliers.standard: "system:cip1:priority_tier_multipliers.standard",
        0..=1_000_000, "what tier standard makes of the median tip, per mille";
    priority_tier_multipliers.urgent: "system:cip1:priority_tier_multipliers.urgent", 0..=1_000_000,
        "what tier urgent makes of the median tip, per mille";
    gc_cycles_per_block: "system:cip5:gc_cycles_per_block", 0..=MOST_CYCLES,
        "cycles per block for removing timers, 200 each";
    lane_timer_cells: "system:cip5:lane_timer_cells", 64..=meter::MAX_BLOCK_CELLS,
        "cells per block for firing timers";
    lane_timer_cycles: "system:cip5:lane_timer_cycles", 1..=MOST_CYCLES,
        "cycles per block for firing timers";
    max_cells_per_fire: "system:cip5:max_cells_per_fire", 0..=meter::MAX_BLOCK_CELLS,
        "cells that a timer may ask for";
    max_cycles_per_fire: "system:cip5:max_cycles_per_fire", 1..=MOST_CYCLES,
        "cycles that a timer may ask for";
    max_timers_per_actor: "system:cip5:max_timers_per_actor", 0..=1_000_000,
        "timers that an actor may have";
    max_ttl_blocks: "system:cip5:max_ttl_blocks", 1..=YEAR_BLOCKS,
        "blocks from scheduling to the last height at which a timer may fire";
    least_share_of_bought_cycles: "system:fees:least_share_of_bought_cycles", 0..=1_000,
        "what a call or deployment pays at least of the cycles that it bought, per mille";
}

impl Config {
    /// Cells that a fire gets at most: a multiple of [`Due::CELLS`].
    pub const fn cell_cap(&self) -> u64 {
        let most = match self.max_cells_per_fire < self.lane_timer_cells {
            true => self.max_cells_per_fire,
            false => self.lane_timer_cells,
        };
        most - most % Due::CELLS
    }

    /// Cycles that a fire gets at most under `policy`.
    pub const fn cycle_cap(&self, policy: Policy) -> u64 {
        match policy {
            Policy::Eip1559 => self.max_cycles_per_fire_auction_phase,
            Policy::Fifo | Policy::GbaAuction => self.max_cycles_per_fire,
        }
    }

    /// Whether a timer that fits `before` may not fit this.
    pub fn is_tighter_than(&self, before: &Self) -> bool {
        self.cell_cap() < before.cell_cap()
            || self.lane_timer_cycles < before.lane_timer_cycles
            || Policy::ALL.iter().any(|policy| self.cycle_cap(*policy) < before.cycle_cap(*policy))
    }

    /// The first parameter that is out of its bounds.
    pub fn check(&self) -> Result<(), ParameterError> {
        Self::KEYS.iter().try_for_each(|key| {
            let value = self.get(key.name).expect("a known key has a value");
            self.clone_with(key.name, value).map(drop)
        })
    }

    fn clone_with(mut self, key: &str, value: u64) -> Result<Self, ParameterError> {
        self.set(key, value)?;
        Ok(self)
    }
}

/// Why a parameter does not change. The variant's name opens the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// Nothing has this name.
    #[error("UnknownParameter: no parameter {0}")]
    UnknownParameter(String),
    /// A value that makes no sense.
    #[error("ParameterOutOfRange: {name} is from {min} to {max}, not {value}")]
    ParameterOutOfRange {
        /// Which.
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_reads_what_was_set() {
        let mut config = Config::default();
        config.check().unwrap();
        for (index, key) in Config::KEYS.iter().enumerate() {
            let value = key.min + index as u64;
            config.set(key.name, value).unwrap();
            assert_eq!(config.get(key.name), Some(value), "{}", key.name);
            let out = ParameterError::ParameterOutOfRange {
                name: key.name,
                value: key.max + 1,
                min: key.min,
                max: key.max,
            };
            assert_eq!(config.set(key.name, key.max + 1), Err(out));
        }
        assert!(Config::KEYS.is_sorted_by_key(|key| key.name), "they are listed in this order");
        let unknown = ParameterError::UnknownParameter("system:cip1:no".into());
        assert_eq!(config.set("system:cip1:no", 1), Err(unknown));
    }

    #[test]
    fn a_policy_holds_from_its_block_on_and_bids_die_out() {
        let activation = Activation { policy: Policy::Eip1559, height: Height::new(10) };
        let params = Params {
            policy: Policy::Fifo,
            activation: Some(activation),
            deprecation_blocks: 5,
            ..Params::default()
        };
        let check = |height: u64, policy, bid| {
            let height = Height::new(height);
            assert_eq!((params.policy_at(height), params.takes_bid(height)), (policy, bid));
        };
        check(9, Policy::Fifo, true);
        check(10, Policy::Eip1559, true);
        check(14, Policy::Eip1559, true);
        check(15, Policy::Eip1559, false);
        assert!(!Params::default().takes_bid(Height::new(1)));
    }
}
