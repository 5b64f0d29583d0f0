//! Parameters of a chain as its genesis has them; some are governed from then on.

use super::tasks;
use crate::{
    actor,
    fees::meter::GENESIS_BASEFEE,
    job::SeedRule,
    presence::{Connectivity, Phase, ThresholdRule},
    primitives::{Address, Wei},
    record, timer,
};

/// Blocks in a consensus epoch, unless a chain says otherwise: how long a new validator waits, at
/// most. Each end of an epoch has consensus open new files, which chains without pace notice.
pub const EPOCH_BLOCKS: u64 = 256;
/// The least of them: a certificate for a block may come this many blocks later, by the votes of
/// its own epoch.
pub const MIN_EPOCH_BLOCKS: u64 = 8;

/// Parameters of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// How many votes make a runner present.
    pub threshold_rule: ThresholdRule,
    /// What the seeds of draws are made of.
    pub selection_seed: SeedRule,
    /// The phase that block 1 is in.
    pub phase: Phase,
    /// The first values of what is governed of runners' connections.
    pub connectivity: Connectivity,
    /// Cycle and cell basefee of block 1.
    pub genesis_basefee: Wei,
    /// What actors' work costs, and how far it goes.
    pub actors: actor::Params,
    /// How timers compete, and within which limits.
    pub timers: timer::Params,
    /// How tasks are proved.
    pub tasks: tasks::Params,
    /// Blocks in a consensus epoch: committees change at its ends only.
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

/// The committee's threshold, seeds of the parent's hash, the hot path, the basefees and limits
/// that the specs start from, and nobody who governs.
impl Default for Params {
    fn default() -> Self {
        Self {
            threshold_rule: ThresholdRule::Committee,
            selection_seed: SeedRule::Parent,
            phase: Phase::HotPath,
            connectivity: Connectivity::DEFAULT,
            genesis_basefee: Wei::new(GENESIS_BASEFEE),
            actors: actor::Params::default(),
            timers: timer::Params::default(),
            tasks: tasks::Params::default(),
            epoch_blocks: EPOCH_BLOCKS,
            system_deployers: Vec::new(),
        }
    }
}
