//! The routes: each file has the table of its subject, and `mod.rs` joins them.

mod account;
mod actor;
mod backpressure;
mod chain;
mod comparison;
mod compat;
mod control;
mod deferral;
mod due;
mod events;
mod evidence;
mod fault;
mod feed;
mod job;
mod machine;
mod metrics;
mod mru;
mod names;
mod polling;
mod pool;
mod presence;
mod proof;
mod runner;
mod selection;
mod speculation;
mod task;
mod timer;
mod validator;

use super::{openapi, route::Route, state::ServerState};
use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderName, Method, header::CONTENT_TYPE},
};
use cowboy_host::http::{JSON, openapi::Operation};
use std::sync::{Arc, OnceLock};

pub(super) use control::SNAPSHOTS;

/// All routes that an API serves, with `compat` also those of tools of the ecosystem.
pub(super) fn table(compat: bool) -> Vec<Route> {
    let document = Operation::new("This document").any();
    let document = Route::new(Method::GET, "/openapi.json", show, document);
    [
        account::table(),
        actor::table(),
        backpressure::table(),
        chain::table(),
        comparison::table(),
        control::table(),
        due::table(),
        events::table(),
        evidence::table(),
        fault::table(),
        feed::table(),
        job::table(),
        machine::table(),
        metrics::table(),
        mru::table(),
        polling::table(),
        pool::table(),
        presence::table(),
        proof::table(),
        runner::table(),
        selection::table(),
        speculation::table(),
        task::table(),
        timer::table(),
        validator::table(),
        if compat { compat::table() } else { Vec::new() },
        vec![document],
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether a path begins as those that tools of the ecosystem know.
pub(super) fn is_compat(path: &str) -> bool {
    let first = |path: &str| path.split('/').nth(1).map(str::to_owned);
    compat::table().iter().any(|route| first(route.path) == first(path))
}

/// The document's JSON, built once because building it takes longer than most requests.
async fn show(State(shared): State<Arc<ServerState>>) -> ([(HeaderName, &'static str); 1], Bytes) {
    let text = |compat| {
        serde_json::to_vec(&openapi::document(table(compat))).expect("the document is plain data")
    };
    static TEXTS: [OnceLock<Bytes>; 2] = [const { OnceLock::new() }; 2];
    let compat = shared.backend.compat;
    let text = TEXTS[usize::from(compat)].get_or_init(|| text(compat).into());
    ([(CONTENT_TYPE, JSON)], text.clone())
}
