//! What is asked of an Ethereum node, over HTTP.

use super::{
    super::{
        ExecutorError,
        http::{body, chain, origin, server_url},
        secrets::Secrets,
    },
    MAX_MESSAGE, MAX_OVERHEAD,
};
use alloy_json_rpc::{RequestPacket, ResponsePacket, RpcError};
use alloy_provider::{
    Provider as _, RootProvider,
    network::{AnyNetwork, AnyTransactionReceipt},
    transport::{TransportError, TransportErrorKind, TransportFut},
};
use alloy_rpc_client::RpcClient;
use reqwest::Url;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use std::{
    fmt,
    task::{Context, Poll},
};
use tower_service::Service;

/// The node that an operator configures, written as `{ url: URL }`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Endpoint(Url);

/// What may stand in a node's configuration.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    url: String,
}

impl Endpoint {
    /// The node at `url`, or why there can be none. The error does not repeat the URL, which may
    /// hold a key.
    pub fn new(url: &str) -> Result<Self, String> {
        server_url(url).map(Self)
    }
}

impl TryFrom<Fields> for Endpoint {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        Self::new(&fields.url)
    }
}

impl From<Endpoint> for Fields {
    fn from(endpoint: Endpoint) -> Self {
        Self { url: endpoint.0.into() }
    }
}

/// Without what may be secret.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({}/…)", origin(&self.0))
    }
}

/// A node, with the questions that are put to it.
pub(super) struct Node {
    provider: RootProvider<AnyNetwork>,
    origin: String,
    secrets: Secrets,
}

impl Node {
    /// The node at `endpoint`, whose answers are bounded by what the job may return.
    pub(super) fn new(http: reqwest::Client, endpoint: &Endpoint, max_return_bytes: usize) -> Self {
        let url = endpoint.0.clone();
        let (origin, secrets) = (origin(&url), Secrets::of_url(&url));
        let client = RpcClient::new(Transport { http, url, max_return_bytes }, false);
        Self { provider: RootProvider::new(client), origin, secrets }
    }

    /// Hands a signed transaction over; yields its hash.
    pub(super) async fn send(&self, transaction: &[u8]) -> Result<[u8; 32], ExecutorError> {
        let sent = self.provider.send_raw_transaction(transaction).await;
        sent.map(|pending| pending.tx_hash().0).map_err(|error| self.failed(error))
    }

    /// Whether the node has the transaction, in a block or not.
    pub(super) async fn has(&self, hash: [u8; 32]) -> Result<bool, ExecutorError> {
        let hash = format!("0x{}", hex::encode(hash));
        let found = self.provider.client().request("eth_getTransactionByHash", (hash,)).await;
        found.map(|found: Option<IgnoredAny>| found.is_some()).map_err(|error| self.failed(error))
    }

    /// The receipt of a transaction that is in a block.
    pub(super) async fn receipt(
        &self,
        hash: [u8; 32],
    ) -> Result<Option<AnyTransactionReceipt>, ExecutorError> {
        let found = self.provider.get_transaction_receipt(hash.into()).await;
        found.map_err(|error| self.failed(error))
    }

    /// The newest block's number.
    pub(super) async fn head(&self) -> Result<u64, ExecutorError> {
        self.provider.get_block_number().await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: TransportError) -> ExecutorError {
        let url = self.origin.clone();
        let reason = match error {
            RpcError::ErrorResp(error) => {
                let message = self.secrets.shown(&error.message, MAX_MESSAGE);
                return ExecutorError::Node { url, code: error.code, message };
            }
            RpcError::Transport(TransportErrorKind::Custom(error)) => {
                match error.downcast::<ExecutorError>() {
                    Ok(error) => return *error,
                    Err(error) => chain(&*error),
                }
            }
            // Its text would be all that the node said.
            RpcError::DeserError { err, .. } => format!("its answer cannot be understood: {err}"),
            error => chain(&error),
        };
        ExecutorError::Request { url, reason: self.secrets.shown(&reason, MAX_MESSAGE) }
    }
}

/// JSON-RPC over HTTP. The SDK's own would read answers of any length, and log the URL.
#[derive(Clone)]
struct Transport {
    http: reqwest::Client,
    url: Url,
    max_return_bytes: usize,
}

impl Transport {
    async fn exchange(&self, packet: &RequestPacket) -> Result<ResponsePacket, ExecutorError> {
        let url = origin(&self.url);
        let failed = |error: reqwest::Error| ExecutorError::Request {
            url: url.clone(),
            reason: chain(&error.without_url()),
        };
        let request = self.http.post(self.url.clone()).json(packet);
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let limit = self.max_return_bytes.saturating_add(MAX_OVERHEAD);
        let bytes = body(response, limit, failed, |_| ()).await.map_err(|error| match error {
            ExecutorError::TooMuchOutput { .. } => {
                ExecutorError::TooMuchOutput { limit: self.max_return_bytes }
            }
            error => error,
        })?;
        match serde_json::from_slice(&bytes) {
            // An error may come with a status that says so too.
            Ok(answer) => Ok(answer),
            Err(_) if !status.is_success() => {
                Err(ExecutorError::Status { url, status: status.as_u16() })
            }
            Err(error) => {
                let reason = format!("its answer is not JSON-RPC: {error}");
                Err(ExecutorError::Request { url, reason })
            }
        }
    }
}

impl Service<RequestPacket> for Transport {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.exchange(&packet).await.map_err(TransportErrorKind::custom) })
    }
}
