//! Sends a signed Ethereum transaction and waits for its receipt.
//!
//! Several runners may get the same transaction: if the node already has it, it counts as sent. The
//! receipt is requested until its block has the job's `confirmations`, including its own block. If
//! a reorganization removes the receipt, the wait goes on. A reverted transaction is a normal
//! result. The result is JSON, equal byte for byte whichever node a runner uses: see the fields in
//! `docs/jobs.md`.

mod node;
mod outcome;
#[cfg(test)]
mod tests;

use super::{ExecutorError, TaskLimits, http};
use alloy_rlp::Header;
use cowboy_engine::primitives::keccak256;
use node::Node;
pub use node::NodeEndpoint;
use outcome::Outcome;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Maximum bytes kept of a node's error message.
pub const MAX_MESSAGE: usize = 1024;

/// The pause between two requests for the receipt, at first and at last: an L2 has a block every
/// quarter of a second, Ethereum every twelve seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(4);

/// Maximum number of consecutive failed requests for the receipt. The transaction is already sent,
/// so a node that restarts or limits its rate gets some time.
const MAX_FAILURES: u32 = 5;

/// A signed transaction to send, and how long to wait for its confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EthereumRequest {
    /// The signed transaction in the form that `eth_sendRawTransaction` takes (EIP-2718).
    pub transaction: Vec<u8>,
    /// Number of blocks, including its own, to wait for; at least 1.
    pub confirmations: u32,
}

/// Sends the transaction and returns its hash and receipt as JSON.
pub(super) async fn send(
    endpoint: Option<&NodeEndpoint>,
    http: &http::HttpClient,
    request: &EthereumRequest,
    limits: &TaskLimits,
    started: impl FnOnce(Instant) + Send,
) -> Result<Vec<u8>, ExecutorError> {
    let endpoint = endpoint.ok_or_else(|| {
        ExecutorError::Invalid("this runner has no Ethereum endpoint (eth.url)".to_owned())
    })?;
    let client = http.get().await?.clone();
    let node = Node::new(client, endpoint, limits.max_return_bytes);
    started(Instant::now());
    let hash = hand_over(&node, &request.transaction).await?;
    let outcome = confirmed(&node, hash, request.confirmations).await?;
    let result = serde_json::to_vec(&outcome).map_err(|error| ExecutorError::Local {
        what: "cannot write the receipt",
        reason: error.to_string(),
    })?;
    if result.len() > limits.max_return_bytes {
        return Err(ExecutorError::TooMuchOutput { limit: limits.max_return_bytes });
    }
    Ok(result)
}

async fn hand_over(node: &Node, transaction: &[u8]) -> Result<[u8; 32], ExecutorError> {
    let refused = match node.send(transaction).await {
        Err(error @ ExecutorError::Node { .. }) => error,
        sent => return sent,
    };
    // Nodes differ in how they say that they have the transaction, or that its nonce is used
    // because it is in a block. So the node is asked whether it has it.
    let hash = hash(transaction);
    match node.has(hash).await {
        Ok(true) => Ok(hash),
        Ok(false) if says_known(&refused) => Ok(hash),
        Ok(false) | Err(_) => Err(refused),
    }
}

/// Whether nodes use this message for a transaction that they have. A URL may lead to several
/// nodes, and the next one asked may not have it.
fn says_known(error: &ExecutorError) -> bool {
    let ExecutorError::Node { message, .. } = error else { return false };
    let message = message.to_ascii_lowercase();
    ["already known", "alreadyknown", "known transaction", "already imported"]
        .iter()
        .any(|words| message.contains(words))
}

/// The type of transactions that carry blobs (EIP-4844).
const BLOBS: u8 = 3;

/// The chain's hash of a transaction: keccak256 of its bytes, without the blobs that are sent with
/// it.
fn hash(transaction: &[u8]) -> [u8; 32] {
    match without_blobs(transaction) {
        Some(signed) => keccak256(&[&[BLOBS], signed]).0,
        None => keccak256(&[transaction]).0,
    }
}

/// The signed part of a transaction that is sent with its blobs: an RLP list of the signed
/// transaction, the blobs, their commitments and proofs. In any other transaction the list's first
/// item is a number.
fn without_blobs(transaction: &[u8]) -> Option<&[u8]> {
    let mut sent = transaction.strip_prefix(&[BLOBS])?;
    let signed = Header::decode_bytes(&mut sent, true).ok().filter(|_| sent.is_empty())?;
    let mut rest = signed;
    Header::decode_bytes(&mut rest, true).ok()?;
    Some(&signed[..signed.len() - rest.len()])
}

async fn confirmed(
    node: &Node,
    hash: [u8; 32],
    confirmations: u32,
) -> Result<Outcome, ExecutorError> {
    let mut pause = FIRST_PAUSE;
    let mut failures = 0;
    loop {
        match look(node, hash, confirmations).await {
            Ok(Some(outcome)) => return Ok(outcome),
            Ok(None) => failures = 0,
            Err(error @ ExecutorError::TooMuchOutput { .. }) => return Err(error),
            Err(error) => {
                failures += 1;
                if failures == MAX_FAILURES {
                    return Err(error);
                }
                tracing::debug!(%error, failures, "no receipt; asking again");
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

async fn look(
    node: &Node,
    hash: [u8; 32],
    confirmations: u32,
) -> Result<Option<Outcome>, ExecutorError> {
    // The head is read before the receipt, or a reorganization in between would go unnoticed.
    let head = if confirmations > 1 { Some(node.head().await?) } else { None };
    let Some(receipt) = node.receipt(hash).await? else { return Ok(None) };
    let deep_enough = match (head, receipt.block()) {
        (None, _) => true,
        (Some(head), Some(block)) => {
            head.saturating_add(1) >= block.saturating_add(u128::from(confirmations))
        }
        (Some(_), None) => false,
    };
    Ok(Outcome::of(receipt).filter(|_| deep_enough))
}
