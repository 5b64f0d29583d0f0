//! Reads under the paths that tools of the ecosystem know, if the topology has `api.compat: true`.
//!
//! The shapes of the chain's own nodes are not published. The answers here are those of this API,
//! whose paths begin with `/v1`.

use super::{account, actor, chain};
use crate::{
    api::{
        error::ApiError,
        ids,
        route::{Route, one},
        view::View,
    },
    topology::FAUCET,
    types::{
        Basefees, Bytes, DryRun, DryRunRequest, ReadQuery, Storage, StoreQuery, Text, Transaction,
        TransactionStatus,
    },
};
use cowboy_engine::{
    chain::Language,
    primitives::{Address, Wei, cbor},
};

pub(in crate::api) fn table() -> Vec<Route> {
    vec![
        one("/height", "The newest finalized and executed block", chain::head),
        one("/basefee", "The basefees of the next block", |view: &View| Ok(basefees(view))),
        one("/account/{account}", "An account", |view: &View, account: String| {
            account::show(view, &account)
        }),
        one("/faucet", "The account that has the devnet's funds", |view: &View| {
            account::show(view, FAUCET)
        }),
        one(
            "/actor/{actor}",
            "An actor and a page of its store",
            |view: &View, actor: String, query: StoreQuery| actor::show(view, &actor, &query),
        ),
        one(
            "/actors/{actor}/storage",
            "A page of an actor's store",
            |view: &View, actor: String, query: StoreQuery| storage(view, &actor, &query),
        ),
        one(
            "/actor/{actor}/read_handler",
            "What a call of an actor would return; changes nothing",
            |view: &View, actor: String, query: ReadQuery| read_handler(view, &actor, query),
        ),
        one(
            "/transaction/{hash}/receipt",
            "A transaction in a block, with its receipt",
            |view: &View, hash: String| receipt(view, &hash),
        ),
        one("/block/{height}", "A finalized block", |view: &View, height: String| {
            chain::block(view, &height)
        }),
    ]
}

fn basefees(view: &View) -> Basefees {
    let state = &view.state;
    Basefees {
        height: state.height().next().get(),
        cycle: state.basefee_cycle().into(),
        cell: state.basefee_cell().into(),
    }
}

fn storage(view: &View, text: &str, query: &StoreQuery) -> Result<Storage, ApiError> {
    let chosen = actor::chosen(view, query.at)?;
    let (address, _) = actor::find(view, &chosen, text)?;
    let (state, next) = actor::stored(&chosen, &address, query);
    Ok(Storage { actor: address.into(), height: chosen.height().get(), state, next })
}

fn read_handler(view: &View, text: &str, query: ReadQuery) -> Result<DryRun, ApiError> {
    let (address, _) = actor::find(view, &view.state, text)?;
    let payload = match query.payload {
        None => Vec::new(),
        Some(payload) => bytes(view.state.language(&address), &payload)?,
    };
    let request = DryRunRequest {
        sender: query.sender.unwrap_or_else(|| Address([0; 20]).to_string()),
        handler: query.handler,
        payload: Text(Bytes(payload)),
        value: Text(Wei::ZERO),
        cycles: None,
        cells: None,
        timer_allowance: None,
        at: None,
        ask_agent: Some(false),
        trace: None,
        profile: None,
        source: None,
    };
    actor::try_call(view, &address.to_string(), request)
}

/// A payload as a handler reads it: 0x-hex are bytes, and JSON becomes CBOR for an actor in Python.
fn bytes(language: Language, payload: &str) -> Result<Vec<u8>, ApiError> {
    let refused = |error: String| {
        ApiError::bad_request(format!("payload: {error}"))
            .hint("give JSON, or bytes as 0x and hex digits")
    };
    if let Some(digits) = payload.strip_prefix("0x") {
        return hex::decode(digits).map_err(|error| refused(error.to_string()));
    }
    match language {
        Language::Starlark => Ok(payload.as_bytes().to_vec()),
        Language::Python => cbor::from_json(payload)
            .and_then(|value| cbor::encode(&value))
            .map_err(|error| refused(error.to_string())),
    }
}

fn receipt(view: &View, hash: &str) -> Result<Transaction, ApiError> {
    let found = chain::transaction(view, hash)?;
    match found.status {
        TransactionStatus::Pending => {
            let hash = ids::hash("transaction hash", hash)?;
            let what = format!("transaction {hash} is in no block yet and has no receipt");
            Err(ApiError::not_found(what).hint("it waits in the mempool: ask again"))
        }
        _ => Ok(found),
    }
}
