//! Tokens on a state, without an actor around them.

use super::{TokenError, apply};
use crate::{
    chain::{Genesis, GenesisValidator, Params, state::State},
    primitives::{Address, Hash, SecretKey},
    pvm::{TokenAnswer, TokenCall},
};

const CREATOR: Address = Address([1; 20]);
const OTHER: Address = Address([2; 20]);
const THIRD: Address = Address([3; 20]);
const ID: Hash = Hash([9; 32]);

fn create(supply: u128, max_supply: Option<u128>) -> TokenCall {
    TokenCall::Create {
        name: "Coin".into(),
        symbol: "C".into(),
        decimals: 2,
        initial_supply: supply,
        max_supply,
        transfer_hook: None,
        metadata_uri: None,
    }
}

/// A state with a token of 100, at most 150, all of it the creator's.
fn state() -> State {
    let validator = |seed: u8| GenesisValidator {
        pubkey: SecretKey::derive(b"test", "validator").public_key(),
        consensus_key: [seed; 32],
    };
    let genesis = Genesis {
        name: "test".into(),
        timestamp_ms: 0,
        params: Params::default(),
        validators: vec![validator(1)],
        runners: vec![],
        endowments: vec![],
    };
    let mut state = genesis.state().unwrap();
    let created = apply(&mut state, (CREATOR, ID), create(100, Some(150)));
    assert_eq!(created, Ok(TokenAnswer::Created(ID)));
    state
}

fn amount(state: &mut State, call: TokenCall) -> Option<u128> {
    match apply(state, (OTHER, Hash::ZERO), call) {
        Ok(TokenAnswer::Amount(amount)) => amount,
        other => panic!("{other:?}"),
    }
}

fn balances(state: &mut State) -> [u128; 3] {
    let balance = |account| TokenCall::BalanceOf { token: ID, account };
    [CREATOR, OTHER, THIRD].map(|account| amount(state, balance(account)).unwrap())
}

#[test]
fn amounts_move_and_stay_the_same_in_sum() {
    let mut state = state();
    let done = |state: &mut State, actor, call| {
        assert_eq!(apply(state, (actor, Hash::ZERO), call), Ok(TokenAnswer::Done));
    };
    assert_eq!(balances(&mut state), [100, 0, 0]);
    done(&mut state, CREATOR, TokenCall::Transfer { token: ID, to: OTHER, amount: 30 });
    done(&mut state, CREATOR, TokenCall::Transfer { token: ID, to: CREATOR, amount: 70 });
    assert_eq!(balances(&mut state), [70, 30, 0]);
    done(&mut state, OTHER, TokenCall::Approve { token: ID, spender: THIRD, amount: 20 });
    let from = |amount| TokenCall::TransferFrom { token: ID, from: OTHER, to: CREATOR, amount };
    done(&mut state, THIRD, from(15));
    assert_eq!(balances(&mut state), [85, 15, 0]);
    let left = TokenCall::Allowance { token: ID, owner: OTHER, spender: THIRD };
    assert_eq!(amount(&mut state, left), Some(5));
    done(&mut state, CREATOR, TokenCall::Mint { token: ID, to: THIRD, amount: 50 });
    done(&mut state, OTHER, TokenCall::Burn { token: ID, amount: 15 });
    assert_eq!(balances(&mut state), [85, 0, 50]);
    assert_eq!(amount(&mut state, TokenCall::TotalSupply { token: ID }), Some(135));
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut state = state();
    let approve = TokenCall::Approve { token: ID, spender: THIRD, amount: 1_000 };
    assert_eq!(apply(&mut state, (OTHER, Hash::ZERO), approve), Ok(TokenAnswer::Done));
    let before = state.storage.root();
    let mut check = |actor, call: TokenCall, expected: TokenError| {
        assert_eq!(apply(&mut state, (actor, Hash::ZERO), call), Err(expected));
        assert_eq!(state.storage.root(), before, "{expected}");
    };
    let unknown = Hash([8; 32]);
    check(CREATOR, TokenCall::Burn { token: unknown, amount: 0 }, TokenError::Unknown);
    let poor = TokenError::Balance { has: 0, needs: 1 };
    check(OTHER, TokenCall::Transfer { token: ID, to: CREATOR, amount: 1 }, poor);
    check(OTHER, TokenCall::Burn { token: ID, amount: 1 }, poor);
    let from = |amount| TokenCall::TransferFrom { token: ID, from: OTHER, to: THIRD, amount };
    check(THIRD, from(1), poor);
    check(THIRD, from(1_001), TokenError::Allowance { has: 1_000, needs: 1_001 });
    check(OTHER, TokenCall::Mint { token: ID, to: OTHER, amount: 1 }, TokenError::NotCreator);
    let mint = |amount| TokenCall::Mint { token: ID, to: OTHER, amount };
    check(CREATOR, mint(51), TokenError::Supply);
    check(CREATOR, mint(u128::MAX), TokenError::Supply);
    check(CREATOR, create(2, Some(1)), TokenError::Supply);
    let long = TokenCall::Create {
        name: "x".repeat(65),
        symbol: String::new(),
        decimals: 0,
        initial_supply: 0,
        max_supply: None,
        transfer_hook: None,
        metadata_uri: None,
    };
    check(CREATOR, long, TokenError::TooLong { what: "a token's name", limit: 64 });
    let absent = TokenCall::BalanceOf { token: unknown, account: OTHER };
    assert_eq!(amount(&mut state, absent), None);
}
