//! Pipelines of tasks: requests to the devnet's agent.

use super::feed::{agent, check_events};
use crate::{
    api::{
        backend::{Backend, Speculation},
        error::ApiError,
        extract::{Authorized, InBody, InPath},
        route::{Nothing, Route, Source, act, many, one},
        state::ServerState,
    },
    types::{
        ConfigureRequest, OfPipelineQuery, PipelineAccepted, PipelineQuery, PipelineRequest,
        RetryRequest, SpeculationEventQuery, SpeculationOption, TasksCancelled, TasksRetried,
    },
};
use axum::{Json, extract::State, http::StatusCode};
use cowboy_host::http::openapi::Operation;
use std::{ops::Deref, sync::Arc};

pub(super) fn table() -> Vec<Route> {
    vec![
        one(
            "/v1/speculation",
            "The state of speculation",
            |agent: &ServedAgent| Ok(agent.status()),
        ),
        many(
            "/v1/speculation/pipelines",
            "Pipelines, newest first",
            |agent: &ServedAgent, (), query: PipelineQuery| Ok(agent.pipelines(&query)),
        ),
        act(
            "/v1/speculation/pipelines",
            submit,
            Operation::new("Has the agent run a pipeline")
                .one::<PipelineAccepted>(202)
                .body::<PipelineRequest>(),
        ),
        one(
            "/v1/speculation/pipelines/{pipeline}",
            "A pipeline with its graph",
            |agent: &ServedAgent, number: String| agent.pipeline(numbered(&number)?),
        ),
        act(
            "/v1/speculation/pipelines/{pipeline}/cancel",
            cancel,
            Operation::new("Cancels the tasks of a pipeline that are not final")
                .one::<TasksCancelled>(200),
        ),
        act(
            "/v1/speculation/pipelines/{pipeline}/retry",
            retry,
            Operation::new("Retries tasks that failed or were rolled back")
                .one::<TasksRetried>(200)
                .body::<RetryRequest>(),
        ),
        one(
            "/v1/speculation/tasks/{pipeline}/{task}",
            "A task with its output",
            |agent: &ServedAgent, (number, task): (String, String)| {
                agent.task(numbered(&number)?, &task)
            },
        ),
        act(
            "/v1/speculation/tasks/{pipeline}/{task}/cancel",
            cancel_task,
            Operation::new("Cancels a task with those that depend on it")
                .one::<TasksCancelled>(200),
        ),
        many(
            "/v1/speculation/commitments",
            "Commitments to outputs, the newest pipelines' first",
            |agent: &ServedAgent, (), query: OfPipelineQuery| agent.commitments(&query),
        ),
        many(
            "/v1/speculation/proofs",
            "Proofs, the newest pipelines' first",
            |agent: &ServedAgent, (), query: OfPipelineQuery| agent.proofs(&query),
        ),
        many(
            "/v1/speculation/rollbacks",
            "Rollbacks, newest first",
            |agent: &ServedAgent, (), query: OfPipelineQuery| agent.rollbacks(&query),
        ),
        one(
            "/v1/speculation/events",
            "A page of the kept events from the components of speculation, oldest first",
            |agent: &ServedAgent, (), query: SpeculationEventQuery| {
                check_events(&query)?;
                Ok(agent.events(&query))
            },
        ),
        many("/v1/speculation/config", "Every option of speculation", |agent: &ServedAgent| {
            Ok(agent.options())
        }),
        act(
            "/v1/speculation/config",
            configure,
            Operation::new("Changes options until the devnet stops: all of them, or none")
                .many::<SpeculationOption>()
                .body::<ConfigureRequest>(),
        ),
    ]
}

struct ServedAgent(Arc<dyn Speculation>);

impl Deref for ServedAgent {
    type Target = dyn Speculation;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Source for ServedAgent {
    type Choice = Nothing;

    fn choose(backend: Arc<Backend>, _: &Nothing) -> Result<Self, ApiError> {
        agent(&backend).map(Self)
    }
}

/// Calls the agent on a blocking thread, so that the call does not hold up other requests.
async fn ask<T: Send + 'static>(
    shared: &ServerState,
    call: impl FnOnce(&dyn Speculation) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    shared.blocking(move |backend| call(&*agent(&backend)?)).await
}

fn numbered(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!("`{text:.40}` is not a pipeline's number"))
            .hint("list them: cowboyctl speculation ls")
    })
}

async fn submit(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<PipelineRequest>,
) -> Result<(StatusCode, Json<PipelineAccepted>), ApiError> {
    let accepted = ask(&shared, |agent| agent.submit(request)).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

async fn cancel(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(number): InPath<String>,
) -> Result<Json<TasksCancelled>, ApiError> {
    let number = numbered(&number)?;
    ask(&shared, move |agent| agent.cancel(number, None)).await.map(Json)
}

async fn retry(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(number): InPath<String>,
    InBody(request): InBody<RetryRequest>,
) -> Result<Json<TasksRetried>, ApiError> {
    let number = numbered(&number)?;
    ask(&shared, move |agent| agent.retry(number, &request)).await.map(Json)
}

async fn cancel_task(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath((number, task)): InPath<(String, String)>,
) -> Result<Json<TasksCancelled>, ApiError> {
    let number = numbered(&number)?;
    ask(&shared, move |agent| agent.cancel(number, Some(&task))).await.map(Json)
}

async fn configure(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<ConfigureRequest>,
) -> Result<Json<Vec<SpeculationOption>>, ApiError> {
    ask(&shared, move |agent| agent.configure(&request)).await.map(Json)
}
