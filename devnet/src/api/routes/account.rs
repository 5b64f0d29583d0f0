//! Accounts: balances and nonces, with the names that the devnet knows.

use crate::api::{error::ApiError, types::Account, view::View};
use cowboy_engine::primitives::Address;

/// Accounts in a list at most: the devnet's own first, then others by address.
const LISTED: usize = 10_000;

/// `GET /v1/accounts`
pub(super) fn list(view: &View) -> Result<Vec<Account>, ApiError> {
    let own = &view.backend.accounts;
    let others = view.state.accounts().map(|(address, _)| address).filter(|a| !own.contains(a));
    Ok(own.iter().chain(others).take(LISTED).map(|address| account(view, address)).collect())
}

/// `GET /v1/accounts/{account}`
pub(super) fn show(view: &View, text: &str) -> Result<Account, ApiError> {
    Ok(account(view, &view.resolve("account", text)?))
}

fn account(view: &View, address: &Address) -> Account {
    let account = view.state.account(address);
    Account {
        name: view.backend.names.get(address),
        address: (*address).into(),
        balance: account.balance.into(),
        nonce: account.nonce,
        next_nonce: view.running.mempool.with(|pool| pool.next_nonce(address, account.nonce)),
    }
}
