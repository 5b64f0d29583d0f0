//! Proofs of entries in the chain's state.

use super::{BytesText, HashText};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The entry that `GET /v1/chain/proofs/{subject}` proves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ProofQuery {
    /// The key, by kind: a name or an address for `account` and `runner`; an address for `actor`;
    /// an actor, a slash and the key in its store for `stored`; an id for `job`, `task` and
    /// `timer`; two heights as `120..150`, both included, for `timers`; none for `presence` and
    /// `validators`.
    pub key: Option<String>,
    /// The block after which the state is proved, one of the last 256 (default: the newest that can
    /// be proved).
    pub at: Option<u64>,
}

/// A proof of the value that a state has under a key, or that it has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateProof {
    /// The kind of entry: `account`, `actor`, `stored`, `job`, `runner`, `task`, `presence`,
    /// `timer`, `timers` or `validators`.
    pub kind: String,
    /// The key in full; empty for `presence` and `validators`.
    pub key: String,
    /// The block that produced the state.
    pub height: u64,
    /// The state's root.
    pub state_root: HashText,
    /// The block whose header names that root, and whose certificate is in the proof.
    pub header_height: u64,
    /// That block's hash.
    pub header_hash: HashText,
    /// The proof, at most 2 MiB, in the format of docs/proofs.md.
    pub proof: BytesText,
}
