//! The metrics that Prometheus scrapes: the timer lane, presence, runners' connections and the log
//! of every devnet, and speculation if an agent runs.

use super::Route;
use crate::{
    api::{
        connection_metrics,
        error::ApiError,
        openapi::{Operation, RouteAnswer},
        server::ServerState,
        view::View,
    },
    log, openmetrics,
};
use axum::{
    extract::State,
    http::{Method, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::sync::Arc;

/// The only route of this module.
pub(super) fn route() -> Route {
    let summary = "Metrics of the timer lane, presence and connections, and of speculation where the devnet has an agent";
    Route {
        method: Method::GET,
        path: "/metrics",
        handler: get(metrics),
        operation: Operation::new(summary, RouteAnswer::metrics()),
    }
}

/// `GET /metrics`
async fn metrics(State(shared): State<Arc<ServerState>>) -> Result<impl IntoResponse, ApiError> {
    let read = shared.blocking(|backend| {
        let mut parts = Vec::new();
        // While no validator runs, the lane's metrics stay as they were.
        if let Ok(view) = View::of(backend.clone(), None) {
            backend.lane.follow(&view)?;
            parts.push(connection_metrics::part(&view)?);
        }
        parts.push(backend.lane.encode());
        parts.push(of_log());
        parts.extend(backend.speculation().map(|agent| agent.metrics()));
        Ok(openmetrics::whole(&parts))
    });
    let text = read.await?;
    Ok(([(CONTENT_TYPE, openmetrics::CONTENT_TYPE)], text))
}

/// The metrics of the process's own log.
fn of_log() -> String {
    let mut registry = Registry::with_prefix("devnet");
    let lost: Counter = Counter::default();
    lost.inc_by(log::lost());
    registry.register("log_lines_lost", "Lines of the log that could not be written", lost);
    openmetrics::part(&registry)
}
