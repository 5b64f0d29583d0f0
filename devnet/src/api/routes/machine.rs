//! The machine that runs the chain's actors in Python, for hosts that do not have it.

use crate::{
    api::{error::ApiError, route::Route, state::ServerState, view::View},
    machines,
};
use axum::{
    extract::State,
    http::{Method, header::CONTENT_TYPE},
    response::IntoResponse,
};
use cowboy_host::http::openapi::Operation;
use std::sync::Arc;

const OCTETS: &str = "application/octet-stream";

pub(super) fn table() -> Vec<Route> {
    let summary = "The component of the machine that runs the chain's actors in Python: 22 MB of WebAssembly, which the receiver checks and compiles";
    let operation = Operation::new(summary).one_as::<String>(200, OCTETS);
    vec![Route::new(Method::GET, "/v1/machine", component, operation)]
}

async fn component(State(shared): State<Arc<ServerState>>) -> Result<impl IntoResponse, ApiError> {
    let read = shared.blocking(|backend| {
        let view = View::of(backend, None)?;
        let Some(terms) = view.state.params().python else {
            return Err(ApiError::not_found("this chain has no machine for actors in Python"));
        };
        machines::component(&terms.tuple).map_err(|error| ApiError::internal(error.to_string()))
    });
    Ok(([(CONTENT_TYPE, OCTETS)], read.await?))
}
