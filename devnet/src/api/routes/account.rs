//! Accounts: balances and nonces, with the names that the devnet knows.

use crate::{
    api::{
        error::ApiError,
        route::{Route, many, one},
        view::View,
    },
    chain::mempool::Mempool,
    types::{Account, BEHIND},
};
use cowboy_engine::{chain::State, primitives::Address};

/// Maximum number of accounts in a list: the devnet's own first, then others by address.
const LISTED: usize = 10_000;

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/accounts", "The accounts, the devnet's own first, at most 10,000", list),
        one("/v1/accounts/{account}", "An account", |view: &View, account: String| {
            show(view, &account)
        }),
    ]
}

fn list(view: &View) -> Result<Vec<Account>, ApiError> {
    let own = &view.backend.accounts();
    let others = view.state.accounts().map(|(address, _)| address).filter(|a| !own.contains(a));
    let waiting = waiting(view);
    let shown = own.iter().chain(others).take(LISTED);
    Ok(shown.map(|address| account(view, &waiting, address)).collect())
}

pub(super) fn show(view: &View, text: &str) -> Result<Account, ApiError> {
    Ok(account(view, &waiting(view), &view.resolve("account", text)?))
}

/// The states and mempools of the running validators; each mempool reaches the others a moment
/// later. Validators that have fallen behind are left out, because their transactions may never
/// reach the others and so claim no nonce.
fn waiting(view: &View) -> Vec<(State, Mempool)> {
    let running = view.backend.running();
    let executed = running.into_iter().map(|one| (one.ledger.head(), one.mempool));
    let oldest = view.backend.newest().height().get().saturating_sub(BEHIND);
    executed.filter(|(state, _)| state.height().get() >= oldest).collect()
}

fn account(view: &View, waiting: &[(State, Mempool)], address: &Address) -> Account {
    let account = view.state.account(address);
    let next = waiting.iter().map(|(state, mempool)| {
        let nonce = state.account(address).nonce;
        mempool.with(|pool| pool.next_nonce(address, nonce))
    });
    Account {
        name: view.backend.names.get(address),
        address: (*address).into(),
        balance: account.balance.into(),
        nonce: account.nonce,
        next_nonce: next.fold(account.nonce, u64::max),
    }
}
