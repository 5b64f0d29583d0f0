//! A client of a running devnet for other processes: typed requests and a resuming event stream.
//!
//! A [`Client`] is cheap to clone and holds one connection pool. Every request ends within its
//! timeout and reads a bounded answer. Every failure is a [`ClientError`], which distinguishes a
//! devnet that is not there, one that does not answer in time, and one that refuses.

mod events;
mod requests;

pub use cowboy_host::http::REQUEST_TIMEOUT;
pub use events::EventStream;

use crate::{
    api::server::CHANGE_TIMEOUT,
    home::{DevnetHome, DevnetState, HomeError},
    topology::Name,
    types::{API, API_HEADER, ErrorBody, ErrorCode, ErrorDetail, PROTOCOL_HEADER},
};
use commonware_utils::sync::Mutex;
use cowboy_host::{
    duration::Plain,
    host_port::look_up,
    http::client::{BodyError, below, whole},
};
use reqwest::{
    Certificate, Method, RequestBuilder, Response, Url,
    dns::{self, Resolve, Resolving},
    redirect::Policy,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::Semaphore;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("there is no devnet `{0}`")]
    NoSuchDevnet(Name),
    #[error("devnet `{0}` is not running")]
    NotRunning(Name),
    #[error("devnet `{name}` has died: its process {pid} was killed")]
    Died { name: Name, pid: u32 },
    #[error("devnet `{0}` is starting and does not answer yet")]
    Starting(Name),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("nothing answers at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{what}: no answer within {}", Plain(*.after))]
    Timeout {
        /// The path of the request.
        what: String,
        after: Duration,
    },
    #[error(
        "{url} has version {got} of {what} and this program version {own}: use the same cowboyctl \
         for both; `cowboyctl node version` prints its versions"
    )]
    OtherVersion {
        url: String,
        /// `the API` or `the protocol`.
        what: &'static str,
        got: String,
        own: u32,
    },
    #[error("{}", .0.message)]
    Refused(ErrorDetail),
    #[error("{what}: the answer is not an API answer: {reason}")]
    Malformed {
        /// The path of the request.
        what: String,
        reason: String,
    },
}

impl ClientError {
    /// The devnet's own code, if it answered with an error.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(detail) => Some(detail.code),
            _ => None,
        }
    }
}

/// A block to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockAt {
    Height(u64),
    /// The newest block with the requested data.
    Latest,
}

impl fmt::Display for BlockAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Height(height) => height.fmt(f),
            Self::Latest => f.write_str("latest"),
        }
    }
}

/// What a client shows to an API beyond the loopback, and what it trusts there.
#[derive(Clone, Default)]
pub struct Access {
    /// The token that every request shows, sent over TLS only.
    pub token: Option<String>,
    /// Certificates in PEM that are trusted instead of the system's.
    pub roots: Option<Vec<u8>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access(..)")
    }
}

/// The system's resolver, which does not hold up the end of a runtime.
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: dns::Name) -> Resolving {
        Box::pin(async move {
            let found = look_up(name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as dns::Addrs)
        })
    }
}

/// A client of one devnet.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    /// Shared by all clones.
    base: Arc<Mutex<Url>>,
    access: Access,
    token: Option<String>,
    node: Option<String>,
    /// The version of the protocol that answers must have, if any.
    protocol: Option<u32>,
    timeout: Duration,
    /// Bounds concurrent requests, shared by all clones; `None` means no bound.
    places: Option<Arc<Semaphore>>,
}

impl Client {
    /// A client for the API at `rpc_url`, as `http://127.0.0.1:20123`.
    pub fn new(rpc_url: &str) -> Result<Self, ClientError> {
        Self::with_access(rpc_url, Access::default())
    }

    /// A client for an API that other hosts reach, as `https://node-0.example:9002`.
    pub fn with_access(rpc_url: &str, access: Access) -> Result<Self, ClientError> {
        let refused = |reason: String| ClientError::Unreachable { url: rpc_url.to_owned(), reason };
        let base = base(rpc_url)?;
        let http = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_TIMEOUT);
        let http = http.dns_resolver(SystemResolver);
        // Reading the system's certificates takes longer than most requests.
        let http = match &access.roots {
            Some(roots) => {
                let roots = Certificate::from_pem_bundle(roots);
                http.tls_certs_only(roots.map_err(|error| refused(error.to_string()))?)
            }
            None if base.scheme() == "http" => http.tls_certs_only([]),
            None => http,
        };
        let http =
            http.redirect(Policy::none()).build().map_err(|error| refused(error.to_string()))?;
        let base = Arc::new(Mutex::new(base));
        let timeout = REQUEST_TIMEOUT;
        let (token, node, protocol, places) = (None, None, None, None);
        Ok(Self { http, base, access, token, node, protocol, timeout, places })
    }

    /// A client for the running devnet in `home`, with its token.
    pub fn of_devnet(home: &DevnetHome) -> Result<Self, ClientError> {
        let record = match home.state()? {
            DevnetState::Absent => return Err(ClientError::NoSuchDevnet(home.name().clone())),
            DevnetState::Stopped => return Err(ClientError::NotRunning(home.name().clone())),
            DevnetState::Died(record) => {
                return Err(ClientError::Died { name: home.name().clone(), pid: record.pid });
            }
            DevnetState::Starting { .. } => return Err(ClientError::Starting(home.name().clone())),
            DevnetState::Running(record) => record,
        };
        Ok(Self::new(&record.rpc_url)?.with_token(home.token()?))
    }

    /// Sends requests to this address from now on, also from all clones: a devnet may have another
    /// address after a restart.
    pub fn move_to(&self, rpc_url: &str) -> Result<(), ClientError> {
        *self.base.lock() = base(rpc_url)?;
        Ok(())
    }

    pub fn with_token(self, token: String) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Sends reads to this validator instead of any, and transactions only to it.
    pub fn with_node(self, node: Option<String>) -> Self {
        Self { node, ..self }
    }

    /// Refuses answers of a program with another version of the protocol.
    pub fn of_protocol(self, version: u32) -> Self {
        Self { protocol: Some(version), ..self }
    }

    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Limits the number of concurrent requests, including those of its clones; others wait. Each
    /// request keeps its connection for the next one, and a server has a limited number of
    /// connections.
    pub fn at_most(self, requests: usize) -> Self {
        Self { places: Some(Arc::new(Semaphore::new(requests))), ..self }
    }

    /// Posts a body that a runner has signed, without the token.
    async fn post_signed<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.sent(Method::POST, self.url(path)).timeout(self.timeout).json(body);
        self.answer(path, request).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path, query).timeout(self.timeout);
        self.answer(path, request).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.post_to(path, &(), body).await
    }

    /// Posts what starts or stops a node, and waits as long as the server does.
    async fn change<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.clone().with_timeout(CHANGE_TIMEOUT.max(self.timeout)).post(path, body).await
    }

    async fn post_to<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &impl Serialize,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::POST, path, query).timeout(self.timeout).json(body);
        self.answer(path, self.authorized(request)).await
    }

    /// The request with the devnet's token. Over TLS it has one already.
    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        let in_the_open = self.base.lock().scheme() == "http";
        match self.token.as_ref().filter(|_| in_the_open) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// A request for `/v1/<path>`.
    fn request(&self, method: Method, path: &[&str], query: &impl Serialize) -> RequestBuilder {
        let mut url = self.url(&[&["v1"], path].concat());
        let query = serde_json::to_value(query).expect("queries are plain data");
        let fields = query.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(_, value)| !value.is_null()) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            url.query_pairs_mut().append_pair(name, &text);
        }
        if let Some(node) = self.node.as_ref().filter(|_| method == Method::GET) {
            url.query_pairs_mut().append_pair("node", node);
        }
        self.sent(method, url)
    }

    fn sent(&self, method: Method, url: Url) -> RequestBuilder {
        let token = self.token.as_ref().or(self.access.token.as_ref());
        let token = token.filter(|_| url.scheme() == "https");
        let request = self.http.request(method, url);
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn url(&self, path: &[&str]) -> Url {
        below(&self.base.lock(), path)
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        path: &[&str],
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        let body = self.answered(path, request).await?;
        serde_json::from_slice(&body).map_err(|error| malformed(path, &error))
    }

    async fn answered(
        &self,
        path: &[&str],
        request: RequestBuilder,
    ) -> Result<Vec<u8>, ClientError> {
        let _place = match &self.places {
            Some(places) => Some(places.acquire().await.expect("the semaphore is never closed")),
            None => None,
        };
        let response = request.send().await.map_err(|error| self.failure(path, &error))?;
        let response = self.accepted(path, response).await?;
        self.body(path, response).await
    }

    async fn accepted(&self, path: &[&str], response: Response) -> Result<Response, ClientError> {
        self.check_versions(&response)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = self.body(path, response).await?;
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => Err(ClientError::Refused(body.error)),
            Err(_) => Err(malformed(path, &format_args!("status {status} without an error body"))),
        }
    }

    /// An answer without these headers comes from a program that has none, or from a proxy.
    fn check_versions(&self, response: &Response) -> Result<(), ClientError> {
        let demands =
            [("the API", API_HEADER, Some(API)), ("the protocol", PROTOCOL_HEADER, self.protocol)];
        for (what, header, own) in demands {
            let (Some(own), Some(got)) = (own, response.headers().get(header)) else { continue };
            let got = got.to_str().unwrap_or("?");
            if got != own.to_string() {
                let got = got.chars().take(16).collect();
                let url = self.base.lock().to_string();
                return Err(ClientError::OtherVersion { url, what, got, own });
            }
        }
        Ok(())
    }

    async fn body(&self, path: &[&str], response: Response) -> Result<Vec<u8>, ClientError> {
        whole(response).await.map_err(|error| match error {
            BodyError::Broken(error) => self.failure(path, &error),
            BodyError::TooLong => malformed(path, &error),
        })
    }

    fn failure(&self, path: &[&str], error: &reqwest::Error) -> ClientError {
        if error.is_timeout() && !error.is_connect() {
            return ClientError::Timeout { what: describe(path), after: self.timeout };
        }
        ClientError::Unreachable { url: self.base.lock().to_string(), reason: root_cause(error) }
    }
}

fn base(rpc_url: &str) -> Result<Url, ClientError> {
    let refused = |reason: String| ClientError::Unreachable { url: rpc_url.to_owned(), reason };
    let base = Url::parse(rpc_url).map_err(|error| refused(error.to_string()))?;
    match base.cannot_be_a_base() {
        true => Err(refused("not an http address".to_owned())),
        false => Ok(base),
    }
}

fn describe(path: &[&str]) -> String {
    format!("/v1/{}", path.join("/"))
}

fn malformed(path: &[&str], reason: &dyn fmt::Display) -> ClientError {
    ClientError::Malformed { what: describe(path), reason: reason.to_string() }
}

/// The innermost error: the outer ones only repeat the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
