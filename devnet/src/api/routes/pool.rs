//! Pools of runners.

use crate::{
    api::{
        error::{ApiError, shown},
        route::{Route, many, one},
        view::View,
    },
    types::{Pool, PoolMember},
};
use cowboy_host::spelling::nearest;

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/pools", "Pools of runners", list),
        one("/v1/pools/{pool}", "A pool and its members", |view: &View, pool: String| {
            show(view, &pool)
        }),
    ]
}

fn list(view: &View) -> Result<Vec<Pool>, ApiError> {
    let entitlements = view.state.entitlements();
    Ok(entitlements.pools().map(|(pool, _)| describe(view, pool)).collect())
}

fn show(view: &View, pool: &str) -> Result<Pool, ApiError> {
    if view.state.entitlements().owner(pool).is_some() {
        return Ok(describe(view, pool));
    }
    let hint = match nearest(pool, view.state.entitlements().pools().map(|(pool, _)| pool)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "the first grant creates a pool: cowboyctl pool grant POOL RUNNER".to_owned(),
    };
    Err(ApiError::not_found(format!("there is no pool `{}`", shown(pool))).hint(hint))
}

fn describe(view: &View, pool: &str) -> Pool {
    let entitlements = view.state.entitlements();
    let owner = entitlements.owner(pool).copied().unwrap_or_default();
    let member =
        |(runner, valid_until): (_, Option<cowboy_engine::primitives::Height>)| PoolMember {
            runner: view.name(runner),
            address: (*runner).into(),
            valid_until: valid_until.map(|height| height.get()),
            live: entitlements.is_member(pool, *runner, view.head()),
        };
    Pool {
        pool: pool.to_owned(),
        owner: owner.into(),
        owner_name: view.backend.names.get(&owner),
        members: entitlements.members(pool).map(member).collect(),
    }
}
