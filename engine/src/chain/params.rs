//! Genesis parameters of a chain. Governance may change some of them later.

use super::tasks;
use crate::{
    actor,
    fees::meter::GENESIS_BASEFEE,
    job::SeedRule,
    presence::{Connectivity, Phase, ThresholdRule},
    primitives::{Address, Wei},
    record, timer,
};

/// Default number of blocks in a consensus epoch, the longest a new validator waits. Consensus
/// opens new files at each end of an epoch, which slows unpaced chains.
pub const EPOCH_BLOCKS: u64 = 256;
/// The minimum: a certificate for a block may arrive this many blocks later, with the votes of the
/// block's own epoch.
pub const MIN_EPOCH_BLOCKS: u64 = 8;

/// Parameters of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Number of votes that make a runner present.
    pub threshold_rule: ThresholdRule,
    pub selection_seed: SeedRule,
    /// The migration phase of block 1.
    pub phase: Phase,
    /// Initial values of the governed connectivity parameters.
    pub connectivity: Connectivity,
    /// Cycle and cell basefee of block 1.
    pub genesis_basefee: Wei,
    pub actors: actor::ActorParams,
    pub timers: timer::Params,
    /// How tasks are proved, and the initial values of the governed bond parameters.
    pub tasks: tasks::TaskParams,
    /// Blocks in a consensus epoch; committees change only at its end.
    pub epoch_blocks: u64,
    /// Accounts that may send system instructions and govern parameters, ascending.
    pub system_deployers: Vec<Address>,
}
record!(Params {
    threshold_rule,
    selection_seed,
    phase,
    connectivity,
    genesis_basefee,
    actors,
    timers,
    tasks,
    epoch_blocks,
    system_deployers,
});

/// The committee's threshold, seeds from the parent's hash, the hot path, the specs' initial
/// basefees and limits, and no system deployers.
impl Default for Params {
    fn default() -> Self {
        Self {
            threshold_rule: ThresholdRule::Committee,
            selection_seed: SeedRule::Parent,
            phase: Phase::HotPath,
            connectivity: Connectivity::DEFAULT,
            genesis_basefee: Wei::new(GENESIS_BASEFEE),
            actors: actor::ActorParams::default(),
            timers: timer::Params::default(),
            tasks: tasks::TaskParams::default(),
            epoch_blocks: EPOCH_BLOCKS,
            system_deployers: Vec::new(),
        }
    }
}
