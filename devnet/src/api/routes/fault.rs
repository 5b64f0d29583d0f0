//! Injected faults.

use crate::{
    api::{
        error::ApiError,
        extract::{Authorized, InBody, InPath},
        faults,
        route::{Route, TOKEN, act, many},
        state::ServerState,
        view::Glance,
    },
    types::{Fault, FaultOrders, FaultRequest},
};
use axum::{Json, extract::State, http::Method};
use cowboy_host::http::openapi::Operation;
use std::sync::Arc;

pub(super) fn table() -> Vec<Route> {
    vec![
        many("/v1/faults", "The injected faults in force, oldest first", |glance: &Glance| {
            Ok(list(glance))
        }),
        act(
            "/v1/faults",
            lay,
            Operation::new("Injects a fault; one of the same kind at the same place is replaced")
                .one::<Fault>(200)
                .body::<FaultRequest>(),
        ),
        act(
            "/v1/faults/orders",
            carry_out,
            Operation::new("Replaces the faults of a node by those that its devnet has")
                .many::<Fault>()
                .body::<FaultOrders>(),
        ),
        Route::new(
            Method::DELETE,
            "/v1/faults",
            heal_all,
            Operation::new("Heals every fault").many::<Fault>().token(TOKEN),
        ),
        Route::new(
            Method::DELETE,
            "/v1/faults/{fault}",
            heal,
            Operation::new("Heals the fault with a number, or the faults of a node")
                .many::<Fault>()
                .token(TOKEN),
        ),
    ]
}

pub(super) fn list(glance: &Glance) -> Vec<Fault> {
    faults::list(&glance.backend)
}

async fn lay(
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

async fn carry_out(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InBody(orders): InBody<FaultOrders>,
) -> Result<Json<Vec<Fault>>, ApiError> {
    shared.blocking(move |backend| faults::carry_out(&backend, &orders)).await.map(Json)
}

async fn heal_all(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
) -> Result<Json<Vec<Fault>>, ApiError> {
    faults::heal_some(&shared.backend, None).await.map(Json)
}

async fn heal(
    _: Authorized,
    State(shared): State<Arc<ServerState>>,
    InPath(fault): InPath<String>,
) -> Result<Json<Vec<Fault>>, ApiError> {
    faults::heal_some(&shared.backend, Some(&fault)).await.map(Json)
}
