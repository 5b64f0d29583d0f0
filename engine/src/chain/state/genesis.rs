//! The state and the block that follow from a genesis document.

use super::{Account, Burned, OrderSince, Outbox, State, marks::Marks};
use crate::{
    chain::{
        Block, Genesis, GenesisError, block::Header, committee::Validators,
        params::MIN_EPOCH_BLOCKS, tasks::Tasks, timers::Timers,
    },
    presence::Migration,
    primitives::{Hash, Height, Wei, merkle::Map},
    registry::{Entitlements, Registry},
};
use std::sync::Arc;

impl Genesis {
    /// The state before block 1.
    pub fn state(&self) -> Result<State, GenesisError> {
        let mut validators = self.validators.clone();
        validators.sort_by_key(|v| v.pubkey.address());
        if validators.is_empty() {
            return Err(GenesisError::NoValidators);
        }
        if self.params.epoch_blocks < MIN_EPOCH_BLOCKS {
            return Err(GenesisError::EpochBlocks(self.params.epoch_blocks));
        }
        let timers = self.params.timers.check();
        timers.map_err(|error| GenesisError::Timers(Box::new(error)))?;
        let connectivity = self.params.connectivity;
        let checked = connectivity.check();
        checked.map_err(|error| GenesisError::Connectivity(Box::new(error)))?;
        let bonds = self.params.tasks.bonds;
        bonds.check().map_err(|error| GenesisError::Tasks(Box::new(error)))?;
        for pair in validators.windows(2) {
            if pair[0].pubkey == pair[1].pubkey || pair[0].consensus_key == pair[1].consensus_key {
                return Err(GenesisError::Repeated(pair[1].pubkey.address()));
            }
        }
        let (mut accounts, mut supply) = (Map::default(), Wei::ZERO);
        for endowment in &self.endowments {
            let account = Account { nonce: 0, balance: endowment.balance };
            if accounts.insert(endowment.account, account).is_some() {
                return Err(GenesisError::Repeated(endowment.account));
            }
            supply = supply.checked_add(endowment.balance).ok_or(GenesisError::Supply)?;
        }
        let mut registry = Registry::default();
        for runner in &self.runners {
            supply = supply.checked_add(runner.stake).ok_or(GenesisError::Supply)?;
            registry
                .register(
                    Height::GENESIS,
                    runner.pubkey.clone(),
                    runner.stake,
                    runner.capabilities.clone(),
                    runner.price_per_second,
                )
                .map_err(|error| GenesisError::Runner { runner: runner.pubkey.address(), error })?;
        }
        let order = registry.order().clone();
        let mut state = State {
            chain_id: self.chain_id(),
            params: Arc::new(self.params.clone()),
            validators: Validators::genesis(validators, connectivity.subset_epoch_blocks),
            head: Arc::new(Header::unrooted_genesis(self.timestamp_ms)),
            head_hash: Hash::ZERO,
            accounts,
            registry,
            entitlements: Entitlements::default(),
            jobs: Map::default(),
            open_jobs: Map::default(),
            withheld: Map::default(),
            mru: Map::default(),
            callbacks: Arc::default(),
            outbox: Outbox::default(),
            actors: Map::default(),
            code: Map::default(),
            storage: Map::default(),
            timers: Timers::genesis(&self.params.timers),
            tasks: Tasks::default(),
            basefee_cycle: self.params.genesis_basefee,
            basefee_cell: self.params.genesis_basefee,
            burned: Burned::default(),
            orders: Arc::new(vec![OrderSince { height: Height::GENESIS, order }]),
            presence: None,
            seed_certificate: None,
            migration: Migration { phase: self.params.phase, since: Height::GENESIS },
            connectivity,
            bonds,
            marks: Marks::default(),
            ahead: None,
        };
        let mut header = Header::unrooted_genesis(self.timestamp_ms);
        header.executed.state_root = state.root();
        state.head_hash = header.hash();
        state.head = Arc::new(header);
        Ok(state)
    }

    /// Block 0. Every node derives it; it is not voted on.
    pub fn block(&self) -> Result<Block, GenesisError> {
        let header = self.state()?.head().clone();
        Ok(Block { header, certificates: Vec::new(), transactions: Vec::new() })
    }
}
