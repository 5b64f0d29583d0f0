//! Requests to an Ethereum node over HTTP.

use super::{
    super::{
        ExecutorError, JSON_RPC_OVERHEAD,
        http::{body, chain, origin, server_url},
        secrets::Secrets,
    },
    MAX_MESSAGE,
    outcome::{Data, Quantity, Receipt},
};
use reqwest::Url;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{json, value::RawValue};
use std::{error::Error, fmt};

/// The configured node, written as `{ url: URL }`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NodeFields", into = "NodeFields")]
pub struct NodeEndpoint(Url);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeFields {
    url: String,
}

impl NodeEndpoint {
    /// The error does not repeat the URL, which may contain a key.
    pub fn new(url: &str) -> Result<Self, String> {
        server_url(url).map(Self)
    }
}

impl TryFrom<NodeFields> for NodeEndpoint {
    type Error = String;

    fn try_from(fields: NodeFields) -> Result<Self, String> {
        Self::new(&fields.url)
    }
}

impl From<NodeEndpoint> for NodeFields {
    fn from(endpoint: NodeEndpoint) -> Self {
        Self { url: endpoint.0.into() }
    }
}

/// Shows no secrets.
impl fmt::Debug for NodeEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({}/…)", origin(&self.0))
    }
}

/// A node and how to ask it: JSON-RPC 2.0, one call per request.
pub(super) struct Node {
    http: reqwest::Client,
    url: Url,
    origin: String,
    secrets: Secrets,
    max_return_bytes: usize,
}

/// A JSON-RPC response. A successful call may have the result `null`.
#[derive(Deserialize)]
struct RpcAnswer {
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    error: Option<RpcRefusal>,
}

#[derive(Deserialize)]
struct RpcRefusal {
    code: i64,
    message: String,
}

/// Distinguishes a `null` member from a missing one.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

impl Node {
    /// The node at `endpoint`. The job's maximum result limits its answers.
    pub(super) fn new(
        http: reqwest::Client,
        endpoint: &NodeEndpoint,
        max_return_bytes: usize,
    ) -> Self {
        let url = endpoint.0.clone();
        let (origin, secrets) = (origin(&url), Secrets::of_url(&url));
        Self { http, url, origin, secrets, max_return_bytes }
    }

    pub(super) async fn send(&self, transaction: &[u8]) -> Result<[u8; 32], ExecutorError> {
        let transaction = format!("0x{}", hex::encode(transaction));
        let hash: Data<32> = self.ask("eth_sendRawTransaction", [transaction]).await?;
        Ok(hash.0)
    }

    /// Whether the node has the transaction, in a block or not.
    pub(super) async fn has(&self, hash: [u8; 32]) -> Result<bool, ExecutorError> {
        let found: Option<IgnoredAny> = self.ask("eth_getTransactionByHash", [Data(hash)]).await?;
        Ok(found.is_some())
    }

    pub(super) async fn receipt(&self, hash: [u8; 32]) -> Result<Option<Receipt>, ExecutorError> {
        self.ask("eth_getTransactionReceipt", [Data(hash)]).await
    }

    pub(super) async fn head(&self) -> Result<u128, ExecutorError> {
        let Quantity(number) = self.ask("eth_blockNumber", [(); 0]).await?;
        Ok(number)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<T, ExecutorError> {
        let asked = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params });
        let failed = |error: reqwest::Error| self.failed(chain(&error.without_url()));
        let request = self.http.post(self.url.clone()).json(&asked);
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let limit = self.max_return_bytes.saturating_add(JSON_RPC_OVERHEAD);
        let bytes = body(response, limit, failed, |_| ()).await.map_err(|error| match error {
            ExecutorError::TooMuchOutput { .. } => {
                ExecutorError::TooMuchOutput { limit: self.max_return_bytes }
            }
            error => error,
        })?;
        let not_understood =
            |error: &dyn Error| self.failed(format!("its answer cannot be understood: {error}"));
        match serde_json::from_slice(&bytes) {
            // An error may come with an HTTP error status as well.
            Ok(RpcAnswer { error: Some(RpcRefusal { code, message }), .. }) => {
                let message = self.secrets.shown(&message, MAX_MESSAGE);
                Err(ExecutorError::Node { url: self.origin.clone(), code, message })
            }
            Ok(RpcAnswer { result: Some(result), .. }) => {
                serde_json::from_str(result.get()).map_err(|error| not_understood(&error))
            }
            _ if !status.is_success() => {
                Err(ExecutorError::Status { url: self.origin.clone(), status: status.as_u16() })
            }
            Ok(_) => Err(self.failed("its answer has neither a result nor an error".to_owned())),
            Err(error) => Err(self.failed(format!("its answer is not JSON-RPC: {error}"))),
        }
    }

    fn failed(&self, reason: String) -> ExecutorError {
        let reason = self.secrets.shown(&reason, MAX_MESSAGE);
        ExecutorError::Request { url: self.origin.clone(), reason }
    }
}
