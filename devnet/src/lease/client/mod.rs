//! How another process talks to a lease server: requests with a timeout, answers with a bound.
//!
//! [`operator`] is what hands jobs in and looks at them; [`runner`](super::runner) builds its own
//! requests on the same [`Client`].

mod operator;

pub use operator::LogPart;

use super::messages::{ErrorBody, ErrorCode, ErrorDetail, StaleLease, StaleReason};
use crate::duration::Plain;
use reqwest::{Certificate, Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use std::{sync::Arc, time::Duration};

/// How long a request may take where nothing is waited for.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what was sent may stay unacknowledged: a server whose machine has vanished says
/// nothing.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a connection that waits for an answer is quiet before it is looked whether the other
/// end is there, how often then, and how many times in vain: within [`SILENCE`] it is known.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVES: u32 = 3;
const _: () = assert!(KEEPALIVE.as_secs() * (1 + KEEPALIVES as u64) <= SILENCE.as_secs());
/// The longest answer that is read whole.
const ANSWER_LIMIT: usize = 64 << 20;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error("{url}: {reason}")]
    Address {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing answers there.
    #[error("nothing answers at {url}: {reason}")]
    Unreachable {
        /// The server.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// The answer took too long.
    #[error("{what}: no answer within {}", Plain(*.after))]
    Timeout {
        /// What was asked.
        what: String,
        /// The request's timeout.
        after: Duration,
    },
    /// The server refuses.
    #[error("{}", said(.detail))]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// What it says.
        detail: ErrorDetail,
    },
    /// The lease is no good any more.
    #[error("stale lease: {0}")]
    Stale(StaleReason),
    /// The answer is not what the protocol promises.
    #[error("{what}: no answer of a lease server: {reason}")]
    Malformed {
        /// What was asked.
        what: String,
        /// What was got.
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
    /// The server's own code, where it refuses.
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { detail, .. } => Some(detail.code),
            _ => None,
        }
    }

    /// Whether the same request may be answered later.
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

/// What a client shows of itself, and whom it believes, where the server has TLS.
#[derive(Clone, Default)]
pub struct Tls {
    /// Certificates, PEM, that vouch for the server beside those of the system.
    pub roots: Option<Vec<u8>>,
    /// The client's own certificate and key, PEM, one after the other: a secret.
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
    /// A client of the server at `url`, as `http://127.0.0.1:7070`, that shows `token`.
    pub fn new(url: &str, token: &str, tls: &Tls) -> Result<Self, ClientError> {
        let address = |reason: String| ClientError::Address { url: url.to_owned(), reason };
        let base = Url::parse(url).map_err(|error| address(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(address("no http:// or https:// address".to_owned()));
        }
        let mut http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE)
            .tcp_keepalive_retries(KEEPALIVES);
        // Elsewhere the timeouts of requests are all there is.
        #[cfg(target_os = "linux")]
        {
            http = http.tcp_user_timeout(SILENCE);
        }
        if let Some(pem) = &tls.roots {
            let roots = Certificate::from_pem_bundle(pem).ok().filter(|roots| !roots.is_empty());
            let none = || address("the certificates that vouch for it are no PEM".to_owned());
            let roots = roots.ok_or_else(none)?;
            http = http.tls_certs_only(roots);
        } else if base.scheme() == "http" {
            // Reading the system's certificates takes longer than most requests.
            http = http.tls_certs_only([]);
        }
        if let Some(pem) = &tls.identity {
            let identity = reqwest::Identity::from_pem(pem)
                .map_err(|_| address("the client's certificate and key are no PEM".to_owned()))?;
            http = http.identity(identity);
        }
        let http = http.build().map_err(|error| address(error.to_string()))?;
        Ok(Self { http, base: Arc::new(base), token: token.into() })
    }

    /// Where it asks.
    pub fn url(&self) -> &Url {
        &self.base
    }

    /// A request for the path of these segments, with the token.
    pub(super) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = Url::clone(&self.base);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.http.request(method, url).bearer_auth(&self.token).timeout(REQUEST_TIMEOUT)
    }

    /// The response, if it is a success.
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
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => Err(ClientError::Refused { status, detail: body.error }),
            Err(_) => {
                let detail = ErrorDetail {
                    code: ErrorCode::Internal,
                    field: None,
                    message: format!("{what}: the server answered {status}"),
                };
                Err(ClientError::Refused { status, detail })
            }
        }
    }

    /// The JSON that the response to `request` has.
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

/// An answer's whole body.
pub(super) async fn whole(what: &str, mut response: Response) -> Result<Vec<u8>, ClientError> {
    let malformed = |reason| ClientError::Malformed { what: what.to_owned(), reason };
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| malformed(causes(&error)))? {
        if body.len() + chunk.len() > ANSWER_LIMIT {
            return Err(malformed(format!("longer than {ANSWER_LIMIT} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What went wrong, with its causes; never the address, which the caller says.
fn causes(error: &reqwest::Error) -> String {
    let mut said = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        said.push(error.to_string());
        cause = error.source();
    }
    if said.is_empty() { "the connection broke".to_owned() } else { said.join(": ") }
}
