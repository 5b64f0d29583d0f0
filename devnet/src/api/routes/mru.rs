//! The most recently used runners.

use crate::{
    api::{
        error::ApiError,
        route::{Route, many, one},
        view::View,
    },
    types::MruRecord,
};
use cowboy_engine::{
    job,
    primitives::Address,
    registry::{JobKind, runner::JobKindError},
};

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/mru", "The most recently used runners", list),
        one(
            "/v1/mru/{submitter}/{kind}",
            "A submitter's most recently used runner for a kind of job",
            |view: &View, (submitter, kind): (String, String)| show(view, &submitter, &kind),
        ),
    ]
}

fn list(view: &View) -> Result<Vec<MruRecord>, ApiError> {
    let records = view.state.mru();
    Ok(records.map(|(submitter, kind, record)| describe(view, submitter, kind, record)).collect())
}

fn show(view: &View, submitter: &str, kind: &str) -> Result<MruRecord, ApiError> {
    let kind: JobKind =
        kind.parse().map_err(|error: JobKindError| ApiError::bad_request(error.to_string()))?;
    let submitter = view.resolve("account", submitter)?;
    let mut records = view.state.mru();
    let found = records.find(|(of, for_kind, _)| (*of, *for_kind) == (submitter, kind));
    let (.., record) = found.ok_or_else(|| {
        let name = view.name(&submitter);
        ApiError::not_found(format!("{name} has no MRU runner for {kind} jobs"))
            .hint("a verified result sets one")
    })?;
    Ok(describe(view, submitter, kind, record))
}

fn describe(view: &View, submitter: Address, kind: JobKind, record: &job::MruRecord) -> MruRecord {
    let ttl = view.state.connectivity().mru_ttl_blocks;
    MruRecord {
        submitter: submitter.into(),
        submitter_name: view.backend.names.get(&submitter),
        kind: kind.name().to_owned(),
        runner: view.name(&record.runner),
        runner_address: record.runner.into(),
        set_at: record.set_at.get(),
        expires_at: record.set_at.after(ttl).get(),
        live: record.is_live(view.head(), ttl),
    }
}
