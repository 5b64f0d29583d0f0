//! Rows of the tables from which the router and the OpenAPI document are built.
//!
//! A handler of a read is a plain function from a [`Source`] (a [`View`] of one validator's chain,
//! or a [`Glance`] at the whole devnet) and the request's parameters to the answer. It runs on a
//! thread that may block.

use super::{
    backend::Backend,
    error::ApiError,
    extract::{InBody, InPath, InQuery},
    state::ServerState,
    view::{Glance, View},
};
use crate::types::NodeQuery;
use axum::{
    Json,
    extract::State,
    handler::Handler,
    http::{Method, StatusCode},
    routing::{MethodFilter, MethodRouter, on},
};
use cowboy_host::http::openapi::Operation;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The name of the token's security scheme.
pub(super) const TOKEN: &str = "token";

pub(super) struct Route {
    pub method: Method,
    pub path: &'static str,
    pub handler: MethodRouter<Arc<ServerState>>,
    pub operation: Operation,
}

impl Route {
    pub fn new<H: Handler<T, Arc<ServerState>>, T: 'static>(
        method: Method,
        path: &'static str,
        handler: H,
        operation: Operation,
    ) -> Self {
        let filter = MethodFilter::try_from(method.clone()).expect("a method that axum routes");
        Self { method, path, handler: on(filter, handler), operation }
    }
}

/// A `POST` that changes state, whose handler is [`Authorized`](super::extract::Authorized).
pub(super) fn act<H: Handler<T, Arc<ServerState>>, T: 'static>(
    path: &'static str,
    handler: H,
    operation: Operation,
) -> Route {
    Route::new(Method::POST, path, handler, operation.token(TOKEN))
}

/// A `POST` of a runner, whose signature in the body replaces the token.
pub(super) fn signed<Q: Asked + ToSchema, T: Serialize + ToSchema + Send + 'static>(
    path: &'static str,
    summary: &'static str,
    take: fn(&View, &str, Q) -> Result<T, ApiError>,
) -> Route {
    let handler = async move |State(shared): State<Arc<ServerState>>,
                              InPath(runner): InPath<String>,
                              InBody(request): InBody<Q>| {
        let answer = move |backend| take(&View::of(backend, None)?, &runner, request);
        shared.blocking(answer).await.map(|taken| (StatusCode::ACCEPTED, Json(taken)))
    };
    let operation = Operation::new(summary).one::<T>(202).body::<Q>();
    Route::new(Method::POST, path, handler, operation)
}

pub(super) trait Source: Sized + 'static {
    type Choice: DeserializeOwned + IntoParams + Send + 'static;

    fn choose(backend: Arc<Backend>, choice: &Self::Choice) -> Result<Self, ApiError>;
}

impl Source for View {
    type Choice = NodeQuery;

    fn choose(backend: Arc<Backend>, choice: &NodeQuery) -> Result<Self, ApiError> {
        Self::of(backend, choice.node.as_deref())
    }
}

impl Source for Glance {
    type Choice = NodeQuery;

    fn choose(backend: Arc<Backend>, choice: &NodeQuery) -> Result<Self, ApiError> {
        Self::of(backend, choice.node.as_deref())
    }
}

/// No parameters in the query besides the source's.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Nothing {}

pub(super) trait Asked: DeserializeOwned + Send + 'static {}

impl<T: DeserializeOwned + Send + 'static> Asked for T {}

/// A function that reads from its source alone, or with parameters of the path, or also with those
/// of the query. `Arguments` are all of them.
pub(super) trait Read<S, P, Q, T, Arguments>: Copy + Send + Sync + 'static {
    fn read(self, source: &S, path: P, query: Q) -> Result<T, ApiError>;
}

impl<S, T, F> Read<S, (), Nothing, T, (S,)> for F
where
    F: Fn(&S) -> Result<T, ApiError> + Copy + Send + Sync + 'static,
{
    fn read(self, source: &S, (): (), _: Nothing) -> Result<T, ApiError> {
        self(source)
    }
}

impl<S, P, T, F> Read<S, P, Nothing, T, (S, P)> for F
where
    F: Fn(&S, P) -> Result<T, ApiError> + Copy + Send + Sync + 'static,
{
    fn read(self, source: &S, path: P, _: Nothing) -> Result<T, ApiError> {
        self(source, path)
    }
}

impl<S, P, Q, T, F> Read<S, P, Q, T, (S, P, Q)> for F
where
    F: Fn(&S, P, Q) -> Result<T, ApiError> + Copy + Send + Sync + 'static,
{
    fn read(self, source: &S, path: P, query: Q) -> Result<T, ApiError> {
        self(source, path, query)
    }
}

pub(super) fn one<
    S: Source,
    P: Asked,
    Q: Asked + IntoParams,
    T: Serialize + ToSchema + 'static,
    A,
>(
    path: &'static str,
    summary: &'static str,
    read: impl Read<S, P, Q, T, A>,
) -> Route {
    reads(path, Operation::new(summary).one::<T>(200), read)
}

pub(super) fn many<S, P, Q, T, A>(
    path: &'static str,
    summary: &'static str,
    read: impl Read<S, P, Q, Vec<T>, A>,
) -> Route
where
    S: Source,
    P: Asked,
    Q: Asked + IntoParams,
    T: Serialize + ToSchema + 'static,
{
    reads(path, Operation::new(summary).many::<T>(), read)
}

fn reads<S: Source, P: Asked, Q: Asked + IntoParams, T: Serialize + 'static, A>(
    path: &'static str,
    operation: Operation,
    read: impl Read<S, P, Q, T, A>,
) -> Route {
    let handler = async move |State(shared): State<Arc<ServerState>>,
                              InPath(path): InPath<P>,
                              InQuery(choice): InQuery<S::Choice>,
                              InQuery(query): InQuery<Q>| {
        let answer = move |backend| read.read(&S::choose(backend, &choice)?, path, query);
        shared.answer(answer).await
    };
    let operation = operation.query::<S::Choice>().query::<Q>();
    Route::new(Method::GET, path, handler, operation)
}
