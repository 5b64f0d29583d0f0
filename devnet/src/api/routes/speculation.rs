//! Pipelines of tasks: requests to the devnet's agent.

use super::{Nothing, Route};
use crate::api::{
    backend::Speculation,
    error::ApiError,
    extract::{Authorized, InBody, InPath, InQuery},
    feed,
    openapi::{Operation, RouteAnswer},
    server::ServerState,
    types::{
        ConfigureRequest, OfPipelineQuery, Pipeline, PipelineAccepted, PipelineQuery,
        PipelineRequest, PipelineSummary, RetryRequest, Rollback, SpeculationEvent,
        SpeculationEventPage, SpeculationEventQuery, SpeculationOption, SpeculationStatus,
        SpeculativeCommitment, SpeculativeProof, TaskDetail, TasksCancelled, TasksRetried,
        speculation_event_kinds,
    },
};
use axum::{
    Json,
    extract::State,
    http::{Method, StatusCode},
    response::IntoResponse,
    routing::{get, post},
};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;
use utoipa::IntoParams;

/// Every route of speculation.
pub(super) fn table() -> Vec<Route> {
    vec![
        read(
            "/v1/speculation",
            "The state of speculation",
            RouteAnswer::one::<SpeculationStatus>(),
            |agent, (), Nothing {}| Ok(agent.status()),
        ),
        read(
            "/v1/speculation/pipelines",
            "Pipelines, newest first",
            RouteAnswer::many::<PipelineSummary>(),
            |agent, (), query: PipelineQuery| Ok(agent.pipelines(&query)),
        ),
        Route {
            method: Method::POST,
            path: "/v1/speculation/pipelines",
            handler: post(submit),
            operation: Operation::new(
                "Has the agent run a pipeline",
                RouteAnswer::accepted::<PipelineAccepted>(),
            )
            .body::<PipelineRequest>()
            .needs_token(),
        },
        read(
            "/v1/speculation/pipelines/{pipeline}",
            "A pipeline with its graph",
            RouteAnswer::one::<Pipeline>(),
            |agent, number: String, Nothing {}| agent.pipeline(numbered(&number)?),
        ),
        Route {
            method: Method::POST,
            path: "/v1/speculation/pipelines/{pipeline}/cancel",
            handler: post(cancel),
            operation: Operation::new(
                "Cancels the tasks of a pipeline that are not final",
                RouteAnswer::one::<TasksCancelled>(),
            )
            .needs_token(),
        },
        Route {
            method: Method::POST,
            path: "/v1/speculation/pipelines/{pipeline}/retry",
            handler: post(retry),
            operation: Operation::new(
                "Retries tasks that failed or were rolled back",
                RouteAnswer::one::<TasksRetried>(),
            )
            .body::<RetryRequest>()
            .needs_token(),
        },
        read(
            "/v1/speculation/tasks/{pipeline}/{task}",
            "A task with its output",
            RouteAnswer::one::<TaskDetail>(),
            |agent, (number, task): (String, String), Nothing {}| {
                agent.task(numbered(&number)?, &task)
            },
        ),
        Route {
            method: Method::POST,
            path: "/v1/speculation/tasks/{pipeline}/{task}/cancel",
            handler: post(cancel_task),
            operation: Operation::new(
                "Cancels a task with those that depend on it",
                RouteAnswer::one::<TasksCancelled>(),
            )
            .needs_token(),
        },
        read(
            "/v1/speculation/commitments",
            "Commitments to outputs, the newest pipelines' first",
            RouteAnswer::many::<SpeculativeCommitment>(),
            |agent, (), query: OfPipelineQuery| agent.commitments(&query),
        ),
        read(
            "/v1/speculation/proofs",
            "Proofs, the newest pipelines' first",
            RouteAnswer::many::<SpeculativeProof>(),
            |agent, (), query: OfPipelineQuery| agent.proofs(&query),
        ),
        read(
            "/v1/speculation/rollbacks",
            "Rollbacks, newest first",
            RouteAnswer::many::<Rollback>(),
            |agent, (), query: OfPipelineQuery| agent.rollbacks(&query),
        ),
        read(
            "/v1/speculation/events",
            "A page of the kept events from the components of speculation, oldest first",
            RouteAnswer::one::<SpeculationEventPage>(),
            |agent, (), query: SpeculationEventQuery| {
                check_events(&query)?;
                Ok(agent.events(&query))
            },
        ),
        Route {
            method: Method::GET,
            path: "/v1/speculation/events/stream",
            handler: get(feed::feed),
            operation: Operation::new(
                "Events from the components of speculation as they happen: of type `speculation`, \
                 with their numbers as ids; one of type `replaced` ends a stream that makes room \
                 for another",
                RouteAnswer::stream::<SpeculationEvent>(),
            )
            .query::<SpeculationEventQuery>()
            .header(
                "Last-Event-ID",
                "The number of the last event seen: the stream continues after it",
            ),
        },
        read(
            "/v1/speculation/config",
            "Every option of speculation",
            RouteAnswer::many::<SpeculationOption>(),
            |agent, (), Nothing {}| Ok(agent.options()),
        ),
        Route {
            method: Method::POST,
            path: "/v1/speculation/config",
            handler: post(configure),
            operation: Operation::new(
                "Changes options until the devnet stops: all of them, or none",
                RouteAnswer::many::<SpeculationOption>(),
            )
            .body::<ConfigureRequest>()
            .needs_token(),
        },
    ]
}

/// Checks that the kind in a query exists.
pub(in crate::api) fn check_events(query: &SpeculationEventQuery) -> Result<(), ApiError> {
    let Some(kind) = &query.kind else { return Ok(()) };
    if speculation_event_kinds().any(|one| one == kind) {
        return Ok(());
    }
    let all: Vec<_> = speculation_event_kinds().collect();
    Err(ApiError::bad_request(format!("`{kind:.40}` is not a kind: expected {}", all.join(", "))))
}

/// A read from the agent.
fn read<P, Q, T>(
    path: &'static str,
    summary: &'static str,
    answer: RouteAnswer,
    read: fn(&dyn Speculation, P, Q) -> Result<T, ApiError>,
) -> Route
where
    P: DeserializeOwned + Send + 'static,
    Q: DeserializeOwned + IntoParams + Send + 'static,
    T: Serialize + Send + 'static,
{
    let handler = async move |State(shared): State<Arc<ServerState>>,
                              InPath(path): InPath<P>,
                              InQuery(query): InQuery<Q>| {
        ask(&shared, move |agent| Ok(Json(read(agent, path, query)?).into_response())).await
    };
    let operation = Operation::new(summary, answer).query::<Q>();
    Route { method: Method::GET, path, handler: get(handler), operation }
}

/// Calls the agent on a blocking thread, so that the call does not hold up other requests.
async fn ask<T: Send + 'static>(
    shared: &ServerState,
    call: impl FnOnce(&dyn Speculation) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    shared
        .blocking(move |backend| match backend.speculation() {
            Some(agent) => call(agent.as_ref()),
            None => Err(ApiError::not_found("this devnet has no agent: it runs no pipelines")),
        })
        .await
}

fn numbered(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!("`{text:.40}` is not a pipeline's number"))
            .hint("list them: cowboyctl speculation ls")
    })
}

/// `POST /v1/speculation/pipelines`
async fn submit(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<PipelineRequest>,
) -> Result<(StatusCode, Json<PipelineAccepted>), ApiError> {
    let accepted = ask(&shared, |agent| agent.submit(request)).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// `POST /v1/speculation/pipelines/{pipeline}/cancel`
async fn cancel(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(number): InPath<String>,
) -> Result<Json<TasksCancelled>, ApiError> {
    let number = numbered(&number)?;
    ask(&shared, move |agent| agent.cancel(number, None)).await.map(Json)
}

/// `POST /v1/speculation/pipelines/{pipeline}/retry`
async fn retry(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(number): InPath<String>,
    InBody(request): InBody<RetryRequest>,
) -> Result<Json<TasksRetried>, ApiError> {
    let number = numbered(&number)?;
    ask(&shared, move |agent| agent.retry(number, &request)).await.map(Json)
}

/// `POST /v1/speculation/tasks/{pipeline}/{task}/cancel`
async fn cancel_task(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath((number, task)): InPath<(String, String)>,
) -> Result<Json<TasksCancelled>, ApiError> {
    let number = numbered(&number)?;
    ask(&shared, move |agent| agent.cancel(number, Some(&task))).await.map(Json)
}

/// `POST /v1/speculation/config`
async fn configure(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<ConfigureRequest>,
) -> Result<Json<Vec<SpeculationOption>>, ApiError> {
    ask(&shared, move |agent| agent.configure(&request)).await.map(Json)
}
