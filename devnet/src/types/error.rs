//! The body of unsuccessful responses.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every response that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The failure.
    pub error: ErrorDetail,
}

/// A failure, for programs (`code`, `name`) and for people (`message`, `hint`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The class of the failure.
    pub code: ErrorCode,
    /// The protocol error's name, as `InsufficientFunds`: present when the chain refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The failure in words, and its subject; one line.
    pub message: String,
    /// How to fix it; one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The class of a failure; each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 404: no such block, account, job, node or route.
    NotFound,
    /// 422: the chain's rules refuse the transaction.
    Rejected,
    /// 503: the validator asked is stopped, or has not reached that block yet.
    Unavailable,
    /// 400: a malformed parameter or body.
    BadRequest,
    /// 401: a missing or wrong token.
    Unauthorized,
    /// 410: the chain has removed it, or the validator no longer keeps it.
    Gone,
    /// 409: the request contradicts the state, for example by starting a running validator.
    Conflict,
    /// 504: not done within the server's time limit.
    Timeout,
    /// 500: a fault of the devnet itself.
    Internal,
}

impl ErrorCode {
    /// The HTTP status that carries the code.
    pub const fn status(self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::Rejected => 422,
            Self::Unavailable => 503,
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Conflict => 409,
            Self::Gone => 410,
            Self::Timeout => 504,
            Self::Internal => 500,
        }
    }
}
