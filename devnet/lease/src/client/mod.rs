//! The client side of a lease server: requests with a timeout, answers with a size limit.
//!
//! [`operator`] submits jobs and reads their state; [`runner`](super::runner) builds its own
//! requests on the same [`Client`].

mod operator;

pub use cowboy_host::http::REQUEST_TIMEOUT;
pub use operator::LogPart;

use super::messages::{ErrorBody, ErrorCode, ErrorDetail, StaleLease, StaleReason};
use cowboy_host::{
    duration::Plain,
    http::client::{self, BodyError, below},
};
use reqwest::{Certificate, Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use std::{error::Error as _, iter, sync::Arc, time::Duration};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long sent data may stay unacknowledged. A server whose machine has vanished sends no error.
const SILENCE: Duration = Duration::from_secs(60);
/// Idle time of a waiting connection before the first keepalive probe, interval of the probes, and
/// number of probes without an answer: a dead peer is noticed within [`SILENCE`].
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVES: u32 = 3;
const _: () = assert!(KEEPALIVE.as_secs() * (1 + KEEPALIVES as u64) <= SILENCE.as_secs());

/// The reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{url}: {reason}")]
    Address { url: String, reason: String },
    #[error("nothing answers at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{what}: no answer within {}", Plain(*.after))]
    Timeout {
        /// Method and path of the request.
        what: String,
        after: Duration,
    },
    #[error("{}", said(.detail))]
    Refused { status: StatusCode, detail: ErrorDetail },
    #[error("stale lease: {0}")]
    Stale(StaleReason),
    #[error("{what}: not an answer of a lease server: {reason}")]
    Malformed {
        /// Method and path of the request.
        what: String,
        reason: String,
    },
}

fn said(detail: &ErrorDetail) -> String {
    match &detail.field {
        Some(field) => format!("{field}: {}", detail.message),
        None => detail.message.clone(),
    }
}

impl ClientError {
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { detail, .. } => Some(detail.code),
            _ => None,
        }
    }

    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Malformed { .. } => true,
            Self::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Address { .. } | Self::Stale(_) => false,
        }
    }
}

/// The client's certificate and the roots that it trusts, for a server with TLS.
#[derive(Clone, Default)]
pub struct Tls {
    /// PEM certificates that the client trusts in addition to those of the system.
    pub roots: Option<Vec<u8>>,
    /// The client's certificate followed by its private key, PEM: a secret.
    pub identity: Option<Vec<u8>>,
}

/// Talks to one lease server. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Arc<Url>,
    token: Arc<str>,
}

impl Client {
    /// A client that sends `token` to the server at `url`, such as `http://127.0.0.1:7070`.
    pub fn new(url: &str, token: &str, tls: &Tls) -> Result<Self, ClientError> {
        let address = |reason: String| ClientError::Address { url: url.to_owned(), reason };
        let base = Url::parse(url).map_err(|error| address(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(address("not an http:// or https:// address".to_owned()));
        }
        let mut http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE)
            .tcp_keepalive_retries(KEEPALIVES);
        // On other systems only the requests' timeouts apply.
        #[cfg(target_os = "linux")]
        {
            http = http.tcp_user_timeout(SILENCE);
        }
        if let Some(pem) = &tls.roots {
            let roots = Certificate::from_pem_bundle(pem).ok().filter(|roots| !roots.is_empty());
            let none = || address("the trusted certificates are not PEM".to_owned());
            let roots = roots.ok_or_else(none)?;
            http = http.tls_certs_only(roots);
        } else if base.scheme() == "http" {
            // Loading the system's certificates takes longer than most requests.
            http = http.tls_certs_only([]);
        }
        if let Some(pem) = &tls.identity {
            let identity = reqwest::Identity::from_pem(pem)
                .map_err(|_| address("the client's certificate and key are not PEM".to_owned()))?;
            http = http.identity(identity);
        }
        let http = http.build().map_err(|error| address(error.to_string()))?;
        Ok(Self { http, base: Arc::new(base), token: token.into() })
    }

    pub fn url(&self) -> &Url {
        &self.base
    }

    pub(super) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let url = below(&self.base, path);
        self.http.request(method, url).bearer_auth(&self.token).timeout(REQUEST_TIMEOUT)
    }

    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let (http, request) = request.build_split();
        let request = request.map_err(|error| self.failure("request", &error))?;
        let what = format!("{} {}", request.method(), request.url().path());
        let after = request.timeout().copied().unwrap_or(REQUEST_TIMEOUT);
        let response = http.execute(request).await.map_err(|error| match error.is_timeout() {
            true => ClientError::Timeout { what: what.clone(), after },
            false => self.failure(&what, &error),
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = whole(&what, response).await?;
        if let Ok(stale) = serde_json::from_slice::<StaleLease>(&body) {
            return Err(ClientError::Stale(stale.reason));
        }
        let detail = match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => body.error,
            Err(_) => ErrorDetail {
                code: ErrorCode::Internal,
                field: None,
                message: format!("{what}: the server answered {status}"),
            },
        };
        Err(ClientError::Refused { status, detail })
    }

    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        let response = self.send(request).await?;
        let what = response.url().path().to_owned();
        let body = whole(&what, response).await?;
        serde_json::from_slice(&body)
            .map_err(|error| ClientError::Malformed { what, reason: error.to_string() })
    }

    fn failure(&self, what: &str, error: &reqwest::Error) -> ClientError {
        let reason = causes(error);
        if error.is_connect() {
            return ClientError::Unreachable { url: self.base.to_string(), reason };
        }
        ClientError::Malformed { what: what.to_owned(), reason }
    }
}

pub(super) async fn whole(what: &str, response: Response) -> Result<Vec<u8>, ClientError> {
    client::whole(response).await.map_err(|error| {
        let reason = match error {
            BodyError::Broken(error) => causes(&error),
            BodyError::TooLong => error.to_string(),
        };
        ClientError::Malformed { what: what.to_owned(), reason }
    })
}

/// An error with its causes, but without the address, because the caller reports it.
fn causes(error: &reqwest::Error) -> String {
    let causes = iter::successors(error.source(), |&error| error.source());
    let said: Vec<_> = causes.map(ToString::to_string).collect();
    if said.is_empty() { "the connection broke".to_owned() } else { said.join(": ") }
}
