//! The metrics that Prometheus scrapes: the timer lane, presence, runners' connections and the log
//! of every devnet, and speculation if an agent runs.

use crate::api::{
    backend::ValidatorSlot, connection_metrics, error::ApiError, route::Route, state::ServerState,
    view::View,
};
use axum::{
    extract::State,
    http::{Method, header::CONTENT_TYPE},
    response::IntoResponse,
};
use cowboy_host::{http::openapi::Operation, log, openmetrics};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    let summary = "Metrics of the timer lane, presence and connections, and of speculation where the devnet has an agent";
    let operation = Operation::new(summary).one_as::<String>(200, "application/openmetrics-text");
    vec![Route::new(Method::GET, "/metrics", metrics, operation)]
}

/// While no validator runs, the lane's metrics stay as they were.
async fn metrics(State(shared): State<Arc<ServerState>>) -> Result<impl IntoResponse, ApiError> {
    let read = shared.blocking(|backend| {
        let mut parts = Vec::new();
        if let Ok(view) = View::of(backend.clone(), None) {
            backend.lane.follow(view.store(), &view.state, backend.begun())?;
            let own = connection_metrics::part(&view)?;
            parts.push(backend.slots().iter().fold(own, |part, slot| of_process(part, slot)));
        }
        parts.push(backend.lane.encode());
        parts.push(of_log());
        parts.extend(backend.speculation().map(|agent| agent.metrics()));
        Ok(openmetrics::whole(&parts))
    });
    let text = read.await?;
    Ok(([(CONTENT_TYPE, openmetrics::CONTENT_TYPE)], text))
}

/// Adds what the process of a validator that has one of its own says of its connections.
fn of_process(part: String, slot: &ValidatorSlot) -> String {
    let metrics = slot.running().and_then(|running| running.node.metrics());
    let Some(theirs) = metrics else { return part };
    let label = format!("validator=\"{}\"", slot.name());
    openmetrics::with_series(&part, &theirs, |line| line.contains(&label))
}

fn of_log() -> String {
    let mut registry = Registry::with_prefix("devnet");
    let lost: Counter = Counter::default();
    lost.inc_by(log::lost());
    registry.register("log_lines_lost", "Lines of the log that could not be written", lost);
    openmetrics::part(&registry)
}
