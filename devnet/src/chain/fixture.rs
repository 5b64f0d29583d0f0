//! A chain at its genesis, for the tests of this module.

use cowboy_engine::{
    chain::{Endowment, Genesis, GenesisValidator, Params, State},
    primitives::{SecretKey, Wei},
};

pub(super) fn key(name: &str) -> SecretKey {
    SecretKey::derive(b"fixture", name)
}

/// One validator, no runners, and `account-0` to `account-3` with a million CBY each.
pub(super) fn genesis() -> Genesis {
    let endowment = |index| Endowment {
        account: key(&format!("account-{index}")).address(),
        balance: Wei::cby(1_000_000),
    };
    Genesis {
        name: "fixture".into(),
        timestamp_ms: 0,
        params: Params::default(),
        validators: vec![GenesisValidator {
            pubkey: key("validator").public_key(),
            consensus_key: [0; 32],
        }],
        runners: Vec::new(),
        endowments: (0..4).map(endowment).collect(),
    }
}

pub(super) fn state() -> State {
    genesis().state().expect("it starts a chain")
}
