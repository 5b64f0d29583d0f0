//! The genesis document of a chain.

use super::{
    committee::GenesisValidator,
    params::{MIN_EPOCH_BLOCKS, Params},
};
use crate::{
    primitives::{Address, PublicKey, Wei, codec::to_vec, keccak256},
    record,
    registry::{Capabilities, RegistryError},
    timer::ParameterError,
};

/// A runner registered at genesis. Its stake is not part of the balances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenesisRunner {
    pub pubkey: PublicKey,
    pub stake: Wei,
    pub capabilities: Capabilities,
    pub price_per_second: Wei,
}
record!(GenesisRunner { pubkey, stake, capabilities, price_per_second });

/// The initial balance of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endowment {
    pub account: Address,
    pub balance: Wei,
}
record!(Endowment { account, balance });

/// The initial parameters, validators, runners and balances of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// Distinguishes chains: two that differ only in name have different ids.
    pub name: String,
    /// Timestamp of block 0, in Unix ms.
    pub timestamp_ms: u64,
    pub params: Params,
    /// In any order.
    pub validators: Vec<GenesisValidator>,
    /// In order of registration.
    pub runners: Vec<GenesisRunner>,
    /// Each account at most once.
    pub endowments: Vec<Endowment>,
}
record!(Genesis { name, timestamp_ms, params, validators, runners, endowments });

/// Why a document is not a valid genesis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    #[error("a chain needs a validator")]
    NoValidators,
    /// The epochs are too short for a committee change between them.
    #[error("an epoch of {0} blocks: the minimum is {MIN_EPOCH_BLOCKS}")]
    EpochBlocks(u64),
    #[error("{0} appears twice in the genesis document")]
    Repeated(Address),
    #[error("timers: {0}")]
    Timers(Box<ParameterError>),
    #[error("connectivity: {0}")]
    Connectivity(Box<ParameterError>),
    #[error("tasks: {0}")]
    Tasks(Box<ParameterError>),
    #[error("runner {runner}: {error}")]
    Runner { runner: Address, error: RegistryError },
    #[error("balances and stakes add up to more than 2^128 wei")]
    Supply,
}

impl Genesis {
    /// The chain id: the first 8 bytes of the document's keccak256.
    pub fn chain_id(&self) -> u64 {
        let digest = keccak256(&[b"cowboy-genesis/v1", &to_vec(self)]);
        let (first, _) = digest.0.split_first_chunk().expect("a digest has 32 bytes");
        u64::from_be_bytes(*first)
    }
}
