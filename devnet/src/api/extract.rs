//! Extractors for requests that refuse with the API's own error bodies.

use super::{error::ApiError, state::ServerState};
use axum::{
    Json,
    body::{Body, to_bytes},
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderMap, header::AUTHORIZATION, request::Parts},
};
use cowboy_host::http::bearer::{bearer, is_token};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use utoipa::{
    IntoParams,
    openapi::{KnownFormat, Object, RefOr, Schema, SchemaFormat, path::Parameter},
};

/// The longest accepted body, in bytes: it fits a transaction of the maximum size, which is twice
/// as long in hex.
pub(super) const BODY_LIMIT: usize = 2 << 20;

pub(super) struct InPath<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<ServerState>> for InPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<ServerState>,
    ) -> Result<Self, ApiError> {
        let Path(value) = Path::from_request_parts(parts, shared).await?;
        Ok(Self(value))
    }
}

pub(super) struct InQuery<T>(pub T);

impl<T: DeserializeOwned + IntoParams> FromRequestParts<Arc<ServerState>> for InQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<ServerState>,
    ) -> Result<Self, ApiError> {
        let found = Query::from_request_parts(parts, shared).await;
        let Query(value) = found.map_err(|rejection| {
            let text = rejection.body_text();
            match text.strip_suffix(NO_ROOM) {
                Some(before) => {
                    let most = highest(&T::into_params(|| None), before);
                    ApiError::bad_request(format!("{before}expected a number from 0 to {most}"))
                }
                None => rejection.into(),
            }
        })?;
        Ok(Self(value))
    }
}

/// Rust's error about a number that overflows its type.
const NO_ROOM: &str = "number too large to fit in target type";

/// The maximum of the parameter that `text` names before its last colon.
fn highest(all: &[Parameter], text: &str) -> u64 {
    let name = text.trim_end_matches([':', ' ']).rsplit(' ').next();
    let schema = all.iter().find(|one| Some(one.name.as_str()) == name);
    match schema.and_then(|one| one.schema.as_ref()) {
        Some(RefOr::T(Schema::Object(Object {
            format: Some(SchemaFormat::KnownFormat(KnownFormat::Int32)),
            ..
        }))) => u32::MAX.into(),
        _ => u64::MAX,
    }
}

/// The body, which must be a JSON object: serde would also accept an array of a structure's fields.
pub(super) struct InBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<ServerState>> for InBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<ServerState>) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, BODY_LIMIT).await;
        let body =
            body.map_err(|error| ApiError::bad_request(format!("the body is cut off: {error}")))?;
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        if first.is_some_and(|first| *first != b'{') {
            return Err(ApiError::bad_request("the body is not a JSON object"));
        }
        let request = Request::from_parts(parts, Body::from(body));
        let Json(value) = Json::from_request(request, shared).await?;
        Ok(Self(value))
    }
}

/// Proof that the request shows the token. It comes first among a handler's arguments, so that a
/// request without the token is not examined further.
pub(super) struct Authorized;

impl FromRequestParts<Arc<ServerState>> for Authorized {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        shared: &Arc<ServerState>,
    ) -> Result<Self, ApiError> {
        authorize(&parts.headers, &shared.backend.token).map(|()| Self)
    }
}

pub(crate) fn authorize(headers: &HeaderMap, expected: &str) -> Result<(), ApiError> {
    if !headers.contains_key(AUTHORIZATION) {
        return Err(ApiError::unauthorized("the request changes state and shows no token"));
    }
    if !bearer(headers).is_some_and(|token| is_token(expected, token)) {
        return Err(ApiError::unauthorized("the token shown is not this devnet's"));
    }
    Ok(())
}
