//! Runners of the devnet's process: their capacity, and starting and stopping them.

use crate::api::{
    backend::{Backend, Switch},
    error::ApiError,
    extract::{Authorized, InBody, InPath},
    nodes,
    server::ServerState,
    steer::Steer,
    types::{CapabilitiesRequest, LimitRequest, RunnerLoad},
    view::shown,
};
use axum::{Json, extract::State};
use cowboy_engine::primitives::Address;
use std::sync::Arc;

/// What a handler answers.
type HandlerAnswer = Result<Json<RunnerLoad>, ApiError>;

/// `GET /v1/runners/{runner}/backpressure`
pub(super) async fn show(
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
) -> HandlerAnswer {
    steer(&shared.backend, &runner, Steer::Look).await
}

/// `POST /v1/runners/{runner}/backpressure`
pub(super) async fn limit(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
    InBody(request): InBody<LimitRequest>,
) -> HandlerAnswer {
    steer(&shared.backend, &runner, request.steer()?).await
}

/// `POST /v1/runners/{runner}/capabilities`
pub(super) async fn change(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
    InBody(request): InBody<CapabilitiesRequest>,
) -> HandlerAnswer {
    steer(&shared.backend, &runner, request.steer()?).await
}

/// `POST /v1/runners/{runner}/pause`
pub(super) async fn pause(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
) -> HandlerAnswer {
    steer(&shared.backend, &runner, Steer::Pause).await
}

/// `POST /v1/runners/{runner}/resume`
pub(super) async fn resume(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
) -> HandlerAnswer {
    steer(&shared.backend, &runner, Steer::Resume).await
}

/// `POST /v1/runners/{runner}/start`
pub(super) async fn start(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
) -> HandlerAnswer {
    switch(&shared.backend, &runner, Switch::Start).await
}

/// `POST /v1/runners/{runner}/stop`
pub(super) async fn stop(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
) -> HandlerAnswer {
    switch(&shared.backend, &runner, Switch::Stop).await
}

/// Resolves a name or an address of a runner of the process.
fn find(backend: &Backend, text: &str) -> Result<(String, Address), ApiError> {
    let address = backend.names.resolve(text);
    let found = address.filter(|address| backend.runner_runs(address).is_some());
    let address = found.ok_or_else(|| {
        let mut names: Vec<_> = backend.runners().collect();
        names.sort();
        let what = format!("the devnet's process runs no runner `{}`", shown(text));
        let others = "a runner in a separate process is addressed by the name it was started with";
        let hint = match names.is_empty() {
            true => format!("it runs none; {others}"),
            false => format!("its runners are {}; {others}", names.join(", ")),
        };
        ApiError::not_found(what).hint(hint)
    })?;
    Ok((backend.names.of(&address), address))
}

async fn steer(backend: &Backend, text: &str, steer: Steer) -> HandlerAnswer {
    let (name, address) = find(backend, text)?;
    let looks = steer == Steer::Look;
    let told = (backend.hooks.steer)(&name, steer).await.transpose()?;
    if told.is_none() && !looks {
        return Err(ApiError::conflict(format!("runner `{name}` is stopped"))
            .hint(format!("start it: cowboyctl runner start {name}")));
    }
    Ok(Json(RunnerLoad::new(&name, address, told)))
}

async fn switch(backend: &Arc<Backend>, text: &str, wanted: Switch) -> HandlerAnswer {
    let (name, _) = find(backend, text)?;
    nodes::switch(backend.clone(), &name, wanted).await?;
    steer(backend, &name, Steer::Look).await
}
