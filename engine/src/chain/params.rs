//! Parameters of a chain, fixed at genesis.

use crate::{actor, presence::ThresholdRule, primitives::Wei, record};

/// P(H) older than this many blocks is not used (connectivity.md §3, CIP-11 §6.3).
pub const PRESENCE_TIMEOUT_BLOCKS: u64 = 3;
/// Blocks between regular advances of the subset epoch (connectivity.md §1).
pub const SUBSET_EPOCH_BLOCKS: u64 = 8_192;

/// Parameters of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// How many votes make a runner present.
    pub threshold_rule: ThresholdRule,
    /// Cycle and cell basefee of block 1.
    pub genesis_basefee: Wei,
    /// What actors' work costs, and how far it goes.
    pub actors: actor::Params,
}
record!(Params { threshold_rule, genesis_basefee, actors });
