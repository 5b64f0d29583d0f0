//! The trusted starting point of a verification.

use super::{names::Names, report::TrustedGenesis};
use crate::{topology::Plan, types::ChainId};
use cowboy_engine::{
    chain::{Genesis, GenesisError},
    primitives::Address,
};
use std::collections::BTreeMap;

/// A trusted genesis document, and the names of its topology.
#[derive(Debug)]
pub struct Root {
    pub(super) genesis: Genesis,
    pub(super) names: Names,
    pub(super) trusted: TrustedGenesis,
}

impl Root {
    /// The genesis of `plan`'s chain. `source` names the origin of the plan.
    pub fn of_plan(genesis: Genesis, plan: &Plan, source: String) -> Result<Self, GenesisError> {
        let accounts = plan.accounts.iter().map(|account| &account.name);
        let validators = plan.validators.iter().map(|validator| &validator.name);
        let runners = plan.runners.iter().map(|runner| &runner.name);
        let names = accounts.chain(validators).chain(runners);
        let names = names.map(|name| (name.to_string(), plan.key(name).address())).collect();
        Self::new(genesis, names, source)
    }

    pub fn new(
        genesis: Genesis,
        names: BTreeMap<String, Address>,
        source: String,
    ) -> Result<Self, GenesisError> {
        let trusted = TrustedGenesis {
            source,
            chain_id: ChainId(genesis.chain_id()).into(),
            genesis: genesis.block()?.hash().into(),
        };
        Ok(Self { genesis, names: Names::of(names), trusted })
    }

    pub const fn genesis(&self) -> &Genesis {
        &self.genesis
    }
}
