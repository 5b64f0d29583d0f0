//! `timers`: how timers compete for the lane, and initial values of governed parameters.
//!
//! The bounds are those of [`timer::Governed::KEYS`], which also apply to all later values.

use super::{Amount, value::within};
use crate::types::same;
use cowboy_engine::{
    fees::{basefee, meter},
    primitives::Height,
    timer::{self, ParameterError, Tiers, TimerConfig, governed::YEAR_BLOCKS},
};
use cowboy_host::within::Within;
use serde::{Deserialize, Serialize};

/// The maximum of a governed limit in cycles.
const MOST: u64 = 1_000_000_000;
/// The maximum of a governed limit in cells.
const MOST_CELLS: u64 = meter::MAX_BLOCK_CELLS;
/// The maximum lane basefee, in wei per cycle.
const MOST_WEI: u64 = basefee::MOST_LANE_BASEFEE;
/// A height that no devnet reaches; the highest that a timer can name.
const LAST: u64 = (u32::MAX - 1) as u64;

/// `timers`: how timers compete for the lane, and initial values of governed parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `timers`")]
pub struct TimersSection {
    /// How due timers compete.
    pub policy: Policy,
    /// A switch to another policy at a given block.
    pub activation: Option<ActivationSection>,
    /// Blocks after the activation in which `bid` is still accepted and ignored.
    pub deprecation_blocks: Within<0, YEAR_BLOCKS>,
    /// Timers of actors that fired less are favoured.
    pub fairness: FairnessSection,
    /// The lane basefee of block 1, in wei per cycle.
    pub genesis_lane_basefee: Amount,
    /// Blocks from scheduling to the last height at which a timer may fire.
    pub max_ttl_blocks: Within<1, YEAR_BLOCKS>,
    /// Cycles that a timer may ask for.
    pub max_cycles_per_fire: Within<1, MOST>,
    /// Cells that a timer may ask for.
    pub max_cells_per_fire: Within<0, MOST_CELLS>,
    /// Timers that an actor may have.
    pub max_timers_per_actor: Within<0, 1_000_000>,
    /// Cycles per block for removing timers.
    pub gc_cycles_per_block: Within<0, MOST>,
    /// Cycles per block for firing timers.
    pub lane_timer_cycles: Within<1, MOST>,
    /// Cells per block for firing timers.
    pub lane_timer_cells: Within<64, MOST_CELLS>,
    /// Cycles above which a timer is not attempted under `eip1559`.
    pub max_cycles_per_fire_auction_phase: Within<1, MOST>,
    /// Each tier's multiple of the median tip.
    pub priority_tier_multipliers: TiersSection,
    /// Lower bound of the median tip that tiers multiply, in wei per cycle.
    pub priority_tier_floor: Within<1, 1_000_000_000_000>,
    /// The minimum share of its bought cycles that a call or deployment pays for, per mille.
    pub least_share_of_bought_cycles: Within<0, 1_000>,
    /// The price of a lane cycle, per mille of the lane basefee.
    pub lane_fee_multiplier: Within<0, 10_000>,
    /// A block moves the lane basefee by at most 1/this.
    pub lane_basefee_change_denominator: Within<2, 1_000_000>,
    /// The minimum lane basefee, in wei per cycle.
    pub lane_basefee_min: Within<1, MOST_WEI>,
    /// The maximum lane basefee, in wei per cycle.
    pub lane_basefee_max: Within<1, MOST_WEI>,
    /// How much an epoch's score moves a weight under `gba-auction`, in millionths.
    pub weight_lambda: Within<0, 1_000_000>,
    /// The minimum weight under `gba-auction`, in millionths.
    pub weight_min: Within<1, 1_000_000>,
    /// The maximum weight under `gba-auction`, in millionths.
    pub weight_max: Within<1_000_000, 10_000_000>,
    /// The minimum weight of an actor whose timers waited too long, in millionths.
    pub weight_starvation_floor: Within<1, 10_000_000>,
}

/// How due timers compete; the YAML form of [`timer::Policy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Basefee and priority tip, weighted by fairness.
    #[default]
    Eip1559,
    /// In the order in which they were scheduled.
    Fifo,
    /// Bids of gas bidding agents, before the transactions.
    GbaAuction,
}

/// `timers.activation`: a switch to another policy at a given block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the fields of `timers.activation`")]
pub struct ActivationSection {
    /// The policy.
    pub policy: Policy,
    /// The first block under the new policy.
    pub height: Within<1, LAST>,
}

/// `timers.fairness`: timers of actors that fired less are favoured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `timers.fairness`")]
pub struct FairnessSection {
    /// The fires that are counted together.
    pub scope: Scope,
    /// The number of blocks over which fires are counted.
    pub window_blocks: Within<1, 100_000>,
}

/// The fires that are counted together; the YAML form of [`timer::FairnessScope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Those of each actor.
    #[default]
    Actor,
    /// Those of all actors of a deployer.
    Deployer,
}

/// `timers.priority_tier_multipliers`: each tier's multiple of the median tip, per mille.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "the fields of `timers.priority_tier_multipliers`"
)]
pub struct TiersSection {
    /// Below the median tip.
    pub economy: Within<0, 1_000_000>,
    /// The median tip.
    pub standard: Within<0, 1_000_000>,
    /// Above it.
    pub fast: Within<0, 1_000_000>,
    /// Far above it.
    pub urgent: Within<0, 1_000_000>,
}

impl Default for TimersSection {
    fn default() -> Self {
        Self::of(&timer::Params::default())
    }
}

impl Default for FairnessSection {
    fn default() -> Self {
        TimersSection::default().fairness
    }
}

impl Default for TiersSection {
    fn default() -> Self {
        TimersSection::default().priority_tier_multipliers
    }
}

same!(Policy = timer::Policy: Eip1559, Fifo, GbaAuction);
same!(Scope = timer::FairnessScope: Actor, Deployer);

/// The numbers: each field of the section, and its place in [`TimerConfig`].
macro_rules! in_config {
    ($($field:ident = $($place:ident).+;)*) => {
        impl TimersSection {
            /// The section for a genesis' parameters. Its values lie in the ranges of the file.
            pub fn of(params: &timer::Params) -> Self {
                let config = &params.config;
                let tiers = &config.priority_tier_multipliers;
                Self {
                    policy: params.policy.into(),
                    activation: params.activation.map(|activation| ActivationSection {
                        policy: activation.policy.into(),
                        height: within(activation.height.get()),
                    }),
                    deprecation_blocks: within(params.deprecation_blocks),
                    fairness: FairnessSection {
                        scope: params.scope.into(),
                        window_blocks: within(config.fairness_window_blocks),
                    },
                    genesis_lane_basefee: Amount(params.genesis_lane_basefee),
                    priority_tier_multipliers: TiersSection {
                        economy: within(tiers.economy),
                        standard: within(tiers.standard),
                        fast: within(tiers.fast),
                        urgent: within(tiers.urgent),
                    },
                    $($field: within(config.$($place).+),)*
                }
            }

            /// The parameters for the genesis.
            pub fn params(&self) -> timer::Params {
                let tiers = &self.priority_tier_multipliers;
                let mut config = TimerConfig {
                    fairness_window_blocks: self.fairness.window_blocks.get(),
                    priority_tier_multipliers: Tiers {
                        economy: tiers.economy.get(),
                        standard: tiers.standard.get(),
                        fast: tiers.fast.get(),
                        urgent: tiers.urgent.get(),
                    },
                    ..TimerConfig::default()
                };
                $(config.$($place).+ = self.$field.get();)*
                timer::Params {
                    policy: self.policy.into(),
                    activation: self.activation.map(|activation| timer::Activation {
                        policy: activation.policy.into(),
                        height: Height::new(activation.height.get()),
                    }),
                    deprecation_blocks: self.deprecation_blocks.get(),
                    scope: self.fairness.scope.into(),
                    genesis_lane_basefee: self.genesis_lane_basefee.0,
                    config,
                }
            }
        }
    };
}

in_config! {
    max_ttl_blocks = max_ttl_blocks;
    max_cycles_per_fire = max_cycles_per_fire;
    max_cells_per_fire = max_cells_per_fire;
    max_timers_per_actor = max_timers_per_actor;
    gc_cycles_per_block = gc_cycles_per_block;
    lane_timer_cycles = lane_timer_cycles;
    lane_timer_cells = lane_timer_cells;
    max_cycles_per_fire_auction_phase = max_cycles_per_fire_auction_phase;
    priority_tier_floor = priority_tier_floor;
    least_share_of_bought_cycles = least_share_of_bought_cycles;
    lane_fee_multiplier = lane_fee_multiplier;
    lane_basefee_change_denominator = lane_basefee.change_denominator;
    lane_basefee_min = lane_basefee.min;
    lane_basefee_max = lane_basefee.max;
    weight_lambda = weights.lambda;
    weight_min = weights.min;
    weight_max = weights.max;
    weight_starvation_floor = weights.starvation_floor;
}

impl TimersSection {
    /// Fails with the path of a field that contradicts another one, and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static [&'static str], String)> {
        if self.activation.is_some_and(|activation| activation.policy == self.policy) {
            let policy = timer::Policy::from(self.policy).name();
            let message = format!(
                "`{policy}` is the policy from the start; expected another one, or no activation"
            );
            return Err((&["timers", "activation", "policy"], message));
        }
        self.params().check().map_err(|error| match error {
            ParameterError::GenesisLaneBasefee { basefee, min, max } => {
                let message = format!(
                    "{basefee} wei per cycle is not a lane basefee: expected {min} to {max} wei"
                );
                (&["timers", "genesis_lane_basefee"][..], message)
            }
            error => (&["timers"][..], error.to_string()),
        })
    }
}
