//! Proofs of what the chain's state has.

use super::{BytesText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What `GET /v1/chain/proofs/{subject}` is to show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ProofQuery {
    /// What the kind is looked up by: of `account` and `runner` a name or an address, of `actor`
    /// an address, of `stored` an actor, a slash and the key in its store, of `job`, `task` and
    /// `timer` an id, of `timers` two heights as `120..150`, both included; nothing of `presence`
    /// and `validators`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The block whose state it is about, one of the last 256 (default: the newest for which there
    /// is a proof).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// A proof of what a state has under a key, or that it has nothing there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateProof {
    /// What it is about: `account`, `actor`, `stored`, `job`, `runner`, `task`, `presence`,
    /// `timer`, `timers` or `validators`.
    pub kind: String,
    /// What that is looked up by, whole; empty for `presence` and `validators`.
    pub key: String,
    /// The block that left the state.
    pub height: u64,
    /// The state's root.
    pub state_root: HashText,
    /// The block whose header names that root, and whose certificate is in the proof.
    pub header_height: u64,
    /// That block's hash.
    pub header_hash: HashText,
    /// The proof, at most 2 MiB: docs/proofs.md has its bytes.
    pub proof: BytesText,
}
