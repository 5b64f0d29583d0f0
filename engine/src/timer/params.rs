//! Policies and limits, and their values in a chain's genesis.

use super::{Due, auction::Weighting};
use crate::{
    fees::{basefee::LaneCurve, meter},
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
    /// In the order of scheduling (CIP-5).
    Fifo,
    /// Bids of gas bidding agents, before the transactions (the original CIP-1).
    GbaAuction,
}

/// The fires that the fairness weight counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FairnessScope {
    #[default]
    Actor,
    Deployer,
}

names!(Policy: Eip1559 = "eip1559", Fifo = "fifo", GbaAuction = "gba-auction");
names!(FairnessScope: Actor = "actor", Deployer = "deployer");
names!(Tier: Economy = "economy", Standard = "standard", Fast = "fast", Urgent = "urgent");

/// The urgency of a timer whose scheduler names no tip (CIP-1 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Below the median tip.
    Economy,
    Standard,
    Fast,
    /// Far above it.
    Urgent,
}

/// The factors on the median tip for the tiers, per mille (CIP-1 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiers {
    pub economy: u64,
    pub standard: u64,
    pub fast: u64,
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

/// A change of policy at some block (timers.md §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    pub policy: Policy,
    /// The first block under it.
    pub height: Height,
}
record!(Activation { policy, height });

record! {
    /// A chain's genesis parameters for timers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Params {
        /// The policy of the first blocks.
        pub policy: Policy = Policy::Eip1559,
        pub activation: Option<Activation> = None,
        /// Blocks after the activation in which `bid` is still accepted but ignored.
        pub deprecation_blocks: u64 = 1_000,
        pub scope: FairnessScope = FairnessScope::Actor,
        /// Lane basefee of block 1, in wei per cycle.
        pub genesis_lane_basefee: Wei = Wei::new(meter::GENESIS_BASEFEE),
        pub config: TimerConfig = TimerConfig::default(),
    }
}

record! {
    /// `TimerConfig`: the governed parameters (timers.md §1), and a share of fees. Read once per
    /// block.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TimerConfig {
        /// Maximum blocks from scheduling to the last height at which a timer may fire.
        pub max_ttl_blocks: u64 = 2_592_000,
        pub max_cycles_per_fire: u64 = 550_000,
        pub max_cells_per_fire: u64 = 550_000,
        pub max_timers_per_actor: u64 = 1_024,
        pub gc_cycles_per_block: u64 = 5_000_000,
        /// Cycles per block for firing timers.
        pub lane_timer_cycles: u64 = 2_000_000,
        /// Cells per block for firing timers.
        pub lane_timer_cells: u64 = meter::MAX_BLOCK_CELLS,
        /// Cycles above which a timer is not attempted under `eip1559`.
        pub max_cycles_per_fire_auction_phase: u64 = 250_000,
        pub fairness_window_blocks: u64 = 1_000,
        pub priority_tier_multipliers: Tiers = Tiers {
            economy: 800,
            standard: 1_000,
            fast: 1_500,
            urgent: 2_500,
        },
        /// The minimum median tip from which tiers are computed, in wei per cycle.
        pub priority_tier_floor: u64 = 100,
        /// The minimum share of its bought cycles that a transaction pays, per mille.
        pub least_share_of_bought_cycles: u64 = 125,
        /// The cost of a cycle of the lane as a share of the lane basefee, per mille (CIP-1 §5).
        pub lane_fee_multiplier: u64 = 1_000,
        pub lane_basefee: LaneCurve = LaneCurve::default(),
        pub weights: Weighting = Weighting::default(),
    }
}

impl TimerConfig {
    /// Maximum cells of a fire: a multiple of [`Due::CELLS`].
    pub const fn cell_cap(&self) -> u64 {
        let most = match self.max_cells_per_fire < self.lane_timer_cells {
            true => self.max_cells_per_fire,
            false => self.lane_timer_cells,
        };
        most - most % Due::CELLS
    }

    pub const fn cycle_cap(&self, policy: Policy) -> u64 {
        match policy {
            Policy::Eip1559 => self.max_cycles_per_fire_auction_phase,
            Policy::Fifo | Policy::GbaAuction => self.max_cycles_per_fire,
        }
    }

    /// Whether a timer that fits `before` may not fit these values.
    pub fn is_tighter_than(&self, before: &Self) -> bool {
        self.cell_cap() < before.cell_cap()
            || self.lane_timer_cycles < before.lane_timer_cycles
            || Policy::ALL.iter().any(|policy| self.cycle_cap(*policy) < before.cycle_cap(*policy))
    }
}
