//! Makes an HTTP request: a method, a URL, headers, a body; at most [`MAX_REDIRECTS`] redirects.
//!
//! The request goes directly to the job's URL: proxy settings of the runner's shell are ignored.
//! `https` servers are verified against the system's root certificates. Requests to the runner's
//! own machine are refused unless its operator allows them: [`loopback`].

mod loopback;
mod pointer;
#[cfg(test)]
mod tests;

use super::{Bounded, ExecutorError, TaskLimits};
use cowboy_engine::job::json::Pointer;
use cowboy_host::{process::TaskProgress, spelling::Quoted};
use reqwest::{
    Method, Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use std::{error::Error, sync::Arc, time::Instant};
use tokio::sync::OnceCell;

/// Maximum number of redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;

/// An HTTP request of a job, and the part of its response that is the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, `POST` or any other.
    pub method: String,
    /// An `http` or `https` URL.
    pub url: String,
    /// Names and values in order; a name may appear more than once.
    pub headers: Vec<(String, String)>,
    /// The body, empty for none.
    pub body: Vec<u8>,
    /// The part of a JSON response that is the result (RFC 6901), as the server wrote it. `None`:
    /// the whole body, JSON or not.
    pub pointer: Option<String>,
}

/// A client, created on first use because reading the system's root certificates takes a moment.
#[derive(Debug, Clone)]
pub(super) struct HttpClient {
    made: Arc<OnceCell<reqwest::Client>>,
    redirects: usize,
    /// Whether it may connect to the loopback.
    local: bool,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self { made: Arc::default(), redirects: MAX_REDIRECTS, local: true }
    }
}

impl HttpClient {
    /// A client that returns redirects as answers.
    pub(super) fn not_redirected() -> Self {
        Self { redirects: 0, ..Self::default() }
    }

    pub(super) fn not_local() -> Self {
        Self { local: false, ..Self::default() }
    }

    pub(super) async fn get(&self) -> Result<&reqwest::Client, ExecutorError> {
        let Self { redirects, local, .. } = *self;
        self.made
            .get_or_try_init(async || {
                let policy = match redirects {
                    0 => redirect::Policy::none(),
                    most => redirect::Policy::limited(most),
                };
                let build = move || {
                    let builder = reqwest::Client::builder()
                        .user_agent(concat!("cowboy-runner/", env!("CARGO_PKG_VERSION")))
                        .no_proxy();
                    match local {
                        true => builder.redirect(policy),
                        false => builder
                            .redirect(loopback::guarded(policy))
                            .dns_resolver(Arc::new(loopback::Resolver)),
                    }
                    .build()
                };
                let failed = |reason| ExecutorError::Local { what: "cannot make a client", reason };
                tokio::task::spawn_blocking(build)
                    .await
                    .map_err(|error| failed(error.to_string()))?
                    .map_err(|error| failed(chain(&error)))
            })
            .await
    }

    /// Progress is reported if the response states its length.
    pub(super) async fn fetch(
        &self,
        request: &HttpRequest,
        limits: &TaskLimits,
        started: impl FnOnce(Instant) + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
    ) -> Result<Vec<u8>, ExecutorError> {
        let pointer = request.pointer.as_deref().map(Pointer::parse).transpose();
        let pointer = pointer.map_err(|error| {
            let text = request.pointer.as_deref().unwrap_or_default();
            ExecutorError::Invalid(format!("{} {error}", Quoted(text)))
        })?;
        let prepared = prepare(request)?;
        let asked = prepared.url().clone();
        if let Some(refused) = loopback::refused(&asked).filter(|_| !self.local) {
            return Err(refused.into());
        }
        let client = self.get().await?;
        started(Instant::now());
        let failed = |error: reqwest::Error| {
            let url = request.url.clone();
            if let Some(refused) = loopback::Refused::behind(&error) {
                return refused.clone().into();
            }
            if error.is_redirect() {
                return ExecutorError::Redirects { url };
            }
            ExecutorError::Request { url, reason: chain(&error.without_url()) }
        };
        let response = client.execute(prepared).await.map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            let mut url = response.url().clone();
            if url != asked {
                // A server may redirect to a URL with a key; only the task's own URL is public.
                url.set_query(None);
                url.set_fragment(None);
            }
            return Err(ExecutorError::Status { url: url.into(), status: status.as_u16() });
        }
        let expected = response.content_length();
        let told = |bytes: usize| {
            if let Some(expected) = expected {
                progress(received(bytes as u64, expected));
            }
        };
        let body = body(response, limits.max_return_bytes, failed, told).await?;
        match pointer {
            None => Ok(body),
            Some(pointer) => pointer::find(&pointer, &body).map(<[u8]>::to_vec),
        }
    }
}

/// Progress of a body of `expected` bytes, which must not be 0.
fn received(bytes: u64, expected: u64) -> TaskProgress {
    let percent = bytes.saturating_mul(100) / expected.max(1);
    TaskProgress {
        percent: percent.min(100) as u8,
        detail: Some(format!("{bytes} of {expected} bytes")),
    }
}

/// Reads a response's body of at most `limit` bytes. Calls `told` with the bytes read so far.
pub(super) async fn body(
    mut response: Response,
    limit: usize,
    failed: impl Fn(reqwest::Error) -> ExecutorError,
    told: impl Fn(usize),
) -> Result<Vec<u8>, ExecutorError> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(ExecutorError::TooMuchOutput { limit });
    }
    let mut body = Bounded::new(limit);
    while let Some(chunk) = response.chunk().await.map_err(&failed)? {
        body.push(&chunk)?;
        told(body.bytes.len());
    }
    Ok(body.bytes)
}

/// Scheme, host and port of an operator's URL. Errors and logs may show only these, because user,
/// password, path and query can contain keys.
pub(super) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Parses the URL of a configured server. The error does not repeat the URL.
pub(super) fn server_url(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        Ok(url) => Err(format!("url has scheme `{}`; expected http or https", url.scheme())),
        Err(error) => Err(format!("url is invalid: {error}; expected http://… or https://…")),
    }
}

fn prepare(request: &HttpRequest) -> Result<reqwest::Request, ExecutorError> {
    let invalid = |what: &str, got: &str, error: &dyn Error| {
        ExecutorError::Invalid(format!("{what} {}: {error}", Quoted(got)))
    };
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|error| invalid("method", &request.method, &error))?;
    let url = Url::parse(&request.url).map_err(|error| invalid("URL", &request.url, &error))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ExecutorError::Invalid(format!(
            "URL {}: scheme `{}`, expected http or https",
            Quoted(&request.url),
            url.scheme()
        )));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|error| invalid("header", name, &error))?;
        let value = HeaderValue::from_str(value)
            .map_err(|error| invalid("value of header", name, &error))?;
        headers.append(header, value);
    }
    let mut prepared = reqwest::Request::new(method, url);
    *prepared.headers_mut() = headers;
    if !request.body.is_empty() {
        *prepared.body_mut() = Some(request.body.clone().into());
    }
    Ok(prepared)
}

/// An error's message with those of its causes.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
