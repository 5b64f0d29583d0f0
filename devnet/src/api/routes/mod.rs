//! The routes: each file has the table of its subject, and `mod.rs` joins them.

mod account;
mod actor;
mod backpressure;
mod chain;
mod comparison;
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

use super::{openapi, route::Route};
use axum::{
    body::Bytes,
    http::{HeaderName, Method, header::CONTENT_TYPE},
};
use cowboy_host::http::{JSON, openapi::Operation};
use std::sync::LazyLock;

pub(super) use control::SNAPSHOTS;

pub(super) fn table() -> Vec<Route> {
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
        vec![document],
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The document's JSON, built once because building it takes longer than most requests.
async fn show() -> ([(HeaderName, &'static str); 1], Bytes) {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
        serde_json::to_vec(&openapi::document(table())).expect("the document is plain data").into()
    });
    ([(CONTENT_TYPE, JSON)], TEXT.clone())
}
