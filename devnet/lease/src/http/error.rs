//! Refusals and the responses for them. Their texts are fixed and show nothing of the server's
//! internals.

use super::super::{
    check::{Fault, FaultKind},
    files::{FileError, NameError},
    messages::{ErrorBody, ErrorCode, ErrorDetail, MAX_SCHEDULES, StaleLease, StaleLeaseTag},
    service::ServiceError,
};
use crate::machine::{Refusal, Stale};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE},
    response::{IntoResponse, Response},
};

#[derive(Debug)]
pub(super) enum Refused {
    Error(StatusCode, ErrorDetail),
    Stale {
        lease_id: String,
        reason: Stale,
        /// Whether the request is a heartbeat, whose answer has more fields.
        heartbeat: bool,
    },
}

impl Refused {
    pub fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error(status, ErrorDetail { code, field: None, message: message.into() })
    }

    pub fn field(code: ErrorCode, field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (Some(field.into()), message.into());
        Self::Error(StatusCode::BAD_REQUEST, ErrorDetail { code, field, message })
    }

    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::field(ErrorCode::InvalidField, field, message)
    }

    pub fn not_found(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
    }

    pub fn too_large(code: ErrorCode, message: String) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, code, message)
    }

    pub fn unavailable(code: ErrorCode, message: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
    }

    pub fn wrong_runner(message: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::WrongRunner, message)
    }

    pub fn internal() -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, ErrorCode::Internal, "internal error; the server's log has the reason")
    }

    pub fn of_lease(error: ServiceError, lease_id: &str) -> Self {
        match error {
            ServiceError::Refused(Refusal::Stale(reason)) => {
                Self::Stale { lease_id: lease_id.to_owned(), reason, heartbeat: false }
            }
            error => error.into(),
        }
    }

    pub fn of_heartbeat(error: ServiceError, lease_id: &str) -> Self {
        match Self::of_lease(error, lease_id) {
            Self::Stale { lease_id, reason, .. } => {
                Self::Stale { lease_id, reason, heartbeat: true }
            }
            refused @ Self::Error(..) => refused,
        }
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        let status = match fault.kind {
            FaultKind::Value => StatusCode::BAD_REQUEST,
            FaultKind::Contradiction => StatusCode::CONFLICT,
        };
        let (code, field) = (ErrorCode::InvalidField, Some(fault.field));
        Self::Error(status, ErrorDetail { code, field, message: fault.problem.to_owned() })
    }
}

impl From<ServiceError> for Refused {
    fn from(error: ServiceError) -> Self {
        let conflict = |code, message: &str| Self::new(StatusCode::CONFLICT, code, message);
        match error {
            ServiceError::Fault(fault) => fault.into(),
            ServiceError::NameInUse(silent) => conflict(
                ErrorCode::NameInUse,
                &format!(
                    "a runner of this name made a request {silent} s ago: give this one another \
                     name, or take the name over with `replace`"
                ),
            ),
            ServiceError::NoChain => conflict(
                ErrorCode::NoChain,
                "schedules need the timers of a chain, which this server does not have: use a \
                 devnet's lease server",
            ),
            ServiceError::ChainBegins => Self::unavailable(
                ErrorCode::Unavailable,
                "the devnet's chain has not begun yet; ask again in a moment",
            ),
            ServiceError::SchedulesFull => conflict(
                ErrorCode::SchedulesFull,
                &format!(
                    "there are already {MAX_SCHEDULES} schedules, the maximum: remove one first"
                ),
            ),
            ServiceError::Full => Self::unavailable(
                ErrorCode::Unavailable,
                "too many requests are waiting; ask again in a moment",
            ),
            ServiceError::Stopping => Self::unavailable(
                ErrorCode::Unavailable,
                "the server is stopping; ask again when it is back",
            ),
            // Callers that know the lease answer a stale one themselves.
            ServiceError::Failed | ServiceError::Refused(Refusal::Stale(_)) => Self::internal(),
            ServiceError::Refused(refusal) => match refusal {
                Refusal::WrongRunner => Self::wrong_runner("the lease is another runner's"),
                Refusal::WrongJob => Self::invalid("job_id", "the lease is of another job"),
                Refusal::NotAcked => conflict(
                    ErrorCode::NotAcked,
                    "the lease was not acked yet: send AckLease first",
                ),
                Refusal::CancelRequested => conflict(
                    ErrorCode::CancelRequested,
                    "the job is to be canceled: stop it, then send CancelAck",
                ),
                Refusal::NoCancelRequested => {
                    conflict(ErrorCode::NoCancelRequested, "no cancel was requested for this job")
                }
                Refusal::Ended => conflict(ErrorCode::JobEnded, "the job has ended"),
                Refusal::NotLeased => {
                    conflict(ErrorCode::NotLeased, "no runner holds a lease of this job")
                }
                _ => Self::not_found("not found; the lists show what exists"),
            },
        }
    }
}

impl From<NameError> for Refused {
    fn from(error: NameError) -> Self {
        Self::invalid("name", error.to_string())
    }
}

/// Errors of artifacts and caches; logs have their own texts.
impl From<FileError> for Refused {
    fn from(error: FileError) -> Self {
        match error {
            FileError::TooLarge { limit } => Self::too_large(
                ErrorCode::BodyTooLarge,
                format!("the body is longer than {limit} bytes"),
            ),
            FileError::Full { limit } => Self::too_large(
                ErrorCode::StoreFull,
                format!("there is no room for it: {limit} is the limit"),
            ),
            FileError::Gap { length } => Self::new(
                StatusCode::CONFLICT,
                ErrorCode::LogGap,
                format!("the log has {length} bytes: send it from there"),
            ),
            FileError::Clash => Self::invalid("name", "another artifact has a part of this name"),
            FileError::NotFound => Self::not_found("there is no such file"),
            FileError::Broken => Self::new(
                StatusCode::BAD_REQUEST,
                ErrorCode::InvalidField,
                "the body ended early or stalled",
            ),
            FileError::Io(error) => {
                tracing::error!(%error, "a file of a job could not be kept or read");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Stale { lease_id, reason, heartbeat } => {
                let body = StaleLease {
                    tag: StaleLeaseTag::default(),
                    lease_id,
                    reason: reason.into(),
                    extend_lease: heartbeat.then_some(false),
                    stale: heartbeat.then_some(true),
                };
                (StatusCode::CONFLICT, Json(body)).into_response()
            }
            Self::Error(status, error) => {
                let mut response = (status, Json(ErrorBody { error })).into_response();
                if status == StatusCode::UNAUTHORIZED {
                    let bearer = HeaderValue::from_static("Bearer");
                    response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
                }
                response
            }
        }
    }
}
