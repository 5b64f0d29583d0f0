//! A chain that has just begun, for the tests of its parts.

use cowboy_engine::{
    chain::{Endowment, Genesis, Params, State, Validator},
    primitives::{SecretKey, Wei},
};

/// The key of a participant.
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
        validators: vec![Validator {
            pubkey: key("validator").public_key(),
            consensus_key: [0; 32],
        }],
        runners: Vec::new(),
        endowments: (0..4).map(endowment).collect(),
    }
}

/// The state before its first block.
pub(super) fn state() -> State {
    genesis().state().expect("it starts a chain")
}
