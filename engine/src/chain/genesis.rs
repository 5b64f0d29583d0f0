//! The document a chain starts from.

use super::{
    block::Block,
    params::{MIN_EPOCH_BLOCKS, Params},
    state::State,
};
use crate::{
    primitives::{Address, PublicKey, Wei, codec::to_vec, keccak256},
    record,
    registry::{Capabilities, RegistryError},
    timer::ParameterError,
};

/// A validator's two identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator {
    /// Its secp256k1 key: address, signatures towards runners, order of the set.
    pub pubkey: PublicKey,
    /// Its ed25519 key: votes, p2p.
    pub consensus_key: [u8; 32],
}
record!(Validator { pubkey, consensus_key });

/// A runner registered from the start; its stake is money beside the balances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenesisRunner {
    /// Its key.
    pub pubkey: PublicKey,
    /// What it has locked.
    pub stake: Wei,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Its rate card.
    pub price_per_second: Wei,
}
record!(GenesisRunner { pubkey, stake, capabilities, price_per_second });

/// What an account starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endowment {
    /// The account.
    pub account: Address,
    /// Its balance.
    pub balance: Wei,
}
record!(Endowment { account, balance });

/// What a chain starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// The chain's name; two chains that differ in nothing else have different ids.
    pub name: String,
    /// Timestamp of block 0, Unix ms.
    pub timestamp_ms: u64,
    /// Parameters.
    pub params: Params,
    /// The validators, in any order.
    pub validators: Vec<Validator>,
    /// Runners in order of registration.
    pub runners: Vec<GenesisRunner>,
    /// Balances, an account at most once.
    pub endowments: Vec<Endowment>,
}
record!(Genesis { name, timestamp_ms, params, validators, runners, endowments });

/// Why a document starts no chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// Nobody to decide anything.
    #[error("a chain needs a validator")]
    NoValidators,
    /// Epochs too short to change anything between them.
    #[error("an epoch of {0} blocks: it has {MIN_EPOCH_BLOCKS} at least")]
    EpochBlocks(u64),
    /// A key or account stands in it twice.
    #[error("{0} stands in the genesis document twice")]
    Repeated(Address),
    /// Timers could not be governed so.
    #[error("timers: {0}")]
    Timers(Box<ParameterError>),
    /// Connections could not be governed so.
    #[error("connectivity: {0}")]
    Connectivity(Box<ParameterError>),
    /// Bonds could not be governed so.
    #[error("tasks: {0}")]
    Tasks(Box<ParameterError>),
    /// A runner that could not register.
    #[error("runner {runner}: {error}")]
    Runner {
        /// Who.
        runner: Address,
        /// Why.
        error: RegistryError,
    },
    /// More money than can be counted.
    #[error("balances and stakes add up to more than 2^128 wei")]
    Supply,
}

impl Genesis {
    /// The first 8 bytes of keccak256 of the document.
    pub fn chain_id(&self) -> u64 {
        let digest = keccak256(&[b"cowboy-genesis/v1", &to_vec(self)]);
        let (first, _) = digest.0.split_first_chunk().expect("a digest has 32 bytes");
        u64::from_be_bytes(*first)
    }

    /// The state before block 1.
    pub fn state(&self) -> Result<State, GenesisError> {
        State::genesis(self)
    }

    /// Block 0, which everybody has and nobody votes on.
    pub fn block(&self) -> Result<Block, GenesisError> {
        let header = self.state()?.head().clone();
        Ok(Block { header, certificates: Vec::new(), transactions: Vec::new() })
    }
}
