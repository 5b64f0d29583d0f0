//! Routes of runs: submit, list, show, cancel; and the server's status.

use super::{
    Context, Route, created,
    error::Refused,
    extract::{Access, Asked},
    json,
    openapi::metrics_answer,
};
use crate::messages::{Config, Health, NewRun, PageQuery, Run, RunSummary, Status};
use axum::{
    http::{Method, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use cowboy_host::{http::openapi::Operation, openmetrics};
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Operator;
    vec![
        Route::new(Method::POST, "/api/v1/runs", operator, submit).documented(
            Operation::new("Submits a run: all of its jobs or none")
                .body::<NewRun>()
                .one::<Run>(201)
                .refuses(409),
        ),
        Route::new(Method::GET, "/api/v1/runs", operator, list).documented(
            Operation::new("Runs, newest first").query::<PageQuery>().many::<RunSummary>(),
        ),
        Route::new(Method::GET, "/api/v1/runs/{run}", operator, show)
            .documented(Operation::new("A run with its jobs").one::<Run>(200)),
        Route::new(Method::POST, "/api/v1/runs/{run}/cancel", operator, cancel).documented(
            Operation::new("Cancels every job of a run that has not ended").one::<Run>(200),
        ),
        Route::new(Method::GET, "/api/v1/status", operator, status)
            .documented(Operation::new("The server's load and configuration").one::<Status>(200)),
        Route::new(Method::GET, "/metrics", operator, metrics).documented(
            Operation::new("Metrics of jobs, leases and runners, as Prometheus reads them")
                .answer(200, metrics_answer()),
        ),
        Route::new(Method::GET, "/api/v1/health", Access::Public, health).documented(
            Operation::new("Whether the server accepts changes")
                .one::<Health>(200)
                .one::<Health>(503),
        ),
    ]
}

async fn submit(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let run: NewRun = asked.json()?;
    let run = context.service.submit(run).await?;
    let run = context.service.read(move |reader| reader.run(&run)).await?;
    // The run has just been written, so it exists.
    Ok(created(&run.ok_or_else(Refused::internal)?))
}

async fn list(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let limit = asked.limit()?;
    Ok(json(&context.service.read(move |reader| reader.runs(limit)).await?))
}

async fn show(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    let run = asked.segment("run").to_owned();
    let run = context.service.read(move |reader| reader.run(&run)).await?;
    Ok(json(&run.ok_or_else(|| Refused::not_found("there is no such run"))?))
}

async fn cancel(context: Arc<Context>, asked: Asked) -> Result<Response, Refused> {
    context.service.cancel_run(asked.segment("run").to_owned()).await?;
    show(context, asked).await
}

async fn status(context: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    let counts = context.service.counts().await?;
    let config = context.service.config();
    Ok(json(&Status {
        jobs: counts.states,
        queued: counts.queued,
        waiting_runners: context.service.waiting() as u64,
        config: Config {
            lease_ttl_seconds: config.lease_ttl_seconds,
            heartbeat_interval_seconds: config.heartbeat_interval_seconds,
            ack_timeout_seconds: config.ack_timeout_seconds,
            cancel_deadline_seconds: config.cancel_deadline_seconds,
            max_runtime_seconds: config.max_runtime_seconds,
            grace_seconds: config.grace_seconds,
            max_attempts: config.max_attempts,
        },
    }))
}

async fn metrics(context: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    let text = context.service.metrics().await?;
    Ok(([(CONTENT_TYPE, openmetrics::CONTENT_TYPE)], text).into_response())
}

async fn health(context: Arc<Context>, _: Asked) -> Result<Response, Refused> {
    let reason = context.service.trouble();
    let status = reason.map_or(StatusCode::OK, |_| StatusCode::SERVICE_UNAVAILABLE);
    Ok((status, json(&Health { ok: reason.is_none(), reason })).into_response())
}
