//! Tokens of actors in Python (spec pvm.md §3): fungible amounts, without approval by a hook.
//!
//! All of them are entries in the store of the system address [`Address::TOKENS`], where no actor
//! can write: `t` and a token's id lead to its [`Token`], `b`, the id and an account to a balance,
//! `a`, the id, an owner and a spender to an allowance. Balances and allowances are 16 bytes, most
//! significant first. An entry of zero is absent.

use crate::{
    chain::state::State,
    primitives::{
        Address, Hash,
        codec::{from_slice, to_vec},
    },
    pvm::{HostCode, TokenAnswer, TokenCall},
    record,
};

/// The longest name, symbol and address of metadata, in bytes.
const MAX_TOKEN_NAME_BYTES: usize = 64;
const MAX_SYMBOL_BYTES: usize = 16;
const MAX_URI_BYTES: usize = 256;
const MAX_DECIMALS: u16 = 255;
/// Cells of a record of a token, apart from its texts.
const TOKEN_CELLS: usize = 128;
/// Cells of a balance or an allowance: its key and its amount.
const AMOUNT_CELLS: usize = 96;

record! {
    /// A token, as its creator made it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Token {
        /// The actor that may mint.
        creator: Address,
        name: String,
        symbol: String,
        decimals: u16,
        supply: u128,
        max_supply: Option<u128>,
        metadata_uri: Option<String>,
    }
}

/// Why a function for tokens is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("there is no such token")]
    Unknown,
    #[error("only the actor that created a token may mint it")]
    NotCreator,
    #[error("this devnet has no transfer hooks")]
    Hook,
    #[error("{what} has at most {limit} bytes")]
    TooLong { what: &'static str, limit: usize },
    #[error("a token has at most {MAX_DECIMALS} decimals")]
    Decimals,
    #[error("the supply would exceed the token's maximum, or 2^128 - 1")]
    Supply,
    #[error("{has} of {needs} are there")]
    Balance { has: u128, needs: u128 },
    #[error("{has} of {needs} are allowed")]
    Allowance { has: u128, needs: u128 },
}

impl TokenError {
    pub(super) const fn code(self) -> HostCode {
        match self {
            Self::Unknown => HostCode::NotFound,
            Self::NotCreator => HostCode::Forbidden,
            Self::Balance { .. } | Self::Allowance { .. } => HostCode::Quota,
            Self::Hook | Self::TooLong { .. } | Self::Decimals | Self::Supply => {
                HostCode::InvalidInput
            }
        }
    }
}

/// The number of entries that a call reads and writes.
pub(super) const fn touches(call: &TokenCall) -> (u64, u64) {
    match call {
        TokenCall::Create { .. } => (0, 2),
        TokenCall::Transfer { .. } => (3, 2),
        TokenCall::TransferFrom { .. } => (4, 3),
        TokenCall::Approve { .. } => (1, 1),
        TokenCall::Mint { .. } | TokenCall::Burn { .. } => (2, 2),
        TokenCall::BalanceOf { .. } | TokenCall::Allowance { .. } => (2, 0),
        TokenCall::TotalSupply { .. } => (1, 0),
    }
}

/// The cells of the entries that a call writes.
pub(super) fn cells(call: &TokenCall) -> usize {
    let (_, writes) = touches(call);
    match call {
        TokenCall::Create { name, symbol, metadata_uri, .. } => {
            let uri = metadata_uri.as_ref().map_or(0, String::len);
            TOKEN_CELLS + AMOUNT_CELLS + name.len() + symbol.len() + uri
        }
        _ => AMOUNT_CELLS * writes as usize,
    }
}

/// Carries out a call by `actor`. A token that it creates gets `id`. On failure nothing changes.
pub(super) fn apply(
    state: &mut State,
    (actor, id): (Address, Hash),
    call: TokenCall,
) -> Result<TokenAnswer, TokenError> {
    let mut ledger = TokenLedger(state);
    match call {
        TokenCall::Create {
            name,
            symbol,
            decimals,
            initial_supply: supply,
            max_supply,
            transfer_hook,
            metadata_uri,
        } => {
            let uri = metadata_uri.as_deref().unwrap_or_default();
            for (what, text, limit) in [
                ("a token's name", &*name, MAX_TOKEN_NAME_BYTES),
                ("a token's symbol", &symbol, MAX_SYMBOL_BYTES),
                ("a token's metadata_uri", uri, MAX_URI_BYTES),
            ] {
                if text.len() > limit {
                    return Err(TokenError::TooLong { what, limit });
                }
            }
            if transfer_hook.is_some() {
                return Err(TokenError::Hook);
            }
            let small = u16::try_from(decimals).ok().filter(|decimals| *decimals <= MAX_DECIMALS);
            let decimals = small.ok_or(TokenError::Decimals)?;
            if max_supply.is_some_and(|most| supply > most) {
                return Err(TokenError::Supply);
            }
            let (creator, key) = (actor, TokenLedger::key(b't', &id, &[]));
            let token = Token { creator, name, symbol, decimals, supply, max_supply, metadata_uri };
            ledger.put(key, Some(to_vec(&token)));
            ledger.set(TokenLedger::balance(&id, &actor), supply);
            return Ok(TokenAnswer::Created(id));
        }
        TokenCall::Transfer { token, to, amount } => {
            ledger.token(&token)?;
            ledger.transfer(&token, (&actor, &to), amount)?;
        }
        TokenCall::TransferFrom { token, from, to, amount } => {
            ledger.token(&token)?;
            let key = TokenLedger::allowance(&token, &from, &actor);
            let allowed = ledger.amount(&key);
            let Some(left) = allowed.checked_sub(amount) else {
                return Err(TokenError::Allowance { has: allowed, needs: amount });
            };
            ledger.transfer(&token, (&from, &to), amount)?;
            ledger.set(key, left);
        }
        TokenCall::Approve { token, spender, amount } => {
            ledger.token(&token)?;
            ledger.set(TokenLedger::allowance(&token, &actor, &spender), amount);
        }
        TokenCall::Mint { token: id, to, amount } => {
            let token = ledger.token(&id)?;
            if token.creator != actor {
                return Err(TokenError::NotCreator);
            }
            let supply = token.supply.checked_add(amount);
            let fits = |supply: &u128| token.max_supply.is_none_or(|most| *supply <= most);
            let supply = supply.filter(fits).ok_or(TokenError::Supply)?;
            ledger.supply(&id, token, supply);
            // No balance exceeds the supply.
            ledger.add(TokenLedger::balance(&id, &to), amount);
        }
        TokenCall::Burn { token: id, amount } => {
            let token = ledger.token(&id)?;
            ledger.take(TokenLedger::balance(&id, &actor), amount)?;
            let supply = token.supply.saturating_sub(amount);
            ledger.supply(&id, token, supply);
        }
        TokenCall::BalanceOf { token, account } => {
            return Ok(ledger.read(&token, TokenLedger::balance(&token, &account)));
        }
        TokenCall::Allowance { token, owner, spender } => {
            return Ok(ledger.read(&token, TokenLedger::allowance(&token, &owner, &spender)));
        }
        TokenCall::TotalSupply { token } => {
            return Ok(TokenAnswer::Amount(ledger.token(&token).ok().map(|token| token.supply)));
        }
    }
    Ok(TokenAnswer::Done)
}

/// The entries of all tokens.
struct TokenLedger<'a>(&'a mut State);

impl TokenLedger<'_> {
    fn key(kind: u8, token: &Hash, parties: &[&Address]) -> Vec<u8> {
        let parties = parties.iter().flat_map(|party| party.0);
        [kind].into_iter().chain(token.0).chain(parties).collect()
    }

    fn balance(token: &Hash, account: &Address) -> Vec<u8> {
        Self::key(b'b', token, &[account])
    }

    fn allowance(token: &Hash, owner: &Address, spender: &Address) -> Vec<u8> {
        Self::key(b'a', token, &[owner, spender])
    }

    fn token(&self, id: &Hash) -> Result<Token, TokenError> {
        let bytes = self.0.stored_at(&Address::TOKENS, &Self::key(b't', id, &[])[..]);
        let token = bytes.ok_or(TokenError::Unknown)?;
        Ok(from_slice(token).expect("only tokens are stored under such keys"))
    }

    fn supply(&mut self, id: &Hash, token: Token, supply: u128) {
        self.put(Self::key(b't', id, &[]), Some(to_vec(&Token { supply, ..token })));
    }

    fn amount(&self, key: &[u8]) -> u128 {
        let bytes = self.0.stored_at(&Address::TOKENS, key);
        let amount = bytes.map(|bytes| bytes.try_into().expect("amounts have 16 bytes"));
        amount.map_or(0, u128::from_be_bytes)
    }

    /// An amount for an actor; absent if there is no such token.
    fn read(&self, token: &Hash, key: Vec<u8>) -> TokenAnswer {
        TokenAnswer::Amount(self.token(token).ok().map(|_| self.amount(&key)))
    }

    fn set(&mut self, key: Vec<u8>, amount: u128) {
        self.put(key, (amount > 0).then(|| amount.to_be_bytes().to_vec()));
    }

    fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let key = (Address::TOKENS, key[..].into());
        match value {
            Some(value) => self.0.storage.insert(key, value),
            None => self.0.storage.remove(&key),
        };
    }

    fn take(&mut self, key: Vec<u8>, amount: u128) -> Result<(), TokenError> {
        let has = self.amount(&key);
        let left = has.checked_sub(amount);
        self.set(key, left.ok_or(TokenError::Balance { has, needs: amount })?);
        Ok(())
    }

    fn add(&mut self, key: Vec<u8>, amount: u128) {
        let sum = self.amount(&key).checked_add(amount);
        self.set(key, sum.expect("all balances add up to the supply"));
    }

    fn transfer(
        &mut self,
        token: &Hash,
        (from, to): (&Address, &Address),
        amount: u128,
    ) -> Result<(), TokenError> {
        self.take(Self::balance(token, from), amount)?;
        self.add(Self::balance(token, to), amount);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
