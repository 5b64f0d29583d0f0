//! Injected faults.

use crate::api::{
    error::ApiError,
    extract::{Authorized, InBody, InPath},
    faults,
    server::ServerState,
    types::{Fault, FaultRequest},
    view::Glance,
};
use axum::{Json, extract::State};
use std::sync::Arc;

/// `GET /v1/faults`
pub(super) fn list(glance: &Glance) -> Vec<Fault> {
    faults::list(&glance.backend)
}

/// `POST /v1/faults`
pub(super) async fn lay(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(request): InBody<FaultRequest>,
) -> Result<Json<Fault>, ApiError> {
    let backend = shared.backend.clone();
    // A separate task, so that a killed node always gets its fault, even if the client no longer
    // waits: the fault heals it.
    let task = tokio::spawn(async move { faults::lay(&backend, &request).await });
    task.await.map_err(|error| ApiError::internal(error.to_string()))?.map(Json)
}

/// `DELETE /v1/faults`
pub(super) async fn heal_all(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
) -> Result<Json<Vec<Fault>>, ApiError> {
    faults::heal_some(&shared.backend, None).await.map(Json)
}

/// `DELETE /v1/faults/{fault}`
pub(super) async fn heal(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(fault): InPath<String>,
) -> Result<Json<Vec<Fault>>, ApiError> {
    faults::heal_some(&shared.backend, Some(&fault)).await.map(Json)
}
