//! Whom the runners of one process connect to, as validators come and go.
//!
//! The chain says which validators a runner's subset has, the process knows where those listen.

use super::ValidatorAddress;
use commonware_utils::sync::Mutex;
use cowboy_engine::{chain::State, presence::subset, primitives::PublicKey};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};
use tokio::sync::watch;

/// What a runner connects to where the validators stay the same: its subset of them.
pub fn targets(
    runner: &PublicKey,
    validators: &[ValidatorAddress],
) -> watch::Receiver<Vec<ValidatorAddress>> {
    let keys: Vec<_> = validators.iter().map(|v| v.key.clone()).collect();
    let subset = subset::of(runner, &keys).into_iter().map(|i| validators[i].clone());
    watch::channel(subset.collect()).1
}

/// The targets of all runners of a process, which follow the chain. Cloning shares them.
#[derive(Clone)]
pub struct Targets(Arc<Mutex<Inner>>);

struct Inner {
    state: State,
    addresses: BTreeMap<PublicKey, SocketAddr>,
    runners: BTreeMap<PublicKey, watch::Sender<Vec<ValidatorAddress>>>,
}

impl Inner {
    fn of(&self, runner: &PublicKey) -> Vec<ValidatorAddress> {
        let subset = self.state.subsets_of(runner);
        let address = |key: &PublicKey| {
            let address = *self.addresses.get(key)?;
            Some(ValidatorAddress { key: key.clone(), address })
        };
        subset.into_iter().filter_map(|validator| address(&validator.pubkey)).collect()
    }

    fn tell_all(&self) {
        for (runner, targets) in &self.runners {
            let now = self.of(runner);
            targets.send_if_modified(|before| {
                let differs = *before != now;
                *before = now;
                differs
            });
        }
    }
}

impl Targets {
    /// The targets that follow from `state`, with nobody listening anywhere yet.
    pub fn new(state: State) -> Self {
        let (addresses, runners) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Inner { state, addresses, runners })))
    }

    /// The targets of a runner of this process.
    pub fn of(&self, runner: &PublicKey) -> watch::Receiver<Vec<ValidatorAddress>> {
        let mut inner = self.0.lock();
        let (sender, receiver) = watch::channel(inner.of(runner));
        inner.runners.insert(runner.clone(), sender);
        receiver
    }

    /// Validators listen there from now on.
    pub fn listening(&self, validators: Vec<ValidatorAddress>) {
        let mut inner = self.0.lock();
        inner.addresses = validators.into_iter().map(|v| (v.key, v.address)).collect();
        inner.tell_all();
    }

    /// The chain has come to `state`.
    pub fn advance(&self, state: &State) {
        let mut inner = self.0.lock();
        let epochs = |state: &State| {
            let (current, before) = state.subset_epochs();
            (current.number, before.is_some())
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
