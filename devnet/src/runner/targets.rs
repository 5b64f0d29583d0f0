//! The validators that the runners of one process connect to and trust, as validators come and go.
//!
//! The chain names the validators and each runner's subset; the process knows the addresses.

use crate::consensus::scheme::Committee;
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::State,
    presence::{canonical, subset},
    primitives::PublicKey,
};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};
use tokio::sync::watch;

/// Number of epochs whose validators are kept: a proof may be of the epoch before the newest, and
/// the next one begins before a runner has heard of it.
const EPOCHS_KEPT: usize = 4;

/// A validator's key and address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatorAddress {
    /// Its runner-facing key (ed25519).
    pub key: PublicKey,
    pub address: SocketAddr,
}

/// A chain's validators, as one runner knows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownValidators {
    /// The validators it connects to: its subset, and for a while the subset of the previous subset
    /// epoch ([`State::subsets_of`]).
    pub targets: Vec<ValidatorAddress>,
    pub validators: u32,
    /// The ed25519 keys of the validators, by consensus epoch.
    pub committees: BTreeMap<u64, Vec<[u8; 32]>>,
}

impl KnownValidators {
    /// The number of validators that must agree to be believed: one more than may be dishonest.
    pub const fn agreeing(&self) -> usize {
        canonical::of(self.validators) as usize
    }

    /// The validators that vote in an epoch; `None` when they are unknown.
    pub fn committee(&self, chain_id: u64, epoch: u64) -> Option<Committee> {
        Committee::of_keys(chain_id, self.committees.get(&epoch)?).ok()
    }

    pub fn learn(&mut self, epoch: u64, keys: Vec<[u8; 32]>) {
        self.validators = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        self.committees.insert(epoch, keys);
        while self.committees.len() > EPOCHS_KEPT {
            self.committees.pop_first();
        }
    }
}

/// What a runner knows when the validators never change and it needs none of their votes.
pub fn targets(
    runner: &PublicKey,
    validators: &[ValidatorAddress],
) -> watch::Receiver<KnownValidators> {
    let keys: Vec<_> = validators.iter().map(|v| v.key.clone()).collect();
    let targets = subset::of(runner, &keys).into_iter().map(|i| validators[i].clone()).collect();
    let validators = u32::try_from(validators.len()).unwrap_or(u32::MAX);
    let committees = BTreeMap::new();
    watch::channel(KnownValidators { targets, validators, committees }).1
}

/// What all runners of a process know, following the chain. Clones share the state.
#[derive(Clone)]
pub struct Targets(Arc<Mutex<TargetsInner>>);

struct TargetsInner {
    state: State,
    addresses: BTreeMap<PublicKey, SocketAddr>,
    runners: BTreeMap<PublicKey, watch::Sender<KnownValidators>>,
}

impl TargetsInner {
    fn of(&self, runner: &PublicKey) -> KnownValidators {
        let subset = self.state.subsets_of(runner);
        let address = |key: &PublicKey| {
            let address = *self.addresses.get(key)?;
            Some(ValidatorAddress { key: key.clone(), address })
        };
        let targets = subset.into_iter().filter_map(|v| address(&v.pubkey)).collect();
        let mut known = KnownValidators { targets, ..KnownValidators::default() };
        let epoch = epoch(&self.state);
        for epoch in epoch.saturating_sub(1)..=epoch {
            let keys = self.state.validators_in(epoch).iter().map(|v| v.consensus_key);
            known.learn(epoch, keys.collect());
        }
        known
    }

    fn tell_all(&self) {
        for (runner, known) in &self.runners {
            let now = self.of(runner);
            known.send_if_modified(|before| {
                let differs = *before != now;
                *before = now;
                differs
            });
        }
    }
}

fn epoch(state: &State) -> u64 {
    state.epoch_at(state.height().next())
}

impl Targets {
    pub fn new(state: State) -> Self {
        let (addresses, runners) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(TargetsInner { state, addresses, runners })))
    }

    pub fn of(&self, runner: &PublicKey) -> watch::Receiver<KnownValidators> {
        let mut inner = self.0.lock();
        let (sender, receiver) = watch::channel(inner.of(runner));
        inner.runners.insert(runner.clone(), sender);
        receiver
    }

    pub fn listening(&self, validators: Vec<ValidatorAddress>) {
        let mut inner = self.0.lock();
        inner.addresses = validators.into_iter().map(|v| (v.key, v.address)).collect();
        inner.tell_all();
    }

    pub fn advance(&self, state: &State) {
        let mut inner = self.0.lock();
        let epochs = |state: &State| {
            let (current, before) = state.subset_epochs();
            (current.number, before.is_some(), epoch(state))
        };
        if state.height() <= inner.state.height() {
            return;
        }
        let changed = epochs(state) != epochs(&inner.state);
        inner.state = state.clone();
        if changed {
            inner.tell_all();
        }
    }
}
