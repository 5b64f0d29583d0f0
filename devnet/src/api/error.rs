//! Refusals of requests, and their responses.

use crate::{
    chain::mempool::MempoolError,
    storage::StorageError,
    topology::FAUCET,
    types::{ErrorBody, ErrorCode, ErrorDetail, ParseError},
};
use axum::{
    Json,
    extract::rejection::{JsonRejection, PathRejection, QueryRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use cowboy_engine::primitives::Shortfall;
use std::fmt;

/// A hint with the command that transfers the missing amount to an account with too little.
pub fn funding(short: &Shortfall, payer: Option<&str>) -> String {
    let amount = short.to_fund();
    match payer {
        Some(FAUCET) => {
            format!("give some back to it: cowboyctl account transfer FROM {FAUCET} {amount}cby")
        }
        Some(name) => format!("give it some: cowboyctl account fund {name} {amount}cby"),
        None => format!("give it some: cowboyctl account fund {} {amount}cby", short.payer),
    }
}

/// A refusal: the body's content, and its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    detail: ErrorDetail,
    status: StatusCode,
}

impl ApiError {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(code.status()).expect("the codes have HTTP statuses");
        let detail = ErrorDetail { code, name: None, message: message.into(), hint: None };
        Self { detail, status }
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// The request cannot be served now, or not by this validator.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Conflict, message)
    }

    /// The object no longer exists. `text` starts with the error's name and a colon.
    pub fn gone(text: impl Into<String>) -> Self {
        Self::named(ErrorCode::Gone, text.into())
    }

    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unauthorized, message)
            .hint("send `Authorization: Bearer <token>`; the token is in the devnet's `token` file")
    }

    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Timeout, message)
    }

    /// A fault of the devnet.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// The chain's rules refuse the transaction. `text` starts with the error's name and a colon.
    pub fn rejected(text: impl Into<String>) -> Self {
        Self::named(ErrorCode::Rejected, text.into())
    }

    fn named(code: ErrorCode, text: String) -> Self {
        let name = text.split_once(':').map(|(name, _)| name.to_owned());
        let mut error = Self::new(code, text);
        error.detail.name = name;
        error
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.detail.hint = Some(hint.into());
        self
    }

    pub const fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub const fn detail(&self) -> &ErrorDetail {
        &self.detail
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail.message)
    }
}

impl std::error::Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(ErrorBody { error: self.detail })).into_response()
    }
}

/// The refusal of a node, passed on.
impl From<ErrorDetail> for ApiError {
    fn from(detail: ErrorDetail) -> Self {
        Self { status: Self::new(detail.code, "").status, detail }
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        tracing::error!(%error, "a request could not be answered");
        Self::internal(error.to_string())
    }
}

impl From<MempoolError> for ApiError {
    fn from(error: MempoolError) -> Self {
        Self::rejected(error.to_string())
    }
}

impl From<ParseError> for ApiError {
    fn from(error: ParseError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::bad_request(with_bounds(&rejection.body_text()))
    }
}

/// The first 80 characters of a request's text, escaped, so that an error fits on one line.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_default).collect()
}

/// Integer types by the name that serde uses in errors, with their bounds.
const INTEGERS: [(&str, i128, i128); 7] = [
    ("u8", 0, u8::MAX as i128),
    ("u16", 0, u16::MAX as i128),
    ("u32", 0, u32::MAX as i128),
    ("u64", 0, u64::MAX as i128),
    ("usize", 0, usize::MAX as i128),
    ("i32", i32::MIN as i128, i32::MAX as i128),
    ("i64", i64::MIN as i128, i64::MAX as i128),
];

/// Serde's error about a number, with the bounds in place of the type's name.
fn with_bounds(text: &str) -> String {
    INTEGERS.iter().fold(text.to_owned(), |text, (name, least, most)| {
        let expected = format!("expected a number from {least} to {most}");
        let middle = text.replace(&format!("expected {name} "), &format!("{expected} "));
        match middle.strip_suffix(&format!("expected {name}")) {
            Some(before) => format!("{before}{expected}"),
            None => middle,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_with_their_bounds() {
        let check = |text: &str, expected: &str| assert_eq!(with_bounds(text), expected);
        check(
            "percent: invalid value: integer `300`, expected u8 at line 1 column 9",
            "percent: invalid value: integer `300`, expected a number from 0 to 255 at line 1 column 9",
        );
        check(
            "invalid value: integer `-1`, expected u64",
            "invalid value: integer `-1`, expected a number from 0 to 18446744073709551615",
        );
        check(
            "invalid type: string \"a\", expected unit",
            "invalid type: string \"a\", expected unit",
        );
    }
}
