//! Runners of the devnet's process: their capacity, and starting and stopping them.

use crate::{
    api::{
        backend::{Backend, Switch},
        error::{ApiError, shown},
        extract::{Authorized, InBody, InPath},
        nodes,
        route::{Asked, Route, act},
        state::ServerState,
        steer::Steer,
    },
    types::{AnswerRequest, CapabilitiesRequest, LimitRequest, RunnerLoad},
};
use axum::{Json, extract::State, http::Method};
use cowboy_engine::primitives::Address;
use cowboy_host::http::openapi::Operation;
use std::sync::Arc;
use utoipa::ToSchema;

pub(super) fn table() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/v1/runners/{runner}/backpressure",
            show,
            Operation::new("The capacity for jobs of a runner of the devnet's process")
                .one::<RunnerLoad>(200),
        ),
        steered(
            "/v1/runners/{runner}/backpressure",
            "Limits the number of jobs that a runner takes at a time; running jobs continue",
            LimitRequest::steer,
        ),
        steered(
            "/v1/runners/{runner}/capabilities",
            "Withdraws registered abilities of a runner for now, or restores them",
            CapabilitiesRequest::steer,
        ),
        steered(
            "/v1/runners/{runner}/answer",
            "Gives a job that waits at a runner its result by hand",
            AnswerRequest::steer,
        ),
        steering(
            "/v1/runners/{runner}/pause",
            "Pauses a runner: it takes no new jobs and is not present",
            Steer::Pause,
        ),
        steering("/v1/runners/{runner}/resume", "Resumes a paused runner", Steer::Resume),
        switching("/v1/runners/{runner}/start", "Starts a stopped runner", Switch::Start),
        switching(
            "/v1/runners/{runner}/stop",
            "Stops a runner: it says goodbye and gives up its jobs",
            Switch::Stop,
        ),
    ]
}

type HandlerAnswer = Result<Json<RunnerLoad>, ApiError>;

async fn show(
    State(shared): State<Arc<ServerState>>,
    InPath(runner): InPath<String>,
) -> HandlerAnswer {
    steer(&shared.backend, &runner, Steer::Look).await
}

fn steering(path: &'static str, summary: &'static str, wanted: Steer) -> Route {
    let handler = async move |_: Authorized,
                              State(shared): State<Arc<ServerState>>,
                              InPath(runner): InPath<String>| {
        steer(&shared.backend, &runner, wanted).await
    };
    act(path, handler, Operation::new(summary).one::<RunnerLoad>(200))
}

fn steered<Q: Asked + ToSchema>(
    path: &'static str,
    summary: &'static str,
    wanted: fn(&Q) -> Result<Steer, ApiError>,
) -> Route {
    let handler = async move |_: Authorized,
                              State(shared): State<Arc<ServerState>>,
                              InPath(runner): InPath<String>,
                              InBody(request): InBody<Q>| {
        steer(&shared.backend, &runner, wanted(&request)?).await
    };
    act(path, handler, Operation::new(summary).one::<RunnerLoad>(200).body::<Q>())
}

fn switching(path: &'static str, summary: &'static str, wanted: Switch) -> Route {
    let handler = async move |_: Authorized,
                              State(shared): State<Arc<ServerState>>,
                              InPath(runner): InPath<String>| {
        switch(&shared.backend, &runner, wanted).await
    };
    act(path, handler, Operation::new(summary).one::<RunnerLoad>(200))
}

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
    match (backend.hooks.steer)(&name, steer).await.transpose()? {
        Some(load) => Ok(Json(load)),
        None if looks => Ok(Json(RunnerLoad::stopped(&name, address))),
        None => Err(ApiError::conflict(format!("runner `{name}` is stopped"))
            .hint(format!("start it: cowboyctl runner start {name}"))),
    }
}

async fn switch(backend: &Arc<Backend>, text: &str, wanted: Switch) -> HandlerAnswer {
    let (name, _) = find(backend, text)?;
    nodes::switch(backend.clone(), &name, wanted).await?;
    steer(backend, &name, Steer::Look).await
}
