//! Genesis parameters of a chain. Governance may change some of them later.

use super::tasks;
use crate::{
    actor,
    fees::meter::GENESIS_BASEFEE,
    job::SeedRule,
    presence::{Connectivity, Phase, ThresholdRule},
    primitives::{
        Address, Hash, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record, timer,
};

/// Default number of blocks in a consensus epoch, the longest a new validator waits. Consensus
/// opens new files at each end of an epoch, which slows unpaced chains.
pub const EPOCH_BLOCKS: u64 = 256;
/// The minimum: a certificate for a block may arrive this many blocks later, with the votes of the
/// block's own epoch.
pub const MIN_EPOCH_BLOCKS: u64 = 8;

record! {
    /// What a chain's actors in Python run on, and what their work costs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PythonTerms {
        /// [`Pvm::tuple`](crate::pvm::Pvm::tuple) of every node's machine.
        pub tuple: Hash,
        /// Fuel that a cycle buys.
        pub fuel_per_cycle: u64,
        /// Cycles of a fresh instance, paid by each call.
        pub instance: u64,
    }
}

/// The dearest kinds of work take 0.29 ns per fuel and 28 ns per cycle (docs/performance.md), so
/// that fuel costs half of what cycles of Starlark do.
pub const FUEL_PER_CYCLE: u64 = 200;
/// A fresh instance and the thread for it take 1 to 2 ms of the processor, as long as the dearest
/// 35,000 to 70,000 cycles.
pub const INSTANCE_CYCLES: u64 = 40_000;

impl PythonTerms {
    pub const fn on(tuple: Hash) -> Self {
        Self { tuple, fuel_per_cycle: FUEL_PER_CYCLE, instance: INSTANCE_CYCLES }
    }
}

/// Whether system deployers have [powers](super::transaction::Payload::ActAs) that chains with
/// money of worth do not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Powers {
    #[default]
    Allowed,
    Refused,
}

/// Left out of a record while they are allowed.
impl Encode for Powers {
    fn encode(&self, w: &mut Writer) {
        w.text("refused");
    }

    fn is_absent(&self) -> bool {
        *self == Self::Allowed
    }
}

impl Decode for Powers {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.text(16)? {
            "refused" => Ok(Self::Refused),
            _ => Err(DecodeError::Invalid("powers are refused, or left out")),
        }
    }

    fn absent(_: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::Allowed)
    }
}

record! {
    /// Parameters of a chain.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Params {
        /// Number of votes that make a runner present.
        pub threshold_rule: ThresholdRule = ThresholdRule::Committee,
        pub selection_seed: SeedRule = SeedRule::Parent,
        /// The migration phase of block 1.
        pub phase: Phase = Phase::HotPath,
        /// Initial values of the governed connectivity parameters.
        pub connectivity: Connectivity = Connectivity::DEFAULT,
        /// Cycle and cell basefee of block 1.
        pub genesis_basefee: Wei = Wei::new(GENESIS_BASEFEE),
        pub actors: actor::ActorParams = actor::ActorParams::default(),
        /// The machine of actors in Python; absent: the chain has none.
        pub python: Option<PythonTerms> = None,
        pub timers: timer::Params = timer::Params::default(),
        /// How tasks are proved, and the initial values of the governed bond parameters.
        pub tasks: tasks::TaskParams = tasks::TaskParams::default(),
        /// Blocks in a consensus epoch; committees change only at its end.
        pub epoch_blocks: u64 = EPOCH_BLOCKS,
        /// Accounts that may send system instructions and govern parameters, ascending.
        pub system_deployers: Vec<Address> = Vec::new(),
        /// Whether they may also change balances, code and stores, act as other accounts, and mark
        /// the state and return to it.
        pub powers: Powers = Powers::Allowed,
    }
}
