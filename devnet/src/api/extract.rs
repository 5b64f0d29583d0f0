//! What handlers take from a request, refused with the API's own error bodies.

use super::{
    error::ApiError,
    server::{BODY_LIMIT, Shared},
    view,
};
use axum::{
    Json,
    body::{Body, to_bytes},
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{HeaderMap, header::AUTHORIZATION, request::Parts},
};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The parameters in the path.
pub(super) struct InPath<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Shared>> for InPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let Path(value) = Path::from_request_parts(parts, shared).await?;
        Ok(Self(value))
    }
}

/// The parameters in the query.
pub(super) struct InQuery<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Shared>> for InQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let Query(value) = Query::from_request_parts(parts, shared).await?;
        Ok(Self(value))
    }
}

/// The body, as a JSON object. Serde would take an array for a structure too, field by field.
pub(super) struct InBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for InBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, BODY_LIMIT).await;
        let body =
            body.map_err(|error| ApiError::bad_request(format!("the body breaks off: {error}")))?;
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        if first.is_some_and(|first| *first != b'{') {
            return Err(ApiError::bad_request("the body is not a JSON object"));
        }
        let request = Request::from_parts(parts, Body::from(body));
        let Json(value) = Json::from_request(request, shared).await?;
        Ok(Self(value))
    }
}

/// Proof that the request shows the token. First among a handler's arguments, so that nothing else
/// of the request is looked at without one.
pub(super) struct Authorized;

impl FromRequestParts<Arc<Shared>> for Authorized {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, ApiError> {
        authorize(&parts.headers, &shared.backend.token).map(|()| Self)
    }
}

/// Whether a request shows this token.
pub(crate) fn authorize(headers: &HeaderMap, expected: &str) -> Result<(), ApiError> {
    let header = headers
        .get(AUTHORIZATION)
        .ok_or_else(|| ApiError::unauthorized("the request changes state and shows no token"))?;
    let (scheme, token) = header.as_bytes().split_at(header.len().min(BEARER.len()));
    if !scheme.eq_ignore_ascii_case(BEARER) || !view::shows_token(expected, token) {
        return Err(ApiError::unauthorized("the token shown is not this devnet's"));
    }
    Ok(())
}

const BEARER: &[u8] = b"bearer ";
